/* SPDX-License-Identifier: MIT */
/* fs/content/link.h - linked nodes: their records, and the originals whose bytes reads get.
 *
 * Locks: the caller holds none. */
#ifndef PFS_FS_CONTENT_LINK_H
#define PFS_FS_CONTENT_LINK_H

#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"

/* Make and free what the tree knows of originals, for tree.c: before the tree is shared, and when
 * nobody uses it any more. -ENOMEM, and the store's errors. */
PFS_MUST_CHECK int pfs_links_create(struct pfs_tree *tree);
void pfs_links_destroy(struct pfs_tree *tree);

/* Compares the node with its original, and makes the node's attributes those of the original.
 * Errors are -ESTALE and those of opening the original. */
PFS_MUST_CHECK int pfs_links_refresh(struct pfs_tree *tree, uint64_t ino);

#endif
