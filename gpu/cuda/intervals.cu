/* SPDX-License-Identifier: MIT */
/* gpu/cuda/intervals.cu - nested intervals on the device, four nodes a thread. */
#include "gpu/cuda/device.cuh"
#include "gpu/intervals.h"

/* ---- device code ---- */

static __global__ void in_kernel(uint32_t *__restrict__ bits, const uint32_t *__restrict__ rank,
				 size_t fours, uint32_t from, uint32_t size)
{
	PFS_EACH(i, fours)
	{
		uint4 r = pfs_load4(rank + 4 * i);
		uint32_t nibble = pfs_interval_holds(from, size, r.x);

		nibble |= pfs_interval_holds(from, size, r.y) << 1;
		nibble |= pfs_interval_holds(from, size, r.z) << 2;
		nibble |= pfs_interval_holds(from, size, r.w) << 3;
		pfs_store_nibbles(nibble, bits, i);
	}
}

static __global__ void around_kernel(uint32_t *__restrict__ bits, const uint32_t *__restrict__ rank,
				     const uint32_t *__restrict__ size, size_t fours, uint32_t at)
{
	PFS_EACH(i, fours)
	{
		uint4 r = pfs_load4(rank + 4 * i), s = pfs_load4(size + 4 * i);
		uint32_t nibble = pfs_interval_holds(r.x, s.x, at);

		nibble |= pfs_interval_holds(r.y, s.y, at) << 1;
		nibble |= pfs_interval_holds(r.z, s.z, at) << 2;
		nibble |= pfs_interval_holds(r.w, s.w, at) << 3;
		pfs_store_nibbles(nibble, bits, i);
	}
}

static __device__ __forceinline__ bool differ(uint4 a, uint4 b)
{
	return a.x != b.x || a.y != b.y || a.z != b.z || a.w != b.w;
}

static __global__ void move_kernel(uint4 *__restrict__ rank, uint4 *__restrict__ size, size_t fours,
				   pfs_interval_move move)
{
	PFS_EACH(i, fours)
	{
		uint4 r = rank[i], s = size[i], old_r = r, old_s = s;

		pfs_interval_moved(&r.x, &s.x, move);
		pfs_interval_moved(&r.y, &s.y, move);
		pfs_interval_moved(&r.z, &s.z, move);
		pfs_interval_moved(&r.w, &s.w, move);
		if (differ(r, old_r))
			rank[i] = r;
		if (differ(s, old_s))
			size[i] = s;
	}
}

/* ---- launches ---- */

int pfs_cuda_intervals_in(uint32_t *d_bits, const uint32_t *d_rank, size_t n, uint32_t from,
			  uint32_t size, cudaStream_t stream)
{
	in_kernel<<<pfs_grid(n / 4), 256, 0, stream>>>(d_bits, d_rank, n / 4, from, size);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_intervals_around(uint32_t *d_bits, const uint32_t *d_rank, const uint32_t *d_size,
			      size_t n, uint32_t at, cudaStream_t stream)
{
	around_kernel<<<pfs_grid(n / 4), 256, 0, stream>>>(d_bits, d_rank, d_size, n / 4, at);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_intervals_move(uint32_t *d_rank, uint32_t *d_size, size_t n,
			    const struct pfs_interval_move *move, cudaStream_t stream)
{
	move_kernel<<<pfs_grid(n / 4), 256, 0, stream>>>(reinterpret_cast<uint4 *>(d_rank),
							 reinterpret_cast<uint4 *>(d_size), n / 4,
							 *move);
	return PFS_CUDA(cudaGetLastError());
}
