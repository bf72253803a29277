/* SPDX-License-Identifier: MIT */
/* base/btree_group.h - searches of one B+-tree side by side: the node that a search needs next is
 * fetched from memory while the others are at work. */
#ifndef PFS_BASE_BTREE_GROUP_H
#define PFS_BASE_BTREE_GROUP_H

#include "base/btree.h"

#define PFS_BTREE_GROUP 32u /* searches at a time */

/* cursors[i] = before the first entry whose key is keys[i] or more, for n <= PFS_BTREE_GROUP keys.
 * Locking as pfs_btree_seek. */
void pfs_btree_seek_group(const struct pfs_btree *tree, struct pfs_btree_cursor *cursors,
			  const uint64_t *keys, size_t n);

#endif
