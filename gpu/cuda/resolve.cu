/* SPDX-License-Identifier: MIT */
/* gpu/cuda/resolve.cu - many paths, each by one thread, from component to component. */
#include "gpu/cuda/index.cuh"
#include "gpu/cuda/resident_kernels.h"

#define THREADS 128

/* ---- device code ---- */

/* Several names may have the same hash, and so the same key. */
static __device__ uint32_t find_child(const pfs_device_btree &t, const pfs_path_columns &c,
				      const pfs_path_way &walk)
{
	const uint64_t key = pfs_path_key(&walk, &c);
	pfs_index_place place = pfs_locate(t, t.d_level[t.top], key, 0);

	while (place.page != PFS_PAGE_NONE) {
		const uint32_t count = t.pages.d_count[place.page];

		for (; place.entry < count; place.entry++) {
			size_t at = (size_t)place.page * PFS_PAGE + place.entry;

			if (t.pages.d_keys[at] != key)
				return PFS_PATH_NOWHERE;
			if (pfs_path_is_named(&walk, &c, t.pages.d_values[at]))
				return t.pages.d_values[at];
		}
		place.page = t.pages.d_next[place.page];
		place.entry = 0;
	}
	return PFS_PATH_NOWHERE;
}

static __global__ void __launch_bounds__(THREADS)
	resolve_kernel(const pfs_device_btree t, const pfs_path_columns c,
		       const pfs_path_table table, const pfs_device_paths paths)
{
	PFS_EACH(i, paths.n)
	{
		const uint32_t from = i ? paths.d_ends[i - 1] : 0;
		pfs_path_way walk = pfs_path_begin(&c, paths.d_text + from, paths.d_ends[i] - from);

		if (paths.is_false)
			walk.slot = PFS_PATH_NOWHERE;
		pfs_path_jump(&walk, &table, &c);
		while (pfs_path_go_on(&walk, &c))
			walk.slot = find_child(t, c, walk);
		if (paths.d_slots)
			paths.d_slots[i] = walk.slot;
		if (paths.d_primes)
			paths.d_primes[i] = walk.slot < c.n_slots ? c.prime[walk.slot] : 0;
	}
}

/* ---- launches ---- */

extern "C" int pfs_cuda_resolve(const struct pfs_device_btree *index,
				const struct pfs_path_columns *columns,
				const struct pfs_path_table *table,
				const struct pfs_device_paths *paths, cudaStream_t stream)
{
	if (paths->n == 0)
		return 0;
	resolve_kernel<<<pfs_blocks(paths->n, THREADS), THREADS, 0, stream>>>(*index, *columns,
									      *table, *paths);
	return PFS_CUDA(cudaGetLastError());
}
