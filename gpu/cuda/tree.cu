/* SPDX-License-Identifier: MIT */
/* gpu/cuda/tree.cu - questions that parents and primes answer: ways up, membership, factors. */
#include "gpu/cuda/device.cuh"

#define NO_SLOT UINT32_MAX

typedef unsigned long long wide;

/* ---- device code ---- */

/* One lane: each step waits for the one before. */
static __global__ void parents_kernel(pfs_cuda_tree t, uint32_t *bits, uint32_t slot)
{
	uint32_t d = t.d_home[slot];

	if (t.d_directory_slot[d] == slot)
		d = t.d_directories[d].parent;
	for (; d; d = t.d_directories[d].parent) {
		uint32_t at = t.d_directory_slot[d];

		bits[at >> 5] |= 1u << (at & 31);
	}
}

/* A warp writes one word.  A bit that another warp has set meanwhile ends a way up earlier, and
 * rightly: its directory lies under a marked one. */
static __global__ void mark_below_kernel(pfs_cuda_tree t, uint32_t *bits)
{
	PFS_EACH(i, ((size_t)t.n_directories + 31) / 32 * 32)
	{
		uint32_t d = i < t.n_directories ? (uint32_t)i : 0, word;

		while (d && !pfs_bit(bits, d))
			d = t.d_directories[d].parent;
		word = __ballot_sync(PFS_ALL_LANES, d != 0);
		if ((threadIdx.x & 31) == 0)
			bits[i >> 5] = word;
	}
}

/* The same: a mask that another thread has written meanwhile is that of all its ways up. */
static __global__ void masks_below_kernel(pfs_cuda_tree t, wide *masks)
{
	PFS_EACH(i, t.n_directories)
	{
		wide mask = 0;

		for (uint32_t d = (uint32_t)i; d && !mask; d = t.d_directories[d].parent)
			mask = masks[d];
		if (mask)
			masks[i] = mask;
	}
}

static __global__ void dividing_kernel(pfs_cuda_tree t, uint32_t *found, size_t capacity,
				       wide *count, const uint32_t *__restrict__ limbs,
				       size_t n_limbs)
{
	PFS_EACH(d, t.n_directories)
	{
		if (t.d_directory_slot[d] == NO_SLOT ||
		    !pfs_divides(pfs_divisor_of(t.d_directories[d].prime), limbs, (unsigned)n_limbs,
				 1))
			continue;
		wide at = atomicAdd(count, 1ull);

		if (at < capacity)
			found[at] = (uint32_t)d;
	}
}

static __global__ void find_prime_kernel(pfs_cuda_tree t, uint64_t prime, wide *count)
{
	PFS_EACH(i, t.n_slots)
	if (__ldcs(reinterpret_cast<const wide *>(t.d_prime) + i) == prime)
		*count = i + 1;
}

/* ---- launches ---- */

int pfs_cuda_parents(const pfs_cuda_tree *t, uint32_t *d_bits, uint32_t slot, cudaStream_t stream)
{
	parents_kernel<<<1, 1, 0, stream>>>(*t, d_bits, slot);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_mark_below(const pfs_cuda_tree *t, uint32_t *d_bits, cudaStream_t stream)
{
	mark_below_kernel<<<pfs_grid(t->n_directories), 256, 0, stream>>>(*t, d_bits);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_masks_below(const pfs_cuda_tree *t, uint64_t *d_masks, cudaStream_t stream)
{
	masks_below_kernel<<<pfs_grid(t->n_directories), 256, 0, stream>>>(
		*t, reinterpret_cast<wide *>(d_masks));
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_dividing(const pfs_cuda_tree *t, uint32_t *d_found, size_t capacity, uint64_t *d_count,
		      const uint32_t *d_limbs, size_t n_limbs, cudaStream_t stream)
{
	dividing_kernel<<<pfs_grid(t->n_directories), 256, 0, stream>>>(
		*t, d_found, capacity, reinterpret_cast<wide *>(d_count), d_limbs, n_limbs);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_find_prime(const pfs_cuda_tree *t, uint64_t prime, uint64_t *d_count,
			cudaStream_t stream)
{
	find_prime_kernel<<<pfs_grid(t->n_slots), 256, 0, stream>>>(
		*t, prime, reinterpret_cast<wide *>(d_count));
	return PFS_CUDA(cudaGetLastError());
}
