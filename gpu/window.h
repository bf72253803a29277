/* SPDX-License-Identifier: MIT */
/* gpu/window.h - functions of windows: numbers that each tuple has by its place among those of its
 * partition, in an order.
 *
 * Not handled here: frames other than SQL's own, which ends with the last of a tuple's peers; reals and texts as
 * arguments. */
#ifndef PFS_GPU_WINDOW_H
#define PFS_GPU_WINDOW_H

#include "gpu/relation.h"

/* WINDOW(ID, name, has an argument, tells peers apart, that are equal in the order) */
#define PFS_WINDOWS(WINDOW)                                                                        \
	WINDOW(ROW_NUMBER, "row_number", false, true)                                              \
	WINDOW(RANK, "rank", false, false)                                                         \
	WINDOW(DENSE_RANK, "dense_rank", false, false)                                             \
	WINDOW(NTILE, "ntile", false, true)   /* `distance` parts, as equal as can be */           \
	WINDOW(LAG, "lag", true, true)	      /* the value `distance` tuples before, or NULL */    \
	WINDOW(LEAD, "lead", true, true)      /* and behind */                                     \
	/* of the partition up to the last peer; without an order, of all of it */                 \
	WINDOW(WINDOW_TUPLES, NULL, false, false) /* count(*) */                                   \
	WINDOW(WINDOW_COUNT, "count", true, false)                                                 \
	WINDOW(WINDOW_SUM, "sum", true, false)                                                     \
	WINDOW(WINDOW_AVG, "avg", true, false)                                                     \
	WINDOW(WINDOW_MIN, "min", true, false)                                                     \
	WINDOW(WINDOW_MAX, "max", true, false)

enum pfs_window_op {
#define PFS_WINDOW_OP(id, ...) PFS_##id,
	PFS_WINDOWS(PFS_WINDOW_OP)
#undef PFS_WINDOW_OP
	PFS_N_WINDOWS
};

struct pfs_window_traits {
	const char *name; /* NULL: statements cannot name it */
	bool has_argument;
	bool tells_peers_apart; /* so that the order of peers, which is the source's, matters */
};

extern const struct pfs_window_traits pfs_window_traits[PFS_N_WINDOWS];

struct pfs_window_function {
	enum pfs_window_op op;
	struct pfs_ref ref; /* if it has an argument */
	int64_t distance;   /* NTILE, LAG, LEAD; at least 1, of LAG and LEAD 0 */
};

struct pfs_window {
	const struct pfs_sort_key *keys; /* those of the partition, then those of the order */
	size_t n_keys, n_partition;
	const struct pfs_window_function *functions;
	size_t n_functions;
};

/* Makes a batch of the source's tuples in the keys' order, those that are equal in the source's, with a vector for each
 * function added.  Threads and errors as all operators' (gpu/relation.h).  -EOPNOTSUPP also: a sum leaves 64 bits, an
 * average is of numbers that reals do not add exactly. */
PFS_MUST_CHECK int pfs_window(const struct pfs_run *run, struct pfs_tuples **out, const struct pfs_source *source,
			      const struct pfs_window *window);

#endif
