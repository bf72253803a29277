/* SPDX-License-Identifier: MIT */
/* Comparisons: which value becomes the other's class, and by which collation they are compared. */
#include "fs/query/relational/bind.h"
#include "fs/query/relational/textchain.h"

#include <string.h>

#include "base/number.h"

#define PATTERN_MAX 10000 /* what is longer is an error of SQLite's */

/* A constant as it is where it is compared with a value of that affinity. */
static bool convert(struct pfs_binder *binder, struct pfs_constant *constant, enum pfs_class *class,
		    enum pfs_affinity affinity)
{
	char digits[PFS_NUMBER_SIZE];
	size_t len;

	if (constant->type == PFS_IS_TEXT && affinity == PFS_NUMERIC) {
		int64_t integer;

		if (!pfs_is_integer(&integer, constant->text, constant->len))
			return pfs_bind_refuse(binder, "a number compared with a text");
		*constant = (struct pfs_constant){.type = PFS_IS_INTEGER, .integer = integer};
		*class = PFS_CLASS_NUMBER;
	} else if (constant->type == PFS_IS_INTEGER && affinity == PFS_TEXTUAL) {
		len = pfs_print_integer(digits, constant->integer);
		constant->text = pfs_arena_text(binder->arena, digits, len);
		constant->len = len;
		constant->type = PFS_IS_TEXT;
		*class = PFS_CLASS_TEXT;
		if (!constant->text)
			binder->error = -ENOMEM;
		return constant->text != NULL;
	}
	return true;
}

/* The affinity that the other side is given, if it has none of its own. */
static bool apply_affinity(struct pfs_binder *binder, struct pfs_term **bound,
			   const struct pfs_term *other)
{
	struct pfs_term *copy;

	if ((*bound)->kind != PFS_BOUND_CONSTANT || (*bound)->affinity != PFS_NO_AFFINITY ||
	    other->affinity == PFS_NO_AFFINITY)
		return true;
	copy = pfs_bind_get(binder, sizeof(*copy));
	if (!copy)
		return false;
	*copy = **bound;
	*bound = copy;
	return convert(binder, &copy->constant, &copy->class, other->affinity);
}

/* Returns true if values of both can be compared without one becoming the other's class, as a text
 * may beside those of a column that is declared NUMERIC. */
static bool is_comparable(const struct pfs_term *a, const struct pfs_term *b)
{
	if (a->class == PFS_CLASS_NONE || b->class == PFS_CLASS_NONE)
		return true;
	if (a->class != PFS_CLASS_TEXT || b->class != PFS_CLASS_TEXT)
		return a->class != PFS_CLASS_TEXT && b->class != PFS_CLASS_TEXT;
	return (a->affinity == PFS_NUMERIC) == (b->affinity == PFS_NUMERIC);
}

static enum pfs_collation collation_of(const struct pfs_term *a, const struct pfs_term *b)
{
	if (a->is_collated)
		return a->collation;
	if (b && b->is_collated)
		return b->collation;
	if (a->has_collation)
		return a->collation;
	return b && b->has_collation ? b->collation : PFS_BINARY;
}

/* Returns 1 if instr(), compared so with the number, says that the text is there; -1: that it is
 * not; 0: neither. */
static int says_of_place(enum pfs_op op, const struct pfs_constant *number)
{
	if (number->type != PFS_IS_INTEGER || (number->integer != 0 && number->integer != 1))
		return 0;
	if (number->integer == 0)
		return op == PFS_OP_GT || op == PFS_OP_NE   ? 1
		       : op == PFS_OP_EQ || op == PFS_OP_LE ? -1
							    : 0;
	return op == PFS_OP_GE ? 1 : op == PFS_OP_LT ? -1 : 0;
}

static struct pfs_term *contains(struct pfs_binder *binder, struct pfs_term *text,
				 const struct pfs_constant *part, bool negated)
{
	struct pfs_term *bound =
		pfs_bound_step(binder, PFS_OP_CONTAINS, PFS_CLASS_TRUTH, text, NULL);

	if (!bound)
		return NULL;
	bound->constant = *part;
	return pfs_bind_not(binder, bound, negated);
}

static bool is_made_by(const struct pfs_term *term, enum pfs_text_op op)
{
	return term->kind == PFS_BOUND_MADE && term->n_steps == 1 && term->steps[0].op == op;
}

/* Where in a column's text something is need not be known to know whether it is there; NULL: more
 * is asked. */
static struct pfs_term *bind_place(struct pfs_binder *binder, enum pfs_op op,
				   const struct pfs_term *place, const struct pfs_term *number)
{
	int says = 0;

	if (is_made_by(place, PFS_TEXT_PLACE) && number->kind == PFS_BOUND_CONSTANT)
		says = says_of_place(op, &number->constant);
	return says ? contains(binder, place->args[0], &place->steps[0].a, says < 0) : NULL;
}

/* What replace() makes of a text equals that text only if it does not contain what is replaced: the
 * first place at which it is would differ, or the length. NULL: something else is asked. */
static struct pfs_term *bind_replaced(struct pfs_binder *binder, enum pfs_op op,
				      const struct pfs_term *made, const struct pfs_term *text)
{
	const struct pfs_constant *part, *by;

	if (!is_made_by(made, PFS_TEXT_REPLACE) || (op != PFS_OP_EQ && op != PFS_OP_NE) ||
	    !pfs_bound_equals(made->args[0], text) || collation_of(made, text) != PFS_BINARY)
		return NULL;
	part = &made->steps[0].a;
	by = &made->steps[0].b;
	if (part->len == by->len && memcmp(part->text, by->text, by->len) == 0)
		return NULL;
	return contains(binder, made->args[0], part, op == PFS_OP_EQ);
}

/* Comparisons that ask whether a text contains another one; NULL: a and b are not compared so. */
static struct pfs_term *bind_contains(struct pfs_binder *binder, enum pfs_op op,
				      const struct pfs_term *a, const struct pfs_term *b)
{
	struct pfs_term *bound = bind_place(binder, op, a, b);

	return bound || binder->error ? bound : bind_replaced(binder, op, a, b);
}

struct pfs_term *pfs_bind_comparison(struct pfs_binder *binder, enum pfs_op op, struct pfs_term *a,
				     struct pfs_term *b)
{
	struct pfs_term *bound;

	if (!a || !b || !apply_affinity(binder, &a, b) || !apply_affinity(binder, &b, a))
		return NULL;
	if (!is_comparable(a, b))
		return pfs_bind_refuse(binder, "a number compared with a text");
	if (a->class == PFS_CLASS_NONE || b->class == PFS_CLASS_NONE) {
		if (op == PFS_OP_IS && b->class == PFS_CLASS_NONE)
			return pfs_bound_step(binder, PFS_OP_IS_NULL, PFS_CLASS_TRUTH, a, NULL);
		if (op == PFS_OP_IS_NOT && b->class == PFS_CLASS_NONE)
			return pfs_bound_step(binder, PFS_OP_NOT_NULL, PFS_CLASS_TRUTH, a, NULL);
		if (op == PFS_OP_IS || op == PFS_OP_IS_NOT)
			return pfs_bind_refuse(binder, "NULL IS something");
		return pfs_term_null(binder);
	}
	bound = bind_contains(binder, op, a, b);
	if (!bound && !binder->error)
		bound = bind_contains(binder, pfs_op_mirrored(op), b, a);
	if (bound || binder->error)
		return bound;
	bound = pfs_bound_step(binder, op, PFS_CLASS_TRUTH, a, b);
	if (bound)
		bound->collation = collation_of(a, b);
	return bound;
}

struct pfs_term *pfs_bind_not(struct pfs_binder *binder, struct pfs_term *bound, bool negated)
{
	if (!bound || !negated || bound->class == PFS_CLASS_NONE)
		return bound;
	return pfs_bound_step(binder, PFS_OP_NOT, PFS_CLASS_TRUTH, bound, NULL);
}

struct pfs_term *pfs_bind_both(struct pfs_binder *binder, enum pfs_op op, struct pfs_term *a,
			       struct pfs_term *b)
{
	if (!a || !b)
		return NULL;
	if (!pfs_bound_is_number(a) || !pfs_bound_is_number(b))
		return pfs_bind_refuse(binder, "a text as a condition");
	return pfs_bound_step(binder, op, PFS_CLASS_TRUTH, a, b);
}

struct pfs_term *pfs_bind_and(struct pfs_binder *binder, struct pfs_term *a, struct pfs_term *b)
{
	return a && b ? pfs_bind_both(binder, PFS_OP_AND, a, b) : a ? a : b;
}

struct pfs_term *pfs_bind_between(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *low, *high;

	low = pfs_bind_comparison(binder, PFS_OP_GE, pfs_bind_expr(binder, expr->left),
				  pfs_bind_expr(binder, expr->right));
	high = low ? pfs_bind_comparison(binder, PFS_OP_LE, pfs_bind_expr(binder, expr->left),
					 pfs_bind_expr(binder, expr->third))
		   : NULL;
	return pfs_bind_not(binder, pfs_bind_both(binder, PFS_OP_AND, low, high), expr->negated);
}

struct pfs_term *pfs_bind_in(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *left = pfs_bind_expr(binder, expr->left), *bound;
	size_t n = expr->items ? expr->items->n : 0;

	bound = left ? pfs_bound_step(binder, PFS_OP_IN, PFS_CLASS_TRUTH, left, NULL) : NULL;
	if (!bound)
		return NULL;
	if (left->class == PFS_CLASS_NONE || left->kind == PFS_BOUND_CONSTANT)
		return pfs_bind_refuse(binder, "a constant IN a list");
	bound->list = pfs_bind_get(binder, (n + 1) * sizeof(*bound->list));
	if (!bound->list)
		return NULL;
	bound->collation = collation_of(left, NULL);
	for (const struct pfs_item *item = n ? expr->items->first : NULL; item; item = item->next) {
		struct pfs_term *value = pfs_bind_expr(binder, item->expr);

		if (!value)
			return NULL;
		if (value->kind != PFS_BOUND_CONSTANT || value->is_collated)
			return pfs_bind_refuse(binder, "IN with what is no constant");
		if (!apply_affinity(binder, &value, left))
			return NULL;
		if (!is_comparable(left, value))
			return pfs_bind_refuse(binder, "a number compared with a text");
		bound->list[bound->n_list++] = value->constant;
	}
	return pfs_bind_not(binder, bound, expr->negated);
}

struct pfs_term *pfs_bind_like(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *left = pfs_bind_expr(binder, expr->left);
	struct pfs_term *right = left ? pfs_bind_expr(binder, expr->right) : NULL;
	struct pfs_term *bound;

	if (!right)
		return NULL;
	if (expr->op != PFS_AST_LIKE && expr->op != PFS_AST_GLOB)
		return pfs_bind_refuse(binder, "REGEXP or MATCH");
	if (left->class != PFS_CLASS_TEXT ||
	    (left->kind != PFS_BOUND_COLUMN && left->kind != PFS_BOUND_MADE) ||
	    right->kind != PFS_BOUND_CONSTANT || right->class != PFS_CLASS_TEXT)
		return pfs_bind_refuse(binder,
				       "a pattern of what is no column, or no constant one");
	bound = pfs_bound_step(binder, expr->op == PFS_AST_LIKE ? PFS_OP_LIKE : PFS_OP_GLOB,
			       PFS_CLASS_TRUTH, left, NULL);
	if (!bound)
		return NULL;
	if (right->constant.len > PATTERN_MAX)
		return pfs_bind_refuse(binder, "a long pattern");
	bound->constant = right->constant;
	if (expr->third) {
		const struct pfs_name *escape = expr->third->name;

		if (expr->third->kind != PFS_EXPR_STRING || escape->len != 1 ||
		    (unsigned char)*escape->text >= 0x80 || expr->op != PFS_AST_LIKE)
			return pfs_bind_refuse(binder, "ESCAPE with what is no letter");
		bound->escape = (unsigned char)*escape->text;
	}
	return pfs_bind_not(binder, bound, expr->negated);
}
