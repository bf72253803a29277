/* SPDX-License-Identifier: MIT */
/* What names mean. */
#include "fs/query/times/timed_impl.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"

#define COLUMNS_MAX 2000 /* as SQLite has it */

bool pfs_timed_same(const char *a, size_t a_len, const char *b, size_t b_len)
{
	return a_len == b_len && strncasecmp(a, b, a_len) == 0;
}

static bool is_name(const struct pfs_name *name, const char *text)
{
	return name && pfs_timed_same(name->text, name->len, text, strlen(text));
}

/* ---- columns ---- */

void pfs_timed_add_column(struct pfs_timed *t, struct pfs_timed_columns *columns,
			  const struct pfs_timed_column *column)
{
	if (columns->n == COLUMNS_MAX) {
		pfs_timed_doubt(
			t, 0,
			"it has more columns than can be told apart; name those that it uses");
		return;
	}
	if (columns->n == columns->capacity) {
		size_t capacity = PFS_MAX(2 * columns->capacity, 16);
		struct pfs_timed_column *list = pfs_arena_get(&t->arena, capacity * sizeof(*list));

		if (!list) {
			t->error = -ENOMEM;
			return;
		}
		if (columns->n)
			memcpy(list, columns->list, columns->n * sizeof(*list));
		columns->list = list;
		columns->capacity = capacity;
	}
	columns->list[columns->n++] = *column;
}

void pfs_timed_add_columns(struct pfs_timed *t, struct pfs_timed_columns *to,
			   const struct pfs_timed_columns *from, bool all)
{
	for (size_t i = 0; i < from->n && !t->error; i++) {
		if (all || (!from->list[i].is_hidden && !from->list[i].is_merged))
			pfs_timed_add_column(t, to, &from->list[i]);
	}
}

struct pfs_timed_column *pfs_timed_find_column(const struct pfs_timed_columns *columns,
					       const char *name, size_t len)
{
	for (size_t i = 0; i < columns->n; i++) {
		struct pfs_timed_column *column = &columns->list[i];

		if (column->name && pfs_timed_same(column->name, column->len, name, len))
			return column;
	}
	return NULL;
}

/* ---- tables ---- */

struct reading {
	struct pfs_timed *t;
	struct pfs_timed_columns *columns;
	bool is_nodes;
};

static int add_read(void *to, const char *name, bool is_hidden)
{
	struct reading *reading = to;
	struct pfs_timed_column column = {.len = (uint32_t)strlen(name), .is_hidden = is_hidden};

	column.name = pfs_arena_text(&reading->t->arena, name, column.len);
	if (!column.name)
		return -ENOMEM;
	if (reading->is_nodes && pfs_time_is_column(name, column.len))
		column.bound = PFS_BOUND_TIME;
	pfs_timed_add_column(reading->t, reading->columns, &column);
	return reading->t->error;
}

static bool find_cte(struct pfs_timed *t, struct pfs_timed_columns *columns,
		     const struct pfs_name *name, struct pfs_timed_ctes *ctes)
{
	for (; ctes; ctes = ctes->outer) {
		struct pfs_timed_cte *state = ctes->states;

		for (const struct pfs_cte *cte = ctes->with->first; cte; cte = cte->next, state++) {
			if (!pfs_timed_same(cte->name.text, cte->name.len, name->text, name->len))
				continue;
			if (!state->is_begun)
				pfs_timed_cte(t, ctes, cte, state);
			pfs_timed_add_columns(t, columns, &state->columns, true);
			return true;
		}
	}
	return false;
}

void pfs_timed_table(struct pfs_timed *t, struct pfs_timed_columns *columns,
		     const struct pfs_name *schema, const struct pfs_name *name,
		     struct pfs_timed_ctes *ctes)
{
	struct reading reading = {.t = t, .columns = columns};
	int error;

	if (!schema && find_cte(t, columns, name, ctes))
		return;
	reading.is_nodes = is_name(name, "nodes") || is_name(name, "nodes_at");
	error = t->tables->columns(t->tables->arg, name->text, add_read, &reading);
	if (error && error != -ENOENT) /* what is not there has no columns: SQLite says more */
		t->error = error;
}

/* ---- sources ---- */

struct pfs_timed_source *pfs_timed_add_source(struct pfs_timed *t, struct pfs_timed_scope *scope,
					      const struct pfs_name *name)
{
	struct pfs_timed_source *source = pfs_arena_get(&t->arena, sizeof(*source));

	if (!source) {
		t->error = -ENOMEM;
		return NULL;
	}
	source->name = name;
	if (scope->last)
		scope->last->next = source;
	else
		scope->first = source;
	scope->last = source;
	return source;
}

static void merge_column(struct pfs_timed *t, const struct pfs_timed_scope *scope, const char *name,
			 size_t len, uint32_t at)
{
	struct pfs_timed_column *right = pfs_timed_find_column(&scope->last->columns, name, len),
				*left = NULL;

	for (struct pfs_timed_source *s = scope->first; s != scope->last && !left; s = s->next)
		left = pfs_timed_find_column(&s->columns, name, len);
	if (!left || !right)
		return;
	right->is_merged = true;
	if ((left->bound >= PFS_BOUND_TIME || right->bound >= PFS_BOUND_TIME) &&
	    left->bound != right->bound)
		pfs_timed_doubt(
			t, at,
			"a join by the name %.*s compares times with what is none; join ON a.%.*s = "
			"b.%.*s",
			(int)len, name, (int)len, name, (int)len, name);
}

void pfs_timed_merge(struct pfs_timed *t, struct pfs_timed_scope *scope,
		     const struct pfs_from *from)
{
	if (!scope->last)
		return;
	for (const struct pfs_column_names *name = from->using; name; name = name->next)
		merge_column(t, scope, name->name.text, name->name.len, name->name.span.at);
	if (!(from->join & PFS_JOINS_NATURAL))
		return;
	for (size_t i = 0; i < scope->last->columns.n; i++) {
		const struct pfs_timed_column *column = &scope->last->columns.list[i];

		if (column->name && !column->is_hidden)
			merge_column(t, scope, column->name, column->len, from->span.at);
	}
}

/* ---- resolving ---- */

static bool is_rowid(const struct pfs_name *name)
{
	return is_name(name, "rowid") || is_name(name, "oid") || is_name(name, "_rowid_");
}

static const struct pfs_timed_column *find_in(const struct pfs_timed_scope *scope,
					      const struct pfs_expr *expr)
{
	const struct pfs_name *name = expr->name;

	for (const struct pfs_timed_source *s = scope->first; s; s = s->next) {
		const struct pfs_timed_column *column;

		if (expr->table &&
		    !(s->name && pfs_timed_same(s->name->text, s->name->len, expr->table->text,
						expr->table->len)))
			continue;
		column = pfs_timed_find_column(&s->columns, name->text, name->len);
		if (column)
			return column;
	}
	if (expr->table || !scope->aliases)
		return NULL;
	return pfs_timed_find_column(scope->aliases, name->text, name->len);
}

enum pfs_timed_kind pfs_timed_resolve(const struct pfs_expr *column,
				      const struct pfs_timed_scope *scope, bool *is_string)
{
	*is_string = false;
	for (; scope; scope = scope->outer) {
		const struct pfs_timed_column *found = find_in(scope, column);

		if (found)
			return found->bound;
		if (scope->first && is_rowid(column->name))
			return PFS_BOUND_NOT;
	}
	*is_string = !column->table && column->name->quote == '"';
	return *is_string || is_name(column->name, "true") || is_name(column->name, "false")
		       ? PFS_BOUND_NOT
		       : PFS_BOUND_MIXED;
}
