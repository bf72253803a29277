/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/verify.h"

#ifdef PFS_VERIFY

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/log.h"
#include "fs/query/relational/cursor.h"

#include "meta/sql/sqlside.h"

#define ROWS_MAX 100000u /* more are not compared */

struct lines {
	char **line;
	size_t n, capacity;
};

static void write_value(FILE *out, const struct pfs_sql_value *value)
{
	switch (value->type) {
	case PFS_SQL_NULL:
		(void)fputs("- ", out);
		break;
	case PFS_SQL_INTEGER:
		(void)fprintf(out, "i%lld ", (long long)value->integer);
		break;
	case PFS_SQL_REAL: /* sums may be added in another order */
		(void)fprintf(out, "r%.9g ", value->real);
		break;
	default:
		(void)fprintf(out, "t%zu:%.*s ", value->size, (int)value->size, value->bytes);
	}
}

/* Adds what was written to `out`, a memory stream, and closes it. */
static bool keep_line(struct lines *lines, FILE *out, char **line)
{
	if (fclose(out) ||
	    pfs_grow(&lines->line, &lines->capacity, lines->n + 1, sizeof(*lines->line))) {
		free(*line);
		return false;
	}
	lines->line[lines->n++] = *line;
	return true;
}

static bool add_line(struct lines *lines, size_t n_columns,
		     void (*value)(const void *arg, uint64_t row, size_t column,
				   struct pfs_sql_value *out),
		     const void *arg, uint64_t row)
{
	char *line = NULL;
	size_t size;
	FILE *out = open_memstream(&line, &size);

	if (!out)
		return false;
	for (size_t i = 0; i < n_columns; i++) {
		struct pfs_sql_value v;

		value(arg, row, i, &v);
		write_value(out, &v);
	}
	return keep_line(lines, out, &line);
}

static void sqlite_value(const void *arg, uint64_t row PFS_UNUSED, size_t column,
			 struct pfs_sql_value *out)
{
	const struct pfs_query *query = arg;

	pfs_sql_value(query->connection->sql, out, column);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void finish(struct lines *lines)
{
	for (size_t i = 0; i < lines->n; i++)
		free(lines->line[i]);
	free(lines->line);
}

static void compare(const struct pfs_query *query, struct lines *ours, struct lines *theirs,
		    bool is_cut)
{
	size_t i = 0;

	if (ours->n)
		qsort(ours->line, ours->n, sizeof(*ours->line), by_text);
	if (theirs->n)
		qsort(theirs->line, theirs->n, sizeof(*theirs->line), by_text);
	while (!is_cut && i < ours->n && i < theirs->n && !strcmp(ours->line[i], theirs->line[i]))
		i++;
	if (ours->n == theirs->n && (is_cut || i == ours->n))
		return;
	pfs_error("%.*s: %zu rows, SQLite has %zu; %s, SQLite has %s", (int)query->text.len,
		  query->text.text, ours->n, theirs->n, i < ours->n ? ours->line[i] : "nothing",
		  i < theirs->n ? theirs->line[i] : "nothing");
	PFS_VERIFY_CHECK(false);
}

void pfs_relational_verify(struct pfs_query *query, const struct pfs_block *block, uint64_t n,
			   void (*value)(const void *arg, uint64_t row, size_t column,
					 struct pfs_sql_value *out),
			   const void *arg)
{
	struct lines ours = {.n = 0}, theirs = {.n = 0};
	struct pfs_sql *sql = query->connection->sql;
	size_t n_columns = pfs_sql_columns(sql);
	struct pfs_sql_problem problem;
	bool enough = true;
	int got = 0;

	if (n > ROWS_MAX)
		return;
	for (uint64_t row = 0; row < n && enough; row++)
		enough = add_line(&ours, n_columns, value, arg, row);
	while (enough && (got = pfs_sql_step(sql, &problem)) == 1)
		enough = add_line(&theirs, n_columns, sqlite_value, query, 0);
	pfs_sql_reset(sql);
	if (enough && !got)
		compare(query, &ours, &theirs, !pfs_block_is_known(block));
	finish(&ours);
	finish(&theirs);
}

static void row_value(const void *arg, uint64_t row, size_t column, struct pfs_sql_value *out)
{
	pfs_portion_value(arg, (size_t)row, column, out);
}

/* Adds the rows of the cursor. Returns true if all are there. */
static bool take_cursor(struct lines *lines, const struct pfs_block *block,
			struct pfs_run_context *context)
{
	struct pfs_portion_walk walk;
	struct pfs_row_cursor *cursor;
	int got = pfs_row_cursor_open(&cursor, block, context, &walk);

	while (!got && lines->n < ROWS_MAX && (got = pfs_row_cursor_next(cursor)) == 1)
		do
			got = add_line(lines, block->n_results, row_value, &walk.portion, walk.row)
				      ? 0
				      : -ENOMEM;
		while (!got && pfs_portion_walk_on(&walk));
	pfs_row_cursor_close(cursor);
	return !got && lines->n < ROWS_MAX;
}

/* False: not all rows are there. */
static bool take_rows(struct pfs_query *query, struct lines *lines)
{
	struct pfs_sql *sql = query->connection->sql;
	size_t n_columns = pfs_sql_columns(sql);
	struct pfs_sql_problem problem;
	int got = 0;

	while (lines->n < ROWS_MAX && (got = pfs_sql_step(sql, &problem)) == 1) {
		if (!add_line(lines, n_columns, sqlite_value, query, 0))
			return false;
	}
	pfs_sql_reset(sql);
	return !got;
}

void pfs_relational_verify_rows(struct pfs_query *query, const struct pfs_block *block,
				struct pfs_run_context *context)
{
	struct lines ours = {.n = 0}, theirs = {.n = 0};
	bool explains = query->explains;

	query->explains = false;
	if (take_cursor(&ours, block, context) && take_rows(query, &theirs))
		compare(query, &ours, &theirs, !pfs_block_is_known(block));
	query->explains = explains;
	finish(&ours);
	finish(&theirs);
}

int pfs_parts_verify(struct pfs_query *query, const struct pfs_edits *with, bool is_cut,
		     struct pfs_sql_problem *problem)
{
	struct pfs_sql *sql = query->connection->sql;
	struct lines ours = {.n = 0}, theirs = {.n = 0};
	bool is_whole = take_rows(query, &ours);
	int error;

	query->connection->plan_ids = 0;
	error = pfs_sql_prepare(sql, query->text.text, query->text.len, problem);
	if (!error && is_whole && take_rows(query, &theirs))
		compare(query, &ours, &theirs, is_cut);
	finish(&ours);
	finish(&theirs);
	query->connection->plan_ids = 0;
	PFS_TRY(error);
	return pfs_sql_prepare(sql, with->text, with->len, problem);
}

/* ---- statements that change something ---- */

struct changes { /* of one run */
	const struct pfs_query *query;
	struct lines lines;
	int error; /* that the statement ended with, */
	bool is_open; /* or it was not run to its end, or there was no memory for what it did */
};

static void write_bytes(FILE *out, const struct pfs_change_set *set, struct pfs_bytes bytes)
{
	(void)fprintf(out, " %.*s", (int)bytes.len, bytes.len ? set->text + bytes.at : "");
}

static void add_nodes(struct changes *changes)
{
	const struct pfs_change_set *set = &changes->query->set;

	for (size_t i = 0; i < set->n && !changes->is_open; i++) {
		const struct pfs_change *of = &set->list[i];
		char *line = NULL;
		size_t size;
		FILE *out = open_memstream(&line, &size);

		if (!out) {
			changes->is_open = true;
			return;
		}
		(void)fprintf(out, "%d %llu: %x %o %u %u %lld %lld %lld %llu", (int)set->kind,
			      (unsigned long long)of->ino, of->set, of->mode, of->uid, of->gid,
			      (long long)of->size, (long long)of->atime, (long long)of->mtime,
			      (unsigned long long)of->parent);
		write_bytes(out, set, of->name);
		write_bytes(out, set, of->path);
		write_bytes(out, set, of->target);
		for (size_t a = of->first_attr; a < of->first_attr + of->n_attrs; a++) {
			(void)fputs(set->attrs[a].removed ? " -" : " +", out);
			write_bytes(out, set, set->attrs[a].name);
			write_bytes(out, set, set->attrs[a].value);
		}
		changes->is_open |= !keep_line(&changes->lines, out, &line);
	}
}

/* Which numbers inserted rows get is SQLite's own way of scanning. */
static int add_side_row(void *arg, int64_t row, const struct pfs_cell *cells, size_t n)
{
	static const enum pfs_sql_type types[] = {
		[PFS_CELL_NULL] = PFS_SQL_NULL, [PFS_CELL_INTEGER] = PFS_SQL_INTEGER,
		[PFS_CELL_REAL] = PFS_SQL_REAL, [PFS_CELL_TEXT] = PFS_SQL_TEXT,
		[PFS_CELL_BLOB] = PFS_SQL_BLOB,
	};
	struct changes *changes = arg;
	bool has_number = !cells || strncasecmp(changes->query->sql, "UPDATE", 6) == 0;
	char *line = NULL;
	size_t size;
	FILE *out = open_memstream(&line, &size);

	if (!out)
		return -ENOMEM;
	if (has_number)
		(void)fprintf(out, "row %lld: ", (long long)row);
	for (size_t i = 0; cells && i < n; i++) {
		struct pfs_sql_value value = {.type = types[cells[i].type]};

		if (value.type == PFS_SQL_INTEGER)
			value.integer = cells[i].integer;
		else if (value.type == PFS_SQL_REAL)
			value.real = cells[i].real;
		else if (value.type != PFS_SQL_NULL && cells[i].bytes) {
			value.bytes = cells[i].bytes;
			value.size = cells[i].size;
		}
		write_value(out, &value);
	}
	return keep_line(&changes->lines, out, &line) ? 0 : -ENOMEM;
}

static int add_side(void *arg, const struct pfs_sql_side *side, enum pfs_sql_fate fate)
{
	struct changes *changes = arg;
	struct pfs_sql *sql = changes->query->connection->sql;
	char *text = NULL;
	size_t size;
	char *line = NULL;
	FILE *out;

	if (fate == PFS_SQL_CHANGED)
		return pfs_sql_changed_rows(sql, side->name, add_side_row, changes);
	out = open_memstream(&line, &size);
	if (!out)
		return -ENOMEM;
	if (fate != PFS_SQL_DROPPED)
		PFS_TRY(pfs_sql_declaration(sql, &text, side->name));
	(void)fprintf(out, "%s", text ? text : "");
	free(text);
	if (!keep_line(&changes->lines, out, &line))
		return -ENOMEM;
	return fate == PFS_SQL_DROPPED ? 0
				       : pfs_sql_all_rows(sql, side->name, add_side_row, changes);
}

static void run_and_look(struct changes *changes, struct pfs_query *query,
			 struct pfs_sql_problem *problem)
{
	struct pfs_sql *sql = query->connection->sql;

	changes->query = query;
	changes->error = pfs_sql_run(sql, problem);
	if (!changes->error) {
		add_nodes(changes);
		changes->is_open |= pfs_sql_fates(sql, add_side, changes) != 0;
	}
	changes->is_open |=
		changes->error == -EAGAIN || changes->error == -EINTR || changes->error == -ENOMEM;
	pfs_sql_rollback(sql);
	pfs_query_let_go(query);
	pfs_change_set_clear(&query->set);
	*query->why = 0;
}

int pfs_parts_verify_change(struct pfs_query *query, const struct pfs_edits *with,
			    struct pfs_sql_problem *problem)
{
	struct changes ours = {.error = 0}, theirs = {.error = 0};
	bool explains = query->explains;
	int error;

	query->explains = false;
	run_and_look(&ours, query, problem);
	query->connection->plan_ids = 0;
	error = pfs_sql_prepare(query->connection->sql, query->text.text, query->text.len, problem);
	if (!error && !ours.is_open)
		run_and_look(&theirs, query, problem);
	if (!error && !ours.is_open && !theirs.is_open) {
		PFS_VERIFY_CHECK(ours.error == theirs.error);
		compare(query, &ours.lines, &theirs.lines, false);
	}
	query->explains = explains;
	finish(&ours.lines);
	finish(&theirs.lines);
	query->connection->plan_ids = 0;
	PFS_TRY(error);
	return pfs_sql_prepare(query->connection->sql, with->text, with->len, problem);
}

#endif
