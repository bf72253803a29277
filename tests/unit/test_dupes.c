/* SPDX-License-Identifier: MIT */
/* Files with the same content, while one of them moves or is removed. */
#include "tree_util.h"

#include "tools/dupes/dupes.h"

#define TEXT	   "of two files"
#define FIRST_FILE UINT64_C(4294967311) /* the first number of files */

static uint64_t first, second;
static unsigned n_met, n_groups;

static void make(uint64_t into, const char *name)
{
	uint64_t ino = temp_tree_make(tree, into, name, S_IFREG | 0644);

	assert_int_equal(pfs_tree_write(tree, ino, TEXT, strlen(TEXT), 0, true, false),
			 strlen(TEXT));
}

/* Called for each node that is met: the root, the first directory, its file, and the second
 * directory, to which the file moves before it is listed. */
static bool move_fourth(void *arg PFS_UNUSED)
{
	if (++n_met == 4)
		assert_int_equal(pfs_tree_rename(tree, first, "file", second, "file", 0), 0);
	return false;
}

static int check_group(void *arg PFS_UNUSED, uint64_t size, char *const *paths, size_t n)
{
	assert_int_equal(size, strlen(TEXT));
	assert_int_equal(n, 2);
	assert_string_not_equal(paths[0], paths[1]);
	n_groups++;
	return 0;
}

static int fail_unread(void *arg PFS_UNUSED, const char *path, int error)
{
	fail_msg("%s: %d", path, error);
	return 0;
}

static void a_file_that_is_met_twice_is_no_duplicate(void **state PFS_UNUSED)
{
	const struct pfs_dupes_options options = {.ino = PFS_ROOT_PRIME,
						  .group = check_group,
						  .unread = fail_unread,
						  .gone = move_fourth};
	struct pfs_dupes_report report;

	first = temp_tree_make(tree, PFS_ROOT_PRIME, "a", S_IFDIR | 0755);
	second = temp_tree_make(tree, PFS_ROOT_PRIME, "b", S_IFDIR | 0755);
	make(first, "file");
	make(second, "other");
	n_met = 0;
	n_groups = 0;
	assert_int_equal(pfs_find_dupes(tree, &options, &report), 0);
	assert_int_equal(n_groups, 1);
	assert_int_equal(report.files, 2);
}

/* The fourth node that is met is the third file. */
static bool remove_first(void *arg PFS_UNUSED)
{
	if (++n_met == 4)
		assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, "a"), 0);
	return false;
}

/* Compares "a", which is removed then, with two others; the test has "a" open. */
static void find_without_first(void)
{
	const struct pfs_dupes_options options = {.ino = PFS_ROOT_PRIME,
						  .group = check_group,
						  .unread = fail_unread,
						  .gone = remove_first};
	struct pfs_dupes_report report;
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_lookup(tree, &entry, PFS_ROOT_PRIME, "a"), 0);
	make(PFS_ROOT_PRIME, "b");
	make(PFS_ROOT_PRIME, "c");
	n_met = 0;
	n_groups = 0;
	assert_int_equal(pfs_find_dupes(tree, &options, &report), 0);
	assert_int_equal(n_groups, 1);
	assert_int_equal(report.files, 2);
	assert_int_equal(report.spare, strlen(TEXT));
	assert_int_equal(report.unread, 0);
	pfs_tree_forget(tree, entry.attr.st_ino, 1);
}

static void a_file_that_is_removed_while_open_is_left_out(void **state PFS_UNUSED)
{
	make(PFS_ROOT_PRIME, "a");
	find_without_first();
}

static void so_it_is_if_it_cannot_be_read(void **state PFS_UNUSED)
{
	struct pfs_node_record record =
		temp_record(FIRST_FILE, PFS_ROOT_PRIME, 1, S_IFREG | 0644, "a");

	temp_tree_close(tree);
	record.size = strlen(TEXT);
	record.flags = PFS_NODE_LINKED; /* but its original is not known */
	temp_store_put(&temp, &record, 1);
	tree = temp_tree_open(&temp);
	find_without_first();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_that_is_met_twice_is_no_duplicate,
						setup_tree, stop_tree),
		cmocka_unit_test_setup_teardown(a_file_that_is_removed_while_open_is_left_out,
						setup_tree, stop_tree),
		cmocka_unit_test_setup_teardown(so_it_is_if_it_cannot_be_read, setup_tree,
						stop_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
