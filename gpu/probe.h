/* SPDX-License-Identifier: MIT */
/* gpu/probe.h - for benchmarks and tests: parts of the engine's work timed where they run, the ceilings
 * that the same hardware sets, and what the program itself does not ask an engine. */
#ifndef PFS_GPU_PROBE_H
#define PFS_GPU_PROBE_H

#include "gpu/engine.h"

enum pfs_probe {
	PFS_PROBE_COPY,	   /* memory to memory: memcpy on all threads, or device to device */
	PFS_PROBE_TO_HOST, /* device to pinned host memory */
	PFS_PROBE_SCAN,	   /* the codes alone, for n directories: no bits by slot */
	PFS_PROBE_BUILD,   /* all codes from parents and primes */
};

struct pfs_figure {
	double median, least, most; /* seconds */
	uint64_t bytes;		    /* that must move at least; a copy's are counted twice */
};

/* Measures something `repeat` times, after two runs to warm up. slots are directories, for
 * PFS_PROBE_SCAN. -ENOTSUP: the host back end has no bus. */
PFS_MUST_CHECK int pfs_engine_probe(struct pfs_engine *engine, struct pfs_figure *figure,
				    enum pfs_probe what, const uint32_t *slots, size_t n,
				    unsigned repeat);

/* Allows ranges, as is so at first: while slots are in pre-order and nothing under a directory has
 * changed since they were loaded, its subtree is a range of slots, and is answered so without
 * looking at codes.  Benchmarks and tests forbid them, so that codes answer. */
void pfs_engine_use_ranges(struct pfs_engine *engine, bool on);

/* Gets the code in decimal, which the caller frees. -ENOENT: the slot is not in use; -ENOMEM. The
 * program makes codes of the image (fs/image/path.h); this says what the engine's columns have. */
PFS_MUST_CHECK int pfs_engine_code(struct pfs_engine *engine, char **decimal, uint32_t slot);

/* Makes a figure of anything else: seconds[n], in any order. */
void pfs_figure_of(struct pfs_figure *figure, double *seconds, size_t n);

#endif
