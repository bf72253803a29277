/* SPDX-License-Identifier: MIT */
/* gpu/host/group.h - what the two ways of grouping share: by index, where the keys are few small
 * numbers, and by hash tables over partitions of the tuples. */
#ifndef PFS_GPU_HOST_GROUP_H
#define PFS_GPU_HOST_GROUP_H

#include "gpu/host/evaluate.h"
#include "gpu/host/fold.h"
#include "gpu/host/key.h"

#define PFS_GROUP_STEP 65536u /* groups, or places, between two polls */

/* To be called for each of what is looked at one by one. */
PFS_MUST_CHECK static inline int pfs_group_look(const struct pfs_run *run, size_t i)
{
	return i % PFS_GROUP_STEP ? 0 : pfs_run_poll(run);
}

/* Groups: each one's first position, how many tuples it has, and its aggregates. */
struct pfs_group_table {
	size_t n, capacity;
	uint32_t *first; /* of a group that has rows */
	int64_t *rows;
	struct pfs_fold_table *folds;
};

struct pfs_grouping {
	struct pfs_host_operators *host;
	const struct pfs_run *run;
	const struct pfs_source *source;
	const struct pfs_positions *positions; /* NULL: */
	const struct pfs_source_reader *reader;       /* rows of this are looked at as they are met */
	struct pfs_evaluator *where;
	uint64_t bound; /* there are no more tuples */
	bool is_near;	/* by hash: tuples of a group lie near each other */
	struct pfs_keys keys;
	const struct pfs_fold *folds;
	size_t n_folds;
};

PFS_MUST_CHECK int pfs_group_table_open(struct pfs_group_table *table,
					const struct pfs_grouping *grouping);
/* Makes room for `capacity` groups, none of which has a tuple. -ENOMEM. */
PFS_MUST_CHECK int pfs_group_table_reserve(struct pfs_group_table *table,
					   const struct pfs_grouping *grouping, size_t capacity);
void pfs_group_table_close(struct pfs_group_table *table, const struct pfs_grouping *grouping);

/* Returns how many tuples, or rows that may be some, there are. */
uint64_t pfs_grouping_tuples(const struct pfs_grouping *grouping);
/* Calls fn(context, span) for the tuples of numbers from..to, as many at a time as a span has, as a
 * worker of its own: no span is empty. Returns the first error of fn, or what conditions say. */
PFS_MUST_CHECK int pfs_grouping_spans(const struct pfs_grouping *grouping, unsigned worker,
				      uint64_t from, uint64_t to,
				      int (*fn)(void *context, const struct pfs_span *span),
				      void *context);
/* Sets *near if tuples of a group lie near each other in a sample of many. -ENOMEM, and what conditions say. */
PFS_MUST_CHECK int pfs_groups_are_near(bool *near, const struct pfs_grouping *grouping);

/* Both fill the open table. By index: groups are the keys' numbers, and some have no tuples. */
#define PFS_GROUP_INDEXED     (UINT64_C(1) << 16) /* numbers that are always so few, */
#define PFS_GROUP_ROWS	      4u		  /* or where so many tuples share one, */
#define PFS_GROUP_INDEXED_MAX (UINT64_C(1) << 23) /* up to so many in all threads */
PFS_MUST_CHECK int pfs_group_by_index(struct pfs_group_table *out,
				      const struct pfs_grouping *grouping);
/* -ENOTUNIQ: tuples of a group do not lie near each other, and no positions of them are there. */
PFS_MUST_CHECK int pfs_group_by_hash(struct pfs_group_table *out,
				     const struct pfs_grouping *grouping);

#endif
