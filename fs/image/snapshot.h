/* SPDX-License-Identifier: MIT */
/* fs/image/snapshot.h - the image as it is at one moment, to be read later and without tree->lock.
 *
 * A snapshot declares the columns that it wants. Before a writer first changes a block (4,096
 * slots) of such a column, the block is copied. Snapshots that were taken between two changes share
 * the copy, and the last of them that needs it frees it. Until the snapshot ends, the bytes of
 * names that it has stay as they are, and a slot that it has and whose node is gone is not used
 * again: it is still found by its prime, and has its symlink's target. Slots and names that came
 * into use after the newest snapshot was taken are freed at once.
 *
 * A change never waits for a snapshot, nor fails because of one. Memory for copies is reserved
 * before the change takes the lock. If there is none when a block has to be copied, or all that is
 * kept would be more than an eighth of the image (in a small one, 64 MiB), a snapshot is given up:
 * the oldest, or where a block needs memory, the oldest that has columns. Reading its columns is
 * -ENOMEM from then on. The limit is a quarter higher for each given-up snapshot that has not
 * ended.
 *
 * Locks: as each function says. A mutex of its own is taken last, for as long as a block's copy
 * takes.
 * Not handled here: depths, references, the journal's marks, and what modules beside the image
 * derive from it. */
#ifndef PFS_FS_IMAGE_SNAPSHOT_H
#define PFS_FS_IMAGE_SNAPSHOT_H

#include "fs/image/watch.h"

#define PFS_SNAPSHOT_BLOCK 4096u /* slots */

struct pfs_snapshot;
struct pfs_image;

PFS_MUST_CHECK int pfs_snapshots_create(struct pfs_tree *tree);
void pfs_snapshots_destroy(struct pfs_tree *tree); /* none is open */

/* Takes a snapshot of the image as it is now, in microseconds. tree->lock is held for reading;
 * columns are bits (watch.h). -ENOMEM. */
PFS_MUST_CHECK int pfs_snapshot_take(struct pfs_snapshot **out, struct pfs_tree *tree,
				     unsigned columns);
/* Ends a snapshot. No lock is held; NULL is allowed. Copies that nobody needs any more are freed
 * here, names and slots by later changes. */
void pfs_snapshot_end(struct pfs_snapshot *snapshot);

/* Returns how many bytes pfs_snapshot_fetch writes for a whole block of the column (one bit). */
size_t pfs_snapshot_block_size(unsigned column);

/* Returns where an image has the column. */
void *pfs_snapshot_array(const struct pfs_image *image, unsigned column);

/* Writes the column's block, as it was, to `out`, which has room for a whole one and is aligned to
 * 8 bytes. What lies behind the image's last slot is undefined, and so is what a slot has that is
 * not live. The column was declared and not dropped. No lock is held; any thread. -ENOMEM: the
 * snapshot was given up, and `out` is undefined. */
PFS_MUST_CHECK int pfs_snapshot_fetch(struct pfs_snapshot *snapshot, void *out, unsigned column,
				      uint32_t block);
/* Says that the columns are not wanted any more; names and slots are. */
void pfs_snapshot_drop_columns(struct pfs_snapshot *snapshot);
/* Returns true if the snapshot was given up: a reader of its names has to end soon. */
bool pfs_snapshot_is_given_up(const struct pfs_snapshot *snapshot);

/* Returns the snapshot's number; they are counted from 1, in the order in which they are taken. */
uint64_t pfs_snapshot_number(const struct pfs_snapshot *snapshot);

/* ---- for changes of the image ---- */

/* Takes memory for the copies that a change of these columns of so many slots can need, as far as
 * it may. Blocks are what is copied: how many change is not known before, and no snapshot is given
 * up for what might be needed. To be called before tree->lock is taken. */
void pfs_snapshots_reserve(struct pfs_tree *tree, size_t slots, unsigned columns);
/* Returns the number of the newest snapshot that is open, and sets *first to that of the oldest; 0:
 * none is, and a slot may be used again. Any hold of tree->lock. */
uint64_t pfs_snapshots_open(const struct pfs_tree *tree, uint64_t *first);
/* What other modules keep for readers of the tree as it was. */
enum pfs_kept_kind {
	PFS_KEPT_ATTRIBUTES, /* older sets (fs/attr/attrnotes.h) */
	PFS_KEPT_PASTS,	     /* places that nodes had (old_places.h) */
	PFS_KEPT_KINDS,
};
/* Says that so many bytes more (or less) are kept elsewhere; they count. Any lock. */
void pfs_snapshots_keep(struct pfs_tree *tree, enum pfs_kept_kind kind, int64_t bytes);
/* Returns true if so many bytes more of a kind may be kept: all within the limit, and the kind
 * within half of it. Any lock. */
bool pfs_snapshots_has_room(struct pfs_tree *tree, enum pfs_kept_kind kind, uint64_t bytes);
/* Finds out anew what may be kept of the image, as taking a snapshot does. tree->lock is held. */
void pfs_snapshots_measure(struct pfs_tree *tree);
/* Keeps the slot from being used again before the snapshots that are open now have ended; if there
 * is no memory to remember that, it stays unused until the tree is closed. Returns false if none of
 * them has the slot. tree->lock is held for writing. */
bool pfs_snapshots_keep_slot(struct pfs_tree *tree, uint32_t slot);
/* Frees the slots and names that were kept for snapshots that have ended, in short holds. No lock
 * is held. */
void pfs_snapshots_drain(struct pfs_tree *tree);

struct pfs_snapshot_stats {
	unsigned open;
	/* Since the tree was opened: snapshots taken and given up; blocks copied. */
	uint64_t taken, given_up, copied;
	uint64_t bytes, most_bytes; /* memory for copies: now, and the most there was */
	uint64_t kept_names, kept_slots;
	uint64_t kept_elsewhere[PFS_KEPT_KINDS]; /* bytes */
	uint64_t taken_bytes, limit; /* about how many bytes all of that takes; and may take */
};
void pfs_snapshots_stats(struct pfs_tree *tree, struct pfs_snapshot_stats *out); /* no lock */

#endif
