/* SPDX-License-Identifier: MIT */
/* gpu/cuda/index.cuh - how kernels search the B+-tree. */
#ifndef PFS_GPU_CUDA_INDEX_CUH
#define PFS_GPU_CUDA_INDEX_CUH

#include "gpu/cuda/device.cuh"
#include "gpu/cuda/index_kernels.h"
#include "gpu/index_fence.h"

/* Tells where a pair is or would be: at an entry of a leaf, or one past its last. */
struct pfs_index_place {
	uint32_t position, page, entry;
};

static __device__ __forceinline__ bool pfs_pair_less(uint64_t key, pfs_index_value value, uint64_t than_key,
						     pfs_index_value than_value)
{
	return key < than_key || (key == than_key && value < than_value);
}

/* Finds the place in the leaf at this position. */
static __device__ __forceinline__ pfs_index_place pfs_locate_in(const pfs_device_btree &t, uint32_t position,
								uint64_t key, pfs_index_value value)
{
	const uint64_t *keys;
	pfs_index_place place;
	uint32_t i = 0;

	place.position = position;
	place.page = t.leaves.d_page[position];
	keys = t.pages.d_keys + (size_t)place.page * PFS_PAGE;
#pragma unroll
	for (uint32_t half = PFS_PAGE / 2; half; half /= 2) {
		uint64_t k = keys[i + half - 1];

		if (k < key)
			i += half;
		else if (k == key &&
			 t.pages.d_values[(size_t)place.page * PFS_PAGE + i + half - 1] < value)
			i += half;
	}
	/* Of a full page of 32 the search above covers 31 entries; this comparison decides about
	 * the last. */
	if (i == PFS_PAGE - 1 && pfs_pair_less(keys[i], t.pages.d_values[(size_t)place.page * PFS_PAGE + i],
					       key, value))
		i++;
	place.entry = i;
	return place;
}

/* top: the top level's keys, in shared memory or not. */
static __device__ __forceinline__ pfs_index_place pfs_locate(const pfs_device_btree &t,
							     const uint64_t *top, uint64_t key,
							     pfs_index_value value)
{
	uint32_t i = pfs_last_fence(top, t.leaves.d_fence_value, 0, t.n_level[t.top],
				    t.top * PFS_FAN_BITS, key, value);

	for (int level = t.top - 1; level >= 0; level--) {
		uint32_t from = i << PFS_FAN_BITS;

		i = pfs_last_fence(t.d_level[level], t.leaves.d_fence_value, from,
				   min(1u << PFS_FAN_BITS, t.n_level[level] - from),
				   level * PFS_FAN_BITS, key, value);
	}
	return pfs_locate_in(t, i, key, value);
}

#endif
