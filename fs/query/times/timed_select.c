/* SPDX-License-Identifier: MIT */
/* Selects, and what their columns are. */
#include "fs/query/times/timed_impl.h"

#include <errno.h>
#include <stdio.h>

#define SELECTS_MAX 300 /* inside of one another, by way of names, too */

enum pfs_timed_kind pfs_bound_either(enum pfs_timed_kind a, enum pfs_timed_kind b)
{
	if (a == b || b == PFS_BOUND_LITERAL)
		return a;
	if (a == PFS_BOUND_LITERAL)
		return b;
	if ((a == PFS_BOUND_TIME && b == PFS_BOUND_SUM) ||
	    (a == PFS_BOUND_SUM && b == PFS_BOUND_TIME))
		return PFS_BOUND_SUM;
	return PFS_BOUND_MIXED;
}

/* ---- CTEs ---- */

struct pfs_timed_ctes *pfs_timed_with(struct pfs_timed *t, const struct pfs_with *with,
				      const struct pfs_timed_scope *scope,
				      struct pfs_timed_ctes *outer)
{
	struct pfs_timed_ctes *ctes;
	size_t n = 0;

	if (!with)
		return outer;
	for (const struct pfs_cte *cte = with->first; cte; cte = cte->next)
		n++;
	ctes = pfs_arena_get(&t->arena, sizeof(*ctes));
	if (ctes)
		ctes->states = pfs_arena_get(&t->arena, n * sizeof(*ctes->states));
	if (!ctes || !ctes->states) {
		t->error = -ENOMEM;
		return outer;
	}
	ctes->with = with;
	ctes->scope = scope;
	ctes->outer = outer;
	n = 0;
	for (const struct pfs_cte *cte = with->first; cte; cte = cte->next, n++) {
		if (!ctes->states[n].is_begun)
			pfs_timed_cte(t, ctes, cte, &ctes->states[n]);
	}
	return ctes;
}

static void rename_columns(struct pfs_timed_columns *columns, const struct pfs_column_names *names)
{
	for (size_t i = 0; i < columns->n && names; i++, names = names->next) {
		columns->list[i].name = names->name.text;
		columns->list[i].len = names->name.len;
	}
}

/* ---- FROM ---- */

static void add_join(struct pfs_timed *t, struct pfs_timed_scope *scope,
		     const struct pfs_from *from, struct pfs_timed_ctes *ctes)
{
	struct pfs_timed_scope inner = {.outer = scope->outer};
	struct pfs_timed_source *all;

	pfs_timed_from(t, &inner, from->inner, ctes);
	if (!from->alias) {
		if (scope->last)
			scope->last->next = inner.first;
		else
			scope->first = inner.first;
		scope->last = inner.last ? inner.last : scope->last;
		return;
	}
	all = pfs_timed_add_source(t, scope, from->alias);
	for (const struct pfs_timed_source *s = inner.first; s && all; s = s->next)
		pfs_timed_add_columns(t, &all->columns, &s->columns, false);
}

static void add_source(struct pfs_timed *t, struct pfs_timed_scope *scope,
		       const struct pfs_from *from, struct pfs_timed_ctes *ctes)
{
	const struct pfs_name *name = from->alias ? from->alias : from->name;
	struct pfs_timed_source *source;

	if (from->kind == PFS_FROM_JOIN) {
		add_join(t, scope, from, ctes);
		return;
	}
	source = pfs_timed_add_source(t, scope, name);
	if (!source)
		return;
	if (from->kind == PFS_FROM_SELECT)
		source->columns = pfs_timed_select(t, from->select, scope->outer, ctes);
	else
		pfs_timed_table(t, &source->columns, from->schema, from->name, ctes);
}

/* ON may name what comes later. */
void pfs_timed_from(struct pfs_timed *t, struct pfs_timed_scope *scope, const struct pfs_from *from,
		    struct pfs_timed_ctes *ctes)
{
	for (const struct pfs_from *f = from; f && !t->error; f = f->next) {
		add_source(t, scope, f, ctes);
		pfs_timed_merge(t, scope, f);
	}
	for (const struct pfs_from *f = from; f && !t->error; f = f->next) {
		pfs_timed_items(t, f->args, scope, ctes);
		(void)pfs_timed_expr(t, f->on, scope, ctes);
	}
}

/* ---- results ---- */

static void add_star(struct pfs_timed *t, struct pfs_timed_columns *columns,
		     const struct pfs_timed_scope *scope, const struct pfs_name *table)
{
	for (const struct pfs_timed_source *s = scope->first; s; s = s->next) {
		if (!table || (s->name && pfs_timed_same(s->name->text, s->name->len, table->text,
							 table->len)))
			pfs_timed_add_columns(t, columns, &s->columns, false);
	}
}

/* A result without a name has that of its column, or what is written. */
static struct pfs_timed_column name_result(const struct pfs_timed *t, const struct pfs_item *item)
{
	const struct pfs_expr *expr = item->expr;
	const struct pfs_name *name = item->alias;

	if (!name && expr->kind == PFS_EXPR_COLUMN)
		name = expr->name;
	if (name)
		return (struct pfs_timed_column){.name = name->text, .len = name->len};
	return (struct pfs_timed_column){.name = t->text + item->span.at, .len = item->span.len};
}

/* Names columns as SQLite does: of those of one name the second is NAME:1, and so on. */
static void tell_apart(struct pfs_timed *t, struct pfs_timed_columns *columns)
{
	for (size_t i = columns->n; i-- > 1;) {
		struct pfs_timed_column *column = &columns->list[i];
		unsigned same = 0;
		char name[128];

		for (size_t j = 0; j < i && column->bound >= PFS_BOUND_TIME; j++)
			same += pfs_timed_same(columns->list[j].name, columns->list[j].len,
					       column->name, column->len) != 0;
		if (!same || column->len > sizeof(name) - 16)
			continue;
		column->len = (uint32_t)snprintf(name, sizeof(name), "%.*s:%u", (int)column->len,
						 column->name, same);
		column->name = pfs_arena_text(&t->arena, name, column->len);
		if (!column->name) {
			t->error = -ENOMEM;
			return;
		}
	}
}

static struct pfs_timed_columns bind_results(struct pfs_timed *t, const struct pfs_core *core,
					     const struct pfs_timed_scope *scope,
					     struct pfs_timed_ctes *ctes)
{
	struct pfs_timed_columns columns = {.n = 0};

	for (const struct pfs_item *item = core->results->first; item && !t->error;
	     item = item->next) {
		struct pfs_timed_column column;

		if (!item->expr) {
			add_star(t, &columns, scope, item->table);
			continue;
		}
		column = name_result(t, item);
		column.bound = pfs_timed_expr(t, item->expr, scope, ctes);
		pfs_timed_add_column(t, &columns, &column);
	}
	tell_apart(t, &columns);
	return columns;
}

static struct pfs_timed_columns bind_rows(struct pfs_timed *t, const struct pfs_core *core,
					  const struct pfs_timed_scope *outer,
					  struct pfs_timed_ctes *ctes)
{
	struct pfs_timed_columns columns = {.n = 0};

	for (const struct pfs_items *row = core->rows; row && !t->error; row = row->next) {
		size_t n = 0;

		for (const struct pfs_item *item = row->first; item; item = item->next, n++) {
			struct pfs_timed_column column = {
				.bound = pfs_timed_expr(t, item->expr, outer, ctes)};
			char name[32];

			if (row != core->rows) {
				if (n < columns.n)
					columns.list[n].bound = pfs_bound_either(
						columns.list[n].bound, column.bound);
				continue;
			}
			column.len = (uint32_t)snprintf(name, sizeof(name), "column%zu", n + 1);
			column.name = pfs_arena_text(&t->arena, name, column.len);
			pfs_timed_add_column(t, &columns, &column);
		}
	}
	return columns;
}

/* *scope: what ORDER BY sees; its aliases are not set. */
static struct pfs_timed_columns bind_core(struct pfs_timed *t, const struct pfs_core *core,
					  struct pfs_timed_scope *scope,
					  struct pfs_timed_ctes *ctes)
{
	struct pfs_timed_columns columns;

	if (!core->results)
		return bind_rows(t, core, scope->outer, ctes);
	pfs_timed_from(t, scope, core->from, ctes);
	columns = bind_results(t, core, scope, ctes);
	scope->aliases = &columns;
	(void)pfs_timed_expr(t, core->where, scope, ctes);
	pfs_timed_items(t, core->group, scope, ctes);
	(void)pfs_timed_expr(t, core->having, scope, ctes);
	pfs_timed_items(t, core->windows, scope, ctes);
	scope->aliases = NULL;
	return columns;
}

/* The columns of a compound, once more of its selects are known. */
static void join_columns(struct pfs_timed_columns *columns, const struct pfs_timed_columns *more,
			 enum pfs_compound compound)
{
	if (compound == PFS_EXCEPT || compound == PFS_INTERSECT)
		return;
	for (size_t i = 0; i < columns->n && i < more->n; i++)
		columns->list[i].bound =
			pfs_bound_either(columns->list[i].bound, more->list[i].bound);
}

static void begin_recursion(struct pfs_timed *t, struct pfs_timed_cte *cte,
			    const struct pfs_timed_columns *columns)
{
	struct pfs_timed_columns given = cte->columns;

	cte->columns = (struct pfs_timed_columns){.n = 0};
	pfs_timed_add_columns(t, &cte->columns, columns, true);
	for (size_t i = 0; i < given.n && i < cte->columns.n; i++) {
		cte->columns.list[i].name = given.list[i].name;
		cte->columns.list[i].len = given.list[i].len;
	}
}

/* recursive: the CTE that this is, if it is one, which may name itself once its first select is
 * known. */
static struct pfs_timed_columns bind_cores(struct pfs_timed *t, const struct pfs_select *select,
					   const struct pfs_timed_scope *outer,
					   struct pfs_timed_ctes *ctes,
					   struct pfs_timed_cte *recursive)
{
	struct pfs_timed_columns columns = {.n = 0}, more;
	struct pfs_timed_scope scope = {.outer = outer};

	for (const struct pfs_core *core = select->first; core && !t->error; core = core->next) {
		scope = (struct pfs_timed_scope){.outer = outer};
		more = bind_core(t, core, &scope, ctes);
		if (core == select->first)
			columns = more;
		else
			join_columns(&columns, &more, core->compound);
		if (core == select->first && recursive)
			begin_recursion(t, recursive, &columns);
	}
	scope.aliases = &columns;
	if (select->first == select->last) /* a compound is ordered by its columns alone */
		pfs_timed_items(t, select->order, &scope, ctes);
	(void)pfs_timed_expr(t, select->limit, outer, ctes);
	(void)pfs_timed_expr(t, select->offset, outer, ctes);
	return columns;
}

static bool enter(struct pfs_timed *t, const struct pfs_select *select)
{
	if (t->error)
		return false;
	if (t->depth == SELECTS_MAX) {
		pfs_timed_doubt(t, select->span.at, "its selects lie too deep in one another");
		return false;
	}
	t->depth++;
	return true;
}

struct pfs_timed_columns pfs_timed_select(struct pfs_timed *t, const struct pfs_select *select,
					  const struct pfs_timed_scope *scope,
					  struct pfs_timed_ctes *ctes)
{
	struct pfs_timed_columns columns = {.n = 0};

	if (!enter(t, select))
		return columns;
	ctes = pfs_timed_with(t, select->with, scope, ctes);
	columns = bind_cores(t, select, scope, ctes, NULL);
	t->depth--;
	return columns;
}

void pfs_timed_cte(struct pfs_timed *t, struct pfs_timed_ctes *ctes, const struct pfs_cte *cte,
		   struct pfs_timed_cte *state)
{
	struct pfs_timed_ctes *inner;

	state->is_begun = true;
	if (!enter(t, cte->select))
		return;
	for (const struct pfs_column_names *name = cte->columns; name; name = name->next)
		pfs_timed_add_column(t, &state->columns,
				     &(struct pfs_timed_column){.name = name->name.text,
								.len = name->name.len,
								.bound = PFS_BOUND_MIXED});
	inner = pfs_timed_with(t, cte->select->with, ctes->scope, ctes);
	state->columns = bind_cores(t, cte->select, ctes->scope, inner, state);
	rename_columns(&state->columns, cte->columns);
	t->depth--;
}
