/* SPDX-License-Identifier: MIT */
/* base/pool.h - a pool of threads that runs one job at a time, in pieces. Threads: one caller of
 * pfs_pool_run at a time, any number of callers of pfs_pool_share; the caller works, too. If it
 * holds a lock, it holds it until the last piece has ended, even if a thread with a higher niceness works on that. */
#ifndef PFS_BASE_POOL_H
#define PFS_BASE_POOL_H

#include <stddef.h>

#include "base/err.h"

struct pfs_pool;

/* Opens a pool of n_threads, of which the caller of pfs_pool_run is one; 0: as many as there are
 * processors. There are fewer if no more can be started. niceness is that of the pool's own threads
 * (thread.h): PFS_THREAD_NICE, or 0 in a program that serves nobody meanwhile. -ENOMEM. */
PFS_MUST_CHECK int pfs_pool_open(struct pfs_pool **out, unsigned n_threads, int niceness);
void pfs_pool_close(struct pfs_pool *pool);
unsigned pfs_pool_threads(const struct pfs_pool *pool);

/* Calls work(context, from, to) for pieces of 0..n, each of `grain` but the last, on the caller and
 * on those threads that wake up while pieces are left. Returns when all pieces are done. `work`
 * must not call functions of the pool. */
void pfs_pool_run(struct pfs_pool *pool, size_t n, size_t grain,
		  void (*work)(void *context, size_t from, size_t to), void *context);

/* As pfs_pool_run, but if another caller has the threads this one does all of its work himself. A pool that is shared is not used by pfs_pool_run. */
void pfs_pool_share(struct pfs_pool *pool, size_t n, size_t grain,
		    void (*work)(void *context, size_t from, size_t to), void *context);

#endif
