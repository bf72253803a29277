/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/lift.h"

#include <string.h>

struct pfs_expr *pfs_lift_expr(struct pfs_binder *binder, enum pfs_expr_kind kind)
{
	struct pfs_expr *expr = pfs_bind_get(binder, sizeof(*expr));

	if (expr)
		expr->kind = kind;
	return expr;
}

struct pfs_expr *pfs_lift_step(struct pfs_binder *binder, enum pfs_ast_op op, struct pfs_expr *a,
			       struct pfs_expr *b)
{
	struct pfs_expr *expr = a && b ? pfs_lift_expr(binder, PFS_EXPR_BINARY) : NULL;

	if (!expr)
		return NULL;
	expr->op = op;
	expr->left = a;
	expr->right = b;
	return expr;
}

void pfs_lift_and(struct pfs_binder *binder, struct pfs_expr **all, struct pfs_expr *one)
{
	*all = *all ? pfs_lift_step(binder, PFS_AST_AND, *all, one) : one;
}

struct pfs_expr *pfs_lift_is_null(struct pfs_binder *binder, struct pfs_expr *expr, bool negated)
{
	struct pfs_expr *is = expr ? pfs_lift_expr(binder, PFS_EXPR_IS_NULL) : NULL;

	if (!is)
		return NULL;
	is->left = expr;
	is->negated = negated;
	return is;
}

static struct pfs_name *name_of(struct pfs_binder *binder, const char *text)
{
	struct pfs_name *name = pfs_bind_get(binder, sizeof(*name));

	if (name)
		*name = (struct pfs_name){.text = text, .len = (uint32_t)strlen(text)};
	return name;
}

struct pfs_expr *pfs_lift_number(struct pfs_binder *binder, enum pfs_expr_kind kind,
				 const char *digits)
{
	struct pfs_expr *expr = pfs_lift_expr(binder, kind);

	if (expr)
		expr->name = name_of(binder, digits);
	return expr;
}

struct pfs_expr *pfs_lift_call(struct pfs_binder *binder, const char *name, struct pfs_expr *arg)
{
	struct pfs_expr *expr = pfs_lift_expr(binder, PFS_EXPR_CALL);

	if (!expr)
		return NULL;
	expr->name = name_of(binder, name);
	expr->is_star = !arg;
	if (arg)
		pfs_lift_add(binder, &expr->items, arg);
	return expr;
}

void pfs_lift_add(struct pfs_binder *binder, struct pfs_items **items, struct pfs_expr *expr)
{
	struct pfs_item *item = pfs_bind_get(binder, sizeof(*item));

	if (!*items)
		*items = pfs_bind_get(binder, sizeof(**items));
	if (!item || !*items)
		return;
	item->expr = expr;
	if ((*items)->last)
		(*items)->last->next = item;
	else
		(*items)->first = item;
	(*items)->last = item;
	(*items)->n++;
}
