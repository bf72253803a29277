/* SPDX-License-Identifier: MIT */
/* The image's columns as the operators read them: what they have of each slot is what scans and
 * lists say of its node, however the tree changes in between; and a column that nobody wants for
 * very many changes looks at changed blocks alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "fs/attr/attrcolumn.h"
#include "fs/image/watch.h"
#include "fs/nodes/columns_impl.h"
#include "fs/tree/tree_impl.h"
#include "tests/ref/random.h"
#include "tests/ref/temp_store.h"

#define NODES	300
#define CHANGES 400

static struct temp_store store;
static struct pfs_tree *tree;
static uint64_t seed = 9;
static uint64_t inos[NODES]; /* of nodes, and what they are called, in the root */
static unsigned made;

static const struct pfs_column_wish wishes[] = {
	{.field = PFS_FIELD_INO},    {.field = PFS_FIELD_PARENT},
	{.field = PFS_FIELD_DEPTH},  {.field = PFS_FIELD_TYPE},
	{.field = PFS_FIELD_MODE},   {.field = PFS_FIELD_UID},
	{.field = PFS_FIELD_GID},    {.field = PFS_FIELD_SIZE},
	{.field = PFS_FIELD_BLOCKS}, {.field = PFS_FIELD_NLINK},
	{.field = PFS_FIELD_MTIME},  {.field = PFS_FIELD_ATIME},
	{.field = PFS_FIELD_CTIME},  {.field = PFS_FIELD_NAME},
	{.field = PFS_FIELD_EXT},    {.attr = "tag", .attr_len = 3, .type = PFS_ATTR_TEXT},
};

static void test_all_columns(void **state)
{
	unsigned n = 0;

	(void)state;
	for (enum pfs_field field = 1; field < PFS_FIELD_COUNT; field++)
		n += pfs_fields[field].operand == PFS_OPERAND_LENT ||
		     pfs_fields[field].operand == PFS_OPERAND_MADE;
	assert_int_equal(n, PFS_COUNT(wishes) - 1); /* and an attribute */
}

/* What a device would have of a column: its data, via, nulls and texts. */
static struct copy {
	uint64_t id, epoch[8];
	size_t held;
	uint8_t *bytes;
} copies[4 * PFS_COUNT(wishes)];

static unsigned below(unsigned n)
{
	return random_below(&seed, n);
}

static int set_up(void **state)
{
	(void)state;
	temp_store_create(&store);
	tree = temp_tree_open(&store);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < PFS_COUNT(copies); i++)
		free(copies[i].bytes);
	temp_tree_close(tree);
	temp_store_remove(&store);
	return 0;
}

/* ---- changes ---- */

static void name_of(char name[64], unsigned i)
{
	static const char *const ends[] = {"", ".c", ".txt", ".", ".c", "\xff.x"};

	(void)snprintf(name, 64, "n%u%s", i, ends[i % PFS_COUNT(ends)]);
}

static void make_node(unsigned i)
{
	uint64_t parent = made && below(2) ? inos[below(made)] : PFS_ROOT_PRIME;
	mode_t mode = below(3) ? S_IFREG | 0644 : S_IFDIR | 0755;
	struct pfs_entry entry;
	char name[64];

	name_of(name, i);
	if (pfs_tree_make(tree, &entry, parent, name, mode, 0, &temp_root) != 0 &&
	    pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, name, mode, 0, &temp_root) != 0)
		return;
	if (made < NODES)
		inos[made++] = entry.attr.st_ino;
	pfs_tree_forget(tree, entry.attr.st_ino, 1);
}

static void change_node(uint64_t ino, unsigned i)
{
	struct stat st = {
		.st_size = below(100000), .st_uid = below(4), .st_mode = 0700 + below(64)};
	struct pfs_entry entry;
	char value[16];

	switch (below(4)) {
	case 0:
		(void)!pfs_tree_setattr(tree, &entry, ino, &st, PFS_SET_UID, &temp_root);
		break;
	case 1:
		(void)!pfs_tree_setattr(tree, &entry, ino, &st, PFS_SET_SIZE, &temp_root);
		break;
	case 2:
		(void)!pfs_tree_removexattr(tree, ino, "user.tag");
		break;
	default:
		(void)snprintf(value, sizeof(value), "v%u", i % 5);
		(void)!pfs_tree_setxattr(tree, ino, "user.tag", value, strlen(value), 0);
	}
}

static void change_tree(unsigned i)
{
	char old[64], new[80];

	name_of(old, below(i + 1));
	(void)snprintf(new, sizeof(new), "m%s", old);
	switch (below(6)) {
	case 0:
		(void)!pfs_tree_rename(tree, PFS_ROOT_PRIME, old,
				       below(2) ? PFS_ROOT_PRIME : inos[below(made)], new, 0);
		break;
	case 1:
		(void)!pfs_tree_unlink(tree, PFS_ROOT_PRIME, old);
		break;
	case 2:
		(void)!pfs_tree_rmdir(tree, PFS_ROOT_PRIME, old);
		break;
	case 3:
		make_node(i);
		break;
	default:
		change_node(inos[below(made)], i);
	}
}

/* ---- comparing ---- */

static bool is_live(const struct pfs_table *table, uint32_t slot)
{
	return !table->live || (table->live[slot / 64] >> slot % 64 & 1);
}

static const char *text_at(const struct pfs_table_column *column, uint32_t slot, size_t *len)
{
	uint32_t at = pfs_cell_at(column, slot);

	if (at == PFS_NO_ROW)
		return NULL;
	return (const char *)(column->kind == PFS_KIND_CODE
				      ? pfs_dictionary_text(column->dictionary,
							    (uint32_t)pfs_cell_integer(column, at),
							    len)
				      : pfs_heap_text(column->heap,
						      (uint32_t)pfs_cell_integer(column, at), len));
}

static void check_text(const struct pfs_table_column *column, uint32_t slot, const char *expected,
		       size_t expected_len)
{
	size_t len = 0;
	const char *text = text_at(column, slot, &len);

	assert_int_equal(text != NULL, expected != NULL);
	if (text) {
		assert_int_equal(len, expected_len);
		assert_memory_equal(text, expected, len);
	}
}

static void check_field(const struct pfs_table_column *column, enum pfs_field field, uint32_t slot)
{
	uint64_t offset[2];
	uint8_t is_none;
	char *bytes = NULL, letter;
	size_t capacity = 0;
	int64_t value;

	if (pfs_field_is_bytes(field)) {
		assert_int_equal(
			pfs_scan_bytes(tree, &bytes, &capacity, offset, &is_none, field, &slot, 1),
			0);
		check_text(column, slot, is_none ? NULL : bytes ? bytes : "", offset[1]);
		free(bytes);
		return;
	}
	assert_int_equal(pfs_scan_integers(tree, &value, field, &slot, 1), 0);
	letter = (char)value;
	if (field == PFS_FIELD_TYPE)
		check_text(column, slot, &letter, 1);
	else if (value == PFS_FIELD_NONE)
		assert_int_equal(pfs_cell_at(column, slot), PFS_NO_ROW);
	else
		assert_int_equal(pfs_cell_integer(column, pfs_cell_at(column, slot)), value);
}

/* ---- copies that follow the stamps, as a device keeps them ---- */

/* Copies again only what the stamps say; what it then has is what there is. */
static void follow(struct copy *copy, const void *data, size_t n, unsigned element_bits,
		   const struct pfs_stamps *stamps)
{
	size_t size = element_bits == 1 ? (n + 63) / 64 * 8 : n * element_bits / 8;
	size_t block = (size_t)PFS_BLOCK_ROWS * element_bits / 8;

	if (!data || !stamps)
		return;
	assert_true(size <= block * PFS_COUNT(copy->epoch));
	copy->bytes = realloc(copy->bytes, size + 1);
	assert_non_null(copy->bytes);
	for (size_t i = 0; i * block < size; i++) {
		size_t from = i * block, to = PFS_MIN(from + block, size);

		if (copy->id == stamps->id && copy->held >= to &&
		    copy->epoch[i] == pfs_stamps_of(stamps, (uint32_t)i))
			continue;
		copy->epoch[i] = pfs_stamps_of(stamps, (uint32_t)i);
		memcpy(copy->bytes + from, (const uint8_t *)data + from, to - from);
	}
	copy->id = stamps->id;
	copy->held = size;
	assert_memory_equal(copy->bytes, data, size);
}

static void follow_column(struct copy *four, const struct pfs_table_column *column, uint32_t n_rows)
{
	const struct pfs_heap *heap = column->heap;

	follow(&four[0], column->data, column->via ? column->n_elements : n_rows,
	       8u * column->width, column->data_stamps);
	follow(&four[1], column->via, n_rows, 32, column->via_stamps);
	follow(&four[2], column->nulls, column->via ? column->n_elements : n_rows, 1,
	       column->nulls_stamps);
	if (heap)
		follow(&four[3], heap->bytes, heap->size >> heap->place_shift,
		       8u << heap->place_shift, heap->stamps);
}

/* The number of live slots.  Whatever was prepared before a change is good after it, but for
 * depths. */
static unsigned check_columns(struct pfs_attr_reader *tags)
{
	struct pfs_table table;
	unsigned n = 0;

	pfs_columns_table(tree, &table);
	for (size_t i = 0; i < PFS_COUNT(wishes); i++) {
		struct pfs_table_column column;

		assert_int_equal(pfs_columns_get(tree, &column, &wishes[i]), 0);
		follow_column(&copies[4 * i], &column, table.n_rows);
		for (uint32_t slot = 0; slot < table.n_rows; slot++) {
			struct pfs_attr_value tag;

			if (!is_live(&table, slot))
				continue;
			n += i == 0;
			if (!wishes[i].attr) {
				check_field(&column, wishes[i].field, slot);
				continue;
			}
			assert_int_equal(pfs_attr_read(tags, &tag, &slot, 1), 0);
			check_text(&column, slot, tag.is_set ? tag.text : NULL, tag.text_len);
		}
	}
	return n;
}

static void check(void)
{
	struct pfs_attr_reader *tags;
	struct pfs_tree_info info;

	assert_int_equal(pfs_columns_prepare(tree, wishes, PFS_COUNT(wishes), NULL, NULL), 0);
	assert_int_equal(pfs_attr_reader_open(&tags, tree, "tag", 3), 0);
	(void)pfs_scan_lock(tree, __func__);
	{
		unsigned n = check_columns(tags);

		pfs_scan_unlock(tree);
		assert_int_equal(pfs_tree_info(tree, &info), 0);
		assert_int_equal(n, info.nodes);
	}
	pfs_attr_reader_close(tags);
}

static void test_follows(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 60; i++)
		make_node(i);
	check();
	for (unsigned i = 60; i < CHANGES; i++) {
		change_tree(i);
		if (below(4) == 0)
			check();
	}
	check();
}

/* One node, again and again, with a look in between. */
static void test_the_same_again(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		change_node(inos[0], i);
		check();
	}
}

/* ---- very many changes ---- */

#define VERY_OFTEN ((1u << 20) + 2) /* more than is noted */

static void change_often(unsigned n)
{
	struct pfs_entry entry;

	for (unsigned i = 0; i < n; i++) {
		struct stat st = {.st_uid = i};

		assert_int_equal(pfs_tree_setattr(tree, &entry, i % 2 ? inos[0] : PFS_ROOT_PRIME,
						  &st, PFS_SET_UID, &temp_root),
				 0);
	}
}

/* What extensions are made of. */
static void rename_often(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pfs_tree_rename(tree, PFS_ROOT_PRIME,
						 i % 2 ? "often.b" : "often.a", PFS_ROOT_PRIME,
						 i % 2 ? "often.a" : "often.b", 0),
				 0);
}

/* Of much that changed a hold takes over some; who prepares does so until all is. */
static void test_follows_in_pieces(void **state)
{
	const struct pfs_column_wish wish = {.field = PFS_FIELD_EXT};
	struct pfs_table_column column;
	uint64_t read;

	struct pfs_entry entry;

	(void)state;
	assert_int_equal(pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, "often.a", S_IFREG | 0644, 0,
				       &temp_root),
			 0);
	pfs_tree_forget(tree, entry.attr.st_ino, 1);
	assert_int_equal(pfs_columns_prepare(tree, &wish, 1, NULL, NULL), 0);
	read = tree->columns->blocks_read;
	for (unsigned i = 0; i < 2; i++) {
		rename_often(40000);
		(void)pfs_scan_lock(tree, __func__);
		assert_int_equal(pfs_columns_get(tree, &column, &wish), -EAGAIN);
		pfs_scan_unlock(tree);
		assert_int_equal(pfs_columns_prepare(tree, &wish, 1, NULL, NULL), 0);
		(void)pfs_scan_lock(tree, __func__);
		assert_int_equal(pfs_columns_get(tree, &column, &wish), 0);
		assert_null(pfs_watch_check(tree));
		pfs_scan_unlock(tree);
	}
	assert_int_equal(tree->columns->blocks_read, read);
	check();
}

static void test_gives_up(void **state)
{
	const struct pfs_column_wish wish = {.field = PFS_FIELD_EXT};
	struct pfs_table_column column;

	(void)state;
	assert_int_equal(pfs_columns_prepare(tree, &wish, 1, NULL, NULL), 0);
	change_often(VERY_OFTEN);
	(void)pfs_scan_lock(tree, __func__);
	assert_int_equal(pfs_columns_get(tree, &column, &wish), -EAGAIN);
	pfs_scan_unlock(tree);
	check();
}

/* Who fell behind reads the blocks again in which something of his has changed, and no others,
 * unless these are more than a quarter. */
static void test_falls_behind(void **state PFS_UNUSED)
{
	const struct pfs_column_wish wish = {.field = PFS_FIELD_EXT};
	struct pfs_entry entry;
	uint64_t read;
	char name[32], to[40];

	for (unsigned i = 0; i < 6 * PFS_BLOCK_ROWS; i++) {
		(void)snprintf(name, sizeof(name), "behind%u.c", i);
		assert_int_equal(pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, name, S_IFREG | 0644,
					       0, &temp_root),
				 0);
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
	}
	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(pfs_columns_prepare(tree, &wish, 1, NULL, NULL), 0);
		read = tree->columns->blocks_read;
		change_often(VERY_OFTEN);
		for (unsigned i = 0; i < (round ? 6 * PFS_BLOCK_ROWS : 1); i += PFS_BLOCK_ROWS) {
			(void)snprintf(name, sizeof(name), "behind%u.c", i);
			(void)snprintf(to, sizeof(to), "behind%u.round%u", i, round);
			assert_int_equal(pfs_tree_rename(tree, PFS_ROOT_PRIME,
							 round && !i ? "behind0.round0" : name,
							 PFS_ROOT_PRIME, to, 0),
					 0);
		}
		assert_int_equal(pfs_columns_prepare(tree, &wish, 1, NULL, NULL), 0);
		if (round)
			assert_true(tree->columns->blocks_read - read > 6);
		else
			assert_int_equal(tree->columns->blocks_read - read, 1);
		(void)pfs_scan_lock(tree, __func__);
		assert_null(pfs_watch_check(tree));
		pfs_scan_unlock(tree);
	}
}

/* Called between a look at a column and its being made. */
static void (*before_making)(void);

/* NOLINTBEGIN(bugprone-reserved-identifier) */
void __real_pfs_attr_reader_close(struct pfs_attr_reader *reader);
void __wrap_pfs_attr_reader_close(struct pfs_attr_reader *reader);
void __wrap_pfs_attr_reader_close(struct pfs_attr_reader *reader)
{
	void (*call)(void) = before_making;

	before_making = NULL;
	if (call)
		call();
	__real_pfs_attr_reader_close(reader);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* As if so much had changed that a column which nobody wants is given up. */
static void change_very_much(void)
{
	tree->image.epoch += UINT64_C(16) << 20;
	change_often(VERY_OFTEN);
}

/* A column that nobody has wanted for long goes when another one is made. */
static void test_is_given_up(void **state PFS_UNUSED)
{
	const struct pfs_column_wish wish = {.field = PFS_FIELD_EXT},
				     other = {.field = PFS_FIELD_DEPTH};

	assert_int_equal(pfs_columns_prepare(tree, &wish, 1, NULL, NULL), 0);
	change_very_much();
	assert_int_equal(pfs_columns_prepare(tree, &other, 1, NULL, NULL), 0);
	assert_int_equal(tree->columns->n, 1);
}

/* Whoever found it lagging behind still has it when he makes it anew, however much changes in
 * between. */
static void test_is_kept_while_it_is_made(void **state PFS_UNUSED)
{
	const struct pfs_column_wish wish = {.field = PFS_FIELD_EXT};
	struct pfs_table_column column;

	assert_int_equal(pfs_columns_prepare(tree, &wish, 1, NULL, NULL), 0);
	change_often(VERY_OFTEN);
	before_making = change_very_much;
	assert_int_equal(pfs_columns_prepare(tree, &wish, 1, NULL, NULL), 0);
	assert_null(before_making);
	(void)pfs_scan_lock(tree, __func__);
	assert_int_equal(pfs_columns_get(tree, &column, &wish), 0);
	assert_null(pfs_watch_check(tree));
	pfs_scan_unlock(tree);
}

#define MANY 40000 /* several threads' shares */

/* Columns that are made by all threads: directories lie everywhere, and texts are new
 * everywhere. */
static void test_many(void **state PFS_UNUSED)
{
	static const struct pfs_column_wish made_of_many[] = {{.field = PFS_FIELD_EXT},
							      {.field = PFS_FIELD_DEPTH}};
	static uint64_t directories[MANY / 20 + 1];
	struct temp_store many;
	struct pfs_tree *large;
	unsigned n = 1;

	temp_store_create(&many);
	large = temp_tree_open(&many);
	directories[0] = PFS_ROOT_PRIME;
	for (unsigned i = 0; i < MANY; i++) {
		bool is_directory = i % 20 == 0;
		unsigned last = below(2) && n > 20 ? n - 1 - below(20) : below(n);
		struct pfs_entry entry;
		char name[40];

		(void)snprintf(name, sizeof(name), "m%u.e%u", i, below(1 + i));
		assert_int_equal(pfs_tree_make(large, &entry, directories[last], name,
					       is_directory ? S_IFDIR | 0755 : S_IFREG | 0644, 0,
					       &temp_root),
				 0);
		pfs_tree_forget(large, entry.attr.st_ino, 1);
		if (is_directory)
			directories[n++] = entry.attr.st_ino;
	}
	assert_int_equal(pfs_columns_prepare(large, made_of_many, 2, NULL, NULL), 0);
	(void)pfs_scan_lock(large, __func__);
	assert_null(pfs_watch_check(large));
	pfs_scan_unlock(large);
	temp_tree_close(large);
	temp_store_remove(&many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_columns),
		cmocka_unit_test(test_follows),
		cmocka_unit_test(test_the_same_again),
		cmocka_unit_test(test_follows_in_pieces),
		cmocka_unit_test(test_gives_up),
		cmocka_unit_test(test_falls_behind),
		cmocka_unit_test(test_is_kept_while_it_is_made),
		cmocka_unit_test(test_is_given_up),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
