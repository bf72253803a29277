/* SPDX-License-Identifier: MIT */
/* base/radix.h - sorts small items by a number, and searches sorted numbers.
 * Threads: any number of callers. */
#ifndef PFS_BASE_RADIX_H
#define PFS_BASE_RADIX_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_keyed {
	uint64_t key;
	uint32_t value;
};

/* Sorts by key, ascending; items with equal keys keep their order. It allocates as much memory as
 * the items have, and makes a pass for each byte of the keys that is not the same in all. -ENOMEM:
 * the items are unchanged. */
PFS_MUST_CHECK int pfs_radix_sort(struct pfs_keyed *items, size_t n);
/* As pfs_radix_sort, but uses the caller's memory for n items at `more`, whose content is undefined
 * afterwards. It cannot fail. */
void pfs_radix_sort_with(struct pfs_keyed *items, struct pfs_keyed *more, size_t n);

/* Sorts numbers, ascending. -ENOMEM: they are unchanged. */
PFS_MUST_CHECK int pfs_radix_sort_u32(uint32_t *items, size_t n);

/* Returns the index of the first of n ascending values that is not below `value`, or n if all
 * are. */
static inline size_t pfs_lower_bound_u32(const uint32_t *values, size_t n, uint32_t value)
{
	size_t from = 0;

	while (n > 0) {
		size_t half = n / 2;

		if (values[from + half] < value) {
			from += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return from;
}

#endif
