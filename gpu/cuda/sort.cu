/* SPDX-License-Identifier: MIT */
/* gpu/cuda/sort.cu - order: keys as numbers, sorted by CUB; and what a limit leaves out found by
 * histograms of the keys' digits. */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "gpu/cuda/relation.cuh"

#define SIGN 0x8000000000000000ull

/* ---- device code ---- */

static __global__ void sort_keys_kernel(uint64_t *keys, uint8_t *nulls, pfs_device_value value,
					const uint32_t *__restrict__ rank, bool descending,
					bool nulls_first, const uint32_t *__restrict__ places,
					uint64_t n)
{
	PFS_EACH(i, n)
	{
		int64_t x = 0;
		bool is_null = !pfs_value(value, places[i], &x);
		uint64_t key = nulls_first ? 0 : UINT64_MAX;

		if (!is_null) {
			key = rank ? rank[x] : (uint64_t)x ^ SIGN;
			if (descending)
				key = ~key;
		}
		keys[i] = key;
		if (nulls)
			nulls[i] = is_null != nulls_first;
	}
}

static __global__ void __launch_bounds__(256)
	histogram_kernel(uint32_t *histogram, const uint64_t *__restrict__ keys, uint64_t n,
			 uint64_t prefix, int shift)
{
	__shared__ uint32_t mine[4096];

	for (int i = threadIdx.x; i < 4096; i += blockDim.x)
		mine[i] = 0;
	__syncthreads();
	PFS_EACH(i, n)
	{
		uint64_t key = keys[i];

		if (shift + 12 >= 64 || key >> (shift + 12) == prefix)
			atomicAdd(&mine[key >> shift & 4095], 1u);
	}
	__syncthreads();
	for (int i = threadIdx.x; i < 4096; i += blockDim.x)
		if (mine[i])
			atomicAdd(&histogram[i], mine[i]);
}

static __global__ void at_most_kernel(uint32_t *bits, const uint64_t *__restrict__ keys, uint64_t n,
				      uint64_t most)
{
	PFS_EACH(i, (n + 31) / 32 * 32)
	{
		uint32_t word = __ballot_sync(PFS_ALL_LANES, i < n && keys[i] <= most);

		if ((threadIdx.x & 31) == 0)
			bits[i / 32] = word;
	}
}

/* ---- launches ---- */

extern "C" int pfs_cuda_sort_keys(uint64_t *d_keys, uint8_t *d_nulls, const pfs_device_value *value,
				  const uint32_t *d_rank, bool descending, bool nulls_first,
				  const uint32_t *d_places, uint64_t n, cudaStream_t stream)
{
	sort_keys_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_keys, d_nulls, *value, d_rank,
							  descending, nulls_first, d_places, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_sort_pairs(void *d_temporary, size_t *temporary_size, uint64_t *d_keys_out,
				   const uint64_t *d_keys, uint32_t *d_places_out,
				   const uint32_t *d_places, uint64_t n, int bits,
				   cudaStream_t stream)
{
	return PFS_CUDA(cub::DeviceRadixSort::SortPairs(d_temporary, *temporary_size, d_keys,
							d_keys_out, d_places, d_places_out, n, 0,
							bits, stream));
}

extern "C" int pfs_cuda_sort_flags(void *d_temporary, size_t *temporary_size, uint8_t *d_flags_out,
				   const uint8_t *d_flags, uint32_t *d_places_out,
				   const uint32_t *d_places, uint64_t n, cudaStream_t stream)
{
	return PFS_CUDA(cub::DeviceRadixSort::SortPairs(d_temporary, *temporary_size, d_flags,
							d_flags_out, d_places, d_places_out, n, 0,
							1, stream));
}

extern "C" int pfs_cuda_sort_histogram(uint32_t *d_histogram, const uint64_t *d_keys, uint64_t n,
				       uint64_t prefix, int shift, cudaStream_t stream)
{
	histogram_kernel<<<std::min(pfs_blocks(n, 256 * 16), 132u * 8), 256, 0, stream>>>(
		d_histogram, d_keys, n, prefix, shift);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_sort_at_most(uint32_t *d_bits, const uint64_t *d_keys, uint64_t n,
				     uint64_t most, cudaStream_t stream)
{
	at_most_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_bits, d_keys, n, most);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_sums_32(void *d_temporary, size_t *temporary_size, uint32_t *d_out,
				const uint32_t *d_in, uint64_t n, cudaStream_t stream)
{
	return PFS_CUDA(cub::DeviceScan::ExclusiveSum(d_temporary, *temporary_size, d_in, d_out,
						      (int64_t)n, stream));
}

extern "C" int pfs_cuda_sums_64(void *d_temporary, size_t *temporary_size, uint64_t *d_out,
				const uint64_t *d_in, uint64_t n, cudaStream_t stream)
{
	return PFS_CUDA(cub::DeviceScan::ExclusiveSum(d_temporary, *temporary_size, d_in, d_out,
						      (int64_t)n, stream));
}
