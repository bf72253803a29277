/* SPDX-License-Identifier: MIT */
/* base/pool.h - a pool of threads that runs one job at a time, in pieces. Threads: any number of
 * callers; each works, too. If a caller holds a lock, it holds it until the last piece has ended,
 * even if a thread with a higher niceness works on that. */
#ifndef PFS_BASE_POOL_H
#define PFS_BASE_POOL_H

#include <stddef.h>

#include "base/err.h"

struct pfs_pool;

/* Opens a pool of n_threads, of which the caller of pfs_pool_run is one; 0: as many as there are
 * processors, if address space is not limited. The others start with the first job that has more
 * than one piece. niceness is theirs (thread.h): PFS_THREAD_NICE, or 0 if nobody is served
 * meanwhile or somebody waits. They are called pfs-pool if they are nice, else pfs-piece.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_pool_open(struct pfs_pool **out, unsigned n_threads, int niceness);
void pfs_pool_close(struct pfs_pool *pool); /* NULL is allowed */
/* Returns how many threads work on a job at the most, the caller included; NULL: 1. Fewer do if no
 * more can be started. */
unsigned pfs_pool_threads(const struct pfs_pool *pool);

/* Calls work(context, from, to) for pieces of 0..n, each of `grain` but the last, on the caller and
 * on those threads that wake up while pieces are left. Returns when all pieces are done. If another
 * caller has the threads, `work` itself included, or the pool is NULL, the caller does all
 * pieces. */
void pfs_pool_run(struct pfs_pool *pool, size_t n, size_t grain,
		  void (*work)(void *context, size_t from, size_t to), void *context);
/* As pfs_pool_run, but calls last(context) on the caller when no pieces are left, while other
 * threads may work on theirs: it can wait for them in a way of its own. It may not be called if the
 * caller does all pieces. */
void pfs_pool_run_last(struct pfs_pool *pool, size_t n, size_t grain,
		       void (*work)(void *context, size_t from, size_t to),
		       void (*last)(void *context), void *context);

#endif
