/* SPDX-License-Identifier: MIT */
/* gpu/needle.h - finds a text within others, with a version for each kind of processor. */
#ifndef PFS_GPU_NEEDLE_H
#define PFS_GPU_NEEDLE_H

#include <stdbool.h>
#include <string.h>

#include "gpu/table.h"

/* The text that is looked for: one byte or more. If case is folded, its letters are small. */
struct pfs_needle {
	const uint8_t *text;
	size_t len;
	bool fold; /* the case of ASCII letters */
};

struct pfs_needle_search {
	const char *name;
	/* Clears bit i of `words` words if the text at places[i] does not contain the needle. Only
	 * texts whose bit is set are read. The heap's lengths have one byte. */
	void (*keep_containing)(uint64_t *bits, const struct pfs_heap *heap, const uint32_t *places,
				size_t words, const struct pfs_needle *needle);
	/* Returns true if the bytes contain the needle. It may read PFS_NEEDLE_SLACK bytes behind
	 * them. */
	bool (*has)(const uint8_t *bytes, size_t size, const struct pfs_needle *needle);
};

#define PFS_NEEDLE_SLACK 32u

/* Returns the i-th version that this processor can run, the fastest first. The last one is portable
 * C; NULL: there are no more. */
const struct pfs_needle_search *pfs_needle_version(unsigned i);

/* Returns true if the n bytes are equal. fold: ignores the case of a's ASCII letters; b has small
 * ones. */
static inline bool pfs_same_bytes(const uint8_t *a, const uint8_t *b, size_t n, bool fold)
{
	if (!fold)
		return n == 0 || memcmp(a, b, n) == 0;
	for (size_t i = 0; i < n; i++)
		if ((a[i] >= 'A' && a[i] <= 'Z' ? a[i] | 0x20 : a[i]) != b[i])
			return false;
	return true;
}

/* Returns true if PFS_NEEDLE_SLACK bytes behind the text at the place may be read. The heap's
 * lengths have one byte. */
static inline bool pfs_heap_has_slack(const struct pfs_heap *heap, uint32_t place)
{
	return ((uint64_t)place << heap->place_shift) + 1 + UINT8_MAX + PFS_NEEDLE_SLACK <=
	       heap->size;
}

#endif
