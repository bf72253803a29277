/* SPDX-License-Identifier: MIT */
/* gpu/cuda/group_results.cu - what there is of groups whose rows have been added: how many
 * different values each has, which groups have a row, and what is shown of their totals. */
#include "gpu/cuda/keys.cuh"

#define LISTING 1024u /* threads: a warp's lanes have a sum of each warp */

/* ---- device code ---- */

/* True: nobody had the combination of the place's group and value before. */
static __device__ __forceinline__ bool is_first(const pfs_device_key &value, uint64_t n_values,
						uint32_t *seen, const pfs_device_table &pairs,
						uint64_t group, int64_t x)
{
	uint64_t number;
	bool is_new;
	uint32_t bit;

	if (value.d_map)
		x = value.d_map[x];
	number = group * n_values + ((uint64_t)x - (uint64_t)value.least);
	if (pairs.capacity) {
		(void)pfs_put(pairs, number, &is_new);
		return is_new;
	}
	bit = 1u << (number & 31);
	return !(seen[number >> 5] & bit) && !(atomicOr(&seen[number >> 5], bit) & bit);
}

/* The combinations of places' groups and values; without keys a warp adds what it has found at
 * once. */
static __global__ void
distinct_kernel(unsigned long long *counts, const __grid_constant__ pfs_device_key value,
		uint64_t n_values, const __grid_constant__ pfs_device_keys keys,
		const __grid_constant__ pfs_device_table table, uint32_t *seen,
		const __grid_constant__ pfs_device_table pairs,
		const __grid_constant__ pfs_device_places places)
{
	PFS_EACH(i, (places.to - places.from + 31) / 32 * 32)
	{
		uint64_t place = places.from + i, group = 0;
		bool is_null, is_new = false;
		int64_t x;

		if (pfs_is_among(places, place) && pfs_value(value.value, (uint32_t)place, &x) &&
		    !(value.is_row && x == PFS_NOWHERE)) {
			group = pfs_enter(table, pfs_number(keys, (uint32_t)place, &is_null));
			is_new = is_first(value, n_values, seen, pairs, group, x);
		}
		if (keys.n) {
			if (is_new)
				atomicAdd(&counts[group], 1ull);
			continue;
		}
		uint32_t found = __ballot_sync(PFS_ALL_LANES, is_new);
		if (found && (threadIdx.x & 31) == 0)
			atomicAdd(counts, (unsigned long long)__popc(found));
	}
}

static __global__ void group_bits_kernel(uint32_t *bits, const uint32_t *__restrict__ count,
					 uint64_t n)
{
	PFS_EACH(i, (n + 63) / 64 * 64)
	{
		uint32_t word = __ballot_sync(PFS_ALL_LANES, i < n && count[i] != 0);

		if ((threadIdx.x & 31) == 0)
			bits[i / 32] = word;
	}
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

/* What is shown of list[from], list[from + step], ...; a warp has 32 neighbours. */
static __device__ __forceinline__ void show_groups(const pfs_device_shown &to,
						   const pfs_device_groups &groups,
						   const uint32_t *list, uint64_t n, uint64_t from,
						   uint64_t step)
{
	for (uint64_t i = from; i < (n + 63) / 64 * 64; i += step) {
		const bool is_listed = i < n;
		const uint32_t g = is_listed ? list[i] : 0, rows = groups.d_count[g];

		if (is_listed)
			to.d_places[i] = groups.d_first[g];
		for (uint32_t k = 0; k < groups.n_aggregates; k++) {
			const pfs_device_aggregate &a = groups.aggregate[k];
			uint32_t count = a.d_count ? a.d_count[g] : rows, *nulls = to.d_nulls[k];
			bool is_null = is_listed && count == 0 && a.is_null_of_none;
			uint32_t word = __ballot_sync(PFS_ALL_LANES, is_null);

			if (nulls && (threadIdx.x & 31) == 0)
				nulls[i / 32] = word;
			if (!is_listed)
				continue;
			if (a.d_code)
				static_cast<uint32_t *>(to.d_data[k])[i] =
					is_null ? 0 : a.d_code[a.d_value[g]];
			else
				static_cast<unsigned long long *>(to.d_data[k])[i] =
					shown(a, a.d_value ? a.d_value[g] : 0, count);
		}
	}
}

static __global__ void __launch_bounds__(256)
	show_groups_kernel(const __grid_constant__ pfs_device_shown to,
			   const __grid_constant__ pfs_device_groups groups, const uint32_t *list,
			   uint64_t n)
{
	show_groups(to, groups, list, n, (uint64_t)blockIdx.x * blockDim.x + threadIdx.x,
		    (uint64_t)gridDim.x * blockDim.x);
}

/* By one block. Lists four groups a thread and turn. */
static __global__ void __launch_bounds__(LISTING)
	list_groups_kernel(const __grid_constant__ pfs_device_shown to, uint32_t *list,
			   pfs_device_listed *listed,
			   const __grid_constant__ pfs_device_groups groups, bool has_all)
{
	__shared__ uint32_t sums[LISTING / 32];
	const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32, n = (uint32_t)groups.n;
	uint32_t before = 0;
	bool is_late = false;

	for (uint32_t base = 0; base < n; base += 4 * LISTING) {
		const uint32_t first = base + 4 * threadIdx.x;
		uint32_t is_listed = 0, at, sum;

#pragma unroll
		for (uint32_t r = 0; r < 4; r++) {
			if (first + r >= n)
				continue;
			bool has_rows = groups.d_count[first + r] != 0;

			is_listed |= (uint32_t)(has_rows || has_all) << r;
			is_late |= has_rows && groups.d_first[first + r] == PFS_NOWHERE;
		}
		at = __popc(is_listed);
		for (uint32_t d = 1; d < 32; d *= 2) {
			uint32_t below = __shfl_up_sync(PFS_ALL_LANES, at, d);

			at += lane >= d ? below : 0;
		}
		if (lane == 31)
			sums[warp] = at;
		__syncthreads();
		sum = sums[lane];
		at += before - __popc(is_listed) +
		      __reduce_add_sync(PFS_ALL_LANES, lane < warp ? sum : 0);
		before += __reduce_add_sync(PFS_ALL_LANES, sum);
#pragma unroll
		for (uint32_t r = 0; r < 4; r++)
			if (is_listed >> r & 1)
				list[at++] = first + r;
		__syncthreads();
	}
	show_groups(to, groups, list, before, threadIdx.x, LISTING);
	for (uint32_t i = before + threadIdx.x; i < n; i += LISTING)
		to.d_places[i] = PFS_NOWHERE;
	is_late = __syncthreads_or(is_late);
	if (threadIdx.x == 0) {
		listed->n = before;
		listed->is_late = is_late;
	}
}

/* ---- launches ---- */

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

extern "C" int pfs_cuda_group_show(const pfs_device_shown *shown, const pfs_device_groups *groups,
				   const uint32_t *d_list, uint64_t n, cudaStream_t stream)
{
	if (n == 0)
		return 0;
	show_groups_kernel<<<pfs_grid(n), 256, 0, stream>>>(*shown, *groups, d_list, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_group_list(const pfs_device_shown *shown, uint32_t *d_list,
				   pfs_device_listed *listed, const pfs_device_groups *groups,
				   bool has_all, cudaStream_t stream)
{
	list_groups_kernel<<<1, LISTING, 0, stream>>>(*shown, d_list, listed, *groups, has_all);
	return PFS_CUDA(cudaGetLastError());
}
