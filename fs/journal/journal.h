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

/* The same for what removes or moves names: works on a full disk as long as anything does. */
PFS_MUST_CHECK int pfs_journal_reserve_removal(struct pfs_tree *tree, size_t nodes);

/* Waits, without locks, for the committer to fetch primes.  -EROFS when it cannot. */
PFS_MUST_CHECK int pfs_journal_fetch_primes(struct pfs_tree *tree);

/* What is changed between the two goes into one group, unless it is so much that it waits for a
 * commit; no lock held.  One thread at a time: others wait; it may hold again what it holds. */
void pfs_journal_hold(struct pfs_tree *tree);
void pfs_journal_let_go(struct pfs_tree *tree);

/* With tree->lock held for writing; cannot fail within what was reserved.  Raise the epoch. */
void pfs_journal_touch(struct pfs_tree *tree, uint32_t slot); /* the row changed or is new */
void pfs_stamp(struct pfs_tree *tree, uint32_t slot, unsigned times,
	       struct pfs_time now); /* sets times to now, and touches */
void pfs_journal_unlinked(struct pfs_tree *tree, uint32_t slot); /* last name gone, maybe referenced */
/* Last reference gone too, content dropped: the slot is freed, at once or after the next cut. */
void pfs_journal_dropped(struct pfs_tree *tree, uint32_t slot);

/* Bytes of content now waiting for the store grew (or, negative, shrank). */
void pfs_journal_pending(struct pfs_tree *tree, int64_t bytes);

/* Bytes free, less what is pending, and total of the store's filesystem. */
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

/* Waits until it is done, after those of others.  The errand's error; -EROFS when nothing can be written. */
PFS_MUST_CHECK int pfs_journal_send(struct pfs_tree *tree, struct pfs_errand *errand);

PFS_MUST_CHECK int pfs_journal_create(struct pfs_tree *tree);
void pfs_journal_destroy(struct pfs_tree *tree);
PFS_MUST_CHECK int pfs_journal_start(struct pfs_tree *tree);
/* Commits what is pending and ends the committer.  The error if that failed. */
PFS_MUST_CHECK int pfs_journal_stop(struct pfs_tree *tree);

#endif
