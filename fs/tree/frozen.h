/* SPDX-License-Identifier: MIT */
/* fs/tree/frozen.h - a frozen tree: a copy of the tree as it was at one moment, which one statement
 * reads while the live tree goes on changing.
 *
 * It has a copy of the image (fs/image/image_copy.h), and makes anew what is derived from the image
 * when that is asked for. Scans, values, paths and functions use it as they use any other tree. It
 * has a lock of its own, which no other statement takes.
 *
 * It has no journal and no content. It shares with the live tree the store, the threads of scans,
 * the versions of attributes (fs/attr/attrnotes.h), and what never changes. */
#ifndef PFS_FS_TREE_FROZEN_H
#define PFS_FS_TREE_FROZEN_H

#include "fs/tree/tree.h"

struct pfs_attr_wish;

struct pfs_frozen_wish {
	unsigned columns; /* the columns that will be read: bits of fs/image/watch.h */
	const struct pfs_attr_wish *attrs; /* columns of attributes; if any, `columns` has FLAGS */
	size_t n_attrs;
	uint64_t most; /* the bytes that the copied columns may take */
	int (*poll)(void *arg); /* as for pfs_image_copy_fill */
	/* Takes the live tree's lock at the moment that is copied; NULL: pfs_hold_read does. If it
	 * does not return 0, nothing is held, and pfs_frozen_begin returns that. */
	int (*hold)(void *arg);
	void *arg; /* for poll and hold */
};

/* Begins a copy of the live tree as it is now; the copy can be read after pfs_frozen_fill. The
 * caller does not hold the live tree. This takes microseconds, except for columns of attributes,
 * which are read from the store. *out is NULL on failure. -ENOMEM, also if the columns would take
 * more than wish->most; -EINTR; the store's errors. */
PFS_MUST_CHECK int pfs_frozen_begin(struct pfs_tree **out, struct pfs_tree *live,
				    const struct pfs_frozen_wish *wish);
/* Copies the columns, with the same wish as pfs_frozen_begin. The live tree may have changed since,
 * and the caller does not hold it. Errors as pfs_frozen_begin; the caller then closes the frozen
 * tree. */
PFS_MUST_CHECK int pfs_frozen_fill(struct pfs_tree *frozen, struct pfs_tree *live,
				   const struct pfs_frozen_wish *wish);
/* Begins a copy and fills it. *out is NULL on failure. */
PFS_MUST_CHECK int pfs_frozen_open(struct pfs_tree **out, struct pfs_tree *live,
				   const struct pfs_frozen_wish *wish);
uint64_t pfs_frozen_epoch(const struct pfs_tree *frozen); /* the live tree's at that moment */
void pfs_frozen_close(struct pfs_tree *frozen); /* NULL is allowed */
uint64_t pfs_frozen_size(const struct pfs_tree *frozen); /* bytes */

/* Returns true if memory was short for what has changed since: the snapshot was given up, or the
 * path index. What was read then may be wrong, so the statement has to end with -ENOMEM. */
bool pfs_frozen_is_lost(const struct pfs_tree *frozen);

#endif
