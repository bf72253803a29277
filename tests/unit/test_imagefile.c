/* SPDX-License-Identifier: MIT */
/* The image file: what is answered with it is what is answered without; damaged, also while it is in use, made
 * up, another store's or another user's, it is as if there were none.  PFS_LONG=1: more rounds.  PFS_SEED=N: another run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/btree.h"
#include "base/checked.h"
#include "base/lazy.h"
#include "base/log.h"
#include "fs/attr/attrfile.h"
#include "fs/image/imagefile_impl.h"
#include "fs/image/span.h"
#include "fs/image/totals.h"
#include "fs/image/slotorder.h"
#include "fs/nodes/paths.h"
#include "fs/nodes/scan.h"
#include "fs/tree/tree_impl.h"
#include "tests/ref/random.h"
#include "tests/ref/temp_store.h"
#include "tests/ref/tree_model.h"

#define LARGE 9000u /* nodes */

static uint64_t seed;
static bool is_long;

static char *file_of(const struct temp_store *temp)
{
	static char name[128];

	(void)snprintf(name, sizeof(name), "%s" PFS_IMAGE_FILE_SUFFIX, temp->path);
	return name;
}

/* ---- two images ---- */

static bool same_time(struct pfs_time a, struct pfs_time b)
{
	return a.sec == b.sec && a.nsec == b.nsec;
}

static void assert_same_node(struct pfs_tree *a, struct pfs_tree *b, uint32_t slot)
{
	struct pfs_node_record x, y;

	assert_int_equal(a->image.prime[slot], b->image.prime[slot]);
	if (!a->image.prime[slot])
		return;
	pfs_image_record(a, &x, slot);
	pfs_image_record(b, &y, slot);
	assert_int_equal(x.name_len, y.name_len);
	assert_memory_equal(x.name, y.name, x.name_len);
	assert_int_equal(x.target_len, y.target_len);
	if (x.target_len)
		assert_memory_equal(x.target, y.target, x.target_len);
	assert_true(x.prime == y.prime && x.parent == y.parent && x.slot == y.slot && x.flags == y.flags);
	assert_true(x.mode == y.mode && x.uid == y.uid && x.gid == y.gid && x.rdev == y.rdev);
	assert_true(x.size == y.size && x.blocks == y.blocks && same_time(x.atime, y.atime) &&
		    same_time(x.mtime, y.mtime) && same_time(x.ctime, y.ctime));
	assert_int_equal(a->image.links[slot], b->image.links[slot]);
	assert_true((a->image.live[slot / 64] >> slot % 64 & 1) == (b->image.live[slot / 64] >> slot % 64 & 1));
	assert_int_equal(a->image.state[slot], b->image.state[slot]);
	assert_int_equal(pfs_image_slot(b, x.prime), slot);
}

static void assert_same_index(struct pfs_tree *a, struct pfs_tree *b)
{
	struct pfs_btree_cursor in_a, in_b;
	struct pfs_btree_entry x, y;

	pfs_btree_seek(a->image.by_name, &in_a, 0, 0);
	pfs_btree_seek(b->image.by_name, &in_b, 0, 0);
	while (pfs_btree_next(a->image.by_name, &in_a, &x)) {
		assert_true(pfs_btree_next(b->image.by_name, &in_b, &y));
		assert_true(x.key == y.key && x.slot == y.slot);
	}
	assert_false(pfs_btree_next(b->image.by_name, &in_b, &y));
	assert_int_equal(pfs_btree_verify(b->image.by_name), 0);
}

/* What is known of subtrees: the totals of all directories, and which slots each has. */
static void assert_same_subtrees(struct pfs_tree *a, struct pfs_tree *b)
{
	struct pfs_totals x, y;

	assert_int_equal(pfs_totals_prepare(a, NULL, NULL), 0);
	assert_int_equal(pfs_totals_prepare(b, NULL, NULL), 0);
	for (uint32_t slot = 0; slot < a->image.end; slot++) {
		if (!pfs_image_is_live(&a->image, slot) || !S_ISDIR(a->image.mode[slot]))
			continue;
		pfs_totals_at(a, &x, slot);
		pfs_totals_at(b, &y, slot);
		assert_true(x.count == y.count && x.size == y.size && x.blocks == y.blocks &&
			    x.mtime == y.mtime);
	}
	assert_true(pfs_spans_are_sound(a));
	assert_true(pfs_spans_are_sound(b));
}

/* But for the order in which free slots are used again. */
static void assert_same_but_free(struct pfs_tree *a, struct pfs_tree *b)
{
	assert_same_subtrees(a, b);
	assert_int_equal(a->image.end, b->image.end);
	assert_int_equal(a->image.nodes, b->image.nodes);
	assert_int_equal(a->image.directories, b->image.directories);
	assert_int_equal(a->image.root, b->image.root);
	assert_int_equal(a->image.free_count, b->image.free_count);
	for (uint32_t slot = 0; slot < a->image.end; slot++)
		assert_same_node(a, b, slot);
	assert_same_index(a, b);
	assert_int_equal(tree_model_state_of(a), tree_model_state_of(b));
}

static void assert_same(struct pfs_tree *a, struct pfs_tree *b)
{
	assert_same_but_free(a, b);
	assert_int_equal(a->image.free_head, b->image.free_head);
	for (uint32_t slot = a->image.free_head; slot != PFS_NO_SLOT; slot = a->image.parent[slot])
		assert_int_equal(a->image.parent[slot], b->image.parent[slot]);
}

static struct pfs_tree *open_rows(const struct temp_store *temp)
{
	return temp_tree_open_with(temp, &(struct pfs_tree_options){.read_only = true,
								    .no_image_file = true});
}

static struct pfs_tree *open_file(const struct temp_store *temp)
{
	return temp_tree_open_with(temp, &(struct pfs_tree_options){.read_only = true});
}

static void write_file(const struct temp_store *temp)
{
	struct pfs_tree *tree = open_rows(temp);

	assert_int_equal(pfs_imagefile_write(tree), 0);
	temp_tree_close(tree);
}

/* Whether it is used; what is answered is the same either way. */
static bool check_file(const struct temp_store *temp)
{
	struct pfs_tree *rows = open_rows(temp), *file = open_file(temp);
	bool used = file->image.from_file;

	assert_false(rows->image.from_file);
	assert_false(pfs_totals_are_made(rows));
	assert_true(pfs_totals_are_made(file) == used);
	assert_same(rows, file);
	temp_tree_close(rows);
	temp_tree_close(file);
	return used;
}

/* ---- a tree with everything that images have ---- */

static void add_rare(struct pfs_tree *tree, unsigned round)
{
	const struct stat far = {.st_mtim = {.tv_sec = INT64_C(1) << 40, .tv_nsec = 5}};
	struct pfs_entry entry;
	char name[32];

	(void)snprintf(name, sizeof(name), "link %u", round);
	assert_int_equal(pfs_tree_symlink(tree, &entry, PFS_ROOT_PRIME, name, "to/somewhere",
					  &temp_root),
			 0);
	pfs_tree_forget(tree, entry.attr.st_ino, 1);
	(void)snprintf(name, sizeof(name), "far %u", round);
	assert_int_equal(pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, name, S_IFBLK | 0600, 0x1234,
				       &temp_root),
			 0);
	assert_int_equal(pfs_tree_setattr(tree, &entry, entry.attr.st_ino, &far, PFS_SET_MTIME,
					  &temp_root),
			 0);
	pfs_tree_forget(tree, entry.attr.st_ino, 1);
}

/* A store after so many random operations, which the model knows, and with an image file. */
static void make_store(struct temp_store *temp, unsigned steps)
{
	struct pfs_tree *tree;

	temp_store_create(temp);
	tree = temp_tree_open(temp);
	tree_model_start(tree, seed);
	for (unsigned i = 0; i < steps; i++)
		tree_model_step();
	add_rare(tree, 0);
	temp_tree_close(tree);
	write_file(temp);
}

/* As large that all sections have several blocks. */
static void make_large_store(struct temp_store *temp)
{
	struct pfs_tree *tree;

	make_store(temp, 300);
	tree = temp_tree_open(temp);
	for (unsigned i = 0; i < LARGE; i++) {
		struct pfs_entry entry;
		char name[32];

		(void)snprintf(name, sizeof(name), "%x of many", i * 2654435761u);
		assert_int_equal(pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, name,
					       (i % 8 ? S_IFREG : S_IFDIR) | 0600, 0, &temp_root),
				 0);
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
	}
	for (unsigned i = 0; i < LARGE; i += 5) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%x of many", i * 2654435761u);
		if (i % 8)
			assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, name), 0);
	}
	temp_tree_close(tree);
	write_file(temp);
}

/* Over and over: changed where it was loaded from the file, which is written anew only now and then. */
static void answers_are_the_same(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct pfs_tree *tree;

	temp_store_create(&temp);
	tree = temp_tree_open(&temp);
	tree_model_start(tree, seed);
	for (unsigned round = 0; round < (is_long ? 200 : 20); round++) {
		for (unsigned i = 0; i < 300; i++)
			tree_model_step();
		assert_int_equal(tree_model_state_of(tree), tree_model_state());
		temp_tree_close(tree);
		assert_true(check_file(&temp) || !round);
		if (round % 4 == 0)
			write_file(&temp);
		assert_true(check_file(&temp));
		tree = temp_tree_open(&temp);
		assert_true(tree->image.from_file);
		tree_model_reopened(tree);
	}
	temp_tree_close(tree);
	assert_int_equal(temp_store_findings(&temp), 0);
	temp_store_remove(&temp);
}

static void what_few_have_is_there(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct pfs_tree *tree;

	make_store(&temp, 50);
	tree = temp_tree_open(&temp);
	assert_true(tree->image.from_file);
	add_rare(tree, 1);
	temp_tree_close(tree);
	assert_true(check_file(&temp));
	write_file(&temp);
	assert_true(check_file(&temp));
	temp_store_remove(&temp);
}

/* ---- damage ---- */

static uint8_t *bytes;
static size_t size;

static void take_bytes(const struct temp_store *temp)
{
	struct stat attr = {0};
	int fd = open(file_of(temp), O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &attr), 0);
	size = (size_t)attr.st_size;
	free(bytes);
	bytes = malloc(size);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, size), size);
	assert_int_equal(close(fd), 0);
}

static void put_bytes(const struct temp_store *temp, size_t n)
{
	int fd = open(file_of(temp), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(close(fd), 0);
}

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

/* Whoever met with the damage removed the file. */
static bool is_removed(const struct temp_store *temp)
{
	return access(file_of(temp), F_OK) != 0;
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
static void damage(const struct temp_store *temp, uint64_t *random, const struct pfs_image_layout *layout)
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
			assert_int_equal(pfs_tree_getattr(tree, &entry, tree->image.prime[slot]), 0);
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
static void sum_up(void)
{
	struct pfs_image_header *header = (struct pfs_image_header *)bytes;
	uint64_t *sums = (uint64_t *)(bytes + PFS_IMAGE_FILE_PAGE);
	struct pfs_image_layout layout;

	pfs_imagefile_layout(&layout, header);
	for (unsigned section = 0; section < PFS_SECTIONS; section++) {
		uint64_t block = layout.first_block[section];

		for (uint64_t at = 0; at < layout.size[section]; at += layout.unit[section], block++)
			sums[block] = pfs_imagefile_sum(
				header, block, bytes + layout.offset[section] + at,
				PFS_MIN(layout.size[section] - at, layout.unit[section]));
	}
	header->table_checksum =
		pfs_imagefile_sum(header, PFS_SUM_TABLE, sums, layout.blocks * sizeof(*sums));
	header->checksum = pfs_imagefile_sum(header, PFS_SUM_HEADER, header,
					     offsetof(struct pfs_image_header, checksum));
}

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
		/* what says what the file is and how large its parts are stays mostly: else nothing is read */
		if (random_below(&random, 4))
			memcpy(bytes, sound, sizeof(struct pfs_image_header));
		if (((struct pfs_image_header *)bytes)->end ==
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

/* The file says that a leaf of the index begins with another entry than the rows say: neither of them can be asked. */
static void what_cannot_be_made_good_is_no_answer(void **state PFS_UNUSED)
{
	struct pfs_image_layout layout;
	struct pfs_btree_entry *firsts;
	struct temp_store temp;
	struct pfs_entry entry;
	struct pfs_tree *tree;

	if (!pfs_lazy_is_possible())
		skip();
	make_large_store(&temp);
	take_bytes(&temp);
	pfs_imagefile_layout(&layout, (const struct pfs_image_header *)bytes);
	firsts = (struct pfs_btree_entry *)(bytes + layout.offset[PFS_SECTION_FIRSTS]);
	firsts[40].slot = firsts[80].slot;
	sum_up();
	put_bytes(&temp, size);
	tree = temp_tree_open(&temp);
	assert_true(tree->image.from_file);
	assert_int_equal(pfs_imagefile_failure(tree), 0);
	(void)!pfs_tree_walk(tree, PFS_ROOT_PRIME, pass, NULL);
	assert_int_equal(pfs_imagefile_failure(tree), -EIO);
	assert_int_equal(pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, "made", S_IFREG | 0600, 0, &temp_root), -EIO);
	assert_int_equal(pfs_imagefile_write(tree), -EIO);
	assert_int_equal(pfs_tree_close(tree), -EIO);
	assert_true(is_removed(&temp));
	assert_int_equal(temp_store_findings(&temp), 0);
	write_file(&temp);
	assert_true(check_file(&temp));
	temp_store_remove(&temp);
}

/* A change that was made before is not written with what is not known. */
static void nothing_wrong_is_written(void **state PFS_UNUSED)
{
	struct pfs_image_layout layout;
	struct pfs_btree_entry *firsts;
	struct temp_store temp;
	struct pfs_entry entry;
	struct pfs_tree *tree;

	if (!pfs_lazy_is_possible())
		skip();
	make_large_store(&temp);
	take_bytes(&temp);
	pfs_imagefile_layout(&layout, (const struct pfs_image_header *)bytes);
	firsts = (struct pfs_btree_entry *)(bytes + layout.offset[PFS_SECTION_FIRSTS]);
	for (size_t i = 1; i + 1 < layout.n_leaves; i += 2)
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

/* ---- columns of attributes ---- */

#define TAGGED 3000u

static void set_tag(struct pfs_tree *tree, uint64_t ino, unsigned value)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "value %u", value);

	assert_int_equal(pfs_tree_setxattr(tree, ino, "user.tag", text, (size_t)len, 0), 0);
}

static struct pfs_attr_reader *open_tags(struct pfs_tree *tree)
{
	struct pfs_attr_reader *reader;

	assert_int_equal(pfs_attr_reader_open(&reader, tree, "tag", 3), 0);
	return reader;
}

static struct pfs_attr_value tag_of(struct pfs_attr_reader *reader, struct pfs_tree *tree,
				    uint32_t slot)
{
	struct pfs_attr_value value;

	(void)pfs_scan_lock(tree, __func__);
	assert_int_equal(pfs_attr_read(reader, &value, &slot, 1), 0);
	pfs_scan_unlock(tree);
	return value;
}

static void assert_same_tags(struct pfs_tree *a, struct pfs_tree *b)
{
	struct pfs_attr_reader *in_a = open_tags(a), *in_b = open_tags(b);

	for (uint32_t slot = 0; slot < a->image.end; slot++) {
		struct pfs_attr_value x = tag_of(in_a, a, slot), y = tag_of(in_b, b, slot);

		assert_int_equal(x.is_set, y.is_set);
		if (!x.is_set)
			continue;
		assert_true(x.type == y.type && x.text_len == y.text_len);
		assert_memory_equal(x.text, y.text, x.text_len);
	}
	pfs_attr_reader_close(in_a);
	pfs_attr_reader_close(in_b);
}

/* A store with attributes, one of which somebody has asked for, so that the file has its column. */
static void make_tagged_store(struct temp_store *temp)
{
	struct pfs_tree *tree;

	make_large_store(temp);
	tree = temp_tree_open(temp);
	for (uint32_t slot = 0, n = 0; slot < tree->image.end && n < TAGGED; slot += 3)
		if (pfs_image_is_live(&tree->image, slot) &&
		    (S_ISREG(tree->image.mode[slot]) || S_ISDIR(tree->image.mode[slot])))
			set_tag(tree, tree->image.prime[slot], n++ % 700);
	temp_tree_close(tree);
	write_file(temp);
	tree = open_file(temp);
	assert_int_equal(pfs_imagefile_extra_size(tree), 0);
	pfs_attr_reader_close(open_tags(tree));
	assert_int_equal(pfs_imagefile_write(tree), 0);
	temp_tree_close(tree);
	tree = open_file(temp);
	assert_true(pfs_imagefile_extra_size(tree) > TAGGED * sizeof(uint64_t));
	temp_tree_close(tree);
}

static void columns_that_were_asked_for_are_there(void **state PFS_UNUSED)
{
	struct pfs_attrfile_column column;
	struct pfs_tree *rows, *file;
	struct temp_store temp, copy;

	make_tagged_store(&temp);
	for (unsigned round = 0; round < 2; round++) {
		rows = open_rows(&temp);
		file = open_file(&temp);
		assert_true(pfs_attrfile_read(file, &column, "tag", 3));
		assert_int_equal(column.n, 700);
		free(column.place);
		free(column.values);
		free(column.texts);
		assert_false(pfs_attrfile_read(file, &column, "other", 5));
		assert_false(pfs_attrfile_read(rows, &column, "tag", 3));
		assert_same_tags(rows, file);
		assert_int_equal(pfs_imagefile_write(file), 0); /* nor does it get lost */
		temp_tree_close(rows);
		temp_tree_close(file);
	}
	file = temp_tree_open(&temp);
	set_tag(file, PFS_ROOT_PRIME, 12345);
	assert_int_equal(pfs_tree_sync(file), 0);
	assert_false(pfs_attrfile_read(file, &column, "tag", 3));
	temp_store_copy(&temp, &copy);
	rows = open_rows(&copy);
	assert_same_tags(rows, file);
	temp_tree_close(rows);
	temp_store_remove(&copy);
	temp_tree_close(file);
	file = open_file(&temp); /* of a later group than the file is */
	rows = open_rows(&temp);
	assert_true(file->image.from_file);
	assert_false(pfs_attrfile_read(file, &column, "tag", 3));
	assert_same_tags(rows, file);
	temp_tree_close(rows);
	temp_tree_close(file);
	temp_store_remove(&temp);
}

static void damaged_columns_are_read_of_the_store(void **state PFS_UNUSED)
{
	struct pfs_image_layout layout;
	struct temp_store temp;
	uint64_t random = seed;
	struct pfs_tree *rows;

	make_tagged_store(&temp);
	take_bytes(&temp);
	pfs_imagefile_layout(&layout, (const struct pfs_image_header *)bytes);
	rows = open_rows(&temp);
	for (unsigned i = 0; i < (is_long ? 1000 : 30); i++) {
		size_t at = layout.offset[PFS_SECTION_EXTRA] +
			    random_below(&random, (uint32_t)layout.size[PFS_SECTION_EXTRA]);
		struct pfs_tree *file;

		bytes[at] ^= (uint8_t)(1u << random_below(&random, 8));
		put_bytes(&temp, size);
		file = open_file(&temp);
		assert_same_tags(rows, file);
		temp_tree_close(file);
		take_bytes(&temp);
		sum_up(); /* made up: any answer, but no harm */
		put_bytes(&temp, size);
		file = open_file(&temp);
		pfs_attr_reader_close(open_tags(file));
		temp_tree_close(file);
	}
	temp_tree_close(rows);
	temp_store_remove(&temp);
}

/* ---- a system that does not let us wait for who touches memory ---- */

static int forbid(long number)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {PFS_COUNT(code), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void use_whole(const struct temp_store *temp)
{
	if (forbid(SYS_userfaultfd))
		_exit(77);
	assert_false(pfs_lazy_is_possible());
	assert_true(check_file(temp));
	bytes[size / 2] ^= 1;
	put_bytes(temp, size);
	assert_false(check_file(temp)); /* all is looked at while the rows can be loaded instead */
	_exit(0);
}

static void without_help_all_is_read(void **state PFS_UNUSED)
{
	struct temp_store temp;
	pid_t child;
	int status;

	make_large_store(&temp);
	take_bytes(&temp);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		use_whole(&temp);
	assert_int_equal(waitpid(child, &status, 0), child);
	temp_store_remove(&temp);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

/* ---- somebody else's ---- */

static void copies_are_told_apart(void **state PFS_UNUSED)
{
	struct temp_store ours, theirs;
	struct temp_store *both[] = {&ours, &theirs};

	make_store(&ours, 200);
	temp_store_copy(&ours, &theirs);
	take_bytes(&ours);
	put_bytes(&theirs, size);
	assert_true(check_file(&theirs));
	for (unsigned i = 0; i < 2; i++) {
		struct pfs_tree *tree = temp_tree_open(both[i]);

		add_rare(tree, 1 + i);
		temp_tree_close(tree);
		assert_true(check_file(both[i]));
		write_file(both[i]);
		assert_true(check_file(both[i]));
	}
	take_bytes(&ours);
	put_bytes(&theirs, size);
	assert_false(check_file(&theirs));
	temp_store_remove(&ours);
	temp_store_remove(&theirs);
}

static void only_the_owners_is_used(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct stat attr;
	char other[160];

	make_store(&temp, 50);
	assert_int_equal(stat(file_of(&temp), &attr), 0);
	assert_int_equal(attr.st_mode & 0777, 0600);
	assert_int_equal(chmod(file_of(&temp), 0620), 0);
	assert_false(check_file(&temp));
	assert_int_equal(chmod(file_of(&temp), 0602), 0);
	assert_false(check_file(&temp));
	assert_int_equal(chmod(file_of(&temp), 0644), 0);
	assert_true(check_file(&temp));
	if (geteuid() == 0) {
		assert_int_equal(chown(file_of(&temp), 65534, 0), 0);
		assert_false(check_file(&temp));
		assert_int_equal(chown(file_of(&temp), 0, 0), 0);
	}
	(void)snprintf(other, sizeof(other), "%s.moved", file_of(&temp));
	assert_int_equal(rename(file_of(&temp), other), 0);
	assert_int_equal(symlink(other, file_of(&temp)), 0);
	assert_false(check_file(&temp));
	assert_int_equal(unlink(file_of(&temp)), 0);
	assert_int_equal(mkfifo(file_of(&temp), 0600), 0);
	assert_false(check_file(&temp));
	assert_int_equal(unlink(file_of(&temp)), 0);
	write_file(&temp);
	assert_true(check_file(&temp));
	assert_int_equal(unlink(other), 0);
	temp_store_remove(&temp);
}

/* A file of somebody's that only has the name, of the finished or of the unfinished one. */
static void no_other_file_is_lost(void **state PFS_UNUSED)
{
	static const char words[] = "these words are nobody's image file";
	struct temp_store temp;
	char name[160];

	for (unsigned part = 0; part < 2; part++) {
		struct pfs_tree *tree;
		char found[sizeof(words)];
		FILE *file;

		make_store(&temp, 50);
		(void)snprintf(name, sizeof(name), "%s%s", file_of(&temp), part ? ".part" : "");
		file = fopen(name, "we");
		assert_non_null(file);
		assert_int_equal(fwrite(words, 1, sizeof(words), file), sizeof(words));
		assert_int_equal(fclose(file), 0);
		tree = open_rows(&temp);
		assert_int_equal(pfs_imagefile_write(tree), -EPERM);
		temp_tree_close(tree);
		file = fopen(name, "re");
		assert_non_null(file);
		assert_int_equal(fread(found, 1, sizeof(found), file), sizeof(words));
		assert_int_equal(fclose(file), 0);
		assert_memory_equal(found, words, sizeof(words));
		temp_store_remove(&temp);
	}
}

/* Names that no store has, with right checksums. */
static void bad_names_are_refused(void **state PFS_UNUSED)
{
	static const char *const bad[] = {"/", ".", "..", "a/b", "../../../escaped", "12345678/",
					  "1234567/"};
	struct pfs_image_layout layout;
	struct temp_store temp;

	for (size_t i = 0; i < PFS_COUNT(bad); i++) {
		const size_t len = strlen(bad[i]);
		char good[32] = "", *at;
		struct pfs_entry entry;
		struct pfs_tree *tree;

		make_store(&temp, 10);
		tree = temp_tree_open(&temp);
		memset(good, 'z', len);
		good[0] = 'q';
		assert_int_equal(pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, good, S_IFREG | 0600, 0,
					       &temp_root),
				 0);
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
		temp_tree_close(tree);
		write_file(&temp);
		take_bytes(&temp);
		pfs_imagefile_layout(&layout, (const struct pfs_image_header *)bytes);
		at = memmem(bytes + layout.offset[PFS_SECTION_HEAP], layout.size[PFS_SECTION_HEAP],
			    good, len + 1);
		assert_non_null(at);
		memcpy(at, bad[i], len);
		sum_up();
		put_bytes(&temp, size);
		assert_true(!check_file(&temp) || is_removed(&temp));
		temp_store_remove(&temp);
	}
}

static void the_mode_is_the_stores(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct stat attr;

	make_store(&temp, 50);
	assert_int_equal(chmod(temp.path, 0664), 0);
	write_file(&temp);
	assert_int_equal(stat(file_of(&temp), &attr), 0);
	assert_int_equal(attr.st_mode & 07777, 0644);
	assert_true(check_file(&temp));
	temp_store_remove(&temp);
}

/* ---- killed while it is written ---- */

static void a_kill_leaves_the_old_one(void **state PFS_UNUSED)
{
	struct temp_store temp;
	uint64_t random = seed;

	make_store(&temp, 500);
	for (unsigned i = 0; i < (is_long ? 200 : 10); i++) {
		struct pfs_tree *tree = open_rows(&temp);
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child)
			_exit(pfs_imagefile_write(tree) ? 1 : 0);
		(void)usleep(random_below(&random, 3000));
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		temp_tree_close(tree);
		assert_true(check_file(&temp));
	}
	write_file(&temp);
	assert_true(check_file(&temp));
	temp_store_remove(&temp);
}

/* ---- the order of slots ---- */

static uint64_t add_node(struct pfs_tree *tree, uint64_t parent, const char *name, mode_t mode)
{
	uint64_t ino = temp_tree_make(tree, parent, name, mode);

	assert_int_not_equal(ino, 0);
	return ino;
}

static int add_text(void *arg, const char *text, size_t len)
{
	assert_true(strlen(arg) + len < 4096);
	strncat(arg, text, len);
	return 0;
}

static void list_paths(struct pfs_tree *tree, char out[4096])
{
	struct pfs_paths *paths;
	uint64_t row = 0;
	int got;

	*out = '\0';
	assert_int_equal(pfs_paths_open(&paths, tree, PFS_ROOT_PRIME, 0), 0);
	do
		got = pfs_paths_next(paths, &row, add_text, out);
	while (got == 1);
	assert_int_equal(got, 0);
	pfs_paths_close(paths);
}

/* It is known, with so many strays, before anybody looks; -1: it is not. The paths are those of the rows. */
static void check_order(const struct temp_store *temp, int n_strays)
{
	struct pfs_tree *rows = open_rows(temp), *file = open_file(temp);
	char expected[4096], paths[4096];
	const uint32_t *strays;

	assert_true(file->image.from_file);
	assert_int_equal(pfs_slotorder(rows), PFS_ORDER_UNKNOWN);
	assert_int_equal(pfs_slotorder(file), n_strays < 0 ? PFS_ORDER_UNKNOWN : PFS_ORDER_ASCENDING);
	assert_int_equal(pfs_slotorder_strays(file, &strays, 0), PFS_MAX(n_strays, 0));
	list_paths(rows, expected);
	list_paths(file, paths);
	assert_string_equal(paths, expected);
	temp_tree_close(rows);
	temp_tree_close(file);
}

static void the_order_of_slots_is_known(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct pfs_tree *tree;
	uint64_t a, b;

	temp_store_create(&temp);
	tree = temp_tree_open(&temp);
	a = add_node(tree, PFS_ROOT_PRIME, "a", S_IFDIR | 0755);
	b = add_node(tree, a, "b", S_IFDIR | 0755);
	(void)add_node(tree, b, "c", S_IFREG | 0644);
	(void)add_node(tree, b, "cc", S_IFREG | 0644);
	(void)add_node(tree, a, "b-c", S_IFREG | 0644);
	(void)add_node(tree, PFS_ROOT_PRIME, "z", S_IFREG | 0644);
	temp_tree_close(tree);
	write_file(&temp);
	check_order(&temp, 0);
	/* what comes later is followed, */
	tree = temp_tree_open(&temp);
	(void)add_node(tree, a, "0", S_IFREG | 0644);
	temp_tree_close(tree);
	check_order(&temp, 1);
	/* and is in the next file, made of what is known; rows say nothing of it */
	tree = open_file(&temp);
	assert_int_equal(pfs_imagefile_write(tree), 0);
	temp_tree_close(tree);
	check_order(&temp, 1);
	tree = temp_tree_open(&temp);
	(void)add_node(tree, b, "1", S_IFREG | 0644);
	assert_int_equal(pfs_tree_unlink(tree, a, "0"), 0);
	temp_tree_close(tree);
	check_order(&temp, 2);
	/* a directory that moves takes the order of others with it */
	tree = temp_tree_open(&temp);
	assert_int_equal(pfs_tree_rename(tree, PFS_ROOT_PRIME, "a", PFS_ROOT_PRIME, "zz", 0), 0);
	temp_tree_close(tree);
	check_order(&temp, -1);
	write_file(&temp);
	check_order(&temp, -1);
	temp_store_remove(&temp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_the_same),
		cmocka_unit_test(what_few_have_is_there),
		cmocka_unit_test(damaged_files_do_not_count),
		cmocka_unit_test(damage_in_use_changes_no_answer),
		cmocka_unit_test(crafted_files_do_no_harm),
		cmocka_unit_test(what_cannot_be_made_good_is_no_answer),
		cmocka_unit_test(nothing_wrong_is_written),
		cmocka_unit_test(without_help_all_is_read),
		cmocka_unit_test(copies_are_told_apart),
		cmocka_unit_test(only_the_owners_is_used),
		cmocka_unit_test(no_other_file_is_lost),
		cmocka_unit_test(bad_names_are_refused),
		cmocka_unit_test(the_mode_is_the_stores),
		cmocka_unit_test(a_kill_leaves_the_old_one),
		cmocka_unit_test(the_order_of_slots_is_known),
		cmocka_unit_test(columns_that_were_asked_for_are_there),
		cmocka_unit_test(damaged_columns_are_read_of_the_store),
	};
	const char *text = getenv("PFS_SEED"), *mode = getenv("PFS_LONG");
	int failed;

	seed = text ? strtoull(text, NULL, 0) : 1;
	is_long = mode && *mode == '1';
	print_message("PFS_SEED=%llu\n", (unsigned long long)seed);
	pfs_log_open(PFS_LOG_NOTHING, false);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(bytes);
	return failed;
}
