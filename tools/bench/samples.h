/* SPDX-License-Identifier: MIT */
/* tools/bench/samples.h - how long each of many things took: kept as they end, and said by
 * percentiles. One thread at a time. */
#ifndef PFS_TOOLS_BENCH_SAMPLES_H
#define PFS_TOOLS_BENCH_SAMPLES_H

#include <stddef.h>

#define PFS_SAMPLES_MAX 4000000u

struct pfs_samples {
	float *seconds; /* PFS_SAMPLES_MAX, the caller's */
	size_t n;
};

/* started: by pfs_bench_now(). What there is no room for is left out. */
void pfs_samples_add(struct pfs_samples *samples, double started);
/* The longest that this part of them took, in ms: 0.999 is all but one of a thousand; 0: there is
 * none. Sorts them. */
double pfs_samples_part(const struct pfs_samples *samples, double part);
/* Prints p50, p99, p99.9 and the longest in milliseconds, without the line's end; sorts them. */
void pfs_samples_print(const struct pfs_samples *samples);

#endif
