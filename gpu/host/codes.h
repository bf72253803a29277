/* SPDX-License-Identifier: MIT */
/* gpu/host/codes.h - the directories' codes in host memory, in tiles of 1,024 rows of one width,
 * limb-major: built, changed, scanned. Threads: any number of them scan and read side by side; but
 * they are built and changed by one, while nobody else uses them. */
#ifndef PFS_GPU_HOST_CODES_H
#define PFS_GPU_HOST_CODES_H

#include "gpu/engine_impl.h"
#include "base/pool.h"
#include "gpu/host/simd.h"

struct pfs_tile {
	uint32_t *limbs;
	uint32_t n_limbs;
	uint32_t used; /* rows taken, from 0 on */
};

struct pfs_code_tiles {
	struct pfs_pool *pool;
	const struct pfs_simd *simd;
	struct pfs_tile *tiles; /* the first is a blank: its rows' bits are 0 */
	size_t n_tiles, tile_capacity;
	uint32_t **blocks; /* what the tiles' limbs lie in */
	size_t n_blocks, block_capacity;
	uint32_t open_tile[PFS_N_WIDTHS]; /* where the next row of that width goes; 0: none */
	uint32_t *row_of; /* by directory: tile * 1024 + row; 0: none (deep, or not in use) */
	size_t row_capacity;
	uint32_t *deep; /* directories whose code is too long to be kept, ascending */
	size_t n_deep, deep_capacity;
	uint64_t n_rows, n_lost; /* rows taken; and of these, left behind by changes */
};

/* The memory of one thread's scans. */
struct pfs_scan_scratch {
	uint32_t *row_bits, *directory_bits;
	size_t row_bits_capacity, directory_bits_capacity;
};

void pfs_scan_scratch_free(struct pfs_scan_scratch *scratch);

void pfs_code_tiles_free(struct pfs_code_tiles *codes);

/* Builds all codes anew. -ENOMEM: there are none then. */
PFS_MUST_CHECK int pfs_code_tiles_build(struct pfs_code_tiles *codes, const struct pfs_columns *c);

/* Changes the codes that the changes concern. -ENOMEM: build them anew. */
PFS_MUST_CHECK int pfs_code_tiles_change(struct pfs_code_tiles *codes, const struct pfs_columns *c,
				    const struct pfs_changes *changes);

/* Finds which codes the divisor divides: scratch->directory_bits, by directory number. -ENOMEM. */
PFS_MUST_CHECK int pfs_code_tiles_scan(const struct pfs_code_tiles *codes,
				       struct pfs_scan_scratch *scratch,
				       const struct pfs_columns *c, struct pfs_divisor divisor);

/* Scans only to row bits, those of each divisor in turn: what a scan costs without the rest.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_code_tiles_scan_rows(const struct pfs_code_tiles *codes,
					    struct pfs_scan_scratch *scratch,
					    const struct pfs_divisor *divisors, size_t n);

/* Gets one directory's code; *n_limbs is 0 if it has none here. */
void pfs_code_tiles_read(const struct pfs_code_tiles *codes, uint32_t *limbs, uint32_t *n_limbs,
		    uint32_t directory);

#endif
