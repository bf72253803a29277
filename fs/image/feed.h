/* SPDX-License-Identifier: MIT */
/* fs/image/feed.h - what has changed in the image, for whoever follows it later.
 *
 * The image has one feed: a ring with the slot and the columns of each of the last changes, and for
 * each column and block of PFS_BLOCK_ROWS slots the epoch of its last change (struct pfs_stamps,
 * as copies on a device want it, too). A change has the number that the epoch was before it, so
 * that nothing else counts them; its block's epoch is the one after it. Of a node that came or went
 * all columns have changed. That a slot became free is no change: nobody has seen it since its node
 * went.
 *
 * A follower has what came before its cursor. Who is no more than PFS_FEED_CHANGES behind gets the
 * slots from the ring, some at a time. Who fell behind further looks again at the blocks that have
 * changed since its cursor, or, if these are more than a quarter, at all; meanwhile its cursor
 * stands where it began to look, so that what changes behind it is in the ring, or in the blocks of
 * the next time.
 *
 * Memory: 8 bytes a change in the ring, 8 MiB once it is full, and 8 a block and column.
 * Locks: changes with tree->lock held for writing, followers with any hold; a follower itself is
 * locked by who has it. No function blocks. */
#ifndef PFS_FS_IMAGE_FEED_H
#define PFS_FS_IMAGE_FEED_H

#include "fs/image/watch.h"

#define PFS_FEED_CHANGES (UINT64_C(1) << 20) /* a power of two */

struct pfs_image;
struct pfs_stamps; /* gpu/table.h */

struct pfs_feed_follower {
	unsigned columns; /* that it follows, bits */
	uint64_t cursor;  /* it has the changes before this one */
};

PFS_MUST_CHECK int pfs_feed_create(struct pfs_image *image);
void pfs_feed_destroy(struct pfs_image *image);

/* Notes a change, which raises the epoch. For watch.c alone. */
void pfs_feed_note(struct pfs_image *image, uint32_t slot, unsigned columns);

/* Gets the slots of the next changes of the follower's columns, in their order, as often as they
 * changed; *n is the room for them, and then how many. The cursor moves on. Returns 0 if that is
 * all, 1 if there may be more: it looks at PFS_FEED_LOOKED changes at most. -EAGAIN: it fell behind
 * the ring, and has to look at blocks. */
#define PFS_FEED_LOOKED 16384u
PFS_MUST_CHECK int pfs_feed_next(const struct pfs_image *image, struct pfs_feed_follower *follower,
				 uint32_t *slots, size_t *n);

/* Returns true if some of the columns has changed in the block since a cursor stood at `since`. */
bool pfs_feed_has_changed(const struct pfs_image *image, unsigned columns, uint32_t block,
			  uint64_t since);
/* Returns true if so few blocks of the first `end` slots have changed since that they are to be
 * looked at alone; false: look at all. */
bool pfs_feed_is_near(const struct pfs_image *image, unsigned columns, uint32_t end,
		      uint64_t since);

/* Returns the blocks' epochs of one column, which stay as long as the image. */
const struct pfs_stamps *pfs_feed_stamps(const struct pfs_image *image,
					 enum pfs_column_number column);

#endif
