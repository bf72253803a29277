/* SPDX-License-Identifier: MIT */
/* tests/ref/relation_met.h - how often the cases of tests/ref/relation.h gave each operator
 * operands of each kind. */
#ifndef PFS_TESTS_REF_RELATION_MET_H
#define PFS_TESTS_REF_RELATION_MET_H

#include "gpu/aggregate.h"
#include "tests/ref/relation.h"

/* Operators: those of programs (enum pfs_op), and these. */
enum { REF_SORT = PFS_OP_NOT + 1, REF_GROUP, REF_JOIN, REF_INDEX, REF_AGGREGATE };
#define REF_OPERATORS (REF_AGGREGATE + PFS_N_AGGREGATES)

/* Notes that the operator was asked, of the world's back end, of operands of that kind. */
void ref_met(const struct ref_world *w, unsigned op, enum pfs_kind kind);
/* The same of each step of a program over table a. */
void ref_met_program(const struct ref_world *w, const struct ref_expression *e);

/* Of the pairs of an operator and a kind that go together: how often that was asked which was asked
 * least, and which it is. */
struct ref_least {
	uint64_t n;
	unsigned op;
	enum pfs_kind kind;
};
struct ref_least ref_least_met(enum pfs_engine_kind on);

#endif
