/* SPDX-License-Identifier: MIT */
/* fs/tree/dir.h - what the operations on names and attributes share.
 *
 * Locks: any lock on the tree, and the write lock for what changes something, unless it says
 * otherwise. */
#ifndef PFS_FS_TREE_DIR_H
#define PFS_FS_TREE_DIR_H

#include "fs/tree/tree.h"
#include "meta/store.h"

/* Sets *len to the name's length. -ENAMETOOLONG, -EINVAL: it can name no entry. No lock is held. */
PFS_MUST_CHECK int pfs_name_check(size_t *len, const char *name);
bool pfs_name_is_reserved(const char *name); /* ".query" */

/* Get the slot of the directory of that inode number. -ESTALE, -ENOTDIR; alive: -ENOENT if it was
 * removed. */
PFS_MUST_CHECK int pfs_dir_slot(const struct pfs_tree *tree, uint32_t *slot, uint64_t ino);
PFS_MUST_CHECK int pfs_dir_slot_alive(const struct pfs_tree *tree, uint32_t *slot, uint64_t ino);
/* Returns the offset of readdir after the node's entry. */
int64_t pfs_dir_offset(const struct pfs_tree *tree, uint32_t slot);

/* Counts one more reference. */
void pfs_reference(struct pfs_tree *tree, uint32_t slot);

/* Lets an unlinked node go if nobody refers to it. No locks are held. */
void pfs_drop_unused(struct pfs_tree *tree, uint64_t ino);

/* Takes the name off a node, which is unlinked from now on, and stamps it and its parent. Returns true if
 * nobody refers to it: the caller calls pfs_drop_unused afterwards. Else whoever forgets the last reference does. */
bool pfs_unlink_slot(struct pfs_tree *tree, uint32_t slot, struct pfs_time now);

/* Checks what can be said of a truncation before pfs_content_prepare_size. No locks are held.
 * -ESTALE, -EISDIR, -EINVAL, -EFBIG. */
PFS_MUST_CHECK int pfs_check_size(struct pfs_tree *tree, uint64_t ino, int64_t size);

/* Sets what `set` (enum pfs_set) names, as a privileged caller of setattr does; times must be such
 * as a column holds. A size must have been prepared, and its locks are held. */
void pfs_set_attributes(struct pfs_tree *tree, uint32_t slot, const struct stat *attr,
			unsigned set, struct pfs_time now);

#endif
