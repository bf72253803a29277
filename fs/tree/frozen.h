/* SPDX-License-Identifier: MIT */
/* fs/tree/frozen.h - a tree as it is at one moment, for one statement to read while the tree itself goes on
 * changing: a copy of the image (fs/image/image_copy.h), and what is derived from it, made anew as it is
 * asked for. Scans, values, paths and functions take it for any other tree; its lock is its own, and
 * nobody waits for that.
 *
 * It has no journal and no content; of the live tree's it uses the store's seed, the threads of scans, the
 * versions of attributes (fs/attr/attrnotes.h), and what never changes. */
#ifndef PFS_FS_TREE_FROZEN_H
#define PFS_FS_TREE_FROZEN_H

#include "fs/tree/tree.h"

struct pfs_attr_wish;

struct pfs_frozen_wish {
	unsigned columns; /* that are going to be read: bits of fs/image/watch.h */
	const struct pfs_attr_wish *attrs; /* columns of attributes; `columns` has FLAGS then */
	size_t n_attrs;
	uint64_t most; /* bytes that its columns may take */
	int (*poll)(void *arg); /* as for pfs_image_copy_fill */
	/* Called in the hold after which the tree may change (NULL: nothing); what it returns, if not 0, is begin's error. */
	int (*begun)(void *arg);
	void *arg;
};

/* Begins a copy of the live tree as it is now; nothing of it can be read before fill.  The live tree is not held.  Takes
 * microseconds, columns of attributes apart, which are read from the store.  -ENOMEM; -EINTR; the store's errors. */
PFS_MUST_CHECK int pfs_frozen_begin(struct pfs_tree **out, struct pfs_tree *live, const struct pfs_frozen_wish *wish);
/* Copies what begin promised, so that it can be read.  The live tree may have changed, and is not held; the wish is begin's.  Errors
 * as begin; the frozen tree is then to be closed. */
PFS_MUST_CHECK int pfs_frozen_fill(struct pfs_tree *frozen, struct pfs_tree *live, const struct pfs_frozen_wish *wish);
/* Does both.  *out is NULL on failure. */
PFS_MUST_CHECK int pfs_frozen_open(struct pfs_tree **out, struct pfs_tree *live, const struct pfs_frozen_wish *wish);
uint64_t pfs_frozen_epoch(const struct pfs_tree *frozen); /* the live tree's, when it was begun */
void pfs_frozen_close(struct pfs_tree *frozen); /* NULL is allowed */
uint64_t pfs_frozen_size(const struct pfs_tree *frozen); /* bytes */

/* Returns true once the snapshot was given up for want of memory: what was read since may be wrong, and the reader has to end with
 * -ENOMEM. */
bool pfs_frozen_is_lost(const struct pfs_tree *frozen);

#endif
