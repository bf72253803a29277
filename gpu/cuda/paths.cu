/* SPDX-License-Identifier: MIT */
/* gpu/cuda/paths.cu - listings as bytes: the length of every line, one prefix sum, then eight lanes
 * a line write it from its end upwards through the directories. */
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include "gpu/cuda/device.cuh"
#include "gpu/engine_impl.h"

#define GROUP 8u /* lanes a line */

/* ---- device code ---- */

static __device__ __forceinline__ const uint8_t *name_at(const pfs_cuda_names &names,
							 uint32_t place)
{
	return names.d_heap + ((uint64_t)place << names.shift);
}

static __global__ void places_kernel(pfs_cuda_tree t, pfs_cuda_names names)
{
	PFS_EACH(d, t.n_directories)
	{
		uint32_t slot = t.d_directory_slot[d];

		names.d_directory_place[d] = slot == PFS_NO_SLOT ? 0 : names.d_place[slot];
	}
}

/* Bytes of a directory's path, its slash included: 0 for the root. */
static __global__ void lengths_kernel(pfs_cuda_tree t, pfs_cuda_names names)
{
	PFS_EACH(i, t.n_directories)
	{
		uint32_t length = 0;

		if (t.d_directory_slot[i] != PFS_NO_SLOT)
			for (uint32_t d = (uint32_t)i; d && d != names.root;
			     d = t.d_directories[d].parent)
				length += 1 + *name_at(names, names.d_directory_place[d]);
		names.d_directory_length[i] = length;
	}
}

static __device__ uint32_t digits_of(uint64_t x)
{
	uint32_t digits = 1;

	while (x >= 10) {
		x /= 10;
		digits++;
	}
	return digits;
}

static __device__ uint64_t line_length(const pfs_cuda_tree &t, const pfs_cuda_names &names,
				       uint32_t slot)
{
	uint32_t home = t.d_home[slot];
	bool is_directory = t.d_directory_slot[home] == slot;
	uint64_t length = names.d_directory_length[home];

	if (is_directory)
		length += home == names.root; /* its slash */
	else
		length += 1u + *name_at(names, names.d_place[slot]);
	if (names.flags & PFS_LISTING_PRIMES)
		length += digits_of(t.d_prime[slot]) + 1;
	return length + 1;
}

static __global__ void line_lengths_kernel(pfs_cuda_tree t, pfs_cuda_names names,
					   uint64_t *__restrict__ lengths,
					   const uint32_t *__restrict__ slots, size_t n)
{
	PFS_EACH(i, n)
	lengths[i] = line_length(t, names, slots[i]);
}

/* One thread: a few hundred pieces, a binary search each. */
static __global__ void cuts_kernel(uint64_t *cuts, uint64_t *n_cuts, uint64_t max,
				   const uint64_t *__restrict__ ends, uint64_t n,
				   uint64_t piece_size)
{
	uint64_t at = 0, k = 0;

	cuts[0] = 0;
	while (at < n && k < max) {
		uint64_t limit = (at ? ends[at - 1] : 0) + piece_size, low = at, high = n;

		while (low < high) {
			uint64_t middle = (low + high) / 2;

			if (ends[middle] <= limit)
				low = middle + 1;
			else
				high = middle;
		}
		at = low;
		cuts[++k] = at;
	}
	*n_cuts = k;
}

static __device__ __forceinline__ char *write_name(char *end, const uint8_t *name, uint32_t lane)
{
	uint32_t length = *name;
	char *start = end - length - 1;

	for (uint32_t i = lane; i < length; i += GROUP)
		start[1 + i] = (char)name[1 + i];
	if (lane == 0)
		*start = '/';
	return start;
}

static __device__ void write_prime(char *end, uint64_t prime)
{
	*--end = '\t';
	do {
		*--end = (char)('0' + prime % 10);
		prime /= 10;
	} while (prime);
}

static __global__ void __launch_bounds__(256)
	text_kernel(pfs_cuda_tree t, pfs_cuda_names names, char *__restrict__ text,
		    const uint64_t *__restrict__ ends, const uint32_t *__restrict__ slots,
		    size_t first, size_t n)
{
	uint64_t before = first ? ends[first - 1] : 0;
	uint32_t lane = threadIdx.x % GROUP;

	for (size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / GROUP; i < n;
	     i += (size_t)gridDim.x * blockDim.x / GROUP) {
		uint32_t slot = slots[first + i], home = t.d_home[slot], d = home;
		char *end = text + (ends[first + i] - before) - 1;

		if (lane == 0)
			*end = names.flags & PFS_LISTING_ZERO ? '\0' : '\n';
		if (t.d_directory_slot[home] != slot) {
			end = write_name(end, name_at(names, names.d_place[slot]), lane);
		} else if (home == names.root) {
			end--;
			if (lane == 0)
				*end = '/';
		}
		for (; d && d != names.root; d = t.d_directories[d].parent)
			end = write_name(end, name_at(names, names.d_directory_place[d]), lane);
		if (names.flags & PFS_LISTING_PRIMES && lane == 0)
			write_prime(end, t.d_prime[slot]);
	}
}

/* ---- launches ---- */

int pfs_cuda_directory_paths(const pfs_cuda_tree *t, const pfs_cuda_names *names,
			     cudaStream_t stream)
{
	places_kernel<<<pfs_grid(t->n_directories), 256, 0, stream>>>(*t, *names);
	lengths_kernel<<<pfs_grid(t->n_directories), 256, 0, stream>>>(*t, *names);
	return PFS_CUDA(cudaGetLastError());
}

size_t pfs_cuda_path_scratch(size_t n)
{
	size_t scan = 0, reduce = 0;

	(void)cub::DeviceScan::InclusiveSum(nullptr, scan, (uint64_t *)nullptr, (uint64_t *)nullptr,
					    (int64_t)n);
	(void)cub::DeviceReduce::Max(nullptr, reduce, (uint64_t *)nullptr, (uint64_t *)nullptr,
				     (int64_t)n);
	return std::max(scan, reduce) + 256;
}

int pfs_cuda_path_ends(const pfs_cuda_tree *t, const pfs_cuda_names *names, uint64_t *d_ends,
		       uint64_t *d_longest, const uint32_t *d_slots, size_t n, void *d_scratch,
		       size_t scratch_size, cudaStream_t stream)
{
	int error;

	line_lengths_kernel<<<pfs_grid(n), 256, 0, stream>>>(*t, *names, d_ends, d_slots, n);
	error = PFS_CUDA(cub::DeviceReduce::Max(d_scratch, scratch_size, d_ends, d_longest,
						(int64_t)n, stream));
	error = error ? error
		      : PFS_CUDA(cub::DeviceScan::InclusiveSum(d_scratch, scratch_size, d_ends,
							       d_ends, (int64_t)n, stream));
	return error ? error : PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_path_cuts(uint64_t *d_cuts, uint64_t *d_n_cuts, uint64_t max, const uint64_t *d_ends,
		       size_t n, uint64_t piece_size, cudaStream_t stream)
{
	cuts_kernel<<<1, 1, 0, stream>>>(d_cuts, d_n_cuts, max, d_ends, n, piece_size);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_path_text(const pfs_cuda_tree *t, const pfs_cuda_names *names, char *d_text,
		       const uint64_t *d_ends, const uint32_t *d_slots, size_t first, size_t n,
		       cudaStream_t stream)
{
	text_kernel<<<pfs_blocks(n * GROUP, 256), 256, 0, stream>>>(*t, *names, d_text, d_ends,
								    d_slots, first, n);
	return PFS_CUDA(cudaGetLastError());
}
