/* SPDX-License-Identifier: MIT */
/* Expressions: which are times, and what is compared with them. */
#include "fs/query/times/timed_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "fs/query/tokens.h"

#define CLOSING ")"

/* One side of a comparison: a value, or a row of them. */
struct operand {
	size_t n;
	const struct pfs_expr *
		*exprs; /* NULL: a column of a select, which cannot be written around */
	enum pfs_timed_kind *bounds;
	const struct pfs_expr *expr; /* all of it */
};

struct place {
	struct pfs_timed *t;
	const struct pfs_timed_scope *scope;
	struct pfs_timed_ctes *ctes;
};

static enum pfs_timed_kind bind(const struct place *p, const struct pfs_expr *expr)
{
	return pfs_timed_expr(p->t, expr, p->scope, p->ctes);
}

static bool is_time(enum pfs_timed_kind bound)
{
	return bound == PFS_BOUND_TIME || bound == PFS_BOUND_SUM;
}

/* ---- what is made of the other side ---- */

static bool is_letter(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_' || (unsigned char)c >= 0x80;
}

/* Words must not grow together. */
static void insert(const struct place *p, uint32_t at, uint32_t old_len,
		   enum pfs_insertion_kind kind, const char *text)
{
	bool left = kind != PFS_INSERT_CLOSING && at && is_letter(p->t->text[at - 1]);
	bool right = kind == PFS_INSERT_INSTEAD && is_letter(p->t->text[at + old_len]);
	char apart[80];

	if (!left && !right) {
		pfs_timed_insert(p->t, at, old_len, kind, text);
		return;
	}
	(void)snprintf(apart, sizeof(apart), "%s%s%s", left ? " " : "", text, right ? " " : "");
	text = pfs_arena_text(&p->t->arena, apart, strlen(apart));
	if (text)
		pfs_timed_insert(p->t, at, old_len, kind, text);
	else
		p->t->error = -ENOMEM;
}

static void surround(const struct place *p, const struct pfs_expr *expr, bool strict)
{
	insert(p, expr->span.at, 0, PFS_INSERT_OPENING, "time_of(");
	insert(p, expr->span.at + expr->span.len, 0, PFS_INSERT_CLOSING, strict ? CLOSING : ", 0)");
}

/* A literal of text as its number. */
static void replace_text(const struct place *p, const struct pfs_expr *expr, bool strict)
{
	const struct pfs_sql_value value = {
		.type = PFS_SQL_TEXT, .bytes = expr->name->text, .size = expr->name->len};
	char problem[PFS_TIME_PROBLEM], number[40];
	struct pfs_sql_value time;
	const char *text;

	if (pfs_time_value(&time, &value, p->t->now, strict, problem)) {
		pfs_timed_doubt(p->t, expr->span.at, "%s", problem);
		return;
	}
	if (time.type == PFS_SQL_REAL ||
	    time.integer == INT64_MIN) { /* which has no literal of its own */
		surround(p, expr, strict);
		return;
	}
	(void)snprintf(number, sizeof(number), "%" PRId64, time.integer);
	text = pfs_arena_text(&p->t->arena, number, strlen(number));
	if (text)
		insert(p, expr->span.at, expr->span.len, PFS_INSERT_INSTEAD, text);
	else
		p->t->error = -ENOMEM;
}

static void check_number(const struct place *p, const struct pfs_expr *whole,
			 const struct pfs_name *number, bool strict)
{
	const struct pfs_sql_value value = {
		.type = PFS_SQL_TEXT, .bytes = number->text, .size = number->len};
	char problem[PFS_TIME_PROBLEM];
	struct pfs_sql_value time;

	if (strspn(number->text, "0123456789.eE+-") != number->len) /* hexadecimal */
		surround(p, whole, strict);
	else if (pfs_time_value(&time, &value, p->t->now, strict, problem))
		pfs_timed_doubt(p->t, whole->span.at, "%s", problem);
}

static void make_time(const struct place *p, const struct pfs_expr *expr, bool strict)
{
	const struct pfs_expr *inner = expr;
	bool is_string = expr->kind == PFS_EXPR_STRING;

	if (inner->kind == PFS_EXPR_UNARY &&
	    (inner->op == PFS_AST_NEGATE || inner->op == PFS_AST_PLUS))
		inner = inner->left;
	if (expr->kind == PFS_EXPR_COLUMN)
		(void)pfs_timed_resolve(expr, p->scope, &is_string);
	if (is_string)
		replace_text(p, expr, strict);
	else if (inner->kind == PFS_EXPR_INTEGER || inner->kind == PFS_EXPR_REAL)
		check_number(p, expr, inner->name, strict);
	else if (expr->kind != PFS_EXPR_NULL)
		surround(p, expr, strict);
}

static void doubt(const struct place *p, const struct pfs_expr *expr)
{
	pfs_timed_doubt(
		p->t, expr->span.at,
		"whether %.*s is a time cannot be told here; compare it where it comes from",
		(int)PFS_MIN(expr->span.len, 60), p->t->text + expr->span.at);
}

/* ---- comparisons ---- */

static bool make_room(const struct place *p, struct operand *operand, size_t n)
{
	operand->n = n;
	operand->exprs =
		pfs_arena_get(&p->t->arena, PFS_MAX(n, 1) * sizeof(const struct pfs_expr *));
	operand->bounds = pfs_arena_get(&p->t->arena, PFS_MAX(n, 1) * sizeof(*operand->bounds));
	if (operand->exprs && operand->bounds)
		return true;
	p->t->error = -ENOMEM;
	operand->n = 0;
	return false;
}

static struct operand bind_operand(const struct place *p, const struct pfs_expr *expr)
{
	struct operand operand = {.expr = expr};
	struct pfs_timed_columns columns;
	size_t n = 0;

	if (expr->kind == PFS_EXPR_ROW && make_room(p, &operand, expr->items->n)) {
		for (const struct pfs_item *item = expr->items->first; item;
		     item = item->next, n++) {
			operand.exprs[n] = item->expr;
			operand.bounds[n] = bind(p, item->expr);
		}
	} else if (expr->kind == PFS_EXPR_SELECT) {
		columns = pfs_timed_select(p->t, expr->select, p->scope, p->ctes);
		if (!make_room(p, &operand, columns.n))
			return operand;
		for (; n < columns.n; n++)
			operand.bounds[n] = columns.list[n].bound;
		if (columns.n == 1)
			operand.exprs[0] = expr;
	} else if (make_room(p, &operand, 1)) {
		operand.exprs[0] = expr;
		operand.bounds[0] = bind(p, expr);
	}
	return operand;
}

/* The members at one place of all the operands: if one is a time, the others are made times. */
static void compare_at(const struct place *p, const struct operand *operands, size_t n, size_t at)
{
	bool strict = false, any = false, mixed = false, other = false;

	for (size_t i = 0; i < n; i++) {
		enum pfs_timed_kind bound =
			at < operands[i].n ? operands[i].bounds[at] : PFS_BOUND_MIXED;

		strict |= bound == PFS_BOUND_TIME;
		any |= is_time(bound);
		mixed |= bound == PFS_BOUND_MIXED;
		other |= bound != PFS_BOUND_MIXED && at < operands[i].n && operands[i].exprs[at] &&
			 operands[i].exprs[at]->kind != PFS_EXPR_NULL;
	}
	for (size_t i = 0; i < n && (any || mixed); i++) {
		const struct pfs_expr *expr = at < operands[i].n ? operands[i].exprs[at] : NULL;
		enum pfs_timed_kind bound =
			at < operands[i].n ? operands[i].bounds[at] : PFS_BOUND_MIXED;

		if (is_time(bound))
			continue;
		if (bound == PFS_BOUND_MIXED ? other : any && !expr)
			doubt(p, expr ? expr : operands[i].expr);
		else if (any && expr)
			make_time(p, expr, strict);
	}
}

static void compare(const struct place *p, const struct operand *operands, size_t n)
{
	size_t width = 0;

	for (size_t i = 0; i < n; i++)
		width = PFS_MAX(width, operands[i].n);
	for (size_t at = 0; at < width && !p->t->error; at++)
		compare_at(p, operands, n, at);
}

/* Those of first (may be NULL) and of each step-th item. */
static enum pfs_timed_kind compare_items(const struct place *p, const struct pfs_expr *first,
				    const struct pfs_items *items, size_t step)
{
	enum pfs_timed_kind bound = PFS_BOUND_LITERAL;
	struct operand *operands;
	size_t n = 0, i = 0;

	operands = pfs_arena_get(&p->t->arena, ((items ? items->n : 0) + 1) * sizeof(*operands));
	if (!operands) {
		p->t->error = -ENOMEM;
		return bound;
	}
	if (first)
		operands[n++] = bind_operand(p, first);
	for (const struct pfs_item *item = items ? items->first : NULL; item;
	     item = item->next, i++) {
		if (i % step == 0)
			operands[n++] = bind_operand(p, item->expr);
	}
	compare(p, operands, n);
	for (i = 0; i < n; i++) {
		if (operands[i].n == 1 && is_time(operands[i].bounds[0]))
			bound = bound == PFS_BOUND_TIME ? bound : operands[i].bounds[0];
	}
	return is_time(bound) ? bound : PFS_BOUND_NOT;
}

static bool compares(enum pfs_ast_op op)
{
	return op >= PFS_AST_EQ && op <= PFS_AST_IS_NOT;
}

/* `x IS TRUE` is about no value. */
static bool is_truth(const struct place *p, const struct pfs_expr *expr)
{
	bool is_string;

	if ((expr->op != PFS_AST_IS && expr->op != PFS_AST_IS_NOT) ||
	    expr->right->kind != PFS_EXPR_COLUMN || expr->right->table || expr->right->in_parens)
		return false;
	return pfs_timed_resolve(expr->right, p->scope, &is_string) == PFS_BOUND_NOT &&
	       !is_string &&
	       (pfs_timed_same(expr->right->name->text, expr->right->name->len, "true", 4) ||
		pfs_timed_same(expr->right->name->text, expr->right->name->len, "false", 5));
}

static enum pfs_timed_kind bind_binary(const struct place *p, const struct pfs_expr *expr)
{
	enum pfs_timed_kind left, right;

	if (compares(expr->op) && !is_truth(p, expr)) {
		const struct operand operands[] = {bind_operand(p, expr->left),
						   bind_operand(p, expr->right)};

		compare(p, operands, 2);
		return PFS_BOUND_NOT;
	}
	left = bind(p, expr->left);
	right = bind(p, expr->right);
	if (expr->op == PFS_AST_ADD && is_time(left) != is_time(right))
		return PFS_BOUND_SUM;
	if (expr->op == PFS_AST_SUBTRACT && is_time(left) && !is_time(right))
		return PFS_BOUND_SUM;
	return PFS_BOUND_NOT;
}

static void bind_between(const struct place *p, const struct pfs_expr *expr)
{
	const struct operand operands[] = {bind_operand(p, expr->left),
					   bind_operand(p, expr->right),
					   bind_operand(p, expr->third)};

	compare(p, operands, 3);
}

/* ---- IN ---- */

#define IN_BEGIN "WITH primefs_times(time) AS ("
#define IN_END	 ") SELECT time_of(time%s) FROM primefs_times"

/* The rows of a select, each made a time: [from, to) of the text is the select. */
static void surround_select(const struct place *p, uint32_t from, uint32_t to, bool strict,
			    bool is_table)
{
	char end[80];
	const char *text;

	(void)snprintf(end, sizeof(end), IN_END "%s", strict ? "" : ", 0", is_table ? ")" : "");
	text = pfs_arena_text(&p->t->arena, end, strlen(end));
	if (!text) {
		p->t->error = -ENOMEM;
		return;
	}
	pfs_timed_insert(p->t, from, 0, PFS_INSERT_OPENING,
			 is_table ? "(" IN_BEGIN "SELECT * FROM " : IN_BEGIN);
	pfs_timed_insert(p->t, to, 0, PFS_INSERT_CLOSING, text);
}

/* left IN a select or a table, whose columns are these. */
static void compare_columns(const struct place *p, const struct pfs_expr *expr,
			    const struct operand *left, const struct pfs_timed_columns *columns,
			    uint32_t from, uint32_t to)
{
	struct operand right = {.expr = expr};

	if (columns->n == 1 && left->n == 1 && is_time(left->bounds[0]) &&
	    (columns->list[0].bound == PFS_BOUND_NOT ||
	     columns->list[0].bound == PFS_BOUND_LITERAL)) {
		surround_select(p, from, to, left->bounds[0] == PFS_BOUND_TIME,
				expr->kind == PFS_EXPR_IN_TABLE);
		return;
	}
	if (!make_room(p, &right, columns->n))
		return;
	for (size_t i = 0; i < columns->n; i++)
		right.bounds[i] = columns->list[i].bound;
	compare(p, (const struct operand[]){*left, right}, 2);
}

static void bind_in_select(const struct place *p, const struct pfs_expr *expr)
{
	struct operand left = bind_operand(p, expr->left);
	struct pfs_timed_columns columns = pfs_timed_select(p->t, expr->select, p->scope, p->ctes);
	const struct pfs_select *select = expr->select;
	uint32_t from = select->span.at;

	if (select->with) { /* which its span leaves out */
		struct pfs_token token = {.at = expr->op_span.at, .len = expr->op_span.len};

		do
			token = pfs_token_next(p->t->text, select->span.at, token.at + token.len);
		while (token.kind != PFS_TOKEN_OPEN && token.kind != PFS_TOKEN_END);
		from = (uint32_t)(token.at + token.len);
	}
	compare_columns(p, expr, &left, &columns, from, select->span.at + select->span.len);
}

static void bind_in_table(const struct place *p, const struct pfs_expr *expr)
{
	struct operand left = bind_operand(p, expr->left);
	const struct pfs_name *first = expr->schema ? expr->schema : expr->name;
	struct pfs_timed_columns all = {.n = 0}, columns = {.n = 0};

	pfs_timed_items(p->t, expr->items, p->scope, p->ctes);
	pfs_timed_table(p->t, &all, expr->schema, expr->name, p->ctes);
	pfs_timed_add_columns(p->t, &columns, &all, false);
	compare_columns(p, expr, &left, &columns, first->span.at, expr->span.at + expr->span.len);
}

/* ---- the rest ---- */

static enum pfs_timed_kind bind_case(const struct place *p, const struct pfs_expr *expr)
{
	enum pfs_timed_kind bound = expr->right ? bind(p, expr->right) : PFS_BOUND_LITERAL;
	size_t i = 0;

	if (expr->left)
		(void)compare_items(p, expr->left, expr->items, 2);
	for (const struct pfs_item *item = expr->items->first; item; item = item->next, i++) {
		if (i % 2)
			bound = pfs_bound_either(bound, bind(p, item->expr));
		else if (!expr->left)
			(void)bind(p, item->expr);
	}
	return bound;
}

enum call { OTHER, MAKES, COMPARES, FIRST, CHOOSES, CHOOSES_AFTER };

static enum call call_of(const struct pfs_expr *expr)
{
	static const struct {
		const char *name;
		enum call call;
	} calls[] = {
		{"seconds", MAKES},    {"time_of", MAKES},
		{"max", COMPARES},     {"min", COMPARES},      {"nullif", COMPARES},
		{"avg", FIRST},	       {"lag", FIRST},	       {"lead", FIRST},
		{"nth_value", FIRST},  {"first_value", FIRST}, {"last_value", FIRST},
		{"likely", FIRST},     {"unlikely", FIRST},    {"likelihood", FIRST},
		{"coalesce", CHOOSES}, {"ifnull", CHOOSES},    {"iif", CHOOSES_AFTER},
		{"if", CHOOSES_AFTER},
	};

	for (size_t i = 0; i < PFS_COUNT(calls) && expr->items; i++) {
		if (pfs_timed_same(expr->name->text, expr->name->len, calls[i].name,
				   strlen(calls[i].name)))
			return calls[i].call;
	}
	return OTHER;
}

/* SQLite's functions of dates take seconds or days: of a time they make NULL. */
static void check_dates(const struct place *p, const struct pfs_expr *call,
			const struct pfs_expr *argument, enum pfs_timed_kind bound)
{
	static const char *const names[] = {"date",	 "time",     "datetime", "julianday",
					    "unixepoch", "strftime", "timediff"};

	for (size_t i = 0; i < PFS_COUNT(names) && bound == PFS_BOUND_TIME; i++) {
		if (pfs_timed_same(call->name->text, call->name->len, names[i], strlen(names[i])))
			pfs_timed_doubt(
				p->t, argument->span.at,
				"times here are nanoseconds, and %s takes seconds; write %.*s / "
				"1000000000, 'unixepoch'",
				names[i], (int)PFS_MIN(argument->span.len, 60),
				p->t->text + argument->span.at);
	}
}

static enum pfs_timed_kind bind_call(const struct place *p, const struct pfs_expr *expr)
{
	enum call call = call_of(expr);
	enum pfs_timed_kind bound = PFS_BOUND_NOT, either = PFS_BOUND_LITERAL;
	size_t i = 0;

	pfs_timed_items(p->t, expr->over, p->scope, p->ctes);
	(void)bind(p, expr->left);
	if (call == COMPARES)
		return compare_items(p, NULL, expr->items, 1);
	for (const struct pfs_item *item = expr->items ? expr->items->first : NULL; item;
	     item = item->next, i++) {
		enum pfs_timed_kind one = bind(p, item->expr);

		check_dates(p, expr, item->expr, one);
		if (call == CHOOSES || (call == CHOOSES_AFTER && i))
			either = pfs_bound_either(either, one);
		else if (call == FIRST && i == 0)
			bound = one;
	}
	if (call == MAKES)
		return PFS_BOUND_TIME;
	return call == CHOOSES || call == CHOOSES_AFTER ? either : bound;
}

/* LIKE a date, or a year. */
static bool is_like_date(const struct pfs_name *pattern)
{
	const char *text = pattern->text;

	return strpbrk(text, "-:") || ((memcmp(text, "19", 2) == 0 || memcmp(text, "20", 2) == 0) &&
				       strspn(text, "0123456789") == 4 && text[4] &&
				       strspn(text + 4, "%*") == strlen(text + 4));
}

/* Binds an expression that has no more than its operands. */
static enum pfs_timed_kind bind_plain(const struct place *p, const struct pfs_expr *expr)
{
	enum pfs_timed_kind left = bind(p, expr->left);

	if (expr->kind == PFS_EXPR_LIKE && left == PFS_BOUND_TIME &&
	    expr->right->kind == PFS_EXPR_STRING && is_like_date(expr->right->name))
		pfs_timed_doubt(
			p->t, expr->right->span.at,
			"times here are numbers, in which this is not found; write x >= '2024-01-01' AND "
			"x < '2025-01-01'");
	(void)bind(p, expr->right);
	(void)bind(p, expr->third);
	if (expr->kind == PFS_EXPR_COLLATE ||
	    (expr->kind == PFS_EXPR_UNARY && expr->op == PFS_AST_PLUS))
		return left;
	if (expr->kind == PFS_EXPR_UNARY && expr->op == PFS_AST_NEGATE && left == PFS_BOUND_LITERAL)
		return left;
	return PFS_BOUND_NOT;
}

static enum pfs_timed_kind bind_select_value(const struct place *p, const struct pfs_expr *expr)
{
	struct pfs_timed_columns columns = pfs_timed_select(p->t, expr->select, p->scope, p->ctes);

	return expr->kind == PFS_EXPR_SELECT && columns.n == 1 ? columns.list[0].bound
							       : PFS_BOUND_NOT;
}

enum pfs_timed_kind pfs_timed_expr(struct pfs_timed *t, const struct pfs_expr *expr,
			      const struct pfs_timed_scope *scope, struct pfs_timed_ctes *ctes)
{
	const struct place p = {t, scope, ctes};
	bool is_string;

	if (!expr || t->error)
		return PFS_BOUND_NOT;
	switch (expr->kind) {
	case PFS_EXPR_NULL:
	case PFS_EXPR_INTEGER:
	case PFS_EXPR_REAL:
		return PFS_BOUND_LITERAL;
	case PFS_EXPR_COLUMN:
		return pfs_timed_resolve(expr, scope, &is_string);
	case PFS_EXPR_BINARY:
		return bind_binary(&p, expr);
	case PFS_EXPR_BETWEEN:
		bind_between(&p, expr);
		return PFS_BOUND_NOT;
	case PFS_EXPR_IN_LIST:
		(void)compare_items(&p, expr->left, expr->items, 1);
		return PFS_BOUND_NOT;
	case PFS_EXPR_IN_SELECT:
		bind_in_select(&p, expr);
		return PFS_BOUND_NOT;
	case PFS_EXPR_IN_TABLE:
		bind_in_table(&p, expr);
		return PFS_BOUND_NOT;
	case PFS_EXPR_CASE:
		return bind_case(&p, expr);
	case PFS_EXPR_CALL:
		return bind_call(&p, expr);
	case PFS_EXPR_SELECT:
	case PFS_EXPR_EXISTS:
		return bind_select_value(&p, expr);
	case PFS_EXPR_ROW:
		pfs_timed_items(t, expr->items, scope, ctes);
		return PFS_BOUND_NOT;
	default:
		return bind_plain(&p, expr);
	}
}

void pfs_timed_items(struct pfs_timed *t, const struct pfs_items *items,
		     const struct pfs_timed_scope *scope, struct pfs_timed_ctes *ctes)
{
	for (const struct pfs_item *item = items ? items->first : NULL; item; item = item->next)
		(void)pfs_timed_expr(t, item->expr, scope, ctes);
}

void pfs_timed_set(struct pfs_timed *t, const struct pfs_timed_columns *columns,
		   const struct pfs_name *column, const struct pfs_expr *value,
		   enum pfs_timed_kind bound)
{
	const struct place p = {t, NULL, NULL};
	const struct pfs_timed_column *to =
		column ? pfs_timed_find_column(columns, column->text, column->len) : NULL;

	if (to && to->bound == PFS_BOUND_TIME &&
	    (bound == PFS_BOUND_NOT || bound == PFS_BOUND_LITERAL))
		make_time(&p, value, true);
}
