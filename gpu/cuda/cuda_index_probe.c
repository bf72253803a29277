/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_index_probe.c - searches timed where they run, beside a sorted array's, and
 * visits, beside a pass over what they copy. */
#include "gpu/cuda/cuda_index.h"
#include "gpu/probe_impl.h"

struct probe {
	enum pfs_index_probe what; /* is timed */
	const struct pfs_index_tree *tree;
	struct pfs_device_find find;
	/* where all entries are copied to, */
	struct pfs_device_range all;
	uint64_t *d_sorted;
	pfs_index_value *d_values;
	uint64_t *d_counts, *d_sums; /* and how many of them each leaf has, and those before it */
	void *d_sums_work, *d_total_work;
	size_t sums_size, total_size;
	uint64_t *d_total; /* of keys and of values */
};

static int visit(struct pfs_job *job, struct probe *probe)
{
	const struct pfs_device_btree *d = &probe->tree->d;

	PFS_TRY(pfs_cuda_index_range_counts(d, probe->d_counts, &probe->all, job->stream));
	PFS_TRY(pfs_cuda_sums_64(probe->d_sums_work, &probe->sums_size, probe->d_sums,
				 probe->d_counts, d->leaves.n + 1, job->stream));
	return pfs_cuda_index_range_copy(d, probe->d_sorted, probe->d_values, probe->d_sums,
					 &probe->all, job->stream);
}

/* Everything that a search needs is inside: its memory and its sort, too. */
static int run_once(struct pfs_job *job, void *context)
{
	struct probe *probe = context;
	const struct pfs_device_find *find = &probe->find;

	switch (probe->what) {
	case PFS_INDEX_SEARCHED:
		return pfs_index_answer(job, probe->tree, find);
	case PFS_INDEX_BISECTED:
		return pfs_cuda_index_search_array(find->d_values, probe->d_sorted, probe->tree->n,
						   find->d_keys, find->n, job->stream);
	case PFS_INDEX_VISITED:
		return visit(job, probe);
	case PFS_INDEX_SUMMED:
		return pfs_cuda_index_total(probe->d_total_work, &probe->total_size, probe->d_total,
					    probe->d_sorted, probe->d_values, probe->tree->n,
					    job->stream);
	case PFS_INDEX_PROBES:
		break;
	}
	return -EINVAL;
}

static int make_room(struct pfs_job *job, struct probe *probe)
{
	const size_t n = probe->tree->n, n_counts = probe->tree->d.leaves.n + 1;

	PFS_TRY(pfs_job_alloc(job, &probe->d_sorted, n * sizeof(*probe->d_sorted)));
	PFS_TRY(pfs_job_alloc(job, &probe->d_values, n * sizeof(*probe->d_values)));
	PFS_TRY(pfs_job_alloc(job, &probe->d_counts, n_counts * sizeof(*probe->d_counts)));
	PFS_TRY(pfs_job_alloc(job, &probe->d_sums, n_counts * sizeof(*probe->d_sums)));
	PFS_TRY(pfs_job_alloc(job, &probe->d_total, 2 * sizeof(*probe->d_total)));
	PFS_TRY(pfs_cuda_sums_64(NULL, &probe->sums_size, probe->d_sums, probe->d_counts, n_counts,
				 job->stream));
	PFS_TRY(pfs_job_alloc(job, &probe->d_sums_work, probe->sums_size));
	PFS_TRY(pfs_cuda_index_total(NULL, &probe->total_size, probe->d_total, probe->d_sorted,
				     probe->d_values, n, job->stream));
	return pfs_job_alloc(job, &probe->d_total_work, probe->total_size);
}

static int probe_in(struct pfs_job *job, const struct pfs_index_tree *tree,
		    struct pfs_index_seconds *out, const struct pfs_index_query *query)
{
	struct probe probe = {.tree = tree,
			      .find.n = (uint32_t)query->n,
			      .all = {0, 0, tree->d.leaves.n - 1, PFS_PAGE}};
	uint64_t *d_keys, total[2];

	PFS_TRY(pfs_job_upload(job, &d_keys, query->keys, query->n * sizeof(*d_keys)));
	probe.find.d_keys = d_keys;
	PFS_TRY(pfs_job_alloc(job, &probe.find.d_values, query->n * sizeof(*probe.find.d_values)));
	PFS_TRY(make_room(job, &probe));
	PFS_TRY(visit(job, &probe)); /* the array is searched, too */
	for (probe.what = 0; probe.what < PFS_INDEX_PROBES; probe.what++)
		PFS_TRY(pfs_job_time(job, out->seconds[probe.what], out->repeat, run_once, &probe));
	PFS_TRY(pfs_job_download(job, total, probe.d_total, sizeof(total)));
	out->key_sum = total[0];
	out->value_sum = total[1];
	return 0;
}

int pfs_cuda_index_probe(struct pfs_operator_backend *b, const struct pfs_run *run,
			 const struct pfs_index_tree *tree, struct pfs_index_seconds *out,
			 const struct pfs_index_query *query)
{
	struct pfs_job job;
	int error;

	if (!tree->d.has_upper)
		return -EOPNOTSUPP; /* the host is part of each search */
	error = pfs_job_begin(&job, b, run);
	error = error ? error : probe_in(&job, tree, out, query);
	return pfs_job_end(&job, error);
}
