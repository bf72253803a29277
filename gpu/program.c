/* SPDX-License-Identifier: MIT */
/* Checks programs: what each step takes from the stack, and what it leaves there. */
#include "gpu/predicate.h"

#include <string.h>

#include "gpu/relation.h"

/* The types of values on the stack, as bits. */
enum type {
	TRUTH = 1,
	INTEGER = 2,
	REAL = 4,
	NUMBER = 8,
	CODE = 16,
	PLACE = 32,
	TEXT = 64,     /* a constant */
	NOTHING = 128, /* NULL */
};

#define NUMBERS ((unsigned)(TRUTH | INTEGER | REAL | NUMBER | NOTHING))
#define TEXTS	((unsigned)(CODE | PLACE | TEXT | NOTHING))
#define VALUES	(NUMBERS | TEXTS)

struct stack {
	enum type type[PFS_PROGRAM_DEPTH];
	size_t n;
	const struct pfs_table *table;
	const struct pfs_tuples *tuples;
};

static enum type type_of_kind(enum pfs_kind kind)
{
	switch (kind) {
	case PFS_KIND_INTEGER:
		return INTEGER;
	case PFS_KIND_REAL:
		return REAL;
	case PFS_KIND_CODE:
		return CODE;
	case PFS_KIND_PLACE:
		return PLACE;
	case PFS_KIND_NUMBER:
		return NUMBER;
	}
	return NOTHING;
}

static const struct pfs_table *table_of(const struct stack *s, uint16_t i)
{
	if (s->table)
		return i == 0 ? s->table : NULL;
	return s->tuples && i < s->tuples->n_tables ? s->tuples->tables[i].table : NULL;
}

static int column_type(const struct stack *s, enum type *type, struct pfs_ref ref)
{
	const struct pfs_table *table;

	if (ref.table == PFS_COMPUTED) {
		if (!s->tuples || ref.column >= s->tuples->n_computed)
			return -EINVAL;
		*type = type_of_kind(s->tuples->computed[ref.column].kind);
		return 0;
	}
	table = table_of(s, ref.table);
	if (!table || ref.column >= table->n_columns)
		return -EINVAL;
	*type = type_of_kind(table->columns[ref.column].kind);
	return 0;
}

static enum type constant_type(const struct pfs_constant *constant)
{
	switch (constant->type) {
	case PFS_IS_NULL:
		return NOTHING;
	case PFS_IS_INTEGER:
		return INTEGER;
	case PFS_IS_REAL:
		return REAL;
	case PFS_IS_TEXT:
		return TEXT;
	}
	return NOTHING;
}

static int push(struct stack *s, enum type type)
{
	if (s->n == PFS_PROGRAM_DEPTH)
		return -E2BIG;
	s->type[s->n++] = type;
	return 0;
}

/* Takes n values, each of one of the types, and leaves one. */
static int take(struct stack *s, size_t n, unsigned types, enum type result)
{
	if (s->n < n)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (!(s->type[--s->n] & types))
			return -EOPNOTSUPP;
	}
	return push(s, result);
}

/* Two numbers are taken; if neither is real, the result has the type `exact`. */
static int arithmetic(struct stack *s, enum type exact)
{
	unsigned both;

	if (s->n < 2)
		return -EINVAL;
	both = s->type[s->n - 1] | s->type[s->n - 2];
	if (both & REAL)
		return take(s, 2, NUMBERS, REAL);
	return take(s, 2, NUMBERS, both & NUMBER ? NUMBER : exact);
}

static int negate(struct stack *s)
{
	return s->n && s->type[s->n - 1] == REAL ? take(s, 1, NUMBERS, REAL)
						 : take(s, 1, NUMBERS, NUMBER);
}

static int choose(struct stack *s)
{
	unsigned both;

	if (s->n < 3)
		return -EINVAL;
	both = (s->type[s->n - 1] | s->type[s->n - 2]) & ~(unsigned)NOTHING;
	if (both & ~(unsigned)(TRUTH | INTEGER))
		return take(s, 3, NUMBERS, both == REAL ? REAL : NUMBER);
	return take(s, 3, NUMBERS, INTEGER);
}

static int push_leaf(struct stack *s, const struct pfs_step *step)
{
	enum type type;

	if (step->op == PFS_OP_CONSTANT)
		return push(s, constant_type(&step->constant));
	if (step->op == PFS_OP_BITS)
		return step->bits && table_of(s, step->ref.table) ? push(s, TRUTH) : -EINVAL;
	PFS_TRY(column_type(s, &type, step->ref));
	return push(s, type);
}

static int match(struct stack *s, const struct pfs_step *step)
{
	return step->constant.type == PFS_IS_TEXT ? take(s, 1, TEXTS, TRUTH) : -EINVAL;
}

static int apply(struct stack *s, const struct pfs_step *step)
{
	switch (step->op) {
	case PFS_OP_COLUMN:
	case PFS_OP_CONSTANT:
	case PFS_OP_BITS:
		return push_leaf(s, step);
	case PFS_OP_ADD:
	case PFS_OP_SUBTRACT:
	case PFS_OP_MULTIPLY:
	case PFS_OP_DIVIDE:
		return arithmetic(s, NUMBER);
	case PFS_OP_REMAINDER:
		return arithmetic(s, INTEGER);
	case PFS_OP_BIT_AND:
	case PFS_OP_BIT_OR:
	case PFS_OP_SHIFT_LEFT:
	case PFS_OP_SHIFT_RIGHT:
		return take(s, 2, NUMBERS, INTEGER);
	case PFS_OP_NEGATE:
		return negate(s);
	case PFS_OP_BIT_NOT:
	case PFS_OP_TO_INTEGER:
		return take(s, 1, NUMBERS, INTEGER);
	case PFS_OP_TO_REAL:
		return take(s, 1, NUMBERS, REAL);
	case PFS_OP_LENGTH:
		return take(s, 1, TEXTS, INTEGER);
	case PFS_OP_CHOOSE:
		return choose(s);
	case PFS_OP_EQ:
	case PFS_OP_NE:
	case PFS_OP_LT:
	case PFS_OP_LE:
	case PFS_OP_GT:
	case PFS_OP_GE:
	case PFS_OP_IS:
	case PFS_OP_IS_NOT:
		return take(s, 2, VALUES, TRUTH);
	case PFS_OP_BETWEEN:
		return take(s, 3, VALUES, TRUTH);
	case PFS_OP_IN:
	case PFS_OP_IS_NULL:
	case PFS_OP_NOT_NULL:
		return take(s, 1, VALUES, TRUTH);
	case PFS_OP_LIKE:
	case PFS_OP_GLOB:
	case PFS_OP_PREFIX:
	case PFS_OP_SUFFIX:
	case PFS_OP_CONTAINS:
		return match(s, step);
	case PFS_OP_AND:
	case PFS_OP_OR:
		return take(s, 2, NUMBERS, TRUTH);
	case PFS_OP_NOT:
		return take(s, 1, NUMBERS, TRUTH);
	}
	return -EINVAL;
}

static int result_of(enum pfs_kind *kind, enum type type)
{
	switch (type) {
	case TRUTH:
	case INTEGER:
	case NOTHING:
		*kind = PFS_KIND_INTEGER;
		return 0;
	case REAL:
		*kind = PFS_KIND_REAL;
		return 0;
	case NUMBER:
		*kind = PFS_KIND_NUMBER;
		return 0;
	case CODE:
		*kind = PFS_KIND_CODE;
		return 0;
	case PLACE:
		*kind = PFS_KIND_PLACE;
		return 0;
	case TEXT:
		return -EOPNOTSUPP;
	}
	return -EINVAL;
}

int pfs_program_check(enum pfs_kind *kind, bool *is_truth, const struct pfs_program *program,
		      const struct pfs_table *table, const struct pfs_tuples *tuples)
{
	struct stack s = {.table = table, .tuples = tuples};

	if (program->n > PFS_PROGRAM_STEPS)
		return -E2BIG;
	for (size_t i = 0; i < program->n; i++)
		PFS_TRY(apply(&s, &program->steps[i]));
	if (s.n != 1)
		return -EINVAL;
	*is_truth = s.type[0] == TRUTH;
	return result_of(kind, s.type[0]);
}

/* ---- patterns ---- */

bool pfs_pattern_is_simple(const struct pfs_step *step, enum pfs_op *op, const char **text,
			   size_t *len)
{
	const char any = step->op == PFS_OP_LIKE ? '%' : '*';
	const char *special = step->op == PFS_OP_LIKE ? "%_" : "*?[";
	const char *from = step->constant.text, *to;
	bool is_open_before, is_open_behind;

	if ((step->op != PFS_OP_LIKE && step->op != PFS_OP_GLOB) || step->escape)
		return false;
	to = from + strnlen(from, step->constant.len);
	is_open_before = from < to && *from == any;
	from += is_open_before;
	is_open_behind = from < to && to[-1] == any;
	to -= is_open_behind;
	for (const char *at = from; at < to; at++)
		if ((unsigned char)*at >= 0x80 || strchr(special, *at))
			return false;
	*text = from;
	*len = (size_t)(to - from);
	if (is_open_before)
		*op = is_open_behind || from == to ? PFS_OP_CONTAINS : PFS_OP_SUFFIX;
	else
		*op = is_open_behind ? PFS_OP_PREFIX : PFS_OP_EQ;
	return true;
}
