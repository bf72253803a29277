/* SPDX-License-Identifier: MIT */
/* gpu/host/pairs.h - what joins find: pairs of positions, collected in pieces that threads work
 * on. */
#ifndef PFS_GPU_HOST_PAIRS_H
#define PFS_GPU_HOST_PAIRS_H

#include "gpu/host/operators.h"

struct pfs_positions;

struct pfs_pairs {
	uint32_t *left, *right;
	size_t n, capacity;
};

/* Makes room for `more` pairs. -ENOMEM. */
PFS_MUST_CHECK int pfs_pairs_reserve(const struct pfs_run *run, struct pfs_pairs *pairs,
				     size_t more);
void pfs_pairs_close(const struct pfs_run *run, struct pfs_pairs *pairs);

static inline void pfs_pairs_add(struct pfs_pairs *pairs, uint32_t left, uint32_t right)
{
	pairs->left[pairs->n] = left;
	pairs->right[pairs->n++] = right;
}

/* Puts all pieces one after the other; they are closed, also on failure. -ENOMEM, also if there are
 * 2^32 pairs or more. */
PFS_MUST_CHECK int pfs_pairs_join(struct pfs_pairs *out, struct pfs_host_operators *host,
				  const struct pfs_run *run, struct pfs_pairs *pieces,
				  size_t n_pieces);

/* Makes the batch of the pairs: left's tables and vectors, then right's. */
PFS_MUST_CHECK int pfs_pairs_take(struct pfs_host_operators *host, const struct pfs_run *run,
				  struct pfs_tuples **out, const struct pfs_source *left,
				  const struct pfs_source *right, const struct pfs_pairs *pairs);

#endif
