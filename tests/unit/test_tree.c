/* SPDX-License-Identifier: MIT */
/* Names and attributes, one rule of POSIX after the other. */
#include "posix_util.h"

#include <inttypes.h>
#include <sys/sysmacros.h>

/* ---- names ---- */

static void test_root(void **state)
{
	struct stat st = stat_of(ROOT);

	(void)state;
	assert_int_equal(st.st_ino, ROOT);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(look(ROOT, "."), ROOT);
	assert_int_equal(look(ROOT, ".."), ROOT);
	assert_int_equal(look(ROOT, "missing"), -ENOENT);
	assert_int_equal(look(12345, "x"), -ESTALE);
}

static void test_make(void **state)
{
	uint64_t dir = make_dir(ROOT, "dir"), file = make_file(dir, "file");
	struct stat st = stat_of(file);

	(void)state;
	assert_true(dir < UINT64_C(1) << 32 && dir % 2 == 1);
	assert_true(file > UINT64_C(1) << 32);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(st.st_uid, 1000);
	assert_int_equal(st.st_gid, 1000);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(stat_of(ROOT).st_nlink, 3);
	assert_int_equal(stat_of(dir).st_nlink, 2);
	assert_int_equal(look(ROOT, "dir"), dir);
	assert_int_equal(look(dir, "file"), file);
	assert_int_equal(look(dir, ".."), ROOT);
	assert_int_equal(look(file, "x"), -ENOTDIR);
	assert_int_equal(make_error(ROOT, "dir", S_IFREG), -EEXIST);
	assert_int_equal(make_error(file, "x", S_IFREG), -ENOTDIR);
	assert_int_equal(make_error(ROOT, "", S_IFREG), -EINVAL);
	assert_int_equal(make_error(ROOT, ".", S_IFREG), -EINVAL);
	assert_int_equal(make_error(ROOT, "..", S_IFDIR), -EINVAL);
	assert_int_equal(make_error(ROOT, "a/b", S_IFREG), -EINVAL);
	assert_int_equal(make_error(ROOT, ".query", S_IFDIR), -EEXIST);
	assert_int_equal(make_error(999, "x", S_IFREG), -ESTALE);
	assert_int_equal(make_error(ROOT, "link", S_IFLNK), -EINVAL);
}

static void test_long_names(void **state)
{
	char name[258];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[255] = 0;
	(void)make_file(ROOT, name);
	assert_true(look(ROOT, name) > 0);
	name[255] = 'n';
	name[256] = 0;
	assert_int_equal(look(ROOT, name), -ENAMETOOLONG);
	assert_int_equal(make_error(ROOT, name, S_IFREG), -ENAMETOOLONG);
	assert_int_equal(pfs_tree_unlink(tree, ROOT, name), -ENAMETOOLONG);
	assert_int_equal(rename_in_root("x", name, 0), -ENAMETOOLONG);
}

static void test_any_byte(void **state)
{
	char name[2] = {0};

	(void)state;
	for (int byte = 1; byte < 256; byte++) {
		name[0] = (char)byte;
		if (byte == '/' || byte == '.')
			continue;
		(void)make_file(ROOT, name);
	}
	for (int byte = 1; byte < 256; byte++) {
		name[0] = (char)byte;
		if (byte != '/' && byte != '.')
			assert_true(look(ROOT, name) > 0);
	}
}

static void test_special_files(void **state)
{
	struct pfs_entry entry;
	char target[4096], longest[PFS_TARGET_MAX + 2];
	dev_t device = makedev(259, 70000);

	(void)state;
	assert_int_equal(pfs_tree_make(tree, &entry, ROOT, "null", S_IFCHR | 0666, device,
				       &temp_root),
			 0);
	assert_int_equal(entry.attr.st_rdev, device);
	assert_int_equal(pfs_tree_make(tree, &entry, ROOT, "fifo", S_IFIFO | 0600, device,
				       &temp_root),
			 0);
	assert_int_equal(entry.attr.st_rdev, 0);
	(void)make_as(ROOT, "socket", S_IFSOCK | 0600, &temp_user);
	assert_int_equal(pfs_tree_symlink(tree, &entry, ROOT, "link", "to/there", &temp_user), 0);
	assert_int_equal(entry.attr.st_size, 8);
	assert_int_equal(entry.attr.st_mode, S_IFLNK | 0777);
	assert_int_equal(pfs_tree_readlink(tree, target, entry.attr.st_ino), 0);
	assert_string_equal(target, "to/there");
	assert_int_equal(pfs_tree_readlink(tree, target, ROOT), -EINVAL);
	memset(longest, 't', sizeof(longest));
	longest[PFS_TARGET_MAX + 1] = 0;
	assert_int_equal(pfs_tree_symlink(tree, &entry, ROOT, "long", longest, &temp_user),
			 -ENAMETOOLONG);
	longest[PFS_TARGET_MAX] = 0;
	assert_int_equal(pfs_tree_symlink(tree, &entry, ROOT, "long", longest, &temp_user), 0);
	assert_int_equal(pfs_tree_readlink(tree, target, entry.attr.st_ino), 0);
	assert_string_equal(target, longest);
}

static void test_setgid_directory(void **state)
{
	uint64_t dir = make_as(ROOT, "shared", S_IFDIR | S_ISGID | 0775, &temp_root);
	uint64_t file, below;

	(void)state;
	assert_int_equal(set(dir, &(struct stat){.st_gid = 50}, PFS_SET_GID, &temp_root), 0);
	assert_int_equal(stat_of(dir).st_mode, S_IFDIR | S_ISGID | 0775);
	file = make_as(dir, "file", S_IFREG | 0644, &temp_user);
	below = make_as(dir, "below", S_IFDIR | 0755, &temp_user);
	assert_int_equal(stat_of(file).st_gid, 50);
	assert_int_equal(stat_of(file).st_mode, S_IFREG | 0644);
	assert_int_equal(stat_of(below).st_gid, 50);
	assert_int_equal(stat_of(below).st_mode, S_IFDIR | S_ISGID | 0755);
}

static void test_unlink(void **state)
{
	uint64_t dir = make_dir(ROOT, "dir"), file = make_file(dir, "file");

	(void)state;
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "dir"), -EISDIR);
	assert_int_equal(pfs_tree_rmdir(tree, ROOT, "dir"), -ENOTEMPTY);
	assert_int_equal(pfs_tree_rmdir(tree, dir, "file"), -ENOTDIR);
	assert_int_equal(pfs_tree_unlink(tree, dir, "none"), -ENOENT);
	assert_int_equal(pfs_tree_unlink(tree, file, "none"), -ENOTDIR);
	assert_int_equal(pfs_tree_unlink(tree, dir, "file"), 0);
	assert_int_equal(look(dir, "file"), -ENOENT);
	assert_int_equal(stat_of(file).st_nlink, 0); /* referenced by make */
	pfs_tree_forget(tree, file, 1);
	assert_int_equal(pfs_tree_getattr(tree, &(struct pfs_entry){0}, file), -ESTALE);
	assert_int_equal(pfs_tree_rmdir(tree, ROOT, "dir"), 0);
	assert_int_equal(stat_of(ROOT).st_nlink, 2);
	assert_int_equal(stat_of(dir).st_nlink, 0);
	assert_int_equal(make_error(dir, "late", S_IFREG), -ENOENT);
	pfs_tree_forget(tree, dir, 1);
	assert_int_equal(make_error(dir, "late", S_IFREG), -ESTALE);
}

static void test_unlinked_over_commits(void **state)
{
	uint64_t file = make_file(ROOT, "file");
	struct stat st;

	(void)state;
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "file"), 0);
	assert_int_equal(pfs_tree_sync(tree), 0);
	st = stat_of(file);
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(set(file, &(struct stat){.st_mode = 0600}, PFS_SET_MODE, &temp_user), 0);
	assert_int_equal(stat_of(file).st_mode, S_IFREG | 0600);
	pfs_tree_forget(tree, file, 1);
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(pfs_tree_getattr(tree, &(struct pfs_entry){0}, file), -ESTALE);
}

static void test_references(void **state)
{
	uint64_t file = make_file(ROOT, "file");
	struct pfs_entry entry;

	(void)state;
	assert_int_equal(pfs_tree_lookup(tree, &entry, ROOT, "file"), 0);
	assert_int_equal(pfs_tree_lookup(tree, &entry, ROOT, "file"), 0);
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "file"), 0);
	pfs_tree_forget(tree, file, 2);
	(void)stat_of(file);
	pfs_tree_forget(tree, file, 1);
	assert_int_equal(pfs_tree_getattr(tree, &entry, file), -ESTALE);
	pfs_tree_forget(tree, file, 1); /* too many: nothing happens */
	pfs_tree_forget(tree, ROOT, 1000);
	(void)stat_of(ROOT);
}

/* ---- rename ---- */

static void test_rename(void **state)
{
	uint64_t a = make_dir(ROOT, "a"), b = make_dir(ROOT, "b"), file = make_file(a, "file");

	(void)state;
	assert_int_equal(pfs_tree_rename(tree, a, "file", b, "moved", 0), 0);
	assert_int_equal(look(a, "file"), -ENOENT);
	assert_int_equal(look(b, "moved"), file);
	assert_int_equal(pfs_tree_rename(tree, ROOT, "a", b, "a", 0), 0);
	assert_int_equal(look(a, ".."), b);
	assert_int_equal(stat_of(ROOT).st_nlink, 3);
	assert_int_equal(stat_of(b).st_nlink, 3);
	assert_int_equal(rename_in_root("none", "x", 0), -ENOENT);
	assert_int_equal(rename_in_root("b", "b", 0), 0);
	assert_int_equal(rename_in_root("b", ".", 0), -EINVAL);
	assert_int_equal(rename_in_root("b", ".query", 0), -EEXIST);
	assert_int_equal(rename_in_root("b", "c", 8), -EINVAL);
	assert_int_equal(rename_in_root("b", "c", RENAME_NOREPLACE | RENAME_EXCHANGE), -EINVAL);
	assert_int_equal(pfs_tree_rename(tree, ROOT, "b", file, "x", 0), -ENOTDIR);
	assert_int_equal(pfs_tree_rename(tree, ROOT, "b", 999, "x", 0), -ESTALE);
}

static void test_rename_replaces(void **state)
{
	uint64_t file = make_file(ROOT, "file"), old = make_file(ROOT, "old");
	uint64_t full = make_dir(ROOT, "full"), empty = make_dir(ROOT, "empty");
	uint64_t dir = make_dir(ROOT, "dir");

	(void)state;
	(void)make_file(full, "x");
	assert_int_equal(rename_in_root("file", "old", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(rename_in_root("file", "empty", 0), -EISDIR);
	assert_int_equal(rename_in_root("dir", "old", 0), -ENOTDIR);
	assert_int_equal(rename_in_root("dir", "full", 0), -ENOTEMPTY);
	assert_int_equal(rename_in_root("file", "old", 0), 0);
	assert_int_equal(look(ROOT, "old"), file);
	assert_int_equal(look(ROOT, "file"), -ENOENT);
	assert_int_equal(stat_of(old).st_nlink, 0);
	assert_int_equal(rename_in_root("dir", "empty", 0), 0);
	assert_int_equal(look(ROOT, "empty"), dir);
	assert_int_equal(stat_of(empty).st_nlink, 0);
	assert_int_equal(stat_of(ROOT).st_nlink, 4);
	assert_int_equal(rename_in_root("old", "new", RENAME_NOREPLACE), 0);
	assert_int_equal(look(ROOT, "new"), file);
}

static void test_rename_into_itself(void **state)
{
	uint64_t a = make_dir(ROOT, "a"), b = make_dir(a, "b"), c = make_dir(b, "c");

	(void)state;
	assert_int_equal(pfs_tree_rename(tree, ROOT, "a", a, "x", 0), -EINVAL);
	assert_int_equal(pfs_tree_rename(tree, ROOT, "a", c, "x", 0), -EINVAL);
	assert_int_equal(pfs_tree_rename(tree, ROOT, "a", b, "c", RENAME_EXCHANGE), -EINVAL);
	assert_int_equal(pfs_tree_rename(tree, b, "c", ROOT, "a", RENAME_EXCHANGE), -EINVAL);
	assert_int_equal(pfs_tree_rename(tree, b, "c", ROOT, "a", 0), -ENOTEMPTY);
	assert_int_equal(pfs_tree_rename(tree, b, "c", ROOT, "c", 0), 0);
	assert_int_equal(pfs_tree_rename(tree, ROOT, "a", c, "a", 0), 0);
	assert_int_equal(look(c, "a"), a);
}

static void test_rename_exchange(void **state)
{
	uint64_t dir = make_dir(ROOT, "dir"), below = make_dir(dir, "below");
	uint64_t file = make_file(ROOT, "file");

	(void)state;
	assert_int_equal(pfs_tree_rename(tree, ROOT, "file", dir, "none", RENAME_EXCHANGE),
			 -ENOENT);
	assert_int_equal(pfs_tree_rename(tree, ROOT, "file", dir, "below", RENAME_EXCHANGE), 0);
	assert_int_equal(look(ROOT, "file"), below);
	assert_int_equal(look(dir, "below"), file);
	assert_int_equal(look(below, ".."), ROOT);
	assert_int_equal(stat_of(ROOT).st_nlink, 4);
	assert_int_equal(stat_of(dir).st_nlink, 2);
	assert_int_equal(rename_in_root("file", "file", RENAME_EXCHANGE), 0);
}

/* ---- readdir ---- */

struct seen {
	char names[64][8];
	int64_t next[64];
	size_t count, limit;
};

static int collect(void *arg, const struct pfs_dirent *entry)
{
	struct seen *seen = arg;

	if (seen->count == seen->limit)
		return 1;
	assert_true(entry->next_offset > 0);
	(void)snprintf(seen->names[seen->count], sizeof(seen->names[0]), "%s", entry->name);
	seen->next[seen->count++] = entry->next_offset;
	return 0;
}

static void test_readdir(void **state)
{
	uint64_t dir = make_dir(ROOT, "dir");
	struct seen all = {.limit = 64}, again = {.limit = 64};
	char name[16];

	(void)state;
	for (int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		(void)make_file(dir, name);
	}
	assert_int_equal(pfs_tree_readdir(tree, dir, 0, false, collect, &all), 0);
	assert_int_equal(all.count, 42);
	assert_string_equal(all.names[0], ".");
	assert_string_equal(all.names[1], "..");
	/* one at a time, the entry that was read last being removed before going on */
	for (size_t i = 0; i < all.count; i++) {
		struct seen one = {.limit = 1};

		assert_int_equal(pfs_tree_readdir(tree, dir, i ? all.next[i - 1] : 0, false,
						  collect, &one),
				 0);
		assert_int_equal(one.count, 1);
		assert_string_equal(one.names[0], all.names[i]);
		assert_int_equal(one.next[0], all.next[i]);
		if (i >= 2)
			assert_int_equal(pfs_tree_unlink(tree, dir, one.names[0]), 0);
	}
	assert_int_equal(pfs_tree_readdir(tree, dir, all.next[41], false, collect, &again), 0);
	assert_int_equal(again.count, 0);
	assert_int_equal(pfs_tree_readdir(tree, dir, INT64_MAX, false, collect, &again), 0);
	assert_int_equal(again.count, 0);
	assert_int_equal(pfs_tree_readdir(tree, dir, -1, false, collect, &again), -EINVAL);
	assert_int_equal(pfs_tree_readdir(tree, make_file(ROOT, "f"), 0, false, collect, &again),
			 -ENOTDIR);
}

static int take_attr(void *arg, const struct pfs_dirent *entry)
{
	uint64_t *ino = arg;

	assert_non_null(entry->entry);
	assert_int_equal(entry->entry->attr.st_ino, entry->ino);
	assert_int_equal(entry->entry->attr.st_mode & S_IFMT, entry->mode);
	*ino = entry->ino;
	return 0;
}

static void test_readdir_references(void **state)
{
	uint64_t dir = make_dir(ROOT, "dir"), file = make_file(dir, "f"), seen = 0;

	(void)state;
	pfs_tree_forget(tree, file, 1);
	assert_int_equal(pfs_tree_readdir(tree, dir, 2, true, take_attr, &seen), 0);
	assert_int_equal(seen, file);
	assert_int_equal(pfs_tree_unlink(tree, dir, "f"), 0);
	assert_int_equal(stat_of(file).st_nlink, 0);
	pfs_tree_forget(tree, file, 1);
	assert_int_equal(pfs_tree_getattr(tree, &(struct pfs_entry){0}, file), -ESTALE);
}

/* ---- attributes ---- */

static void test_mode_and_owner(void **state)
{
	uint64_t file = make_file(ROOT, "file");
	struct stat attr = {.st_mode = 06755, .st_uid = 7, .st_gid = 8};

	(void)state;
	assert_int_equal(set(file, &attr, PFS_SET_MODE, &temp_root), 0);
	assert_int_equal(stat_of(file).st_mode, S_IFREG | 06755);
	assert_int_equal(set(file, &attr, PFS_SET_UID | PFS_SET_GID, &temp_root), 0);
	assert_int_equal(stat_of(file).st_uid, 7);
	assert_int_equal(stat_of(file).st_gid, 8);
	assert_int_equal(stat_of(file).st_mode, S_IFREG | 0755);
	attr.st_mode = 02644; /* sgid without execution: mandatory locking, stays */
	assert_int_equal(set(file, &attr, PFS_SET_MODE, &temp_root), 0);
	assert_int_equal(set(file, &attr, PFS_SET_GID, &temp_root), 0);
	assert_int_equal(stat_of(file).st_mode, S_IFREG | 02644);
	assert_int_equal(set(999, &attr, PFS_SET_MODE, &temp_root), -ESTALE);
}

static void test_truncate_errors(void **state)
{
	uint64_t fifo = make_as(ROOT, "fifo", S_IFIFO | 0600, &temp_user);
	uint64_t file = make_file(ROOT, "file");

	(void)state;
	assert_int_equal(set(ROOT, &(struct stat){0}, PFS_SET_SIZE, &temp_root), -EISDIR);
	assert_int_equal(set(fifo, &(struct stat){0}, PFS_SET_SIZE, &temp_root), -EINVAL);
	assert_int_equal(set(file, &(struct stat){.st_size = -1}, PFS_SET_SIZE, &temp_root),
			 -EINVAL);
	assert_int_equal(set(file, &(struct stat){.st_size = INT64_MAX}, PFS_SET_SIZE, &temp_root),
			 -EFBIG);
}

static void test_times(void **state)
{
	static const struct timespec times[] = {
		{0, 0},
		{-1, 999999999},
		{INT64_MAX, 999999999},
		{INT64_MIN, 1},
		{INT64_MAX / 1000000000, 5},
		{INT64_MIN / 1000000000, 5},
		{4102444800, 1},
	};
	uint64_t file = make_file(ROOT, "file");

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(times); i++) {
		struct stat attr = {.st_atim = times[i],
				    .st_mtim = times[PFS_COUNT(times) - 1 - i]};
		struct stat st;

		assert_int_equal(set(file, &attr, PFS_SET_ATIME | PFS_SET_MTIME, &temp_user), 0);
		temp_tree_close(tree);
		tree = temp_tree_open(&temp);
		st = stat_of(file);
		assert_memory_equal(&st.st_atim, &attr.st_atim, sizeof(st.st_atim));
		assert_memory_equal(&st.st_mtim, &attr.st_mtim, sizeof(st.st_mtim));
	}
}

/* ---- the tree as a whole ---- */

static void test_read_only(void **state)
{
	uint64_t file = make_file(ROOT, "file");
	struct stat attr = {.st_mode = 0600};

	(void)state;
	temp_tree_close(tree);
	tree = temp_tree_open_with(&temp, &(struct pfs_tree_options){.read_only = true});
	assert_int_equal(look(ROOT, "file"), file);
	assert_int_equal(make_error(ROOT, "x", S_IFREG), -EROFS);
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "file"), -EROFS);
	assert_int_equal(rename_in_root("file", "x", 0), -EROFS);
	assert_int_equal(set(file, &attr, PFS_SET_MODE, &temp_root), -EROFS);
	assert_int_equal(pfs_tree_sync(tree), 0);
}

static void test_statfs(void **state)
{
	struct statvfs before, after;

	(void)state;
	assert_int_equal(pfs_tree_statfs(tree, &before), 0);
	(void)make_file(ROOT, "file");
	assert_int_equal(pfs_tree_statfs(tree, &after), 0);
	assert_int_equal(before.f_namemax, 255);
	assert_true(before.f_blocks > 0 && before.f_bfree <= before.f_blocks);
	assert_int_equal(before.f_ffree - 1, after.f_ffree);
}

static void test_resolve_and_path(void **state)
{
	uint64_t dir = make_dir(ROOT, "dir"), file = make_file(dir, "file"), ino;
	char *path, *code;
	char expected[64];

	(void)state;
	assert_int_equal(pfs_tree_resolve(tree, &ino, "/dir//file"), 0);
	assert_int_equal(ino, file);
	assert_int_equal(pfs_tree_resolve(tree, &ino, "/dir/file/x"), -ENOTDIR);
	assert_int_equal(pfs_tree_resolve(tree, &ino, "/none"), -ENOENT);
	assert_int_equal(pfs_tree_path(tree, &path, file), 0);
	assert_string_equal(path, "/dir/file");
	assert_int_equal(pfs_tree_code(tree, &code, dir), 0);
	(void)snprintf(expected, sizeof(expected), "%" PRIu64, 2 * dir);
	assert_string_equal(code, expected);
	free(path);
	free(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_root),
		TEST(test_make),
		TEST(test_long_names),
		TEST(test_any_byte),
		TEST(test_special_files),
		TEST(test_setgid_directory),
		TEST(test_unlink),
		TEST(test_unlinked_over_commits),
		TEST(test_references),
		TEST(test_rename),
		TEST(test_rename_replaces),
		TEST(test_rename_into_itself),
		TEST(test_rename_exchange),
		TEST(test_readdir),
		TEST(test_readdir_references),
		TEST(test_mode_and_owner),
		TEST(test_truncate_errors),
		TEST(test_times),
		TEST(test_read_only),
		TEST(test_statfs),
		TEST(test_resolve_and_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
