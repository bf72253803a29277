/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_path_table.h - the table of nodes by their paths (gpu/path_table.h) on a device,
 * begun when paths enough have been asked for since it was last dropped.
 *
 * Threads: any number use it at once, but none while another drops one that is there. */
#ifndef PFS_GPU_CUDA_CUDA_PATH_TABLE_H
#define PFS_GPU_CUDA_CUDA_PATH_TABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "gpu/cuda/cuda_operators.h"
#include "gpu/cuda/resident_kernels.h"
#include "gpu/path_table.h"
#include "gpu/resident.h"

/* What the next piece is. */
enum pfs_path_step { PFS_PATHS_MEASURE, PFS_PATHS_TEXT, PFS_PATHS_PLACES, PFS_PATHS_FILL };

struct pfs_cuda_path_table {
	uint32_t *state; /* enum pfs_paths_state of the back end; written here alone */
	/* changed and n_slots are written before the paths are learnt, the others before they are
	 * known */
	struct pfs_path_table table;
	_Atomic size_t asked; /* paths, since there was no table */
	_Atomic size_t bytes; /* of device memory */
	_Atomic uint64_t refused_ns; /* when memory was too short; 0: it was not */
	pthread_mutex_t lock;	     /* held by who makes a piece */
	/* protected by lock; of a table that is being made */
	enum pfs_path_step step;
	uint32_t at; /* the first slot of the next piece */
	struct pfs_path_size *d_size;
};

/* Makes a piece of the table if it is not there, is worth while for n paths and those before them,
 * no other thread makes one, and memory is not short, nor was within half a minute. The columns are
 * on the device, and as the tree is, which is held. Sets *out as pfs_cuda_path_table_get does. */
PFS_MUST_CHECK int pfs_cuda_path_table_use(struct pfs_cuda_path_table *t, struct pfs_job *job,
					   struct pfs_path_table *out,
					   const struct pfs_path_columns *columns, size_t n);
/* Returns the table; or what is to be marked of one that is being made; or none. */
static inline struct pfs_path_table pfs_cuda_path_table_get(const struct pfs_cuda_path_table *t)
{
	const uint32_t state = __atomic_load_n(t->state, __ATOMIC_ACQUIRE);

	if (state == PFS_PATHS_KNOWN)
		return t->table;
	if (state == PFS_PATHS_UNKNOWN)
		return (struct pfs_path_table){.mask = 0};
	return (struct pfs_path_table){.changed = t->table.changed, .n_slots = t->table.n_slots};
}
/* Frees it: a directory has been moved, renamed or removed, or the slots are others. */
void pfs_cuda_path_table_drop(struct pfs_cuda_path_table *t, struct pfs_cuda_operators *o);

#endif
