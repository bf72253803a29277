/* SPDX-License-Identifier: MIT */
/* fs/query/relational/placement.h - where the operators of a statement run: on the host, or on the
 * device.
 *
 * The tree's engine decides: `host` never has a device; `cuda` starts one with the first statement and
 * gives it all; `auto` gives it what is large, and starts it, beside the statements, once it would
 * have saved more time than its start and the copying of columns take.
 * Threads: any number of statements. */
#ifndef PFS_FS_QUERY_RELATIONAL_PLACEMENT_H
#define PFS_FS_QUERY_RELATIONAL_PLACEMENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/relation.h"

struct pfs_placement {
	enum pfs_engine_kind kind;
	struct pfs_operators *operators;
	atomic_uint_fast64_t host_ns; /* that large statements have taken on the host */
	atomic_bool asked;	      /* for the device */
	pthread_t starter;	      /* if is_starting */
	bool is_starting;	      /* protected by whoever opens and closes */
};

/* -ENOMEM.  A device that was asked for and is not there is said in one warning; the host has it all
 * then. */
PFS_MUST_CHECK int pfs_placement_open(struct pfs_placement *placement, enum pfs_engine_kind kind);
void pfs_placement_close(struct pfs_placement *placement); /* nothing open is allowed */

/* Where a statement over so many rows is to run. */
enum pfs_engine_kind pfs_placement_of(const struct pfs_placement *placement, uint64_t rows);
/* So long it took there. */
void pfs_placement_took(struct pfs_placement *placement, uint64_t rows, uint64_t ns);

#endif
