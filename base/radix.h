/* SPDX-License-Identifier: MIT */
/* base/radix.h - sorting many small things by a number. */
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

#endif
