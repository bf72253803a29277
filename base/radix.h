/* SPDX-License-Identifier: MIT */
/* base/radix.h - sorting many small things by a number, and finding one among those that are sorted. */
#ifndef PFS_BASE_RADIX_H
#define PFS_BASE_RADIX_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_keyed {
	uint64_t key;
	uint32_t value;
};

/* By key, ascending; what is equal stays in its order.  Takes as much memory again, and time by the
 * keys' bits that differ at all.  -ENOMEM: nothing has moved. */
PFS_MUST_CHECK int pfs_radix_sort(struct pfs_keyed *items, size_t n);

/* Numbers alone, the same way. */
PFS_MUST_CHECK int pfs_radix_sort_u32(uint32_t *items, size_t n);

/* Where the first of n ascending values is that is not below `value`; n: all are. */
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
