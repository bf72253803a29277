/* SPDX-License-Identifier: MIT */
/* Totals of subtrees: examples, times that go back, stores of any order, memory that runs out. */
#include "tests/vfs/memory.h"
#include "totals_util.h"

#define RECORDS 2000

static int64_t newest_of(uint64_t ino)
{
	struct pfs_totals totals;

	assert_int_equal(pfs_tree_totals(tree, &totals, ino), 0);
	return totals.mtime;
}

/* ---- one thing at a time ---- */

static void test_example(void **state)
{
	static const uint8_t bytes[5000];
	uint64_t d, e, f, g;

	(void)state;
	open_new();
	d = make_in(ROOT, "d", S_IFDIR | 0755);
	f = make_in(d, "f", S_IFREG | 0644);
	assert_int_equal(pfs_tree_write(tree, f, bytes, sizeof(bytes), 0, true, false), 5000);
	check_all(); /* made from here on */
	e = make_in(d, "e", S_IFDIR | 0755);
	g = make_in(e, "g", S_IFREG | 0644);
	assert_int_equal(pfs_tree_write(tree, g, bytes, 100, 1 << 20, true, false), 100);
	set_mtime(g, INT64_C(5000000000), 17); /* to come */
	assert_totals(g, &(struct pfs_totals){1, (1 << 20) + 100, 8, 5000000000 * SECOND + 17});
	assert_totals(e, &(struct pfs_totals){2, (1 << 20) + 100, 8, 5000000000 * SECOND + 17});
	assert_totals(d, &(struct pfs_totals){4, (1 << 20) + 5100, 24, 5000000000 * SECOND + 17});
	check_all();
	assert_int_equal(pfs_tree_unlink(tree, e, "g"), 0);
	assert_totals(g, &(struct pfs_totals){1, (1 << 20) + 100, 8, 5000000000 * SECOND + 17});
	check_all();
	assert_int_equal(pfs_tree_write(tree, g, bytes, 5000, 0, true, false), 5000);
	assert_int_equal(pfs_tree_rmdir(tree, d, "e"), 0);
	set_mtime(e, 4000000000, 0);
	assert_totals(e, &(struct pfs_totals){1, 0, 0, 4000000000 * SECOND});
	check_all();
	pfs_tree_forget(tree, g, 1);
	pfs_tree_forget(tree, e, 1);
	assert_int_equal(pfs_tree_totals(tree, &(struct pfs_totals){0}, e), -ESTALE);
	check_all();
	end();
}

static void assert_info(uint64_t nodes, uint64_t bytes, uint32_t max_depth)
{
	struct pfs_tree_info info;

	for (unsigned i = 0; i < 2; i++) { /* counted, and then as it was kept, without memory */
		memory_refuse(0, i ? MEMORY_FOR_EVER : 0);
		assert_int_equal(pfs_tree_info(tree, &info), 0);
		(void)memory_grant();
		assert_int_equal(info.nodes, nodes);
		assert_int_equal(info.files + info.directories, nodes);
		assert_int_equal(info.bytes, bytes);
		assert_int_equal(info.max_depth, max_depth);
		assert_true(info.max_code_bits > max_depth);
	}
}

/* What is told of the whole tree is what it is now, after each change. */
static void test_info(void **state)
{
	static const uint8_t bytes[100];
	uint64_t d, f;

	(void)state;
	open_new();
	assert_info(1, 0, 0);
	d = make_in(ROOT, "d", S_IFDIR | 0755);
	assert_info(2, 0, 1);
	f = make_in(d, "f", S_IFREG | 0644);
	assert_info(3, 0, 2);
	assert_int_equal(pfs_tree_write(tree, f, bytes, sizeof(bytes), 0, true, false), 100);
	assert_info(3, 100, 2);
	assert_int_equal(pfs_tree_rename(tree, d, "f", ROOT, "g", 0), 0);
	assert_info(3, 100, 1);
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "g"), 0);
	pfs_tree_forget(tree, f, 1);
	assert_info(2, 0, 1);
	pfs_tree_forget(tree, d, 1);
	end();
}

/* The newest goes back, directly and through a directory, and what was second is found again. */
static void test_times_set_back(void **state)
{
	uint64_t top, dirs[3], files[9];
	char name[8];

	(void)state;
	open_new();
	top = make_in(ROOT, "top", S_IFDIR | 0755);
	for (unsigned i = 0; i < 9; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		if (i < 3)
			dirs[i] = make_in(top, name, S_IFDIR | 0755);
		files[i] = make_in(dirs[i / 3], name, S_IFREG | 0644);
		set_mtime(files[i], 5000000000 + i, 0);
	}
	assert_int_equal(newest_of(top), (5000000000 + 8) * SECOND);
	for (unsigned i = 8; i > 0; i--) {
		set_mtime(files[i], 1000 + i, 5);
		assert_int_equal(newest_of(top), (5000000000 + i - 1) * SECOND);
		check_all();
	}
	set_mtime(files[0], -5, 0);
	for (unsigned i = 0; i < 3; i++)
		set_mtime(dirs[i], -7, 1);
	set_mtime(top, INT64_MIN / SECOND - 100, 0); /* beyond nanoseconds */
	assert_int_equal(newest_of(top), 1008 * SECOND + 5);
	check_all();
	set_mtime(files[4], INT64_MAX / SECOND + 100, 0);
	assert_int_equal(newest_of(top), INT64_MAX);
	assert_int_equal(pfs_tree_rename(tree, dirs[1], "4", ROOT, "4", 0), 0);
	check_all();
	end();
}

static void test_attributes(void **state)
{
	static const char *const names[] = {
		"user.primefs.subtree_count", "user.primefs.subtree_size",
		"user.primefs.subtree_blocks", "user.primefs.subtree_mtime"};
	static const char *const expected[] = {"2", "12", "8", "-1500000000"};
	uint64_t d, f;
	char text[40];

	(void)state;
	open_new();
	d = make_in(ROOT, "d", S_IFDIR | 0755);
	f = make_in(d, "f", S_IFREG | 0644);
	assert_int_equal(pfs_tree_write(tree, f, "twelve bytes", 12, 0, true, false), 12);
	set_mtime(f, -2, SECOND / 2);
	set_mtime(d, -100, 0);
	for (size_t i = 0; i < PFS_COUNT(names); i++) {
		ssize_t len = (ssize_t)strlen(expected[i]);

		assert_int_equal(pfs_tree_getxattr(tree, NULL, 0, d, names[i]), len);
		assert_int_equal(pfs_tree_getxattr(tree, text, (size_t)len, d, names[i]), len);
		assert_memory_equal(text, expected[i], len);
		if (len > 1)
			assert_int_equal(pfs_tree_getxattr(tree, text, 1, d, names[i]), -ERANGE);
		assert_int_equal(pfs_tree_setxattr(tree, d, names[i], "3", 1, 0), -EPERM);
		assert_int_equal(pfs_tree_removexattr(tree, d, names[i]), -EPERM);
	}
	assert_int_equal(pfs_tree_getxattr(tree, text, 40, d, "user.primefs.subtree_"), -ENODATA);
	assert_int_equal(pfs_tree_getxattr(tree, text, 40, d, "user.primefs.subtree_sizes"),
			 -ENODATA);
	assert_int_equal(pfs_tree_listxattr(tree, text, 40, d), 0);
	end();
}

/* A change that cannot keep the totals is made all the same. */
static void test_no_memory(void **state)
{
	struct pfs_totals totals;
	unsigned lost = 0;
	char name[16];

	(void)state;
	open_new();
	memory_refuse(0, 1);
	assert_int_equal(pfs_tree_totals(tree, &totals, ROOT), -ENOMEM);
	for (int i = 0; i < 400; i++) {
		struct pfs_entry entry;
		bool refused;
		int error;

		check_all();
		(void)snprintf(name, sizeof(name), "%d", i);
		memory_refuse(i % 4, 1);
		error = pfs_tree_make(tree, &entry, ROOT, name, S_IFDIR | 0755, 0, &temp_root);
		refused = memory_grant();
		assert_true(!error || (error == -ENOMEM && refused));
		lost += refused && !error;
	}
	assert_true(lost > 0);
	check_all();
	end();
}

/* ---- from a store ---- */

/* Slots in the order of the tree, against it, or in any: a chain, directories beside it, files. */
static void load_in_order(int order)
{
	struct pfs_node_record *records PFS_FREE = calloc(RECORDS, sizeof(*records));
	uint32_t *slots PFS_FREE = calloc(RECORDS, sizeof(*slots));
	char(*names)[8] PFS_FREE = calloc(RECORDS, sizeof(*names));
	uint64_t random = seed;

	for (uint32_t i = 0; i < RECORDS; i++)
		slots[i] = order < 0 ? RECORDS - i : i + 1;
	for (uint32_t i = RECORDS - 1; order == 0 && i > 0; i--) {
		uint32_t k = random_below(&random, i + 1), slot = slots[i];

		slots[i] = slots[k];
		slots[k] = slot;
	}
	for (uint32_t i = 0; i < RECORDS; i++) {
		uint32_t above = i < 200 ? i : random_below(&random, PFS_MIN(i, 1000));
		uint64_t parent = above ? 2 * (uint64_t)above + 1 : ROOT; /* record above - 1 */

		(void)snprintf(names[i], sizeof(names[i]), "%u", i);
		records[i] = temp_record(2 * (uint64_t)i + 3, parent, slots[i], S_IFDIR | 0755,
					 names[i]);
		if (i >= 1000) {
			records[i].prime += UINT64_C(1) << 32;
			records[i].mode = S_IFREG | 0644;
		}
		records[i].size = random_below(&random, 100000);
		records[i].blocks = random_below(&random, 200);
		records[i].mtime.sec = random_below(&random, 1 << 30);
	}
	temp_store_create(&temp);
	temp_store_put(&temp, records, RECORDS);
	tree = temp_tree_open(&temp);
	check_all();
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

static void test_load(void **state)
{
	(void)state;
	load_in_order(1);
	load_in_order(-1);
	load_in_order(0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_example),	   cmocka_unit_test(test_info),
		cmocka_unit_test(test_times_set_back),
		cmocka_unit_test(test_attributes), cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_load),
	};

	take_seed(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
