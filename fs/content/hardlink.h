/* SPDX-License-Identifier: MIT */
/* fs/content/hardlink.h - which nodes were names of one file when they were imported.
 *
 * Such a group of names only shrinks: a name leaves it when its content is changed, or when it is
 * removed. The node's flag says whether it still is in; the store's record of a node that has left
 * means nothing.
 *
 * Locks: tree->lock, for writing where a name leaves. */
#ifndef PFS_FS_CONTENT_HARDLINK_H
#define PFS_FS_CONTENT_HARDLINK_H

#include "fs/nodes/visible.h"

#define PFS_NO_LINK INT64_MIN

/* Reads the groups from the store, after pfs_load. */
PFS_MUST_CHECK int pfs_hard_links_create(struct pfs_tree *tree);
void pfs_hard_links_destroy(struct pfs_tree *tree);

/* Makes those of a frozen tree, whose columns are there; it is destroyed before the live one.
 * has_flags: FLAGS is among its columns; without it nobody asks. -ENOMEM. */
PFS_MUST_CHECK int pfs_hard_links_freeze(struct pfs_tree *frozen, const struct pfs_tree *live, bool has_flags);

/* Return the number that all names of the file have (PFS_NO_LINK: it has no other name), and how
 * many names it has, which is st_nlink where it is in no group. seen: counts of visible names;
 * NULL: all names count. Any lock on the tree is held. */
int64_t pfs_hard_link_of(const struct pfs_tree *tree, uint32_t slot);
uint32_t pfs_hard_link_names(const struct pfs_tree *tree, uint32_t slot, const uint32_t *seen);

/* Counts, for each file, the names that `sees` tells visible; the caller frees *seen. Any lock is
 * held. -ENOMEM. */
PFS_MUST_CHECK int pfs_hard_links_seen(const struct pfs_tree *tree, uint32_t **seen,
				       bool (*sees)(const struct pfs_visible *visible,
						    const struct pfs_tree *tree, uint32_t slot),
				       const struct pfs_visible *visible);

/* Makes the node a file of its own from now on. tree->lock is held for writing; the caller touches
 * the row. */
void pfs_hard_link_leave(struct pfs_tree *tree, uint32_t slot);

/* Gets the slots of names whose link is low <= link <= high, or is not (inside), ascending; the
 * caller frees them. Any lock is held. -ENOMEM. */
PFS_MUST_CHECK int pfs_hard_link_slots(const struct pfs_tree *tree, uint32_t **slots, size_t *n,
				       int64_t low, int64_t high, bool inside);

#endif
