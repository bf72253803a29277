/* SPDX-License-Identifier: MIT */
/* base/order.h - orders that many compare by. Each function returns a number below 0, 0 or above 0.
 * Threads: any number of callers. */
#ifndef PFS_BASE_ORDER_H
#define PFS_BASE_ORDER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Compare two numbers of that type, for qsort and bsearch. */
static inline int pfs_compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static inline int pfs_compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static inline int pfs_compare_i64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static inline int pfs_compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Compares byte by byte; what the other begins with comes first. An empty one may be NULL. */
static inline int pfs_compare_bytes(const void *a, size_t a_len, const void *b, size_t b_len)
{
	size_t len = a_len < b_len ? a_len : b_len;
	int order = len ? memcmp(a, b, len) : 0;

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

#endif
