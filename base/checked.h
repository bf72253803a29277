/* SPDX-License-Identifier: MIT */
/* base/checked.h - arithmetic, parsing and growth of arrays, with checks for overflow.
 * Threads: any number of callers. */
#ifndef PFS_BASE_CHECKED_H
#define PFS_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"

#define PFS_MIN(a, b) ((a) < (b) ? (a) : (b))
#define PFS_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Returns n / unit, rounded up; unit is not 0. */
static inline uint64_t pfs_div_round_up(uint64_t n, uint64_t unit)
{
	return n / unit + (n % unit != 0);
}

/* Parses a text that is all digits. -EINVAL: it is empty or has another character; -ERANGE: the
 * number does not fit into 64 bits. */
PFS_MUST_CHECK static inline int pfs_parse_u64(uint64_t *out, const char *text)
{
	uint64_t value = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return -ERANGE;
	}
	*out = value;
	return 0;
}

/* Makes room for at least `needed` elements of element_size bytes in *array, which has room for
 * *capacity now and then grows by at least half. *array is NULL at first; the caller frees it.
 * -ENOMEM: both are unchanged. */
PFS_MUST_CHECK static inline int pfs_grow(void *array, size_t *capacity, size_t needed,
					  size_t element_size)
{
	size_t wanted, bytes;
	void *grown;

	if (needed <= *capacity)
		return 0;
	wanted = PFS_MAX(needed, *capacity + *capacity / 2 + 8);
	if (__builtin_mul_overflow(wanted, element_size, &bytes))
		return -ENOMEM;
	grown = realloc(*(void **)array, bytes);
	if (!grown)
		return -ENOMEM;
	*(void **)array = grown;
	*capacity = wanted;
	return 0;
}

#endif
