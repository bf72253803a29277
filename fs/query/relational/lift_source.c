/* SPDX-License-Identifier: MIT */
/* A sub-select as a source: keys that tie it to the SELECT around it, and names that no statement
 * can have. */
#include "fs/query/relational/lift.h"

#include <stdio.h>
#include <string.h>

#include "fs/query/relational/sidetable.h"

#define KEYS_MAX 8

/* Whose columns an expression names, or-ed. */
enum { OWN = 1, OUTER = 2 };

static struct pfs_name own_name(struct pfs_binder *binder, const char *what, size_t number)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "\1%s %zu", what, number);
	return (struct pfs_name){.text = pfs_bind_keep(binder, text),
				 .len = (uint32_t)strlen(text)};
}

/* ---- whose a name is ---- */

static bool side_has(struct pfs_binder *binder, const char *table, const struct pfs_name *name)
{
	const struct pfs_side_table *side;
	bool has = false;

	if (pfs_side_table_get(&side, binder->query, table))
		return true; /* what cannot be looked at is refused later on */
	for (size_t i = 0; i < side->table.n_columns; i++)
		has |= pfs_name_is(name, side->columns[i].name);
	pfs_side_table_put(binder->query->queries, side);
	return has;
}

static bool is_nodes(const struct pfs_binder *binder, const struct pfs_from *from)
{
	const struct pfs_bind_scope *scope;

	return from->kind == PFS_FROM_TABLE && pfs_name_is(from->name, pfs_nodes_source.name) &&
	       !pfs_bind_find_cte(binder, &scope, from->name);
}

static const struct pfs_node_column *node_column(const struct pfs_binder *binder,
						 const struct pfs_name *name)
{
	const struct pfs_node_table *table = binder->query->connection->table;

	for (size_t i = 0; i < table->n; i++) {
		if (pfs_name_is(name, table->columns[i].name))
			return &table->columns[i];
	}
	return NULL;
}

/* Returns true if a source has a column of that name; a SELECT is taken to have it. */
static bool has_column(struct pfs_binder *binder, const struct pfs_from *from,
		       const struct pfs_name *name)
{
	const struct pfs_bind_scope *scope;

	if (is_nodes(binder, from))
		return node_column(binder, name) || pfs_name_is(name, "rowid") ||
		       pfs_name_is(name, "oid") || pfs_name_is(name, "_rowid_");
	if (from->kind != PFS_FROM_TABLE || pfs_bind_find_cte(binder, &scope, from->name))
		return true;
	return side_has(binder, from->name->text, name);
}

/* The source that a column is of; NULL: none of these. */
static const struct pfs_from *source_of(struct pfs_binder *binder, const struct pfs_from *from,
					const struct pfs_expr *column)
{
	for (; from; from = from->next) {
		const struct pfs_name *name = from->alias ? from->alias : from->name;

		if (column->table ? name && pfs_name_is(column->table, name->text)
				  : has_column(binder, from, column->name))
			return from;
	}
	return NULL;
}

bool pfs_lift_is_never_null(struct pfs_binder *binder, const struct pfs_from *from,
			    const struct pfs_expr *expr)
{
	const struct pfs_from *source =
		expr->kind == PFS_EXPR_COLUMN ? source_of(binder, from, expr) : NULL;
	const struct pfs_node_column *column = source && !source->join && is_nodes(binder, source)
						       ? node_column(binder, expr->name)
						       : NULL;

	return column && strstr(column->declared, "NOT NULL");
}

/* SQLite looks for a name among the sub-select's results before it looks outside; what is meant so
 * is not bound. */
static bool is_alias(const struct pfs_items *results, const struct pfs_expr *expr)
{
	for (const struct pfs_item *item = results ? results->first : NULL; item;
	     item = item->next) {
		if (!expr->table && item->alias && pfs_name_is(expr->name, item->alias->text))
			return true;
	}
	return false;
}

/* Those of a sub-select within are its own affair: what it does not find there is refused. */
static unsigned names_of(const struct pfs_lifted *lifted, const struct pfs_expr *expr)
{
	unsigned names;

	if (!expr)
		return 0;
	if (expr->kind == PFS_EXPR_COLUMN)
		return source_of(lifted->lift->binder, lifted->core->from, expr) ||
				       is_alias(lifted->core->results, expr)
			       ? OWN
			       : OUTER;
	names = names_of(lifted, expr->left) | names_of(lifted, expr->right) |
		names_of(lifted, expr->third);
	for (const struct pfs_item *item = expr->items ? expr->items->first : NULL; item;
	     item = item->next)
		names |= names_of(lifted, item->expr);
	return names;
}

bool pfs_lifted_names_outer(const struct pfs_lifted *lifted, const struct pfs_expr *expr)
{
	return names_of(lifted, expr) & OUTER;
}

/* ---- keys ---- */

static struct pfs_expr *column_of(const struct pfs_lifted *lifted,
				  const struct pfs_column_names *name)
{
	struct pfs_expr *expr = name ? pfs_lift_expr(lifted->lift->binder, PFS_EXPR_COLUMN) : NULL;

	if (!expr)
		return NULL;
	expr->table = lifted->alias;
	expr->name = &name->name;
	return expr;
}

struct pfs_expr *pfs_lifted_key(const struct pfs_lifted *lifted)
{
	return column_of(lifted, lifted->names);
}

struct pfs_expr *pfs_lifted_add(struct pfs_lifted *lifted, struct pfs_expr *expr)
{
	struct pfs_binder *binder = lifted->lift->binder;
	struct pfs_column_names *name = pfs_bind_get(binder, sizeof(*name));

	if (!name)
		return NULL;
	name->name = own_name(binder, "column", lifted->results ? lifted->results->n : 0);
	if (lifted->last_name)
		lifted->last_name->next = name;
	else
		lifted->names = name;
	lifted->last_name = name;
	pfs_lift_add(binder, &lifted->results, expr);
	return binder->error ? NULL : column_of(lifted, name);
}

void pfs_lifted_add_key(struct pfs_lifted *lifted, struct pfs_expr *own, struct pfs_expr *outer,
			bool is_outer_first)
{
	struct pfs_binder *binder = lifted->lift->binder;
	struct pfs_expr *column = pfs_lifted_add(lifted, own);

	pfs_lift_and(binder, &lifted->on,
		     is_outer_first ? pfs_lift_step(binder, PFS_AST_EQ, outer, column)
				    : pfs_lift_step(binder, PFS_AST_EQ, column, outer));
}

static bool is_tie(const struct pfs_lifted *lifted, const struct pfs_expr *own,
		   const struct pfs_expr *outer)
{
	return outer->kind == PFS_EXPR_COLUMN && names_of(lifted, outer) == OUTER &&
	       names_of(lifted, own) == OWN;
}

void pfs_lifted_split(struct pfs_lifted *lifted, struct pfs_expr *where)
{
	struct pfs_binder *binder = lifted->lift->binder;

	if (!where || binder->error)
		return;
	if (where->kind == PFS_EXPR_BINARY && where->op == PFS_AST_AND) {
		pfs_lifted_split(lifted, where->left);
		pfs_lifted_split(lifted, where->right);
	} else if (!(names_of(lifted, where) & OUTER)) {
		pfs_lift_and(binder, &lifted->where, where);
	} else if (where->kind != PFS_EXPR_BINARY || where->op != PFS_AST_EQ ||
		   (lifted->results && lifted->results->n == KEYS_MAX)) {
		pfs_bind_refuse(binder, "a sub-select that is tied by more than equalities");
	} else if (is_tie(lifted, where->left, where->right)) {
		pfs_lifted_add_key(lifted, where->left, where->right, false);
	} else if (is_tie(lifted, where->right, where->left)) {
		pfs_lifted_add_key(lifted, where->right, where->left, true);
	} else {
		pfs_bind_refuse(binder, "a sub-select that is tied by more than columns");
	}
}

/* ---- the source ---- */

void pfs_lifted_begin(struct pfs_lifted *lifted, struct pfs_lift *lift, const struct pfs_core *core)
{
	struct pfs_name *alias = pfs_bind_get(lift->binder, sizeof(*alias));

	if (alias)
		*alias = own_name(lift->binder, "sub-select", lift->n);
	*lifted = (struct pfs_lifted){.lift = lift, .core = core, .alias = alias};
}

void pfs_lifted_finish(struct pfs_lifted *lifted, const struct pfs_select *select,
		       const struct pfs_core *core)
{
	struct pfs_lift *lift = lifted->lift;
	struct pfs_from *from = pfs_bind_get(lift->binder, sizeof(*from));
	struct pfs_select *own_select = pfs_bind_get(lift->binder, sizeof(*own_select));
	struct pfs_core *own_core = pfs_bind_get(lift->binder, sizeof(*own_core));

	if (lift->binder->error)
		return;
	*own_core = *core;
	own_core->results = lifted->results;
	own_core->compound = PFS_COMPOUND_NONE;
	own_core->next = NULL;
	*own_select = (struct pfs_select){
		.span = select->span, .first = own_core, .last = own_core, .depth = select->depth};
	*from = (struct pfs_from){.kind = PFS_FROM_SELECT,
				  .join = lifted->on ? PFS_JOINS_LEFT : PFS_JOINS_COMMA,
				  .alias = lifted->alias,
				  .select = own_select,
				  .columns = lifted->names,
				  .on = lifted->on,
				  .is_once = lifted->is_once,
				  .span = select->span};
	lift->last->next = from;
	lift->last = from;
	lift->n++;
}
