/* SPDX-License-Identifier: MIT */
/* fs/content/hardlink.h - which nodes were names of one file when they were imported.
 *
 * The nodes that were names of one file are a group, which only shrinks: a node leaves it when its
 * content is changed, or when it is removed. The node's flag says whether it is in its group still;
 * if not, the store's record of its group means nothing.
 *
 * Locks: tree->lock, for writing where a name leaves. */
#ifndef PFS_FS_CONTENT_HARDLINK_H
#define PFS_FS_CONTENT_HARDLINK_H

#include "fs/nodes/visible.h"

#define PFS_NO_LINK INT64_MIN

/* Reads the groups from the store, after pfs_load. */
PFS_MUST_CHECK int pfs_hard_links_create(struct pfs_tree *tree);
void pfs_hard_links_destroy(struct pfs_tree *tree);

/* Makes the groups of a frozen tree, whose columns have been made. The frozen tree is destroyed
 * before the live one. has_flags: FLAGS is among its columns; without it there are no groups, and
 * no question about them. -ENOMEM. */
PFS_MUST_CHECK int pfs_hard_links_freeze(struct pfs_tree *frozen, const struct pfs_tree *live,
					 bool has_flags);

/* pfs_hard_link_of returns the number that all names of the file share; PFS_NO_LINK: it has no
 * other name. pfs_hard_link_names returns how many names the file has; for a node in no group that
 * is its st_nlink. seen: counts of visible names (pfs_hard_links_seen); NULL: all names count. Any
 * lock on the tree is held. */
int64_t pfs_hard_link_of(const struct pfs_tree *tree, uint32_t slot);
uint32_t pfs_hard_link_names(const struct pfs_tree *tree, uint32_t slot, const uint32_t *seen);

/* Counts, for each file, the names for which `sees` returns true; the caller frees *seen. Any lock
 * on the tree is held. -ENOMEM. */
PFS_MUST_CHECK int pfs_hard_links_seen(const struct pfs_tree *tree, uint32_t **seen,
				       bool (*sees)(const struct pfs_visible *visible,
						    const struct pfs_tree *tree, uint32_t slot),
				       const struct pfs_visible *visible);

/* Makes the node leave its group. tree->lock is held for writing; the caller touches the row. */
void pfs_hard_link_leave(struct pfs_tree *tree, uint32_t slot);

/* Gets the slots of names whose number is from low to high or, if inside is false, is not; they
 * ascend, and the caller frees them. Any lock on the tree is held. -ENOMEM. */
PFS_MUST_CHECK int pfs_hard_link_slots(const struct pfs_tree *tree, uint32_t **slots, size_t *n,
				       int64_t low, int64_t high, bool inside);

#endif
