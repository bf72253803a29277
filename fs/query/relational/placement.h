/* SPDX-License-Identifier: MIT */
/* fs/query/relational/placement.h - where the operators of a statement run: on the host, or on the
 * device.
 *
 * The tree's engine decides: `host` never has a device; `cuda` starts one with the first statement
 * and gives it all; `auto` gives it what costs less there, and starts it, beside the statements,
 * once it would have saved more time than its start and the copying of columns take. Threads: any
 * number of statements. */
#ifndef PFS_FS_QUERY_RELATIONAL_PLACEMENT_H
#define PFS_FS_QUERY_RELATIONAL_PLACEMENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/relation.h"

struct pfs_kept_rates; /* kept_rates.h */

/* Estimates how long a statement is going to take (cost.h). */
struct pfs_cost {
	uint64_t host_ns, device_ns;
	uint64_t start_ns; /* to start a device and send it the columns that the statement reads */
	/* The cost of the joins by hash table (contained in the costs above) and by merging both
	 * sorted columns; all 0: there is no join. */
	struct pfs_join_cost {
		uint64_t hash_ns, merge_ns;
	} host_join, device_join;
};

/* Rows of nodes by values that name them, or all rows: nanoseconds of the host's. */
struct pfs_few_nodes {
	const char *by; /* NULL: no values name them */
	uint64_t n_values, find_ns, all_ns;
	bool is_chosen, lacks_index;
};

struct pfs_placement {
	enum pfs_engine_kind kind;
	struct pfs_operators *operators;
	struct pfs_kept_rates *rates; /* where a started device's figures go; NULL: nowhere */
	unsigned processors; /* as it was opened: asking for them takes as long as a short
			      * statement */
	atomic_uint_fast64_t lost_ns; /* that the device would have saved */
	atomic_bool asked;	      /* for the device */
	pthread_t starter;	      /* if is_starting */
	bool is_starting;	      /* protected by whoever opens and closes */
};

/* Opens it on threads that stay the caller's. -ENOMEM.  A device that was asked for and is not
 * there is said in one warning; the host has it all then. The rates, which may be NULL, outlive the
 * placement. */
PFS_MUST_CHECK int pfs_placement_open(struct pfs_placement *placement, enum pfs_engine_kind kind,
				      struct pfs_kept_rates *rates, struct pfs_pool *pool);
void pfs_placement_close(struct pfs_placement *placement); /* nothing open is allowed */

/* Returns where such a statement is to run. */
enum pfs_engine_kind pfs_placement_of(const struct pfs_placement *placement,
				      const struct pfs_cost *cost);
/* So long it took on the host.  The device is started once statements have lost as much time as
 * that and sending it the columns take. */
void pfs_placement_took(struct pfs_placement *placement, const struct pfs_cost *cost, uint64_t ns);

#endif
