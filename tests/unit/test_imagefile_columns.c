/* SPDX-License-Identifier: MIT */
/* Columns of attributes in the image file: those that were asked for are there, and what is damaged
 * is read of the store.  PFS_LONG=1: more rounds.  PFS_SEED=N: another run. */
#include "tests/unit/imagefile_util.h"
#include "tests/vfs/memory.h"

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
		assert_int_equal(pfs_attrfile_read(file, &column, "tag", 3), 0);
		assert_int_equal(column.n, 700);
		pfs_attrfile_free(&column);
		assert_int_equal(pfs_attrfile_read(file, &column, "other", 5), -ENOENT);
		assert_int_equal(pfs_attrfile_read(rows, &column, "tag", 3), -ENOENT);
		assert_same_tags(rows, file);
		assert_int_equal(pfs_imagefile_write(file), 0); /* nor does it get lost */
		temp_tree_close(rows);
		temp_tree_close(file);
	}
	file = temp_tree_open(&temp);
	set_tag(file, PFS_ROOT_PRIME, 12345);
	assert_int_equal(pfs_tree_sync(file), 0);
	assert_int_equal(pfs_attrfile_read(file, &column, "tag", 3), -ENOENT);
	temp_store_copy(&temp, &copy);
	rows = open_rows(&copy);
	assert_same_tags(rows, file);
	temp_tree_close(rows);
	temp_store_remove(&copy);
	temp_tree_close(file);
	file = open_file(&temp); /* of a later group than the file is */
	rows = open_rows(&temp);
	assert_true(file->image.from_file);
	assert_int_equal(pfs_attrfile_read(file, &column, "tag", 3), -ENOENT);
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

/* What opening cannot know of a file that somebody made up, comparing with the rows finds. */
static uint64_t values_otherwise(const struct temp_store *temp)
{
	struct pfs_tree *rows = open_rows(temp), *file = open_file(temp);
	uint64_t nodes, values;

	assert_true(file->image.from_file);
	assert_int_equal(pfs_imagefile_compare(file, rows, &nodes), 0);
	assert_int_equal(nodes, 0);
	assert_int_equal(pfs_attrfile_compare(file, rows, &values), 0);
	temp_tree_close(rows);
	temp_tree_close(file);
	return values;
}

static void columns_are_compared_with_the_store(void **state PFS_UNUSED)
{
	struct pfs_image_layout layout;
	struct pfs_attrfile_head *head;
	struct pfs_attrfile_value *values;
	struct pfs_attrfile_pair *pairs;
	struct temp_store temp;
	uint64_t having = 0;
	char *texts;

	make_tagged_store(&temp);
	assert_int_equal(values_otherwise(&temp), 0);
	take_bytes(&temp);
	pfs_imagefile_layout(&layout, (const struct pfs_image_header *)bytes);
	head = (struct pfs_attrfile_head *)(bytes + layout.offset[PFS_SECTION_EXTRA]);
	values = (struct pfs_attrfile_value *)((char *)(head + 1) +
					       pfs_attrfile_round_up(head->name_len));
	texts = (char *)(values + head->n_values);
	pairs = (struct pfs_attrfile_pair *)(texts + pfs_attrfile_round_up(head->texts_size));
	for (uint64_t i = 0; i < head->n_pairs; i++)
		having += pairs[i].value == 699;
	pairs[7].value++; /* one node has another's value */
	sum_up();
	put_bytes(&temp, size);
	assert_int_equal(values_otherwise(&temp), 1);
	pairs[7].value--;
	texts[values[699].is]++; /* all nodes that have it */
	sum_up();
	put_bytes(&temp, size);
	assert_int_equal(values_otherwise(&temp), having);
	texts[values[699].is]--;
	values[0].type = 99; /* the column cannot be read */
	sum_up();
	put_bytes(&temp, size);
	assert_int_equal(values_otherwise(&temp), 1);
	values[0].type = PFS_ATTR_TEXT;
	head->size -= 8; /* nor can it be told from what follows */
	sum_up();
	put_bytes(&temp, size);
	assert_int_equal(values_otherwise(&temp), 1);
	head->size += 8;
	texts[0]++; /* with the former checksum */
	put_bytes(&temp, size);
	assert_int_equal(values_otherwise(&temp), 1);
	temp_store_remove(&temp);
}


/* What there is no memory for is neither damaged nor missing. */
static void lack_of_memory_is_told(void **state PFS_UNUSED)
{
	struct pfs_tree *file, *rows;
	struct temp_store temp;
	uint64_t different = 0;
	unsigned n;
	int error;

	make_tagged_store(&temp);
	file = open_file(&temp);
	for (n = 0;; n++) {
		struct pfs_attrfile_column column;

		memory_refuse((int)n, 1);
		error = pfs_attrfile_read(file, &column, "tag", 3);
		if (!memory_grant()) {
			assert_int_equal(error, 0);
			pfs_attrfile_free(&column);
			break;
		}
		assert_int_equal(error, -ENOMEM);
	}
	assert_true(n > 3);
	temp_tree_close(file);
	rows = open_rows(&temp);
	for (n = 0;; n++) {
		file = open_file(&temp);
		memory_refuse((int)n, MEMORY_FOR_EVER);
		error = pfs_attrfile_compare(file, rows, &different);
		if (!memory_grant())
			break;
		assert_int_equal(error, -ENOMEM);
		temp_tree_close(file);
	}
	assert_int_equal(different, 0);
	temp_tree_close(file);
	temp_tree_close(rows);
	temp_store_remove(&temp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_that_were_asked_for_are_there),
		cmocka_unit_test(damaged_columns_are_read_of_the_store),
		cmocka_unit_test(columns_are_compared_with_the_store),
		cmocka_unit_test(lack_of_memory_is_told),
	};
	int failed;

	take_settings();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(bytes);
	return failed;
}
