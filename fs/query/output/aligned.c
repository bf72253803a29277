/* SPDX-License-Identifier: MIT */
/* Rows in aligned columns, for people: numbers to the right, the rest to the left.  Cells are
 * escaped as in TSV, so that a row is a line.  The rows are spooled so until all widths are known.
 */
#include "fs/query/output/format.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

#define GAP	     "  "
#define SPOOL_MEMORY ((size_t)1 << 20)
#define PIECE	     ((size_t)64 << 10)

struct column {
	size_t width; /* characters */
	bool has_number, has_other;
};

struct table {
	struct column *columns;
	size_t n_columns;
	struct pfs_answer *spool; /* lines of cells: the names, then the rows */
	struct pfs_sink to_spool;
	struct pfs_out out;
};

/* ---- spooling ---- */

static void spool_names(struct table *table, const struct pfs_query *query)
{
	size_t i;

	for (i = 0; i < table->n_columns; i++) {
		const char *name = pfs_query_column_name(query, i);
		struct pfs_sql_value value = {
			.type = PFS_SQL_TEXT, .bytes = name, .size = strlen(name)};

		pfs_tsv_value(&table->out, &value);
		pfs_out_text(&table->out, i + 1 < table->n_columns ? "\t" : "\n");
	}
}

static void spool_row(struct table *table, const struct pfs_query *query)
{
	size_t i;

	for (i = 0; i < table->n_columns; i++) {
		struct pfs_sql_value value;

		pfs_query_value(query, i, &value);
		if (value.type == PFS_SQL_INTEGER || value.type == PFS_SQL_REAL)
			table->columns[i].has_number = true;
		else if (value.type != PFS_SQL_NULL)
			table->columns[i].has_other = true;
		pfs_tsv_value(&table->out, &value);
		pfs_out_text(&table->out, i + 1 < table->n_columns ? "\t" : "\n");
	}
}

static int spool(struct table *table, struct pfs_query *query, struct pfs_query_error *error)
{
	int status;

	table->to_spool = (struct pfs_sink){table->spool, pfs_answer_write};
	table->out.sink = &table->to_spool;
	spool_names(table, query);
	while (!table->out.error && (status = pfs_query_next(query, error)) != 0) {
		if (status < 0)
			return status;
		spool_row(table, query);
	}
	pfs_out_flush(&table->out);
	return table->out.error ? pfs_format_failed(error, table->out.error) : 0;
}

/* ---- printing ---- */

/* Characters as a terminal counts them, wide and combining ones apart. */
static size_t width_of(const char *text, size_t size)
{
	size_t width = 0, i;

	for (i = 0; i < size; i++)
		width += ((unsigned char)text[i] & 0xc0) != 0x80;
	return width;
}

static void measure(struct table *table, size_t i, const char *cell, size_t size)
{
	struct column *column = &table->columns[i];

	column->width = PFS_MAX(column->width, width_of(cell, size));
}

static void fill(struct pfs_out *out, char c, size_t n)
{
	char run[64];

	memset(run, c, sizeof(run));
	for (; n > sizeof(run); n -= sizeof(run))
		pfs_out_bytes(out, run, sizeof(run));
	pfs_out_bytes(out, run, n);
}

static void rule(struct table *table)
{
	size_t i;

	for (i = 0; i < table->n_columns; i++) {
		fill(&table->out, '-', table->columns[i].width);
		pfs_out_text(&table->out, i + 1 < table->n_columns ? GAP : "\n");
	}
}

static void print(struct table *table, size_t i, const char *cell, size_t size)
{
	const struct column *column = &table->columns[i];
	bool to_right = column->has_number && !column->has_other, last = i + 1 == table->n_columns;
	size_t space = column->width - width_of(cell, size);

	if (to_right)
		fill(&table->out, ' ', space);
	pfs_out_bytes(&table->out, cell, size);
	if (!to_right && !last)
		fill(&table->out, ' ', space);
	pfs_out_text(&table->out, last ? "\n" : GAP);
	if (last && table->out.rows++ == 0)
		rule(table);
}

/* Calls fn for every cell of the spool, which may lie in two pieces of it. */
static int each_cell(struct table *table,
		     void (*fn)(struct table *table, size_t i, const char *cell, size_t size))
{
	char *text PFS_FREE = NULL;
	size_t capacity = 0, have = 0, i = 0;
	uint64_t at = 0;
	ssize_t n;

	do {
		size_t from = 0, to;

		PFS_TRY(pfs_grow(&text, &capacity, have + PIECE, 1));
		n = pfs_answer_read(table->spool, text + have, PIECE, at);
		if (n < 0)
			return (int)n;
		at += (uint64_t)n;
		for (to = have, have += (size_t)n; to < have; to++) {
			if (text[to] != '\t' && text[to] != '\n')
				continue;
			fn(table, i, text + from, to - from);
			i = text[to] == '\n' ? 0 : i + 1;
			from = to + 1;
		}
		have -= from;
		memmove(text, text + from, have);
	} while (n > 0);
	return 0;
}

static int run(struct table *table, struct pfs_query *query, const struct pfs_sink *sink,
	       struct pfs_query_error *error)
{
	int status = pfs_answer_create(&table->spool, SPOOL_MEMORY, 0);

	if (status)
		return pfs_format_failed(error, status);
	status = spool(table, query, error);
	if (status)
		return status;
	status = each_cell(table, measure);
	if (status)
		return pfs_format_failed(error, status);
	table->out.sink = sink;
	status = each_cell(table, print);
	pfs_out_flush(&table->out);
	if (!status)
		status = table->out.error;
	return status ? pfs_format_failed(error, status) : 0;
}

/* A statement without columns gives nothing, but is run. */
static int run_to_end(struct pfs_query *query, struct pfs_query_error *error)
{
	int status;

	do
		status = pfs_query_next(query, error);
	while (status > 0);
	return status;
}

int pfs_format_aligned(struct pfs_query *query, const struct pfs_sink *sink,
		       struct pfs_query_error *error)
{
	struct table table = {.n_columns = pfs_query_columns(query)};
	int status;

	if (!table.n_columns)
		return run_to_end(query, error);
	table.columns = calloc(table.n_columns, sizeof(*table.columns));
	if (table.columns && pfs_out_init(&table.out, NULL) == 0)
		status = run(&table, query, sink, error);
	else
		status = pfs_format_failed(error, -ENOMEM);
	pfs_answer_close(table.spool);
	free(table.columns);
	pfs_out_finish(&table.out);
	return status;
}
