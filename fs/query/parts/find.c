/* SPDX-License-Identifier: MIT */
/* A walk over the tree of a statement, from the outside inwards: what is taken is not looked
 * into. */
#include "fs/query/parts/parts_impl.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/query/tokens.h"

void pfs_finder_put(struct pfs_finder *finder, struct pfs_text_range span, char *text)
{
	if (!finder->error)
		finder->error = pfs_grow(&finder->places, &finder->capacity, finder->n_places + 1,
					 sizeof(*finder->places));
	if (finder->error)
		free(text);
	else
		finder->places[finder->n_places++] = (struct pfs_substitute){span, text};
}

static bool is_taken(const struct pfs_finder *finder, struct pfs_text_range span)
{
	for (size_t i = 0; i < finder->n_places; i++) {
		if (finder->places[i].span.at == span.at && finder->places[i].span.len == span.len)
			return true;
	}
	return false;
}

bool pfs_finder_take(struct pfs_finder *finder, struct pfs_text_range span, enum pfs_part_use use,
		     bool is_whole)
{
	char *text = NULL;
	size_t size;
	FILE *out;

	if (is_taken(finder, span))
		return true;
	if (!pfs_part_take(finder, use, finder->text + span.at, span.len))
		return false;
	out = open_memstream(&text, &size);
	if (out)
		pfs_part_select(finder, out, is_whole);
	if (!out || fclose(out))
		finder->error = -ENOMEM;
	pfs_finder_put(finder, span, text);
	return true;
}

static void walk_select(struct pfs_finder *finder, const struct pfs_select *select);

/* One with a WITH of its own names what the statement's does not say. */
static void look_at(struct pfs_finder *finder, const struct pfs_select *select,
		    enum pfs_part_use use, bool is_whole)
{
	if (!select->with && !pfs_finder_take(finder, select->span, use, is_whole))
		walk_select(finder, select);
}

static void walk_items(struct pfs_finder *finder, const struct pfs_items *items);

static void walk_expr(struct pfs_finder *finder, const struct pfs_expr *expr)
{
	if (!expr)
		return;
	walk_expr(finder, expr->left);
	walk_expr(finder, expr->right);
	walk_expr(finder, expr->third);
	walk_items(finder, expr->items);
	walk_items(finder, expr->over);
	if (expr->kind == PFS_EXPR_SELECT)
		look_at(finder, expr->select, PFS_PART_VALUE, false);
	else if (expr->kind == PFS_EXPR_IN_SELECT)
		look_at(finder, expr->select, PFS_PART_SET, false);
	else if (expr->select && !expr->select->with) /* EXISTS needs one row */
		walk_select(finder, expr->select);
}

static void walk_items(struct pfs_finder *finder, const struct pfs_items *items)
{
	for (; items; items = items->next) { /* rows of VALUES */
		for (const struct pfs_item *item = items->first; item; item = item->next)
			walk_expr(finder, item->expr);
	}
}

/* Counts the places that may name the CTE, that of its definition among them. */
static unsigned count_named(const struct pfs_finder *finder, const struct pfs_name *name)
{
	size_t len = finder->parts->query->text.len;
	struct pfs_token token = pfs_token_next(finder->text, len, 0), next;
	unsigned n = 0;

	for (; token.kind != PFS_TOKEN_END; token = next) {
		bool is_quoted = !pfs_token_is_letter(finder->text[token.at]);

		next = pfs_token_next(finder->text, len, token.at + token.len);
		n += (token.kind == PFS_TOKEN_WORD || token.kind == PFS_TOKEN_STRING) &&
		     next.kind != PFS_TOKEN_DOT && token.len == name->len + 2 * is_quoted &&
		     strncasecmp(finder->text + token.at + is_quoted, name->text, name->len) == 0;
	}
	return n;
}

/* Returns true if all that names the CTE is the statement's SELECT, which neither orders nor joins
 * its rows. */
static bool is_alone(const struct pfs_finder *finder, const struct pfs_cte *cte)
{
	const struct pfs_select *select = finder->select;
	const struct pfs_from *from = select ? select->first->from : NULL;

	return from && !select->order && !select->first->next && !from->next &&
	       from->kind == PFS_FROM_TABLE && !from->schema && from->name->len == cte->name.len &&
	       strncasecmp(from->name->text, cte->name.text, cte->name.len) == 0 &&
	       count_named(finder, &cte->name) == 2;
}

static void walk_from(struct pfs_finder *finder, const struct pfs_from *from, bool is_joined)
{
	bool was_hidden = finder->is_order_hidden;

	is_joined |= from && from->next;
	finder->is_order_hidden |= is_joined;
	for (; from; from = from->next) {
		walk_expr(finder, from->on);
		walk_items(finder, from->args);
		if (from->kind == PFS_FROM_JOIN)
			walk_from(finder, from->inner, true);
		else if (from->kind == PFS_FROM_SELECT)
			look_at(finder, from->select, PFS_PART_ROWS, is_joined);
		else if (finder->alone && from == finder->select->first->from)
			look_at(finder, PFS_TAKE(finder->alone)->select, PFS_PART_ROWS, true);
	}
	finder->is_order_hidden = was_hidden;
}

static void walk_core(struct pfs_finder *finder, const struct pfs_core *core)
{
	walk_from(finder, core->from, false);
	walk_items(finder, core->results);
	walk_expr(finder, core->where);
	walk_items(finder, core->group);
	walk_expr(finder, core->having);
	walk_items(finder, core->windows);
	walk_items(finder, core->rows);
}

/* What names them may order or join their rows.  One that is named alone waits until what names it
 * is looked at, which may be a part itself. */
static void walk_ctes(struct pfs_finder *finder, const struct pfs_with *with)
{
	finder->is_order_hidden = true;
	for (const struct pfs_cte *cte = with ? with->first : NULL; cte; cte = cte->next) {
		if (is_alone(finder, cte))
			finder->alone = cte;
		else
			look_at(finder, cte->select, PFS_PART_ROWS, true);
	}
	finder->is_order_hidden = false;
}

/* SQLite asks each SELECT of a compound for its rows in the compound's order: in a descending one
 * what depends on the order of rows comes out otherwise. */
static bool is_descending(const struct pfs_items *order)
{
	const struct pfs_item *item = order ? order->first : NULL;

	while (item && !item->is_descending)
		item = item->next;
	return item != NULL;
}

static void walk_cores(struct pfs_finder *finder, const struct pfs_select *select)
{
	bool has_parts = select->first->next && !is_descending(select->order);

	for (const struct pfs_core *core = select->first; core; core = core->next) {
		if (!has_parts || !core->results ||
		    !pfs_finder_take(finder, core->span, PFS_PART_ROWS, false))
			walk_core(finder, core);
	}
	walk_items(finder, select->order);
	walk_expr(finder, select->limit);
	walk_expr(finder, select->offset);
}

static void walk_select(struct pfs_finder *finder, const struct pfs_select *select)
{
	bool was_hidden = finder->is_order_hidden;

	if (finder->error)
		return;
	finder->is_order_hidden = select->order || (was_hidden && !select->limit);
	if (!pfs_split(finder, select))
		walk_cores(finder, select);
	finder->is_order_hidden = was_hidden;
}

/* ---- changes ---- */

/* SELECT their numbers FROM the table WHERE it says so. */
static char *write_members(struct pfs_finder *finder, const struct pfs_statement *statement,
			   size_t *size)
{
	const struct pfs_text_range where = statement->where->span;
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	if (out) {
		(void)fputs("SELECT ino FROM nodes", out);
		if (statement->alias)
			(void)fprintf(out, " AS %.*s", (int)statement->alias->span.len,
				      finder->text + statement->alias->span.at);
		(void)fprintf(out, " WHERE %.*s", (int)where.len, finder->text + where.at);
	}
	if (out && !fclose(out))
		return text;
	free(text);
	finder->error = -ENOMEM;
	return NULL;
}

static char *write_membership(struct pfs_finder *finder)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out) {
		(void)fputs("ino IN (", out);
		pfs_part_select(finder, out, false);
		(void)fputc(')', out);
	}
	if (!out || fclose(out))
		finder->error = -ENOMEM;
	return text;
}

static bool is_named(const struct pfs_expr *column, const char *name)
{
	return column->kind == PFS_EXPR_COLUMN && column->name->len == strlen(name) &&
	       strncasecmp(column->name->text, name, column->name->len) == 0;
}

/* Returns true if the condition names nodes by numbers, parents or names that a list or a SELECT
 * has: a scan finds those of each at once, and an operator would look at all nodes. */
static bool names_each(const struct pfs_expr *where)
{
	if (where->kind == PFS_EXPR_BINARY && where->op == PFS_AST_AND)
		return names_each(where->left) || names_each(where->right);
	if (where->negated ||
	    (where->kind != PFS_EXPR_IN_LIST && where->kind != PFS_EXPR_IN_SELECT &&
	     where->kind != PFS_EXPR_IN_TABLE))
		return false;
	return is_named(where->left, "ino") || is_named(where->left, "parent") ||
	       is_named(where->left, "name");
}

/* Which nodes an UPDATE or DELETE is about is a part, if a scan alone does not find them. */
static bool take_members(struct pfs_finder *finder, const struct pfs_statement *statement)
{
	bool is_taken;
	size_t size;
	char *text;

	if (!statement->where || statement->schema || statement->from || statement->order ||
	    statement->limit || names_each(statement->where) || statement->table->len != 5 ||
	    strncasecmp(statement->table->text, "nodes", 5) != 0)
		return false;
	text = write_members(finder, statement, &size);
	is_taken = text && pfs_part_take(finder, PFS_PART_MEMBERS, text, size);
	free(text);
	if (is_taken)
		pfs_finder_put(finder, statement->where->span, write_membership(finder));
	return is_taken;
}

/* The SELECT whose rows a statement inserts, or makes a table of, is a part if it can be one. */
static bool take_source(struct pfs_finder *finder, const struct pfs_select *select)
{
	return finder->is_change && select->first->results &&
	       pfs_finder_take(finder, select->span, PFS_PART_ROWS, false);
}

void pfs_find_parts(struct pfs_finder *finder, const struct pfs_statement *statement)
{
	const struct pfs_select *select = statement->select;

	if (select && take_source(finder, select))
		return;
	if (finder->makes_table && !pfs_part_name_results(finder, select))
		return;
	walk_ctes(finder, statement->with);
	if (select) {
		walk_ctes(finder, select->with);
		walk_select(finder, select);
		return;
	}
	walk_items(finder, statement->set);
	if (!take_members(finder, statement))
		walk_expr(finder, statement->where);
}
