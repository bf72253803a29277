/* SPDX-License-Identifier: MIT */
/* fs/nodes/scan_simd.h - the inner loops of scans, in as many versions as the processor may want.
 *
 * Each makes `words` words of bits, least significant bit first, from 64 values a word.
 * Columns may be read up to the end of the last word. */
#ifndef PFS_FS_NODES_SCAN_SIMD_H
#define PFS_FS_NODES_SCAN_SIMD_H

#include <stddef.h>
#include <stdint.h>

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
};

/* Returns the i-th version that this processor runs, the fastest first; NULL past the last, which
 * is portable C. */
const struct pfs_scan_simd *pfs_scan_simd_version(unsigned i);

#endif
