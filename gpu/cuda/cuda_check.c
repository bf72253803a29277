/* SPDX-License-Identifier: MIT */
#include "gpu/cuda/cuda_check.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdatomic.h>

#include "base/log.h"
#include "gpu/engine_impl.h"

static atomic_long calls_left; /* 0: none is to fail */

void pfs_cuda_fail_at(long n)
{
	atomic_store(&calls_left, n);
}

bool pfs_cuda_injected(void)
{
	long left = atomic_load(&calls_left);

	while (left > 0)
		if (atomic_compare_exchange_weak(&calls_left, &left, left - 1))
			return left == 1;
	return false;
}

int pfs_cuda_errno(int error, const char *call, const char *file, int line)
{
	if (error == cudaSuccess)
		return 0;
	pfs_error("%s:%d: %s: %s", file, line, call, cudaGetErrorString((cudaError_t)error));
	(void)cudaGetLastError(); /* not to be seen again by the next launch */
	return error == cudaErrorMemoryAllocation ? -ENOMEM : -EIO;
}
