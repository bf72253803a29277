/* SPDX-License-Identifier: MIT */
/* gpu/host/fold.h - aggregates: what is kept for each group, how a tuple is added, how two threads'
 * halves of a group become one, and what comes out. */
#ifndef PFS_GPU_HOST_FOLD_H
#define PFS_GPU_HOST_FOLD_H

#include "gpu/aggregate.h"
#include "gpu/host/operators.h"
#include "gpu/host/positions.h"
#include "gpu/host/span.h"

struct pfs_evaluator; /* gpu/host/evaluate.h */
struct pfs_slot;

/* An aggregate that keeps something of each value: neither COUNT_ALL nor COUNT_DISTINCT. */
struct pfs_fold {
	const struct pfs_aggregate_traits *traits;
	enum pfs_collation collation;
	struct pfs_cell_reader reader;	 /* of a program, only its kind */
	struct pfs_evaluator *evaluator; /* of the aggregate's program; NULL: it has none */
	size_t back; /* the fold so many before it has the same one, and computes; 0: it does */
	struct pfs_codes_map rank; /* MIN and MAX of codes */
	bool exact;		   /* sums of integers in 128 bits, positive and negative apart */
	bool is_full; /* a sum of integers: each group has a value, and they are not counted */
	/* GROUP_CONCAT (concat.h): */
	uint32_t *next; /* by position of a tuple: that of the next one of its group, if there is
			   one */
	uint64_t n_next;
	struct pfs_constant separator;
	struct pfs_texts *texts;
};

__extension__ typedef unsigned __int128 pfs_u128;

/* Holds what is kept for one aggregate, by group; what the aggregate does not need is NULL. */
struct pfs_fold_table {
	size_t capacity;
	int64_t *count;	  /* values that are not NULL; none if the fold is full */
	int64_t *integer; /* sum of the integers, modulo 2^64; MIN, MAX: what is compared */
	double *real;	  /* sum of the reals, not of INTEGER; MIN, MAX: what is compared */
	uint8_t *is_real; /* SUM, not of INTEGER: there was a real; MIN, MAX: it is one */
	uint32_t *at;	/* MIN, MAX: where it is, the first place; GROUP_CONCAT: the first tuple */
	uint32_t *last; /* GROUP_CONCAT: the last tuple */
	pfs_u128 *positive, *negative; /* exact: sums of the integers' absolute values */
	/* The sum of all groups' integers, negative ones inverted: what no group's sum exceeds by
	 * more than its number of values. */
	pfs_u128 size;
	/* What the program is computed in: n_slots, as one thread at a time fills a table. */
	struct pfs_slot *slots;
	size_t n_slots;
};

/* Opens the fold, which stands behind n_before open ones: a program that one of them has is
 * computed once. */
PFS_MUST_CHECK int pfs_fold_open(struct pfs_fold *fold, size_t n_before, const struct pfs_run *run,
				 const struct pfs_source *source,
				 const struct pfs_aggregate *aggregate);
/* Says that each group has tuples. */
void pfs_fold_has_tuples(struct pfs_fold *fold);
void pfs_fold_close(const struct pfs_run *run, struct pfs_fold *fold);

/* Makes room for groups 0..capacity; new ones are empty, or, clear false, undefined. -ENOMEM. */
PFS_MUST_CHECK int pfs_fold_reserve(const struct pfs_fold *fold, const struct pfs_run *run,
				    struct pfs_fold_table *table, size_t capacity, bool clear);
/* Makes groups from..from + n empty. */
void pfs_fold_clear(const struct pfs_fold *fold, struct pfs_fold_table *table, size_t from,
		    size_t n);
/* Copies n groups of other from `from` on, as they are, to `at` of table; `size` stays. Several
 * threads may do so for different groups. */
void pfs_fold_copy(const struct pfs_fold *fold, struct pfs_fold_table *table, size_t at,
		   struct pfs_fold_table *other, size_t from, size_t n);
void pfs_fold_table_free(const struct pfs_run *run, struct pfs_fold_table *table);

/* Adds the span's tuples: tuple i belongs to group[i]; group NULL: all belong to group 0. Folds that
 * stand behind each other have tables that do, and are given a span in their order. */
void pfs_fold_add(const struct pfs_fold *fold, struct pfs_fold_table *table,
		  const struct pfs_span *span, const uint32_t *group);

/* Adds to group `into` of table what group `from` of other has; `size` stays. Several threads may
 * do so for different groups. */
void pfs_fold_merge(const struct pfs_fold *fold, struct pfs_fold_table *table, size_t into,
		    const struct pfs_fold_table *other, size_t from);

/* Returns true if the result depends on an exact sum, and the fold is not `exact` yet: the sum of a
 * group of n integers may leave 64 bits, in some order of them; or integers of both signs become a
 * real, and reals would round on the way. The table has the groups order[0..n_groups), or,
 * order NULL, 0..n_groups. */
bool pfs_fold_wants_exact(const struct pfs_fold *fold, const struct pfs_fold_table *table,
			  uint64_t n, const uint32_t *order, size_t n_groups);

/* Makes the results for groups order[0..n), or, order NULL, 0..n, for which the table may lose an
 * array. -EOVERFLOW, -EOPNOTSUPP as of pfs_group. */
PFS_MUST_CHECK int pfs_fold_finish(const struct pfs_fold *fold, struct pfs_host_operators *host,
				   const struct pfs_run *run, struct pfs_vector *out,
				   struct pfs_fold_table *table, const uint32_t *order, uint64_t n);

#endif
