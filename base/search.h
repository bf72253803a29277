/* SPDX-License-Identifier: MIT */
/* base/search.h - binary search of any order.  Threads: any number of callers. */
#ifndef PFS_BASE_SEARCH_H
#define PFS_BASE_SEARCH_H

#include <stdint.h>

/* Gives the first position from `low` on, and before `high`, for which the expression is_before is
 * false, or `high` if there is none: a uint64_t. is_before names the position `at`; it must be true
 * up to some position and false from there on.
 *
 *     first = PFS_SEARCH(i, 0, n, numbers[i] < wanted); */
#define PFS_SEARCH(at, low, high, is_before)                                                       \
	({                                                                                         \
		uint64_t pfs_low = (low), pfs_high = (high);                                       \
                                                                                                   \
		while (pfs_low < pfs_high) {                                                       \
			uint64_t at = pfs_low + (pfs_high - pfs_low) / 2;                          \
                                                                                                   \
			if (is_before)                                                             \
				pfs_low = at + 1;                                                  \
			else                                                                       \
				pfs_high = at;                                                     \
		}                                                                                  \
		pfs_low;                                                                           \
	})

#endif
