/* SPDX-License-Identifier: MIT */
/* fs/query/relational/rates.h - how long each kind of a statement's work takes for a row, on the
 * host and on the device (docs/design/statements.md, "What a statement costs").
 *
 * The fixed rates are those of the machine that the operators were measured on. Commands and tests
 * use them. A daemon replaces them by rates that it has measured (kept_rates.h), none of which is
 * more than PFS_RATES_RANGE times as large or as small as the fixed one: a measurement that was
 * disturbed makes an estimate worse, but not absurd. */
#ifndef PFS_FS_QUERY_RELATIONAL_RATES_H
#define PFS_FS_QUERY_RELATIONAL_RATES_H

#include <stdbool.h>

/* What the host is measured by: an operator over a small table (measure.c). */
enum pfs_sample {
	PFS_SAMPLE_LOOK,
	PFS_SAMPLE_PATTERN,
	PFS_SAMPLE_FOLD,
	PFS_SAMPLE_GROUP_FEW,
	PFS_SAMPLE_GROUP_MANY,
	PFS_SAMPLE_SORT,
	PFS_SAMPLE_JOIN,
	PFS_N_SAMPLES
};

/* WORK(ID, name, host, device, by, sample): nanoseconds a row, of one of the host's cores and of
 * the whole device (primefs-bench operators). by: who does the work where a device runs the
 * statement; if that is the HOST, `device` is its time. What the host does takes as many times as
 * long as the fixed rate says as the sample does. */
#define PFS_WORKS(WORK)                                                                            \
	/* a condition or step of a program; a text by LIKE, GLOB */                               \
	WORK(LOOK, "look", 3.9, 0.0019, DEVICE, LOOK)                                              \
	WORK(PATTERN, "pattern", 47, 0.024, DEVICE, PATTERN)                                       \
	/* an aggregate of all rows; of each of some groups; of each of many */                    \
	WORK(FOLD, "fold", 2.1, 0.0065, DEVICE, FOLD)                                              \
	WORK(GROUP_FEW, "group_few", 8.9, 0.0104, DEVICE, GROUP_FEW)                               \
	WORK(GROUP_MANY, "group_many", 106, 0.030, DEVICE, GROUP_MANY)                             \
	/* all rows in an order; the first of it */                                                \
	WORK(SORT, "sort", 920, 0.076, DEVICE, SORT)                                               \
	WORK(TOP, "top", 6, 0.060, DEVICE, LOOK)                                                   \
	/* rows of both sides, by hash; the same by merging, of which sorting is 97 and 0.073 */   \
	WORK(JOIN, "join", 84, 0.020, DEVICE, JOIN)                                                \
	WORK(MERGE, "merge", 114, 0.086, DEVICE, SORT)                                             \
	WORK(WINDOW, "window", 120, 60, HOST, SORT)                                                \
	/* a value of the answer, which is written */                                              \
	WORK(GIVE, "give", 10, 10, HOST, FOLD)                                                     \
	/* a value by which nodes are found: a number, a parent, a name that an index has */       \
	WORK(FIND_NUMBER, "find_number", 150, 150, HOST, JOIN)                                     \
	WORK(FIND_CHILDREN, "find_children", 1000, 1000, HOST, JOIN)                               \
	WORK(FIND_NAME, "find_name", 5000, 5000, HOST, JOIN)                                       \
	/* a node whose parent is looked at */                                                     \
	WORK(LOOK_AT_PARENT, "look_at_parent", 2, 2, HOST, LOOK)

enum pfs_work {
#define PFS_WORK_ID(id, ...) PFS_WORK_##id,
	PFS_WORKS(PFS_WORK_ID)
#undef PFS_WORK_ID
		PFS_N_WORKS
};

extern const char *const pfs_work_names[PFS_N_WORKS];

#define PFS_RATES_RANGE 4.0

struct pfs_rates {
	struct pfs_rate {
		double host, device;
	} work[PFS_N_WORKS];
	double start_ns;  /* to start a device */
	double launch_ns; /* an operator on the device, be it of one row */
	double byte_ns;	  /* a byte of a column that is sent to the device */
	bool is_measured; /* the host's rates; else they are the fixed ones */
	bool is_seen;	  /* the device's three figures, likewise */
};

extern const struct pfs_rates pfs_rates_fixed;

/* Nanoseconds a row of each sample. What is not above 0 was not measured, and changes nothing. */
struct pfs_measured {
	double ns[PFS_N_SAMPLES];
};
/* Sets the host's rates to those of a host that takes so long for the samples. */
void pfs_rates_measured(struct pfs_rates *rates, const struct pfs_measured *measured);

/* What a device was seen to take, as in struct pfs_rates. */
struct pfs_seen {
	double start_ns, launch_ns, byte_ns;
};
void pfs_rates_seen(struct pfs_rates *rates, const struct pfs_seen *seen);

#endif
