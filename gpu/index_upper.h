/* SPDX-License-Identifier: MIT */
/* gpu/index_upper.h - for back ends: the levels of a B+-tree above its leaves, in the host's
 * memory, where the leaves are on a device (PFS_INDEX_UPPER_HOST).
 *
 * The lowest level has a fence for each leaf: no entry of the leaf is less than it, and every entry
 * of the leaves before is. The levels above have every 16th fence, every 256th, and so on. Threads:
 * any number of searches, or one change. */
#ifndef PFS_GPU_INDEX_UPPER_H
#define PFS_GPU_INDEX_UPPER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/index_value.h"
#include "gpu/run.h"

#define PFS_UPPER_LEVELS 8 /* of 16 children each: for 2^32 leaves */

struct pfs_index_upper {
	uint64_t *keys;		      /* the fences' keys, of all levels, the lowest first */
	pfs_index_value *values;      /* the fences' values, of the lowest level; unique: 0 */
	size_t at[PFS_UPPER_LEVELS];  /* where each level begins in keys */
	uint32_t n[PFS_UPPER_LEVELS]; /* fences of each level; n[0] is the number of leaves */
	int top; /* the highest level */
	uint32_t room; /* leaves for which there is room */
};

void pfs_index_upper_free(struct pfs_index_upper *upper);

/* Makes room for n leaves; what there is stays. -ENOMEM: nothing has changed. */
PFS_MUST_CHECK int pfs_index_upper_reserve(struct pfs_index_upper *upper, uint32_t n);

/* Makes the levels above the lowest, whose n fences the caller has put into keys and values. These
 * strictly ascend, by key and then by value. */
void pfs_index_upper_set(struct pfs_index_upper *upper, uint32_t n);

/* Sets leaves[i] to the number of the leaf where (keys[i], value) is or would be: the last leaf
 * whose fence is not greater; the first, if there is none. Returns what run->poll returns. */
PFS_MUST_CHECK int pfs_index_upper_find(const struct pfs_index_upper *upper,
					const struct pfs_run *run, uint32_t *leaves,
					const uint64_t *keys, size_t n, pfs_index_value value);

size_t pfs_index_upper_memory(const struct pfs_index_upper *upper); /* bytes allocated */

#endif
