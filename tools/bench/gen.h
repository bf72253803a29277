/* SPDX-License-Identifier: MIT */
/* tools/bench/gen.h - made-up hierarchies of any size, the same for the same seed. */
#ifndef PFS_TOOLS_BENCH_GEN_H
#define PFS_TOOLS_BENCH_GEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* splitmix64: the next number of the sequence that *state stands for. */
static inline uint64_t pfs_gen_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Visits the paths of the files of a tree of that many nodes, root and directories included.
 * Its shape is that of a package archive: depth up to 24, about 8 % directories, from chains of
 * one to folders of hundreds of thousands, names of 14 bytes on average. A visit that does not
 * return 0 is the last, and what it returns is returned. */
PFS_MUST_CHECK int pfs_gen_visit(uint64_t nodes, uint64_t seed,
				 int (*visit)(void *arg, const char *path, size_t len), void *arg);

/* Prints these paths, one a line. -EIO. */
PFS_MUST_CHECK int pfs_gen_paths(FILE *out, uint64_t nodes, uint64_t seed);

#endif
