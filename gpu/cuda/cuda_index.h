/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_index.h - the B+-tree on the device, as its changes and its benchmark
 * (gpu/probe_impl.h) see it. */
#ifndef PFS_GPU_CUDA_CUDA_INDEX_H
#define PFS_GPU_CUDA_CUDA_INDEX_H

#include "gpu/cuda/cuda_operators.h"
#include "gpu/cuda/index_kernels.h"
#include "gpu/index_upper.h"

#define PFS_INDEX_ARRAYS 9

struct pfs_index_tree {
	struct pfs_device_btree d;
	uint64_t *d_levels;  /* all levels above the fences */
	uint32_t level_room; /* leaves that it has room for */
	uint32_t *d_free;    /* pages not in use, the last taken first; room for all pages */
	uint32_t n_free, n_pages;
	uint64_t n;	   /* entries */
	uint64_t greatest; /* no key is greater */
	struct pfs_index_upper upper; /* where d has no upper levels */
};

/* The tree's arrays on the device, each owned by it. */
void pfs_index_arrays(struct pfs_index_tree *tree, void **arrays[PFS_INDEX_ARRAYS]);

/* The levels of t over n leaves, in d_levels (NULL: not yet); how many keys they have. */
size_t pfs_index_set_levels(struct pfs_device_btree *t, const uint64_t *d_levels, uint32_t n);
/* Makes the host's upper levels anew from the list of leaves, for which they have room; nothing if
 * d has its own. */
PFS_MUST_CHECK int pfs_index_upper_download(struct pfs_job *job, struct pfs_index_tree *tree);
PFS_MUST_CHECK int pfs_index_alloc_leaves(struct pfs_job *job, struct pfs_device_leaves *leaves,
					  uint32_t n);
PFS_MUST_CHECK int pfs_index_alloc_pages(struct pfs_job *job, struct pfs_device_pages *pages,
					 uint32_t n);
/* Zeroes n free pages, from..: they are copied with the others when there are to be more. */
PFS_MUST_CHECK int pfs_index_clear_pages(struct pfs_job *job, struct pfs_device_pages *pages,
					 uint32_t from, uint32_t n);
/* Exclusive sums. */
PFS_MUST_CHECK int pfs_index_sums(struct pfs_job *job, uint32_t *d_out, const uint32_t *d_in,
				  uint64_t n);
/* Sorts as pfs_cuda_index_sort does; *d_keys and *d_with, a pointer, are others then, the job's. */
PFS_MUST_CHECK int pfs_index_sort(struct pfs_job *job, uint64_t **d_keys, void *d_with,
				  size_t value_size, uint32_t n, int first_bit, int bits);
/* Questions that are on the device, sorted by their first bits where that pays. */
PFS_MUST_CHECK int pfs_index_answer(struct pfs_job *job, const struct pfs_index_tree *tree,
				    const struct pfs_device_find *find);

/* cuda_index_change.c */
PFS_MUST_CHECK int pfs_cuda_index_insert_batch(struct pfs_operator_backend *b,
					       const struct pfs_run *run,
					       struct pfs_index_tree *tree, uint64_t *n_added,
					       const struct pfs_index_change *change);
PFS_MUST_CHECK int pfs_cuda_index_remove_batch(struct pfs_operator_backend *b,
					       const struct pfs_run *run,
					       struct pfs_index_tree *tree, uint64_t *n_removed,
					       const struct pfs_index_change *change);

#endif
