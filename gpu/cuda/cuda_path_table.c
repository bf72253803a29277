/* SPDX-License-Identifier: MIT */
#include "gpu/cuda/cuda_path_table.h"

#include "gpu/cuda/cuda_engine.h"
#include "gpu/cuda/resident_kernels.h"
#include "gpu/resident.h"

/* Slots that are looked through for each path that was asked for: a table of 8 M nodes comes with the
 * 32,000th path. */
#define WORTH 256u
#define SHARE 4u /* the table gets one part of so many of the memory that is free */

static int measure(struct pfs_job *job, struct pfs_path_size *size, struct pfs_path_size **d_size,
		   const struct pfs_path_columns *columns)
{
	PFS_TRY(pfs_job_alloc_zero(job, d_size, sizeof(**d_size)));
	PFS_TRY(pfs_cuda_path_measure(*d_size, columns, job->stream));
	PFS_TRY(PFS_CUDA(cudaMemcpyAsync(size, *d_size, sizeof(*size), cudaMemcpyDeviceToHost,
					 job->stream)));
	PFS_TRY(PFS_CUDA(cudaMemsetAsync(*d_size, 0, sizeof(**d_size), job->stream)));
	return PFS_CUDA(cudaStreamSynchronize(job->stream));
}

static int make(struct pfs_cuda_path_table *t, struct pfs_job *job,
		const struct pfs_path_columns *columns)
{
	struct pfs_path_table table = {.mask = 1};
	struct pfs_path_size size, *d_size;
	size_t nodes_size, text_size, changed_size, free_size, all;

	PFS_TRY(measure(job, &size, &d_size, columns));
	if (size.words > UINT32_MAX || size.n > UINT32_MAX / 4)
		return -ENOMEM;
	while (table.mask < 2 * size.n)
		table.mask = 2 * table.mask + 1;
	table.n_slots = columns->n_slots;
	nodes_size = ((size_t)table.mask + 1) * sizeof(*table.nodes);
	text_size = size.words * PFS_PATH_ALIGN * sizeof(*table.text);
	changed_size = ((size_t)table.n_slots / 32 + 1) * sizeof(*table.changed);
	PFS_TRY(PFS_CUDA(cudaMemGetInfo(&free_size, &all)));
	if (nodes_size + text_size + changed_size > free_size / SHARE)
		return -ENOMEM;
	PFS_TRY(pfs_job_alloc(job, &table.nodes, nodes_size));
	PFS_TRY(pfs_job_alloc(job, &table.text, text_size));
	PFS_TRY(pfs_job_alloc_zero(job, &table.changed, changed_size));
	PFS_TRY(PFS_CUDA(cudaMemsetAsync(table.nodes, 0xff, nodes_size, job->stream)));
	PFS_TRY(pfs_cuda_path_fill(&table, d_size, columns, job->stream));
	PFS_TRY(PFS_CUDA(
		cudaStreamSynchronize(job->stream))); /* others have streams of their own */
	pfs_job_keep(job, table.nodes);
	pfs_job_keep(job, table.text);
	pfs_job_keep(job, table.changed);
	t->table = table;
	atomic_store(&t->bytes, nodes_size + text_size + changed_size);
	atomic_store(&t->is_made, true);
	pfs_resident_keep_away(); /* the next run of the kernel that answers single questions has it
				   */
	pfs_resident_come_back();
	return 0;
}

int pfs_cuda_path_table_use(struct pfs_cuda_path_table *t, struct pfs_job *job,
			    struct pfs_path_table *out, const struct pfs_path_columns *columns,
			    size_t n)
{
	int error = 0;

	if (!atomic_load(&t->is_made) &&
	    atomic_fetch_add(&t->asked, n) + n >= columns->n_slots / WORTH &&
	    pthread_mutex_trylock(&t->lock) == 0) {
		atomic_store(&t->asked, 0);
		if (!atomic_load(&t->is_made))
			error = make(t, job, columns);
		(void)pthread_mutex_unlock(&t->lock);
	}
	*out = pfs_cuda_path_table_get(t);
	return error == -ENOMEM ? 0 : error;
}

void pfs_cuda_path_table_drop(struct pfs_cuda_path_table *t, struct pfs_cuda_operators *o)
{
	if (!atomic_exchange(&t->is_made, false))
		return;
	pfs_device_give(o, t->table.nodes);
	pfs_device_give(o, t->table.text);
	pfs_device_give(o, t->table.changed);
	atomic_store(&t->bytes, 0);
	atomic_store(&t->asked, 0);
}
