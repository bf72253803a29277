/* SPDX-License-Identifier: MIT */
/* gpu/probe_impl.h - the measurements for benchmarks (gpu/probe.h, pfs_index_probe,
 * pfs_prefix_probe) as each back end makes them.  They are called by their names: no family has a
 * member for them. */
#ifndef PFS_GPU_PROBE_IMPL_H
#define PFS_GPU_PROBE_IMPL_H

#include "gpu/engine_impl.h"
#include "gpu/probe.h"

/* Make one measurement on a back end that has no other job: *seconds is how long it took,
 * *bytes how many bytes had to move at least. */
PFS_MUST_CHECK int pfs_host_probe(struct pfs_codes_job *job, double *seconds, uint64_t *bytes,
				  enum pfs_probe what, const struct pfs_divisor *divisors,
				  size_t n);
PFS_MUST_CHECK int pfs_cuda_probe(struct pfs_codes_job *job, double *seconds, uint64_t *bytes,
				  enum pfs_probe what, const struct pfs_divisor *divisors,
				  size_t n);

/* Does what pfs_sort_probe says. */
PFS_MUST_CHECK int pfs_cuda_sort_probe(struct pfs_operator_backend *b, const struct pfs_run *run,
				       double *seconds, unsigned repeat, const uint64_t *keys,
				       uint64_t n);

/* Do what pfs_index_probe (gpu/index.h) says for an index on the device. The narrow and the wide
 * index are one source (gpu/index_value.h). -EOPNOTSUPP: the host is part of each search. */
PFS_MUST_CHECK int pfs_cuda_index_probe(struct pfs_operator_backend *b, const struct pfs_run *run,
					const struct pfs_index_tree *tree,
					struct pfs_index_seconds *out,
					const struct pfs_index_query *query);
PFS_MUST_CHECK int pfs_cuda_wide_index_probe(struct pfs_operator_backend *b,
					     const struct pfs_run *run,
					     const struct pfs_index_tree *tree,
					     struct pfs_index_seconds *out,
					     const struct pfs_index_query *query);

struct pfs_prefix;
struct pfs_prefix_texts;

/* Does what pfs_prefix_probe (gpu/prefix.h) says; copy_lock is held. */
PFS_MUST_CHECK int pfs_cuda_prefix_probe(struct pfs_operator_backend *b, const struct pfs_run *run,
					 struct pfs_prefix *index, double *seconds, unsigned repeat,
					 const struct pfs_prefix_texts *keys);

#endif
