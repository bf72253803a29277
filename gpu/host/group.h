/* SPDX-License-Identifier: MIT */
/* gpu/host/group.h - what the two ways of grouping share: by index, where the keys are few small
 * numbers, and by hash tables over partitions of the tuples. */
#ifndef PFS_GPU_HOST_GROUP_H
#define PFS_GPU_HOST_GROUP_H

#include "gpu/host/evaluate.h"
#include "gpu/host/fold.h"
#include "gpu/host/key.h"

#define PFS_GROUP_STEP 65536u /* groups, or places, between two polls */

/* Polls the run once in PFS_GROUP_STEP calls. A loop over groups or places calls it with the number
 * of each. */
PFS_MUST_CHECK static inline int pfs_group_look(const struct pfs_run *run, size_t i)
{
	return i % PFS_GROUP_STEP ? 0 : pfs_run_poll(run);
}

/* Holds the first position of each group, how many tuples the group has, and its aggregates. */
struct pfs_group_table {
	size_t n, capacity;
	uint32_t *first; /* by group; undefined for a group without tuples */
	int64_t *rows;	 /* by group: its number of tuples */
	struct pfs_fold_table *folds;
};

struct pfs_grouping {
	struct pfs_host_operators *host;
	const struct pfs_run *run;
	const struct pfs_source *source;
	const struct pfs_positions
		*positions; /* of the tuples; NULL: they are read from `reader` */
	const struct pfs_source_reader *reader;
	struct pfs_evaluator *where; /* the condition on the reader's rows; NULL: there is none */
	uint64_t bound;		     /* how many tuples there are at most */
	bool is_near;		     /* by hash: tuples of a group lie near each other, */
	uint64_t expected;	     /* and make so many groups in stretches, as a sample has it */
	struct pfs_keys keys;
	const struct pfs_fold *folds;
	size_t n_folds;
};

PFS_MUST_CHECK int pfs_group_table_open(struct pfs_group_table *table,
					const struct pfs_grouping *grouping);
/* Makes room for `capacity` groups: new ones have no tuples, or, clear false, are undefined.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_group_table_reserve(struct pfs_group_table *table,
					   const struct pfs_grouping *grouping, size_t capacity,
					   bool clear);
/* Copies n groups of other from `from` on to `at` of table, which has room for them. Several
 * threads may do so for different groups. */
void pfs_group_table_copy(struct pfs_group_table *table, size_t at,
			  const struct pfs_grouping *grouping, const struct pfs_group_table *other,
			  size_t from, size_t n);
void pfs_group_table_close(struct pfs_group_table *table, const struct pfs_grouping *grouping);

/* Returns how many tuples, or rows that may be some, there are. */
uint64_t pfs_grouping_tuples(const struct pfs_grouping *grouping);
/* Calls fn(context, span) for the tuples of numbers from..to, as many at a time as a span has, as a
 * worker of its own: no span is empty. Returns the first error of fn, or what conditions say. */
PFS_MUST_CHECK int pfs_grouping_spans(const struct pfs_grouping *grouping, unsigned worker,
				      uint64_t from, uint64_t to,
				      int (*fn)(void *context, const struct pfs_span *span),
				      void *context);
/* Sets is_near if tuples of a group lie near each other in a sample of many, and `expected`.
 * -ENOMEM, and what conditions say. */
PFS_MUST_CHECK int pfs_grouping_sample(struct pfs_grouping *grouping);

/* Tuples are grouped by index if the keys' numbers are below PFS_GROUP_INDEXED; or if there are at
 * least PFS_GROUP_ROWS tuples for each possible number, and the arrays of all threads together have
 * at most PFS_GROUP_INDEXED_MAX elements. */
#define PFS_GROUP_INDEXED     (UINT64_C(1) << 16)
#define PFS_GROUP_ROWS	      4u
#define PFS_GROUP_INDEXED_MAX (UINT64_C(1) << 23)
/* Fills the open table: its groups are the keys' numbers, and some have no tuples. */
PFS_MUST_CHECK int pfs_group_by_index(struct pfs_group_table *out,
				      const struct pfs_grouping *grouping);
/* Fills the open table with the groups that have tuples. -ENOTUNIQ: tuples of a group do not lie
 * near each other, and there is no list of their positions. */
PFS_MUST_CHECK int pfs_group_by_hash(struct pfs_group_table *out,
				     const struct pfs_grouping *grouping);

#endif
