/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_select.c - selections on the device, and sets of rows that lie there. */
#include "base/checked.h"
#include "base/cleanup.h"
#include "gpu/cuda/cuda_operators.h"

/* d_bits (NULL: not wanted) has words for all rows of the table. */
static int select_places(struct pfs_job *job, uint32_t *d_bits, uint64_t *d_count,
			 const struct pfs_source *source, const struct pfs_program *program)
{
	struct pfs_device_program steps;
	struct pfs_device_places places;

	PFS_TRY(pfs_job_places(job, &places, source));
	PFS_TRY(pfs_job_predicate(job, &steps, source, program));
	return pfs_cuda_select(d_bits, source->table->n_rows, d_count, &places, &steps,
			       job->stream);
}

static int make_rows(struct pfs_job *job, struct pfs_rows **out, const struct pfs_source *source,
		     const struct pfs_program *program)
{
	uint32_t n_rows = source->table->n_rows, *d_bits;

	PFS_TRY(pfs_job_alloc(job, &d_bits, pfs_div_round_up(n_rows, 64) * 8));
	PFS_TRY(select_places(job, d_bits, NULL, source, program));
	PFS_TRY(pfs_rows_of_range(job->run, out, n_rows, 0, 0));
	pfs_job_keep(job, d_bits);
	(*out)->form = PFS_ROWS_ON_DEVICE;
	(*out)->backend = &job->o->base;
	(*out)->device = d_bits;
	return 0;
}

static int cuda_select(struct pfs_operator_backend *b, const struct pfs_run *run,
		       struct pfs_rows **out, const struct pfs_source *source,
		       const struct pfs_program *program)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = pfs_job_end(&job, error ? error : make_rows(&job, out, source, program));
	if (error) {
		pfs_rows_free(run, *out);
		*out = NULL;
	}
	return error;
}

static int count_bits(struct pfs_job *job, uint64_t *count, const struct pfs_rows *rows)
{
	const struct pfs_table table = {.n_rows = rows->n_rows};
	/* Only read. */
	const struct pfs_source source = {.table = &table, .rows = (struct pfs_rows *)rows};
	uint64_t *d_count;

	PFS_TRY(pfs_job_alloc_zero(job, &d_count, sizeof(*d_count)));
	PFS_TRY(select_places(job, NULL, d_count, &source, NULL));
	return pfs_job_download(job, count, d_count, sizeof(*count));
}

static int cuda_count_rows(struct pfs_operator_backend *b, const struct pfs_run *run,
			   uint64_t *count, const struct pfs_rows *rows)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = pfs_job_end(&job, error ? error : count_bits(&job, count, rows));
	return error == -EOPNOTSUPP ? -EIO : error;
}

static int fetch_bits(struct pfs_job *job, struct pfs_rows *rows)
{
	size_t n = pfs_div_round_up(rows->n_rows, 64);
	uint64_t *bits;
	int error;

	PFS_TRY(pfs_run_alloc_raw(job->run, &bits, n, sizeof(*bits)));
	error = pfs_job_download(job, bits, rows->device, n * sizeof(*bits));
	if (error) {
		pfs_run_free(job->run, bits, n, sizeof(*bits));
		return error;
	}
	pfs_device_give(job->o, rows->device);
	*rows = (struct pfs_rows){.form = PFS_ROWS_BITS,
				  .n_rows = rows->n_rows,
				  .to = rows->n_rows,
				  .bits = bits,
				  .allocated = n * sizeof(*bits)};
	return 0;
}

static int cuda_fetch_rows(struct pfs_operator_backend *b, const struct pfs_run *run,
			   struct pfs_rows *rows)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = pfs_job_end(&job, error ? error : fetch_bits(&job, rows));
	return error == -EOPNOTSUPP ? -EIO : error;
}

static void cuda_release_rows(struct pfs_operator_backend *b, const struct pfs_run *run,
			      struct pfs_rows *rows)
{
	(void)run;
	pfs_device_give(pfs_cuda_operators_of(b), rows->device);
	rows->device = NULL;
}

const struct pfs_select_family pfs_cuda_select_family = {
	.select = cuda_select,
	.count_rows = cuda_count_rows,
	.fetch = cuda_fetch_rows,
	.release = cuda_release_rows,
};
