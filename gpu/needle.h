/* SPDX-License-Identifier: MIT */
/* gpu/needle.h - a text that is looked for in others, in as many versions as the processor may want. */
#ifndef PFS_GPU_NEEDLE_H
#define PFS_GPU_NEEDLE_H

#include <stdbool.h>
#include <string.h>

#include "gpu/table.h"

/* What is looked for: one byte or more, in small letters if they are folded. */
struct pfs_needle {
	const uint8_t *text;
	size_t len;
	bool fold; /* ASCII letters */
};

struct pfs_needle_search {
	const char *name;
	/* Clears bit i of `words` words unless the text of places[i] has the needle in it; looks at texts
	 * whose bit is set. The heap's lengths have one byte. */
	void (*keep_containing)(uint64_t *bits, const struct pfs_heap *heap, const uint32_t *places,
				size_t words, const struct pfs_needle *needle);
	/* Returns true if the needle is anywhere in the bytes, of which PFS_NEEDLE_SLACK more than size
	 * may be read. */
	bool (*has)(const uint8_t *bytes, size_t size, const struct pfs_needle *needle);
};

#define PFS_NEEDLE_SLACK 32u

/* Returns the i-th version that this processor runs, the fastest first; NULL past the last, which
 * is portable C. */
const struct pfs_needle_search *pfs_needle_version(unsigned i);

/* Returns true if the n bytes are the same; fold: a's letters are folded, and b is in small
 * letters. */
static inline bool pfs_same_bytes(const uint8_t *a, const uint8_t *b, size_t n, bool fold)
{
	if (!fold)
		return n == 0 || memcmp(a, b, n) == 0;
	for (size_t i = 0; i < n; i++)
		if ((a[i] >= 'A' && a[i] <= 'Z' ? a[i] | 0x20 : a[i]) != b[i])
			return false;
	return true;
}

/* Returns true if PFS_NEEDLE_SLACK bytes behind the text at the place may be read, of a heap whose lengths have one
 * byte. */
static inline bool pfs_heap_has_slack(const struct pfs_heap *heap, uint32_t place)
{
	return ((uint64_t)place << heap->place_shift) + 1 + UINT8_MAX + PFS_NEEDLE_SLACK <= heap->size;
}

#endif
