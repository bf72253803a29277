/* SPDX-License-Identifier: MIT */
/* gpu/host/lanes.h - the inner loops of the relational operators, compiled once for each
 * instruction set that the processor may have. */
#ifndef PFS_GPU_HOST_LANES_H
#define PFS_GPU_HOST_LANES_H

#include "gpu/table.h"

enum pfs_order_op { PFS_LANES_EQ, PFS_LANES_LT, PFS_LANES_GT };

struct pfs_lanes {
	/* Writes the numbers first + i of the bits that are set in n words; returns how many. out
	 * has room for 64 n. */
	uint32_t (*list_bits)(uint32_t *out, const uint64_t *words, size_t n, uint32_t first);
	/* Read integers, codes or places at the elements at[i] or, with at NULL, first + i. */
	void (*read_64)(int64_t *out, const struct pfs_table_column *column, const uint32_t *at,
			uint32_t first, uint32_t n);
	void (*read_32)(uint32_t *out, const struct pfs_table_column *column, const uint32_t *at,
			uint32_t first, uint32_t n);
	void (*list_64)(int64_t *out, const void *data, const uint32_t *at, uint32_t n);
	/* Bit i of words = low <= the value at element at[i] or, with at NULL, first + i, <= high;
	 * bits past n are 0. The column is of integers without a base; low <= high, and both fit
	 * its elements. */
	void (*between)(uint64_t *words, const struct pfs_table_column *column, const uint32_t *at,
			uint32_t first, uint32_t n, int64_t low, int64_t high);
	/* Bit i of words = values[i] op constant; bits past n are 0. */
	void (*compare)(uint64_t *words, const int64_t *values, uint32_t n, enum pfs_order_op op,
			int64_t constant);
	void (*compare_real)(uint64_t *words, const double *values, uint32_t n,
			     enum pfs_order_op op, double constant);
	/* Bit i of words = values[i] op others[i]. */
	void (*compare_both)(uint64_t *words, const int64_t *values, const int64_t *others,
			     uint32_t n, enum pfs_order_op op);
	/* Finds the least and the greatest of n values, n > 0. */
	void (*extremes)(int64_t *least, int64_t *greatest, const int64_t *values, uint32_t n);
	/* Sums n values modulo 2^64; and, of the values with negative ones inverted, the upper and
	 * the lower halves. */
	void (*sum)(uint64_t *sum, uint64_t *high, uint64_t *low, const int64_t *values,
		    uint32_t n);
	/* Replace n values by their sums, or products, with the constant, modulo 2^64. */
	void (*add)(int64_t *values, uint32_t n, int64_t constant);
	void (*multiply)(int64_t *values, uint32_t n, int64_t constant);
	/* Replaces n values from least to greatest by their quotients, truncated; constant > 0. */
	void (*divide)(int64_t *values, uint32_t n, int64_t constant, int64_t least,
		       int64_t greatest);
};

/* Returns the fastest version that this processor runs. */
const struct pfs_lanes *pfs_lanes(void);
/* Returns the i-th version, the fastest first; NULL past the last, which is portable (tests). */
const struct pfs_lanes *pfs_lanes_version(unsigned i);

#endif
