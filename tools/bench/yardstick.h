/* SPDX-License-Identifier: MIT */
/* tools/bench/yardstick.h - a filesystem that answers from arithmetic and keeps nothing: what FUSE
 * costs when there is nothing behind it.  For benchmarks only.
 *
 * Its root holds the directories d0, d1, ..., each of them the empty files f000000, f000001, ...,
 * and the file big, bytes of zeros.  Whatever is made or removed succeeds and leaves nothing.
 * Served by libfuse's own loop, with attributes in every listing. */
#ifndef PFS_TOOLS_BENCH_YARDSTICK_H
#define PFS_TOOLS_BENCH_YARDSTICK_H

#include <stdint.h>

#include "base/err.h"

struct pfs_yardstick {
	uint32_t dirs, files; /* files: in each directory */
	uint64_t bytes;	      /* size of big */
	unsigned threads;
	double timeout; /* seconds that the kernel may keep names and attributes */
};

/* Mounts it and serves it until it is unmounted.  Errors are logged. */
PFS_MUST_CHECK int pfs_yardstick_serve(const struct pfs_yardstick *yardstick,
				       const char *mountpoint);

#endif
