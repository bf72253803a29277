/* SPDX-License-Identifier: MIT */
/* fs/tree/frozen.h - a tree as it is at one moment, for one statement to read while the tree itself goes on
 * changing: an image that stands still (fs/image/still.h), and what is derived from it, made anew as it is
 * asked for. Scans, values, paths and functions take it for any other tree; its lock is its own, and
 * nobody waits for that.
 *
 * It has no journal, no content and no attributes; of the live tree's it uses the store's seed, the
 * threads of scans, and what never changes. */
#ifndef PFS_FS_TREE_FROZEN_H
#define PFS_FS_TREE_FROZEN_H

#include "fs/tree/tree.h"

/* columns: bits of fs/image/watch.h, that are going to be read. The live tree is not held. most: bytes that
 * it may take. poll as for pfs_still_open. -ENOMEM, -EINTR, -EOPNOTSUPP (the tree has what cannot be
 * frozen: times beyond 1677..2262, files with several names). */
PFS_MUST_CHECK int pfs_frozen_open(struct pfs_tree **out, struct pfs_tree *live, unsigned columns,
				   uint64_t most, int (*poll)(void *arg), void *arg);
void pfs_frozen_close(struct pfs_tree *frozen); /* NULL is allowed */
uint64_t pfs_frozen_size(const struct pfs_tree *frozen); /* bytes */

/* True: what was read since may be wrong; whoever reads it ends with -ENOMEM. */
bool pfs_frozen_is_lost(const struct pfs_tree *frozen);

#endif
