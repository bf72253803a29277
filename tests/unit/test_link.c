/* SPDX-License-Identifier: MIT */
/* Linked originals: reading through, what changes outside, attacks on the path. */
#include "link_util.h"

#include <dirent.h>

/* ---- reading through ---- */

static void test_read(void **state)
{
	struct pfs_entry entry;
	bool volatile_attr;
	uint64_t ino;
	ssize_t at_once;

	begin_store(state);
	put_file("sub/f", data, LARGE);
	ino = link_to("sub/f");
	end_store();
	assert_int_equal(pfs_tree_getattr(tree, &entry, ino), 0);
	assert_true(entry.volatile_attr);
	assert_int_equal(pfs_tree_read(tree, back, 10, ino, 0, PFS_READ_NOWAIT), -EAGAIN);
	assert_int_equal(pfs_tree_open_file(tree, &volatile_attr, ino, O_RDONLY, true, true),
			 -EAGAIN);
	assert_int_equal(pfs_tree_open_file(tree, &volatile_attr, ino, O_RDONLY, true, false), 0);
	assert_true(volatile_attr);
	check_bytes(ino, data, LARGE);
	at_once = pfs_tree_read(tree, back, 10, ino, C - 5, PFS_READ_NOWAIT);
	if (at_once != -EAGAIN) { /* as on a tmpfs, which cannot tell what it has */
		assert_int_equal(at_once, 10);
		assert_memory_equal(back, data + C - 5, 10);
	}
	assert_int_equal(read_at(ino, back, 10, LARGE - 3), 3);
	assert_int_equal(read_at(ino, back, 10, LARGE), 0);
	assert_int_equal(pfs_tree_seek(tree, ino, 5, SEEK_DATA), 5);
	assert_int_equal(pfs_tree_seek(tree, ino, LARGE, SEEK_DATA), -ENXIO);
	assert_in_range(pfs_tree_seek(tree, ino, 5, SEEK_HOLE), 6, LARGE);
	close_tree();
}

static unsigned count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count;
}

/* Many files in use cost a bounded number of descriptors. */
static void test_descriptors(void **state)
{
	uint64_t inos[1000];
	unsigned before;
	char name[16];

	begin_store(state);
	for (size_t i = 0; i < PFS_COUNT(inos); i++) {
		(void)snprintf(name, sizeof(name), "%zu", i);
		put_file(name, name, strlen(name));
		inos[i] = link_to(name);
	}
	end_store();
	before = count_descriptors();
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < PFS_COUNT(inos); i++) {
			(void)snprintf(name, sizeof(name), "%zu", i);
			assert_int_equal(try_open(inos[i], O_RDONLY), 0);
			assert_int_equal(read_at(inos[i], back, 16, 0), strlen(name));
			assert_memory_equal(back, name, strlen(name));
		}
	}
	assert_in_range(count_descriptors(), before, before + 270);
	close_tree();
}

/* ---- what happens outside ---- */

static void test_changed(void **state)
{
	struct pfs_tree_options read_only = {.read_only = true};
	uint64_t ino;

	begin_store(state);
	put_file("f", "one", 3);
	ino = link_to("f");
	end_store();
	check_bytes(ino, "one", 3);
	put_file("f", "four", 4);
	check_bytes(ino, "four", 4);
	assert_int_equal(told, 1);
	assert_int_equal(rights_told, 0);
	assert_int_equal(chmod(path_of("f"), 0600), 0);
	assert_int_equal(stat_of(ino).st_mode & 07777, 0600);
	assert_int_equal(told, 1); /* the content is the same */
	assert_int_equal(rights_told, 1);
	reopen_tree();		   /* what was seen is in the store */
	listen_to_tree();
	pfs_hold_read(tree, __func__);
	assert_int_equal(tree->image.size[pfs_image_slot(tree, ino)], 4);
	pfs_hold_end(tree);
	assert_int_equal(try_stat(ino), 0);
	assert_int_equal(told, 1);
	close_tree();
	/* one that may not write shows it all the same */
	put_file("f", "fiver", 5);
	assert_int_equal(pfs_tree_open(&tree, test_path, &read_only), 0);
	check_bytes(ino, "fiver", 5);
	check_bytes(ino, "fiver", 5);
	close_tree();
	/* another file in its place */
	open_tree();
	put_file("g", "other", 5);
	check_bytes(ino, "fiver", 5);
	assert_int_equal(rename(path_of("g"), path_of("f")), 0);
	check_bytes(ino, "other", 5);
	assert_true(is_linked(ino));
	close_tree();
}

static void test_missing(void **state)
{
	uint64_t ino;

	begin_store(state);
	put_file("f", "one", 3);
	ino = link_to("f");
	end_store();
	check_bytes(ino, "one", 3);
	assert_int_equal(unlink(path_of("f")), 0);
	assert_int_equal(try_stat(ino), -ESTALE);
	assert_int_equal(try_open(ino, O_RDONLY), -ESTALE);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, 0, true, false), -ESTALE);
	/* nothing that is no file counts as one, nor does looking at it wait */
	assert_int_equal(mkfifo(path_of("f"), 0644), 0);
	assert_int_equal(try_open(ino, O_RDONLY), -ESTALE);
	assert_int_equal(unlink(path_of("f")), 0);
	assert_int_equal(mkdir(path_of("f"), 0755), 0);
	assert_int_equal(try_open(ino, O_RDONLY), -ESTALE);
	assert_int_equal(rmdir(path_of("f")), 0);
	/* what is truncated to nothing needs no original */
	assert_int_equal(try_truncate(ino, 0), 0);
	check_bytes(ino, "", 0);
	assert_false(is_linked(ino));
	close_tree();
}

/* The node's own attributes, each until the original's changes. */
static void test_own_attributes(void **state)
{
	struct stat attr = {.st_mode = 0600, .st_mtim.tv_sec = 77}, before;
	struct pfs_entry entry;
	uint64_t ino;

	begin_store(state);
	put_file("f", "one", 3);
	ino = link_to("f");
	end_store();
	assert_int_equal(stat(path_of("f"), &before), 0);
	assert_int_equal(pfs_tree_setattr(tree, &entry, ino, &attr, PFS_SET_MODE | PFS_SET_MTIME,
					  &root_caller),
			 0);
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(stat_of(ino).st_mode & 07777, 0600);
		assert_int_equal(stat_of(ino).st_mtim.tv_sec, 77);
		reopen_tree();
	}
	assert_int_equal(stat(path_of("f"), &attr), 0);
	assert_int_equal(attr.st_mode, before.st_mode);
	assert_int_equal(attr.st_ctim.tv_nsec, before.st_ctim.tv_nsec);
	assert_true(is_linked(ino));
	put_file("f", "four", 4);
	attr = stat_of(ino);
	assert_int_equal(attr.st_size, 4);
	assert_int_equal(attr.st_mode & 07777, 0600);
	assert_int_not_equal(attr.st_mtim.tv_sec, 77);
	put_file("g", "fiver", 5);
	assert_int_equal(rename(path_of("g"), path_of("f")), 0);
	check_bytes(ino, "fiver", 5);
	assert_int_equal(stat_of(ino).st_mode & 07777,
			 0644); /* another file: what was set is gone */
	assert_int_equal(chmod(path_of("f"), 0640), 0);
	assert_int_equal(stat_of(ino).st_mode & 07777, 0640);
	close_tree();
}

/* ---- attacks ---- */

/* Everything that could lead out of the root says that the original is gone. */
static void test_attacks(void **state)
{
	static const char *const paths[] = {"../secret", "sub/../../secret", "link",
					    "sub/link",	 "dirlink/secret",   "/etc/passwd"};
	uint64_t inos[PFS_COUNT(paths)], good, swapped, inner;
	char secret[128];

	begin_store(state);
	(void)snprintf(secret, sizeof(secret), "%s/secret", test_folder);
	put_file("../secret", "secret", 6);
	put_file("sub/good", "good", 4);
	put_file("swapped", "good", 4);
	assert_int_equal(mkdir(path_of("inner"), 0755), 0);
	put_file("inner/good", "good", 4);
	assert_int_equal(symlink(secret, path_of("link")), 0);
	assert_int_equal(symlink("../../secret", path_of("sub/link")), 0);
	assert_int_equal(symlink(test_folder, path_of("dirlink")), 0);
	for (size_t i = 0; i < PFS_COUNT(paths); i++)
		inos[i] = link_as(paths[i], "../secret");
	good = link_to("sub/good");
	swapped = link_to("swapped");
	inner = link_to("inner/good");
	end_store();
	for (size_t i = 0; i < PFS_COUNT(paths); i++) {
		assert_int_equal(try_stat(inos[i]), -ESTALE);
		assert_int_equal(try_open(inos[i], O_RDONLY), -ESTALE);
		assert_int_equal(read_at(inos[i], back, 6, 0), -ESTALE);
		assert_int_equal(pfs_tree_write(tree, inos[i], "x", 1, 0, true, false), -ESTALE);
	}
	check_bytes(good, "good", 4);
	check_bytes(swapped, "good", 4);
	/* a component, or the file, becomes a symlink while it is in use */
	assert_int_equal(symlink(secret, path_of("new")), 0);
	assert_int_equal(rename(path_of("new"), path_of("swapped")), 0);
	assert_int_equal(try_stat(swapped), -ESTALE);
	assert_int_equal(read_at(swapped, back, 4, 0), -ESTALE);
	{
		char elsewhere[128], sub[512];

		(void)snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", test_folder);
		(void)snprintf(sub, sizeof(sub), "%s", path_of("sub"));
		assert_int_equal(rename(sub, elsewhere), 0);
		assert_int_equal(symlink(elsewhere, sub), 0);
	}
	assert_int_equal(try_stat(good), -ESTALE);
	assert_int_equal(try_open(good, O_RDONLY), -ESTALE);
	/* not even one that stays beneath the root */
	assert_int_equal(rename(path_of("inner"), path_of("renamed")), 0);
	assert_int_equal(symlink("renamed", path_of("inner")), 0);
	assert_int_equal(try_stat(inner), -ESTALE);
	assert_int_equal(read_at(inner, back, 4, 0), -ESTALE);
	close_tree();
}

static void test_root(void **state)
{
	char moved[512];
	uint64_t ino;

	begin_store(state);
	put_file("f", "one", 3);
	ino = link_to("f");
	end_store();
	(void)snprintf(moved, sizeof(moved), "%s/moved", test_folder);
	assert_int_equal(rename(origin, moved), 0);
	check_bytes(ino, "one", 3); /* the folder is the same, whatever its name */
	reopen_tree();
	assert_int_equal(try_stat(ino), -ESTALE); /* not found by its name any more */
	close_tree();
	assert_int_equal(mkdir(origin, 0755), 0);
	put_file("f", "one", 3);
	open_tree();
	assert_int_equal(try_stat(ino), -ESTALE); /* another folder of that name */
	write_at(make_file("new"), "works", 5, 0);
	close_tree();
	(void)snprintf(moved, sizeof(moved), "rm -r %s; mv %s/moved %s", origin, test_folder,
		       origin);
	assert_int_equal(system(moved), 0); /* NOLINT(cert-env33-c): our own temporary folder */
	open_tree();
	check_bytes(ino, "one", 3);
	close_tree();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_origin, remove_folder)
	const struct CMUnitTest tests[] = {
		TEST(test_read),	   TEST(test_descriptors), TEST(test_changed),
		TEST(test_missing),	   TEST(test_attacks),	   TEST(test_root),
		TEST(test_own_attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
