/* SPDX-License-Identifier: MIT */
/* gpu/cuda/prefix_kernels.h - launch wrappers of prefix trees on the device, under the rules of
 * relation_kernels.h.
 *
 * A batch is some of the keys and a table: what each of them finds in each partition, or block, key
 * by key.  Items have PFS_PREFIX_ITEM; 0 is none. */
#ifndef PFS_GPU_CUDA_PREFIX_KERNELS_H
#define PFS_GPU_CUDA_PREFIX_KERNELS_H

#include <cuda_runtime_api.h>

#include "gpu/prefix_walk.h"

#define PFS_PREFIX_SHARED    1024u /* results of a block in shared memory: PFS_PREFIX_BLOCK_MAX */
#define PFS_PREFIX_NAME_ROOM 256u

struct pfs_device_blocks { /* as struct pfs_prefix_blocks */
	const uint32_t *d_first, *d_list, *d_place, *d_block;
	uint32_t n;
};

struct pfs_device_prefix {
	struct pfs_prefix_view view; /* of device memory */
	struct pfs_device_blocks blocks;
	uint32_t n_partitions; /* numbers */
	const uint8_t *d_bytes; /* of all keys, key i from d_at[i] to d_at[i + 1] */
	const uint64_t *d_at;
	uint32_t *d_items; /* by key */
};

struct pfs_device_prefix_batch {
	uint32_t from, n; /* keys */
	uint32_t *d_results;
	/* Used on the way backwards, and cleared before: the node from which a partition is
	 * reached, plus 1; and for each key of the batch the number of payloads that were found. */
	uint32_t *d_previous, *d_counts;
};

#ifdef __cplusplus
extern "C" {
#endif

/* A thread a key; all the batch needs are from and n. */
int pfs_cuda_prefix_serial(const struct pfs_device_prefix *prefix,
			   const struct pfs_device_prefix_batch *batch, cudaStream_t stream);
/* A thread a partition and key; then a thread a key that follows the results from the root on. */
int pfs_cuda_prefix_speculative(const struct pfs_device_prefix *prefix,
				const struct pfs_device_prefix_batch *batch, cudaStream_t stream);
/* As pfs_cuda_prefix_speculative at first; then a thread goes from each partition with a payload
 * back to the root. Where a key has found exactly one payload its item is that, whether it is the
 * key's or not. */
int pfs_cuda_prefix_parallel(const struct pfs_device_prefix *prefix,
			     const struct pfs_device_prefix_batch *batch, cudaStream_t stream);
/* A block of threads for each block of partitions, whose results stay in shared memory; results are
 * by block. */
int pfs_cuda_prefix_hierarchical(const struct pfs_device_prefix *prefix,
				 const struct pfs_device_prefix_batch *batch, cudaStream_t stream);
/* *d_found = the number of the name among n of PFS_PREFIX_NAME_ROOM bytes, a thread each; else it
 * stays. */
int pfs_cuda_prefix_name(uint32_t *d_found, const uint32_t *d_names, uint32_t n,
			 const uint32_t *d_name, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
