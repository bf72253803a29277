/* SPDX-License-Identifier: MIT */
/* gpu/cuda/total.cu - the group of all rows: threads keep totals in registers, an aggregate a row
 * of blocks, so that nothing is added to in memory but by each block once. */
#include "gpu/cuda/totals.cuh"

#define FOURS	2 /* a thread and turn: with int64 two times two loads of 16 bytes are under way */
#define ROWS	(FOURS * 4)
#define THREADS 256u

/* ---- device code ---- */

/* True: values of a column are raw elements and its base. */
static __device__ __forceinline__ bool is_raw(const pfs_device_column &c)
{
	return !c.is_real && !c.shift && c.mask == UINT64_MAX && (c.width == 8 || !c.is_signed);
}

static __device__ __forceinline__ unsigned long long as_total(const pfs_device_aggregate &a,
							      uint64_t raw)
{
	int64_t x = pfs_cooked(a.value.column, raw);

	if (a.d_rank)
		x = a.d_rank[x];
	if (a.op == PFS_DEVICE_SUM_REAL)
		return (unsigned long long)__double_as_longlong(pfs_as_real(a, x));
	return (unsigned long long)x;
}

/* One aggregate of a thread's rows; *count: of those that are not NULL. */
static __device__ unsigned long long fold_rows(const pfs_device_aggregate &a,
					       const pfs_device_places &places, uint32_t *count)
{
	const uint64_t tile = (uint64_t)THREADS * ROWS;
	const bool sums_raw = a.op == PFS_DEVICE_SUM && is_raw(a.value.column);
	unsigned long long total = pfs_neutral(a.op);

	for (uint64_t base = (places.from & ~UINT64_C(3)) + blockIdx.x * tile; base < places.to;
	     base += gridDim.x * tile) {
		uint64_t raw[ROWS];
		pfs_fours<FOURS> f;
		uint32_t known;

		pfs_take<FOURS>(f, places, base, THREADS);
		known = f.valid;
		if (!known)
			continue;
		pfs_load<FOURS>(raw, &known, a.value, f);
		*count += __popc(known);
		if (sums_raw) {
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				total += known >> r & 1 ? raw[r] : 0;
			continue;
		}
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			if (known >> r & 1)
				total = pfs_joined(a.op, total, as_total(a, raw[r]));
	}
	if (sums_raw)
		total += (unsigned long long)a.value.column.base * *count;
	return total;
}

/* How many places there are, and the first. */
static __device__ uint32_t count_rows(const pfs_device_places &places, uint32_t *first)
{
	const uint64_t tile = (uint64_t)THREADS * ROWS;
	uint32_t count = 0;

	if (!places.d_mask) {
		if (blockIdx.x || threadIdx.x)
			return 0;
		*first = (uint32_t)places.from;
		return (uint32_t)(places.to - places.from);
	}
	for (uint64_t base = (places.from & ~UINT64_C(3)) + blockIdx.x * tile; base < places.to;
	     base += gridDim.x * tile) {
		pfs_fours<FOURS> f;

		pfs_take<FOURS>(f, places, base, THREADS);
		if (f.valid) {
			uint32_t r = __ffs((int)f.valid) - 1;

			*first = min(*first, f.first[r / 4] + r % 4);
		}
		count += __popc(f.valid);
	}
	return count;
}

/* The block's total of what its threads have; thread 0 gets it. */
static __device__ unsigned long long join_block(int op, unsigned long long total,
						uint32_t (&count)[THREADS / 32],
						unsigned long long (&totals)[THREADS / 32],
						uint32_t *sum)
{
	for (int d = 16; d; d /= 2) {
		total = pfs_joined(op, total, __shfl_xor_sync(PFS_ALL_LANES, total, d));
		*sum += __shfl_xor_sync(PFS_ALL_LANES, *sum, d);
	}
	if ((threadIdx.x & 31) == 0) {
		totals[threadIdx.x / 32] = total;
		count[threadIdx.x / 32] = *sum;
	}
	__syncthreads();
	for (uint32_t w = 1; threadIdx.x == 0 && w < THREADS / 32; w++) {
		total = pfs_joined(op, total, totals[w]);
		*sum += count[w];
	}
	return total;
}

/* Blocks of y = n_aggregates count the rows. */
static __global__ void __launch_bounds__(THREADS)
	total_kernel(const __grid_constant__ pfs_device_groups groups,
		     const __grid_constant__ pfs_device_places places)
{
	__shared__ unsigned long long totals[THREADS / 32];
	__shared__ uint32_t counts[THREADS / 32];
	const bool counts_rows = blockIdx.y == groups.n_aggregates;
	const pfs_device_aggregate &a = groups.aggregate[counts_rows ? 0 : blockIdx.y];
	uint32_t count = 0, first = PFS_NOWHERE;
	unsigned long long total;
	int op = a.op;

	if (counts_rows) {
		count = count_rows(places, &first);
		op = PFS_DEVICE_MIN; /* of the places */
		total = first;
	} else {
		total = fold_rows(a, places, &count);
	}
	total = join_block(op, total, counts, totals, &count);
	if (threadIdx.x || !count)
		return;
	if (counts_rows) {
		atomicAdd(&groups.d_count[0], count);
		pfs_earlier(&groups.d_first[0], (uint32_t)total);
		return;
	}
	if (a.d_count)
		atomicAdd(&a.d_count[0], count);
	if (a.d_value)
		pfs_hand_over(a, 0, total);
}

/* ---- launches ---- */

extern "C" int pfs_cuda_group_all(const pfs_device_groups *groups, const pfs_device_places *places,
				  cudaStream_t stream)
{
	uint64_t n = places->to - (places->from & ~UINT64_C(3));
	pfs_total_planes t;
	pfs_device_groups added = pfs_lay_out(&t, groups, true, false);

	total_kernel<<<dim3(std::min(pfs_blocks(n, THREADS * ROWS), 132u * 8),
			    added.n_aggregates + 1),
		       THREADS, 0, stream>>>(added, *places);
	return PFS_CUDA(cudaGetLastError());
}
