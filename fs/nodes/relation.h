/* SPDX-License-Identifier: MIT */
/* fs/nodes/relation.h - single nodes by path, and how they lie to each other. Slots are those of
 * nodes that have names.
 *
 * Locks: all is called between pfs_scan_lock and pfs_scan_unlock. */
#ifndef PFS_FS_NODES_RELATION_H
#define PFS_FS_NODES_RELATION_H

#include "fs/nodes/visible.h"

/* Returns the node at an absolute path (a relative one begins at the root, too), as
 * path_resolution(7) finds it; PFS_NO_SLOT: there is none, the path is empty, or the way there
 * leads over a node that is not to be seen. */
uint32_t pfs_relation_resolve(const struct pfs_tree *tree, const struct pfs_visible *visible,
			      const char *path, size_t len);

/* Sets *slot to the node whose code (the product of the primes on its path) is the decimal number;
 * PFS_NO_SLOT: there is none, or it is no number. The engine is asked, unless it is empty or out of
 * date, or the number is long; then the nodes are looked through. -ENOMEM, and what looks
 * return. */
PFS_MUST_CHECK int pfs_relation_of_code(struct pfs_tree *tree, uint32_t *slot, const char *decimal,
					size_t len, const struct pfs_scan_watch *watch);

uint32_t pfs_relation_parent(const struct pfs_tree *tree,
			     uint32_t slot); /* PFS_NO_SLOT: the root's */
bool pfs_relation_is_child(const struct pfs_tree *tree, uint32_t slot, uint32_t parent);
/* Returns true if `slot` is `top` or lies under it. */
bool pfs_relation_is_under(const struct pfs_tree *tree, uint32_t slot, uint32_t top);
/* Returns the deepest node that both are or lie under. */
uint32_t pfs_relation_common(const struct pfs_tree *tree, uint32_t a, uint32_t b);
uint64_t pfs_relation_ino(const struct pfs_tree *tree, uint32_t slot);
uint64_t pfs_relation_nodes(const struct pfs_tree *tree); /* how many there are */

#endif
