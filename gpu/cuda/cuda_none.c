/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_none.c - linked when there is no CUDA to build with. */
#include "gpu/engine_impl.h"
#include "gpu/resident.h"

int pfs_cuda_open(struct pfs_backend **out)
{
	(void)out;
	return -ENODEV;
}

long pfs_cuda_fail_at(long n)
{
	(void)n;
	return 0;
}

uint64_t pfs_cuda_bytes_left(void)
{
	return 0;
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
