/* SPDX-License-Identifier: MIT */
/* gpu/host/simd.h - the inner loops of the host back end, in as many versions as the processor may
 * want. */
#ifndef PFS_GPU_HOST_SIMD_H
#define PFS_GPU_HOST_SIMD_H

#include "gpu/engine_impl.h"

struct pfs_simd {
	const char *name;
	/* Sets bit i of bits if the divisor divides row i of the tile, whose limb l is at limbs[l *
	 * PFS_TILE_ROWS + i]. */
	void (*scan_tile)(uint32_t *bits, const uint32_t *limbs, unsigned n_limbs,
			  struct pfs_divisor divisor);
	/* Bit i of bits = bit index[i] of table, for n (a multiple of 32). */
	void (*gather_bits)(uint32_t *bits, const uint32_t *index, size_t n, const uint32_t *table);
};

/* Returns the i-th version that this processor runs, the fastest first; NULL past the last, which
 * is portable C. */
const struct pfs_simd *pfs_simd_version(unsigned i);

#endif
