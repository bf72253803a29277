/* SPDX-License-Identifier: MIT */
/* tests/unit/posix_util.h - calls on the test's tree by names in its root, that succeed unless they
 * are named for errors. */
#ifndef PFS_TESTS_UNIT_POSIX_UTIL_H
#define PFS_TESTS_UNIT_POSIX_UTIL_H

#include "tree_util.h"

#define ROOT PFS_ROOT_PRIME

static inline uint64_t make_as(uint64_t parent, const char *name, mode_t mode,
			       const struct pfs_caller *caller)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_make(tree, &entry, parent, name, mode, 0, caller), 0);
	assert_int_equal(entry.attr.st_mode & S_IFMT, mode & S_IFMT);
	return entry.attr.st_ino;
}

static inline uint64_t make_dir(uint64_t parent, const char *name)
{
	return make_as(parent, name, S_IFDIR | 0755, &temp_user);
}

static inline uint64_t make_file(uint64_t parent, const char *name)
{
	return make_as(parent, name, S_IFREG | 0644, &temp_user);
}

static inline int make_error(uint64_t parent, const char *name, mode_t mode)
{
	struct pfs_entry entry;

	return pfs_tree_make(tree, &entry, parent, name, mode, 0, &temp_user);
}

static inline struct stat stat_of(uint64_t ino)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_getattr(tree, &entry, ino), 0);
	return entry.attr;
}

/* The entry's inode number, or the error. */
static inline int64_t look(uint64_t parent, const char *name)
{
	struct pfs_entry entry;
	int error = pfs_tree_lookup(tree, &entry, parent, name);

	if (error)
		return error;
	pfs_tree_forget(tree, entry.attr.st_ino, 1);
	return (int64_t)entry.attr.st_ino;
}

static inline int set(uint64_t ino, const struct stat *attr, unsigned what,
		      const struct pfs_caller *caller)
{
	struct pfs_entry entry;

	return pfs_tree_setattr(tree, &entry, ino, attr, what, caller);
}

static inline int rename_in_root(const char *name, const char *new_name, unsigned flags)
{
	return pfs_tree_rename(tree, ROOT, name, ROOT, new_name, flags);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_tree, stop_tree)

#endif
