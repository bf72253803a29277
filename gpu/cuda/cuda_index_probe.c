/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_index_probe.c - searches timed where they run, beside a sorted array's. */
#include "base/checked.h"
#include "gpu/cuda/cuda_index.h"
#include "gpu/probe_impl.h"

struct probe {
	struct pfs_device_find find;
	uint64_t *d_sorted;
	const struct pfs_index_tree *tree;
};

/* Everything that a search needs is inside: its memory and its sort, too. */
static int run_once(struct pfs_job *job, const struct probe *probe, bool ours)
{
	if (ours)
		return pfs_index_answer(job, probe->tree, &probe->find);
	return pfs_cuda_index_search_array(probe->find.d_values, probe->d_sorted, probe->tree->n,
					   probe->find.d_keys, probe->find.n, job->stream);
}

static int time_runs(struct pfs_job *job, double *seconds, unsigned n, const struct probe *probe,
		     bool ours)
{
	cudaEvent_t from, to;
	int error;
	float ms;

	PFS_TRY(PFS_CUDA(cudaEventCreate(&from)));
	error = PFS_CUDA(cudaEventCreate(&to));
	for (unsigned i = 0; !error && i < n + 2; i++) { /* two to warm up */
		error = PFS_CUDA(cudaEventRecord(from, job->stream));
		error = error ? error : run_once(job, probe, ours);
		error = error ? error : PFS_CUDA(cudaEventRecord(to, job->stream));
		error = error ? error : PFS_CUDA(cudaEventSynchronize(to));
		error = error ? error : PFS_CUDA(cudaEventElapsedTime(&ms, from, to));
		if (!error && i >= 2)
			seconds[i - 2] = ms / 1e3;
	}
	(void)cudaEventDestroy(from);
	(void)cudaEventDestroy(to);
	return error;
}

static int probe_in(struct pfs_job *job, const struct pfs_index_tree *tree, double *ours,
		    double *theirs, unsigned repeat, const struct pfs_index_query *query)
{
	struct pfs_device_range all = {0, 0, tree->d.leaves.n - 1, PFS_PAGE};
	struct probe probe = {.tree = tree, .find.n = (uint32_t)query->n};
	size_t n_leaves = tree->d.leaves.n, size = 0;
	uint64_t *d_counts, *d_sums, *d_keys;
	pfs_index_value *d_values;
	void *d_temporary;

	PFS_TRY(pfs_job_upload(job, &d_keys, query->keys, query->n * sizeof(*d_keys)));
	probe.find.d_keys = d_keys;
	PFS_TRY(pfs_job_alloc(job, &probe.find.d_values, query->n * sizeof(*probe.find.d_values)));
	PFS_TRY(pfs_job_alloc(job, &probe.d_sorted, tree->n * sizeof(uint64_t)));
	PFS_TRY(pfs_job_alloc(job, &d_values, tree->n * sizeof(*d_values)));
	PFS_TRY(pfs_job_alloc(job, &d_counts, (n_leaves + 1) * sizeof(*d_counts)));
	PFS_TRY(pfs_job_alloc(job, &d_sums, (n_leaves + 1) * sizeof(*d_sums)));
	PFS_TRY(pfs_cuda_index_range_counts(&tree->d, d_counts, &all, job->stream));
	PFS_TRY(pfs_cuda_sums_64(NULL, &size, d_sums, d_counts, n_leaves + 1, job->stream));
	PFS_TRY(pfs_job_alloc(job, &d_temporary, size));
	PFS_TRY(pfs_cuda_sums_64(d_temporary, &size, d_sums, d_counts, n_leaves + 1, job->stream));
	PFS_TRY(pfs_cuda_index_range_copy(&tree->d, probe.d_sorted, d_values, d_sums, &all,
					  job->stream));
	PFS_TRY(time_runs(job, ours, repeat, &probe, true));
	return time_runs(job, theirs, repeat, &probe, false);
}

int pfs_cuda_index_probe(struct pfs_operator_backend *b, const struct pfs_run *run,
			 const struct pfs_index_tree *tree, double *seconds, unsigned repeat,
			 const struct pfs_index_query *query)
{
	struct pfs_job job;
	int error;

	if (!tree->d.has_upper)
		return -EOPNOTSUPP; /* the host is part of each search */
	error = pfs_job_begin(&job, b, run);
	error = error ? error : probe_in(&job, tree, seconds, seconds + repeat, repeat, query);
	return pfs_job_end(&job, error);
}
