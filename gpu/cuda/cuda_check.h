/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_check.h - every CUDA call goes through PFS_CUDA: an errno comes out, logged once.
 */
#ifndef PFS_GPU_CUDA_CHECK_H
#define PFS_GPU_CUDA_CHECK_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -ENOMEM: the device's memory is short; -EIO: anything else. */
int pfs_cuda_errno(int error, const char *call, const char *file, int line);

/* True for the call that is to fail (pfs_cuda_fail_at), which is then not made. */
bool pfs_cuda_injected(void);

/* For tests of what follows a failure: PRIMEFS_CUDA_FAIL_AT=n has the n-th call fail from where this is called
 * for the first time. */
void pfs_cuda_read_fail_at(void);

#define PFS_CUDA_FAILURE 999 /* cudaErrorUnknown */
#define PFS_CUDA(call)                                                                             \
	pfs_cuda_errno(pfs_cuda_injected() ? PFS_CUDA_FAILURE : (int)(call), #call, __FILE__,      \
		       __LINE__)

#ifdef __cplusplus
}
#endif

#endif
