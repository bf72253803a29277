/* SPDX-License-Identifier: MIT */
/* gpu/aggregate.h - the aggregates of GROUP BY, a line each: all that the binder and the planner of
 * statements have to know about one.
 *
 * To add an aggregate, add its line. If it keeps for a group what another aggregate keeps (its
 * fold, PFS_FOLDS), that is all, unless its result is made in a new way (pfs_aggregate_result).
 * Else add a line to PFS_FOLDS, too, and the compiler names the switches of
 * gpu/host/fold*.c and gpu/host/group.c that lack it. A device leaves an aggregate that has no line
 * in the table of gpu/cuda/cuda_group.c to the host. Only the back ends ask which fold an aggregate
 * has: its lines say what it takes, what its result is and how groups merge. */
#ifndef PFS_GPU_AGGREGATE_H
#define PFS_GPU_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/predicate.h"

/* AGGREGATE(ID, name, fold, result, result of no values, merge): `name` is its name in statements;
 * COUNT_ALL and COUNT_DISTINCT are count(*) and count(DISTINCT x), which have the name of COUNT.
 * The members of struct pfs_aggregate_traits explain the rest. */
#define PFS_AGGREGATES(AGGREGATE)                                                                  \
	AGGREGATE(COUNT_ALL, NULL, TUPLES, INTEGER, ZERO, SUM)                                     \
	AGGREGATE(COUNT, "count", VALUES, INTEGER, ZERO, SUM)                                      \
	AGGREGATE(COUNT_DISTINCT, NULL, DIFFERENT, INTEGER, ZERO, NONE)                            \
	AGGREGATE(SUM, "sum", SUM, ARGUMENT, NOTHING, GROWING)                                     \
	AGGREGATE(TOTAL, "total", SUM, REAL, ZERO, GROWING)                                        \
	AGGREGATE(AVG, "avg", SUM, MEAN, NOTHING, MEAN)                                            \
	AGGREGATE(MIN, "min", LEAST, ARGUMENT, NOTHING, SAME)                                      \
	AGGREGATE(MAX, "max", GREATEST, ARGUMENT, NOTHING, SAME)                                   \
	AGGREGATE(GROUP_CONCAT, "group_concat", TEXTS, TEXT, NOTHING, NONE)

enum pfs_aggregate_op {
#define PFS_AGGREGATE_OP(id, ...) PFS_##id,
	PFS_AGGREGATES(PFS_AGGREGATE_OP)
#undef PFS_AGGREGATE_OP
	PFS_N_AGGREGATES
};

/* What is kept for a group while its tuples are added.
 * FOLD(ID, takes, is end, groups again, can overflow): TUPLES keeps how many tuples there are,
 * VALUES how many values are not NULL, DIFFERENT how many different values there are, SUM the sum
 * of the values and how many there are, LEAST and GREATEST the least or greatest value and the
 * first tuple that has it, TEXTS which tuples have values, in the source's order. The members of
 * struct pfs_fold_traits explain the rest. */
#define PFS_FOLDS(FOLD)                                                                            \
	FOLD(TUPLES, NOTHING, false, false, false)                                                 \
	FOLD(VALUES, NULLS, false, false, false)                                                   \
	FOLD(DIFFERENT, VALUES, false, true, false)                                                \
	FOLD(SUM, NUMBERS, false, false, true)                                                     \
	FOLD(LEAST, VALUES, true, false, false)                                                    \
	FOLD(GREATEST, VALUES, true, false, false)                                                 \
	FOLD(TEXTS, VALUES, false, false, false)

enum pfs_fold_kind {
#define PFS_FOLD_KIND(id, ...) PFS_FOLD_##id,
	PFS_FOLDS(PFS_FOLD_KIND)
#undef PFS_FOLD_KIND
};

/* Says what an aggregate is given of its argument. */
enum pfs_fold_takes {
	PFS_TAKES_NOTHING, /* it has no argument */
	PFS_TAKES_NULLS,   /* which values are NULL */
	PFS_TAKES_VALUES,  /* values of any kind */
	PFS_TAKES_NUMBERS, /* values, which are numbers */
};

#define PFS_REAL_EXACT (UINT64_C(1) << 53) /* reals add integers up to this exactly */

struct pfs_fold_traits {
	enum pfs_fold_takes takes;
	/* The result is the least or greatest value. So it has the argument's class and collation,
	 * does not depend on repetitions, and is the first or last value in an index. */
	bool is_end;
	/* The tuples are grouped a second time, by the keys and the argument. For that they are
	 * listed first, and the groups are put in the order of their first tuples. */
	bool groups_again;
	bool can_overflow; /* integers may leave 64 bits while they are added */
};

extern const struct pfs_fold_traits pfs_fold_traits[];

enum pfs_aggregate_result {
	PFS_RESULT_INTEGER,
	PFS_RESULT_REAL,
	PFS_RESULT_MEAN,     /* a real: the sum of the values, divided by their number */
	PFS_RESULT_ARGUMENT, /* a value of the argument's kind */
	PFS_RESULT_TEXT,     /* a text of its own, in the heap of struct pfs_texts */
};

/* Says how results for pieces of a source become the results for the whole source. */
enum pfs_merge {
	PFS_MERGE_NONE, /* pieces cannot be merged */
	PFS_MERGE_SAME, /* the pieces' results are aggregated in the same way */
	/* As SAME, but only for integers none of which is negative: otherwise a partial sum could
	 * overflow, and sums of reals would round differently. */
	PFS_MERGE_GROWING,
	PFS_MERGE_SUM,	/* the pieces' results are added */
	PFS_MERGE_MEAN, /* the pieces' totals, divided by their counts; else as GROWING */
};

struct pfs_aggregate_traits {
	const char *name; /* NULL: statements cannot name it */
	enum pfs_fold_kind fold;
	enum pfs_aggregate_result result;
	bool is_zero_of_none; /* the result for a group without values is 0; else NULL */
	enum pfs_merge merge;
};

extern const struct pfs_aggregate_traits pfs_aggregate_traits[PFS_N_AGGREGATES];

/* Returns the traits of the aggregate's fold. */
static inline const struct pfs_fold_traits *pfs_fold_of(enum pfs_aggregate_op op)
{
	return &pfs_fold_traits[pfs_aggregate_traits[op].fold];
}

/* Returns the kind of the aggregate's results for an argument of that kind. */
static inline enum pfs_kind pfs_aggregate_kind(const struct pfs_aggregate_traits *traits,
					       enum pfs_kind argument)
{
	switch (traits->result) {
	case PFS_RESULT_INTEGER:
		return PFS_KIND_INTEGER;
	case PFS_RESULT_REAL:
	case PFS_RESULT_MEAN:
		return PFS_KIND_REAL;
	case PFS_RESULT_TEXT:
		return PFS_KIND_PLACE;
	case PFS_RESULT_ARGUMENT:
		break;
	}
	return argument;
}

/* Where GROUP_CONCAT puts its results. The caller sets `limit`, leaves the rest zero, and calls
 * pfs_texts_free when nothing refers to the heap any more. */
struct pfs_texts {
	uint64_t limit; /* bytes that no text has, as SQLite's limit has a NUL in it; else
			   pfs_group: -EOPNOTSUPP */
	uint8_t *bytes;
	uint64_t size;
	struct pfs_heap heap;
};

struct pfs_run;
void pfs_texts_free(const struct pfs_run *run, struct pfs_texts *texts);

/* An aggregate that pfs_group (gpu/relation.h) is asked for. */
struct pfs_aggregate {
	enum pfs_aggregate_op op;
	enum pfs_collation collation; /* MIN, MAX, COUNT_DISTINCT of texts */
	struct pfs_ref ref; /* COUNT_ALL has none */
	/* In place of ref, for what takes numbers, or which are NULL: it is computed of each tuple
	 * while that is added, and never written down. The program is of numbers; a device leaves
	 * it to the host. NULL: there is none. */
	const struct pfs_program *program;
	/* GROUP_CONCAT, of texts or integers: what stands between two values, which is a text, and
	 * where the results are put. */
	struct pfs_constant separator;
	struct pfs_texts *texts;
};

/* Returns true, and sets *op, if the name, of len bytes and in any case, is an aggregate's. */
bool pfs_aggregate_by_name(enum pfs_aggregate_op *op, const char *name, size_t len);

#endif
