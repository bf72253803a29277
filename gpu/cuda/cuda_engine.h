/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_engine.h - the CUDA back end of codes, and the parts of it that have a file of
 * their own.
 *
 * A question is a *job*, which has a stream and scratch memory of its own; jobs run side by side,
 * and the engine waits for all that one has queued before it ends. So what a job made may be used
 * by any other one. What changes the columns, the codes or the names is a job that has the device
 * alone. All memory comes from one stream-ordered pool.
 *
 * Lock: g->lock guards the idle jobs; g->paths_lock is held by the job that makes the directories'
 * paths, and that waits for the device meanwhile. */
#ifndef PFS_GPU_CUDA_CUDA_ENGINE_H
#define PFS_GPU_CUDA_CUDA_ENGINE_H

#include "gpu/cuda/cuda_check.h"
#include "gpu/cuda/kernels.h"
#include "gpu/engine_impl.h"

/* Device memory that grows and is then used from its start. */
struct pfs_device_buffer {
	void *d_memory;
	size_t size;
};

/* Two buffers on each side: one is written while the other crosses the bus. */
struct pfs_text {
	char *bytes[2]; /* pinned */
	size_t size;	/* of each */
	struct pfs_device_buffer d_bytes[2];
};

struct pfs_cuda_job {
	struct pfs_codes_job base;
	struct pfs_cuda *g;
	struct pfs_cuda_job *next; /* in the list of those that are idle */
	cudaStream_t stream, copy_stream;
	struct pfs_device_buffer counters;
	struct pfs_cuda_counters *host_counters; /* pinned */
	/* scratch */
	struct pfs_device_buffer row_bits, directory_bits, row_masks, directory_masks, list, values,
		work;
	struct pfs_text text; /* of its listing, or of the last one */
};

struct pfs_cuda {
	struct pfs_backend base;
	cudaMemPool_t memory;
	cudaStream_t stream; /* nothing is queued there but frees, of memory that no job uses */
	char name[64];
	uint64_t allocated; /* bytes on the device; atomic */
	pthread_mutex_t lock, paths_lock;
	struct pfs_cuda_job *idle; /* protected by lock */

	/* the engine's columns */
	struct pfs_device_buffer home, prime;
	struct pfs_device_buffer directories, directory_slot;
	uint32_t n_slots, slot_capacity, n_directories, directory_capacity;
	uint32_t root;

	/* codes */
	struct pfs_device_buffer row_of, width, tiles, pool, deep;
	uint32_t n_tiles, pool_used; /* in rows of 1,024 limbs */
	uint32_t open_tile[PFS_N_WIDTHS], open_used[PFS_N_WIDTHS];
	uint64_t n_rows, n_lost, n_limbs;
	uint32_t n_deep;

	/* names, as far as they were sent */
	struct pfs_device_buffer heap, place, directory_place, directory_length;
	/* The last two are those of the names and directories; protected by paths_lock. */
	bool has_directory_paths;
	struct pfs_device_buffer probe[2];
};

static inline struct pfs_cuda *pfs_cuda_of(struct pfs_backend *b)
{
	return (struct pfs_cuda *)b;
}

static inline struct pfs_cuda_job *pfs_cuda_job_of(struct pfs_codes_job *job)
{
	return (struct pfs_cuda_job *)job;
}

/* Pinned memory of the host. */
PFS_MUST_CHECK int pfs_pinned_alloc(void **memory, size_t size);
void pfs_pinned_free(void *memory);
/* Makes room for `size` bytes; what was there is lost. -ENOMEM, -EIO. */
PFS_MUST_CHECK int pfs_device_reserve(struct pfs_cuda_job *job, struct pfs_device_buffer *buffer,
				      size_t size);
/* Frees it when all that is queued on the stream is done. */
void pfs_device_free(struct pfs_cuda *g, struct pfs_device_buffer *buffer, cudaStream_t stream);
PFS_MUST_CHECK int pfs_device_write(struct pfs_cuda_job *job, void *d_to, const void *from,
				    size_t size);
/* Copies from the device, and waits for that. */
PFS_MUST_CHECK int pfs_device_read(struct pfs_cuda_job *job, void *to, const void *d_from,
				   size_t size);
PFS_MUST_CHECK int pfs_device_clear(struct pfs_cuda_job *job, void *d_memory, size_t size);
/* Waits, and has the counters in host_counters. */
PFS_MUST_CHECK int pfs_counters_read(struct pfs_cuda_job *job);
PFS_MUST_CHECK int pfs_counters_clear(struct pfs_cuda_job *job);
struct pfs_cuda_tree pfs_cuda_tree_of(const struct pfs_cuda *g);
struct pfs_cuda_codes pfs_cuda_codes_of(const struct pfs_cuda_job *job);

static inline uint64_t *pfs_count_at(const struct pfs_cuda_job *job)
{
	return &((struct pfs_cuda_counters *)job->counters.d_memory)->count;
}

/* ---- cuda_codes.c ---- */

/* Makes all codes anew from the columns on the device. */
PFS_MUST_CHECK int pfs_cuda_codes_build(struct pfs_cuda_job *job);
PFS_MUST_CHECK int pfs_cuda_load(struct pfs_codes_job *base, const struct pfs_columns *c);
PFS_MUST_CHECK int pfs_cuda_apply(struct pfs_codes_job *base, const struct pfs_columns *c,
				  const struct pfs_changes *changes);
PFS_MUST_CHECK int pfs_cuda_subtrees(struct pfs_codes_job *base, uint32_t *const *bits,
				     size_t words, const struct pfs_asked_subtree *subtrees,
				     size_t n);

/* Scans for the benchmark: bits, or masks, by row. */
PFS_MUST_CHECK int pfs_cuda_scan_rows(struct pfs_cuda_job *job, const struct pfs_divisor *divisors,
				      size_t n);

/* ---- cuda_paths.c ---- */

PFS_MUST_CHECK int pfs_cuda_names_reserve(struct pfs_codes_job *base, size_t heap, size_t places);
PFS_MUST_CHECK int pfs_cuda_names_update(struct pfs_codes_job *base,
					 const struct pfs_names_update *update);
PFS_MUST_CHECK int pfs_cuda_paths_open(struct pfs_codes_job *base, struct pfs_path_listing **out,
				       const struct pfs_paths_request *request);
PFS_MUST_CHECK int pfs_cuda_paths_next(struct pfs_codes_job *base, struct pfs_path_listing *paths,
				       const char **bytes, size_t *size);
void pfs_cuda_paths_close(struct pfs_codes_job *base, struct pfs_path_listing *paths);
void pfs_text_free(struct pfs_cuda_job *job);

#endif
