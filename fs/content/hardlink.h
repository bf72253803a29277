/* SPDX-License-Identifier: MIT */
/* fs/content/hardlink.h - which nodes were names of one file when they were imported.
 *
 * A group only shrinks: a name leaves it when its content is changed, or when it is removed.  The
 * node's flag says whether it is in; the store's record of a node that has left means nothing. */
#ifndef PFS_FS_CONTENT_HARDLINK_H
#define PFS_FS_CONTENT_HARDLINK_H

#include "fs/nodes/visible.h"

#define PFS_NO_LINK INT64_MIN

/* After pfs_load. */
PFS_MUST_CHECK int pfs_hard_links_create(struct pfs_tree *tree);
void pfs_hard_links_destroy(struct pfs_tree *tree);

/* Those of a frozen tree, whose columns are there; it is destroyed before the live one. has_flags: FLAGS is among
 * them, else nobody asks. -ENOMEM. */
PFS_MUST_CHECK int pfs_hard_links_freeze(struct pfs_tree *frozen, const struct pfs_tree *live, bool has_flags);

/* The number that all names of the file have; PFS_NO_LINK: it has no other.  How many names it has:
 * st_nlink where it is in no group.  `seen`, NULL: all count.  Any lock on the tree. */
int64_t pfs_hard_link_of(const struct pfs_tree *tree, uint32_t slot);
uint32_t pfs_hard_link_names(const struct pfs_tree *tree, uint32_t slot, const uint32_t *seen);

/* How many names of each file `sees` tells visible now, allocated.  -ENOMEM.  Any lock. */
PFS_MUST_CHECK int pfs_hard_links_seen(const struct pfs_tree *tree, uint32_t **seen,
				       bool (*sees)(const struct pfs_visible *visible,
						    const struct pfs_tree *tree, uint32_t slot),
				       const struct pfs_visible *visible);

/* With tree->lock held for writing: the node is a file of its own from now on.  Its row is touched by
 * whoever calls. */
void pfs_hard_link_leave(struct pfs_tree *tree, uint32_t slot);

/* The slots of names whose link is low <= link <= high, or is not, ascending, allocated.  Any lock. */
PFS_MUST_CHECK int pfs_hard_link_slots(const struct pfs_tree *tree, uint32_t **slots, size_t *n,
				       int64_t low, int64_t high, bool inside);

#endif
