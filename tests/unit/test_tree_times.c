/* SPDX-License-Identifier: MIT */
/* Which times move with which operation. */
#include "posix_util.h"

static const struct timespec past = {.tv_sec = 1000000, .tv_nsec = 1};

static void age(uint64_t ino)
{
	struct stat attr = {.st_atim = past, .st_mtim = past, .st_ctim = past};

	assert_int_equal(set(ino, &attr, PFS_SET_ATIME | PFS_SET_MTIME | PFS_SET_CTIME, &temp_root),
			 0);
}

static bool is_past(struct timespec time)
{
	return time.tv_sec == past.tv_sec && time.tv_nsec == past.tv_nsec;
}

enum { NONE = 0, ATIME = 1, MTIME = 2, CTIME = 4 };

static unsigned moved(uint64_t ino)
{
	struct stat st = stat_of(ino);

	return (is_past(st.st_atim) ? 0 : ATIME) | (is_past(st.st_mtim) ? 0 : MTIME) |
	       (is_past(st.st_ctim) ? 0 : CTIME);
}

static void test_times_of_names(void **state)
{
	uint64_t a = make_dir(ROOT, "a"), b = make_dir(ROOT, "b"), file, other;

	(void)state;
	age(a);
	file = make_file(a, "file");
	assert_int_equal(moved(a), MTIME | CTIME);
	other = make_file(a, "other");
	age(a), age(b), age(file), age(other);
	assert_int_equal(make_error(a, "file", S_IFREG), -EEXIST);
	assert_int_equal(pfs_tree_unlink(tree, a, "none"), -ENOENT);
	assert_int_equal(pfs_tree_rmdir(tree, a, "file"), -ENOTDIR);
	assert_int_equal(pfs_tree_rename(tree, a, "file", b, "none", RENAME_EXCHANGE), -ENOENT);
	assert_int_equal(pfs_tree_rename(tree, a, "file", a, "file", 0), 0);
	assert_int_equal(moved(a) | moved(b) | moved(file), NONE);
	assert_int_equal(pfs_tree_rename(tree, a, "file", b, "file", 0), 0);
	assert_int_equal(moved(a), MTIME | CTIME);
	assert_int_equal(moved(b), MTIME | CTIME);
	assert_int_equal(moved(file), CTIME);
	age(a), age(b), age(file);
	assert_int_equal(pfs_tree_rename(tree, b, "file", a, "other", RENAME_EXCHANGE), 0);
	assert_int_equal(moved(a) & moved(b), MTIME | CTIME);
	assert_int_equal(moved(file) & moved(other), CTIME);
	age(a), age(b), age(file), age(other);
	assert_int_equal(pfs_tree_rename(tree, a, "other", b, "file", 0), 0);
	assert_int_equal(moved(other), CTIME); /* the one replaced */
	assert_int_equal(moved(file), CTIME);
	age(b), age(file);
	assert_int_equal(pfs_tree_unlink(tree, b, "file"), 0);
	assert_int_equal(moved(b), MTIME | CTIME);
	assert_int_equal(moved(file), CTIME);
	age(ROOT);
	assert_int_equal(pfs_tree_rmdir(tree, ROOT, "b"), 0);
	assert_int_equal(moved(ROOT), MTIME | CTIME);
}

static void test_times_of_attributes(void **state)
{
	uint64_t file = make_file(ROOT, "file");
	struct stat attr = {.st_mode = 0600, .st_uid = 5, .st_mtim = {.tv_sec = 77}};

	(void)state;
	age(file);
	assert_int_equal(set(file, &attr, PFS_SET_MODE, &temp_root), 0);
	assert_int_equal(moved(file), CTIME);
	age(file);
	assert_int_equal(set(file, &attr, PFS_SET_UID, &temp_root), 0);
	assert_int_equal(moved(file), CTIME);
	age(file);
	assert_int_equal(set(file, &attr, PFS_SET_MTIME, &temp_root), 0);
	assert_int_equal(moved(file), MTIME | CTIME);
	assert_int_equal(stat_of(file).st_mtim.tv_sec, 77);
	age(file);
	assert_int_equal(set(file, &attr, PFS_SET_ATIME_NOW, &temp_root), 0);
	assert_int_equal(moved(file), ATIME | CTIME);
	age(file);
	assert_int_equal(set(file, &attr, PFS_SET_SIZE, &temp_root), 0);
	assert_int_equal(moved(file), 0); /* it was empty before */
	assert_int_equal(set(file, &attr, PFS_SET_SIZE | PFS_SET_MTIME_NOW, &temp_root), 0);
	assert_int_equal(moved(file), MTIME | CTIME);
	age(file);
	attr.st_size = 5;
	assert_int_equal(set(file, &attr, PFS_SET_SIZE, &temp_root), 0);
	assert_int_equal(moved(file), MTIME | CTIME);
}

static int nothing(void *arg, const struct pfs_dirent *entry)
{
	(void)arg;
	(void)entry;
	return 0;
}

static void test_relatime(void **state)
{
	uint64_t dir = make_dir(ROOT, "dir");
	struct timespec later = {.tv_sec = time(NULL) - 10}, yesterday = later;
	struct stat attr = {.st_atim = later, .st_mtim = past, .st_ctim = past};
	unsigned all = PFS_SET_ATIME | PFS_SET_MTIME | PFS_SET_CTIME;

	(void)state;
	yesterday.tv_sec -= 86400;
	age(dir); /* not later than mtime: moves */
	assert_int_equal(pfs_tree_readdir(tree, dir, 0, false, nothing, NULL), 0);
	assert_int_equal(moved(dir), ATIME);
	assert_int_equal(set(dir, &attr, all, &temp_root), 0); /* later, and recent: stays */
	assert_int_equal(pfs_tree_readdir(tree, dir, 0, false, nothing, NULL), 0);
	assert_int_equal(stat_of(dir).st_atim.tv_sec, later.tv_sec);
	attr.st_atim = yesterday; /* a day old: moves */
	assert_int_equal(set(dir, &attr, all, &temp_root), 0);
	assert_int_equal(pfs_tree_readdir(tree, dir, 0, false, nothing, NULL), 0);
	assert_true(stat_of(dir).st_atim.tv_sec > yesterday.tv_sec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_times_of_names),
		TEST(test_times_of_attributes),
		TEST(test_relatime),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
