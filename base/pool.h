/* SPDX-License-Identifier: MIT */
/* base/pool.h - a pool of threads that runs one job at a time, cut into pieces.
 * Threads: one caller of pfs_pool_run at a time; the caller works, too. It may hold a lock for one
 * run of pieces, and waits for the last of them whatever the niceness of who has it. */
#ifndef PFS_BASE_POOL_H
#define PFS_BASE_POOL_H

#include <stddef.h>

#include "base/err.h"

struct pfs_pool;

/* Opens a pool of n_threads, the later caller of run included; 0: as many as there are processors.
 * niceness is that of the others (thread.h): PFS_THREAD_NICE, or 0 where nobody is served
 * meanwhile. There are fewer if no more can be started. -ENOMEM; *out is NULL then. */
PFS_MUST_CHECK int pfs_pool_open(struct pfs_pool **out, unsigned n_threads, int niceness);
void pfs_pool_close(struct pfs_pool *pool);
unsigned pfs_pool_threads(const struct pfs_pool *pool);

/* Calls work(context, from, to) for pieces of 0..n, each `grain` long but for the last, on those threads
 * that come while there are some; returns when all are done. work must not call back into the pool. */
void pfs_pool_run(struct pfs_pool *pool, size_t n, size_t grain,
		  void (*work)(void *context, size_t from, size_t to), void *context);

#endif
