/* SPDX-License-Identifier: MIT */
#include "fs/query/parts/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/query/parts/parts_impl.h"
#include "fs/query/relational/relational.h"
#include "fs/query/relational/verify.h"
#include "fs/query/tokens.h"
#include "meta/sql/sqlside.h"

#define ROWS_ASSUMED 1000 /* of what is neither grouped nor limited */

/* Nodes that are looked for by their numbers: so many always, and more if they are not more than
 * that part of all. */
#define MEMBERS_FEW   4096
#define MEMBERS_SHARE 8

/* ---- the text ---- */

static int by_place(const void *a, const void *b)
{
	const struct pfs_substitute *x = a, *y = b;

	return (x->span.at > y->span.at) - (x->span.at < y->span.at);
}

/* A name behind an expression comes after what stands in the expression's place; of places in one
 * another the outer one counts. */
static int replace_places(struct pfs_finder *finder)
{
	const struct pfs_edits *before = &finder->parts->query->text;
	struct pfs_edits *text = &finder->parts->text;
	uint32_t end = 0;

	qsort(finder->places, finder->n_places, sizeof(*finder->places), by_place);
	for (size_t i = 0; i < finder->n_places; i++) {
		const struct pfs_substitute *place = &finder->places[i];

		if (place->span.at < end)
			continue;
		end = place->span.at + place->span.len;
		PFS_TRY(pfs_edits_replace(text, before->text, place->span.at, place->span.len,
					  place->text, strlen(place->text)));
	}
	return pfs_edits_end(text, before->text, before->len);
}

static int prepare(struct pfs_query *query, const struct pfs_edits *text,
		   struct pfs_sql_problem *problem)
{
	query->connection->plan_ids = 0;
	return pfs_sql_prepare(query->connection->sql, text->text, text->len, problem);
}

/* ---- their rows, as SQLite asks for them ---- */

static uint64_t count_rows(void *arg)
{
	return pfs_relational_rows(arg);
}

static void give_value(void *arg, struct pfs_sql_value *out, uint64_t row, size_t column)
{
	pfs_relational_value_at(arg, row, column, out);
}

/* As many as SQLite would assume of what the part takes the place of, if they are few. */
static unsigned rows_assumed(const struct pfs_statement_part *part)
{
	return pfs_block_is_few(pfs_relational_block(part->relational)) ? PFS_FEW_ROWS
									: ROWS_ASSUMED;
}

static int make_tables(struct pfs_parts *parts)
{
	for (unsigned i = 0; i < parts->n; i++)
		parts->tables[i] = (struct pfs_sql_part){
			.number = i,
			.declaration = parts->part[i].declaration,
			.rows_assumed = rows_assumed(&parts->part[i]),
			.arg = parts->part[i].relational,
			.rows = count_rows,
			.value = give_value,
		};
	return pfs_sql_set_parts(parts->query->connection->sql, parts->tables, parts->n);
}

/* ---- plans ---- */

static void finish_finder(struct pfs_finder *finder)
{
	for (size_t i = 0; i < finder->n_places; i++)
		free(finder->places[i].text);
	free(finder->places);
	free(finder->with);
}

/* The text from its first name to the parenthesis behind its last SELECT. */
static char *copy_with(const struct pfs_with *with, const char *text, size_t len)
{
	const struct pfs_text_range last =
		with ? with->last->select->span : (struct pfs_text_range){0, 0};
	struct pfs_token end;
	char *copy;

	if (!with)
		return strdup("");
	end = pfs_token_next(text, len, last.at + last.len);
	return asprintf(&copy, "WITH %s%.*s ", with->is_recursive ? "RECURSIVE " : "",
			(int)(end.at + end.len - with->first->name.span.at),
			text + with->first->name.span.at) < 0
		       ? NULL
		       : copy;
}

/* False: it cannot have parts. */
static bool may_have_parts(const struct pfs_statement *statement)
{
	switch (statement->kind) {
	case PFS_STATEMENT_SELECT:
	case PFS_STATEMENT_UPDATE:
	case PFS_STATEMENT_DELETE:
		return true;
	case PFS_STATEMENT_INSERT:
	case PFS_STATEMENT_CREATE_TABLE:
		return statement->select && !(statement->with && statement->select->with);
	default:
		return false;
	}
}

static int find(struct pfs_parts *parts, const struct pfs_parsed *parsed, bool *is_prepared)
{
	const struct pfs_statement *statement = pfs_parsed_statement(parsed);
	const struct pfs_select *select = statement->select;
	struct pfs_finder finder = {
		.parts = parts,
		.text = pfs_parsed_text(parsed),
		.select = select,
		.is_change = statement->kind != PFS_STATEMENT_SELECT,
		.makes_table = statement->kind == PFS_STATEMENT_CREATE_TABLE,
	};
	int error;

	finder.with = copy_with(statement->with || !select ? statement->with : select->with,
				finder.text, parts->query->text.len);
	if (!finder.with)
		return -ENOMEM;
	pfs_find_parts(&finder, statement);
	error = finder.error;
	if (!error && parts->n)
		error = replace_places(&finder);
	*is_prepared = finder.is_prepared;
	finish_finder(&finder);
	return error;
}

/* A name of ours in the text would be the statement's own. */
static bool has_our_names(const struct pfs_edits *text)
{
	return memmem(text->text, text->len, PFS_SQL_PART_NAME, sizeof(PFS_SQL_PART_NAME) - 1) !=
	       NULL;
}

static bool has_limit(const struct pfs_select *select)
{
	return select && select->limit;
}

int pfs_parts_plan(struct pfs_parts **out, struct pfs_query *query,
		   const struct pfs_relational *whole)
{
	const struct pfs_parsed *parsed = pfs_relational_not_bound(whole);
	struct pfs_sql_problem problem;
	struct pfs_parts *parts;
	bool is_prepared;
	int error;

	*out = NULL;
	if (!parsed || !may_have_parts(pfs_parsed_statement(parsed)) || has_our_names(&query->text))
		return 0;
	parts = calloc(1, sizeof(*parts));
	if (!parts)
		return -ENOMEM;
	parts->query = query;
	error = find(parts, parsed, &is_prepared);
	if (!error && parts->n) {
		error = make_tables(parts);
		if (!error)
			error = prepare(query, &parts->text, &problem);
		if (!error) {
			parts->is_cut = has_limit(pfs_parsed_statement(parsed)->select);
			*out = parts;
			return 0;
		}
		PFS_VERIFY_CHECK(error == -ENOMEM || error == -EINTR || error == -E2BIG);
		error = error == -ENOMEM ? error : 0;
	}
	pfs_parts_free(parts);
	if (!error && is_prepared)
		error = prepare(query, &query->text, &problem);
	return error;
}

void pfs_parts_free(struct pfs_parts *parts)
{
	if (!parts)
		return;
	if (parts->n)
		(void)!pfs_sql_set_parts(parts->query->connection->sql, NULL, 0);
	for (unsigned i = 0; i < parts->n; i++)
		pfs_part_free(&parts->part[i]);
	pfs_edits_finish(&parts->text);
	free(parts);
}

/* ---- running ---- */

void pfs_parts_forget(struct pfs_parts *parts)
{
	for (unsigned i = 0; parts && i < parts->n; i++)
		pfs_relational_forget(parts->part[i].relational);
	if (parts)
		parts->has_run = false;
}

/* SQLite looks for each by its number; where they are many, one scan finds them sooner. */
static bool has_many_members(const struct pfs_parts *parts)
{
	uint64_t most = PFS_MAX(parts->query->n_nodes / MEMBERS_SHARE, (uint64_t)MEMBERS_FEW);
	bool has = false;

	for (unsigned i = 0; i < parts->n; i++)
		has |= parts->part[i].is_members &&
		       pfs_relational_rows(parts->part[i].relational) > most;
	return has;
}

int pfs_parts_run(struct pfs_parts *parts, struct pfs_sql_problem *problem)
{
	struct pfs_relational *list[PFS_STATEMENT_PARTS_MAX];
	int error;

	if (parts->has_run || parts->failed)
		return 0;
	for (unsigned i = 0; i < parts->n; i++)
		list[i] = parts->part[i].relational;
	error = pfs_relational_run(list, parts->n);
	if (!error && has_many_members(parts))
		error = -EOPNOTSUPP;
	if (error == -EINTR)
		return error;
	if (error) {
		parts->failed = true;
		pfs_parts_forget(parts);
		return prepare(parts->query, &parts->query->text, problem);
	}
	parts->has_run = true;
	if (pfs_sql_effect(parts->query->connection->sql) != PFS_SQL_READS)
		return pfs_parts_verify_change(parts->query, &parts->text, problem);
	return pfs_parts_verify(parts->query, &parts->text, parts->is_cut, problem);
}

/* ---- what is said of them ---- */

const struct pfs_edits *pfs_parts_text(const struct pfs_parts *parts, const struct pfs_query *query)
{
	return parts && (!parts->failed || query->is_limited) ? &parts->text : &query->text;
}

void pfs_parts_describe(const struct pfs_parts *parts, FILE *out)
{
	if (!parts || pfs_parts_text(parts, parts->query) != &parts->text)
		return;
	for (unsigned i = 0; i < parts->n; i++) {
		(void)fprintf(out, "part %u: ", i);
		pfs_relational_describe(parts->part[i].relational, out);
	}
}
