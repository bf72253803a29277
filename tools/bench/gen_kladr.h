/* SPDX-License-Identifier: MIT */
/* tools/bench/gen_kladr.h - a made-up register of addresses, shaped like KLADR: a country, regions,
 * districts, towns, settlements, streets; unbalanced; the same for the same seed. */
#ifndef PFS_TOOLS_BENCH_GEN_KLADR_H
#define PFS_TOOLS_BENCH_GEN_KLADR_H

#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

#define PFS_KLADR_LEVELS 5 /* below the country */

/* Arrays by node, in pre-order; node 0 is the country, its own parent. */
struct pfs_kladr {
	uint32_t n;
	uint32_t *parent;
	uint8_t *level;
};

/* n nodes, 1000 at least.  -ENOMEM.  Free with pfs_kladr_free. */
PFS_MUST_CHECK int pfs_kladr_make(struct pfs_kladr *kladr, uint32_t n, uint64_t seed);
void pfs_kladr_free(struct pfs_kladr *kladr);

/* CSV with a header: id, parent, name, objName, gpsX, gpsY, level, objType, objCode; parents first.
 * -EIO; -ENOMEM. */
PFS_MUST_CHECK int pfs_gen_kladr(FILE *out, uint64_t nodes, uint64_t seed);

#endif
