/* SPDX-License-Identifier: MIT */
#include "gpu/cuda/cuda_path_table.h"

#include "base/clock.h"
#include "gpu/cuda/cuda_engine.h"

#define SHARE	 4u /* the table gets one part of so many of the memory that is free */
#define RETRY_NS (UINT64_C(30) * 1000000000) /* after this, refused memory is asked for again */

/* The next run of the kernel that answers single questions has the table as it is, or marks what
 * changes. */
static void set_state(struct pfs_cuda_path_table *t, enum pfs_paths_state state)
{
	__atomic_store_n(t->state, state, __ATOMIC_RELEASE);
	pfs_resident_keep_away();
	pfs_resident_come_back();
}

static bool is_in(const struct pfs_cuda_path_table *t, enum pfs_paths_state state)
{
	return __atomic_load_n(t->state, __ATOMIC_ACQUIRE) == state;
}

/* ---- pieces; the lock is held ---- */

static size_t size_of_changed(const struct pfs_path_table *table)
{
	return ((size_t)table->n_slots / 32 + 1) * sizeof(*table->changed);
}

static int begin(struct pfs_cuda_path_table *t, struct pfs_job *job, uint32_t n_slots)
{
	struct pfs_path_table table = {.n_slots = n_slots};
	struct pfs_path_size *d_size;

	PFS_TRY(pfs_job_alloc_zero(job, &d_size, sizeof(*d_size)));
	PFS_TRY(pfs_job_alloc_zero(job, &table.changed, size_of_changed(&table)));
	/* Others, who have streams of their own, mark slots at once. */
	PFS_TRY(PFS_CUDA(cudaStreamSynchronize(job->stream)));
	pfs_job_keep(job, d_size);
	pfs_job_keep(job, table.changed);
	t->table = table;
	t->d_size = d_size;
	t->step = PFS_PATHS_MEASURE;
	t->at = 0;
	atomic_store(&t->bytes, size_of_changed(&table));
	set_state(t, PFS_PATHS_LEARNT);
	return 0;
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

/* One allocation a piece, since a large one takes long. */
static int make_text(struct pfs_cuda_path_table *t, struct pfs_job *job)
{
	struct pfs_path_table *table = &t->table;
	struct pfs_path_size size;
	size_t nodes_size, text_size, free_size;
	uint64_t *text;

	PFS_TRY(pfs_job_download(job, &size, t->d_size, sizeof(size)));
	if (size.words > UINT32_MAX || size.n > UINT32_MAX / 4)
		return -ENOMEM;
	for (table->mask = 1; table->mask < 2 * size.n;)
		table->mask = 2 * table->mask + 1;
	nodes_size = ((size_t)table->mask + 1) * sizeof(*table->nodes);
	text_size = size.words * PFS_PATH_ALIGN * sizeof(*text);
	PFS_TRY(read_free(&free_size, job->o->pool));
	if (nodes_size + text_size > free_size / SHARE)
		return -ENOMEM;
	PFS_TRY(PFS_CUDA(cudaMemsetAsync(t->d_size, 0, sizeof(*t->d_size), job->stream)));
	PFS_TRY(pfs_job_alloc(job, &text, text_size));
	PFS_TRY(PFS_CUDA(cudaStreamSynchronize(job->stream)));
	pfs_job_keep(job, text);
	table->text = text;
	atomic_fetch_add(&t->bytes, text_size);
	return 0;
}

static int make_places(struct pfs_cuda_path_table *t, struct pfs_job *job)
{
	const size_t size = ((size_t)t->table.mask + 1) * sizeof(*t->table.nodes);
	struct pfs_path_entry *nodes;

	PFS_TRY(pfs_job_alloc(job, &nodes, size));
	PFS_TRY(PFS_CUDA(cudaMemsetAsync(nodes, 0xff, size, job->stream)));
	PFS_TRY(PFS_CUDA(cudaStreamSynchronize(job->stream)));
	pfs_job_keep(job, nodes);
	t->table.nodes = nodes;
	atomic_fetch_add(&t->bytes, size);
	return 0;
}

/* *is_last: it was the last piece of this step. */
static int look_through(struct pfs_cuda_path_table *t, struct pfs_job *job,
			const struct pfs_path_columns *columns, size_t n, bool *is_last)
{
	const struct pfs_path_piece piece = {t->at, pfs_table_piece_end(&t->table, t->at, n)};

	if (t->step == PFS_PATHS_MEASURE)
		PFS_TRY(pfs_cuda_path_measure(t->d_size, columns, &piece, job->stream));
	else
		PFS_TRY(pfs_cuda_path_fill(&t->table, t->d_size, columns, &piece, job->stream));
	PFS_TRY(PFS_CUDA(cudaStreamSynchronize(job->stream)));
	*is_last = piece.to == t->table.n_slots;
	t->at = *is_last ? 0 : piece.to;
	return 0;
}

static int make_piece(struct pfs_cuda_path_table *t, struct pfs_job *job,
		      const struct pfs_path_columns *columns, size_t n)
{
	bool is_last = true;

	if (is_in(t, PFS_PATHS_UNKNOWN))
		PFS_TRY(begin(t, job, columns->n_slots));
	if (t->step == PFS_PATHS_TEXT)
		PFS_TRY(make_text(t, job));
	else if (t->step == PFS_PATHS_PLACES)
		PFS_TRY(make_places(t, job));
	else
		PFS_TRY(look_through(t, job, columns, n, &is_last));
	if (!is_last)
		return 0;
	if (t->step == PFS_PATHS_FILL)
		set_state(t, PFS_PATHS_KNOWN);
	else
		t->step++;
	return 0;
}

/* ---- using it ---- */

/* Returns true if a piece is to be made; the lock is held. */
static bool is_wanted(struct pfs_cuda_path_table *t)
{
	const uint64_t refused_ns = atomic_load(&t->refused_ns);

	return !is_in(t, PFS_PATHS_KNOWN) && (!refused_ns || pfs_now_ns() - refused_ns > RETRY_NS);
}

int pfs_cuda_path_table_use(struct pfs_cuda_path_table *t, struct pfs_job *job,
			    struct pfs_path_table *out, const struct pfs_path_columns *columns,
			    size_t n)
{
	const size_t n_temporary = job->n_temporary;
	int error = 0;

	if ((is_in(t, PFS_PATHS_LEARNT) ||
	     (is_in(t, PFS_PATHS_UNKNOWN) &&
	      atomic_fetch_add(&t->asked, n) + n >= columns->n_slots / PFS_PATH_WORTH)) &&
	    pthread_mutex_trylock(&t->lock) == 0) {
		if (is_wanted(t)) {
			error = make_piece(t, job, columns, n);
			atomic_store(&t->refused_ns, error ? pfs_now_ns() : 0);
		}
		if (error) { /* nobody looks at one that is being made */
			pfs_job_free_since(job, n_temporary);
			pfs_cuda_path_table_drop(t, job->o);
		}
		(void)pthread_mutex_unlock(&t->lock);
	}
	*out = pfs_cuda_path_table_get(t);
	return error == -ENOMEM ? 0 : error;
}

void pfs_cuda_path_table_drop(struct pfs_cuda_path_table *t, struct pfs_cuda_operators *o)
{
	if (is_in(t, PFS_PATHS_UNKNOWN))
		return;
	set_state(t, PFS_PATHS_UNKNOWN);
	pfs_device_give(o, t->table.nodes);
	pfs_device_give(o, t->table.text);
	pfs_device_give(o, t->table.changed);
	pfs_device_give(o, t->d_size);
	atomic_store(&t->bytes, 0);
	atomic_store(&t->asked, 0);
}
