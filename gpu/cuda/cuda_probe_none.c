/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_probe_none.c - the measurements of cuda_none.c's device.  They are a file of their
 * own because they are linked with any device that is none, whoever opens it. */
#include "gpu/probe_impl.h"

int pfs_cuda_probe(struct pfs_codes_job *job, double *seconds, uint64_t *bytes, enum pfs_probe what,
		   const struct pfs_divisor *divisors, size_t n)
{
	(void)job, (void)what, (void)divisors, (void)n;
	*seconds = 0;
	*bytes = 0;
	return -ENODEV;
}

int pfs_cuda_sort_probe(struct pfs_operator_backend *b, const struct pfs_run *run, double *seconds,
			unsigned repeat, const uint64_t *keys, uint64_t n)
{
	(void)b, (void)run, (void)repeat, (void)keys, (void)n;
	*seconds = 0;
	return -ENODEV;
}

int pfs_cuda_index_probe(struct pfs_operator_backend *b, const struct pfs_run *run,
			 const struct pfs_index_tree *tree, struct pfs_index_seconds *out,
			 const struct pfs_index_query *query)
{
	(void)b, (void)run, (void)tree, (void)out, (void)query;
	return -ENODEV;
}

int pfs_cuda_wide_index_probe(struct pfs_operator_backend *b, const struct pfs_run *run,
			      const struct pfs_index_tree *tree, struct pfs_index_seconds *out,
			      const struct pfs_index_query *query)
{
	(void)b, (void)run, (void)tree, (void)out, (void)query;
	return -ENODEV;
}

int pfs_cuda_prefix_probe(struct pfs_operator_backend *b, const struct pfs_run *run,
			  struct pfs_prefix *index, double *seconds, unsigned repeat,
			  const struct pfs_prefix_texts *keys)
{
	(void)b, (void)run, (void)index, (void)repeat, (void)keys;
	*seconds = 0;
	return -ENODEV;
}
