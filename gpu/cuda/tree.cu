/* SPDX-License-Identifier: MIT */
/* gpu/cuda/tree.cu - questions that parents and primes answer: children, membership, factors. */
#include "gpu/cuda/device.cuh"

#define NO_SLOT UINT32_MAX

typedef unsigned long long wide;

/* ---- device code ---- */

static __global__ void __launch_bounds__(256)
	children_kernel(pfs_cuda_tree t, uint32_t *__restrict__ bits, size_t words,
			uint32_t directory, uint64_t from, uint64_t to)
{
	/* Whole warps: words is a multiple of 32, a word's 32 slots are eight lanes' fours. */
	PFS_EACH(four, words * 8)
	{
		uint64_t slot = (uint64_t)four * 4;
		uint32_t nibble = 0;

		if (slot + 4 > from && slot < to) {
			uint4 home = pfs_load4(t.d_home + slot);

			nibble = (home.x == directory) | (home.y == directory) << 1 |
				 (home.z == directory) << 2 | (home.w == directory) << 3;
		}
		pfs_store_nibbles(nibble, bits, four);
	}
}

/* The directory itself has that home, its subdirectories have not. */
static __global__ void subdirectories_kernel(pfs_cuda_tree t, uint32_t *bits, uint32_t directory)
{
	PFS_EACH(d, t.n_directories)
	{
		uint32_t slot = t.d_directory_slot[d];

		if (slot == NO_SLOT)
			continue;
		if (d == directory)
			atomicAnd(bits + (slot >> 5), ~(1u << (slot & 31)));
		else if (t.d_directories[d].parent == directory)
			atomicOr(bits + (slot >> 5), 1u << (slot & 31));
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

int pfs_cuda_children(const pfs_cuda_tree *t, uint32_t *d_bits, size_t words, uint32_t directory,
		      uint64_t from, uint64_t to, cudaStream_t stream)
{
	children_kernel<<<pfs_grid(words * 8), 256, 0, stream>>>(*t, d_bits, words, directory, from,
								 to);
	subdirectories_kernel<<<pfs_grid(t->n_directories), 256, 0, stream>>>(*t, d_bits,
									      directory);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_mark_below(const pfs_cuda_tree *t, uint32_t *d_bits, cudaStream_t stream)
{
	mark_below_kernel<<<pfs_grid(t->n_directories), 256, 0, stream>>>(*t, d_bits);
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
