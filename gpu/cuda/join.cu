/* SPDX-License-Identifier: MIT */
/* gpu/cuda/join.cu - equality joins.  Where right's keys are unique, a row a number: left's rows
 * look theirs up and write their pairs in the same pass.  If left is all rows of a range, it is
 * tried first whether each has a partner: then partners alone are written, a row's where the row
 * is.  Else right's rows are put in the order of their keys' numbers, and a slot a number says how
 * many and where; left's rows look their slot up, pairs are counted by tiles, the tiles' places
 * summed up, and the pairs written. */
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "gpu/cuda/keys.cuh"
#include "gpu/cuda/loads.cuh"

#define THREADS 256
#define ROWS	4 /* a thread */
#define TILE	(THREADS * ROWS)
#define UNIQUE_ROWS 8	 /* a thread, where right's keys are unique */
#define FOURS	    2	 /* a thread, where partners alone are written */

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

		slots[i] =
			count ? (unsigned long long)count << 32 | (count == 1 ? rows[start] : start)
			      : 0;
	}
}

/* The rows' numbers in right's keys; those that none of right's rows can have are left out of
 * *valid. */
template <int N>
static __device__ __forceinline__ void right_numbers(const pfs_device_keys &keys, uint64_t limit,
						     const uint32_t (&place)[N],
						     uint64_t (&number)[N], uint32_t *valid)
{
	for (uint32_t k = 0; k < keys.n; k++) {
		const pfs_device_key &key = keys.key[k];
		uint64_t range = (k + 1 < keys.n ? keys.key[k + 1].stride : limit) / key.stride;
		int64_t x[N];

		pfs_values(key.value, place, x, valid);
#pragma unroll
		for (int r = 0; r < N; r++) {
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

/* rows[number]: the row; *repeated is set if one has two. */
static __global__ void build_unique_kernel(uint32_t *rows, uint32_t *repeated,
					   const __grid_constant__ pfs_device_keys keys,
					   const __grid_constant__ pfs_device_table table,
					   const __grid_constant__ pfs_device_places places)
{
	PFS_EACH(i, places.to - places.from)
	{
		uint64_t place = places.from + i, number;
		bool is_null;

		if (!pfs_is_among(places, place))
			continue;
		number = pfs_number(keys, (uint32_t)place, &is_null);
		if (!is_null &&
		    atomicCAS(&rows[pfs_enter(table, number)], PFS_NOWHERE, (uint32_t)place) !=
			    PFS_NOWHERE)
			*repeated = 1;
	}
}

/* Where the warp's pairs, of which it has `mine`, go among all: in no order of blocks. */
static __device__ __forceinline__ uint64_t claim_room(unsigned long long *total, uint32_t mine)
{
	__shared__ uint32_t counts[THREADS / 32];
	__shared__ unsigned long long start;
	uint32_t warp = threadIdx.x >> 5, before = 0;

	if ((threadIdx.x & 31) == 0)
		counts[warp] = mine;
	__syncthreads();
	if (threadIdx.x == 0) {
		uint32_t sum = 0;

		for (int w = 0; w < THREADS / 32; w++)
			sum += counts[w];
		start = sum ? atomicAdd(total, (unsigned long long)sum) : 0;
	}
	for (uint32_t w = 0; w < warp; w++)
		before += counts[w];
	__syncthreads();
	return start + before;
}

static __global__ void __launch_bounds__(THREADS)
	join_unique_kernel(uint32_t *left, uint32_t *right, unsigned long long *total,
			   const __grid_constant__ pfs_device_keys keys,
			   const __grid_constant__ pfs_device_table table, uint64_t limit,
			   const uint32_t *__restrict__ rows,
			   const __grid_constant__ pfs_device_places places, bool outer)
{
	uint64_t base = places.from + (uint64_t)blockIdx.x * THREADS * UNIQUE_ROWS, at;
	uint64_t number[UNIQUE_ROWS] = {};
	uint32_t place[UNIQUE_ROWS], partner[UNIQUE_ROWS], pairs[UNIQUE_ROWS], among = 0, valid;
	uint32_t mine = 0;

#pragma unroll
	for (int r = 0; r < UNIQUE_ROWS; r++) {
		uint64_t p = base + r * THREADS + threadIdx.x;

		place[r] = (uint32_t)p;
		among |= (uint32_t)pfs_is_among(places, p) << r;
	}
	valid = among;
	right_numbers<UNIQUE_ROWS>(keys, limit, place, number, &valid);
#pragma unroll
	for (int r = 0; r < UNIQUE_ROWS; r++) {
		uint64_t found = PFS_EMPTY;

		if (valid >> r & 1)
			found = pfs_look_up(table, number[r], limit);
		partner[r] = found == PFS_EMPTY ? PFS_NOWHERE : __ldg(rows + found);
	}
#pragma unroll
	for (int r = 0; r < UNIQUE_ROWS; r++) {
		bool is_pair = partner[r] != PFS_NOWHERE || (outer && (among >> r & 1));

		pairs[r] = __ballot_sync(PFS_ALL_LANES, is_pair);
		mine += __popc(pairs[r]);
	}
	at = claim_room(total, mine);
#pragma unroll
	for (int r = 0; r < UNIQUE_ROWS; r++) {
		uint32_t lane = threadIdx.x & 31;

		if (pairs[r] >> lane & 1) {
			uint64_t to = at + __popc(pairs[r] & ((1u << lane) - 1));

			__stcs(&left[to], place[r]);
			__stcs(&right[to], partner[r]);
		}
		at += __popc(pairs[r]);
	}
}

/* As right_numbers, of rows in fours. */
static __device__ __forceinline__ void
right_numbers_of_fours(const pfs_device_keys &keys, uint64_t limit, const pfs_fours<FOURS> &f,
		       uint64_t (&number)[FOURS * 4], uint32_t *valid)
{
	for (uint32_t k = 0; k < keys.n; k++) {
		const pfs_device_key &key = keys.key[k];
		uint64_t range = (k + 1 < keys.n ? keys.key[k + 1].stride : limit) / key.stride;
		uint64_t raw[FOURS * 4];

		pfs_load<FOURS>(raw, valid, key.value, f);
#pragma unroll
		for (int r = 0; r < FOURS * 4; r++) {
			int64_t x;
			uint64_t above;

			if (!(*valid >> r & 1))
				continue;
			x = pfs_cooked(key.value.column, raw[r]);
			if (key.d_map)
				x = key.d_map[x];
			above = (uint64_t)x - (uint64_t)key.least + 1;
			if (x < key.least || above >= range)
				*valid &= ~(1u << r);
			number[r] += above * key.stride;
		}
	}
}

/* right[i]: the partner of the i-th place, or none; *missing is set if one has none.  Unless that
 * is allowed, blocks that see it set leave. */
static __global__ void __launch_bounds__(THREADS)
	join_partners_kernel(uint32_t *right, uint32_t *missing,
			     const __grid_constant__ pfs_device_keys keys,
			     const __grid_constant__ pfs_device_table table, uint64_t limit,
			     const uint32_t *__restrict__ rows,
			     const __grid_constant__ pfs_device_places places, bool outer)
{
	const uint32_t is_vain = *reinterpret_cast<volatile uint32_t *>(missing);
	uint64_t number[FOURS * 4] = {};
	uint32_t partner[FOURS * 4], valid, lacking = 0;
	pfs_fours<FOURS> f;

	pfs_take<FOURS>(f, places,
			(places.from & ~UINT64_C(3)) + (uint64_t)blockIdx.x * THREADS * FOURS * 4,
			THREADS);
	valid = f.valid;
	right_numbers_of_fours(keys, limit, f, number, &valid);
	if (is_vain && !outer)
		return;
#pragma unroll
	for (int r = 0; r < FOURS * 4; r++) {
		uint64_t found = PFS_EMPTY;

		if (valid >> r & 1)
			found = pfs_look_up(table, number[r], limit);
		partner[r] = found == PFS_EMPTY ? PFS_NOWHERE : __ldg(rows + found);
	}
#pragma unroll
	for (int i = 0; i < FOURS; i++) {
		const uint32_t *four = partner + 4 * i, bits = f.valid >> 4 * i & 15;
		/* The first four may begin before the places do. */
		uint32_t *out = right + ((int64_t)f.first[i] - (int64_t)places.from);

		if (bits == 15 && (places.from & 3) == 0)
			__stcs(reinterpret_cast<uint4 *>(out),
			       make_uint4(four[0], four[1], four[2], four[3]));
#pragma unroll
		for (int r = 0; r < 4; r++) {
			lacking |= bits >> r & (four[r] == PFS_NOWHERE);
			if ((bits >> r & 1) && (bits != 15 || (places.from & 3)))
				out[r] = four[r];
		}
	}
	if (lacking)
		*missing = 1;
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
	right_numbers<ROWS>(keys, limit, place, number, &valid);
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

extern "C" int pfs_cuda_join_build_unique(uint32_t *d_rows, uint32_t *d_repeated,
					  const pfs_device_keys *keys,
					  const pfs_device_table *table,
					  const pfs_device_places *places, cudaStream_t stream)
{
	build_unique_kernel<<<pfs_grid(places->to - places->from), 256, 0, stream>>>(
		d_rows, d_repeated, *keys, *table, *places);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_join_unique(uint32_t *d_left, uint32_t *d_right, uint64_t *d_total,
				    const pfs_device_keys *keys, const pfs_device_table *table,
				    uint64_t limit, const uint32_t *d_rows,
				    const pfs_device_places *places, bool outer,
				    cudaStream_t stream)
{
	join_unique_kernel<<<pfs_blocks(places->to - places->from, THREADS * UNIQUE_ROWS), THREADS,
			     0, stream>>>(d_left, d_right,
					  reinterpret_cast<unsigned long long *>(d_total), *keys,
					  *table, limit, d_rows, *places, outer);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_join_partners(uint32_t *d_right, uint32_t *d_missing,
				      const pfs_device_keys *keys, const pfs_device_table *table,
				      uint64_t limit, const uint32_t *d_rows,
				      const pfs_device_places *places, bool outer,
				      cudaStream_t stream)
{
	join_partners_kernel<<<pfs_blocks(places->to - (places->from & ~UINT64_C(3)),
					  THREADS * FOURS * 4),
			       THREADS, 0, stream>>>(d_right, d_missing, *keys, *table, limit,
						     d_rows, *places, outer);
	return PFS_CUDA(cudaGetLastError());
}
