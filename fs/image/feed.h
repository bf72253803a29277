/* SPDX-License-Identifier: MIT */
/* fs/image/feed.h - what has changed in the image, for followers, who ask for it later.
 *
 * The image has one feed: a ring with the slot and the columns of each of the last changes, and for
 * each column and block of PFS_BLOCK_ROWS slots the epoch of its last change (struct pfs_stamps,
 * as copies on a device want it, too). A change's number is the epoch before it, so no other
 * counter is needed. Its block is stamped with the epoch after it, number + 1. A node that comes or
 * goes changes all columns. Freeing a slot is not noted: nobody has read the slot since its node
 * went.
 *
 * A follower knows the changes before its cursor. If it is no more than PFS_FEED_CHANGES behind, it
 * gets the slots from the ring, some at a time. If it is further behind, it looks again at the
 * blocks that have changed since its cursor or, if these are more than a quarter, at all blocks.
 * Before it looks, it sets its cursor to the present epoch: what changes while it looks is in the
 * ring, or in next time's blocks.
 *
 * Memory: 8 bytes a change in the ring, 8 MiB once it is full, and 8 bytes a block and column.
 * Locks: tree->lock is held for writing by changes, and in any way by followers. Each follower is
 * guarded by a lock of its owner. No function blocks. */
#ifndef PFS_FS_IMAGE_FEED_H
#define PFS_FS_IMAGE_FEED_H

#include "fs/image/watch.h"

#define PFS_FEED_CHANGES (UINT64_C(1) << 20) /* a power of two */

struct pfs_image;
struct pfs_stamps; /* gpu/table.h */

struct pfs_feed_follower {
	unsigned columns; /* the columns that it follows, as bits */
	uint64_t cursor;  /* the number of the first change that it does not know */
};

PFS_MUST_CHECK int pfs_feed_create(struct pfs_image *image);
void pfs_feed_destroy(struct pfs_image *image);

/* Notes a change, which raises the epoch. For watch.c alone. */
void pfs_feed_note(struct pfs_image *image, uint32_t slot, unsigned columns);

/* Gets the slots of the next changes of the follower's columns, in the order of the changes; a slot
 * that changed twice is there twice. *n is the room in `slots`, and then how many there are. The
 * cursor moves on. Returns 0 if there are no more changes, 1 if there may be: a call looks at
 * PFS_FEED_LOOKED changes at most. -EAGAIN: the follower is further behind than the ring reaches,
 * and has to look at blocks. */
#define PFS_FEED_LOOKED 16384u
PFS_MUST_CHECK int pfs_feed_next(const struct pfs_image *image, struct pfs_feed_follower *follower,
				 uint32_t *slots, size_t *n);

/* Returns true if some of the columns has changed in the block since a cursor stood at `since`. */
bool pfs_feed_has_changed(const struct pfs_image *image, unsigned columns, uint32_t block,
			  uint64_t since);
/* Returns true if at most a quarter of the blocks of the first `end` slots have changed since: look
 * at these. false: look at all. */
bool pfs_feed_is_near(const struct pfs_image *image, unsigned columns, uint32_t end,
		      uint64_t since);

/* Returns the blocks' epochs of one column, which stay as long as the image. */
const struct pfs_stamps *pfs_feed_stamps(const struct pfs_image *image,
					 enum pfs_column_number column);

#endif
