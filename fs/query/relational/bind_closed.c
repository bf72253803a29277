/* SPDX-License-Identifier: MIT */
/* CTEs that name nothing but themselves, such as numbers by recursion, or one like that: what they
 * say follows from the text alone.  SQLite says it when the statement is bound, and it is VALUES
 * then.  Each step of such a recursion gives a row, so that the number of rows bounds what that
 * takes, if no other CTE selects, orders or joins them: that could go through any number of steps
 * without a row. */
#include "fs/query/relational/bind.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "meta/sql/sqlcache.h"

#define CONSTANTS_MAX 65536
#define LEVELS_MAX    8

/* ---- which are ---- */

/* Functions whose values are those of their arguments; what an expression's affinity or collation
 * is said by, is not among them. */
static bool is_function(const struct pfs_expr *expr)
{
	static const char *const names[] = {"abs",     "char",	"coalesce", "hex",   "ifnull",
					    "iif",     "instr", "length",   "lower", "nullif",
					    "replace", "round", "substr",   "trim",  "upper"};
	size_t i = 0;

	while (i < PFS_COUNT(names) && !pfs_name_is(expr->name, names[i]))
		i++;
	return i < PFS_COUNT(names) && !expr->is_window && !expr->is_distinct && !expr->is_star &&
	       !expr->left;
}

static bool is_closed_list(const struct pfs_items *items);

static bool is_closed_expr(const struct pfs_expr *expr)
{
	if (!expr)
		return true;
	switch (expr->kind) {
	case PFS_EXPR_CALL:
		if (!is_function(expr))
			return false;
		break;
	case PFS_EXPR_NULL:
	case PFS_EXPR_INTEGER:
	case PFS_EXPR_REAL:
	case PFS_EXPR_STRING:
	case PFS_EXPR_COLUMN:
	case PFS_EXPR_UNARY:
	case PFS_EXPR_BINARY:
	case PFS_EXPR_LIKE:
	case PFS_EXPR_IS_NULL:
	case PFS_EXPR_BETWEEN:
	case PFS_EXPR_IN_LIST:
	case PFS_EXPR_CASE:
		break;
	default:
		return false;
	}
	return is_closed_expr(expr->left) && is_closed_expr(expr->right) &&
	       is_closed_expr(expr->third) && is_closed_list(expr->items);
}

static bool is_closed_list(const struct pfs_items *items)
{
	for (; items; items = items->next) {
		for (const struct pfs_item *item = items->first; item; item = item->next) {
			if (!is_closed_expr(item->expr))
				return false;
		}
	}
	return true;
}

/* The CTE that the core's only source is, or NULL. */
static const struct pfs_cte *source_of(const struct pfs_with *with, const struct pfs_core *core)
{
	const struct pfs_from *from = core->from;
	const struct pfs_cte *cte = with->first;

	if (from->next || from->kind != PFS_FROM_TABLE || from->schema)
		return NULL;
	while (cte && !pfs_name_is(from->name, cte->name.text))
		cte = cte->next;
	return cte;
}

static bool is_closed_core(const struct pfs_core *core)
{
	return !core->is_distinct && !core->group && !core->having && !core->windows &&
	       core->compound <= PFS_UNION && is_closed_list(core->results) &&
	       is_closed_list(core->rows) && is_closed_expr(core->where);
}

static bool is_recursion(const struct pfs_with *with, const struct pfs_cte *cte)
{
	const struct pfs_select *select = cte->select;
	bool is_recursive = false,
	     is = !select->offset && is_closed_list(select->order) && is_closed_expr(select->limit);

	for (const struct pfs_core *core = select->first; core && is; core = core->next) {
		is = is_closed_core(core) && (!core->from || source_of(with, core) == cte);
		is_recursive |= core->from != NULL;
	}
	return is && is_recursive;
}

bool pfs_bind_is_closed(const struct pfs_bind_scope *scope, const struct pfs_cte *cte)
{
	unsigned levels = 0;

	while (cte && !cte->select->with && !is_recursion(scope->with, cte)) {
		const struct pfs_select *select = cte->select;
		const struct pfs_core *core = select->first;

		if (core->next || !core->from || core->where || !is_closed_core(core) ||
		    select->order || select->limit || ++levels == LEVELS_MAX)
			return false;
		cte = source_of(scope->with, core);
	}
	return cte && !cte->select->with;
}

/* ---- what they say ---- */

static void write_name(FILE *out, const struct pfs_name *name)
{
	(void)fputc('"', out);
	for (size_t i = 0; i < name->len; i++)
		(void)fprintf(out, name->text[i] == '"' ? "\"\"" : "%c", name->text[i]);
	(void)fputc('"', out);
}

static void write_cte(FILE *out, const char *text, const struct pfs_cte *cte)
{
	write_name(out, &cte->name);
	for (const struct pfs_column_names *column = cte->columns; column; column = column->next) {
		(void)fputs(column == cte->columns ? "(" : ", ", out);
		write_name(out, &column->name);
	}
	(void)fprintf(out, "%s AS (%.*s)", cte->columns ? ")" : "", (int)cte->select->span.len,
		      text + cte->select->span.at);
}

/* All rows of the CTE, with those that it may name; to be freed. */
static char *write_statement(struct pfs_binder *binder, const struct pfs_bind_scope *scope,
			     const struct pfs_cte *cte, size_t *len)
{
	const char *before = "WITH RECURSIVE ";
	char *text = NULL;
	FILE *out = open_memstream(&text, len);

	for (const struct pfs_cte *one = scope->with->first; one && out; one = one->next) {
		if (!pfs_bind_is_closed(scope, one))
			continue;
		(void)fputs(before, out);
		write_cte(out, binder->text, one);
		before = ", ";
	}
	if (out) {
		(void)fputs(" SELECT * FROM ", out);
		write_name(out, &cte->name);
	}
	if (!out || fclose(out)) {
		free(text);
		binder->error = -ENOMEM;
		return NULL;
	}
	return text;
}

static bool take_value(struct pfs_binder *binder, struct pfs_constant *out,
		       const struct pfs_sql_value *value)
{
	switch (value->type) {
	case PFS_SQL_NULL:
		out->type = PFS_IS_NULL;
		return true;
	case PFS_SQL_INTEGER:
		*out = (struct pfs_constant){.type = PFS_IS_INTEGER, .integer = value->integer};
		return true;
	case PFS_SQL_REAL:
		*out = (struct pfs_constant){.type = PFS_IS_REAL, .real = value->real};
		return true;
	case PFS_SQL_TEXT:
		*out = (struct pfs_constant){.type = PFS_IS_TEXT, .len = value->size};
		out->text = pfs_arena_text(binder->arena, value->bytes, value->size);
		if (!out->text)
			binder->error = -ENOMEM;
		return out->text != NULL;
	case PFS_SQL_BLOB:
		break;
	}
	return pfs_bind_refuse(binder, "a blob"), false;
}

/* Rows as they come, into memory that grows: the input's `values` are to be freed. */
static int take_rows(struct pfs_binder *binder, struct pfs_input *input, struct pfs_sql *sql)
{
	struct pfs_sql_problem problem;
	struct pfs_constant *values = NULL;
	size_t capacity = 0;
	int got;

	input->n_columns = pfs_sql_columns(sql);
	while ((got = pfs_sql_step(sql, &problem)) == 1) {
		size_t at = input->n_rows * input->n_columns;

		if (at + input->n_columns > CONSTANTS_MAX) {
			pfs_bind_refuse(binder, "a CTE of many rows that are computed");
			break;
		}
		if (pfs_grow(&values, &capacity, at + input->n_columns, sizeof(*values)))
			binder->error = -ENOMEM;
		for (size_t i = 0; i < input->n_columns && !binder->error; i++) {
			struct pfs_sql_value value;

			pfs_sql_value(sql, &value, i);
			(void)take_value(binder, &values[at + i], &value);
		}
		input->values = values;
		if (binder->error)
			break;
		input->n_rows++;
	}
	if (got < 0)
		pfs_bind_refuse(binder, "a CTE that is not computed to its end");
	return binder->error;
}

/* The statement is SQLite's prepared one again afterwards. */
static int compute(struct pfs_binder *binder, struct pfs_input *input, const char *text, size_t len)
{
	const struct pfs_edits *whole = &binder->query->text;
	struct pfs_sql *sql = binder->query->connection->sql;
	struct pfs_sql_cached *cached = NULL;
	struct pfs_sql_problem problem;
	int error = pfs_sql_cache(sql, &cached, whole->text, whole->len);

	if (error) {
		pfs_sql_cached_free(cached);
		pfs_bind_refuse(binder, "a statement that is not prepared");
		return binder->error = error == -ENOMEM ? error : binder->error;
	}
	if (pfs_sql_prepare(sql, text, len, &problem))
		pfs_bind_refuse(binder, "a CTE that does not stand alone");
	else
		(void)take_rows(binder, input, sql);
	for (size_t i = 0; i < input->n_columns && !binder->error; i++) {
		const char *name = pfs_sql_column_name(sql, i);

		input->columns =
			i ? input->columns
			  : pfs_bind_get(binder, input->n_columns * sizeof(*input->columns));
		if (input->columns)
			input->columns[i].name = pfs_bind_keep(binder, name);
	}
	if (!pfs_sql_use_cached(sql, cached) &&
	    pfs_sql_prepare(sql, whole->text, whole->len, &problem) && !binder->error)
		binder->error = -ENOMEM;
	pfs_sql_cached_free(cached);
	return binder->error;
}

int pfs_bind_closed(struct pfs_binder *binder, const struct pfs_bind_scope *scope,
		    const struct pfs_cte *cte)
{
	struct pfs_input input = {.n_rows = 0};
	struct pfs_constant *values;
	size_t len, n;
	char *text;

	if (!binder->text)
		return pfs_bind_refuse(binder, "a CTE that is computed, in a part"), binder->error;
	text = write_statement(binder, scope, cte, &len);
	if (!text)
		return binder->error;
	(void)compute(binder, &input, text, len);
	free(text);
	n = input.n_rows * input.n_columns;
	values = pfs_bind_get(binder, (n + 1) * sizeof(*values));
	for (size_t i = 0; i < n && values; i++)
		values[i] = input.values[i];
	free((void *)input.values);
	input.values = values;
	return binder->error ? binder->error : pfs_bind_rows_of_values(binder, &input);
}
