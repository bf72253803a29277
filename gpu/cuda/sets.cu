/* SPDX-License-Identifier: MIT */
/* gpu/cuda/sets.cu - bitmaps: filled, combined, counted; columns patched. */
#include <algorithm>

#include "gpu/cuda/device.cuh"
#include "gpu/engine_impl.h"

/* ---- device code ---- */

static __global__ void fill_kernel(uint32_t *bits, size_t words, uint64_t from, uint64_t to)
{
	PFS_EACH(i, words)
	{
		uint64_t bit = (uint64_t)i * 32;
		uint64_t low = min(max(from, bit), bit + 32) - bit;
		uint64_t high = min(max(to, bit), bit + 32) - bit;

		bits[i] = (uint32_t)(((UINT64_C(1) << high) - 1) & ~((UINT64_C(1) << low) - 1));
	}
}

static __global__ void set_bits_kernel(uint32_t *bits, const uint32_t *__restrict__ list, size_t n)
{
	PFS_EACH(i, n)
	atomicOr(bits + (list[i] >> 5), 1u << (list[i] & 31));
}

static __global__ void combine_kernel(uint32_t *bits, size_t words,
				      const uint32_t *__restrict__ other, size_t other_words,
				      int op)
{
	PFS_EACH(i, words)
	{
		uint32_t a = bits[i], b = i < other_words ? other[i] : 0;

		bits[i] = op == PFS_BITMAP_AND ? a & b : op == PFS_BITMAP_OR ? a | b : a & ~b;
	}
}

static __global__ void count_kernel(const uint32_t *__restrict__ bits, size_t words,
				    unsigned long long *count)
{
	uint32_t sum = 0;

	PFS_EACH(i, words / 4)
	{
		uint4 w = pfs_load4(bits + i * 4);

		sum += __popc(w.x) + __popc(w.y) + __popc(w.z) + __popc(w.w);
	}
	sum = __reduce_add_sync(PFS_ALL_LANES, sum);
	if ((threadIdx.x & 31) == 0 && sum)
		atomicAdd(count, (unsigned long long)sum);
}

template <typename T>
static __global__ void scatter_kernel(T *target, const uint32_t *__restrict__ list,
				      const T *__restrict__ values, size_t n)
{
	PFS_EACH(i, n)
	target[list[i]] = values[i];
}

/* ---- launches ---- */

int pfs_cuda_fill(uint32_t *d_bits, size_t words, uint64_t from, uint64_t to, cudaStream_t stream)
{
	fill_kernel<<<pfs_grid(words), 256, 0, stream>>>(d_bits, words, from, to);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_set_bits(uint32_t *d_bits, const uint32_t *d_list, size_t n, cudaStream_t stream)
{
	if (n)
		set_bits_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_bits, d_list, n);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_combine(uint32_t *d_bits, size_t words, const uint32_t *d_other, size_t other_words,
		     int op, cudaStream_t stream)
{
	combine_kernel<<<pfs_grid(words), 256, 0, stream>>>(d_bits, words, d_other, other_words,
							    op);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_count(const uint32_t *d_bits, size_t words, uint64_t *d_count, cudaStream_t stream)
{
	count_kernel<<<std::min(pfs_grid(words / 4), 132u * 8), 256, 0, stream>>>(
		d_bits, words, reinterpret_cast<unsigned long long *>(d_count));
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_scatter32(uint32_t *d_target, const uint32_t *d_list, const uint32_t *d_values,
		       size_t n, cudaStream_t stream)
{
	scatter_kernel<uint32_t><<<pfs_grid(n), 256, 0, stream>>>(d_target, d_list, d_values, n);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_scatter64(uint64_t *d_target, const uint32_t *d_list, const uint64_t *d_values,
		       size_t n, cudaStream_t stream)
{
	scatter_kernel<uint64_t><<<pfs_grid(n), 256, 0, stream>>>(d_target, d_list, d_values, n);
	return PFS_CUDA(cudaGetLastError());
}
