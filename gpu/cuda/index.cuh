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

/* ---- single pairs, by a warp ---- */

/* The last leaf whose fence is not greater than the pair: 32 fences at a look. */
static __device__ __forceinline__ uint32_t pfs_find_leaf(const pfs_device_btree &t, uint64_t key,
							 pfs_index_value value, uint32_t lane)
{
	uint32_t from = 0, to = t.leaves.n;

	while (to - from > 1) {
		uint32_t step = (to - from + 31) / 32, at = from + lane * step;
		bool fits = lane == 0;
		uint32_t last;

		if (lane && at < to) {
			uint64_t fence = t.leaves.d_fence[at];

			fits = fence < key ||
			       (fence == key && t.leaves.d_fence_value[at] <= value);
		}
		last = 31 - __clz(__ballot_sync(PFS_ALL_LANES, fits));
		from += last * step;
		to = min(to, from + step);
	}
	return from;
}

/* Adds a pair to its page, unless it is there, which is returned, or the page is full. In a unique
 * index a pair of the key is the pair. Nobody else reads or changes the index. */
static __device__ __forceinline__ bool pfs_add_pair(const pfs_device_btree &t, uint32_t page,
						    uint64_t key, pfs_index_value value,
						    uint32_t lane, bool *is_full)
{
	size_t entry = (size_t)page * PFS_PAGE + lane;
	uint32_t count = t.pages.d_count[page];
	pfs_index_value value_here = t.pages.d_values[entry];
	uint64_t key_here = t.pages.d_keys[entry];
	bool same = lane < count && key_here == key && (t.is_unique || value_here == value);
	bool less = lane < count && !same && pfs_pair_less(key_here, value_here, key, value);
	uint32_t place = __popc(__ballot_sync(PFS_ALL_LANES, less));
	bool is_there = __any_sync(PFS_ALL_LANES, same);
	uint64_t key_before = __shfl_up_sync(PFS_ALL_LANES, key_here, 1);
	pfs_index_value value_before = __shfl_up_sync(PFS_ALL_LANES, value_here, 1);

	*is_full = !is_there && count == PFS_PAGE;
	if (is_there || *is_full)
		return is_there;
	if (lane >= place && lane <= count) {
		t.pages.d_keys[entry] = lane == place ? key : key_before;
		t.pages.d_values[entry] = lane == place ? value : value_before;
	}
	if (lane == 0)
		t.pages.d_count[page] = count + 1;
	return false;
}

#endif
