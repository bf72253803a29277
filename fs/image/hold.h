/* SPDX-License-Identifier: MIT */
/* fs/image/hold.h - the one way to take tree->lock, which measures how long it is held.
 *
 * For the longest hold it remembers who had it: `by`, a string that lasts, as __func__ does. The
 * lock of a frozen tree keeps nobody waiting, and is not counted.
 *
 * What the thread frees during a hold by pfs_free_later (base/later.h) is freed at its end. */
#ifndef PFS_FS_IMAGE_HOLD_H
#define PFS_FS_IMAGE_HOLD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fair.h"

struct pfs_tree;

/* The longest hold of one kind. ns is wall-clock time, so it includes time when the thread did not
 * run. The clock ticks every few milliseconds: a shorter hold measures 0 or one tick. */
struct pfs_hold {
	uint64_t ns;
	uint64_t cpu_ns; /* processor time of the thread, perhaps in another hold; 0: not counted */
	const char *by, *cpu_by; /* NULL: there was none */
	uint64_t waited_ns; /* how long a writer has waited for the lock at the most; of readers it
			       is 0 */
};

struct pfs_tree_lock {
	struct pfs_fair fair;
	pthread_mutex_t mutex;
	_Atomic uint64_t
		waited_ns; /* the longest that a writer has waited; written with the lock */
	_Atomic uint64_t ns[2], cpu_ns[2]; /* copies of `longest`'s, read without the mutex */
	struct pfs_hold longest[2]; /* for reading, for writing; protected by the mutex */
};

/* The lock is fair (base/fair.h): a cut must not wait for ever behind a stream of lookups, nor a
 * lookup behind a stream of changes. */
void pfs_hold_create(struct pfs_tree *tree);
void pfs_hold_destroy(struct pfs_tree *tree);

/* Take the lock, for reading or for writing, and let it go. A thread holds one tree's lock at most
 * once. The time that it waits for the lock is not counted. */
void pfs_hold_read(struct pfs_tree *tree, const char *by);
void pfs_hold_write(struct pfs_tree *tree, const char *by);
void pfs_hold_end(struct pfs_tree *tree);
/* Ends a hold for reading, so that a waiting writer gets the lock, and begins another under the
 * same name. Returns 0. `tree` is a void pointer, so that this function can be the `look` that long
 * work calls between its pieces. */
int pfs_hold_pause(void *tree);
/* Returns true if a writer waits for the readers to end. */
bool pfs_hold_is_wanted(const struct pfs_tree *tree);

/* Makes holds that begin from now on count their processor time, too, which costs two system calls
 * each. VERIFY builds always do. */
void pfs_hold_count_cpu(void);
/* Returns the longest hold, and the longest wait, since this was last called with reset, or since
 * the tree was opened; reset: begins anew. A hold that nobody waits for may be long. */
struct pfs_hold pfs_hold_longest(struct pfs_tree *tree, bool is_write, bool reset);

#endif
