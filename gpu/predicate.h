/* SPDX-License-Identifier: MIT */
/* gpu/predicate.h - an expression over columns as a postfix program, evaluated in blocks of rows,
 * with SQLite's results.
 *
 * A step pushes a value or takes values from the stack and pushes one.  A value is NULL, an
 * integer, a real, or a text; a truth is true, false or NULL, two bits a row.  Where a number is
 * wanted a truth counts as 1, 0 or NULL; where a truth is wanted a number is true unless it is 0.
 * (A text is neither: the planner leaves such to SQLite.)
 *
 * As SQLite: integers and reals compare by their exact values; any number is less than any text;
 * texts compare by the step's collation.  Integer + - * and negation that overflow give a real,
 * division of integers truncates, and / or % by zero is NULL.  Affinity is not handled here: the
 * planner has converted constants, and does not pass columns whose affinities would convert values.
 */
#ifndef PFS_GPU_PREDICATE_H
#define PFS_GPU_PREDICATE_H

#include "gpu/rows.h"
#include "gpu/table.h"

/* A column: of table `table` of a batch (0 for a single table) or, if table is PFS_COMPUTED, the
 * batch's computed vector `column`. */
struct pfs_ref {
	uint16_t table, column;
};
#define PFS_COMPUTED UINT16_MAX

enum pfs_constant_type { PFS_IS_NULL, PFS_IS_INTEGER, PFS_IS_REAL, PFS_IS_TEXT };

struct pfs_constant {
	enum pfs_constant_type type;
	int64_t integer;
	double real;	  /* never NaN: SQLite has NULL for it */
	const char *text; /* the caller's; may hold NUL */
	size_t len;
};

enum pfs_op {
	/* push */
	PFS_OP_COLUMN,	 /* ref */
	PFS_OP_CONSTANT, /* constant */
	PFS_OP_BITS, /* bits, ref.table: a truth, never NULL: is that table's row in the set? */

	/* two numbers -> a number */
	PFS_OP_ADD,
	PFS_OP_SUBTRACT,
	PFS_OP_MULTIPLY,
	PFS_OP_DIVIDE,
	PFS_OP_REMAINDER,
	PFS_OP_BIT_AND,
	PFS_OP_BIT_OR,
	PFS_OP_SHIFT_LEFT,
	PFS_OP_SHIFT_RIGHT,
	/* one number -> a number */
	PFS_OP_NEGATE,
	PFS_OP_BIT_NOT,
	PFS_OP_TO_INTEGER, /* CAST of a number */
	PFS_OP_TO_REAL,
	/* a text -> an integer: LENGTH, in characters as SQLite counts them */
	PFS_OP_LENGTH,
	/* condition, value, value -> value: the first where the condition is true, else the second;
	 * numbers only */
	PFS_OP_CHOOSE,

	/* two values -> a truth; collation */
	PFS_OP_EQ,
	PFS_OP_NE,
	PFS_OP_LT,
	PFS_OP_LE,
	PFS_OP_GT,
	PFS_OP_GE,
	PFS_OP_IS, /* never NULL */
	PFS_OP_IS_NOT,
	/* value, low, high -> a truth: value >= low AND value <= high; collation */
	PFS_OP_BETWEEN,
	/* a value -> a truth: is it equal to one of list[0..n_list)? If not, and the value or one
	 * of the list is NULL, the result is NULL. An empty list gives false. Collation. */
	PFS_OP_IN,
	/* a value -> a truth, never NULL */
	PFS_OP_IS_NULL,
	PFS_OP_NOT_NULL,

	/* a text -> a truth: `constant` is the pattern, NUL-terminated for LIKE and GLOB. As in
	 * SQLite, LIKE and GLOB look at a text up to its first NUL; the others at all bytes. */
	PFS_OP_LIKE, /* folds ASCII; escape: a character, or 0 */
	PFS_OP_GLOB,
	PFS_OP_PREFIX,
	PFS_OP_SUFFIX,
	PFS_OP_CONTAINS,

	/* truths -> a truth */
	PFS_OP_AND,
	PFS_OP_OR,
	PFS_OP_NOT,
};

/* Returns true if the comparison (PFS_OP_EQ to PFS_OP_IS_NOT) is true for two values, of which the
 * first is less than (order below 0), equal to (0) or greater than (above 0) the second. */
static inline bool pfs_op_holds(enum pfs_op op, int order)
{
	switch (op) {
	case PFS_OP_EQ:
	case PFS_OP_IS:
		return order == 0;
	case PFS_OP_NE:
	case PFS_OP_IS_NOT:
		return order != 0;
	case PFS_OP_LT:
		return order < 0;
	case PFS_OP_LE:
		return order <= 0;
	case PFS_OP_GT:
		return order > 0;
	default:
		return order >= 0;
	}
}

/* Returns the comparison that holds for b and a where `op` (PFS_OP_EQ to PFS_OP_IS_NOT) holds for a
 * and b. */
static inline enum pfs_op pfs_op_mirrored(enum pfs_op op)
{
	switch (op) {
	case PFS_OP_LT:
		return PFS_OP_GT;
	case PFS_OP_LE:
		return PFS_OP_GE;
	case PFS_OP_GT:
		return PFS_OP_LT;
	case PFS_OP_GE:
		return PFS_OP_LE;
	default:
		return op;
	}
}

struct pfs_step {
	enum pfs_op op;
	enum pfs_collation collation;
	struct pfs_ref ref;
	uint32_t escape;
	struct pfs_constant constant;
	const struct pfs_constant *list; /* in any order, repeats allowed */
	size_t n_list;
	struct pfs_rows *bits; /* the set stays the same, but may move to where the program runs */
};

/* A program. The caller owns it and all that it points to. At its end one value is left. */
struct pfs_program {
	const struct pfs_step *steps;
	size_t n;
};

#define PFS_PROGRAM_STEPS 4096 /* a program with more steps is -E2BIG */
#define PFS_PROGRAM_DEPTH 32   /* a program with more values on the stack is -E2BIG */

/* Returns true for a LIKE or GLOB whose pattern consists of ASCII characters, with no wildcard but
 * % (GLOB: *) at its ends. It then is the test *op, PFS_OP_EQ, PREFIX, SUFFIX or CONTAINS, with the
 * *len bytes at *text, of the part of a text before its first NUL; for LIKE capitals equal small
 * letters. */
bool pfs_pattern_is_simple(const struct pfs_step *step, enum pfs_op *op, const char **text,
			   size_t *len);

struct pfs_tuples;

/* Checks a program, for a table or, if that is NULL, for tuples, and tells what it leaves: a truth
 * (*is_truth), or a value of *kind (CODE and PLACE: the program is one column; NUMBER: also if it
 * leaves integers that may overflow). -EINVAL: an operand is missing or left over, or a column does
 * not exist; -E2BIG; -EOPNOTSUPP: an operand is of a kind that the step does not take. */
PFS_MUST_CHECK int pfs_program_check(enum pfs_kind *kind, bool *is_truth,
				     const struct pfs_program *program,
				     const struct pfs_table *table,
				     const struct pfs_tuples *tuples);

#endif
