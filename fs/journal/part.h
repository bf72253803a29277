/* SPDX-License-Identifier: MIT */
/* fs/journal/part.h - how a module that keeps more of a node than its row takes part in commits.
 *
 * A part is registered once, when its module is created. It keeps what is pending in memory until a
 * group with it is committed. For each group the committer calls `cut` of each part, in the order
 * of registration, at the same moment as the rows are cut; then `cut_some` of each until nothing is
 * left; then `write` of each in one transaction of the store, again and again until a transaction
 * is committed; then `done` of each. The next group is cut only after that.
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

/* One part. A member that is NULL has nothing to do. */
struct pfs_part {
	const char *name;
	/* Moves what is dirty into the group, or begins to. The content lock is held, and has been
	 * since before the rows were cut; tree->lock is not held. It cannot fail. */
	void (*cut)(struct pfs_tree *tree);
	/* Moves about n values more into the group, and returns true if some are left. NULL: cut
	 * moves all. The content lock is held, and tree->lock for writing. It cannot fail. */
	bool (*cut_some)(struct pfs_tree *tree, unsigned n);
	/* Writes what the group has, between begin and commit of the store. No lock is held, since
	 * only cut and done change what the group has. Returns the store's error; the transaction
	 * is then rolled back, and write is called again later. */
	int (*write)(struct pfs_tree *tree);
	/* Forgets what the group had, which is committed. No lock is held: it takes the content
	 * lock itself. It cannot fail. */
	void (*done)(struct pfs_tree *tree);
	/* Called before a node that has one of `flags` (enum pfs_node_flag) loses its last name.
	 * Loads what the store removes together with the record, so that the node stays whole while
	 * it is referenced. Adds to *former the bytes that history keeps of it. No lock is held.
	 * Returns 0 also if the node is gone; -ENOMEM; the store's errors. */
	int (*keep)(struct pfs_tree *tree, uint64_t ino, uint64_t *former);
	unsigned flags;
	/* Forgets what is pending of a node that has lost its last name and reference. The content
	 * lock and tree->lock are held. It cannot fail. */
	void (*drop)(struct pfs_tree *tree, uint64_t ino);
	/* Commits an errand of the part (pfs_errand), in place of pfs_store_commit, and makes it
	 * visible to readers. No lock is held. Returns the store's error. */
	int (*commit)(struct pfs_tree *tree);
};

/* Registers a part, whose struct stays as it is until the tree is closed. To be called before the
 * tree is shared. */
void pfs_take_part(struct pfs_tree *tree, const struct pfs_part *part);

/* ---- the content lock ---- */

/* Takes the lock, which comes before tree->lock. It is held while records and content change, and
 * never while the store or an original is read. */
void pfs_parts_lock(struct pfs_tree *tree);
/* Gives the lock back, and tells the journal by how much pfs_parts_unreported changed. */
void pfs_parts_unlock(struct pfs_tree *tree);
/* Waits for the condition, without the lock meanwhile, as pthread_cond_wait does. */
void pfs_parts_wait(struct pfs_tree *tree, pthread_cond_t *condition);
/* Returns a counter. A part that holds the lock adds to it the bytes that have become pending, and
 * subtracts those that are no longer. */
int64_t *pfs_parts_unreported(struct pfs_tree *tree);

/* ---- for operations on nodes ---- */

/* Calls `keep` of every part that keeps something of the node. Sets *former to the bytes to reserve
 * room for, and to give to pfs_journal_replaced when the node is removed. No locks are held. */
PFS_MUST_CHECK int pfs_parts_keep(struct pfs_tree *tree, uint64_t ino, uint64_t *former);
/* Returns true if pfs_parts_keep has something to do for the node. tree->lock is held. */
bool pfs_parts_must_keep(const struct pfs_tree *tree, uint32_t slot);
/* Calls `drop` of every part. The content lock and tree->lock are held. */
void pfs_parts_drop(struct pfs_tree *tree, uint64_t ino);

/* ---- for the committer ---- */

/* Calls `cut` of every part. The content lock is held. */
void pfs_parts_cut(struct pfs_tree *tree);
/* Calls `cut_some`, for n values, of the first part that has some left. Returns false if no part
 * has. The content lock and tree->lock are held. */
bool pfs_parts_cut_some(struct pfs_tree *tree, unsigned n);
PFS_MUST_CHECK int pfs_parts_write(struct pfs_tree *tree);
void pfs_parts_done(struct pfs_tree *tree);

#endif
