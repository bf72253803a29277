/* SPDX-License-Identifier: MIT */
/* gpu/host/operators.h - the host back end of the relational operators: its work in pieces, and
 * what its files share. */
#ifndef PFS_GPU_HOST_OPERATORS_H
#define PFS_GPU_HOST_OPERATORS_H

#include "gpu/engine_impl.h"

struct pfs_host_operators;

static inline struct pfs_host_operators *pfs_host_operators_of(struct pfs_operator_backend *b)
{
	return (struct pfs_host_operators *)b; /* its first member */
}

/* Makes a host back end with these families. The threads stay the caller's; NULL: whoever calls an
 * operator works alone. -ENOMEM. */
PFS_MUST_CHECK int pfs_host_operators_create(struct pfs_operator_backend **out,
					     const struct pfs_families *families,
					     struct pfs_pool *pool);
void pfs_host_operators_close(struct pfs_operator_backend *b);

struct pfs_pool *pfs_host_pool(const struct pfs_host_operators *host); /* may be NULL */
unsigned pfs_host_workers(const struct pfs_host_operators *host); /* NULL: 1 */

/* Calls work(context, worker, from, to) for pieces of 0..n, `grain` long but for the last, each
 * piece once and each worker's pieces one after another; worker < pfs_host_workers. run->poll is
 * called before each piece. Pieces begin in their order; none begins after one that failed, and the
 * error of the first piece of those that failed is returned. One caller at a time has the threads,
 * the others go on alone (base/pool.h). host NULL: the caller is a worker of another call, and does
 * all pieces. */
PFS_MUST_CHECK int
pfs_host_for(struct pfs_host_operators *host, const struct pfs_run *run, uint64_t n, uint64_t grain,
	     int (*work)(void *context, unsigned worker, uint64_t from, uint64_t to),
	     void *context);

/* Numbers by the code of a dictionary (dictionary.h makes them); to be freed by
 * pfs_codes_map_close, unless they are the dictionary's own. */
struct pfs_codes_map {
	const uint32_t *of;
	uint32_t *made; /* n of them */
	size_t n;
};

#endif
