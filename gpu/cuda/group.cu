/* SPDX-License-Identifier: MIT */
/* gpu/cuda/group.cu - grouping: each row adds itself to the totals of its group.
 *
 * A block keeps totals in shared memory and adds them to the device's at its end.  Few groups have
 * all of theirs there, in several copies, interleaved so that neighbouring lanes seldom meet. Their
 * first places are looked for among early rows and, where these do not show them all, afterwards
 * among the others: a word less for each copy is room for more copies.  Of many, those that a block
 * meets first have theirs there: where some groups are much larger than others these are among
 * them, and the second-level cache is spared what it is worst at, additions to one place.
 * Neighbours of one group, such as the nodes of a directory, are added up first.  Many whose
 * numbers are dense are split first (group_parts.cu).  What is asked for most of few groups is
 * compiled on its own (group_plain.cu). */
#include "gpu/cuda/keys.cuh"
#include "gpu/cuda/totals.cuh"
#include "gpu/relation.h"

#define FOURS	   2 /* a thread and turn */
#define ROWS	   (FOURS * 4)
#define SHARED_TWO (110u << 10) /* bytes: two blocks of half as many threads fit a multiprocessor */
#define MOST_THREADS 768u
#define SHARED_ONE (220u << 10) /* one of MOST_THREADS does */
#define EARLY	     (UINT64_C(1) << 16) /* places among which first ones are looked for at first */
#define EARLY_EACH   64u /* or so many for each group: of groups alike a fifth would do */

/* ---- device code ---- */

static __device__ __forceinline__ uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return x ^ x >> 32;
}

/* The block's place for the group, or PFS_NOWHERE: its place is another's. */
static __device__ __forceinline__ uint32_t claim(uint32_t *ids, uint32_t n, uint32_t group)
{
	uint32_t at = (uint32_t)mix(group) & (n - 1), there = ids[at];

	if (there == PFS_NOWHERE)
		there = atomicCAS(&ids[at], PFS_NOWHERE, group);
	return there == PFS_NOWHERE || there == group ? at : PFS_NOWHERE;
}

/* The rows' groups. */
static __device__ __forceinline__ void number_rows(const pfs_device_keys &keys,
						   const pfs_device_table &table,
						   const pfs_fours<FOURS> &f,
						   uint32_t (&group)[ROWS])
{
	uint64_t number, before = PFS_EMPTY;
	bool is_null;

	if (table.capacity == 0) {
		pfs_numbers<FOURS>(group, keys, f);
		return;
	}
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		if (!(f.valid >> r & 1)) {
			before = PFS_EMPTY;
			continue;
		}
		number = pfs_number(keys, f.first[r / 4] + r % 4, &is_null);
		group[r] = r && number == before ? group[r - 1]
						 : (uint32_t)pfs_enter(table, number);
		before = number;
	}
}

/* The rows' groups, and where the block has their totals.  DIRECT: copies of a group lie side by
 * side. Else *led has the rows of a four that are of the group of the row before them. */
template <bool DIRECT>
static __device__ __forceinline__ void find_groups(const pfs_device_keys &keys,
						   const pfs_device_table &table, uint32_t *ids,
						   uint32_t n, uint32_t copies,
						   const pfs_fours<FOURS> &f,
						   uint32_t (&group)[ROWS], uint32_t (&at)[ROWS],
						   uint32_t *led)
{
	*led = 0;
	if constexpr (DIRECT) {
		pfs_numbers<FOURS>(group, keys, f);
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			at[r] = group[r] * copies + (threadIdx.x & (copies - 1));
	} else {
		number_rows(keys, table, f, group);
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			if (!(f.valid >> r & 1))
				continue;
			if (r % 4 && (f.valid >> (r - 1) & 1) && group[r] == group[r - 1]) {
				at[r] = at[r - 1];
				*led |= 1u << r;
			} else {
				at[r] = claim(ids, n, group[r]);
			}
		}
	}
}

/* Where a row counts in a plane of the block, or in the device's array.  What is chosen between the
 * two is reached by slower instructions than what is known to be shared. */
template <bool DIRECT>
static __device__ __forceinline__ void count_rows(uint32_t *plane, uint32_t *all, uint32_t at,
						  uint32_t group, uint32_t n)
{
	if constexpr (DIRECT) {
		atomicAdd(&plane[at], n);
	} else {
		if (at != PFS_NOWHERE)
			atomicAdd(&plane[at], n);
		else
			atomicAdd(&all[group], n);
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

/* Adds the values of neighbours in a group together, then to its sum. */
static __device__ __forceinline__ void add_runs(const pfs_device_aggregate &a, uint32_t *plane,
						const pfs_total_planes &t,
						const uint64_t (&raw)[ROWS], uint32_t known,
						uint32_t led, const uint32_t (&group)[ROWS],
						const uint32_t (&at)[ROWS])
{
	uint64_t sum = 0;
	bool any = false;

#pragma unroll
	for (int r = ROWS - 1; r >= 0; r--) {
		if (known >> r & 1) {
			sum += (uint64_t)pfs_cooked(a.value.column, raw[r]);
			any = true;
		}
		if (!any || (led >> r & 1))
			continue;
		if (at[r] != PFS_NOWHERE)
			pfs_add_shared(a, plane, t, at[r], (int64_t)sum);
		else
			pfs_add_global(a, group[r], (int64_t)sum);
		sum = 0;
		any = false;
	}
}

/* Aggregate k of the rows, whose raw elements are loaded. */
template <bool DIRECT>
static __device__ __forceinline__ void add_aggregate(const pfs_device_groups &groups, uint32_t k,
						     uint32_t *memory, const pfs_total_planes &t,
						     const uint64_t (&raw)[ROWS], uint32_t known,
						     uint32_t led, const uint32_t (&group)[ROWS],
						     const uint32_t (&at)[ROWS])
{
	const pfs_device_aggregate &a = groups.aggregate[k];
	const pfs_device_column &c = a.value.column;
	uint32_t *plane = pfs_plane(memory, t, t.value[k]);

	if (a.d_count) {
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			if (known >> r & 1)
				count_rows<DIRECT>(pfs_plane(memory, t, t.counts[k]), a.d_count,
						   at[r], group[r], 1);
	}
	if (!a.d_value)
		return;
	if (!DIRECT && a.op == PFS_DEVICE_SUM) {
		add_runs(a, plane, t, raw, known, led, group, at);
		return;
	}
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
static __device__ __forceinline__ void
add_rows(const pfs_device_groups &groups, uint32_t *memory, const pfs_total_planes &t,
	 const pfs_fours<FOURS> &f, uint32_t led, const uint32_t (&group)[ROWS],
	 const uint32_t (&at)[ROWS])
{
	uint32_t *count = pfs_plane(memory, t, t.count), *first = pfs_plane(memory, t, t.first);
	uint32_t n = 0;

#pragma unroll
	for (int r = ROWS - 1; r >= 0; r--) {
		uint32_t place = f.first[r / 4] + r % 4;

		if (!(f.valid >> r & 1))
			continue;
		n++;
		if (!DIRECT && (led >> r & 1))
			continue;
		count_rows<DIRECT>(count, groups.d_count, at[r], group[r], n);
		n = 0;
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
		     const __grid_constant__ pfs_total_planes t, uint32_t copies, uint64_t early_to)
{
	extern __shared__ unsigned long long shared[];
	uint32_t *memory = reinterpret_cast<uint32_t *>(shared);
	uint32_t *ids = pfs_plane(memory, t, t.ids);
	const uint64_t tile = (uint64_t)blockDim.x * ROWS;

	pfs_clear(memory, t, groups);
	if constexpr (DIRECT)
		pfs_note_firsts(groups.d_first, {places.from, early_to, places.d_mask},
				[&](uint32_t(&group)[4], const pfs_fours<1> &f) {
					pfs_numbers<1>(group, keys, f);
				});
	for (uint64_t base = (places.from & ~UINT64_C(3)) + blockIdx.x * tile; base < places.to;
	     base += gridDim.x * tile) {
		uint32_t group[ROWS], at[ROWS], known, led;
		uint64_t raw[ROWS];
		pfs_fours<FOURS> f;

		pfs_take<FOURS>(f, places, base, blockDim.x);
		if (!f.valid)
			continue;
		known = f.valid;
		if (groups.n_aggregates) /* under way while the keys are looked at */
			pfs_load<FOURS>(raw, &known, groups.aggregate[0].value, f);
		find_groups<DIRECT>(keys, table, ids, t.n, copies, f, group, at, &led);
		add_rows<DIRECT>(groups, memory, t, f, led, group, at);
		for (uint32_t k = 0; k < groups.n_aggregates; k++) {
			if (k) {
				known = f.valid;
				pfs_load<FOURS>(raw, &known, groups.aggregate[k].value, f);
			}
			add_aggregate<DIRECT>(groups, k, memory, t, raw, known, led, group, at);
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

/* The first places of the groups that have none before places.from: all blocks see the same, as
 * what others find meanwhile is not before it. */
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

/* Totals of no places. */
static __global__ void __launch_bounds__(256)
	clear_kernel(const __grid_constant__ pfs_device_groups groups)
{
	PFS_EACH(i, groups.n)
	{
		groups.d_first[i] = PFS_NOWHERE;
		groups.d_count[i] = 0;
		for (uint32_t k = 0; k < groups.n_aggregates; k++) {
			const pfs_device_aggregate &a = groups.aggregate[k];

			if (a.d_value)
				a.d_value[i] = pfs_neutral(a.op);
			if (a.d_count)
				a.d_count[i] = 0;
		}
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

/* Behind the places among which first ones are looked for at first. */
static uint64_t early_to(const pfs_device_groups *groups, const pfs_device_places *places)
{
	return std::min(places->to, places->from + std::max(EARLY, groups->n * EARLY_EACH));
}

template <bool DIRECT>
static int launch(const pfs_device_groups &groups, const pfs_device_keys *keys,
		  const pfs_device_table *table, const pfs_device_places *places,
		  pfs_total_planes t, uint32_t copies, cudaStream_t stream)
{
	static std::atomic<bool> is_allowed;
	size_t bytes = (size_t)t.n * t.planes * 4;
	unsigned threads = bytes > SHARED_TWO ? MOST_THREADS : MOST_THREADS / 2,
		 most = 132 * MOST_THREADS / threads;
	int error = pfs_allow_shared(
		&is_allowed, reinterpret_cast<const void *>(group_kernel<DIRECT>), SHARED_ONE);

	if (error)
		return error;
	group_kernel<DIRECT>
		<<<std::min(pfs_blocks(places->to - (places->from & ~UINT64_C(3)), threads * ROWS),
			    most),
		   threads, bytes, stream>>>(groups, *keys, *table, *places, t, copies,
					     early_to(&groups, places));
	return PFS_CUDA(cudaGetLastError());
}

static uint32_t copies_of(const pfs_device_groups *groups, const pfs_device_table *table)
{
	pfs_total_planes t;

	if (table->capacity)
		return 0;
	(void)pfs_lay_out(&t, groups, false, false);
	return copies_in(t, groups->n, SHARED_ONE);
}

extern "C" size_t pfs_cuda_group_room(const pfs_device_groups *groups,
				      const pfs_device_table *table,
				      const pfs_device_places *places)
{
	if (table->capacity || copies_of(groups, table))
		return 0;
	return pfs_cuda_group_parts_room(groups, places);
}

extern "C" int pfs_cuda_group_clear(const pfs_device_groups *groups, cudaStream_t stream)
{
	clear_kernel<<<pfs_grid(groups->n), 256, 0, stream>>>(*groups);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_group(const pfs_device_groups *groups, const pfs_device_keys *keys,
			      const pfs_device_table *table, const pfs_device_places *places,
			      void *d_temporary, cudaStream_t stream)
{
	uint32_t copies = copies_of(groups, table);
	pfs_device_groups added;
	pfs_total_planes t;

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
	return pfs_cuda_group_is_plain(groups, keys, places)
		       ? pfs_cuda_group_plain(groups, keys, places, copies,
					      early_to(groups, places), stream)
		       : launch<true>(added, keys, table, places, t, copies, stream);
}

extern "C" int pfs_cuda_group_late(const pfs_device_groups *groups, const pfs_device_keys *keys,
				   const pfs_device_table *table, const pfs_device_places *places,
				   cudaStream_t stream)
{
	static std::atomic<bool> is_allowed;
	pfs_device_places late = *places;
	int error;

	late.from = early_to(groups, places);
	if (keys->n == 0 || late.from >= late.to || !copies_of(groups, table))
		return 0;
	error = pfs_allow_shared(&is_allowed, reinterpret_cast<const void *>(first_kernel),
				 SHARED_ONE);
	if (error)
		return error;
	first_kernel<<<std::min(pfs_blocks(late.to - late.from, MOST_THREADS * ROWS), 132u),
		       MOST_THREADS, groups->n * sizeof(uint32_t), stream>>>(*groups, *keys, late);
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
