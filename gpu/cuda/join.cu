/* SPDX-License-Identifier: MIT */
/* gpu/cuda/join.cu - equality joins: right's rows are put in the order of their keys' numbers; a slot a
 * number says how many and where, of one row the row itself, so that a unique key costs one random
 * read.  Left's rows look their slot up; pairs are counted by tiles, the tiles' places summed up, and the
 * pairs written.  And the merge of two indexes, which needs no table. */
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "gpu/cuda/keys.cuh"

#define THREADS 256
#define ROWS	4 /* a thread */
#define TILE	(THREADS * ROWS)

/* ---- device code ---- */

static __global__ void build_kernel(uint32_t *groups, uint32_t *counts, pfs_device_keys keys,
				    pfs_device_table table, pfs_device_places places)
{
	PFS_EACH(i, places.to - places.from)
	{
		uint64_t place = places.from + i;
		uint32_t group = PFS_NOWHERE;

		if (pfs_is_among(places, place)) {
			bool is_null;
			uint64_t number = pfs_number(keys, (uint32_t)place, &is_null);

			if (!is_null) {
				group = (uint32_t)pfs_enter(table, number);
				atomicAdd(&counts[group], 1u);
			}
		}
		groups[i] = group;
	}
}

static __global__ void scatter_kernel(uint32_t *rows, uint32_t *ends,
				      const uint32_t *__restrict__ groups, pfs_device_places places)
{
	PFS_EACH(i, places.to - places.from)
	{
		if (groups[i] != PFS_NOWHERE)
			rows[atomicAdd(&ends[groups[i]], 1u)] = (uint32_t)(places.from + i);
	}
}

static __global__ void pack_kernel(unsigned long long *slots, const uint32_t *__restrict__ counts,
				   const uint32_t *__restrict__ ends,
				   const uint32_t *__restrict__ rows, uint64_t n)
{
	PFS_EACH(i, n)
	{
		uint32_t count = counts[i], start = ends[i] - count;

		slots[i] = count ? (unsigned long long)count << 32 | (count == 1 ? rows[start] : start)
				 : 0;
	}
}

/* The rows' numbers in right's keys; those that none of right's rows can have are left out of *valid. */
static __device__ __forceinline__ void right_numbers(const pfs_device_keys &keys, uint64_t limit,
						     const uint32_t (&place)[ROWS],
						     uint64_t (&number)[ROWS], uint32_t *valid)
{
	for (uint32_t k = 0; k < keys.n; k++) {
		const pfs_device_key &key = keys.key[k];
		uint64_t range = (k + 1 < keys.n ? keys.key[k + 1].stride : limit) / key.stride;
		int64_t x[ROWS];

		pfs_values(key.value, place, x, valid);
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			uint64_t above;

			if (!(*valid >> r & 1))
				continue;
			if (key.d_map)
				x[r] = key.d_map[x[r]];
			above = (uint64_t)x[r] - (uint64_t)key.least + 1;
			if (x[r] < key.least || above >= range)
				*valid &= ~(1u << r);
			number[r] += above * key.stride;
		}
	}
}

static __global__ void __launch_bounds__(THREADS)
	find_partners_kernel(unsigned long long *found, uint64_t *sums,
			     const __grid_constant__ pfs_device_keys keys,
			     const __grid_constant__ pfs_device_table table, uint64_t limit,
			     const unsigned long long *__restrict__ slots,
			     const __grid_constant__ pfs_device_places places, bool outer)
{
	typedef cub::BlockReduce<uint64_t, THREADS> reduce;
	__shared__ typename reduce::TempStorage memory;
	uint64_t base = (uint64_t)blockIdx.x * TILE, sum = 0, number[ROWS] = {};
	uint32_t place[ROWS], among = 0, valid;

#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		uint64_t p = places.from + base + r * THREADS + threadIdx.x;

		place[r] = (uint32_t)p;
		among |= (uint32_t)pfs_is_among(places, p) << r;
	}
	valid = among;
	right_numbers(keys, limit, place, number, &valid);
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		unsigned long long slot = 0;

		if (valid >> r & 1) {
			uint64_t at = pfs_look_up(table, number[r], limit);

			slot = at == PFS_EMPTY ? 0 : __ldg(slots + at);
		}
		if (outer && slot == 0 && (among >> r & 1))
			slot = 1ull << 32 | PFS_NOWHERE;
		found[base + r * THREADS + threadIdx.x] = slot;
		sum += slot >> 32;
	}
	sum = reduce(memory).Sum(sum);
	if (threadIdx.x == 0)
		sums[blockIdx.x] = sum;
}

static __global__ void __launch_bounds__(THREADS)
	write_pairs_kernel(uint32_t *left, uint32_t *right, const uint64_t *__restrict__ starts,
			   const ulonglong2 *__restrict__ found, const uint32_t *__restrict__ rows,
			   uint64_t from)
{
	typedef cub::BlockScan<uint64_t, THREADS> scan;
	__shared__ typename scan::TempStorage memory;
	uint64_t place = (uint64_t)blockIdx.x * TILE + threadIdx.x * ROWS, sum = 0, at;
	unsigned long long slot[ROWS];

#pragma unroll
	for (int r = 0; r < ROWS; r += 2) {
		ulonglong2 two = __ldcs(found + (place + r) / 2);

		slot[r] = two.x;
		slot[r + 1] = two.y;
		sum += (two.x >> 32) + (two.y >> 32);
	}
	scan(memory).ExclusiveSum(sum, at);
	at += starts[blockIdx.x];
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		uint32_t n = (uint32_t)(slot[r] >> 32), first = (uint32_t)slot[r];

		for (uint32_t k = 0; k < n; k++, at++) {
			left[at] = (uint32_t)(from + place + r);
			right[at] = n == 1 ? first : rows[first + k];
		}
	}
}

/* The first of n ascending keys that is not below (or, above: not at most) key. */
static __device__ __forceinline__ uint64_t bound(const uint64_t *keys, uint64_t n, uint64_t key,
						 bool above)
{
	uint64_t low = 0, high = n;

	while (low < high) {
		uint64_t middle = (low + high) / 2;

		if (keys[middle] < key || (above && keys[middle] == key))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static __global__ void merge_count_kernel(uint64_t *pairs, uint32_t *firsts,
					  const uint64_t *__restrict__ left, uint64_t n,
					  const uint64_t *__restrict__ right, uint64_t m)
{
	PFS_EACH(i, n)
	{
		uint64_t first = bound(right, m, left[i], false), last = first;

		while (last < m && last < first + 8 && right[last] == left[i])
			last++;
		if (last == first + 8)
			last = bound(right, m, left[i], true);
		firsts[i] = (uint32_t)first;
		pairs[i] = last - first;
	}
}

static __global__ void merge_write_kernel(uint32_t *left_rows, uint32_t *right_rows,
					  const uint64_t *__restrict__ starts,
					  const uint64_t *__restrict__ pairs,
					  const uint32_t *__restrict__ firsts,
					  const uint32_t *__restrict__ left,
					  const uint32_t *__restrict__ right, uint64_t n)
{
	PFS_EACH(i, n)
	{
		for (uint64_t k = 0; k < pairs[i]; k++) {
			left_rows[starts[i] + k] = left[i];
			right_rows[starts[i] + k] = right[firsts[i] + k];
		}
	}
}

/* ---- launches ---- */

extern "C" int pfs_cuda_join_build(uint32_t *d_groups, uint32_t *d_counts,
				   const pfs_device_keys *keys, const pfs_device_table *table,
				   const pfs_device_places *places, cudaStream_t stream)
{
	build_kernel<<<pfs_grid(places->to - places->from), 256, 0, stream>>>(
		d_groups, d_counts, *keys, *table, *places);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_join_scatter(uint32_t *d_rows, uint32_t *d_ends, const uint32_t *d_groups,
				     const pfs_device_places *places, cudaStream_t stream)
{
	scatter_kernel<<<pfs_grid(places->to - places->from), 256, 0, stream>>>(d_rows, d_ends,
										d_groups, *places);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_join_pack(unsigned long long *d_slots, const uint32_t *d_counts,
				  const uint32_t *d_ends, const uint32_t *d_rows, uint64_t n,
				  cudaStream_t stream)
{
	pack_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_slots, d_counts, d_ends, d_rows, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" uint64_t pfs_cuda_join_tiles(uint64_t n)
{
	return (n + TILE - 1) / TILE;
}

extern "C" uint64_t pfs_cuda_join_tile(void)
{
	return TILE;
}

extern "C" int pfs_cuda_join_find(unsigned long long *d_found, uint64_t *d_sums,
				  const pfs_device_keys *keys, const pfs_device_table *table,
				  uint64_t limit, const unsigned long long *d_slots,
				  const pfs_device_places *places, bool outer, cudaStream_t stream)
{
	find_partners_kernel<<<pfs_blocks(places->to - places->from, TILE), THREADS, 0, stream>>>(
		d_found, d_sums, *keys, *table, limit, d_slots, *places, outer);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_join_write(uint32_t *d_left, uint32_t *d_right, const uint64_t *d_starts,
				   const unsigned long long *d_found, const uint32_t *d_rows,
				   uint64_t from, uint64_t n, cudaStream_t stream)
{
	write_pairs_kernel<<<pfs_blocks(n, TILE), THREADS, 0, stream>>>(
		d_left, d_right, d_starts, reinterpret_cast<const ulonglong2 *>(d_found), d_rows,
		from);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_merge_count(uint64_t *d_pairs, uint32_t *d_firsts, const uint64_t *d_left,
				    uint64_t n, const uint64_t *d_right, uint64_t m,
				    cudaStream_t stream)
{
	merge_count_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_pairs, d_firsts, d_left, n, d_right, m);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_merge_write(uint32_t *d_left_rows, uint32_t *d_right_rows,
				    const uint64_t *d_starts, const uint64_t *d_pairs,
				    const uint32_t *d_firsts, const uint32_t *d_left,
				    const uint32_t *d_right, uint64_t n, cudaStream_t stream)
{
	merge_write_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_left_rows, d_right_rows, d_starts,
							    d_pairs, d_firsts, d_left, d_right, n);
	return PFS_CUDA(cudaGetLastError());
}
