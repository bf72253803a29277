/* SPDX-License-Identifier: MIT */
/* fs/journal/part.h - how whatever keeps more of a node than its row takes part in commits.
 *
 * A part is registered once, when its module is created.  What a part has pending is in memory
 * until a group is committed.  A group's life: `cut` of each part, in the order in which they were
 * registered, of the same moment as the rows, and `cut_some` of each until nothing is left; then
 * `write` of each in one transaction of the store, again and again until the transaction is
 * committed; then `done` of each.  The next group is cut only after that.
 *
 * Locks: the content lock protects what all parts have pending.  It is taken before tree->lock, and
 * never held while the store is read or written.  Each function says what its caller holds. */
#ifndef PFS_FS_JOURNAL_PART_H
#define PFS_FS_JOURNAL_PART_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"

struct pfs_store;

/* One part. Members that are NULL have nothing to do. */
struct pfs_part {
	const char *name;
	/* Makes what is dirty what the group has, or begins to. The content lock is held, since
	 * before the rows' moment, and tree->lock is not; it cannot fail. */
	void (*cut)(struct pfs_tree *tree);
	/* Goes on with that, for about n of them, and returns true if some are left. NULL: cut does
	 * all. The content lock, and tree->lock for writing, are held; it cannot fail. */
	bool (*cut_some)(struct pfs_tree *tree, unsigned n);
	/* Writes what the group has, between begin and commit of the store. The committer holds no
	 * lock: nobody but cut and done changes what the group has. The store's error; the group is
	 * then rolled back, and written again later. */
	int (*write)(struct pfs_tree *tree);
	/* Forgets what the group had: it is committed. No lock is held: it takes the content lock
	 * itself; it cannot fail. */
	void (*done)(struct pfs_tree *tree);
	/* Called before the last name goes of a node that has one of `flags` (enum pfs_node_flag):
	 * loads what the store forgets together with the record, so that the node stays whole while
	 * it is referenced. Adds to *former the bytes that history keeps of it. No lock is held.
	 * Returns 0 too when the node is gone; -ENOMEM; the store's errors. */
	int (*keep)(struct pfs_tree *tree, uint64_t ino, uint64_t *former);
	unsigned flags;
	/* Forgets what is pending of a node that has neither name nor reference any more.  Both locks are
	 * held; it cannot fail. */
	void (*drop)(struct pfs_tree *tree, uint64_t ino);
	/* Commits a group of the part's own (pfs_errand) in place of pfs_store_commit, and shows it
	 * to readers. The committer calls it without locks. The store's error. */
	int (*commit)(struct pfs_tree *tree);
};

/* Registers a part, whose struct stays as it is until the tree is closed. To be called before the
 * tree is shared. */
void pfs_take_part(struct pfs_tree *tree, const struct pfs_part *part);

/* ---- the content lock ---- */

void pfs_parts_lock(struct pfs_tree *tree);
/* Gives the lock back, and tells the journal by how much pfs_parts_unreported changed. */
void pfs_parts_unlock(struct pfs_tree *tree);
/* Gives the lock up until the condition is signalled, as pthread_cond_wait does. */
void pfs_parts_wait(struct pfs_tree *tree, pthread_cond_t *condition);
/* Returns where to count the bytes that have become pending (less than 0: that are not any more),
 * with the lock held. */
int64_t *pfs_parts_unreported(struct pfs_tree *tree);

/* ---- for operations on nodes ---- */

/* Calls `keep` of every part that has something of the node. *former: the bytes for which room is
 * to be reserved and pfs_journal_replaced to be called, as the node goes. No locks are held. */
PFS_MUST_CHECK int pfs_parts_keep(struct pfs_tree *tree, uint64_t ino, uint64_t *former);
/* Returns true if that has anything to do for the node. tree->lock is held. */
bool pfs_parts_must_keep(const struct pfs_tree *tree, uint32_t slot);
/* Calls `drop` of every part. Both locks are held. */
void pfs_parts_drop(struct pfs_tree *tree, uint64_t ino);

/* ---- for the committer ---- */

void pfs_parts_cut(struct pfs_tree *tree); /* the content lock is held */
/* Goes on with it for n of what the first part has that is not through; false: all are. Both locks
 * are held. */
bool pfs_parts_cut_some(struct pfs_tree *tree, unsigned n);
PFS_MUST_CHECK int pfs_parts_write(struct pfs_tree *tree);
void pfs_parts_done(struct pfs_tree *tree);

#endif
