/* SPDX-License-Identifier: MIT */
/* fs/tree/dir.h - what the operations on names and attributes share.
 *
 * Where nothing else is said: with any lock on the tree; what changes something, with the write lock. */
#ifndef PFS_FS_TREE_DIR_H
#define PFS_FS_TREE_DIR_H

#include "fs/tree/tree.h"
#include "meta/store.h"

/* *len = the name's length; -ENAMETOOLONG, -EINVAL for what can name no entry.  No lock. */
PFS_MUST_CHECK int pfs_name_check(size_t *len, const char *name);
bool pfs_name_is_reserved(const char *name); /* ".query" */

/* The directory of that inode number: -ESTALE, -ENOTDIR; alive: -ENOENT when it was removed. */
PFS_MUST_CHECK int pfs_dir_slot(const struct pfs_tree *tree, uint32_t *slot, uint64_t ino);
PFS_MUST_CHECK int pfs_dir_slot_alive(const struct pfs_tree *tree, uint32_t *slot, uint64_t ino);
/* The offset of readdir after the node's entry. */
int64_t pfs_dir_offset(const struct pfs_tree *tree, uint32_t slot);

/* One more reference. */
void pfs_reference(struct pfs_tree *tree, uint32_t slot);

/* Lets an unlinked node go if nobody refers to it.  No locks. */
void pfs_drop_unused(struct pfs_tree *tree, uint64_t ino);

/* Takes the name off a node: unlinked from now on, stamped; so is its parent.  The caller calls
 * pfs_drop_unused afterwards. */
void pfs_unlink_slot(struct pfs_tree *tree, uint32_t slot, struct pfs_time now);

/* What can be said of truncation before pfs_content_prepare_size: -ESTALE, -EISDIR, -EINVAL, -EFBIG.
 * No locks. */
PFS_MUST_CHECK int pfs_check_size(struct pfs_tree *tree, uint64_t ino, int64_t size);

/* Sets what `set` (enum pfs_set) names, as a privileged caller of setattr does; times must be such as a
 * column holds.  A size must have been prepared; its locks are held. */
void pfs_set_attributes(struct pfs_tree *tree, uint32_t slot, const struct stat *attr,
			unsigned set, struct pfs_time now);

#endif
