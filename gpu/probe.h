/* SPDX-License-Identifier: MIT */
/* gpu/probe.h - for benchmarks and tests: times of parts of the engine's work, the limits that the
 * same hardware sets, and questions that the program itself does not ask. */
#ifndef PFS_GPU_PROBE_H
#define PFS_GPU_PROBE_H

#include "gpu/engine.h"
#include "gpu/run.h"

enum pfs_probe {
	PFS_PROBE_COPY,	   /* memory to memory: memcpy on all threads, or device to device */
	PFS_PROBE_READ,	   /* the host's memory, read and summed on all threads */
	PFS_PROBE_TO_HOST, /* device to pinned host memory */
	PFS_PROBE_SCAN,	   /* scan the codes for n directories, without making bits by slot */
	PFS_PROBE_BUILD,   /* make all codes from parents and primes */
};

struct pfs_figure {
	double median, least, most; /* seconds */
	uint64_t bytes;		    /* bytes that must move at least; a copy's count twice */
};

/* Measures something `repeat` times, after two runs to warm up. slots are directories, for
 * PFS_PROBE_SCAN. -ENOTSUP: the back end has no bus, or no memory of the host's. */
PFS_MUST_CHECK int pfs_engine_probe(struct pfs_engine *engine, struct pfs_figure *figure,
				    enum pfs_probe what, const uint32_t *slots, size_t n,
				    unsigned repeat);

/* Measures the seconds of `repeat` radix sorts by CUB of n pairs of a key and a place, all on the
 * device: what is left of pfs_sort (gpu/relation.h) once its keys are there as numbers.
 * -EOPNOTSUPP: there is no device. */
PFS_MUST_CHECK int pfs_sort_probe(const struct pfs_run *run, double *seconds, unsigned repeat,
				  const uint64_t *keys, uint64_t n);

/* on: if slots are in pre-order and nothing under a directory has changed since they were loaded,
 * the directory's subtree is answered as a range of slots, without looking at codes. It is on at
 * first. Benchmarks and tests turn it off, so that codes are looked at. */
void pfs_engine_use_ranges(struct pfs_engine *engine, bool on);

/* Gets the code that the engine's columns have, in decimal; the caller frees it. -ENOENT: the slot
 * is not in use; -ENOMEM. (The program itself makes codes from the image: fs/image/path.h.) */
PFS_MUST_CHECK int pfs_engine_code(struct pfs_engine *engine, char **decimal, uint32_t slot);

/* Makes a figure of other measurements: seconds[n], in any order. */
void pfs_figure_of(struct pfs_figure *figure, double *seconds, size_t n);

#endif
