/* SPDX-License-Identifier: MIT */
/* gpu/cuda/resident_kernels.h - the kernel that answers single questions, the one that changes what
 * it reads, and the one that resolves many paths. They are queued on the stream and not waited for.
 * They return 0 or -EIO. */
#ifndef PFS_GPU_CUDA_RESIDENT_KERNELS_H
#define PFS_GPU_CUDA_RESIDENT_KERNELS_H

#include "gpu/cuda/index_kernels.h"
#include "gpu/mailbox.h"
#include "gpu/path_table.h"

struct pfs_device_names {
	struct pfs_device_btree index; /* of (key, slot) pairs: not unique */
	uint32_t *d_parent;
	uint32_t n_parents;
	struct pfs_path_table table;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Starts the kernel: one block, with a warp for each slot of the mailbox, which is in mapped
 * memory. */
int pfs_cuda_resident_serve(struct pfs_mailbox *d_mailbox, const struct pfs_device_names *names,
			    const struct pfs_mailbox_run *run, cudaStream_t stream);
/* d_parent[d_slots[i]] = d_values[i], and marks these slots in the table, if there is one or is
 * going to be. */
int pfs_cuda_resident_parents(uint32_t *d_parent, const struct pfs_path_table *table,
			      const uint32_t *d_slots, const uint32_t *d_values, size_t n,
			      cudaStream_t stream);
/* Sets d_slots[i] and d_primes[i], which may be NULL, to where the path in d_text that ends at
 * d_ends[i] leads, for n paths. is_false: to nothing. */
struct pfs_device_paths {
	const char *d_text;
	const uint32_t *d_ends;
	uint32_t *d_slots;
	uint64_t *d_primes;
	size_t n;
	bool is_false;
};
int pfs_cuda_resolve(const struct pfs_device_btree *index, const struct pfs_path_columns *columns,
		     const struct pfs_path_table *table, const struct pfs_device_paths *paths,
		     cudaStream_t stream);

struct pfs_path_size {
	unsigned long long n, words; /* nodes that a table has, and its text, by PFS_PATH_ALIGN */
};
/* Some slots of a table that is being made; there is at least one. */
struct pfs_path_piece {
	uint32_t from, to;
};
/* Adds to *d_size what a table of these slots needs. */
int pfs_cuda_path_measure(struct pfs_path_size *d_size, const struct pfs_path_columns *columns,
			  const struct pfs_path_piece *piece, cudaStream_t stream);
/* Puts those of them that are not marked into the table, in device memory. *d_size is zero before
 * the first piece, and becomes what pfs_cuda_path_measure found at most. */
int pfs_cuda_path_fill(const struct pfs_path_table *table, struct pfs_path_size *d_size,
		       const struct pfs_path_columns *columns, const struct pfs_path_piece *piece,
		       cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
