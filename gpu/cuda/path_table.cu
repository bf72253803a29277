/* SPDX-License-Identifier: MIT */
/* gpu/cuda/path_table.cu - the nodes of a tree by their whole paths: a thread a slot walks up, and
 * writes its path into the place that its warp has got. */
#include "gpu/cuda/device.cuh"
#include "gpu/cuda/resident_kernels.h"

/* ---- device code ---- */

static __device__ __forceinline__ uint32_t length_of(const pfs_path_columns &c,
						     const pfs_path_piece &piece, size_t slot)
{
	return slot < min(piece.to, c.n_slots) ? pfs_table_path_length(&c, (uint32_t)slot) : 0;
}

/* Adds the warp's nodes and what their paths take to *size; returns where this lane's begins. */
static __device__ __forceinline__ unsigned long long add(pfs_path_size *size, uint32_t len)
{
	const uint32_t lane = threadIdx.x & 31, words = pfs_table_path_size(len);
	const uint32_t n = __popc(__ballot_sync(PFS_ALL_LANES, len != 0));
	unsigned long long begin = 0;
	uint32_t end = words;

	for (uint32_t step = 1; step < 32; step *= 2) {
		uint32_t before = __shfl_up_sync(PFS_ALL_LANES, end, step);

		end += lane >= step ? before : 0;
	}
	if (lane == 31 && n) {
		(void)atomicAdd(&size->n, n);
		begin = atomicAdd(&size->words, end);
	}
	return __shfl_sync(PFS_ALL_LANES, begin, 31) + end - words;
}

static __device__ void insert(const pfs_path_table &t, const pfs_path_columns &c, uint32_t slot,
			      uint32_t len, uint32_t word)
{
	const uint64_t *text = t.text + (uint64_t)word * PFS_PATH_ALIGN;
	const uint64_t hash = pfs_path_hash(c.seed, (const char *)text, len);
	uint32_t i = (uint32_t)hash & t.mask;

	while (atomicCAS(&t.nodes[i].slot, PFS_PATH_NOWHERE, slot) != PFS_PATH_NOWHERE)
		i = (i + 1) & t.mask;
	t.nodes[i].tag = (uint32_t)(hash >> 32);
	t.nodes[i].len = len;
	t.nodes[i].word = word;
}

/* All lanes of a warp go through as many rounds. */
static __global__ void measure_kernel(pfs_path_size *size, const pfs_path_columns c,
				      const pfs_path_piece piece)
{
	for (size_t from = piece.from + (size_t)blockIdx.x * blockDim.x; from < piece.to;
	     from += (size_t)gridDim.x * blockDim.x)
		(void)add(size, length_of(c, piece, from + threadIdx.x));
}

static __global__ void fill_kernel(const pfs_path_table t, pfs_path_size *size,
				   const pfs_path_columns c, const pfs_path_piece piece)
{
	for (size_t from = piece.from + (size_t)blockIdx.x * blockDim.x; from < piece.to;
	     from += (size_t)gridDim.x * blockDim.x) {
		const size_t slot = from + threadIdx.x;
		const bool is_marked =
			slot < piece.to && pfs_table_is_marked(&t, (uint32_t)slot);
		const uint32_t len = is_marked ? 0 : length_of(c, piece, slot);
		const unsigned long long word = add(size, len);

		if (!len)
			continue;
		pfs_table_path_write(&c, (uint32_t)slot, t.text + word * PFS_PATH_ALIGN, len);
		insert(t, c, (uint32_t)slot, len, (uint32_t)word);
	}
}

/* ---- launches ---- */

extern "C" int pfs_cuda_path_measure(struct pfs_path_size *d_size,
				     const struct pfs_path_columns *columns,
				     const struct pfs_path_piece *piece, cudaStream_t stream)
{
	measure_kernel<<<pfs_grid(piece->to - piece->from), 256, 0, stream>>>(d_size, *columns,
									      *piece);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_path_fill(const struct pfs_path_table *table, struct pfs_path_size *d_size,
				  const struct pfs_path_columns *columns,
				  const struct pfs_path_piece *piece, cudaStream_t stream)
{
	fill_kernel<<<pfs_grid(piece->to - piece->from), 256, 0, stream>>>(*table, d_size,
									   *columns, *piece);
	return PFS_CUDA(cudaGetLastError());
}
