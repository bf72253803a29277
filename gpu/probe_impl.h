/* SPDX-License-Identifier: MIT */
/* gpu/probe_impl.h - the measurements of gpu/probe.h as each back end makes them. */
#ifndef PFS_GPU_PROBE_IMPL_H
#define PFS_GPU_PROBE_IMPL_H

#include "gpu/engine_impl.h"
#include "gpu/probe.h"

/* Makes one measurement on a back end that nobody else uses: how long it took, and the bytes that had to
 * move at least. */
PFS_MUST_CHECK int pfs_host_probe(struct pfs_backend *b, double *seconds, uint64_t *bytes,
				  enum pfs_probe what, const struct pfs_divisor *divisors,
				  size_t n);
PFS_MUST_CHECK int pfs_cuda_probe(struct pfs_backend *b, double *seconds, uint64_t *bytes,
				  enum pfs_probe what, const struct pfs_divisor *divisors,
				  size_t n);

#endif
