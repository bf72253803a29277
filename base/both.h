/* SPDX-License-Identifier: MIT */
/* base/both.h - functions that are compiled into kernels and into the host's code. */
#ifndef PFS_BASE_BOTH_H
#define PFS_BASE_BOTH_H

#ifdef __CUDACC__
#define PFS_BOTH static __host__ __device__ __forceinline__
#else
#define PFS_BOTH static inline
#endif

#endif
