/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_range.h - a comparison with a constant as a range of integers. */
#ifndef PFS_GPU_CUDA_CUDA_RANGE_H
#define PFS_GPU_CUDA_CUDA_RANGE_H

#include "gpu/predicate.h"

struct pfs_range {
	int64_t low, high; /* low > high: nothing */
};

/* Gets the range of the values of a column of numbers that stand to the constant as op says:
 * integers, or reals in their order (pfs_order_real). -EOPNOTSUPP: the constant is NULL. */
PFS_MUST_CHECK int pfs_range_of(struct pfs_range *r, enum pfs_op op, bool is_real,
				const struct pfs_constant *constant);

#endif
