/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_path_table.h - the table of nodes by their paths (gpu/path_table.h) on a device,
 * made when paths enough have been asked for since it was last dropped.
 *
 * Threads: any number use it at once, but none while another drops it. */
#ifndef PFS_GPU_CUDA_CUDA_PATH_TABLE_H
#define PFS_GPU_CUDA_CUDA_PATH_TABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "gpu/cuda/cuda_operators.h"
#include "gpu/path_table.h"

struct pfs_cuda_path_table {
	struct pfs_path_table table; /* written under lock before is_made is set */
	_Atomic bool is_made;
	_Atomic size_t asked; /* paths, since there was no table */
	_Atomic size_t bytes; /* of device memory */
	_Atomic uint64_t refused_ns; /* when memory was too short; 0: it was not */
	pthread_mutex_t lock; /* held by who makes it */
};

/* Sets *out to the table, or to none if it is not there, is not worth while for n paths and those
 * before them, another thread makes it, or memory is short, or was within half a minute. The
 * columns are on the device. */
PFS_MUST_CHECK int pfs_cuda_path_table_use(struct pfs_cuda_path_table *t, struct pfs_job *job,
					   struct pfs_path_table *out,
					   const struct pfs_path_columns *columns, size_t n);
/* Returns the table, or none if it is not there. */
static inline struct pfs_path_table pfs_cuda_path_table_get(const struct pfs_cuda_path_table *t)
{
	return atomic_load(&t->is_made) ? t->table : (struct pfs_path_table){.mask = 0};
}
/* Frees it: a directory has been moved, renamed or removed, or the slots are others. */
void pfs_cuda_path_table_drop(struct pfs_cuda_path_table *t, struct pfs_cuda_operators *o);

#endif
