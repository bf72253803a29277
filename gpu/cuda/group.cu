/* SPDX-License-Identifier: MIT */
/* gpu/cuda/group.cu - grouping: each row adds itself to the totals of its group.
 *
 * A block keeps totals in shared memory and adds them to the device's at its end.  Few groups have
 * all of theirs there, in several copies, interleaved so that neighbouring lanes seldom meet. Their
 * first places are looked for afterwards: most often few rows show them all, and a word less for
 * each copy is room for more copies.  Of many, those that a block meets first have theirs there:
 * where some groups are much larger than others these are among them, and the second-level cache is
 * spared what it is worst at, additions to one place.  Many whose numbers are dense are split first
 * (group_parts.cu).  What is asked for most of few groups is compiled on its own (group_plain.cu). */
#include "gpu/cuda/keys.cuh"
#include "gpu/cuda/totals.cuh"
#include "gpu/relation.h"

#define FOURS	   2 /* a thread and turn */
#define ROWS	   (FOURS * 4)
#define SHARED_TWO (110u << 10) /* bytes: two blocks of half as many threads fit a multiprocessor */
#define MOST_THREADS 768u
#define SHARED_ONE (220u << 10) /* one of MOST_THREADS does */
#define EARLY	   (1u << 18)	/* places among which first ones are looked for at first */

/* ---- device code ---- */

/* The block's place for the group, or PFS_NOWHERE: its place is another's. */
static __device__ __forceinline__ uint32_t claim(uint32_t *ids, uint32_t n, uint32_t group)
{
	uint32_t at = (uint32_t)pfs_mix(group) & (n - 1), there = ids[at];

	if (there == PFS_NOWHERE)
		there = atomicCAS(&ids[at], PFS_NOWHERE, group);
	return there == PFS_NOWHERE || there == group ? at : PFS_NOWHERE;
}

/* The rows' groups, and where the block has their totals.  DIRECT: copies of a group lie side by side. */
template <bool DIRECT>
static __device__ __forceinline__ void find_groups(const pfs_device_keys &keys,
						   const pfs_device_table &table, uint32_t *ids,
						   uint32_t n, uint32_t copies,
						   const pfs_fours<FOURS> &f,
						   uint32_t (&group)[ROWS], uint32_t (&at)[ROWS])
{
	if constexpr (DIRECT) {
		pfs_numbers<FOURS>(group, keys, f);
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			at[r] = group[r] * copies + (threadIdx.x & (copies - 1));
	} else {
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			bool is_null;

			if (!(f.valid >> r & 1))
				continue;
			group[r] = (uint32_t)pfs_enter(
				table, pfs_number(keys, f.first[r / 4] + r % 4, &is_null));
			at[r] = claim(ids, n, group[r]);
		}
	}
}

/* Where a row counts in a plane of the block, or in the device's array.  What is chosen between the two is
 * reached by slower instructions than what is known to be shared. */
template <bool DIRECT>
static __device__ __forceinline__ void count_row(uint32_t *plane, uint32_t *all, uint32_t at,
						 uint32_t group)
{
	if constexpr (DIRECT) {
		atomicAdd(&plane[at], 1u);
	} else {
		if (at != PFS_NOWHERE)
			atomicAdd(&plane[at], 1u);
		else
			atomicAdd(&all[group], 1u);
	}
}

/* Adds the rows' values to sums in two planes of n words.  All low words are under way before the
 * first one's carry is waited for.  BARE: raw elements are the values, of 32 bits. */
template <bool BARE>
static __device__ __forceinline__ void
add_sums(uint32_t *low, uint32_t n, const pfs_device_column &c, const uint64_t (&raw)[ROWS],
	 uint32_t known, const uint32_t (&at)[ROWS])
{
	uint32_t before[ROWS];
	uint64_t x[ROWS];

#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		x[r] = BARE ? (uint32_t)raw[r] : (uint64_t)pfs_cooked(c, raw[r]);
		before[r] = known >> r & 1 ? atomicAdd(&low[at[r]], (uint32_t)x[r]) : 0;
	}
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		uint32_t high =
			(uint32_t)(x[r] >> 32) + (before[r] + (uint32_t)x[r] < (uint32_t)x[r]);

		if (high && (known >> r & 1))
			atomicAdd(&low[n + at[r]], high);
	}
}

/* Aggregate k of the rows, whose raw elements are loaded. */
template <bool DIRECT>
static __device__ __forceinline__ void add_aggregate(const pfs_device_groups &groups, uint32_t k,
						     uint32_t *memory, const pfs_total_planes &t,
						     const uint64_t (&raw)[ROWS], uint32_t known,
						     const uint32_t (&group)[ROWS],
						     const uint32_t (&at)[ROWS])
{
	const pfs_device_aggregate &a = groups.aggregate[k];
	const pfs_device_column &c = a.value.column;
	uint32_t *plane = pfs_plane(memory, t, t.value[k]);

	if (a.d_count) {
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			if (known >> r & 1)
				count_row<DIRECT>(pfs_plane(memory, t, t.counts[k]), a.d_count,
						  at[r], group[r]);
	}
	if (!a.d_value)
		return;
	if (DIRECT && a.op == PFS_DEVICE_SUM) {
		if (pfs_is_bare(c))
			add_sums<true>(plane, t.n, c, raw, known, at);
		else
			add_sums<false>(plane, t.n, c, raw, known, at);
		return;
	}
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		if (!(known >> r & 1))
			continue;
		int64_t x = pfs_cooked(c, raw[r]);

		if (a.d_rank)
			x = a.d_rank[x];
		if (DIRECT || at[r] != PFS_NOWHERE)
			pfs_add_shared(a, plane, t, at[r], x);
		else
			pfs_add_global(a, group[r], x);
	}
}

template <bool DIRECT>
static __device__ __forceinline__ void add_rows(const pfs_device_groups &groups, uint32_t *memory,
						const pfs_total_planes &t, const pfs_fours<FOURS> &f,
						const uint32_t (&group)[ROWS],
						const uint32_t (&at)[ROWS])
{
	uint32_t *count = pfs_plane(memory, t, t.count), *first = pfs_plane(memory, t, t.first);

#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		uint32_t place = f.first[r / 4] + r % 4;

		if (!(f.valid >> r & 1))
			continue;
		count_row<DIRECT>(count, groups.d_count, at[r], group[r]);
		if (DIRECT)
			continue;
		if (at[r] != PFS_NOWHERE)
			pfs_earlier(&first[at[r]], place);
		else
			pfs_earlier(&groups.d_first[group[r]], place);
	}
}

/* DIRECT: t.n = groups * copies, and there is no plane of first places. */
template <bool DIRECT>
static __global__ void __launch_bounds__(MOST_THREADS)
	group_kernel(const __grid_constant__ pfs_device_groups groups,
		     const __grid_constant__ pfs_device_keys keys,
		     const __grid_constant__ pfs_device_table table,
		     const __grid_constant__ pfs_device_places places,
		     const __grid_constant__ pfs_total_planes t, uint32_t copies)
{
	extern __shared__ unsigned long long shared[];
	uint32_t *memory = reinterpret_cast<uint32_t *>(shared);
	uint32_t *ids = pfs_plane(memory, t, t.ids);
	const uint64_t tile = (uint64_t)blockDim.x * ROWS;

	pfs_clear(memory, t, groups);
	for (uint64_t base = (places.from & ~UINT64_C(3)) + blockIdx.x * tile; base < places.to;
	     base += gridDim.x * tile) {
		uint32_t group[ROWS], at[ROWS], known;
		uint64_t raw[ROWS];
		pfs_fours<FOURS> f;

		pfs_take<FOURS>(f, places, base, blockDim.x);
		if (!f.valid)
			continue;
		known = f.valid;
		if (groups.n_aggregates) /* under way while the keys are looked at */
			pfs_load<FOURS>(raw, &known, groups.aggregate[0].value, f);
		find_groups<DIRECT>(keys, table, ids, t.n, copies, f, group, at);
		add_rows<DIRECT>(groups, memory, t, f, group, at);
		for (uint32_t k = 0; k < groups.n_aggregates; k++) {
			if (k) {
				known = f.valid;
				pfs_load<FOURS>(raw, &known, groups.aggregate[k].value, f);
			}
			add_aggregate<DIRECT>(groups, k, memory, t, raw, known, group, at);
		}
	}
	__syncthreads();
	if constexpr (DIRECT) {
		for (uint32_t g = threadIdx.x; g < t.n / copies; g += blockDim.x)
			pfs_hand_over_copies(groups, memory, t, g * copies, copies, g);
	} else {
		for (uint32_t i = threadIdx.x; i < t.n; i += blockDim.x)
			if (ids[i] != PFS_NOWHERE)
				pfs_hand_over_copies(groups, memory, t, i, 1, ids[i]);
	}
}

/* The first places of the groups that have none before places.from: all blocks see the same, as what others
 * find meanwhile is not before it. */
static __global__ void __launch_bounds__(MOST_THREADS)
	first_kernel(const __grid_constant__ pfs_device_groups groups,
		     const __grid_constant__ pfs_device_keys keys,
		     const __grid_constant__ pfs_device_places places)
{
	extern __shared__ unsigned long long shared[];
	uint32_t *first = reinterpret_cast<uint32_t *>(shared);
	const uint64_t tile = (uint64_t)blockDim.x * ROWS;
	bool any = false;

	for (uint32_t g = threadIdx.x; g < groups.n; g += blockDim.x) {
		bool is_wanted = groups.d_count[g] && groups.d_first[g] >= places.from;

		first[g] = is_wanted ? PFS_NOWHERE : 0; /* nothing is earlier */
		any |= is_wanted;
	}
	if (!__syncthreads_or(any))
		return;
	for (uint64_t base = (places.from & ~UINT64_C(3)) + blockIdx.x * tile; base < places.to;
	     base += gridDim.x * tile) {
		uint32_t group[ROWS];
		pfs_fours<FOURS> f;

		pfs_take<FOURS>(f, places, base, blockDim.x);
		if (!f.valid)
			continue;
		pfs_numbers<FOURS>(group, keys, f);
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			if (f.valid >> r & 1)
				pfs_earlier(&first[group[r]], f.first[r / 4] + r % 4);
	}
	__syncthreads();
	for (uint32_t g = threadIdx.x; g < groups.n; g += blockDim.x)
		if (groups.d_count[g] && first[g] >= places.from)
			pfs_earlier(&groups.d_first[g], first[g]);
}

/* The combination of a place's group and value, which is counted where nobody had it before. */
static __global__ void distinct_kernel(unsigned long long *counts,
				       const __grid_constant__ pfs_device_key value,
				       uint64_t n_values,
				       const __grid_constant__ pfs_device_keys keys,
				       const __grid_constant__ pfs_device_table table, uint32_t *seen,
				       const __grid_constant__ pfs_device_table pairs,
				       const __grid_constant__ pfs_device_places places)
{
	PFS_EACH(i, places.to - places.from)
	{
		uint64_t place = places.from + i, group, number;
		bool is_null, is_new;
		int64_t x;

		if (!pfs_is_among(places, place) || !pfs_value(value.value, (uint32_t)place, &x))
			continue;
		if (value.d_map)
			x = value.d_map[x];
		group = pfs_enter(table, pfs_number(keys, (uint32_t)place, &is_null));
		number = group * n_values + ((uint64_t)x - (uint64_t)value.least);
		if (pairs.capacity)
			is_new = pfs_put(pairs, number);
		else if (seen[number >> 5] >> (number & 31) & 1)
			is_new = false;
		else
			is_new = !(atomicOr(&seen[number >> 5], 1u << (number & 31)) >>
					   (number & 31) &
				   1);
		if (is_new)
			atomicAdd(&counts[group], 1ull);
	}
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

/* The groups that have a tuple, ascending, by one block; the rest of the list is 0. */
static __global__ void __launch_bounds__(1024)
	list_groups_kernel(uint32_t *list, uint64_t *n_listed, const uint32_t *__restrict__ count,
			   uint32_t n)
{
	__shared__ uint32_t sums[32];
	const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	uint32_t before = 0;

	for (uint32_t base = 0; base < n; base += 1024) {
		uint32_t i = base + threadIdx.x, at = before;
		bool is_listed = i < n && count[i] != 0;
		uint32_t word = __ballot_sync(PFS_ALL_LANES, is_listed);

		if (lane == 0)
			sums[warp] = __popc(word);
		__syncthreads();
		for (uint32_t w = 0; w < 32; w++) {
			at += w < warp ? sums[w] : 0;
			before += sums[w];
		}
		if (is_listed)
			list[at + __popc(word & ((1u << lane) - 1))] = i;
		__syncthreads();
	}
	for (uint32_t i = before + threadIdx.x; i < n; i += 1024)
		list[i] = 0;
	if (threadIdx.x == 0)
		*n_listed = before;
}

/* What SQLite shows of a total: a number as 8 bytes. */
static __device__ unsigned long long shown(const pfs_device_aggregate &a, unsigned long long value,
					   uint32_t count)
{
	double sum = a.op == PFS_DEVICE_SUM_REAL ? __longlong_as_double((long long)value)
						 : (double)(long long)value;

	switch (a.show) {
	case PFS_SHOW_COUNT:
		return count;
	case PFS_SHOW_REAL:
		return (unsigned long long)__double_as_longlong(sum);
	case PFS_SHOW_MEAN:
		return (unsigned long long)__double_as_longlong(sum / count);
	case PFS_SHOW_EXTREME:
		return a.value.column.is_real ? (unsigned long long)__double_as_longlong(
							pfs_real_of_order((int64_t)value))
					      : value;
	case PFS_SHOW_VALUE:
		break;
	}
	return value;
}

static __global__ void group_result_kernel(unsigned long long *out, uint32_t *nulls,
					   pfs_device_aggregate a,
					   const uint32_t *__restrict__ group_count,
					   const uint32_t *__restrict__ list, uint64_t n)
{
	PFS_EACH(i, (n + 31) / 32 * 32)
	{
		bool is_null = false;

		if (i < n) {
			uint32_t g = list[i], count = (a.d_count ? a.d_count : group_count)[g];

			is_null = count == 0 && a.is_null_of_none;
			if (a.d_code)
				reinterpret_cast<uint32_t *>(out)[i] =
					is_null ? 0 : a.d_code[a.d_value[g]];
			else
				out[i] = shown(a, a.d_value ? a.d_value[g] : 0, count);
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

/* All groups, a power of two copies of each, in so many bytes; 0: not even one. */
static uint32_t copies_in(const pfs_total_planes &t, uint64_t groups, size_t bytes)
{
	uint32_t copies = 32;

	while (copies && groups * copies * t.planes * 4 > bytes)
		copies /= 2;
	return copies;
}

static int allow_shared(const void *kernel)
{
	return PFS_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
					     SHARED_ONE));
}

template <bool DIRECT>
static int launch(const pfs_device_groups &groups, const pfs_device_keys *keys,
		  const pfs_device_table *table, const pfs_device_places *places, pfs_total_planes t,
		  uint32_t copies, cudaStream_t stream)
{
	size_t bytes = (size_t)t.n * t.planes * 4;
	unsigned threads = bytes > SHARED_TWO ? MOST_THREADS : MOST_THREADS / 2,
		 most = 132 * MOST_THREADS / threads;
	int error = allow_shared(reinterpret_cast<const void *>(group_kernel<DIRECT>));

	if (error)
		return error;
	group_kernel<DIRECT><<<std::min(pfs_blocks(places->to - (places->from & ~UINT64_C(3)),
						   threads * ROWS),
					most),
			       threads, bytes, stream>>>(groups, *keys, *table, *places, t, copies);
	return PFS_CUDA(cudaGetLastError());
}

static int find_first(const pfs_device_groups &groups, const pfs_device_keys *keys,
		      const pfs_device_places *places, cudaStream_t stream)
{
	unsigned blocks = std::min(pfs_blocks(places->to - (places->from & ~UINT64_C(3)),
					      MOST_THREADS * ROWS),
				   132u);

	first_kernel<<<blocks, MOST_THREADS, groups.n * sizeof(uint32_t), stream>>>(groups, *keys,
										    *places);
	return PFS_CUDA(cudaGetLastError());
}

/* Nearly always all are among the early ones, and the second kernel ends at once. */
static int find_firsts(const pfs_device_groups &groups, const pfs_device_keys *keys,
		       const pfs_device_places *places, cudaStream_t stream)
{
	pfs_device_places early = *places, late = *places;
	int error = allow_shared(reinterpret_cast<const void *>(first_kernel));

	early.to = late.from = std::min(places->to, places->from + EARLY);
	if (!error)
		error = find_first(groups, keys, &early, stream);
	if (!error && late.from < late.to)
		error = find_first(groups, keys, &late, stream);
	return error;
}

static uint32_t copies_of(const pfs_device_groups *groups, const pfs_device_table *table)
{
	pfs_total_planes t;

	if (table->capacity)
		return 0;
	(void)pfs_lay_out(&t, groups, false, false);
	return copies_in(t, groups->n, SHARED_ONE);
}

extern "C" size_t pfs_cuda_group_room(const pfs_device_groups *groups, const pfs_device_table *table,
				      const pfs_device_places *places)
{
	if (table->capacity || copies_of(groups, table))
		return 0;
	return pfs_cuda_group_parts_room(groups, places);
}

extern "C" int pfs_cuda_group(const pfs_device_groups *groups, const pfs_device_keys *keys,
			      const pfs_device_table *table, const pfs_device_places *places,
			      void *d_temporary, cudaStream_t stream)
{
	uint32_t copies = copies_of(groups, table);
	pfs_device_groups added;
	pfs_total_planes t;
	int error;

	if (places->to <= places->from)
		return 0;
	if (keys->n == 0)
		return pfs_cuda_group_all(groups, places, stream);
	if (!copies && d_temporary)
		return pfs_cuda_group_parts(groups, keys, places, d_temporary, stream);
	added = pfs_lay_out(&t, groups, !copies, !copies);
	t.n = copies ? (uint32_t)groups->n * copies : 1;
	while (!copies && (size_t)t.n * 2 * t.planes * 4 <= SHARED_TWO)
		t.n *= 2;
	if (!copies)
		return launch<false>(added, keys, table, places, t, 1, stream);
	error = pfs_cuda_group_is_plain(groups, keys, places)
			? pfs_cuda_group_plain(groups, keys, places, copies, stream)
			: launch<true>(added, keys, table, places, t, copies, stream);
	return error ? error : find_firsts(added, keys, places, stream);
}

extern "C" int pfs_cuda_group_distinct(unsigned long long *d_value, const pfs_device_key *value,
				       uint64_t n_values, const pfs_device_keys *keys,
				       const pfs_device_table *table, uint32_t *d_seen,
				       const pfs_device_table *pairs,
				       const pfs_device_places *places, cudaStream_t stream)
{
	if (places->to <= places->from)
		return 0;
	distinct_kernel<<<pfs_grid(places->to - places->from), 256, 0, stream>>>(
		d_value, *value, n_values, *keys, *table, d_seen, *pairs, *places);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_group_bits(uint32_t *d_bits, const uint32_t *d_count, uint64_t n,
				   cudaStream_t stream)
{
	group_bits_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_bits, d_count, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_group_list(uint32_t *d_list, uint64_t *d_n, const uint32_t *d_count, uint32_t n,
				   cudaStream_t stream)
{
	list_groups_kernel<<<1, 1024, 0, stream>>>(d_list, d_n, d_count, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_group_result(void *d_out, uint32_t *d_nulls,
				     const pfs_device_aggregate *aggregate,
				     const uint32_t *d_group_count, const uint32_t *d_list,
				     uint64_t n, cudaStream_t stream)
{
	if (n == 0)
		return 0;
	group_result_kernel<<<pfs_grid(n), 256, 0, stream>>>(
		static_cast<unsigned long long *>(d_out), d_nulls, *aggregate, d_group_count, d_list,
		n);
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
