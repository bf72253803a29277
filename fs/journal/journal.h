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

/* An operation's first step, without locks: makes sure that its changes can be kept and committed.
 * bytes: of content.  -EROFS, -ENOSPC, -ENOMEM; waits while too much is pending, or -EAGAIN with
 * nowait. */
PFS_MUST_CHECK int pfs_journal_reserve(struct pfs_tree *tree, size_t nodes, uint64_t bytes,
				       bool nowait);

/* As pfs_journal_reserve, for changes that remove or move names: these succeed on a full disk as
 * long as anything can. `bytes`: what history keeps of them. */
PFS_MUST_CHECK int pfs_journal_reserve_removal(struct pfs_tree *tree, size_t nodes, uint64_t bytes);

/* The same for a set of changes, of which it is known what columns of nodes it changes (fs/image/watch.h):
 * memory for snapshots is taken for these alone. */
PFS_MUST_CHECK int pfs_journal_reserve_set(struct pfs_tree *tree, size_t nodes, uint64_t bytes,
					   unsigned columns, bool removal);

/* Returns true if so many rows of any size, each on a page of its own, and so many bytes beside
 * them fit in the store's filesystem together with what is pending. */
bool pfs_journal_has_room(struct pfs_tree *tree, uint64_t rows, uint64_t bytes);

/* Waits, without locks, for the committer to fetch primes.  -EROFS when it cannot. */
PFS_MUST_CHECK int pfs_journal_fetch_primes(struct pfs_tree *tree);

/* Whatever is changed between hold and let_go goes into one group, unless it is so much that it waits for a commit.  No lock is
 * held; one thread at a time holds, and may do so again, others wait. */
void pfs_journal_hold(struct pfs_tree *tree);
void pfs_journal_let_go(struct pfs_tree *tree);

/* With tree->lock held for writing; cannot fail within what was reserved.  Raise the epoch. */
void pfs_journal_touch(struct pfs_tree *tree, uint32_t slot); /* the row changed or is new */
/* Returns true if the row is in the next group already; for reading is enough. */
bool pfs_journal_is_touched(const struct pfs_tree *tree, uint32_t slot);
void pfs_stamp(struct pfs_tree *tree, uint32_t slot, unsigned times,
	       struct pfs_time now); /* sets times to now, and touches */
void pfs_journal_unlinked(struct pfs_tree *tree, uint32_t slot); /* last name gone, maybe referenced */
/* Last reference gone too, content dropped: the slot is freed, at once or after the next cut. */
void pfs_journal_dropped(struct pfs_tree *tree, uint32_t slot);

/* Counts bytes of content that wait for the store from now on (or, negative, do not wait any more). */
void pfs_journal_pending(struct pfs_tree *tree, int64_t bytes);

/* Attributes of so many bytes were replaced, or will be: with tree->lock; where the store keeps no history nothing remains of them.
 * To be reserved before: what pfs_journal_former returns for them. */
void pfs_journal_replaced(struct pfs_tree *tree, uint64_t bytes);
uint64_t pfs_journal_former(const struct pfs_tree *tree, uint64_t bytes);

/* Gets the bytes of the store's filesystem, and how many are free, less what is pending. */
PFS_MUST_CHECK int pfs_journal_space(struct pfs_tree *tree, uint64_t *free_bytes,
				     uint64_t *total_bytes);

/* A group of a part's own, which the committer writes between two of the image's. */
struct pfs_errand {
	const struct pfs_part *part; /* whose commit it is */
	int (*write)(void *arg, struct pfs_store *store);
	void *arg;
	int error;
	bool done;
};

/* Sends an errand and waits until it is done, after those of others.  Returns the errand's error; -EROFS when nothing can be written. */
PFS_MUST_CHECK int pfs_journal_send(struct pfs_tree *tree, struct pfs_errand *errand);

PFS_MUST_CHECK int pfs_journal_create(struct pfs_tree *tree);
void pfs_journal_destroy(struct pfs_tree *tree);
PFS_MUST_CHECK int pfs_journal_start(struct pfs_tree *tree);
/* Commits what is pending and ends the committer.  Returns the commit's error. */
PFS_MUST_CHECK int pfs_journal_stop(struct pfs_tree *tree);

#endif
