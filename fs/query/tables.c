/* SPDX-License-Identifier: MIT */
#include "fs/query/tables.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/csv.h"
#include "base/log.h"
#include "base/number.h"
#include "fs/query/output/format.h"
#include "fs/query/pathindex.h"
#include "fs/query/sides.h"
#include "fs/tree/sides.h"
#include "meta/declaration.h"
#include "meta/siderows.h"
#include "meta/sql/sqlside.h"

#define CSV_MAX	 ((size_t)512 << 20) /* bytes */
#define READ_STEP ((size_t)1 << 20)

static PFS_PRINTF(3, 4) int fail(struct pfs_query_error *error, int code, const char *format, ...)
{
	va_list args;

	error->error = code;
	error->offset = -1;
	va_start(args, format);
	(void)vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return code;
}

/* ---- names ---- */

static int check_name(const char *name, struct pfs_query_error *error)
{
	int code = pfs_table_check_name(name);

	if (code == -EEXIST)
		return fail(error, code, "%s: the name is reserved; choose another", name);
	if (code == -ENAMETOOLONG)
		return fail(error, code, "the table's name has more than %d bytes; shorten it",
			    PFS_TABLE_NAME_MAX);
	if (code)
		return fail(error, code, "no table can have that name; use letters and digits");
	return 0;
}

/* ---- what there is ---- */

struct naming {
	int (*fn)(void *arg, const char *name);
	void *arg;
};

static int add_name(void *arg, const struct pfs_table_record *table)
{
	const struct naming *naming = arg;
	char name[PFS_TABLE_NAME_MAX + 1], why[PFS_DECLARATION_WHY];
	int error;

	if (table->name_len > PFS_TABLE_NAME_MAX || memchr(table->name, 0, table->name_len))
		return 0; /* damaged */
	memcpy(name, table->name, table->name_len);
	name[table->name_len] = 0;
	error = pfs_table_check_name(name);
	if (error)
		return error == -EEXIST ? naming->fn(naming->arg, name) : 0;
	error = pfs_declaration_parse(NULL, why, name, table->columns, table->columns_len);
	if (error)
		return error == -EUCLEAN ? 0 : error;
	return naming->fn(naming->arg, name);
}

static int add_names(void *arg, struct pfs_store *store)
{
	return pfs_store_scan_tables(store, add_name, arg);
}

int pfs_tables_names(struct pfs_queries *queries, int (*fn)(void *arg, const char *name), void *arg)
{
	struct naming naming = {fn, arg};

	return pfs_sides_read(queries->tree, add_names, &naming);
}

static int check_declaration(void *name, const struct pfs_table_record *table)
{
	char why[PFS_DECLARATION_WHY];
	int error = pfs_declaration_parse(NULL, why, name, table->columns, table->columns_len);

	return error == -EUCLEAN ? -ENOENT : error;
}

struct search {
	struct pfs_connection *connection;
	struct pfs_tree *tree;
	const char *name;
};

static int look_up(void *arg, struct pfs_store *store)
{
	const struct search *search = arg;
	const struct pfs_sql_side *side = pfs_sql_side_find(search->connection->sql, search->name);

	if (!pfs_sides_are_known(search->connection, search->tree))
		return -EAGAIN;
	if (!side || side->is_damaged)
		return -ENOENT;
	return side->declared ? 0
			      : pfs_store_get_table(store, side->id, check_declaration, side->name);
}

struct target {
	struct pfs_tree *tree;
	struct pfs_store *store;
	const char *name;
	uint32_t id; /* of the table that has the name; 0: none */
};

static int find_table(void *arg, const struct pfs_table_record *table)
{
	struct target *target = arg;

	if (strlen(target->name) == table->name_len &&
	    strncasecmp(target->name, table->name, table->name_len) == 0)
		target->id = table->id;
	return 0;
}

/* Connections do not know a table whose name is reserved. */
static int look_up_reserved(void *arg, struct pfs_store *store)
{
	struct target *target = arg;

	PFS_TRY(pfs_store_scan_tables(store, find_table, target));
	return target->id ? 0 : -ENOENT;
}

int pfs_table_is_there(struct pfs_queries *queries, const char *name)
{
	const struct pfs_attr_visibility all = {.shown = NULL};
	struct search search = {.tree = queries->tree, .name = name};
	struct target reserved = {.name = name};
	int error;

	if (pfs_table_check_name(name) == -EEXIST)
		return pfs_sides_read(queries->tree, look_up_reserved, &reserved);
	PFS_TRY(pfs_connection_get(&search.connection, queries, &all, false, NULL));
	do {
		error = pfs_sides_refresh(search.connection, queries->tree);
		if (!error)
			error = pfs_sides_read(queries->tree, look_up, &search);
	} while (error == -EAGAIN);
	pfs_connection_put(queries, search.connection);
	return error;
}

int pfs_table_export(struct pfs_queries *queries, const char *name, const struct pfs_sink *sink,
		     struct pfs_query_error *error)
{
	const struct pfs_query_scope scope = {.ino = 2, .sees_all = true};
	struct pfs_query *query;
	char *sql PFS_FREE = NULL;
	int code = pfs_table_is_there(queries, name);

	if (code)
		return fail(error, code, "%s: %s", name,
			    code == -ENOENT ? "there is no such table" : strerror(-code));
	if (pfs_table_check_name(name))
		return fail(error, -EINVAL, "%s: the name is reserved; remove the table", name);
	if (asprintf(&sql, "SELECT * FROM \"%s\" ORDER BY rowid", name) < 0) {
		sql = NULL;
		return fail(error, -ENOMEM, "%s: out of memory", name);
	}
	PFS_TRY(pfs_query_start(&query, queries, &scope, sql, strlen(sql), error));
	code = pfs_format_rows(query, PFS_FORMAT_CSV, sink, error);
	pfs_query_finish(query);
	return code;
}

/* ---- from CSV ---- */

struct column {
	char *name;
	bool not_integer, not_real, any;
	const char *type;
};

struct import {
	struct pfs_tree *tree;
	const char *name;
	struct pfs_input_stream input;
	struct pfs_csv csv;
	struct column *columns;
	size_t n;
	uint64_t rows, size;
	struct pfs_cell *cells;
	char *declaration;
	struct pfs_query_error *error;
};

static int read_all(struct import *import, const struct pfs_table_bytes *bytes)
{
	char *data PFS_FREE = NULL;
	size_t size = 0, capacity = 0;
	ssize_t got;

	do {
		PFS_TRY(pfs_grow(&data, &capacity, size + READ_STEP, 1));
		got = bytes->read(bytes->arg, data + size, capacity - size, size);
		if (got < 0)
			return (int)got;
		size += (size_t)got;
		if (size > CSV_MAX)
			return -EFBIG;
	} while (got);
	import->size = size;
	return pfs_input_open_memory(&import->input, data, size);
}

/* The next record: 1, or 0 at the end. */
static int next(struct import *import)
{
	const char *why = "";
	int got = pfs_csv_next(&import->csv, &why);

	if (got == -EBADMSG)
		return fail(import->error, -EINVAL, "line %" PRIu64 ": %s", import->csv.line, why);
	return got;
}

static int name_column(struct import *import, size_t i)
{
	const struct pfs_csv_field *field = &import->csv.fields[i];
	struct column *column = &import->columns[i];
	uint64_t line = import->csv.line;

	if (!pfs_table_is_text(field->text, field->len) || field->len > PFS_TABLE_NAME_MAX)
		return fail(import->error, -EINVAL,
			    "line %" PRIu64
			    ": column %zu has no name, or one that is no text of at "
			    "most %d bytes; the first line names the columns",
			    line, i + 1, PFS_TABLE_NAME_MAX);
	column->name = strndup(field->text, field->len);
	if (!column->name)
		return -ENOMEM;
	for (size_t j = 0; j < i; j++) {
		if (pfs_side_is_named(import->columns[j].name, column->name))
			return fail(import->error, -EINVAL,
				    "line %" PRIu64 ": two columns have the name %s; rename one",
				    line, column->name);
	}
	return 0;
}

/* Statements read a table by the numbers of its rows, which go by one of these names. */
static bool hides_row_numbers(const struct import *import)
{
	static const char *const names[] = {"rowid", "_rowid_", "oid"};
	size_t taken = 0;

	for (size_t i = 0; i < import->n; i++) {
		for (size_t j = 0; j < PFS_COUNT(names); j++)
			taken += pfs_side_is_named(import->columns[i].name, names[j]);
	}
	return taken == PFS_COUNT(names);
}

static int read_header(struct import *import)
{
	int got = next(import);

	if (got < 0)
		return got;
	if (!got)
		return fail(import->error, -EINVAL, "empty; the first line names the columns");
	import->n = import->csv.n_fields;
	if (import->n > PFS_TABLE_COLUMNS_MAX)
		return fail(import->error, -EINVAL, "%zu columns; a table has at most %d",
			    import->n, PFS_TABLE_COLUMNS_MAX);
	import->columns = calloc(import->n, sizeof(*import->columns));
	import->cells = calloc(import->n, sizeof(*import->cells));
	if (!import->columns || !import->cells)
		return -ENOMEM;
	for (size_t i = 0; i < import->n; i++)
		PFS_TRY(name_column(import, i));
	if (hides_row_numbers(import))
		return fail(import->error, -EINVAL,
			    "line %" PRIu64
			    ": rowid, _rowid_ and oid cannot all be columns; rename one",
			    import->csv.line);
	import->csv.empty_lines = import->n == 1; /* NULL */
	return 0;
}

static bool is_null(const struct pfs_csv_field *field)
{
	return !field->len && !field->quoted;
}

static void look_at(struct column *column, const struct pfs_csv_field *field)
{
	int64_t integer;
	double real;

	if (is_null(field))
		return;
	column->any = true;
	column->not_integer = column->not_integer ||
			      !pfs_is_integer(&integer, field->text, field->len);
	column->not_real = column->not_real || !pfs_is_real(&real, field->text, field->len);
}

static int look_at_rows(struct import *import)
{
	int got;

	while ((got = next(import)) == 1) {
		size_t size = 0;

		if (import->csv.n_fields != import->n)
			return fail(import->error, -EINVAL,
				    "line %" PRIu64 ": %zu fields where the first line has %zu",
				    import->csv.line, import->csv.n_fields, import->n);
		for (size_t i = 0; i < import->n; i++) {
			look_at(&import->columns[i], &import->csv.fields[i]);
			size += 8 + import->csv.fields[i].len;
		}
		if (size > PFS_TABLE_ROW_MAX)
			return fail(import->error, -EINVAL,
				    "line %" PRIu64 ": a row of more than 8 MiB", import->csv.line);
		import->rows++;
	}
	return got;
}

static void print_name(FILE *out, const char *name)
{
	(void)fputc('"', out);
	for (; *name; name++) {
		if (*name == '"')
			(void)fputc('"', out);
		(void)fputc(*name, out);
	}
	(void)fputc('"', out);
}

static int declare(struct import *import)
{
	size_t size;
	FILE *out = open_memstream(&import->declaration, &size);

	if (!out)
		return -ENOMEM;
	(void)fputs("CREATE TABLE ", out);
	print_name(out, import->name);
	for (size_t i = 0; i < import->n; i++) {
		struct column *column = &import->columns[i];

		column->type = !column->any || (column->not_integer && column->not_real) ? "TEXT"
			       : column->not_integer					 ? "REAL"
						     : "INTEGER";
		(void)fputs(i ? ", " : " (", out);
		print_name(out, column->name);
		(void)fprintf(out, " %s", column->type);
	}
	(void)fputs(");\n", out);
	return fclose(out) ? -ENOMEM : 0;
}

static void set_cell(struct pfs_cell *cell, const struct column *column,
		     const struct pfs_csv_field *field)
{
	*cell = (struct pfs_cell){.type = PFS_CELL_NULL};
	if (is_null(field))
		return;
	if (*column->type == 'I' && pfs_is_integer(&cell->integer, field->text, field->len)) {
		cell->type = PFS_CELL_INTEGER;
	} else if (*column->type == 'R' && pfs_is_real(&cell->real, field->text, field->len)) {
		cell->type = PFS_CELL_REAL;
	} else {
		cell->type = PFS_CELL_TEXT;
		cell->bytes = field->text;
		cell->size = field->len;
	}
}

static int drop_old(struct target *target, struct pfs_store *store)
{
	PFS_TRY(pfs_store_scan_tables(store, find_table, target));
	if (!target->id)
		return 0;
	PFS_TRY(pfs_sides_touch(target->tree, target->id));
	return pfs_store_drop_table(store, target->id);
}

/* In a group of the store's. */
static int write_table(void *arg, struct pfs_store *store)
{
	struct import *import = arg;
	struct target target = {.tree = import->tree, .name = import->name};
	struct pfs_table_record record = {
		.name = import->name,
		.name_len = strlen(import->name),
		.columns = import->declaration,
		.columns_len = strlen(import->declaration),
	};
	struct pfs_side_rows batch PFS_SIDE_ROWS = {.table = 0};
	int got;

	PFS_TRY(drop_old(&target, store));
	PFS_TRY(pfs_store_put_table(store, &batch.table, &record, (unsigned)import->n));
	PFS_TRY(pfs_sides_touch(import->tree, batch.table));
	import->csv.empty_lines = false;
	PFS_TRY(pfs_csv_seek(&import->csv, 0));
	got = next(import); /* the header */
	import->csv.empty_lines = import->n == 1;
	for (int64_t row = 1; got == 1 && (got = next(import)) == 1; row++) {
		for (size_t i = 0; i < import->n; i++)
			set_cell(&import->cells[i], &import->columns[i], &import->csv.fields[i]);
		PFS_TRY(pfs_store_put_row(store, &batch, row, import->cells, import->n));
	}
	return got ? got : pfs_store_write_rows(store, &batch);
}

static int run_import(struct import *import, const struct pfs_table_bytes *bytes)
{
	int error;

	PFS_TRY(check_name(import->name, import->error));
	PFS_TRY(read_all(import, bytes));
	import->csv.input = &import->input;
	PFS_TRY(read_header(import));
	PFS_TRY(look_at_rows(import));
	PFS_TRY(declare(import));
	pfs_sides_hold(import->tree);
	error = pfs_path_index_leaves(import->tree, import->name);
	error = error ? error
		      : pfs_sides_commit(import->tree, import->size + 16 * import->rows,
					 write_table, import);
	pfs_sides_release(import->tree);
	return error == -ENOSPC ? fail(import->error, error, "the store: %s", PFS_STORE_IS_FULL)
				: error;
}

int pfs_table_import(struct pfs_queries *queries, const char *name,
		     const struct pfs_table_bytes *bytes, struct pfs_query_error *error)
{
	struct import import = {.tree = queries->tree, .name = name, .error = error};
	int code;

	import.input.fd = import.input.kept_fd = -1;
	*error->text = 0;
	code = run_import(&import, bytes);
	if (code && !*error->text)
		(void)fail(error, code, "%s: %s", name,
			   code == -EFBIG    ? "more than 512 MiB; split it"
			   : code == -EEXIST ? "an index has that name; choose another"
					     : strerror(-code));
	error->error = code;
	for (size_t i = 0; i < import.n && import.columns; i++)
		free(import.columns[i].name);
	free(import.columns);
	free(import.cells);
	free(import.declaration);
	pfs_csv_free(&import.csv);
	pfs_input_close(&import.input);
	return code;
}

/* ---- dropping ---- */

static int write_drop(void *arg, struct pfs_store *store)
{
	struct target *target = arg;

	PFS_TRY(drop_old(target, store));
	return target->id ? 0 : -ENOENT;
}

int pfs_table_drop(struct pfs_queries *queries, const char *name, struct pfs_query_error *error)
{
	struct target target = {.tree = queries->tree, .name = name};
	int code;

	pfs_sides_hold(queries->tree);
	code = pfs_sides_commit(queries->tree, 0, write_drop, &target);
	pfs_sides_release(queries->tree);
	if (code == -ENOSPC)
		return fail(error, code, "the store: %s", PFS_STORE_IS_FULL);
	if (code)
		return fail(error, code, "%s: %s", name,
			    code == -ENOENT ? "there is no such table" : strerror(-code));
	return 0;
}
