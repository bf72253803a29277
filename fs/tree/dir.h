/* SPDX-License-Identifier: MIT */
/* fs/tree/dir.h - functions that the operations on names and attributes share.
 *
 * Locks: the caller holds tree->lock, for writing where a function changes something, unless the
 * function says otherwise. */
#ifndef PFS_FS_TREE_DIR_H
#define PFS_FS_TREE_DIR_H

#include "fs/tree/tree.h"
#include "meta/store.h"

/* Sets *len to the name's length. -ENAMETOOLONG; -EINVAL: no entry can have this name. No lock is
 * held. */
PFS_MUST_CHECK int pfs_name_check(size_t *len, const char *name);
bool pfs_name_is_reserved(const char *name); /* ".query" */

/* Get the slot of the directory with that inode number. -ESTALE; -ENOTDIR; pfs_dir_slot_alive also
 * -ENOENT: the directory was removed. */
PFS_MUST_CHECK int pfs_dir_slot(const struct pfs_tree *tree, uint32_t *slot, uint64_t ino);
PFS_MUST_CHECK int pfs_dir_slot_alive(const struct pfs_tree *tree, uint32_t *slot, uint64_t ino);
/* Returns the offset with which readdir goes on behind the node's entry. */
int64_t pfs_dir_offset(const struct pfs_tree *tree, uint32_t slot);

/* Adds one to the count of the node's references. */
void pfs_reference(struct pfs_tree *tree, uint32_t slot);

/* Drops the node if it is unlinked and has no references. The caller holds no lock. */
void pfs_drop_unused(struct pfs_tree *tree, uint64_t ino);

/* Unlinks a node: takes its name, whose hash this is, away, and sets ctime of the node and mtime
 * and ctime of its parent to `now`. Returns true if the node has no references: the caller must
 * call pfs_drop_unused after it has released the lock. Otherwise pfs_tree_forget does that when the
 * last reference goes. */
bool pfs_unlink_slot(struct pfs_tree *tree, uint32_t slot, uint32_t hash, struct pfs_time now);

/* Checks that the file can be truncated to this size, before pfs_content_prepare_size. The caller
 * holds no lock. -ESTALE; -EISDIR; -EINVAL: it is no regular file, or the size is negative; -EFBIG.
 */
PFS_MUST_CHECK int pfs_check_size(struct pfs_tree *tree, uint64_t ino, int64_t size);

/* Sets the attributes that `set` (enum pfs_set) names, as setattr does for a privileged caller.
 * Times must fit into columns (pfs_time_fits). For a size, pfs_content_prepare_size has succeeded,
 * and the caller also holds the content lock. */
void pfs_set_attributes(struct pfs_tree *tree, uint32_t slot, const struct stat *attr,
			unsigned set, struct pfs_time now);

#endif
