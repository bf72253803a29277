/* SPDX-License-Identifier: MIT */
#include "fs/query/times/timed.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fs/query/times/timed_impl.h"
#include "fs/query/tokens.h"

#define MEMORY_MAX ((size_t)16 << 20)

/* ---- what is put into the text ---- */

/* What ends at a place comes before what begins there; of two ends the inner one, which was found
 * first. */
static int by_place(const void *a, const void *b)
{
	const struct pfs_insertion *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* begin: where what was parsed stands in sql. */
static int apply(struct pfs_timed *t, struct pfs_edits *out, const char *sql, size_t begin)
{
	if (t->n)
		qsort(t->insertions, t->n, sizeof(*t->insertions), by_place);
	for (size_t i = 0; i < t->n; i++) {
		const struct pfs_insertion *in = &t->insertions[i];

		PFS_TRY(pfs_edits_replace(out, sql, begin + in->at, in->old_len, in->text,
					  strlen(in->text)));
	}
	return 0;
}

/* ---- statements ---- */

/* UPDATE and DELETE see the rows of their table, and UPDATE those of FROM. */
static void bind_change(struct pfs_timed *t, const struct pfs_statement *statement)
{
	struct pfs_timed_ctes *ctes = pfs_timed_with(t, statement->with, NULL, NULL);
	struct pfs_timed_scope scope = {.outer = NULL};
	struct pfs_timed_source *target;

	target = pfs_timed_add_source(t, &scope,
				      statement->alias ? statement->alias : statement->table);
	if (!target)
		return;
	pfs_timed_table(t, &target->columns, statement->schema, statement->table, NULL);
	pfs_timed_from(t, &scope, statement->from, ctes);
	for (const struct pfs_item *item = statement->set ? statement->set->first : NULL; item;
	     item = item->next)
		pfs_timed_set(t, &target->columns, item->alias, item->expr,
			      pfs_timed_expr(t, item->expr, &scope, ctes));
	(void)pfs_timed_expr(t, statement->where, &scope, ctes);
	pfs_timed_items(t, statement->order, &scope, ctes);
	(void)pfs_timed_expr(t, statement->limit, NULL, ctes);
	(void)pfs_timed_expr(t, statement->offset, NULL, ctes);
}

/* Only literals: a value that is computed may be a time already. */
static void set_inserted(struct pfs_timed *t, const struct pfs_statement *statement)
{
	const struct pfs_items *row = statement->select ? statement->select->first->rows : NULL;
	struct pfs_timed_columns columns = {.list = NULL};

	if (!row)
		return;
	pfs_timed_table(t, &columns, statement->schema, statement->table, NULL);
	for (; row; row = row->next) {
		const struct pfs_column_names *column = statement->columns;

		for (const struct pfs_item *item = row->first; item && column;
		     item = item->next, column = column->next) {
			enum pfs_expr_kind kind = item->expr->kind;

			if (kind == PFS_EXPR_STRING || kind == PFS_EXPR_INTEGER ||
			    kind == PFS_EXPR_REAL)
				pfs_timed_set(t, &columns, &column->name, item->expr,
					      PFS_BOUND_NOT);
		}
	}
}

static void bind_statement(struct pfs_timed *t, const struct pfs_statement *statement)
{
	struct pfs_timed_ctes *ctes;

	switch (statement->kind) {
	case PFS_STATEMENT_UPDATE:
	case PFS_STATEMENT_DELETE:
		bind_change(t, statement);
		break;
	case PFS_STATEMENT_SELECT:
	case PFS_STATEMENT_INSERT:
	case PFS_STATEMENT_CREATE_TABLE:
		ctes = pfs_timed_with(t, statement->with, NULL, NULL);
		if (statement->select)
			(void)pfs_timed_select(t, statement->select, NULL, ctes);
		if (statement->kind == PFS_STATEMENT_INSERT)
			set_inserted(t, statement);
		break;
	default: /* `nodes` has no part in it */
		break;
	}
}

/* ---- what is not parsed ---- */

static bool may_compare(const char *sql, const struct pfs_token *token)
{
	static const char *const words[] = {"IS",  "BETWEEN", "IN",    "CASE",	 "MAX",
					    "MIN", "NULLIF",  "USING", "NATURAL"};

	for (size_t i = 0; i < PFS_COUNT(words); i++) {
		if (pfs_token_is(sql, token, words[i]))
			return true;
	}
	return token->kind == PFS_TOKEN_OPERATOR;
}

static struct pfs_token without_quotes(const char *sql, struct pfs_token token)
{
	if (token.kind == PFS_TOKEN_WORD && !pfs_token_is_letter(sql[token.at]) && token.len > 2) {
		token.at++;
		token.len -= 2;
	}
	return token;
}

/* A time of `nodes` is named, and something is compared. */
static void doubt_unread(struct pfs_timed *t, const char *sql, size_t len, const char *why)
{
	bool nodes = false, compares = false;
	long at = -1;

	for (struct pfs_token next = pfs_token_next(sql, len, 0); next.kind != PFS_TOKEN_END;
	     next = pfs_token_next(sql, len, next.at + next.len)) {
		struct pfs_token token = without_quotes(sql, next);

		nodes |= token.kind == PFS_TOKEN_WORD && token.len == 5 &&
			 pfs_timed_same(sql + token.at, token.len, "nodes", 5);
		compares |= may_compare(sql, &token);
		if (at < 0 && token.kind == PFS_TOKEN_WORD &&
		    pfs_time_is_column(sql + token.at, token.len))
			at = (long)token.at;
	}
	if (at >= 0 && nodes && compares)
		pfs_timed_doubt(
			t, (uint32_t)at,
			"what this time is compared with cannot be told, as %s; write it as simple "
			"SELECTs",
			why);
}

/* EXPLAIN [QUERY PLAN]: the place behind it. */
static size_t skip_explain(const char *sql, size_t len)
{
	static const char *const words[] = {"EXPLAIN", "QUERY", "PLAN"};
	size_t at = 0;

	for (size_t i = 0; i < PFS_COUNT(words); i++) {
		struct pfs_token token = pfs_token_next(sql, len, at);

		if (!pfs_token_is(sql, &token, words[i]))
			return i == 2 ? 0 : at;
		at = token.at + token.len;
	}
	return at;
}

/* Without such a word there is none to be compared, unless all columns get new names, or are
 * compared with those of the same names. */
static bool may_have_times(const char *sql, size_t len)
{
	return pfs_token_may_be(sql, len, "time") || pfs_token_may_be(sql, len, "compared") ||
	       pfs_token_may_be(sql, len, "with") || pfs_token_may_be(sql, len, "natural") ||
	       pfs_token_may_be(sql, len, "seconds");
}

int pfs_timed_replace(struct pfs_edits *out, const char *sql, size_t len, int64_t now,
		      const struct pfs_timed_tables *tables, struct pfs_sql_problem *doubt)
{
	struct pfs_timed t = {
		.arena.limit = MEMORY_MAX, .tables = tables, .now = now, .doubt = doubt};
	struct pfs_not_taken not_taken = {.why = ""};
	struct pfs_parsed *parsed;
	size_t begin;
	int error;

	*out = (struct pfs_edits){.text = NULL};
	*doubt->text = 0;
	doubt->offset = -1;
	if (!may_have_times(sql, len))
		return pfs_edits_end(out, sql, len);
	begin = skip_explain(sql, len);
	error = pfs_parse(&parsed, sql + begin, len - begin, &not_taken);
	if (error == -ENOTSUP) {
		doubt_unread(&t, sql, len, not_taken.why);
	} else if (error) {
		return error;
	} else {
		t.text = pfs_parsed_text(parsed);
		bind_statement(&t, pfs_parsed_statement(parsed));
		if (doubt->offset >= 0)
			doubt->offset += (long)begin;
	}
	error = t.error ? t.error : apply(&t, out, sql, begin);
	pfs_parsed_free(parsed);
	pfs_arena_finish(&t.arena);
	free(t.insertions);
	return error ? error : pfs_edits_end(out, sql, len);
}
