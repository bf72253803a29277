/* SPDX-License-Identifier: MIT */
/* gpu/cuda/prefix.cu - prefix trees: one key a thread, or one key in all partitions at once. */
#include "gpu/cuda/device.cuh"
#include "gpu/cuda/prefix_kernels.h"

#define KEYS_THREADS  128 /* each goes its own way: smaller blocks end sooner */
#define WALK_THREADS  256
#define BLOCK_THREADS 256

/* ---- device code ---- */

static __device__ __forceinline__ pfs_prefix_text key_at(const pfs_device_prefix &p, uint32_t i)
{
	uint64_t at = p.d_at[i];
	pfs_prefix_text key = {p.d_bytes + at, (uint32_t)(p.d_at[i + 1] - at), 0};

	key.n_levels = pfs_prefix_levels_of(key.len, p.view.bits);
	return key;
}

static __device__ __forceinline__ bool is_item(uint32_t word)
{
	return (word & PFS_PREFIX_ITEM) != 0;
}

static __global__ void __launch_bounds__(KEYS_THREADS)
	serial_kernel(pfs_device_prefix p, uint32_t from, uint32_t n)
{
	PFS_EACH(i, n)
	{
		pfs_prefix_text key = key_at(p, from + (uint32_t)i);

		p.d_items[from + i] = pfs_prefix_serial(&p.view, &key);
	}
}

/* The key is the same in a block's threads: its bytes are read together. */
static __global__ void __launch_bounds__(WALK_THREADS)
	walk_kernel(pfs_device_prefix p, pfs_device_prefix_batch b)
{
	pfs_prefix_text key = key_at(p, b.from + blockIdx.y);
	size_t row = (size_t)blockIdx.y * p.n_partitions;
	uint32_t partition = blockIdx.x * blockDim.x + threadIdx.x, result;

	if (partition >= p.n_partitions)
		return;
	result = pfs_prefix_walk(&p.view, partition, &key);
	b.d_results[row + partition] = result;
	if (!b.d_previous || result == 0)
		return;
	if (is_item(result))
		atomicAdd(&b.d_counts[blockIdx.y], 1u);
	else
		b.d_previous[row + result] = partition + 1;
}

static __global__ void join_kernel(pfs_device_prefix p, pfs_device_prefix_batch b)
{
	PFS_EACH(i, b.n)
	{
		const uint32_t *results = b.d_results + i * p.n_partitions;
		uint32_t result = results[0];

		while (result && !is_item(result))
			result = results[result];
		p.d_items[b.from + i] = result;
	}
}

static __global__ void __launch_bounds__(WALK_THREADS)
	trace_kernel(pfs_device_prefix p, pfs_device_prefix_batch b)
{
	size_t row = (size_t)blockIdx.y * p.n_partitions;
	uint32_t at = blockIdx.x * blockDim.x + threadIdx.x, result;

	if (at >= p.n_partitions)
		return;
	result = b.d_results[row + at];
	if (!is_item(result))
		return;
	/* The only one is the key's, or the key is not there: the host compares. */
	while (at && b.d_counts[blockIdx.y] != 1) {
		uint32_t previous = b.d_previous[row + at];

		if (previous == 0)
			return;
		at = previous - 1;
	}
	p.d_items[b.from + blockIdx.y] = result; /* one thread at most gets here */
}

/* Each block's way from its root, the first of its list, to where it leaves the block. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
	block_kernel(pfs_device_prefix p, pfs_device_prefix_batch b)
{
	__shared__ uint32_t results[PFS_PREFIX_SHARED];
	pfs_prefix_text key = key_at(p, b.from + blockIdx.y);
	uint32_t block = blockIdx.x, first = p.blocks.d_first[block];
	uint32_t n = p.blocks.d_first[block + 1] - first;

	for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
		results[i] = pfs_prefix_walk(&p.view, p.blocks.d_list[first + i], &key);
	__syncthreads();
	if (threadIdx.x == 0) {
		uint32_t result = n ? results[0] : 0;

		while (result && !is_item(result) && p.blocks.d_block[result] == block)
			result = results[p.blocks.d_place[result]];
		b.d_results[(size_t)blockIdx.y * p.blocks.n + block] = result;
	}
}

static __global__ void join_blocks_kernel(pfs_device_prefix p, pfs_device_prefix_batch b)
{
	PFS_EACH(i, b.n)
	{
		const uint32_t *results = b.d_results + i * p.blocks.n;
		uint32_t result = results[p.blocks.d_block[0]];

		while (result && !is_item(result))
			result = results[p.blocks.d_block[result]];
		p.d_items[b.from + i] = result;
	}
}

static __global__ void name_kernel(uint32_t *found, const uint32_t *__restrict__ names, uint32_t n,
				   const uint32_t *__restrict__ name)
{
	PFS_EACH(i, n)
	{
		const uint32_t *mine = names + i * (PFS_PREFIX_NAME_ROOM / 4);
		uint32_t k = 0;

		while (k < PFS_PREFIX_NAME_ROOM / 4 && mine[k] == name[k])
			k++;
		if (k == PFS_PREFIX_NAME_ROOM / 4)
			*found = (uint32_t)i; /* names differ */
	}
}

/* ---- launch wrappers ---- */

extern "C" int pfs_cuda_prefix_serial(const pfs_device_prefix *prefix,
				      const pfs_device_prefix_batch *batch, cudaStream_t stream)
{
	serial_kernel<<<pfs_blocks(batch->n, KEYS_THREADS), KEYS_THREADS, 0, stream>>>(
		*prefix, batch->from, batch->n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_prefix_speculative(const pfs_device_prefix *prefix,
					   const pfs_device_prefix_batch *batch,
					   cudaStream_t stream)
{
	dim3 grid(pfs_blocks(prefix->n_partitions, WALK_THREADS), batch->n);

	walk_kernel<<<grid, WALK_THREADS, 0, stream>>>(*prefix, *batch);
	join_kernel<<<pfs_grid(batch->n), 256, 0, stream>>>(*prefix, *batch);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_prefix_parallel(const pfs_device_prefix *prefix,
					const pfs_device_prefix_batch *batch, cudaStream_t stream)
{
	dim3 grid(pfs_blocks(prefix->n_partitions, WALK_THREADS), batch->n);

	walk_kernel<<<grid, WALK_THREADS, 0, stream>>>(*prefix, *batch);
	trace_kernel<<<grid, WALK_THREADS, 0, stream>>>(*prefix, *batch);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_prefix_hierarchical(const pfs_device_prefix *prefix,
					    const pfs_device_prefix_batch *batch,
					    cudaStream_t stream)
{
	dim3 grid(prefix->blocks.n, batch->n);

	block_kernel<<<grid, BLOCK_THREADS, 0, stream>>>(*prefix, *batch);
	join_blocks_kernel<<<pfs_grid(batch->n), 256, 0, stream>>>(*prefix, *batch);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_prefix_name(uint32_t *d_found, const uint32_t *d_names, uint32_t n,
				    const uint32_t *d_name, cudaStream_t stream)
{
	name_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_found, d_names, n, d_name);
	return PFS_CUDA(cudaGetLastError());
}
