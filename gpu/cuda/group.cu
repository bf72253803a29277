/* SPDX-License-Identifier: MIT */
/* gpu/cuda/group.cu - grouping: each row adds itself to the totals of its group.
 *
 * A block keeps totals in shared memory and adds them to the device's at its end.  Few groups have all
 * of theirs there, in several copies, interleaved so that neighbouring lanes seldom meet.  Of many, those
 * that a block meets first have theirs there: where some groups are much larger than others these are
 * among them, and the second-level cache is spared what it is worst at, additions to one place. */
#include "gpu/cuda/keys.cuh"
#include "gpu/relation.h"

#define THREADS	   512u
#define ROWS	   4	       /* a thread and turn */
#define SHARED_MAX (96u << 10) /* bytes: two blocks fit a multiprocessor */

/* ---- device code ---- */

/* 64-bit additions to shared memory are loops; two of 32 bits with the carry are not. */
static __device__ __forceinline__ void add_shared(unsigned long long *at, uint64_t x)
{
	uint32_t *word = reinterpret_cast<uint32_t *>(at);
	uint32_t low = (uint32_t)x, high = (uint32_t)(x >> 32);

	high += atomicAdd(word, low) + low < low;
	if (high)
		atomicAdd(word + 1, high);
}

static __device__ __forceinline__ void lessen(unsigned long long *at, int64_t x)
{
	if (x < *reinterpret_cast<volatile long long *>(at))
		atomicMin(reinterpret_cast<long long *>(at), (long long)x);
}

static __device__ __forceinline__ void raise(unsigned long long *at, int64_t x)
{
	if (x > *reinterpret_cast<volatile long long *>(at))
		atomicMax(reinterpret_cast<long long *>(at), (long long)x);
}

static __device__ __forceinline__ void add_place(uint32_t *first, uint32_t place)
{
	if (place < *reinterpret_cast<volatile uint32_t *>(first))
		atomicMin(first, place);
}

static __device__ __forceinline__ void add_value(const pfs_device_aggregate &a, bool is_shared,
						 unsigned long long *at, int64_t x)
{
	switch (a.op) {
	case PFS_DEVICE_COUNT:
		return;
	case PFS_DEVICE_SUM:
		if (is_shared)
			add_shared(at, (uint64_t)x);
		else
			atomicAdd(at, (unsigned long long)x);
		return;
	case PFS_DEVICE_SUM_REAL:
		atomicAdd(reinterpret_cast<double *>(at),
			  a.value.column.is_real ? pfs_real_of_order(x) : (double)x);
		return;
	case PFS_DEVICE_MIN:
		lessen(at, x);
		return;
	case PFS_DEVICE_MAX:
		raise(at, x);
		return;
	}
}

/* A block's totals: n places, of each of the aggregates in turn; with ids: whose each place is. */
struct shared_totals {
	unsigned long long *values;
	uint32_t *first, *count, *counts, *ids;
	uint32_t n;
};

static __device__ shared_totals lay_out(unsigned long long *memory, uint32_t n,
					uint32_t n_aggregates)
{
	shared_totals t;

	t.n = n;
	t.values = memory;
	t.first = reinterpret_cast<uint32_t *>(memory + (size_t)n * n_aggregates);
	t.count = t.first + n;
	t.ids = t.count + n;
	t.counts = t.ids + n;
	return t;
}

static __device__ unsigned long long neutral(int op)
{
	return op == PFS_DEVICE_MIN   ? (unsigned long long)LLONG_MAX
	       : op == PFS_DEVICE_MAX ? (unsigned long long)LLONG_MIN
				      : 0;
}

static __device__ void clear(const shared_totals &t, const pfs_device_groups &groups)
{
	for (uint32_t i = threadIdx.x; i < t.n; i += blockDim.x) {
		t.first[i] = t.ids[i] = PFS_NOWHERE;
		t.count[i] = 0;
		for (uint32_t k = 0; k < groups.n_aggregates; k++) {
			t.values[k * t.n + i] = neutral(groups.aggregate[k].op);
			t.counts[k * t.n + i] = 0;
		}
	}
}

/* The block's place for the group, or PFS_NOWHERE: its place is another's. */
static __device__ __forceinline__ uint32_t claim(const shared_totals &t, uint32_t group)
{
	uint32_t at = (uint32_t)pfs_mix(group) & (t.n - 1), there = t.ids[at];

	if (there == PFS_NOWHERE)
		there = atomicCAS(&t.ids[at], PFS_NOWHERE, group);
	return there == PFS_NOWHERE || there == group ? at : PFS_NOWHERE;
}

/* The numbers of the rows' groups, and where the block has their totals. */
template <bool DIRECT>
static __device__ __forceinline__ void find_groups(const pfs_device_keys &keys,
						   const pfs_device_table &table,
						   const shared_totals &t, uint32_t copies,
						   const uint32_t (&place)[ROWS], uint32_t valid,
						   uint32_t (&group)[ROWS], uint32_t (&at)[ROWS])
{
	uint64_t number[ROWS] = {};

	for (uint32_t k = 0; k < keys.n; k++) {
		const pfs_device_key &key = keys.key[k];
		int64_t x[ROWS];
		uint32_t known = valid;

		pfs_values(key.value, place, x, &known);
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			if (known >> r & 1)
				number[r] += ((uint64_t)x[r] - (uint64_t)key.least + 1) * key.stride;
	}
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		if (!(valid >> r & 1))
			continue;
		group[r] = DIRECT ? (uint32_t)number[r] : (uint32_t)pfs_enter(table, number[r]);
		at[r] = DIRECT ? group[r] * copies + (threadIdx.x & (copies - 1))
			       : claim(t, group[r]);
	}
}

static __device__ __forceinline__ void add_rows(const pfs_device_groups &groups,
						const shared_totals &t,
						const uint32_t (&place)[ROWS], uint32_t valid,
						const uint32_t (&group)[ROWS],
						const uint32_t (&at)[ROWS])
{
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		if (!(valid >> r & 1))
			continue;
		bool is_shared = at[r] != PFS_NOWHERE;

		atomicAdd(is_shared ? &t.count[at[r]] : &groups.d_count[group[r]], 1u);
		add_place(is_shared ? &t.first[at[r]] : &groups.d_first[group[r]], place[r]);
	}
	for (uint32_t k = 0; k < groups.n_aggregates; k++) {
		const pfs_device_aggregate &a = groups.aggregate[k];
		int64_t x[ROWS];
		uint32_t known = valid;

		if (!a.d_value && !a.d_count)
			continue;
		pfs_values(a.value, place, x, &known);
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			if (!(known >> r & 1))
				continue;
			bool is_shared = at[r] != PFS_NOWHERE;

			if (a.d_count)
				atomicAdd(is_shared ? &t.counts[k * t.n + at[r]]
						    : &a.d_count[group[r]],
					  1u);
			add_value(a, is_shared,
				  is_shared ? &t.values[k * t.n + at[r]] : &a.d_value[group[r]],
				  x[r]);
		}
	}
}

/* Place i of the block's totals is added to the device's of the group. */
static __device__ void hand_over(const pfs_device_groups &groups, const shared_totals &t, uint32_t i,
				 uint32_t group)
{
	atomicAdd(&groups.d_count[group], t.count[i]);
	add_place(&groups.d_first[group], t.first[i]);
	for (uint32_t k = 0; k < groups.n_aggregates; k++) {
		const pfs_device_aggregate &a = groups.aggregate[k];
		unsigned long long value = t.values[k * t.n + i];

		if (a.d_count && t.counts[k * t.n + i])
			atomicAdd(&a.d_count[group], t.counts[k * t.n + i]);
		if (!a.d_value)
			continue;
		if (a.op == PFS_DEVICE_SUM_REAL)
			atomicAdd(reinterpret_cast<double *>(&a.d_value[group]),
				  __longlong_as_double((long long)value));
		else
			add_value(a, false, &a.d_value[group], (int64_t)value);
	}
}

/* DIRECT: t.n = groups * copies, and group g's copies lie side by side. */
template <bool DIRECT>
static __global__ void __launch_bounds__(THREADS)
	group_kernel(const __grid_constant__ pfs_device_groups groups,
		     const __grid_constant__ pfs_device_keys keys,
		     const __grid_constant__ pfs_device_table table,
		     const __grid_constant__ pfs_device_places places, uint32_t n, uint32_t copies)
{
	extern __shared__ unsigned long long memory[];
	const shared_totals t = lay_out(memory, n, groups.n_aggregates);
	const uint64_t step = (uint64_t)gridDim.x * THREADS * ROWS;

	clear(t, groups);
	__syncthreads();
	for (uint64_t base = places.from + (uint64_t)blockIdx.x * THREADS * ROWS; base < places.to;
	     base += step) {
		uint32_t place[ROWS], group[ROWS], at[ROWS], valid = 0;

#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			uint64_t p = base + r * THREADS + threadIdx.x;

			place[r] = (uint32_t)p;
			valid |= (uint32_t)pfs_is_among(places, p) << r;
		}
		if (!valid)
			continue;
		find_groups<DIRECT>(keys, table, t, copies, place, valid, group, at);
		add_rows(groups, t, place, valid, group, at);
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < t.n; i += blockDim.x)
		if (t.count[i])
			hand_over(groups, t, i, DIRECT ? i / copies : t.ids[i]);
}

static __global__ void group_bits_kernel(uint32_t *bits, const uint32_t *__restrict__ count,
					 uint64_t n)
{
	PFS_EACH(i, (n + 31) / 32 * 32)
	{
		uint32_t word = __ballot_sync(PFS_ALL_LANES, i < n && count[i] != 0);

		if ((threadIdx.x & 31) == 0)
			bits[i / 32] = word;
	}
}

/* What SQLite shows of a total: a number as 8 bytes. */
static __device__ unsigned long long shown(const pfs_device_aggregate &a, int as,
					   unsigned long long value, uint32_t count)
{
	bool is_real = a.value.column.is_real;
	double sum = a.op == PFS_DEVICE_SUM_REAL ? __longlong_as_double((long long)value)
						 : (double)(long long)value;

	switch (as) {
	case PFS_COUNT_ALL:
	case PFS_COUNT:
		return count;
	case PFS_TOTAL:
		return (unsigned long long)__double_as_longlong(sum);
	case PFS_AVG:
		return (unsigned long long)__double_as_longlong(sum / count);
	case PFS_MIN:
	case PFS_MAX:
		return is_real ? (unsigned long long)__double_as_longlong(
					 pfs_real_of_order((int64_t)value))
			       : value;
	default:
		return value;
	}
}

static __global__ void group_result_kernel(unsigned long long *out, uint32_t *nulls,
					   pfs_device_aggregate a, int as,
					   const uint32_t *__restrict__ group_count,
					   const uint32_t *__restrict__ list, uint64_t n)
{
	PFS_EACH(i, (n + 31) / 32 * 32)
	{
		bool is_null = false;

		if (i < n) {
			uint32_t g = list[i], count = (a.d_count ? a.d_count : group_count)[g];

			out[i] = shown(a, as, a.d_value ? a.d_value[g] : 0, count);
			is_null = count == 0 && as != PFS_COUNT_ALL && as != PFS_COUNT &&
				  as != PFS_TOTAL;
		}
		uint32_t word = __ballot_sync(PFS_ALL_LANES, is_null);
		if ((threadIdx.x & 31) == 0)
			nulls[i / 32] = word;
	}
}

static __global__ void __launch_bounds__(256)
	bounds_kernel(pfs_device_bounds *bounds,
		      const __grid_constant__ pfs_device_value value, uint64_t n)
{
	__shared__ long long leasts[8], mosts[8];
	__shared__ double aboves[8], belows[8];
	long long least = LLONG_MAX, most = LLONG_MIN;
	double above = 0, below = 0;

	PFS_EACH(i, n)
	{
		int64_t x;

		if (!pfs_value(value, (uint32_t)i, &x))
			continue;
		least = min(least, (long long)x);
		most = max(most, (long long)x);
		if (x > 0)
			above += (double)x;
		else
			below -= (double)x;
	}
	for (int d = 16; d; d /= 2) {
		least = min(least, __shfl_xor_sync(PFS_ALL_LANES, least, d));
		most = max(most, __shfl_xor_sync(PFS_ALL_LANES, most, d));
		above += __shfl_xor_sync(PFS_ALL_LANES, above, d);
		below += __shfl_xor_sync(PFS_ALL_LANES, below, d);
	}
	if ((threadIdx.x & 31) == 0) {
		leasts[threadIdx.x / 32] = least;
		mosts[threadIdx.x / 32] = most;
		aboves[threadIdx.x / 32] = above;
		belows[threadIdx.x / 32] = below;
	}
	__syncthreads();
	if (threadIdx.x)
		return;
	for (int w = 0; w < 8; w++) {
		atomicMin(&bounds->least, leasts[w]);
		atomicMax(&bounds->most, mosts[w]);
		atomicAdd(&bounds->above, aboves[w]);
		atomicAdd(&bounds->below, belows[w]);
	}
}

/* ---- launches ---- */

/* Places of totals that shared memory has room for. */
static uint32_t room_for(const pfs_device_groups *groups, size_t *one)
{
	*one = 12 + 12 * (size_t)groups->n_aggregates;
	return (uint32_t)(SHARED_MAX / *one);
}

/* All groups, a power of two copies of each; 0: not even one. */
static uint32_t copies_of(const pfs_device_groups *groups, uint32_t room)
{
	uint32_t copies = 32;

	while (copies && groups->n * copies > room)
		copies /= 2;
	return copies;
}

extern "C" int pfs_cuda_group(const pfs_device_groups *groups, const pfs_device_keys *keys,
			      const pfs_device_table *table, const pfs_device_places *places,
			      cudaStream_t stream)
{
	uint64_t rows = places->to - places->from;
	unsigned blocks = std::min(pfs_blocks(rows, THREADS * ROWS), 132u * 2);
	size_t one;
	uint32_t room = room_for(groups, &one), n = 1;
	uint32_t copies = table->capacity ? 0 : copies_of(groups, room);
	const void *kernel = copies ? reinterpret_cast<const void *>(group_kernel<true>)
				    : reinterpret_cast<const void *>(group_kernel<false>);
	int error;

	if (rows == 0)
		return 0;
	error = PFS_CUDA(cudaFuncSetAttribute(
		kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_MAX));
	if (error)
		return error;
	while (n * 2 <= room)
		n *= 2;
	if (copies)
		group_kernel<true><<<blocks, THREADS, groups->n * copies * one, stream>>>(
			*groups, *keys, *table, *places, (uint32_t)groups->n * copies, copies);
	else
		group_kernel<false><<<blocks, THREADS, n * one, stream>>>(
			*groups, *keys, *table, *places, n, 1);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_group_bits(uint32_t *d_bits, const uint32_t *d_count, uint64_t n,
				   cudaStream_t stream)
{
	group_bits_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_bits, d_count, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_group_result(void *d_out, uint32_t *d_nulls,
				     const pfs_device_aggregate *aggregate, int as,
				     const uint32_t *d_group_count, const uint32_t *d_list,
				     uint64_t n, cudaStream_t stream)
{
	if (n == 0)
		return 0;
	group_result_kernel<<<pfs_grid(n), 256, 0, stream>>>(
		static_cast<unsigned long long *>(d_out), d_nulls, *aggregate, as, d_group_count,
		d_list, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_bounds(pfs_device_bounds *d_bounds, const pfs_device_value *value,
			       uint64_t n, cudaStream_t stream)
{
	if (n == 0)
		return 0;
	bounds_kernel<<<std::min(pfs_blocks(n, 256 * 16), 132u * 8), 256, 0, stream>>>(d_bounds,
										      *value, n);
	return PFS_CUDA(cudaGetLastError());
}
