/* SPDX-License-Identifier: MIT */
/* gpu/cuda/totals.cuh - a block's totals of groups in shared memory, and how rows are added to them.
 *
 * They lie in planes of one 32-bit word a place.  A sum has two, low and high words apart: neighbouring
 * places are then in neighbouring banks. */
#ifndef PFS_GPU_CUDA_TOTALS_CUH
#define PFS_GPU_CUDA_TOTALS_CUH

#include "gpu/cuda/loads.cuh"

#define PFS_NO_PLANE 0xff

/* Places, and which planes things have. */
struct pfs_total_planes {
	uint32_t n;
	uint8_t planes, first, count, ids; /* ids: whose each place is, if that is not fixed */
	uint8_t value[PFS_DEVICE_AGGREGATES], counts[PFS_DEVICE_AGGREGATES];
};

/* The aggregates that pfs_cuda_group adds to, and the planes that they take; values first, so that
 * what has 64 bits is aligned.  `first`, `ids`: whether these have planes. */
static inline pfs_device_groups pfs_lay_out(pfs_total_planes *t, const pfs_device_groups *all,
					    bool first, bool ids)
{
	pfs_device_groups groups = *all;
	uint8_t planes = 0;

	groups.n_aggregates = 0;
	for (uint32_t k = 0; k < all->n_aggregates; k++) {
		const pfs_device_aggregate &a = all->aggregate[k];

		if (a.op != PFS_DEVICE_DISTINCT && (a.d_value || a.d_count))
			groups.aggregate[groups.n_aggregates++] = a;
	}
	for (uint32_t k = 0; k < groups.n_aggregates; k++) {
		t->value[k] = groups.aggregate[k].d_value ? planes : PFS_NO_PLANE;
		planes += groups.aggregate[k].d_value ? 2 : 0;
	}
	t->first = first ? planes++ : PFS_NO_PLANE;
	t->count = planes++;
	t->ids = ids ? planes++ : PFS_NO_PLANE;
	for (uint32_t k = 0; k < groups.n_aggregates; k++)
		t->counts[k] = groups.aggregate[k].d_count ? planes++ : PFS_NO_PLANE;
	t->planes = planes;
	return groups;
}

/* ---- device code ---- */

static __device__ __forceinline__ uint32_t *pfs_plane(uint32_t *memory, const pfs_total_planes &t,
						      uint8_t plane)
{
	return memory + (size_t)plane * t.n;
}

static __device__ __forceinline__ unsigned long long *pfs_wide(uint32_t *memory,
							       const pfs_total_planes &t, uint8_t plane)
{
	return reinterpret_cast<unsigned long long *>(pfs_plane(memory, t, plane));
}

static __device__ __forceinline__ void pfs_lessen(unsigned long long *at, int64_t x)
{
	if (x < *reinterpret_cast<volatile long long *>(at))
		atomicMin(reinterpret_cast<long long *>(at), (long long)x);
}

static __device__ __forceinline__ void pfs_raise(unsigned long long *at, int64_t x)
{
	if (x > *reinterpret_cast<volatile long long *>(at))
		atomicMax(reinterpret_cast<long long *>(at), (long long)x);
}

static __device__ __forceinline__ void pfs_earlier(uint32_t *first, uint32_t place)
{
	if (place < *reinterpret_cast<volatile uint32_t *>(first))
		atomicMin(first, place);
}

/* Notes in d_first what the earliest place of each group is among `places`, which are few.  All
 * blocks share them, few warps of each, so that the others are not kept from their rows; lanes of
 * one group let the first one note it.  number(group, f) gets the groups of a four. */
template <class Number>
static __device__ __forceinline__ void pfs_note_firsts(uint32_t *d_first,
						       const pfs_device_places &places,
						       Number number)
{
	const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32;
	const uint64_t step = (uint64_t)gridDim.x * (blockDim.x / 32) * 128;

	for (uint64_t base = (places.from & ~UINT64_C(3)) +
			     ((uint64_t)warp * gridDim.x + blockIdx.x) * 128;
	     base < places.to; base += step) {
		const uint64_t first = base + lane * 4;
		uint32_t group[4] = {};
		pfs_fours<1> f;

		f.first[0] = (uint32_t)first;
		f.valid = pfs_valid_of(places, first);
		number(group, f);
#pragma unroll
		for (int r = 0; r < 4; r++) {
			bool is_row = f.valid >> r & 1;
			uint32_t peers = __match_any_sync(PFS_ALL_LANES,
							  is_row ? group[r] : PFS_NOWHERE);

			if (is_row && lane == (uint32_t)__ffs((int)peers) - 1)
				pfs_earlier(&d_first[group[r]], (uint32_t)first + r);
		}
	}
}

/* Into two planes: the carry is the low word's. */
static __device__ __forceinline__ void pfs_add_wide(uint32_t *low, uint32_t *high, uint64_t x)
{
	uint32_t word = (uint32_t)x, carry = atomicAdd(low, word) + word < word;

	carry += (uint32_t)(x >> 32);
	if (carry)
		atomicAdd(high, carry);
}

static __device__ __forceinline__ double pfs_as_real(const pfs_device_aggregate &a, int64_t x)
{
	return a.value.column.is_real ? pfs_real_of_order(x) : (double)x;
}

/* Adds to the device's total of a group. */
static __device__ __forceinline__ void pfs_add_global(const pfs_device_aggregate &a, uint32_t group,
						      int64_t x)
{
	unsigned long long *at = &a.d_value[group];

	switch (a.op) {
	case PFS_DEVICE_SUM:
		atomicAdd(at, (unsigned long long)x);
		return;
	case PFS_DEVICE_SUM_REAL:
		atomicAdd(reinterpret_cast<double *>(at), pfs_as_real(a, x));
		return;
	case PFS_DEVICE_MIN:
		pfs_lessen(at, x);
		return;
	case PFS_DEVICE_MAX:
		pfs_raise(at, x);
		return;
	default:
		return;
	}
}

/* Adds to the block's total at a place. */
static __device__ __forceinline__ void pfs_add_shared(const pfs_device_aggregate &a, uint32_t *plane,
						      const pfs_total_planes &t, uint32_t at, int64_t x)
{
	unsigned long long *wide = reinterpret_cast<unsigned long long *>(plane) + at;

	switch (a.op) {
	case PFS_DEVICE_SUM:
		pfs_add_wide(plane + at, plane + t.n + at, (uint64_t)x);
		return;
	case PFS_DEVICE_SUM_REAL:
		atomicAdd(reinterpret_cast<double *>(wide), pfs_as_real(a, x));
		return;
	case PFS_DEVICE_MIN:
		pfs_lessen(wide, x);
		return;
	case PFS_DEVICE_MAX:
		pfs_raise(wide, x);
		return;
	default:
		return;
	}
}

static __device__ __forceinline__ unsigned long long pfs_neutral(int op)
{
	return op == PFS_DEVICE_MIN   ? (unsigned long long)LLONG_MAX
	       : op == PFS_DEVICE_MAX ? (unsigned long long)LLONG_MIN
				      : 0;
}

/* Called by all threads, who then wait for each other. */
static __device__ void pfs_clear(uint32_t *memory, const pfs_total_planes &t,
				 const pfs_device_groups &groups)
{
	for (uint32_t i = threadIdx.x; i < t.n; i += blockDim.x) {
		pfs_plane(memory, t, t.count)[i] = 0;
		if (t.first != PFS_NO_PLANE)
			pfs_plane(memory, t, t.first)[i] = PFS_NOWHERE;
		if (t.ids != PFS_NO_PLANE)
			pfs_plane(memory, t, t.ids)[i] = PFS_NOWHERE;
	}
	for (uint32_t k = 0; k < groups.n_aggregates; k++)
		for (uint32_t i = threadIdx.x; i < t.n; i += blockDim.x) {
			if (t.value[k] != PFS_NO_PLANE)
				pfs_wide(memory, t, t.value[k])[i] =
					pfs_neutral(groups.aggregate[k].op);
			if (t.counts[k] != PFS_NO_PLANE)
				pfs_plane(memory, t, t.counts[k])[i] = 0;
		}
	__syncthreads();
}

/* Returns what a place holds of aggregate k, as the device's total has it. */
static __device__ __forceinline__ unsigned long long pfs_total_at(uint32_t *memory,
								  const pfs_total_planes &t,
								  const pfs_device_aggregate &a,
								  uint32_t k, uint32_t at)
{
	uint32_t *plane = pfs_plane(memory, t, t.value[k]);

	if (a.op == PFS_DEVICE_SUM)
		return (unsigned long long)plane[t.n + at] << 32 | plane[at];
	return reinterpret_cast<unsigned long long *>(plane)[at];
}

/* Two totals as one. */
static __device__ __forceinline__ unsigned long long pfs_joined(int op, unsigned long long x,
								unsigned long long y)
{
	switch (op) {
	case PFS_DEVICE_SUM_REAL:
		return (unsigned long long)__double_as_longlong(
			__longlong_as_double((long long)x) + __longlong_as_double((long long)y));
	case PFS_DEVICE_MIN:
		return (unsigned long long)min((long long)x, (long long)y);
	case PFS_DEVICE_MAX:
		return (unsigned long long)max((long long)x, (long long)y);
	default:
		return x + y;
	}
}

/* Adds a total to the device's. */
static __device__ __forceinline__ void pfs_hand_over(const pfs_device_aggregate &a, uint32_t group,
						     unsigned long long total)
{
	if (a.op == PFS_DEVICE_SUM_REAL)
		atomicAdd(reinterpret_cast<double *>(&a.d_value[group]),
			  __longlong_as_double((long long)total));
	else
		pfs_add_global(a, group, (int64_t)total);
}

/* The copies of a group's totals in the block, from..from + n, n a power of two, are added to the
 * device's.  Neighbouring threads begin at different copies, so that they are in different banks. */
static __device__ void pfs_hand_over_copies(const pfs_device_groups &groups, uint32_t *memory,
					    const pfs_total_planes &t, uint32_t from, uint32_t n,
					    uint32_t group)
{
	const uint32_t *count = pfs_plane(memory, t, t.count);
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += count[from + ((i + threadIdx.x) & (n - 1))];
	if (!sum)
		return;
	atomicAdd(&groups.d_count[group], sum);
	if (t.first != PFS_NO_PLANE)
		pfs_earlier(&groups.d_first[group], pfs_plane(memory, t, t.first)[from]);
	for (uint32_t k = 0; k < groups.n_aggregates; k++) {
		const pfs_device_aggregate &a = groups.aggregate[k];
		const uint32_t *counts = pfs_plane(memory, t, t.counts[k]);
		unsigned long long total = pfs_neutral(a.op);

		sum = 0;
		for (uint32_t i = 0; a.d_count && i < n; i++)
			sum += counts[from + ((i + threadIdx.x) & (n - 1))];
		if (sum)
			atomicAdd(&a.d_count[group], sum);
		if (!a.d_value)
			continue;
		for (uint32_t i = 0; i < n; i++)
			total = pfs_joined(a.op, total,
					   pfs_total_at(memory, t, a, k,
							from + ((i + threadIdx.x) & (n - 1))));
		pfs_hand_over(a, group, total);
	}
}

#endif
