/* SPDX-License-Identifier: MIT */
/* gpu/probe.h - for benchmarks: parts of the engine's work timed where they run, and the ceilings
 * that the same hardware sets. */
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

/* Makes a figure of anything else: seconds[n], in any order. */
void pfs_figure_of(struct pfs_figure *figure, double *seconds, size_t n);

#endif
