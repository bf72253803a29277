/* SPDX-License-Identifier: MIT */
/* base/pool.h - a pool of threads: one job at a time, cut into pieces. */
#ifndef PFS_BASE_POOL_H
#define PFS_BASE_POOL_H

#include <stddef.h>

#include "base/err.h"

struct pfs_pool;

/* n_threads 0: one a processor.  The caller of run is one of them.  -ENOMEM; -EAGAIN. */
PFS_MUST_CHECK int pfs_pool_open(struct pfs_pool **out, unsigned n_threads);
void pfs_pool_close(struct pfs_pool *pool);
unsigned pfs_pool_threads(const struct pfs_pool *pool);

/* work(context, from, to) for pieces of 0..n, each `grain` long but for the last; returns when all
 * are done.  One caller at a time. */
void pfs_pool_run(struct pfs_pool *pool, size_t n, size_t grain,
		  void (*work)(void *context, size_t from, size_t to), void *context);

#endif
