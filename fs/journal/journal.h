/* SPDX-License-Identifier: MIT */
/* fs/journal/journal.h - from the image to the store: what operations see of the journal.
 *
 * Locks: a mutex of its own, taken after tree->lock; each function says what its caller holds. */
#ifndef PFS_FS_JOURNAL_JOURNAL_H
#define PFS_FS_JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"
#include "meta/store.h"

struct pfs_part; /* fs/journal/part.h */

/* The first step of each operation that changes something: makes sure that changes of `nodes` rows
 * and of `bytes` of content can be kept in memory and committed. No locks are held. If too much is
 * pending, it waits, or returns -EAGAIN if nowait is set. -EROFS, -ENOSPC, -ENOMEM. */
PFS_MUST_CHECK int pfs_journal_reserve(struct pfs_tree *tree, size_t nodes, uint64_t bytes,
				       bool nowait);

/* As pfs_journal_reserve, for changes that remove or move names: these succeed on a full disk as
 * long as anything can. `bytes`: what history keeps of them. */
PFS_MUST_CHECK int pfs_journal_reserve_removal(struct pfs_tree *tree, size_t nodes, uint64_t bytes);

/* As pfs_journal_reserve (removal: as pfs_journal_reserve_removal), for a set of changes to these
 * columns alone (fs/image/watch.h): memory for snapshots is taken for no others. */
PFS_MUST_CHECK int pfs_journal_reserve_set(struct pfs_tree *tree, size_t nodes, uint64_t bytes,
					   unsigned columns, bool removal);

/* What a set of changes that is known before it begins needs at most. */
struct pfs_journal_need {
	uint64_t rows;	/* rows that change, each of which may have a page of its own */
	uint64_t made;	/* rows of new nodes: they follow each other at the ends of their tables */
	uint64_t gone;	/* rows that are removed: the store does not become larger by these */
	uint64_t bytes; /* of content, records, attributes and targets */
	bool removal;	/* as pfs_journal_reserve_removal */
};

/* Reserves what the changes need, and holds as pfs_journal_hold does. Until the last let_go this
 * thread's changes need no more room than that, and other threads' changes leave it. On failure
 * nothing is held; -ENOSPC: *lacking is how many bytes would have to be free. -EROFS, -ENOMEM. */
PFS_MUST_CHECK int pfs_journal_hold_for(struct pfs_tree *tree, uint64_t *lacking,
					const struct pfs_journal_need *need);

/* Returns true if changes of `rows` rows of tables beside `nodes`, which have `bytes` bytes and are
 * written in their order, fit in the store's filesystem, together with all that is pending. */
bool pfs_journal_has_room(struct pfs_tree *tree, uint64_t rows, uint64_t bytes);

/* Waits, without locks, for the committer to fetch primes.  -EROFS when it cannot. */
PFS_MUST_CHECK int pfs_journal_fetch_primes(struct pfs_tree *tree);

/* Changes that are made between hold and let_go go into one group, unless they are so many that
 * they have to wait for a commit. No lock is held. One thread at a time may hold, several times one
 * in another; other threads wait in hold. */
void pfs_journal_hold(struct pfs_tree *tree);
void pfs_journal_let_go(struct pfs_tree *tree);

/* The next five functions need tree->lock for writing, and cannot fail within what was reserved.
 *
 * touch notes that the row has changed or is new, so that the next group has it. */
void pfs_journal_touch(struct pfs_tree *tree, uint32_t slot);
/* Returns true if the row is in the next group already. tree->lock held for reading is enough. */
bool pfs_journal_is_touched(const struct pfs_tree *tree, uint32_t slot);
/* Returns the ctime that a change of the store at `now` gives the node: of one that came with a
 * folder it is none that a change of its original gets. */
struct pfs_time pfs_stamp_ctime(const struct pfs_tree *tree, uint32_t slot, struct pfs_time now);
/* Sets some of the node's times (PFS_COLUMN_ATIME and so on) to now, and touches it. With the mtime
 * the ctime is what pfs_stamp_ctime returns; alone it is `now`. */
void pfs_stamp(struct pfs_tree *tree, uint32_t slot, unsigned times,
	       struct pfs_time now);
/* Notes that the node has lost its last name; it may still be referenced. */
void pfs_journal_unlinked(struct pfs_tree *tree, uint32_t slot);
/* Notes that the node has lost its last reference, too, and its content has been dropped: the slot
 * is freed, at once or after the next cut. */
void pfs_journal_dropped(struct pfs_tree *tree, uint32_t slot);

/* Adds bytes of content to those that wait for the store (negative: they do not wait any more). */
void pfs_journal_pending(struct pfs_tree *tree, int64_t bytes);

/* pfs_journal_replaced notes that attributes of so many bytes were replaced, or will be, which the
 * store's history then keeps; tree->lock is held. pfs_journal_former returns the bytes that are to
 * be reserved for that before; 0 if the store keeps no history. */
void pfs_journal_replaced(struct pfs_tree *tree, uint64_t bytes);
uint64_t pfs_journal_former(const struct pfs_tree *tree, uint64_t bytes);

/* Gets the size of the store's filesystem, and its free bytes, less those that are pending. */
PFS_MUST_CHECK int pfs_journal_space(struct pfs_tree *tree, uint64_t *free_bytes,
				     uint64_t *total_bytes);

/* One part's own write, which the committer commits alone, between two of the image's groups. */
struct pfs_errand {
	const struct pfs_part *part; /* the part whose `commit` commits it */
	int (*write)(void *arg, struct pfs_store *store);
	void *arg;
	int error;
	bool done;
};

/* Sends an errand and waits until it is done, which is after errands sent before it. Returns the
 * errand's error; -EROFS: nothing can be written now. */
PFS_MUST_CHECK int pfs_journal_send(struct pfs_tree *tree, struct pfs_errand *errand);

/* Make and free the journal, for tree.c: before the tree is shared, and when nobody uses it any
 * more. -ENOMEM. */
PFS_MUST_CHECK int pfs_journal_create(struct pfs_tree *tree);
void pfs_journal_destroy(struct pfs_tree *tree);
/* Starts the committer, a thread. -ENOMEM, -EAGAIN. */
PFS_MUST_CHECK int pfs_journal_start(struct pfs_tree *tree);
/* Commits what is pending, and ends the committer. Returns the commit's error. */
PFS_MUST_CHECK int pfs_journal_stop(struct pfs_tree *tree);

#endif
