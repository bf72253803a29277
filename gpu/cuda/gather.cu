/* SPDX-License-Identifier: MIT */
/* gpu/cuda/gather.cu - values of columns, and row numbers, at given places. */
#include "gpu/cuda/relation.cuh"

/* ---- device code ---- */

/* NULLs are collected by ballot, so a warp keeps to 32 neighbouring places; of the bits all words
 * of 64 are written. */
template <class T>
static __global__ void gather_kernel(T *out, uint32_t *nulls, pfs_device_value value,
				     const uint32_t *__restrict__ places, uint64_t n)
{
	PFS_EACH(i, (n + 63) / 64 * 64)
	{
		int64_t x = 0;
		uint32_t place = i < n ? (places ? places[i] : (uint32_t)i) : PFS_NOWHERE;
		bool is_null = place == PFS_NOWHERE || !pfs_value(value, place, &x);
		uint32_t word = __ballot_sync(PFS_ALL_LANES, is_null && i < n);

		if (i < n) {
			if (value.column.is_real && !is_null)
				x = __double_as_longlong(pfs_real_of_order(x));
			out[i] = (T)x;
		}
		if (nulls && (threadIdx.x & 31) == 0)
			nulls[i / 32] = word;
	}
}

static __global__ void rows_kernel(uint32_t *out, const uint32_t *__restrict__ rows, uint32_t from,
				   const uint32_t *__restrict__ places, uint64_t n)
{
	PFS_EACH(i, n)
	{
		uint32_t place = places[i];

		out[i] = place == PFS_NOWHERE ? PFS_NOWHERE : rows ? rows[place] : from + place;
	}
}

static __global__ void count_up_kernel(uint32_t *out, uint32_t from, uint64_t n)
{
	PFS_EACH(i, n)
	out[i] = from + (uint32_t)i;
}

/* ---- launches ---- */

extern "C" int pfs_cuda_values_at(void *d_out, bool as_32_bit, uint32_t *d_nulls,
				      const pfs_device_value *value, const uint32_t *d_places,
				      uint64_t n, cudaStream_t stream)
{
	if (n == 0)
		return 0;
	if (as_32_bit)
		gather_kernel<<<pfs_grid(n), 256, 0, stream>>>(static_cast<uint32_t *>(d_out),
							       d_nulls, *value, d_places, n);
	else
		gather_kernel<<<pfs_grid(n), 256, 0, stream>>>(static_cast<int64_t *>(d_out),
							       d_nulls, *value, d_places, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_rows_at(uint32_t *d_out, const uint32_t *d_rows, uint32_t from,
				    const uint32_t *d_places, uint64_t n, cudaStream_t stream)
{
	if (n == 0)
		return 0;
	rows_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_out, d_rows, from, d_places, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_count_up(uint32_t *d_out, uint32_t from, uint64_t n, cudaStream_t stream)
{
	if (n == 0)
		return 0;
	count_up_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_out, from, n);
	return PFS_CUDA(cudaGetLastError());
}
