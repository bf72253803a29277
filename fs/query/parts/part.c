/* SPDX-License-Identifier: MIT */
/* One part of a statement: whether it may be one, its columns, and its text (parts_impl.h). */
#include "fs/query/parts/parts_impl.h"

#include <stdlib.h>
#include <string.h>

#include "fs/query/relational/bound.h"
#include "fs/query/relational/relational.h"

/* ---- what may be one ---- */

static bool is_fit(const struct pfs_finder *finder, const struct pfs_block *block,
		   enum pfs_part_use use)
{
	switch (use) {
	case PFS_PART_VALUE: /* the first row is the only one */
		return block->n_results == 1 && block->is_grouped && !block->n_group &&
		       !block->having && block->limit == UINT64_MAX && !block->offset;
	case PFS_PART_SET:
	case PFS_PART_MEMBERS:
		return block->n_results == 1 && pfs_block_is_determined(block);
	case PFS_PART_ROWS: /* in their own order */
		if (finder->is_order_hidden && pfs_block_may_lose_order(block))
			return false;
		break;
	}
	return pfs_block_is_determined(block);
}

/* ---- columns ---- */

static const char *const declared[] = {
	[0] = NULL, /* what SQLite derives is not known */
	"NUM",	    /* numeric, which it compares as any other affinity of numbers */
	"REAL",	    /* of a CAST: NUM would make an integer of 4096.0 where rows are kept */
	"TEXT",
	"BLOB", /* none, as a column's */
	"",	/* none, as an expression's */
};
enum derived { UNKNOWN, NUMBERS, REALS, TEXTS, ANYTHING, EXPRESSION };

static enum derived derive(const struct pfs_block *block, const struct pfs_term *result);

/* What is derived for a sub-select's column; not known where its parts differ, as versions of
 * SQLite do then. */
static enum derived derive_column(const struct pfs_input *input, size_t column)
{
	enum derived derived = UNKNOWN;
	size_t at = input->columns[column].at;

	for (size_t i = 0; i < input->n_parts && input->columns[column].is_used; i++) {
		const struct pfs_block *part = input->parts[i];
		enum derived other = derive(part, part->results[at]);

		if (i && other != derived)
			return UNKNOWN;
		derived = other;
	}
	return derived;
}

/* What SQLite derives for a result. */
static enum derived derive(const struct pfs_block *block, const struct pfs_term *result)
{
	const struct pfs_input *input;

	if (result->affinity == PFS_TEXTUAL)
		return TEXTS;
	if (result->kind != PFS_BOUND_COLUMN) {
		if (result->affinity == PFS_NO_AFFINITY)
			return EXPRESSION;
		return result->op == PFS_OP_TO_REAL ? REALS : NUMBERS;
	}
	input = &block->inputs[result->input];
	if (input->n_parts)
		return derive_column(input, result->column);
	if (result->affinity == PFS_NUMERIC)
		return NUMBERS;
	return input->kind == PFS_INPUT_SIDE ? ANYTHING : UNKNOWN;
}

/* Returns the declared type of a result that is a number. SQLite tells one only of a column as it
 * is; NULL: there is none, and it would show. */
static const char *type_of_numbers(const struct pfs_finder *finder, size_t column,
				   enum derived derived)
{
	const char *type = pfs_sql_column_affinity(finder->parts->query->connection->sql, column);

	if (!type)
		return finder->makes_table ? NULL : declared[derived];
	return type;
}

static bool has_other_collation(const struct pfs_term *result)
{
	return result->is_collated || result->collation != PFS_BINARY;
}

/* False: an affinity or a collation is not to be had, or -ENOMEM is set. */
static bool declare(struct pfs_finder *finder, struct pfs_statement_part *part)
{
	const struct pfs_block *block = pfs_relational_block(part->relational);
	bool is_known = true;
	size_t size;
	FILE *out;

	part->n = block->n_results;
	part->is_expression = calloc(part->n + 1, sizeof(*part->is_expression));
	out = open_memstream(&part->declaration, &size);
	if (!part->is_expression || !out) {
		finder->error = -ENOMEM;
		if (out)
			(void)fclose(out);
		return false;
	}
	for (size_t i = 0; i < part->n && is_known; i++) {
		enum derived derived = derive(block, block->results[i]);
		bool is_number = derived == NUMBERS || derived == REALS;
		const char *type =
			is_number ? type_of_numbers(finder, i, derived) : declared[derived];

		is_known = type && !has_other_collation(block->results[i]);
		part->is_expression[i] = derived == EXPRESSION;
		(void)fprintf(out, "%s c%zu %s", i ? "," : "CREATE TABLE x(", i,
			      is_known ? type : "");
	}
	(void)fputc(')', out);
	if (fclose(out))
		finder->error = -ENOMEM;
	return is_known && !finder->error;
}

/* ---- one of them ---- */

void pfs_part_free(struct pfs_statement_part *part)
{
	pfs_relational_free(part->relational);
	free(part->declaration);
	free(part->is_expression);
	*part = (struct pfs_statement_part){.relational = NULL};
}

/* The text with the WITH before it; NULL: -ENOMEM is set. */
static char *make_text(struct pfs_finder *finder, const char *text, size_t len, size_t *size)
{
	size_t with = strlen(finder->with);
	char *whole = malloc(with + len + 1);

	if (!whole) {
		finder->error = -ENOMEM;
		return NULL;
	}
	memcpy(whole, finder->with, with);
	memcpy(whole + with, text, len);
	*size = with + len;
	whole[*size] = 0;
	return whole;
}

bool pfs_part_take(struct pfs_finder *finder, enum pfs_part_use use, const char *text, size_t len)
{
	struct pfs_parts *parts = finder->parts;
	struct pfs_statement_part *part = &parts->part[parts->n];
	struct pfs_bind_part asked = {.takes_rows = finder->is_change};
	char *whole;
	bool is_taken;

	if (finder->error || parts->n == PFS_STATEMENT_PARTS_MAX)
		return false;
	whole = make_text(finder, text, len, &asked.len);
	if (!whole)
		return false;
	asked.text = whole;
	finder->error = pfs_relational_plan_part(&part->relational, parts->query, &asked);
	finder->is_prepared |= asked.is_prepared;
	free(whole);
	is_taken = !finder->error && pfs_relational_block(part->relational) &&
		   is_fit(finder, pfs_relational_block(part->relational), use) &&
		   declare(finder, part);
	if (is_taken)
		parts->n++;
	else
		pfs_part_free(part);
	part->is_members = is_taken && use == PFS_PART_MEMBERS;
	return is_taken;
}

/* ---- in the statement's text ---- */

/* A function has, other than a column, neither an affinity nor a collation. */
void pfs_part_column(const struct pfs_finder *finder, FILE *out, size_t column)
{
	unsigned number = finder->parts->n - 1;
	bool is_bare = finder->parts->part[number].is_expression[column];

	(void)fprintf(out, " %s" PFS_SQL_PART_NAME "%u.c%zu%s ", is_bare ? "ifnull(" : "", number,
		      column, is_bare ? ", NULL)" : "");
}

static void write_name(FILE *out, const char *name)
{
	(void)fputs("AS \"", out);
	for (; *name; name++) {
		if (*name == '"')
			(void)fputc('"', out);
		(void)fputc(*name, out);
	}
	(void)fputc('"', out);
}

void pfs_part_select(const struct pfs_finder *finder, FILE *out, bool is_whole)
{
	unsigned number = finder->parts->n - 1;
	const struct pfs_sql *sql = finder->parts->query->connection->sql;

	(void)fputs("SELECT", out);
	for (size_t i = 0; i < finder->parts->part[number].n; i++) {
		if (i)
			(void)fputc(',', out);
		pfs_part_column(finder, out, i);
		write_name(out, pfs_sql_column_name(sql, i));
	}
	(void)fprintf(out, " FROM " PFS_SQL_PART_NAME "%u%s", number, is_whole ? " LIMIT -1" : "");
}

/* ---- the names of a table's columns ---- */

/* NULL: -ENOMEM is set. */
static char *make_name(struct pfs_finder *finder, size_t column)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out)
		(void)fputc(' ', out);
	if (out)
		write_name(out, pfs_sql_column_name(finder->parts->query->connection->sql, column));
	if (!out || fclose(out))
		finder->error = -ENOMEM;
	return text;
}

static bool has_star(const struct pfs_items *results)
{
	const struct pfs_item *item = results->first;

	while (item && item->expr)
		item = item->next;
	return item != NULL;
}

bool pfs_part_name_results(struct pfs_finder *finder, const struct pfs_select *select)
{
	const struct pfs_items *results = select->first->results;
	struct pfs_sql_problem problem;
	size_t len, column = 0;
	char *text;
	int error;

	if (!results || has_star(results))
		return false;
	text = make_text(finder, finder->text + select->span.at, select->span.len, &len);
	if (!text)
		return false;
	finder->is_prepared = true;
	error = pfs_sql_prepare(finder->parts->query->connection->sql, text, len, &problem);
	free(text);
	for (const struct pfs_item *item = results->first; item && !error;
	     item = item->next, column++) {
		if (!item->alias)
			pfs_finder_put(finder,
				       (struct pfs_text_range){item->span.at + item->span.len, 0},
				       make_name(finder, column));
	}
	return !error && !finder->error;
}
