/* SPDX-License-Identifier: MIT */
/* gpu/host/sets.h - the host back end of codes, and the parts of it that have a file of their
 * own. */
#ifndef PFS_GPU_HOST_SETS_H
#define PFS_GPU_HOST_SETS_H

#include "gpu/engine_impl.h"
#include "gpu/host/codes.h"

struct pfs_host {
	struct pfs_backend base;
	struct pfs_code_tiles codes;
	const struct pfs_columns *columns; /* the engine's; stable while a call runs */
};

static inline struct pfs_host *pfs_host_of(struct pfs_backend *b)
{
	return (struct pfs_host *)b;
}

/* sets.c: bitmaps */
int pfs_host_fill(struct pfs_backend *b, uint32_t *bits, size_t words, uint64_t from, uint64_t to);
int pfs_host_set(struct pfs_backend *b, uint32_t *bits, size_t words, const uint32_t *slots,
		 size_t n);
int pfs_host_combine(struct pfs_backend *b, uint32_t *bits, size_t words, const uint32_t *other,
		     size_t other_words, enum pfs_bitmap_op op);
int pfs_host_count(struct pfs_backend *b, uint64_t *count, const uint32_t *bits, size_t words);

/* paths.c: listings */
/* The names are read where they are: nothing is sent. */
int pfs_host_names_reserve(struct pfs_backend *b, size_t heap, size_t places);
int pfs_host_names_update(struct pfs_backend *b, const struct pfs_names_update *update);
int pfs_host_paths_open(struct pfs_backend *b, struct pfs_path_listing **out,
			const struct pfs_paths_request *request);
int pfs_host_paths_next(struct pfs_backend *b, struct pfs_path_listing *paths, const char **bytes,
			size_t *size);
void pfs_host_paths_close(struct pfs_backend *b, struct pfs_path_listing *paths);

#endif
