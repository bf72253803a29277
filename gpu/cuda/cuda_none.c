/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_none.c - linked when there is no CUDA to build with. */
#include "gpu/engine_impl.h"
#include "gpu/probe_impl.h"
#include "gpu/resident.h"

int pfs_cuda_open(struct pfs_backend **out)
{
	(void)out;
	return -ENODEV;
}

int pfs_cuda_probe(struct pfs_backend *b, double *seconds, uint64_t *bytes, enum pfs_probe what,
		   const struct pfs_divisor *divisors, size_t n)
{
	(void)b, (void)what, (void)divisors, (void)n;
	*seconds = 0;
	*bytes = 0;
	return -ENODEV;
}

void pfs_cuda_fail_at(long n)
{
	(void)n;
}

int pfs_cuda_operators_open(struct pfs_operator_backend **out)
{
	(void)out;
	return -ENODEV;
}

int pfs_cuda_resident_open(struct pfs_resident_backend **out)
{
	(void)out;
	return -ENODEV;
}
