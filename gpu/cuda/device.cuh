/* SPDX-License-Identifier: MIT */
/* gpu/cuda/device.cuh - what device code in several files shares. */
#ifndef PFS_GPU_CUDA_DEVICE_CUH
#define PFS_GPU_CUDA_DEVICE_CUH

#include <algorithm>
#include <atomic>

#include "gpu/cuda/cuda_check.h"
#include "gpu/cuda/kernels.h"
#include "gpu/modexact.h"

#define PFS_ALL_LANES 0xffffffffu
#define PFS_ROWS      1024u

/* Grid-stride loop. */
#define PFS_EACH(i, n)                                                                             \
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n);                    \
	     i += (size_t)gridDim.x * blockDim.x)

static inline unsigned pfs_blocks(size_t n, size_t per_block)
{
	return (unsigned)std::max<size_t>(1, (n + per_block - 1) / per_block);
}

/* Enough blocks of 256 threads to fill any device, for grid-stride loops. */
static inline unsigned pfs_grid(size_t n)
{
	return (unsigned)std::max<size_t>(1, std::min<size_t>((n + 255) / 256, 132 * 32));
}

/* Lets a kernel have so many bytes of shared memory. That is asked for once: *is_allowed says if it
 * has been. */
static inline int pfs_allow_shared(std::atomic<bool> *is_allowed, const void *kernel, size_t bytes)
{
	int error;

	if (*is_allowed)
		return 0;
	error = PFS_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
					      (int)bytes));
	*is_allowed = !error;
	return error;
}

/* Read once: past the caches' favour. */
static __device__ __forceinline__ uint4 pfs_load4(const uint32_t *p)
{
	return __ldcs(reinterpret_cast<const uint4 *>(p));
}

static __device__ __forceinline__ bool pfs_bit(const uint32_t *bits, uint32_t i)
{
	return bits[i >> 5] >> (i & 31) & 1;
}

/* Eight lanes with four bits each make a word; every lane calls it with the index of its four. */
static __device__ __forceinline__ void pfs_store_nibbles(uint32_t nibble, uint32_t *bits,
							 size_t four)
{
	uint32_t word = nibble << (threadIdx.x & 7) * 4;

	word |= __shfl_xor_sync(PFS_ALL_LANES, word, 1);
	word |= __shfl_xor_sync(PFS_ALL_LANES, word, 2);
	word |= __shfl_xor_sync(PFS_ALL_LANES, word, 4);
	if ((threadIdx.x & 7) == 0)
		bits[four >> 3] = word;
}

#endif
