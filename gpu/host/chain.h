/* SPDX-License-Identifier: MIT */
/* gpu/host/chain.h - codes of directories one after another: the path of the last one is kept, so
 * that in pre-order each takes one multiplication. */
#ifndef PFS_GPU_HOST_CHAIN_H
#define PFS_GPU_HOST_CHAIN_H

#include "gpu/engine_impl.h"

struct pfs_chain {
	const struct pfs_columns *c;
	struct pfs_chain_level *levels;
	size_t n, capacity;
	uint32_t *path; /* scratch */
	size_t path_capacity;
};

/* Gets the code of a directory. *limbs has n_limbs limbs, valid until the next call; n_limbs = 0:
 * it is deep. The chain starts as {.c = columns}. -ENOMEM. */
PFS_MUST_CHECK int pfs_chain_code(struct pfs_chain *chain, const uint32_t **limbs,
				  unsigned *n_limbs, uint32_t directory);
void pfs_chain_finish(struct pfs_chain *chain);

#endif
