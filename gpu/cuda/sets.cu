/* SPDX-License-Identifier: MIT */
/* gpu/cuda/sets.cu - bitmaps: filled, combined, counted, listed; columns patched. */
#include <cub/device/device_scan.cuh>

#include "gpu/cuda/device.cuh"
#include "gpu/engine_impl.h"

#define LIST_WORDS 256u /* a block */

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

static __global__ void live_kernel(uint32_t *__restrict__ out, const uint32_t *__restrict__ bits,
				   size_t words, const uint32_t *__restrict__ home)
{
	PFS_EACH(i, words * 32)
	{
		uint32_t live = __ballot_sync(PFS_ALL_LANES, home[i] != 0);

		if ((threadIdx.x & 31) == 0)
			out[i >> 5] = bits[i >> 5] & live;
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

static __global__ void count_blocks_kernel(const uint32_t *__restrict__ bits, size_t words,
					   uint64_t *counts)
{
	size_t i = (size_t)blockIdx.x * LIST_WORDS + threadIdx.x;
	__shared__ uint32_t total;

	if (threadIdx.x == 0)
		total = 0;
	__syncthreads();
	uint32_t sum = __reduce_add_sync(PFS_ALL_LANES, i < words ? __popc(bits[i]) : 0);

	if ((threadIdx.x & 31) == 0)
		atomicAdd(&total, sum);
	__syncthreads();
	if (threadIdx.x == 0)
		counts[blockIdx.x] = total;
}

/* places[block]: set bits before its words. */
static __global__ void __launch_bounds__(LIST_WORDS)
	list_kernel(uint32_t *__restrict__ slots, size_t capacity,
		    const uint32_t *__restrict__ bits, size_t words,
		    const uint64_t *__restrict__ places, unsigned long long *count)
{
	size_t i = (size_t)blockIdx.x * LIST_WORDS + threadIdx.x;
	uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	uint32_t word = i < words ? bits[i] : 0, n = __popc(word), before = n;
	__shared__ uint32_t warps[LIST_WORDS / 32];
	uint64_t at;

	for (unsigned step = 1; step < 32; step *= 2) {
		uint32_t other = __shfl_up_sync(PFS_ALL_LANES, before, step);

		if (lane >= step)
			before += other;
	}
	if (lane == 31)
		warps[warp] = before;
	__syncthreads();
	at = places[blockIdx.x] + before - n;
	for (uint32_t w = 0; w < warp; w++)
		at += warps[w];
	if (blockIdx.x == gridDim.x - 1 && threadIdx.x == LIST_WORDS - 1)
		*count = at + n;
	for (; word && at < capacity; word &= word - 1)
		slots[at++] = (uint32_t)(i * 32) + __ffs(word) - 1;
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

int pfs_cuda_live(uint32_t *d_out, const uint32_t *d_bits, size_t words, const uint32_t *d_home,
		  cudaStream_t stream)
{
	live_kernel<<<pfs_grid(words * 32), 256, 0, stream>>>(d_out, d_bits, words, d_home);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_count(const uint32_t *d_bits, size_t words, uint64_t *d_count, cudaStream_t stream)
{
	count_kernel<<<std::min(pfs_grid(words / 4), 132u * 8), 256, 0, stream>>>(
		d_bits, words, reinterpret_cast<unsigned long long *>(d_count));
	return PFS_CUDA(cudaGetLastError());
}

static size_t scan_size(size_t n)
{
	size_t size = 0;

	(void)cub::DeviceScan::ExclusiveSum(nullptr, size, (uint64_t *)nullptr, (uint64_t *)nullptr,
					    (int64_t)n);
	return size + 256;
}

size_t pfs_cuda_list_scratch(size_t words)
{
	size_t n = pfs_blocks(words, LIST_WORDS);

	return (n * sizeof(uint64_t) + 255) / 256 * 256 + scan_size(n);
}

int pfs_cuda_list(uint32_t *d_slots, size_t capacity, uint64_t *d_count, const uint32_t *d_bits,
		  size_t words, void *d_scratch, size_t scratch_size, cudaStream_t stream)
{
	unsigned n = pfs_blocks(words, LIST_WORDS);
	uint64_t *d_places = static_cast<uint64_t *>(d_scratch);
	size_t places_size = (n * sizeof(uint64_t) + 255) / 256 * 256;
	size_t size = scratch_size - places_size;
	int error;

	count_blocks_kernel<<<n, LIST_WORDS, 0, stream>>>(d_bits, words, d_places);
	error = PFS_CUDA(cub::DeviceScan::ExclusiveSum(static_cast<char *>(d_scratch) + places_size,
						       size, d_places, d_places, (int64_t)n,
						       stream));
	if (error)
		return error;
	list_kernel<<<n, LIST_WORDS, 0, stream>>>(d_slots, capacity, d_bits, words, d_places,
						  reinterpret_cast<unsigned long long *>(d_count));
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
