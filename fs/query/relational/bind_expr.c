/* SPDX-License-Identifier: MIT */
/* Expressions. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "fs/query/relational/bound.h"

#define PATTERN_MAX 10000 /* what is longer is an error of SQLite's */

bool pfs_name_is(const struct pfs_name *name, const char *word)
{
	return strlen(word) == name->len && strncasecmp(name->text, word, name->len) == 0;
}

/* ---- nodes ---- */

static struct pfs_term *new_bound(struct pfs_binder *binder, enum pfs_bound_kind kind,
				  enum pfs_class class)
{
	struct pfs_term *bound = pfs_bind_get(binder, sizeof(*bound));

	if (!bound)
		return NULL;
	bound->kind = kind;
	bound->class = class;
	bound->size = 1;
	return bound;
}

/* A walk meets an argument as often as it is one: nested, that could be without end. */
static struct pfs_term *add_argument(struct pfs_binder *binder, struct pfs_term *bound,
				     struct pfs_term *arg)
{
	bound->args[bound->n_args++] = arg;
	bound->size += arg->size;
	if (bound->size > PFS_PROGRAM_STEPS)
		return pfs_bind_refuse(binder, "a very large expression");
	return bound;
}

struct pfs_term *pfs_bound_step(struct pfs_binder *binder, enum pfs_op op, enum pfs_class class,
				struct pfs_term *a, struct pfs_term *b)
{
	struct pfs_term *bound = a ? new_bound(binder, PFS_BOUND_STEP, class) : NULL;

	if (!bound)
		return NULL;
	bound->op = op;
	bound->can_be_null = true;
	bound = add_argument(binder, bound, a);
	return bound && b ? add_argument(binder, bound, b) : bound;
}

static struct pfs_term *new_integer(struct pfs_binder *binder, int64_t value)
{
	struct pfs_term *bound = new_bound(binder, PFS_BOUND_CONSTANT, PFS_CLASS_NUMBER);

	if (!bound)
		return NULL;
	bound->constant.type = PFS_IS_INTEGER;
	bound->constant.integer = value;
	return bound;
}

static struct pfs_term *new_null(struct pfs_binder *binder)
{
	struct pfs_term *bound = new_bound(binder, PFS_BOUND_CONSTANT, PFS_CLASS_NONE);

	if (bound)
		bound->can_be_null = true;
	return bound;
}

static bool constants_equal(const struct pfs_constant *a, const struct pfs_constant *b)
{
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case PFS_IS_NULL:
		return true;
	case PFS_IS_INTEGER:
		return a->integer == b->integer;
	case PFS_IS_REAL:
		return a->real == b->real;
	case PFS_IS_TEXT:
		return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
	}
	return false;
}

/* Whether both are the same value wherever they stand: where it is not sure, they are not. */
bool pfs_bound_equals(const struct pfs_term *a, const struct pfs_term *b)
{
	if (a->kind == PFS_BOUND_AGGREGATE && b->kind == a->kind)
		return a->aggregate == b->aggregate;
	if (a->kind != b->kind || a->op != b->op || a->n_args != b->n_args ||
	    a->collation != b->collation || a->n_list || b->n_list || a->escape != b->escape)
		return false;
	for (unsigned i = 0; i < a->n_args; i++) {
		if (!pfs_bound_equals(a->args[i], b->args[i]))
			return false;
	}
	switch (a->kind) {
	case PFS_BOUND_CONSTANT:
	case PFS_BOUND_STEP:
		return constants_equal(&a->constant, &b->constant);
	case PFS_BOUND_COLUMN:
		return a->input == b->input && a->column == b->column;
	case PFS_BOUND_AGGREGATE:
	case PFS_BOUND_NODES:
		return false;
	}
	return false;
}

/* ---- literals ---- */

static struct pfs_term *bind_real(struct pfs_binder *binder, const char *text)
{
	struct pfs_term *bound = new_bound(binder, PFS_BOUND_CONSTANT, PFS_CLASS_NUMBER);

	if (!bound)
		return NULL;
	bound->constant.type = PFS_IS_REAL;
	bound->constant.real = strtod(text, NULL);
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
	return new_integer(binder, value);
}

static struct pfs_term *bind_string(struct pfs_binder *binder, const struct pfs_name *name)
{
	struct pfs_term *bound = new_bound(binder, PFS_BOUND_CONSTANT, PFS_CLASS_TEXT);

	if (!bound)
		return NULL;
	bound->constant =
		(struct pfs_constant){.type = PFS_IS_TEXT, .text = name->text, .len = name->len};
	return bound;
}

/* ---- comparisons ---- */

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

	if ((*bound)->kind != PFS_BOUND_CONSTANT || other->affinity == PFS_NO_AFFINITY)
		return true;
	copy = pfs_bind_get(binder, sizeof(*copy));
	if (!copy)
		return false;
	*copy = **bound;
	*bound = copy;
	return convert(binder, &copy->constant, &copy->class, other->affinity);
}

/* Whether values of both can be compared without one becoming the other's class. */
static bool is_comparable(const struct pfs_term *a, const struct pfs_term *b)
{
	if (a->class == PFS_CLASS_NONE || b->class == PFS_CLASS_NONE)
		return true;
	return (a->class == PFS_CLASS_TEXT) == (b->class == PFS_CLASS_TEXT);
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

static struct pfs_term *bind_comparison(struct pfs_binder *binder, enum pfs_op op,
					struct pfs_term *a, struct pfs_term *b)
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
		return new_null(binder);
	}
	bound = pfs_bound_step(binder, op, PFS_CLASS_TRUTH, a, b);
	if (bound)
		bound->collation = collation_of(a, b);
	return bound;
}

static struct pfs_term *negate(struct pfs_binder *binder, struct pfs_term *bound, bool negated)
{
	if (!bound || !negated || bound->class == PFS_CLASS_NONE)
		return bound;
	return pfs_bound_step(binder, PFS_OP_NOT, PFS_CLASS_TRUTH, bound, NULL);
}

static struct pfs_term *both(struct pfs_binder *binder, enum pfs_op op, struct pfs_term *a,
			     struct pfs_term *b)
{
	if (!a || !b)
		return NULL;
	if (!pfs_bound_is_number(a) || !pfs_bound_is_number(b))
		return pfs_bind_refuse(binder, "a text as a condition");
	return pfs_bound_step(binder, op, PFS_CLASS_TRUTH, a, b);
}

struct pfs_term *pfs_bind_equal(struct pfs_binder *binder, struct pfs_term *a, struct pfs_term *b)
{
	return bind_comparison(binder, PFS_OP_EQ, a, b);
}

struct pfs_term *pfs_bind_and(struct pfs_binder *binder, struct pfs_term *a, struct pfs_term *b)
{
	return a && b ? both(binder, PFS_OP_AND, a, b) : a ? a : b;
}

static struct pfs_term *bind_between(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *low, *high;

	low = bind_comparison(binder, PFS_OP_GE, pfs_bind_expr(binder, expr->left),
			      pfs_bind_expr(binder, expr->right));
	high = low ? bind_comparison(binder, PFS_OP_LE, pfs_bind_expr(binder, expr->left),
				     pfs_bind_expr(binder, expr->third))
		   : NULL;
	return negate(binder, both(binder, PFS_OP_AND, low, high), expr->negated);
}

static struct pfs_term *bind_in(struct pfs_binder *binder, const struct pfs_expr *expr)
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
	return negate(binder, bound, expr->negated);
}

static struct pfs_term *bind_like(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *left = pfs_bind_expr(binder, expr->left);
	struct pfs_term *right = left ? pfs_bind_expr(binder, expr->right) : NULL;
	struct pfs_term *bound;

	if (!right)
		return NULL;
	if (expr->op != PFS_AST_LIKE && expr->op != PFS_AST_GLOB)
		return pfs_bind_refuse(binder, "REGEXP or MATCH");
	if (left->class != PFS_CLASS_TEXT || left->kind != PFS_BOUND_COLUMN ||
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
	return negate(binder, bound, expr->negated);
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

	if (operators[expr->op].what == NEITHER)
		return pfs_bind_refuse(binder, "|| or ->");
	left = pfs_bind_expr(binder, expr->left);
	right = left ? pfs_bind_expr(binder, expr->right) : NULL;
	if (!right)
		return NULL;
	if (operators[expr->op].what == COMPARES)
		return bind_comparison(binder, operators[expr->op].op, left, right);
	if (operators[expr->op].what == CONNECTS)
		return both(binder, operators[expr->op].op, left, right);
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
	operand = pfs_bind_expr(binder, expr->left);
	if (!operand)
		return NULL;
	if (!pfs_bound_is_number(operand) || operand->class == PFS_CLASS_NONE)
		return pfs_bind_refuse(binder, "a sign or NOT with a text or NULL");
	switch (expr->op) {
	case PFS_AST_NOT:
		return negate(binder, operand, true);
	case PFS_AST_NEGATE:
		return pfs_bound_step(binder, PFS_OP_NEGATE, PFS_CLASS_NUMBER, operand, NULL);
	case PFS_AST_BIT_NOT:
		return pfs_bound_step(binder, PFS_OP_BIT_NOT, PFS_CLASS_NUMBER, operand, NULL);
	default:
		return pfs_bind_refuse(binder, "a plus sign");
	}
}

/* ---- functions ---- */

static struct pfs_term *choose(struct pfs_binder *binder, struct pfs_term *condition,
			       struct pfs_term *yes, struct pfs_term *no)
{
	struct pfs_term *bound;

	if (!condition || !yes || !no)
		return NULL;
	if (!pfs_bound_is_number(condition) || !pfs_bound_is_number(yes) ||
	    !pfs_bound_is_number(no) || condition->class == PFS_CLASS_NONE)
		return pfs_bind_refuse(binder, "CASE of texts");
	bound = pfs_bound_step(binder, PFS_OP_CHOOSE, PFS_CLASS_NUMBER, condition, yes);
	return bound ? add_argument(binder, bound, no) : NULL;
}

static struct pfs_term *bind_whens(struct pfs_binder *binder, const struct pfs_expr *expr,
				   const struct pfs_item *item)
{
	struct pfs_term *condition, *yes, *no;

	if (!item)
		return expr->right ? pfs_bind_expr(binder, expr->right) : new_null(binder);
	condition = pfs_bind_expr(binder, item->expr);
	if (expr->left)
		condition = bind_comparison(binder, PFS_OP_EQ, pfs_bind_expr(binder, expr->left),
					    condition);
	yes = condition ? pfs_bind_expr(binder, item->next->expr) : NULL;
	no = yes ? bind_whens(binder, expr, item->next->next) : NULL;
	return choose(binder, condition, yes, no);
}

static const struct {
	const char *name;
	enum pfs_aggregate_op op;
} aggregates[] = {
	{"count", PFS_COUNT}, {"sum", PFS_SUM}, {"total", PFS_TOTAL},
	{"avg", PFS_AVG},     {"min", PFS_MIN}, {"max", PFS_MAX},
};

static struct pfs_term *add_aggregate(struct pfs_binder *binder, enum pfs_aggregate_op op,
				      struct pfs_term *arg)
{
	struct pfs_block *block = binder->block;
	struct pfs_term *bound = new_bound(binder, PFS_BOUND_AGGREGATE, PFS_CLASS_NUMBER);
	size_t i = 0;

	if (!bound)
		return NULL;
	for (; i < block->n_aggregates; i++) {
		const struct pfs_bound_aggregate *other = &block->aggregates[i];

		if (other->op == op &&
		    (other->arg == arg || (other->arg && arg && pfs_bound_equals(other->arg, arg))))
			break;
	}
	if (i == PFS_AGGREGATES_MAX)
		return pfs_bind_refuse(binder, "very many aggregates");
	if (i == block->n_aggregates)
		block->aggregates[block->n_aggregates++] = (struct pfs_bound_aggregate){op, arg};
	bound->aggregate = i;
	bound->can_be_null = op != PFS_COUNT && op != PFS_COUNT_ALL && op != PFS_TOTAL;
	if (arg && (op == PFS_MIN || op == PFS_MAX)) {
		bound->class = arg->class;
		bound->collation = arg->collation;
	}
	return bound;
}

/* FILTER leaves out rows: as if the argument were NULL there. */
static struct pfs_term *filtered(struct pfs_binder *binder, const struct pfs_expr *filter,
				 struct pfs_term *arg)
{
	struct pfs_term *condition = pfs_bind_condition(binder, filter);

	if (!condition)
		return NULL;
	if (!arg)
		arg = new_integer(binder, 1);
	return arg ? choose(binder, condition, arg, new_null(binder)) : NULL;
}

/* Whether the aggregate takes such an argument; a constant one only counts rows. */
static struct pfs_term *bind_argument(struct pfs_binder *binder, enum pfs_aggregate_op op,
				      struct pfs_term *arg)
{
	if (arg->class == PFS_CLASS_NONE)
		return pfs_bind_refuse(binder, "an aggregate of NULL");
	if (arg->kind == PFS_BOUND_CONSTANT && op == PFS_COUNT)
		return add_aggregate(binder, PFS_COUNT_ALL, NULL);
	if (arg->kind == PFS_BOUND_CONSTANT)
		return pfs_bind_refuse(binder, "an aggregate of a constant");
	if (!pfs_bound_is_number(arg) && (op == PFS_SUM || op == PFS_TOTAL || op == PFS_AVG))
		return pfs_bind_refuse(binder, "a sum of texts");
	return add_aggregate(binder, op, arg);
}

static struct pfs_term *bind_aggregate(struct pfs_binder *binder, const struct pfs_expr *expr,
				       enum pfs_aggregate_op op)
{
	struct pfs_term *arg = NULL;
	bool counts_rows = expr->is_star || !expr->items;

	if (!binder->takes_aggregates || binder->in_aggregate)
		return pfs_bind_refuse(binder, "an aggregate where none can be");
	if (counts_rows && op != PFS_COUNT)
		return pfs_bind_refuse(binder, "an aggregate of nothing");
	if (expr->is_distinct && op == PFS_COUNT)
		op = PFS_COUNT_DISTINCT;
	else if (expr->is_distinct && op != PFS_MIN && op != PFS_MAX)
		return pfs_bind_refuse(binder, "DISTINCT in an aggregate other than count");
	binder->in_aggregate = true;
	if (!counts_rows)
		arg = pfs_bind_expr(binder, expr->items->first->expr);
	if (expr->left && !binder->error)
		arg = filtered(binder, expr->left, arg);
	binder->in_aggregate = false;
	if (binder->error)
		return NULL;
	return arg ? bind_argument(binder, op, arg) : add_aggregate(binder, PFS_COUNT_ALL, NULL);
}

/* under(ino, X) and its like, of a column `ino` of nodes and a constant. */
static struct pfs_term *bind_relation(struct pfs_binder *binder, const struct pfs_expr *expr,
				      enum pfs_test test)
{
	struct pfs_term *ino, *node, *bound;

	if (!expr->items || expr->items->n != 2)
		return pfs_bind_refuse(binder, "a function of the tree");
	ino = pfs_bind_expr(binder, expr->items->first->expr);
	node = ino ? pfs_bind_expr(binder, expr->items->last->expr) : NULL;
	if (!node)
		return NULL;
	if (ino->kind != PFS_BOUND_COLUMN || node->kind != PFS_BOUND_CONSTANT ||
	    binder->block->inputs[ino->input].kind != PFS_INPUT_NODES ||
	    binder->block->inputs[ino->input].columns[ino->column].wish.field != PFS_FIELD_INO ||
	    (node->constant.type != PFS_IS_INTEGER && node->constant.type != PFS_IS_TEXT))
		return pfs_bind_refuse(binder, "a function of the tree with what is no constant");
	if (binder->block->inputs[ino->input].is_left) /* NULL, where there is no row */
		return pfs_bind_refuse(binder, "a function of the tree after a LEFT JOIN");
	bound = new_bound(binder, PFS_BOUND_NODES, PFS_CLASS_TRUTH);
	if (!bound)
		return NULL;
	bound->input = ino->input;
	bound->test = test;
	bound->node.type = node->constant.type == PFS_IS_TEXT ? PFS_SQL_TEXT : PFS_SQL_INTEGER;
	if (node->constant.type == PFS_IS_TEXT)
		bound->node.bytes = node->constant.text;
	else
		bound->node.integer = node->constant.integer;
	bound->node.size = node->constant.len;
	return bound;
}

/* The first of two that is not NULL; the second is NULL in its stead. */
static struct pfs_term *bind_coalesce(struct pfs_binder *binder, const struct pfs_item *item)
{
	struct pfs_term *first = pfs_bind_expr(binder, item->expr), *rest, *is_there;

	if (!first || !item->next)
		return first;
	rest = bind_coalesce(binder, item->next);
	if (!rest)
		return NULL;
	if (first->class == PFS_CLASS_NONE)
		return pfs_bind_refuse(binder, "coalesce of NULL");
	is_there = pfs_bound_step(binder, PFS_OP_NOT_NULL, PFS_CLASS_TRUTH, first, NULL);
	return choose(binder, is_there, first, rest);
}

static struct pfs_term *bind_length(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *text = pfs_bind_expr(binder, expr->items->first->expr);

	if (!text)
		return NULL;
	if (text->class != PFS_CLASS_TEXT || text->kind != PFS_BOUND_COLUMN)
		return pfs_bind_refuse(binder, "the length of what is no column of texts");
	return pfs_bound_step(binder, PFS_OP_LENGTH, PFS_CLASS_NUMBER, text, NULL);
}

static struct pfs_term *bind_call(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	static const struct {
		const char *name;
		enum pfs_test test;
	} relations[] = {{"under", PFS_TEST_UNDER},
			 {"child_of", PFS_TEST_CHILD_OF},
			 {"ancestor_of", PFS_TEST_ANCESTOR_OF}};
	size_t n = expr->items ? expr->items->n : 0;

	if (expr->is_window)
		return pfs_bind_refuse(binder, "a window");
	for (size_t i = 0; i < PFS_COUNT(aggregates); i++) {
		if (n < 2 && pfs_name_is(expr->name, aggregates[i].name))
			return bind_aggregate(binder, expr, aggregates[i].op);
	}
	if (expr->left || expr->is_distinct)
		return pfs_bind_refuse(binder, "an aggregate of another kind");
	for (size_t i = 0; i < PFS_COUNT(relations); i++) {
		if (pfs_name_is(expr->name, relations[i].name))
			return bind_relation(binder, expr, relations[i].test);
	}
	if (n == 1 && pfs_name_is(expr->name, "length"))
		return bind_length(binder, expr);
	if (n >= 2 &&
	    (pfs_name_is(expr->name, "coalesce") || (n == 2 && pfs_name_is(expr->name, "ifnull"))))
		return bind_coalesce(binder, expr->items->first);
	return pfs_bind_refuse(binder, "a function that is SQLite's");
}

static struct pfs_term *bind_cast(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *operand = pfs_bind_expr(binder, expr->left);
	bool is_integer = pfs_name_is(expr->name, "integer") || pfs_name_is(expr->name, "int");
	struct pfs_term *bound;

	if (!operand)
		return NULL;
	if (!pfs_bound_is_number(operand) || operand->class == PFS_CLASS_NONE ||
	    (!is_integer && !pfs_name_is(expr->name, "real")))
		return pfs_bind_refuse(binder, "a CAST from or to texts");
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
		return new_null(binder);
	case PFS_EXPR_INTEGER:
		return bind_integer(binder, expr->name->text, false);
	case PFS_EXPR_REAL:
		return bind_real(binder, expr->name->text);
	case PFS_EXPR_STRING:
		return bind_string(binder, expr->name);
	case PFS_EXPR_COLUMN:
		return bind_name(binder, expr);
	case PFS_EXPR_UNARY:
		return bind_unary(binder, expr);
	case PFS_EXPR_BINARY:
		return bind_binary(binder, expr);
	case PFS_EXPR_LIKE:
		return bind_like(binder, expr);
	case PFS_EXPR_IS_NULL:
		return pfs_bound_step(binder, expr->negated ? PFS_OP_NOT_NULL : PFS_OP_IS_NULL,
				      PFS_CLASS_TRUTH, pfs_bind_expr(binder, expr->left), NULL);
	case PFS_EXPR_BETWEEN:
		return bind_between(binder, expr);
	case PFS_EXPR_IN_LIST:
		return bind_in(binder, expr);
	case PFS_EXPR_CASE:
		return bind_whens(binder, expr, expr->items->first);
	case PFS_EXPR_CAST:
		return bind_cast(binder, expr);
	case PFS_EXPR_COLLATE:
		return bind_collate(binder, expr);
	case PFS_EXPR_CALL:
		return bind_call(binder, expr);
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
	if (bound && bound->is_late && is_inner)
		return pfs_bind_refuse(binder, "a path or target in an expression");
	return bound;
}

struct pfs_term *pfs_bind_condition(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *bound = pfs_bind_expr(binder, expr);

	if (bound && (!pfs_bound_is_number(bound) || bound->is_late))
		return pfs_bind_refuse(binder, "a text as a condition");
	return bound;
}
