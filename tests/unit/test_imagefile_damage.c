/* SPDX-License-Identifier: MIT */
/* The image file, damaged, also while it is in use, or made up: it is as if there were none.
 * PFS_LONG=1: more rounds. PFS_SEED=N: another run. */
#include "tests/unit/imagefile_util.h"

/* A byte that means something: padding does not. */
static size_t any_byte(uint64_t *random, const struct pfs_image_layout *layout)
{
	for (;;) {
		unsigned section = random_below(random, PFS_SECTIONS + 2);

		if (section == PFS_SECTIONS)
			return random_below(random, sizeof(struct pfs_image_header));
		if (section > PFS_SECTIONS)
			return PFS_IMAGE_FILE_PAGE +
			       random_below(random, (uint32_t)(layout->blocks * sizeof(uint64_t)));
		if (layout->size[section])
			return layout->offset[section] +
			       random_below(random, (uint32_t)layout->size[section]);
	}
}

static void damaged_files_do_not_count(void **state PFS_UNUSED)
{
	struct pfs_image_layout layout;
	struct temp_store temp;
	uint64_t random = seed;
	unsigned mended = 0;

	make_large_store(&temp);
	take_bytes(&temp);
	pfs_imagefile_layout(&layout, (const struct pfs_image_header *)bytes);
	for (unsigned i = 0; i < (is_long ? 1000 : 15); i++) {
		size_t at = any_byte(&random, &layout);
		uint8_t bit = (uint8_t)(1u << random_below(&random, 8));

		bytes[at] ^= bit;
		put_bytes(&temp, size);
		if (check_file(&temp)) {
			assert_true(is_removed(&temp));
			mended++;
		}
		bytes[at] ^= bit;
	}
	assert_true(mended > 0);
	for (unsigned i = 0; i < (is_long ? 500 : 20); i++) {
		put_bytes(&temp, random_below(&random, (uint32_t)size));
		assert_false(check_file(&temp));
	}
	put_bytes(&temp, size);
	assert_true(check_file(&temp));
	assert_false(is_removed(&temp));
	temp_store_remove(&temp);
}

/* Of the file as it is, in place. */
static void damage(const struct temp_store *temp, uint64_t *random,
		   const struct pfs_image_layout *layout)
{
	int fd = open(file_of(temp), O_RDWR);

	assert_true(fd >= 0);
	if (random_below(random, 4) == 0) {
		assert_int_equal(ftruncate(fd, random_below(random, (uint32_t)size)), 0);
	} else {
		for (unsigned k = random_below(random, 40); k-- > 0;) {
			uint8_t byte = (uint8_t)random_next(random);

			assert_int_equal(pwrite(fd, &byte, 1, (off_t)any_byte(random, layout)), 1);
		}
	}
	assert_int_equal(close(fd), 0);
}

static void touch_some(struct pfs_tree *tree, uint64_t *random)
{
	for (unsigned n = random_below(random, 20); n-- > 0;) {
		uint32_t slot = random_below(random, tree->image.end);
		struct pfs_entry entry;

		if (tree->image.prime[slot])
			assert_int_equal(pfs_tree_getattr(tree, &entry, tree->image.prime[slot]),
					 0);
	}
}

/* Damaged while it is open, with some of it in use and some nodes changed. */
static void damage_in_use_changes_no_answer(void **state PFS_UNUSED)
{
	struct pfs_image_layout layout;
	struct temp_store temp, copy, other;
	uint64_t random = seed + 1;
	unsigned mended = 0;

	make_large_store(&temp);
	take_bytes(&temp);
	pfs_imagefile_layout(&layout, (const struct pfs_image_header *)bytes);
	for (unsigned i = 0; i < (is_long ? 1000 : 15); i++) {
		struct pfs_tree *tree, *rows;

		temp_store_copy(&temp, &copy);
		put_bytes(&copy, size);
		tree = temp_tree_open(&copy);
		assert_true(tree->image.from_file);
		touch_some(tree, &random);
		if (i % 2)
			add_rare(tree, i + 1);
		damage(&copy, &random, &layout);
		touch_some(tree, &random);
		if (i % 3 == 0)
			add_rare(tree, 2 * i + 2000);
		assert_int_equal(pfs_tree_sync(tree), 0);
		temp_store_copy(&copy, &other);
		rows = open_rows(&other);
		assert_same_but_free(rows, tree);
		mended += is_removed(&copy);
		temp_tree_close(rows);
		temp_tree_close(tree);
		temp_store_remove(&other);
		assert_int_equal(temp_store_findings(&copy), 0);
		temp_store_remove(&copy);
	}
	assert_true(mended > 0);
	temp_store_remove(&temp);
}

/* Makes all checksums right. */

static int pass(void *arg PFS_UNUSED, const struct pfs_walk_node *node PFS_UNUSED)
{
	return 0;
}

static uint32_t any_value(uint64_t *random)
{
	switch (random_below(random, 4)) {
	case 0:
		return (uint32_t)random_next(random);
	case 1:
		return UINT32_MAX - random_below(random, 3);
	default:
		return random_below(random, 300);
	}
}

static bool is_fine(const struct pfs_tree *tree, int error)
{
	return !error || pfs_imagefile_failure(tree) == -EIO;
}

/* Whatever it says, everything can be asked for and changed, or it is known that nothing can. */
static void use_up(const struct temp_store *temp)
{
	struct pfs_tree *tree = temp_tree_open(temp);
	const uint64_t root = PFS_ROOT_PRIME;
	struct pfs_totals totals;
	struct pfs_entry entry;
	uint64_t count;

	assert_true(is_fine(tree, pfs_tree_walk(tree, PFS_ROOT_PRIME, pass, NULL)));
	assert_true(is_fine(tree, pfs_tree_totals(tree, &totals, PFS_ROOT_PRIME)));
	(void)!pfs_tree_count(tree, &count, &(struct pfs_question){PFS_SUBTREE, &root, 1});
	for (uint32_t slot = 0; slot < tree->image.end; slot++) {
		char target[PFS_TARGET_MAX + 1];
		uint64_t ino = tree->image.prime[slot];

		if (!ino)
			continue;
		(void)!pfs_tree_getattr(tree, &entry, ino);
		(void)!pfs_tree_readlink(tree, target, ino);
	}
	(void)!pfs_tree_unlink(tree, PFS_ROOT_PRIME, "made");
	if (!pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, "made", S_IFREG | 0600, 0, &temp_root))
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
	(void)!pfs_tree_close(tree);
}

/* What contradicts itself ends no process.  Whether the file was not used, or not for long. */
static bool use_in_child(const struct temp_store *temp)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		use_up(temp);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return is_removed(temp);
}

/* Where the header says others, there is nothing to sum up: such a file is refused by its size. */
static bool sizes_are(const struct pfs_image_layout *layout)
{
	struct pfs_image_layout now;

	pfs_imagefile_layout(&now, (const struct pfs_image_header *)bytes);
	return !memcmp(now.size, layout->size, sizeof(now.size));
}

static void crafted_files_do_no_harm(void **state PFS_UNUSED)
{
	struct pfs_image_layout layout;
	struct temp_store temp, copy;
	uint64_t random = seed;
	uint8_t *sound;
	unsigned refused = 0;

	make_store(&temp, 500);
	take_bytes(&temp);
	sound = malloc(size);
	assert_non_null(sound);
	memcpy(sound, bytes, size);
	pfs_imagefile_layout(&layout, (const struct pfs_image_header *)bytes);
	for (unsigned i = 0; i < (is_long ? 2000 : 100); i++) {
		for (unsigned k = 0; k <= random_below(&random, 3); k++) {
			size_t at = any_byte(&random, &layout) / 4 * 4;
			uint32_t value = any_value(&random);

			memcpy(bytes + at, &value, sizeof(value));
		}
		/* what says what the file is and how large its parts are stays mostly: else nothing
		 * is read */
		if (random_below(&random, 4))
			memcpy(bytes, sound, sizeof(struct pfs_image_header));
		if (sizes_are(&layout) &&
		    ((struct pfs_image_header *)bytes)->end ==
			    ((struct pfs_image_header *)sound)->end &&
		    !memcmp(bytes, sound, offsetof(struct pfs_image_header, revision)))
			sum_up();
		temp_store_copy(&temp, &copy);
		put_bytes(&copy, size);
		refused += use_in_child(&copy);
		temp_store_remove(&copy);
		memcpy(bytes, sound, size);
	}
	print_message("%u were refused\n", refused);
	assert_true(refused > 0);
	free(sound);
	temp_store_remove(&temp);
}

/* The first entries of a large store's n leaves, in its image file's bytes. */
static struct pfs_btree_entry *take_firsts(struct temp_store *temp, size_t *n)
{
	struct pfs_image_layout layout;

	if (!pfs_lazy_is_possible())
		skip();
	make_large_store(temp);
	take_bytes(temp);
	pfs_imagefile_layout(&layout, (const struct pfs_image_header *)bytes);
	*n = layout.n_leaves;
	return (struct pfs_btree_entry *)(bytes + layout.offset[PFS_SECTION_FIRSTS]);
}

/* The file says that a leaf of the index begins with another entry than the rows say: neither of
 * them can be asked. */
static void what_cannot_be_made_good_is_no_answer(void **state PFS_UNUSED)
{
	struct pfs_btree_entry *firsts;
	struct temp_store temp;
	struct pfs_entry entry;
	struct pfs_tree *tree;
	size_t n;

	firsts = take_firsts(&temp, &n);
	assert_true(n > 80);
	firsts[40].slot = firsts[80].slot;
	sum_up();
	put_bytes(&temp, size);
	tree = temp_tree_open(&temp);
	assert_true(tree->image.from_file);
	assert_int_equal(pfs_imagefile_failure(tree), 0);
	(void)!pfs_tree_walk(tree, PFS_ROOT_PRIME, pass, NULL);
	assert_int_equal(pfs_imagefile_failure(tree), -EIO);
	assert_int_equal(
		pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, "made", S_IFREG | 0600, 0, &temp_root),
		-EIO);
	assert_int_equal(pfs_imagefile_write(tree), -EIO);
	assert_int_equal(pfs_tree_close(tree), -EIO);
	assert_true(is_removed(&temp));
	assert_int_equal(temp_store_findings(&temp), 0);
	write_file(&temp);
	assert_true(check_file(&temp));
	temp_store_remove(&temp);
}

/* First entries of leaves that are damaged are made from the rows, those below an inner node
 * together. */
static void damaged_first_entries_are_made(void **state PFS_UNUSED)
{
	struct pfs_btree_entry *firsts;
	struct temp_store temp;
	struct pfs_tree *tree, *rows;
	size_t n;

	firsts = take_firsts(&temp, &n);
	firsts[PFS_BTREE_INNER_COUNT + 1].key ^= 1;
	put_bytes(&temp, size);
	tree = open_file(&temp);
	rows = open_rows(&temp);
	assert_true(tree->image.from_file);
	assert_int_equal(tree->image.file_end, tree->image.end);
	assert_false(is_removed(&temp));
	assert_same(rows, tree);
	assert_int_equal(pfs_btree_verify(tree->image.by_name), 0);
	assert_true(is_removed(&temp));
	(void)pthread_mutex_lock(&tree->image.file->lock);
	assert_non_null(tree->image.file->rows);
	(void)pthread_mutex_unlock(&tree->image.file->lock);
	assert_int_equal(pfs_imagefile_failure(tree), 0);
	temp_tree_close(rows);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

/* What has changed since the file was written is looked for in its index: if that is damaged, the
 * rows are read. */
static void damaged_first_entries_of_an_older_file(void **state PFS_UNUSED)
{
	struct pfs_btree_entry *firsts;
	struct temp_store temp;
	struct pfs_entry entry;
	struct pfs_tree *tree, *rows;
	size_t n;

	firsts = take_firsts(&temp, &n);
	tree = temp_tree_open(&temp);
	assert_int_equal(
		pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, "newer", S_IFREG | 0600, 0, &temp_root),
		0);
	temp_tree_close(tree);
	assert_true(check_file(&temp));
	for (size_t i = 0; i < n; i++)
		firsts[i].key ^= 1;
	put_bytes(&temp, size);
	tree = open_file(&temp);
	rows = open_rows(&temp);
	assert_false(tree->image.from_file);
	assert_same(rows, tree);
	temp_tree_close(rows);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

/* A change that was made before is not written with what is not known. */
static void nothing_wrong_is_written(void **state PFS_UNUSED)
{
	struct pfs_btree_entry *firsts;
	struct temp_store temp;
	struct pfs_entry entry;
	struct pfs_tree *tree;
	size_t n;

	firsts = take_firsts(&temp, &n);
	for (size_t i = 1; i + 1 < n; i += 2)
		firsts[i].slot = firsts[i + 1].slot;
	sum_up();
	put_bytes(&temp, size);
	tree = temp_tree_open(&temp);
	(void)!pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, "made", S_IFREG | 0600, 0, &temp_root);
	(void)!pfs_tree_walk(tree, PFS_ROOT_PRIME, pass, NULL);
	assert_int_equal(pfs_imagefile_failure(tree), -EIO);
	assert_int_not_equal(pfs_tree_close(tree), 0);
	assert_int_equal(temp_store_findings(&temp), 0);
	temp_store_remove(&temp);
}

/* A large store whose image file has damaged ends of subtrees. */
static void damage_ends(struct temp_store *temp)
{
	struct pfs_image_layout layout;

	if (!pfs_lazy_is_possible())
		skip();
	make_large_store(temp);
	take_bytes(temp);
	pfs_imagefile_layout(&layout, (const struct pfs_image_header *)bytes);
	assert_true(layout.size[PFS_SECTION_ENDS] > 0);
	bytes[layout.offset[PFS_SECTION_ENDS]] ^= 1;
	put_bytes(temp, size);
}

/* Nobody knows them but the file, so nobody reads the store's rows for them. */
static void damaged_ends_are_not_known(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct pfs_tree *tree, *rows;

	damage_ends(&temp);
	tree = open_file(&temp);
	rows = open_rows(&temp);
	assert_true(tree->image.from_file);
	assert_int_equal(pfs_span_end(tree, tree->image.root), 0);
	assert_true(is_removed(&temp));
	assert_same(rows, tree);
	assert_null(tree->image.file->rows);
	assert_int_equal(pfs_imagefile_failure(tree), 0);
	temp_tree_close(rows);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

/* They prove damaged while they are written: that file comes to nothing, the next has none. */
static void damaged_ends_are_not_written(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct pfs_tree *tree;

	damage_ends(&temp);
	tree = open_file(&temp);
	assert_true(tree->image.from_file);
	assert_int_equal(pfs_imagefile_write(tree), -EUCLEAN);
	assert_int_equal(pfs_imagefile_write(tree), 0);
	temp_tree_close(tree);
	assert_true(check_file(&temp));
	assert_false(is_removed(&temp));
	temp_store_remove(&temp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damaged_files_do_not_count),
		cmocka_unit_test(damage_in_use_changes_no_answer),
		cmocka_unit_test(crafted_files_do_no_harm),
		cmocka_unit_test(what_cannot_be_made_good_is_no_answer),
		cmocka_unit_test(damaged_first_entries_are_made),
		cmocka_unit_test(damaged_first_entries_of_an_older_file),
		cmocka_unit_test(nothing_wrong_is_written),
		cmocka_unit_test(damaged_ends_are_not_known),
		cmocka_unit_test(damaged_ends_are_not_written),
	};
	int failed;

	take_settings();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(bytes);
	return failed;
}
