/* SPDX-License-Identifier: MIT */
/* Stores that are no tree: refused when opened, described when checked.  And one that is large
 * enough for loading to share its work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "fs/nodes/scan.h"
#include "tests/ref/temp_store.h"

#define FILE_PRIME(n) file_primes[n]
static const uint64_t file_primes[] = {4294967311, 4294967357, 4294967371, 4294967377, 4294967387};

#define DIR  (S_IFDIR | 0755)
#define REG  (S_IFREG | 0644)
#define ROOT PFS_ROOT_PRIME

/* The store with these records besides the root has that many findings; a tree does it become only
 * when it has none. */
static void expect(const struct pfs_node_record *nodes, size_t n, unsigned findings)
{
	struct temp_store temp;
	struct pfs_tree *tree;

	temp_store_create(&temp);
	temp_store_put(&temp, nodes, n);
	assert_int_equal(pfs_tree_open(&tree, temp.path, &(struct pfs_tree_options){0}),
			 findings ? -EUCLEAN : 0);
	if (findings)
		assert_null(tree);
	assert_int_equal(pfs_tree_close(tree), 0);
	assert_int_equal(temp_store_findings(&temp), findings);
	temp_store_remove(&temp);
}

static void test_sound(void **state)
{
	const struct pfs_node_record nodes[] = {
		temp_record(3, ROOT, 7, DIR, "a"), /* slots need not be dense */
		temp_record(5, 3, 1, DIR, "b"),
		temp_record(FILE_PRIME(0), 5, 2, REG, "f"),
	};

	(void)state;
	expect(nodes, PFS_COUNT(nodes), 0);
}

static void test_unknown_parent(void **state)
{
	const struct pfs_node_record file[] = {temp_record(FILE_PRIME(0), 17, 1, REG, "f")};
	const struct pfs_node_record dir[] = {temp_record(3, 17, 1, DIR, "d")};

	(void)state;
	expect(file, 1, 1);
	expect(dir, 1, 1);
}

static void test_parent_is_a_file(void **state)
{
	const struct pfs_node_record nodes[] = {
		temp_record(FILE_PRIME(0), ROOT, 1, REG, "f"),
		temp_record(FILE_PRIME(1), FILE_PRIME(0), 2, REG, "g"),
	};

	(void)state;
	expect(nodes, 2, 1);
}

static void test_cycles(void **state)
{
	const struct pfs_node_record own[] = {temp_record(3, 3, 1, DIR, "d")};
	const struct pfs_node_record three[] = {
		temp_record(3, 7, 1, DIR, "a"),
		temp_record(5, 3, 2, DIR, "b"),
		temp_record(7, 5, 3, DIR, "c"),
		temp_record(11, 5, 4, DIR, "below"),
		temp_record(FILE_PRIME(0), 11, 5, REG, "f"),
	};

	(void)state;
	expect(own, 1, 1);
	expect(three, PFS_COUNT(three), 1);
}

static void test_one_slot_for_two(void **state)
{
	const struct pfs_node_record nodes[] = {
		temp_record(FILE_PRIME(0), ROOT, 1, REG, "f"),
		temp_record(FILE_PRIME(1), ROOT, 1, REG, "g"),
	};

	(void)state;
	expect(nodes, 2, 1);
}

static void test_one_name_for_two(void **state)
{
	const struct pfs_node_record nodes[] = {
		temp_record(FILE_PRIME(0), ROOT, 1, REG, "f"),
		temp_record(FILE_PRIME(1), ROOT, 2, REG, "f"),
		temp_record(FILE_PRIME(2), ROOT, 3, REG, "g"),
	};

	(void)state;
	expect(nodes, 3, 1);
}

static void test_primes_of_the_wrong_kind(void **state)
{
	const struct pfs_node_record dir[] = {temp_record(FILE_PRIME(0), ROOT, 1, DIR, "d")};
	const struct pfs_node_record file[] = {temp_record(3, ROOT, 1, REG, "f")};

	(void)state;
	expect(dir, 1, 1);
	expect(file, 1, 1);
}

static void test_slot_far_away(void **state)
{
	const struct pfs_node_record nodes[] = {
		temp_record(FILE_PRIME(0), ROOT, UINT32_MAX - 20, REG, "f")};
	struct temp_store temp;
	struct pfs_tree *tree;

	(void)state;
	temp_store_create(&temp);
	temp_store_put(&temp, nodes, 1);
	assert_int_equal(pfs_tree_open(&tree, temp.path, &(struct pfs_tree_options){0}), -EUCLEAN);
	temp_store_remove(&temp);
}

/* The meta row may say what it likes: no memory for slots that a file of this size cannot have
 * used. */
static void test_end_slot(void **state)
{
	struct temp_store temp;
	struct pfs_tree *tree;
	sqlite3 *db;

	(void)state;
	temp_store_create(&temp);
	assert_int_equal(sqlite3_open(temp.path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "UPDATE meta SET end_slot = 4294967296, "
				      "next_directory = 4294967296, next_other = 1 << 62",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_int_not_equal(temp_store_findings(&temp), 0);
	assert_int_equal(pfs_tree_open(&tree, temp.path, &(struct pfs_tree_options){0}), 0);
	assert_true(pfs_scan_end(tree) <= 1 << 22);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

static void test_number_never_handed_out(void **state)
{
	struct temp_store temp;
	struct pfs_store *store;
	struct pfs_tree *tree;
	struct pfs_node_record file = temp_record(FILE_PRIME(0), ROOT, 0, REG, "f");

	(void)state;
	temp_store_create(&temp);
	file.slot = 1;
	assert_int_equal(pfs_store_open(&store, temp.path, &(struct pfs_store_options){0}), 0);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_put_node(store, &file), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(pfs_tree_open(&tree, temp.path, &(struct pfs_tree_options){0}), -EUCLEAN);
	assert_int_equal(temp_store_findings(&temp), 1);
	temp_store_remove(&temp);
}

/* What loading does not notice, since it would take long. */
static void test_numbers_that_are_not_prime(void **state)
{
	struct pfs_node_record nodes[1000];
	static char names[1000][8];
	struct temp_store temp;

	(void)state;
	for (size_t i = 0; i < 1000; i++) { /* dense: compared with a sieve */
		(void)snprintf(names[i], sizeof(names[i]), "f%zu", i);
		nodes[i] = temp_record(FILE_PRIME(0) + 2 * i, ROOT, (uint32_t)i + 1, REG, names[i]);
	}
	temp_store_create(&temp);
	temp_store_put(&temp, nodes, 1000);
	assert_int_equal(temp_store_findings(&temp), 101); /* 100 and "more" */
	temp_store_remove(&temp);
	nodes[0] = temp_record(FILE_PRIME(0), ROOT, 1, REG, "prime");
	nodes[1] = temp_record(FILE_PRIME(0) + 2, ROOT, 2, REG, "composite");
	nodes[2] = temp_record(UINT64_C(3317044064679887385), ROOT, 3, REG, "pseudoprime?");
	nodes[3] = temp_record(9, ROOT, 4, DIR, "nine");
	temp_store_create(&temp);
	temp_store_put(&temp, nodes, 4);
	assert_int_equal(temp_store_findings(&temp), 3);
	temp_store_remove(&temp);
}

static void test_reserved_name(void **state)
{
	const struct pfs_node_record nodes[] = {
		temp_record(FILE_PRIME(0), ROOT, 1, REG, ".query")};
	struct temp_store temp;

	(void)state;
	temp_store_create(&temp);
	temp_store_put(&temp, nodes, 1);
	assert_int_equal(temp_store_findings(&temp), 1);
	temp_store_remove(&temp);
}

/* ---- a large one ---- */

#define MANY 20000u /* in one directory, so that they are sorted by radix */

static int count(void *arg, const struct pfs_dirent *entry)
{
	(void)entry;
	++*(unsigned *)arg;
	return 0;
}

static void test_many(void **state)
{
	struct temp_store temp;
	struct pfs_tree *tree;
	struct pfs_entry entry;
	char name[16];
	unsigned entries = 0;

	(void)state;
	temp_store_create(&temp);
	tree = temp_tree_open(&temp);
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(pfs_tree_make(tree, &entry, ROOT, name,
					       i % 7 ? S_IFREG | 0600 : S_IFDIR | 0700, 0,
					       &temp_user),
				 0);
	}
	for (unsigned i = 0; i < MANY; i += 3) { /* gaps */
		(void)snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(i % 7 ? pfs_tree_unlink(tree, ROOT, name)
				       : pfs_tree_rmdir(tree, ROOT, name),
				 0);
	}
	temp_tree_close(tree);
	assert_int_equal(temp_store_findings(&temp), 0);
	tree = temp_tree_open(&temp);
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(pfs_tree_lookup(tree, &entry, ROOT, name), i % 3 ? 0 : -ENOENT);
		if (i % 3)
			assert_int_equal(pfs_tree_getattr(tree, &entry, entry.attr.st_ino), 0);
	}
	assert_int_equal(pfs_tree_readdir(tree, ROOT, 2, false, count, &entries), 0);
	assert_int_equal(entries, MANY - (MANY + 2) / 3);
	for (unsigned i = 0; i < MANY; i += 3) { /* into the gaps, and beyond */
		(void)snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(pfs_tree_make(tree, &entry, ROOT, name, S_IFREG | 0600, 0,
					       &temp_user),
				 0);
	}
	temp_tree_close(tree);
	assert_int_equal(temp_store_findings(&temp), 0);
	temp_store_remove(&temp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sound),
		cmocka_unit_test(test_unknown_parent),
		cmocka_unit_test(test_parent_is_a_file),
		cmocka_unit_test(test_cycles),
		cmocka_unit_test(test_one_slot_for_two),
		cmocka_unit_test(test_one_name_for_two),
		cmocka_unit_test(test_primes_of_the_wrong_kind),
		cmocka_unit_test(test_slot_far_away),
		cmocka_unit_test(test_end_slot),
		cmocka_unit_test(test_number_never_handed_out),
		cmocka_unit_test(test_numbers_that_are_not_prime),
		cmocka_unit_test(test_reserved_name),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
