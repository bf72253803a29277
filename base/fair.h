/* SPDX-License-Identifier: MIT */
/* base/fair.h - a lock for reading or for writing that starves neither readers nor writers.
 *
 * A reader that comes waits if a writer holds the lock or waits for readers to go. When a writer
 * ends, all readers that wait by then enter before the next writer. So a reader waits for one
 * writer at most, and a writer waits only for readers that came before it. Writers have no order.
 *
 * Threads: any number. A thread may hold the lock only once: if a reader took it again, it could
 * wait for a writer that waits for that reader. A thread that has to wait looks again for some
 * microseconds, and then sleeps. If no thread has to wait, a reader adds to one counter when it
 * comes and to another when it goes. */
#ifndef PFS_BASE_FAIR_H
#define PFS_BASE_FAIR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All zeros: no thread holds it. */
struct pfs_fair {
	_Atomic uint32_t come;	  /* how many readers have come, and marks (fair.c) */
	_Atomic uint32_t gone;	  /* how many readers have gone, and a mark */
	_Atomic uint32_t before;  /* how many readers had come when the last writer set its marks */
	_Atomic uint32_t waiting; /* how many writers wait */
	_Atomic uint32_t asleep;  /* how many threads sleep until a writer ends */
	bool is_written; /* a writer holds the lock; only that writer changes it */
};

/* Take the lock for reading, or for writing. They wait if they have to. */
void pfs_fair_read(struct pfs_fair *lock);
void pfs_fair_write(struct pfs_fair *lock);
/* As pfs_fair_write, but returns false instead of waiting. */
bool pfs_fair_try_write(struct pfs_fair *lock);
/* Releases the lock, which the caller holds for reading or for writing. */
void pfs_fair_end(struct pfs_fair *lock);

/* Returns true if a writer waits for the lock. */
static inline bool pfs_fair_is_wanted(const struct pfs_fair *lock)
{
	return atomic_load_explicit(&lock->waiting, memory_order_relaxed) > 0;
}

#endif
