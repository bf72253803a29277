/* SPDX-License-Identifier: MIT */
/* Expressions. */
#include "fs/query/relational/bind.h"

#include <strings.h>

#include "meta/sql/sqlquery.h"

/* ---- literals ---- */

/* Has SQLite read the decimal, of which it sometimes makes the number beside the nearest one. */
static struct pfs_term *bind_real(struct pfs_binder *binder, const char *text, bool negated)
{
	struct pfs_term *bound = pfs_term_new(binder, PFS_BOUND_CONSTANT, PFS_CLASS_NUMBER);
	double value = 0;

	if (!bound)
		return NULL;
	if (pfs_sql_real(binder->query->connection->sql, &value, text))
		return pfs_bind_refuse(binder, "a number that cannot be read now");
	bound->constant.type = PFS_IS_REAL;
	bound->constant.real = negated ? -value : value;
	return bound;
}

/* Digits that are too many for 64 bits are a real, hexadecimal ones are their 64 bits. */
static struct pfs_term *bind_integer(struct pfs_binder *binder, const char *digits, bool negated)
{
	int64_t value = 0;

	if (digits[0] == '0' && (digits[1] | 0x20) == 'x')
		return pfs_bind_refuse(binder, "a hexadecimal number");
	for (const char *c = digits; *c; c++) {
		int digit = negated ? '0' - *c : *c - '0';

		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return pfs_bind_refuse(binder, "a number of more than 64 bits");
	}
	return pfs_term_integer(binder, value);
}

static struct pfs_term *bind_string(struct pfs_binder *binder, const struct pfs_name *name)
{
	struct pfs_term *bound = pfs_term_new(binder, PFS_BOUND_CONSTANT, PFS_CLASS_TEXT);

	if (!bound)
		return NULL;
	bound->constant =
		(struct pfs_constant){.type = PFS_IS_TEXT, .text = name->text, .len = name->len};
	return bound;
}

/* ---- operators ---- */

static const struct {
	enum pfs_op op;
	enum { COMPARES, COMPUTES, CONNECTS, NEITHER } what;
} operators[] = {
	[PFS_AST_NONE] = {PFS_OP_NOT, NEITHER},
	[PFS_AST_OR] = {PFS_OP_OR, CONNECTS},
	[PFS_AST_AND] = {PFS_OP_AND, CONNECTS},
	[PFS_AST_EQ] = {PFS_OP_EQ, COMPARES},
	[PFS_AST_NE] = {PFS_OP_NE, COMPARES},
	[PFS_AST_LT] = {PFS_OP_LT, COMPARES},
	[PFS_AST_LE] = {PFS_OP_LE, COMPARES},
	[PFS_AST_GT] = {PFS_OP_GT, COMPARES},
	[PFS_AST_GE] = {PFS_OP_GE, COMPARES},
	[PFS_AST_IS] = {PFS_OP_IS, COMPARES},
	[PFS_AST_IS_NOT] = {PFS_OP_IS_NOT, COMPARES},
	[PFS_AST_BIT_AND] = {PFS_OP_BIT_AND, COMPUTES},
	[PFS_AST_BIT_OR] = {PFS_OP_BIT_OR, COMPUTES},
	[PFS_AST_SHIFT_LEFT] = {PFS_OP_SHIFT_LEFT, COMPUTES},
	[PFS_AST_SHIFT_RIGHT] = {PFS_OP_SHIFT_RIGHT, COMPUTES},
	[PFS_AST_ADD] = {PFS_OP_ADD, COMPUTES},
	[PFS_AST_SUBTRACT] = {PFS_OP_SUBTRACT, COMPUTES},
	[PFS_AST_MULTIPLY] = {PFS_OP_MULTIPLY, COMPUTES},
	[PFS_AST_DIVIDE] = {PFS_OP_DIVIDE, COMPUTES},
	[PFS_AST_REMAINDER] = {PFS_OP_REMAINDER, COMPUTES},
	[PFS_AST_CONCAT] = {PFS_OP_NOT, NEITHER},
	[PFS_AST_ARROW] = {PFS_OP_NOT, NEITHER},
	[PFS_AST_LONG_ARROW] = {PFS_OP_NOT, NEITHER},
};

static struct pfs_term *bind_binary(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *left, *right;

	if (operators[expr->op].what == NEITHER && expr->op != PFS_AST_CONCAT)
		return pfs_bind_refuse(binder, "->");
	left = pfs_bind_expr(binder, expr->left);
	right = left ? pfs_bind_expr(binder, expr->right) : NULL;
	if (!right)
		return NULL;
	if (expr->op == PFS_AST_CONCAT)
		return pfs_bind_concat(binder, left, right);
	if (operators[expr->op].what == COMPARES)
		return pfs_bind_comparison(binder, operators[expr->op].op, left, right);
	if (operators[expr->op].what == CONNECTS)
		return pfs_bind_both(binder, operators[expr->op].op, left, right);
	if (!pfs_bound_is_number(left) || !pfs_bound_is_number(right))
		return pfs_bind_refuse(binder, "arithmetic with a text");
	if (left->class == PFS_CLASS_NONE || right->class == PFS_CLASS_NONE)
		return pfs_bind_refuse(binder, "arithmetic with NULL");
	return pfs_bound_step(binder, operators[expr->op].op, PFS_CLASS_NUMBER, left, right);
}

static struct pfs_term *bind_unary(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *operand;

	if (expr->op == PFS_AST_NEGATE && expr->left->kind == PFS_EXPR_INTEGER)
		return bind_integer(binder, expr->left->name->text, true);
	if (expr->op == PFS_AST_NEGATE &&
	    expr->left->kind == PFS_EXPR_REAL) /* -0.0 is not 0 - 0.0 */
		return bind_real(binder, expr->left->name->text, true);
	operand = pfs_bind_expr(binder, expr->left);
	if (!operand)
		return NULL;
	if (!pfs_bound_is_number(operand) || operand->class == PFS_CLASS_NONE)
		return pfs_bind_refuse(binder, "a sign or NOT with a text or NULL");
	switch (expr->op) {
	case PFS_AST_NOT:
		return pfs_bind_not(binder, operand, true);
	case PFS_AST_NEGATE:
		return pfs_bound_step(binder, PFS_OP_NEGATE, PFS_CLASS_NUMBER, operand, NULL);
	case PFS_AST_BIT_NOT:
		return pfs_bound_step(binder, PFS_OP_BIT_NOT, PFS_CLASS_NUMBER, operand, NULL);
	default:
		return pfs_bind_refuse(binder, "a plus sign");
	}
}

/* As SQLite has it: INT, BIGINT, INTEGER ... */
static bool is_integer_type(const struct pfs_name *name)
{
	for (size_t i = 0; i + 3 <= name->len; i++) {
		if (strncasecmp(name->text + i, "int", 3) == 0)
			return true;
	}
	return false;
}

static struct pfs_term *bind_cast(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *operand = pfs_bind_expr(binder, expr->left);
	bool is_integer = is_integer_type(expr->name);
	struct pfs_term *bound;

	if (!operand)
		return NULL;
	if (!pfs_bound_is_number(operand) || operand->class == PFS_CLASS_NONE ||
	    (!is_integer && !pfs_name_is(expr->name, "real")))
		return pfs_bind_refuse(binder, "a CAST from or to texts");
	if (is_integer && operand->kind == PFS_BOUND_CONSTANT &&
	    operand->constant.type == PFS_IS_INTEGER)
		bound = pfs_term_integer(binder, operand->constant.integer);
	else
		bound = pfs_bound_step(binder, is_integer ? PFS_OP_TO_INTEGER : PFS_OP_TO_REAL,
				       PFS_CLASS_NUMBER, operand, NULL);
	if (bound)
		bound->affinity = PFS_NUMERIC;
	return bound;
}

static struct pfs_term *bind_collate(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *operand = pfs_bind_expr(binder, expr->left);
	struct pfs_term *copy = operand ? pfs_bind_get(binder, sizeof(*copy)) : NULL;

	if (!copy)
		return NULL;
	*copy = *operand;
	copy->is_collated = true;
	if (pfs_name_is(expr->name, "binary"))
		copy->collation = PFS_BINARY;
	else if (pfs_name_is(expr->name, "nocase"))
		copy->collation = PFS_NOCASE;
	else if (pfs_name_is(expr->name, "rtrim"))
		copy->collation = PFS_RTRIM;
	else
		return pfs_bind_refuse(binder, "an unknown collation");
	return copy->class == PFS_CLASS_TEXT &&
			       (copy->kind == PFS_BOUND_COLUMN || copy->kind == PFS_BOUND_CONSTANT)
		       ? copy
		       : pfs_bind_refuse(binder, "COLLATE of what is no column of texts");
}

/* A name that is no column may be one that a result was given. */
static struct pfs_term *bind_name(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *bound;

	if (expr->schema)
		return pfs_bind_refuse(binder, "a database's name");
	bound = pfs_bind_column(binder, expr->table, expr->name);
	if (bound || binder->error || expr->table || !binder->takes_aliases || !binder->core)
		return bound ? bound : pfs_bind_refuse(binder, "a name that is no column");
	for (const struct pfs_item *item = binder->core->results->first; item; item = item->next) {
		if (item->expr && item->alias && pfs_name_is(expr->name, item->alias->text)) {
			binder->takes_aliases = false;
			binder->is_inner = binder->was_inner;
			bound = pfs_bind_expr(binder, item->expr);
			binder->takes_aliases = true;
			return bound;
		}
	}
	return pfs_bind_refuse(binder, "a name that is no column");
}

static struct pfs_term *bind_any(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	switch (expr->kind) {
	case PFS_EXPR_NULL:
		return pfs_term_null(binder);
	case PFS_EXPR_INTEGER:
		return bind_integer(binder, expr->name->text, false);
	case PFS_EXPR_REAL:
		return bind_real(binder, expr->name->text, false);
	case PFS_EXPR_STRING:
		return bind_string(binder, expr->name);
	case PFS_EXPR_COLUMN:
		return bind_name(binder, expr);
	case PFS_EXPR_UNARY:
		return bind_unary(binder, expr);
	case PFS_EXPR_BINARY:
		return bind_binary(binder, expr);
	case PFS_EXPR_LIKE:
		return pfs_bind_like(binder, expr);
	case PFS_EXPR_IS_NULL:
		return pfs_bound_step(binder, expr->negated ? PFS_OP_NOT_NULL : PFS_OP_IS_NULL,
				      PFS_CLASS_TRUTH, pfs_bind_expr(binder, expr->left), NULL);
	case PFS_EXPR_BETWEEN:
		return pfs_bind_between(binder, expr);
	case PFS_EXPR_IN_LIST:
		return pfs_bind_in(binder, expr);
	case PFS_EXPR_CASE:
		return pfs_bind_whens(binder, expr, expr->items->first);
	case PFS_EXPR_CAST:
		return bind_cast(binder, expr);
	case PFS_EXPR_COLLATE:
		return bind_collate(binder, expr);
	case PFS_EXPR_CALL:
		return pfs_bind_call(binder, expr);
	default:
		return pfs_bind_refuse(binder, "a sub-select or row in an expression");
	}
}

struct pfs_term *pfs_bind_expr(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *bound;
	bool is_inner = binder->is_inner;

	if (binder->error)
		return NULL;
	binder->was_inner = is_inner;
	binder->is_inner = true;
	bound = bind_any(binder, expr);
	binder->is_inner = is_inner;
	if (bound && bound->is_late && is_inner) {
		binder->lax = "a path or target in an expression";
		return binder->takes_rows ? bound : pfs_bind_refuse(binder, binder->lax);
	}
	return bound;
}

struct pfs_term *pfs_bind_condition(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *bound = pfs_bind_expr(binder, expr);

	if (bound && (!pfs_bound_is_number(bound) || bound->is_late))
		return pfs_bind_refuse(binder, "a text as a condition");
	return bound;
}
