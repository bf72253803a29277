/* SPDX-License-Identifier: MIT */
#include "gpu/cuda/cuda_check.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/log.h"
#include "gpu/engine_impl.h"

_Static_assert(PFS_CUDA_NO_MEMORY == cudaErrorMemoryAllocation &&
		       PFS_CUDA_FAILURE == cudaErrorUnknown,
	       "they are CUDA's own");

static atomic_long calls_left; /* 0: none is to fail */

long pfs_cuda_fail_at(long n)
{
	return atomic_exchange(&calls_left, n);
}

static void read_fail_at(void)
{
	const char *fail_at = getenv("PRIMEFS_CUDA_FAIL_AT");
	uint64_t n;

	if (fail_at && pfs_parse_u64(&n, fail_at) == 0)
		pfs_cuda_fail_at((long)PFS_MIN(n, (uint64_t)INT32_MAX));
}

void pfs_cuda_read_fail_at(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, read_fail_at);
}

bool pfs_cuda_injected(void)
{
	long left = atomic_load(&calls_left);

	while (left > 0)
		if (atomic_compare_exchange_weak(&calls_left, &left, left - 1))
			return left == 1;
	return false;
}

void pfs_cuda_log(int error, const char *call, const char *file, int line)
{
	pfs_error("%s:%d: %s: %s", file, line, call, cudaGetErrorString((cudaError_t)error));
	(void)cudaGetLastError(); /* not to be seen again by the next launch */
}
