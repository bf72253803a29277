/* SPDX-License-Identifier: MIT */
/* Names, lists and expressions. */
#include "fs/query/parse/ast_impl.h"

void pfs_ast_refuse(struct pfs_parser *p, uint32_t at, const char *why)
{
	if (p->error)
		return;
	p->error = -ENOTSUP;
	p->not = (struct pfs_not_taken){why, at};
}

void *pfs_ast_get(struct pfs_parser *p, size_t size)
{
	void *piece;

	if (p->error)
		return NULL;
	piece = pfs_arena_get(&p->arena, size);
	if (!piece)
		p->error = -ENOMEM;
	return piece;
}

uint16_t pfs_ast_depth(struct pfs_parser *p, unsigned deepest)
{
	if (deepest >= PFS_AST_DEPTH_MAX) {
		pfs_ast_refuse(p, p->end, "it is nested too deeply");
		return PFS_AST_DEPTH_MAX;
	}
	return (uint16_t)(deepest + 1);
}

/* ---- names ---- */

static char closing(char c)
{
	switch (c) {
	case '[':
		return ']';
	case '"':
	case '\'':
	case '`':
		return c;
	default:
		return 0;
	}
}

/* A quote inside is written twice. */
static bool fill_name(struct pfs_parser *p, struct pfs_name *name, struct pfs_text_range span)
{
	const char *from = p->sql + span.at;
	char quote = span.len ? closing(*from) : 0, *text = pfs_ast_get(p, span.len + 1);
	uint32_t len = 0;

	if (!text)
		return false;
	name->span = span;
	name->text = text;
	name->quote = quote ? *from : 0;
	for (uint32_t i = quote != 0; i + (quote != 0) < span.len; i++) {
		text[len++] = from[i];
		i += quote && quote != ']' && from[i] == quote;
	}
	name->len = len;
	return true;
}

const struct pfs_name *pfs_ast_name(struct pfs_parser *p, struct pfs_lexeme token)
{
	struct pfs_name *name = pfs_ast_get(p, sizeof(*name));

	return name && fill_name(p, name, token.span) ? name : NULL;
}

const struct pfs_name *pfs_ast_words(struct pfs_parser *p, struct pfs_lexeme words)
{
	struct pfs_name *name = pfs_ast_get(p, sizeof(*name));

	if (!name)
		return NULL;
	name->span = words.span;
	name->len = words.span.len;
	name->text = pfs_arena_text(&p->arena, p->sql + words.span.at, words.span.len);
	if (!name->text)
		p->error = -ENOMEM;
	return name->text ? name : NULL;
}

struct pfs_name_list pfs_ast_names(struct pfs_parser *p, struct pfs_name_list list,
				   struct pfs_lexeme token)
{
	struct pfs_column_names *names = pfs_ast_get(p, sizeof(*names));

	if (!names || !fill_name(p, &names->name, token.span))
		return list;
	if (list.last)
		list.last->next = names;
	else
		list.first = names;
	list.last = names;
	return list;
}

struct pfs_lexeme pfs_ast_to_here(const struct pfs_parser *p, struct pfs_lexeme token)
{
	token.span = pfs_ast_span(p, token.span.at);
	return token;
}

struct pfs_qualified pfs_ast_qualified(struct pfs_parser *p, const struct pfs_lexeme *schema,
				       const struct pfs_lexeme *name)
{
	return (struct pfs_qualified){
		.schema = schema ? pfs_ast_name(p, *schema) : NULL,
		.name = pfs_ast_name(p, *name),
		.at = schema ? schema->span.at : name->span.at,
	};
}

/* ---- lists ---- */

struct pfs_items *pfs_ast_items(struct pfs_parser *p, struct pfs_items *list, struct pfs_item *item)
{
	if (!list)
		list = pfs_ast_get(p, sizeof(*list));
	if (!list || !item)
		return list;
	if (list->last)
		list->last->next = item;
	else
		list->first = item;
	list->last = item;
	list->n++;
	list->depth = (uint16_t)pfs_deeper(list->depth, pfs_depth_of(item->expr));
	return list;
}

struct pfs_items *pfs_ast_joined(struct pfs_parser *p, struct pfs_items *list,
				 struct pfs_items *more)
{
	if (!list || !more || !more->first || p->error)
		return list ? list : more;
	if (list->last)
		list->last->next = more->first;
	else
		list->first = more->first;
	list->last = more->last;
	list->n += more->n;
	list->depth = (uint16_t)pfs_deeper(list->depth, more->depth);
	return list;
}

struct pfs_item *pfs_ast_item(struct pfs_parser *p, struct pfs_expr *expr)
{
	struct pfs_item *item = expr ? pfs_ast_get(p, sizeof(*item)) : NULL;

	if (item) {
		item->expr = expr;
		item->span = expr->span;
	}
	return item;
}

struct pfs_item *pfs_ast_star(struct pfs_parser *p, struct pfs_lexeme first,
			      const struct pfs_lexeme *table)
{
	struct pfs_item *item = pfs_ast_get(p, sizeof(*item));

	if (!item)
		return NULL;
	item->span = pfs_ast_span(p, first.span.at);
	item->table = table ? pfs_ast_name(p, *table) : NULL;
	return item;
}

void pfs_ast_direction(struct pfs_item *item, const struct pfs_expr *expr, bool is_descending,
		       enum pfs_nulls nulls)
{
	if (!item || !expr)
		return;
	item->is_descending = is_descending;
	item->nulls = nulls;
}

/* ---- expressions ---- */

static struct pfs_expr *new_expr(struct pfs_parser *p, enum pfs_expr_kind kind, uint32_t at,
				 unsigned deepest)
{
	uint16_t depth = pfs_ast_depth(p, deepest);
	struct pfs_expr *expr = pfs_ast_get(p, sizeof(*expr));

	if (!expr)
		return NULL;
	expr->kind = kind;
	expr->depth = depth;
	expr->span = pfs_ast_span(p, at);
	return expr;
}

/* An operator of up to three operands, the first of which it begins with. */
static struct pfs_expr *new_operation(struct pfs_parser *p, enum pfs_expr_kind kind,
				      struct pfs_operator op, struct pfs_expr *left,
				      struct pfs_expr *right, struct pfs_expr *third)
{
	unsigned deepest = pfs_deeper(pfs_depth_of(left), pfs_depth_of(right));
	struct pfs_expr *expr;

	expr = left ? new_expr(p, kind, left->span.at, pfs_deeper(deepest, pfs_depth_of(third)))
		    : NULL;
	if (!expr)
		return NULL;
	expr->negated = op.negated;
	expr->op_span = op.token.span;
	expr->left = left;
	expr->right = right;
	expr->third = third;
	return expr;
}

struct pfs_expr *pfs_ast_literal(struct pfs_parser *p, enum pfs_expr_kind kind,
				 struct pfs_lexeme token)
{
	struct pfs_expr *expr = new_expr(p, kind, token.span.at, 0);

	if (!expr || kind == PFS_EXPR_NULL)
		return expr;
	expr->span = token.span;
	if (kind == PFS_EXPR_BLOB) { /* X'..' */
		token.span.at++;
		token.span.len--;
	}
	expr->name = pfs_ast_name(p, token);
	return expr;
}

struct pfs_expr *pfs_ast_column(struct pfs_parser *p, const struct pfs_lexeme *schema,
				const struct pfs_lexeme *table, const struct pfs_lexeme *name)
{
	const struct pfs_lexeme *first = schema ? schema : table ? table : name;
	struct pfs_expr *expr = new_expr(p, PFS_EXPR_COLUMN, first->span.at, 0);

	if (!expr)
		return NULL;
	expr->schema = schema ? pfs_ast_name(p, *schema) : NULL;
	expr->table = table ? pfs_ast_name(p, *table) : NULL;
	expr->name = pfs_ast_name(p, *name);
	return expr;
}

struct pfs_expr *pfs_ast_parens(struct pfs_parser *p, struct pfs_lexeme open, struct pfs_expr *expr)
{
	if (!expr)
		return NULL;
	expr->span = pfs_ast_span(p, open.span.at);
	expr->in_parens = true;
	return expr;
}

struct pfs_expr *pfs_ast_unary(struct pfs_parser *p, enum pfs_ast_op op, struct pfs_lexeme token,
			       struct pfs_expr *operand)
{
	struct pfs_expr *expr;

	expr = new_expr(p, PFS_EXPR_UNARY, token.span.at, pfs_depth_of(operand));
	if (!expr)
		return NULL;
	expr->op = op;
	expr->op_span = token.span;
	expr->left = operand;
	return expr;
}

struct pfs_expr *pfs_ast_binary(struct pfs_parser *p, enum pfs_ast_op op, struct pfs_expr *left,
				struct pfs_lexeme token, struct pfs_expr *right)
{
	struct pfs_expr *expr = new_operation(
		p, PFS_EXPR_BINARY, (struct pfs_operator){token, false}, left, right, NULL);

	if (expr)
		expr->op = op;
	return expr;
}

struct pfs_expr *pfs_ast_named(struct pfs_parser *p, enum pfs_expr_kind kind, struct pfs_lexeme op,
			       struct pfs_expr *operand, struct pfs_lexeme name)
{
	struct pfs_expr *expr =
		new_operation(p, kind, (struct pfs_operator){op, false}, operand, NULL, NULL);

	if (!expr)
		return NULL;
	if (kind == PFS_EXPR_CAST)
		expr->span = pfs_ast_span(p, op.span.at);
	expr->name = kind == PFS_EXPR_CAST ? pfs_ast_words(p, name) : pfs_ast_name(p, name);
	return expr;
}

struct pfs_expr *pfs_ast_like(struct pfs_parser *p, struct pfs_expr *left, struct pfs_operator op,
			      struct pfs_expr *right, struct pfs_expr *escape)
{
	struct pfs_expr *expr = new_operation(p, PFS_EXPR_LIKE, op, left, right, escape);

	if (!expr)
		return NULL;
	switch (p->sql[op.token.span.at] | 0x20) {
	case 'l':
		expr->op = PFS_AST_LIKE;
		break;
	case 'g':
		expr->op = PFS_AST_GLOB;
		break;
	case 'r':
		expr->op = PFS_AST_REGEXP;
		break;
	default:
		expr->op = PFS_AST_MATCH;
	}
	return expr;
}

struct pfs_expr *pfs_ast_is_null(struct pfs_parser *p, struct pfs_expr *operand,
				 struct pfs_lexeme op, bool negated)
{
	return new_operation(p, PFS_EXPR_IS_NULL, (struct pfs_operator){op, negated}, operand, NULL,
			     NULL);
}

struct pfs_expr *pfs_ast_between(struct pfs_parser *p, struct pfs_expr *left,
				 struct pfs_operator op, struct pfs_expr *right,
				 struct pfs_expr *third)
{
	return new_operation(p, PFS_EXPR_BETWEEN, op, left, right, third);
}

struct pfs_expr *pfs_ast_in(struct pfs_parser *p, struct pfs_expr *left, struct pfs_operator op,
			    struct pfs_items *items, struct pfs_select *select)
{
	enum pfs_expr_kind kind = select ? PFS_EXPR_IN_SELECT : PFS_EXPR_IN_LIST;
	struct pfs_expr *expr = new_operation(p, kind, op, left, NULL, NULL);

	if (!expr)
		return NULL;
	expr->items = items;
	expr->select = select;
	expr->depth = pfs_ast_depth(
		p, pfs_deeper(expr->depth - 1U,
			      pfs_deeper(pfs_depth_of_items(items), pfs_depth_of_select(select))));
	return expr;
}

struct pfs_expr *pfs_ast_in_table(struct pfs_parser *p, struct pfs_expr *left,
				  struct pfs_operator op, struct pfs_qualified table,
				  struct pfs_items *args)
{
	struct pfs_expr *expr = pfs_ast_in(p, left, op, args, NULL);

	if (!expr)
		return NULL;
	expr->kind = PFS_EXPR_IN_TABLE;
	expr->schema = table.schema;
	expr->name = table.name;
	return expr;
}

struct pfs_expr *pfs_ast_select_value(struct pfs_parser *p, enum pfs_expr_kind kind,
				      struct pfs_lexeme first, struct pfs_select *select)
{
	struct pfs_expr *expr = new_expr(p, kind, first.span.at, pfs_depth_of_select(select));

	if (expr) {
		expr->op_span = first.span;
		expr->select = select;
	}
	return expr;
}

struct pfs_items *pfs_ast_when(struct pfs_parser *p, struct pfs_items *list, struct pfs_expr *when,
			       struct pfs_expr *then)
{
	list = pfs_ast_items(p, list, pfs_ast_item(p, when));
	return pfs_ast_items(p, list, pfs_ast_item(p, then));
}

struct pfs_expr *pfs_ast_case(struct pfs_parser *p, struct pfs_lexeme first,
			      struct pfs_expr *operand, struct pfs_items *whens,
			      struct pfs_expr *otherwise)
{
	unsigned deepest = pfs_deeper(pfs_depth_of(operand), pfs_depth_of(otherwise));
	struct pfs_expr *expr;

	expr = new_expr(p, PFS_EXPR_CASE, first.span.at,
			pfs_deeper(deepest, pfs_depth_of_items(whens)));
	if (!expr)
		return NULL;
	expr->op_span = first.span;
	expr->left = operand;
	expr->items = whens;
	expr->right = otherwise;
	return expr;
}

struct pfs_expr *pfs_ast_row(struct pfs_parser *p, struct pfs_lexeme open, struct pfs_items *items,
			     struct pfs_expr *last)
{
	struct pfs_expr *expr;

	items = pfs_ast_items(p, items, pfs_ast_item(p, last));
	expr = new_expr(p, PFS_EXPR_ROW, open.span.at, pfs_depth_of_items(items));
	if (expr)
		expr->items = items;
	return expr;
}

struct pfs_expr *pfs_ast_call(struct pfs_parser *p, struct pfs_lexeme name, bool is_distinct,
			      struct pfs_items *items)
{
	struct pfs_expr *expr = new_expr(p, PFS_EXPR_CALL, name.span.at, pfs_depth_of_items(items));

	if (!expr)
		return NULL;
	expr->name = pfs_ast_name(p, name);
	expr->op_span = name.span;
	expr->is_distinct = is_distinct;
	expr->items = items;
	return expr;
}

struct pfs_expr *pfs_ast_star_call(struct pfs_parser *p, struct pfs_lexeme name)
{
	struct pfs_expr *expr = pfs_ast_call(p, name, false, NULL);

	if (expr)
		expr->is_star = true;
	return expr;
}

/* More than can be counted are taken by nobody. */
struct pfs_over pfs_ast_over(struct pfs_parser *p, bool is_named, struct pfs_items *partition,
			     struct pfs_items *order, struct pfs_over frame)
{
	size_t n_partition = partition ? partition->n : 0, n_order = order ? order->n : 0;

	return (struct pfs_over){
		.items = pfs_ast_joined(p, pfs_ast_joined(p, partition, order), frame.items),
		.n_partition = (uint16_t)n_partition,
		.n_order = (uint16_t)n_order,
		.is_plain = !is_named && frame.is_plain && n_partition <= UINT16_MAX &&
			    n_order <= UINT16_MAX,
	};
}

void pfs_ast_filter(struct pfs_parser *p, struct pfs_expr *call, struct pfs_filter_over rest)
{
	unsigned deepest =
		pfs_deeper(pfs_depth_of(rest.filter), pfs_depth_of_items(rest.over.items));

	if (!call)
		return;
	call->left = rest.filter;
	call->over = rest.over.items;
	call->n_partition = rest.over.n_partition;
	call->n_order = rest.over.n_order;
	call->is_plain_window = rest.over.is_plain;
	call->is_window = rest.is_window;
	call->span = pfs_ast_span(p, call->span.at);
	call->depth = pfs_ast_depth(p, pfs_deeper(call->depth - 1U, deepest));
}
