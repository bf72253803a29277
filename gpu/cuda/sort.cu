/* SPDX-License-Identifier: MIT */
/* gpu/cuda/sort.cu - order: keys as numbers, sorted by CUB; and what a limit leaves out found by
 * histograms of the keys' digits. */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "gpu/cuda/loads.cuh"

#define SIGN	0x8000000000000000ull
#define FOURS	2 /* a thread and turn */
#define ROWS	(FOURS * 4)
#define THREADS 256
#define TILE	(THREADS * ROWS)

#define EACH_TILE(base, places)                                                                    \
	for (uint64_t base = (places.from & ~UINT64_C(31)) + (uint64_t)blockIdx.x * TILE;          \
	     base < places.to; base += (uint64_t)gridDim.x * TILE)

/* ---- device code ---- */

/* A value as a number in the order wanted. */
static __device__ __forceinline__ uint64_t key_of(const pfs_device_sort_key &key, int64_t x)
{
	uint64_t number = key.d_rank ? key.d_rank[x] : (uint64_t)x ^ SIGN;

	return key.descending ? ~number : number;
}

static __global__ void sort_keys_kernel(uint64_t *keys, uint8_t *nulls,
					const __grid_constant__ pfs_device_sort_key key,
					const uint32_t *__restrict__ places, uint64_t n)
{
	PFS_EACH(i, n)
	{
		int64_t x = 0;
		bool is_null = !pfs_value(key.value, places[i], &x);

		keys[i] = !is_null ? key_of(key, x) : key.nulls_first ? 0 : UINT64_MAX;
		if (nulls)
			nulls[i] = is_null != key.nulls_first;
	}
}

/* The keys of a thread's places. */
static __device__ __forceinline__ void keys_of(uint64_t (&keys)[ROWS], const pfs_fours<FOURS> &f,
					       const pfs_device_sort_key &key)
{
	uint32_t known = f.valid;

	pfs_load<FOURS>(keys, &known, key.value, f);
#pragma unroll
	for (int r = 0; r < ROWS; r++)
		if (known >> r & 1)
			keys[r] = key_of(key, pfs_cooked(key.value.column, keys[r]));
		else
			keys[r] = key.nulls_first ? 0 : UINT64_MAX;
}

/* Where many keys have one digit a thread counts those of its own at once. */
static __global__ void __launch_bounds__(THREADS)
	histogram_kernel(uint32_t *histogram, const __grid_constant__ pfs_device_sort_key key,
			 const __grid_constant__ pfs_device_places places, uint64_t prefix,
			 int shift)
{
	__shared__ uint32_t mine[4096];
	uint32_t digit = 0, in_digit = 0;

	for (int i = threadIdx.x; i < 4096; i += blockDim.x)
		mine[i] = 0;
	__syncthreads();
	EACH_TILE(base, places)
	{
		uint64_t keys[ROWS];
		pfs_fours<FOURS> f;

		pfs_take<FOURS>(f, places, base, blockDim.x);
		keys_of(keys, f, key);
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			uint32_t d = keys[r] >> shift & 4095;

			if (!(f.valid >> r & 1) ||
			    (shift + 12 < 64 && keys[r] >> (shift + 12) != prefix))
				continue;
			if (d != digit && in_digit) {
				atomicAdd(&mine[digit], in_digit);
				in_digit = 0;
			}
			digit = d;
			in_digit++;
		}
	}
	if (in_digit)
		atomicAdd(&mine[digit], in_digit);
	__syncthreads();
	for (int i = threadIdx.x; i < 4096; i += blockDim.x)
		if (mine[i])
			atomicAdd(&histogram[i], mine[i]);
}

/* Eight threads' fours are a word. */
static __global__ void __launch_bounds__(THREADS)
	at_most_kernel(uint32_t *bits, const __grid_constant__ pfs_device_sort_key key,
		       const __grid_constant__ pfs_device_places places, uint64_t most)
{
	EACH_TILE(base, places)
	{
		uint64_t keys[ROWS];
		pfs_fours<FOURS> f;

		pfs_take<FOURS>(f, places, base, blockDim.x);
		keys_of(keys, f, key);
#pragma unroll
		for (int i = 0; i < FOURS; i++) {
			uint32_t word = 0;

#pragma unroll
			for (int r = 0; r < 4; r++)
				if ((f.valid >> (4 * i + r) & 1) && keys[4 * i + r] <= most)
					word |= 1u << r;
			word <<= f.first[i] & 31;
			for (int d = 1; d < 8; d *= 2)
				word |= __shfl_xor_sync(PFS_ALL_LANES, word, d);
			if (!(f.first[i] & 31) && f.first[i] < places.to)
				bits[f.first[i] / 32] = word;
		}
	}
}

/* ---- launches ---- */

static unsigned tiles(const pfs_device_places *places)
{
	return std::min(pfs_blocks(places->to - (places->from & ~UINT64_C(31)), TILE), 132u * 8);
}

extern "C" int pfs_cuda_sort_keys(uint64_t *d_keys, uint8_t *d_nulls,
				  const pfs_device_sort_key *key, const uint32_t *d_places,
				  uint64_t n, cudaStream_t stream)
{
	sort_keys_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_keys, d_nulls, *key, d_places, n);
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

extern "C" int pfs_cuda_sort_histogram(uint32_t *d_histogram, const pfs_device_sort_key *key,
				       const pfs_device_places *places, uint64_t prefix, int shift,
				       cudaStream_t stream)
{
	histogram_kernel<<<tiles(places), THREADS, 0, stream>>>(d_histogram, *key, *places, prefix,
								shift);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_sort_at_most(uint32_t *d_bits, const pfs_device_sort_key *key,
				     const pfs_device_places *places, uint64_t most,
				     cudaStream_t stream)
{
	at_most_kernel<<<tiles(places), THREADS, 0, stream>>>(d_bits, *key, *places, most);
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
