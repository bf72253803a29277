/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_sort_probe.c - an order's yardstick: CUB's radix sort alone. */
#include "gpu/cuda/cuda_operators.h"
#include "gpu/probe_impl.h"

struct probe {
	uint64_t *d_keys, *d_keys_out;
	uint32_t *d_places, *d_places_out;
	void *d_temporary;
	size_t size; /* bytes of that */
	uint64_t n;
};

static int sort_once(struct pfs_job *job, struct probe *p)
{
	return pfs_cuda_sort_pairs(p->d_temporary, &p->size, p->d_keys_out, p->d_keys,
				   p->d_places_out, p->d_places, p->n, 64, job->stream);
}

static int time_runs(struct pfs_job *job, double *seconds, unsigned n, struct probe *p)
{
	cudaEvent_t from, to = NULL;
	int error;
	float ms;

	PFS_TRY(PFS_CUDA(cudaEventCreate(&from)));
	error = PFS_CUDA(cudaEventCreate(&to));
	for (unsigned i = 0; !error && i < n + 2; i++) { /* two to warm up */
		error = PFS_CUDA(cudaEventRecord(from, job->stream));
		error = error ? error : sort_once(job, p);
		error = error ? error : PFS_CUDA(cudaEventRecord(to, job->stream));
		error = error ? error : PFS_CUDA(cudaEventSynchronize(to));
		error = error ? error : PFS_CUDA(cudaEventElapsedTime(&ms, from, to));
		if (!error && i >= 2)
			seconds[i - 2] = ms / 1e3;
	}
	(void)cudaEventDestroy(from);
	if (to)
		(void)cudaEventDestroy(to);
	return error;
}

static int probe_in(struct pfs_job *job, double *seconds, unsigned repeat, const uint64_t *keys,
		    uint64_t n)
{
	struct probe p = {.n = n};

	PFS_TRY(pfs_job_upload(job, &p.d_keys, keys, n * sizeof(*keys)));
	PFS_TRY(pfs_job_alloc(job, &p.d_keys_out, n * sizeof(*keys)));
	PFS_TRY(pfs_job_alloc_zero(job, &p.d_places, n * sizeof(*p.d_places)));
	PFS_TRY(pfs_job_alloc(job, &p.d_places_out, n * sizeof(*p.d_places)));
	PFS_TRY(sort_once(job, &p)); /* tells the size */
	PFS_TRY(pfs_job_alloc(job, &p.d_temporary, p.size));
	return time_runs(job, seconds, repeat, &p);
}

int pfs_cuda_sort_probe(struct pfs_operator_backend *b, const struct pfs_run *run, double *seconds,
			unsigned repeat, const uint64_t *keys, uint64_t n)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = error ? error : probe_in(&job, seconds, repeat, keys, n);
	return pfs_job_end(&job, error);
}
