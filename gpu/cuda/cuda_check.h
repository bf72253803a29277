/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_check.h - the one place where CUDA's results become errnos: every CUDA call goes
 * through PFS_CUDA, which logs a failure once. Threads: any number of callers. */
#ifndef PFS_GPU_CUDA_CHECK_H
#define PFS_GPU_CUDA_CHECK_H

#include <errno.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PFS_CUDA_NO_MEMORY 2   /* cudaErrorMemoryAllocation */
#define PFS_CUDA_FAILURE   999 /* cudaErrorUnknown */

void pfs_cuda_log(int error, const char *call, const char *file, int line);

/* Returns 0, -ENOMEM if the device's memory is short, or -EIO for anything else. Inline, so that
 * clang-tidy sees that what a failed call has not set is not used. */
static inline int pfs_cuda_errno(int error, const char *call, const char *file, int line)
{
	if (!error)
		return 0;
	pfs_cuda_log(error, call, file, line);
	return error == PFS_CUDA_NO_MEMORY ? -ENOMEM : -EIO;
}

/* Returns true for the call that is to fail (pfs_cuda_fail_at), which is then not made. */
bool pfs_cuda_injected(void);

/* For tests of what follows a failure: PRIMEFS_CUDA_FAIL_AT=n makes the n-th call fail, counted
 * from where this is first called. */
void pfs_cuda_read_fail_at(void);

#define PFS_CUDA(call)                                                                             \
	pfs_cuda_errno(pfs_cuda_injected() ? PFS_CUDA_FAILURE : (int)(call), #call, __FILE__,      \
		       __LINE__)

#ifdef __cplusplus
}
#endif

#endif
