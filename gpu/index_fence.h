/* SPDX-License-Identifier: MIT */
/* gpu/index_fence.h - for back ends: one step down the levels of a B+-tree, as the host and kernels
 * make it. */
#ifndef PFS_GPU_INDEX_FENCE_H
#define PFS_GPU_INDEX_FENCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/both.h"
#include "gpu/index_value.h"

/* The last of n fences from `from` on, `shift` bits of position apart, that is not greater than the
 * pair; the first is known not to be.  Values are read only where keys are equal. */
PFS_BOTH uint32_t pfs_last_fence(const uint64_t *keys, const pfs_index_value *__restrict__ values,
				 uint32_t from, uint32_t n, int shift, uint64_t key,
				 pfs_index_value value)
{
	while (n > 1) {
		uint32_t half = n >> 1;
		uint64_t fence = keys[from + half];

		if (fence < key ||
		    (fence == key && values[(size_t)(from + half) << shift] <= value))
			from += half;
		n -= half;
	}
	return from;
}

#endif
