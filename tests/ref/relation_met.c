/* SPDX-License-Identifier: MIT */
#include "tests/ref/relation_met.h"

#define KINDS  (PFS_KIND_NUMBER + 1)
#define NO_KIND KINDS /* a constant, or a truth */

static uint64_t met[2][REF_OPERATORS][KINDS]; /* of the host, and of a device */

void ref_met(const struct ref_world *w, unsigned op, enum pfs_kind kind)
{
	met[w->run.on != PFS_ENGINE_HOST][op][kind]++;
}

static unsigned operands_of(enum pfs_op op)
{
	if (op == PFS_OP_COLUMN || op == PFS_OP_CONSTANT || op == PFS_OP_BITS)
		return 0;
	if (op == PFS_OP_CHOOSE || op == PFS_OP_BETWEEN)
		return 3;
	return (op >= PFS_OP_ADD && op <= PFS_OP_SHIFT_RIGHT) ||
			       (op >= PFS_OP_EQ && op <= PFS_OP_IS_NOT) || op == PFS_OP_AND ||
			       op == PFS_OP_OR
		       ? 2
		       : 1;
}

void ref_met_program(const struct ref_world *w, const struct ref_expression *e)
{
	unsigned stack[REF_STEPS_MAX] = {0}, n = 0;

	for (size_t i = 0; i < e->n; i++) {
		const struct pfs_step *step = &e->steps[i];

		for (unsigned k = operands_of(step->op); k > 0 && n > 0; k--) {
			unsigned kind = stack[--n];

			if (kind != NO_KIND)
				ref_met(w, step->op, (enum pfs_kind)kind);
		}
		stack[n++] = step->op == PFS_OP_COLUMN ? w->a.columns[step->ref.column].kind
			     : step->op >= PFS_OP_ADD && step->op <= PFS_OP_CHOOSE ? PFS_KIND_NUMBER
										   : NO_KIND;
	}
}

static bool go_together(unsigned op, enum pfs_kind kind)
{
	bool is_text = kind == PFS_KIND_CODE || kind == PFS_KIND_PLACE;

	if (op <= PFS_OP_BITS || (op >= PFS_OP_AND && op <= PFS_OP_NOT) ||
	    op == REF_AGGREGATE + PFS_COUNT_ALL)
		return false; /* of no operands that have a kind */
	if (op == PFS_OP_LENGTH || (op >= PFS_OP_LIKE && op <= PFS_OP_CONTAINS))
		return is_text;
	if (op <= PFS_OP_CHOOSE)
		return !is_text;
	if (op <= PFS_OP_NOT_NULL)
		return true;
	if (kind == PFS_KIND_NUMBER)
		return false; /* columns are of one class */
	return !is_text || op < REF_AGGREGATE + PFS_SUM || op > REF_AGGREGATE + PFS_AVG;
}

struct ref_least ref_least_met(enum pfs_engine_kind on)
{
	struct ref_least least = {.n = UINT64_MAX};

	for (unsigned op = 0; op < REF_OPERATORS; op++) {
		for (unsigned kind = 0; kind < KINDS; kind++) {
			uint64_t n = met[on != PFS_ENGINE_HOST][op][kind];

			if (go_together(op, (enum pfs_kind)kind) && n < least.n)
				least = (struct ref_least){n, op, (enum pfs_kind)kind};
		}
	}
	return least;
}
