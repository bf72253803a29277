/* SPDX-License-Identifier: MIT */
/* gpu/host/sets.h - the host back end of codes, and the parts of it that have a file of their
 * own. */
#ifndef PFS_GPU_HOST_SETS_H
#define PFS_GPU_HOST_SETS_H

#include "gpu/engine_impl.h"
#include "gpu/host/codes.h"

struct pfs_host_job {
	struct pfs_codes_job base;
	struct pfs_host_job *next; /* in the list of those that are idle */
	struct pfs_scan_scratch scratch;
};

struct pfs_host {
	struct pfs_backend base;
	struct pfs_code_tiles codes;
	const struct pfs_columns *columns; /* the engine's; stable while a job runs */
	pthread_mutex_t lock;
	struct pfs_host_job *idle; /* protected by lock */
};

static inline struct pfs_host *pfs_host_of(struct pfs_backend *b)
{
	return (struct pfs_host *)b;
}

static inline struct pfs_host *pfs_host_of_job(struct pfs_codes_job *job)
{
	return pfs_host_of(job->backend);
}

/* sets.c: bitmaps */
int pfs_host_fill(struct pfs_codes_job *job, uint32_t *bits, size_t words, uint64_t from,
		  uint64_t to);
int pfs_host_set(struct pfs_codes_job *job, uint32_t *bits, size_t words, const uint32_t *slots,
		 size_t n);
int pfs_host_combine(struct pfs_codes_job *job, uint32_t *bits, size_t words, const uint32_t *other,
		     size_t other_words, enum pfs_bitmap_op op);
int pfs_host_count(struct pfs_codes_job *job, uint64_t *count, const uint32_t *bits, size_t words);

/* paths.c: listings */
/* The names are read where they are: nothing is sent. */
int pfs_host_names_reserve(struct pfs_codes_job *job, size_t heap, size_t places);
int pfs_host_names_update(struct pfs_codes_job *job, const struct pfs_names_update *update);
int pfs_host_paths_open(struct pfs_codes_job *job, struct pfs_path_listing **out,
			const struct pfs_paths_request *request);
int pfs_host_paths_next(struct pfs_codes_job *job, struct pfs_path_listing *paths,
			const char **bytes, size_t *size);
void pfs_host_paths_close(struct pfs_codes_job *job, struct pfs_path_listing *paths);

#endif
