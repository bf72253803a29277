/* SPDX-License-Identifier: MIT */
/* base/fair.h - a lock for reading or for writing that keeps neither side out.
 *
 * Readers who come while a writer is in or waits stay outside; but when a writer ends, all readers
 * who wait by then go in before the next writer. So a reader waits for one writer at most, and of
 * the readers a writer waits for those who came before him. Among writers there is no order.
 *
 * Threads: any number. A thread holds the lock at most once: a reader who wants to read again may
 * wait for a writer who waits for him. Whoever waits looks again for some microseconds, and then
 * sleeps. If nobody has to wait, a reader costs an addition to one counter when he comes, and to
 * another when he goes. */
#ifndef PFS_BASE_FAIR_H
#define PFS_BASE_FAIR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All zero: nobody holds it. */
struct pfs_fair {
	_Atomic uint32_t come;	  /* counts the readers who came, and has marks (fair.c) */
	_Atomic uint32_t gone;	  /* counts the readers who went, and has a mark */
	_Atomic uint32_t before;  /* `come` without marks, as the last writer found it */
	_Atomic uint32_t waiting; /* writers who wait */
	_Atomic uint32_t asleep;  /* those who sleep until a writer ends */
	bool is_written; /* a writer is in; he alone writes it, while he is */
};

/* Take the lock for reading, or for writing; they wait if they have to. */
void pfs_fair_read(struct pfs_fair *lock);
void pfs_fair_write(struct pfs_fair *lock);
/* Returns false if pfs_fair_write would wait. */
bool pfs_fair_try_write(struct pfs_fair *lock);
/* Ends either. */
void pfs_fair_end(struct pfs_fair *lock);

/* Returns true if a writer waits. */
static inline bool pfs_fair_is_wanted(const struct pfs_fair *lock)
{
	return atomic_load_explicit(&lock->waiting, memory_order_relaxed) > 0;
}

#endif
