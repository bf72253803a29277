/* SPDX-License-Identifier: MIT */
/* tools/bench/s3.h - what the files of primefs-bench s3 share: s3.c (keys, searches, insertion),
 * s3_order.c (what goes by the order of keys, and deletion) and s3_pages.c (pages out and in, and
 * the dictionary). */
#ifndef PFS_TOOLS_BENCH_S3_H
#define PFS_TOOLS_BENCH_S3_H

#include "gpu/prefix.h"
#include "gpu/run.h"

#define PFS_S3_RUNS 5

enum { PFS_S3_PARTITIONS, PFS_S3_CONSECUTIVE, PFS_S3_URLS, PFS_S3_PATHS, PFS_S3_COMPONENTS };

/* Keys that are asked for, each with its number. */
struct pfs_s3_asked {
	uint8_t *bytes;
	uint64_t *at, *numbers;
	size_t n;
};

struct pfs_s3 {
	struct pfs_run run;
	size_t set, most, questions; /* most: the largest number of keys */
	uint64_t memory;
	unsigned bits;
	bool is_cpu; /* times are processor times */
	uint8_t *bytes;
	uint64_t *at, *numbers; /* the payloads are 0, 1, ... */
	uint64_t *got;
	uint32_t *places;
	struct pfs_s3_asked batch, singles;
	const uint8_t **sorted; /* for the yardstick */
	bool bad;
};

double pfs_s3_clock(const struct pfs_s3 *b);

/* Prints the median of the runs for one of n, with the least and the most where there are several.
 */
void pfs_s3_line(const char *what, double *seconds, unsigned runs, size_t n, bool is_right);

/* Measure a compact index of the first n keys, in which each key's payload is its number; it is the
 * same afterwards. */
PFS_MUST_CHECK int pfs_s3_order(struct pfs_s3 *b, struct pfs_prefix *index, size_t n);
PFS_MUST_CHECK int pfs_s3_pages(struct pfs_s3 *b, struct pfs_prefix *index);
/* The dictionary of named indexes. */
PFS_MUST_CHECK int pfs_s3_names(struct pfs_s3 *b);

#endif
