/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_operators.c - the relational operators on the device: none yet, the host has them all. */
#include "gpu/engine_impl.h"

int pfs_cuda_operators_open(struct pfs_operator_backend **out)
{
	(void)out;
	return -ENODEV;
}
