/* SPDX-License-Identifier: MIT */
/* fs/nodes/scan_simd.h - the inner loops of scans, in as many versions as the processor may want.
 *
 * Each makes or narrows `words` words of bits, least significant bit first, from 64 values a word.
 * Columns may be read up to the end of the last word, names up to PFS_NAME_SLACK bytes past their
 * end. */
#ifndef PFS_FS_NODES_SCAN_SIMD_H
#define PFS_FS_NODES_SCAN_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A text that is looked for in names: one byte or more, in small letters if they are folded. */
struct pfs_needle {
	const uint8_t *text;
	size_t len;
	bool fold; /* ASCII letters */
};

struct pfs_scan_simd {
	const char *name;
	/* bit i = low <= values[i] <= high */
	void (*between_i64)(uint64_t *bits, const int64_t *values, size_t words, int64_t low,
			    int64_t high);
	void (*between_u32)(uint64_t *bits, const uint32_t *values, size_t words, uint32_t low,
			    uint32_t high);
	/* bit i = (values[i] & mask) == wanted */
	void (*masked_u16)(uint64_t *bits, const uint16_t *values, size_t words, uint16_t mask,
			   uint16_t wanted);
	/* bit i = bit (values[i] >> 12) of types */
	void (*type_u16)(uint64_t *bits, const uint16_t *values, size_t words, uint16_t types);
	/* Clears bit i unless the name at heap + 4 * place[i] (a length byte, then the bytes) has
	 * the needle in it; looks at names whose bit is set. */
	void (*keep_containing)(uint64_t *bits, const uint8_t *heap, const uint32_t *place,
				size_t words, const struct pfs_needle *needle);
	/* Returns true if the needle is anywhere in the bytes, of which PFS_SCAN_SIMD_SLACK more
	 * than size may be read. */
	bool (*has)(const uint8_t *bytes, size_t size, const struct pfs_needle *needle);
};

#define PFS_SCAN_SIMD_SLACK 320u

/* Returns the i-th version that this processor runs, the fastest first; NULL past the last, which
 * is portable C. */
const struct pfs_scan_simd *pfs_scan_simd_version(unsigned i);

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

#endif
