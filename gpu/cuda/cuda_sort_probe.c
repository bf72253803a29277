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

static int sort_once(struct pfs_job *job, void *probe)
{
	struct probe *p = probe;

	return pfs_cuda_sort_pairs(p->d_temporary, &p->size, p->d_keys_out, p->d_keys,
				   p->d_places_out, p->d_places, p->n, 64, job->stream);
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
	return pfs_job_time(job, seconds, repeat, sort_once, &p);
}

int pfs_cuda_sort_probe(struct pfs_operator_backend *b, const struct pfs_run *run, double *seconds,
			unsigned repeat, const uint64_t *keys, uint64_t n)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = error ? error : probe_in(&job, seconds, repeat, keys, n);
	return pfs_job_end(&job, error);
}
