/* SPDX-License-Identifier: MIT */
/* gpu/cuda/group_results.cu - what there is of groups whose rows have been added: how many
 * different values each has, which groups have a row, and what is shown of their totals. */
#include "gpu/cuda/keys.cuh"

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

extern "C" int pfs_cuda_group_list(uint32_t *d_list, uint64_t *d_n, const uint32_t *d_count,
				   uint32_t n, cudaStream_t stream)
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
		static_cast<unsigned long long *>(d_out), d_nulls, *aggregate, d_group_count,
		d_list, n);
	return PFS_CUDA(cudaGetLastError());
}
