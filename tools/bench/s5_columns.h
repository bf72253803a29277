/* SPDX-License-Identifier: MIT */
/* tools/bench/s5_columns.h - an index of a column of nodes made in two ways, for primefs-bench s5:
 * the sorted slots that a tree keeps (fs/nodes/index.h), and an ordered index of (value, slot)
 * pairs (gpu/index.h). */
#ifndef PFS_TOOLS_BENCH_S5_COLUMNS_H
#define PFS_TOOLS_BENCH_S5_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/run.h"

/* Prints what both take for a made-up tree of that many nodes: processor time if is_cpu is true.
 * -EUCLEAN: they answer differently, which has been said. */
PFS_MUST_CHECK int pfs_s5_columns(const struct pfs_run *run, uint64_t nodes, bool is_cpu);

#endif
