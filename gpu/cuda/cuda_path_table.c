/* SPDX-License-Identifier: MIT */
#include "gpu/cuda/cuda_path_table.h"

#include "base/clock.h"
#include "gpu/cuda/cuda_engine.h"
#include "gpu/cuda/resident_kernels.h"
#include "gpu/resident.h"

/* Slots that are looked through for each path that was asked for: a table of 8 M nodes comes with the
 * 32,000th path. */
#define WORTH	 256u
#define SHARE	 4u /* the table gets one part of so many of the memory that is free */
#define RETRY_NS (UINT64_C(30) * 1000000000) /* after this, refused memory is asked for again */

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

/* Memory that is free, also of what the pool keeps. */
static int read_free(size_t *out, cudaMemPool_t pool)
{
	uint64_t reserved = 0, used = 0;
	size_t all;

	PFS_TRY(PFS_CUDA(cudaMemGetInfo(out, &all)));
	PFS_TRY(PFS_CUDA(
		cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved)));
	PFS_TRY(PFS_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used)));
	*out += reserved - used;
	return 0;
}

static int make(struct pfs_cuda_path_table *t, struct pfs_job *job,
		const struct pfs_path_columns *columns)
{
	struct pfs_path_table table = {.mask = 1};
	struct pfs_path_size size, *d_size;
	size_t nodes_size, text_size, changed_size, free_size;

	PFS_TRY(measure(job, &size, &d_size, columns));
	if (size.words > UINT32_MAX || size.n > UINT32_MAX / 4)
		return -ENOMEM;
	while (table.mask < 2 * size.n)
		table.mask = 2 * table.mask + 1;
	table.n_slots = columns->n_slots;
	nodes_size = ((size_t)table.mask + 1) * sizeof(*table.nodes);
	text_size = size.words * PFS_PATH_ALIGN * sizeof(*table.text);
	changed_size = ((size_t)table.n_slots / 32 + 1) * sizeof(*table.changed);
	PFS_TRY(read_free(&free_size, job->o->pool));
	if (nodes_size + text_size + changed_size > free_size / SHARE)
		return -ENOMEM;
	PFS_TRY(pfs_job_alloc(job, &table.nodes, nodes_size));
	PFS_TRY(pfs_job_alloc(job, &table.text, text_size));
	PFS_TRY(pfs_job_alloc_zero(job, &table.changed, changed_size));
	PFS_TRY(PFS_CUDA(cudaMemsetAsync(table.nodes, 0xff, nodes_size, job->stream)));
	PFS_TRY(pfs_cuda_path_fill(&table, d_size, columns, job->stream));
	/* Others, who have streams of their own, use it at once. */
	PFS_TRY(PFS_CUDA(cudaStreamSynchronize(job->stream)));
	pfs_job_keep(job, table.nodes);
	pfs_job_keep(job, table.text);
	pfs_job_keep(job, table.changed);
	t->table = table;
	atomic_store(&t->bytes, nodes_size + text_size + changed_size);
	atomic_store(&t->is_made, true);
	/* The next run of the kernel that answers single questions has it. */
	pfs_resident_keep_away();
	pfs_resident_come_back();
	return 0;
}

int pfs_cuda_path_table_use(struct pfs_cuda_path_table *t, struct pfs_job *job,
			    struct pfs_path_table *out, const struct pfs_path_columns *columns,
			    size_t n)
{
	const size_t n_temporary = job->n_temporary;
	int error = 0;

	if (!atomic_load(&t->is_made) &&
	    atomic_fetch_add(&t->asked, n) + n >= columns->n_slots / WORTH &&
	    pthread_mutex_trylock(&t->lock) == 0) {
		const uint64_t refused_ns = atomic_load(&t->refused_ns);

		atomic_store(&t->asked, 0);
		if (!atomic_load(&t->is_made) &&
		    (!refused_ns || pfs_now_ns() - refused_ns > RETRY_NS)) {
			error = make(t, job, columns);
			atomic_store(&t->refused_ns, error ? pfs_now_ns() : 0);
		}
		if (error)
			pfs_job_free_since(job, n_temporary);
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
