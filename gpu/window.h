/* SPDX-License-Identifier: MIT */
/* gpu/window.h - window functions: values that a tuple has by its place in its partition, whose
 * tuples are in an order. Tuples that are equal in that order are *peers*.
 *
 * Not handled here: frames other than SQL's default, which ends with the last of a tuple's peers;
 * arguments that are reals or texts. */
#ifndef PFS_GPU_WINDOW_H
#define PFS_GPU_WINDOW_H

#include "gpu/relation.h"

/* WINDOW(ID, name, has an argument, tells peers apart). The last six are aggregates of the
 * partition from its begin to the last peer of the tuple; without an order, of the whole
 * partition. */
#define PFS_WINDOWS(WINDOW)                                                                        \
	WINDOW(ROW_NUMBER, "row_number", false, true)                                              \
	WINDOW(RANK, "rank", false, false)                                                         \
	WINDOW(DENSE_RANK, "dense_rank", false, false)                                             \
	WINDOW(NTILE, "ntile", false, true)   /* `distance` parts, as equal as can be */           \
	WINDOW(LAG, "lag", true, true)	      /* the value `distance` tuples before, or NULL */    \
	WINDOW(LEAD, "lead", true, true)      /* the value `distance` tuples behind, or NULL */    \
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
	bool tells_peers_apart; /* its value depends on the order of peers, which is the source's */
};

extern const struct pfs_window_traits pfs_window_traits[PFS_N_WINDOWS];

struct pfs_window_function {
	enum pfs_window_op op;
	struct pfs_ref ref; /* the argument, if it has one */
	int64_t distance;   /* NTILE: parts, at least 1; LAG, LEAD: tuples, at least 0 */
};

struct pfs_window {
	const struct pfs_sort_key *keys; /* n_partition keys of the partition, then the order's */
	size_t n_keys, n_partition;
	const struct pfs_window_function *functions;
	size_t n_functions;
};

/* Makes a batch of the source's tuples, sorted as by pfs_sort, and adds a vector for each function.
 * Threads and errors are those of all operators (gpu/relation.h). -EOPNOTSUPP also if a sum leaves
 * 64 bits, or if an average is of numbers that reals do not add exactly. */
PFS_MUST_CHECK int pfs_window(const struct pfs_run *run, struct pfs_tuples **out,
			      const struct pfs_source *source, const struct pfs_window *window);

#endif
