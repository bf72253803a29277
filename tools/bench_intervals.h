/* SPDX-License-Identifier: MIT */
/* tools/bench_intervals.h - codes beside nested intervals, the strongest rival encoding, on the
 * same engine and tree. */
#ifndef PFS_TOOLS_BENCH_INTERVALS_H
#define PFS_TOOLS_BENCH_INTERVALS_H

#include "gpu/engine.h"

/* Slots of a tree of n, in pre-order. */
struct pfs_beside_intervals {
	uint32_t n;
	uint32_t top;		       /* a directory to look below */
	uint32_t deep;		       /* a node to look above */
	uint32_t moved, parent, other; /* goes from its parent to another directory and back */
};

/* A line for each question and change, to standard output.  The tree is then as it was, but its
 * subtrees are no ranges any more.  -EIO: the two disagree, which has been said. */
PFS_MUST_CHECK int pfs_bench_beside_intervals(struct pfs_engine *engine,
					      const struct pfs_beside_intervals *what);

#endif
