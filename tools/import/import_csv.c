/* SPDX-License-Identifier: MIT */
/* A table: one row a node, by a column of paths or by columns of ids, parents and names.
 *
 * Rows come in any order, so the whole table is read first (what is kept of a row: its place, and
 * its id, parent and name); then the tree is made from the top down; the values of the columns are
 * read again when the nodes have their primes. */
#include "tools/import/import_csv_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/query/query.h"

#define PROGRESS  16384u /* rows between two looks whether to tell of it */
#define NONE	  PFS_CSV_NONE
#define NO_COLUMN PFS_CSV_NO_COLUMN
#define WHERE	  PFS_CSV_WHERE

/* ---- header ---- */

static int no_column(struct pfs_import *import, const char *name)
{
	struct pfs_csv_table *csv = import->state;
	char list[1024];
	size_t i, used = 0;

	list[0] = 0;
	for (i = 0; i < csv->columns.n && used < sizeof(list) - 1; i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 csv->columns.list[i].name);
	return pfs_import_fail(import, "%s:1: no column '%s'; there are: %s", import->input.name,
			       name, list);
}

static size_t find_column(const struct pfs_csv_table *csv, const char *name)
{
	size_t i;

	for (i = 0; name && i < csv->columns.n; i++)
		if (strcmp(csv->columns.list[i].name, name) == 0)
			return i;
	return NO_COLUMN;
}

static int choose(struct pfs_import *import, size_t *column, const char *name)
{
	*column = find_column(import->state, name);
	return *column == NO_COLUMN ? no_column(import, name) : 0;
}

/* Which columns have a meaning: those named, or path, or id, parent and name. */
static int choose_columns(struct pfs_import *import)
{
	const struct pfs_import_options *options = &import->options;
	struct pfs_csv_table *csv = import->state;

	csv->path = csv->id = csv->parent = csv->name = NO_COLUMN;
	if (options->path_column)
		return choose(import, &csv->path, options->path_column);
	if (!options->id_column && !options->parent_column && !options->name_column) {
		csv->path = find_column(csv, "path");
		if (csv->path != NO_COLUMN)
			return 0;
		if (find_column(csv, "id") == NO_COLUMN)
			return pfs_import_fail(import,
					       "%s:1: a table; say where its rows belong: "
					       "--path=COLUMN, or --id=COLUMN --parent=COLUMN "
					       "--name=COLUMN (or --format=paths for a list)",
					       import->input.name);
	}
	PFS_TRY(choose(import, &csv->id, options->id_column ? options->id_column : "id"));
	PFS_TRY(choose(import, &csv->parent,
		       options->parent_column ? options->parent_column : "parent"));
	return choose(import, &csv->name, options->name_column ? options->name_column : "name");
}

static int broken(struct pfs_import *import, int error, const char *why)
{
	struct pfs_csv_table *csv = import->state;

	if (error == -EBADMSG)
		return pfs_import_fail(import, WHERE "%s", import->input.name, csv->csv.line, why);
	return pfs_import_unreadable(import, error);
}

/* --columns: the types of some. */
static int declare_types(struct pfs_import *import)
{
	const char *list = import->options.columns;
	struct pfs_import_columns declared = {0};
	struct pfs_csv_table *csv = import->state;
	const char *why = list ? pfs_import_columns_parse(&declared, list) : NULL;
	int error = why ? pfs_import_fail(import, "--columns=%s: %s", list, why) : 0;
	size_t i, column;

	for (i = 0; i < declared.n && !error; i++) {
		error = choose(import, &column, declared.list[i].name);
		if (!error) {
			csv->columns.list[column].type = declared.list[i].type;
			csv->columns.list[column].declared = declared.list[i].declared;
		}
	}
	pfs_import_columns_free(&declared);
	return error;
}

static int read_header(struct pfs_import *import)
{
	struct pfs_csv_table *csv = import->state;
	const char *why = NULL;
	size_t i;
	int got = pfs_csv_next(&csv->csv, &why);

	if (got < 0)
		return broken(import, got, why);
	if (got == 0)
		return pfs_import_fail(import,
				       "%s: empty; a table begins with a row of column names",
				       import->input.name);
	csv->n_fields = csv->csv.n_fields;
	for (i = 0; i < csv->n_fields && !why; i++)
		why = pfs_import_columns_add(&csv->columns, csv->csv.fields[i].text,
					     csv->csv.fields[i].len);
	if (why)
		return pfs_import_fail(import, "%s:1: column %zu: %s", import->input.name, i, why);
	PFS_TRY(declare_types(import));
	return choose_columns(import);
}

/* ---- first pass: what is kept of a row ---- */

/* The others follow from where the node is (fs/content/register.h). */
static bool is_attribute(const struct pfs_csv_table *csv, size_t column)
{
	return column == csv->id ||
	       (column != csv->path && column != csv->parent && column != csv->name);
}

/* Returns the size of the content that fs/content/row.h makes of the row: a parent is shown as its
 * id. */
static uint64_t content_size(const struct pfs_csv_table *csv)
{
	uint64_t size = 0;
	size_t i, at;

	for (i = 0; i < csv->n_fields; i++) {
		const struct pfs_csv_field *field = &csv->csv.fields[i];
		const struct pfs_import_column *column = &csv->columns.list[i];

		if (i == csv->path)
			continue;
		size += column->name_len + 3;
		if (i == csv->parent)
			column = &csv->columns.list[csv->id];
		size += pfs_import_column_printed(column, field->text, field->len);
		for (at = 0; at < field->len; at++)
			size += field->text[at] == '\n';
	}
	return size;
}

/* Looks at the values; 1: the row is to be left out. */
static int see_fields(struct pfs_import *import, struct pfs_csv_row *row)
{
	struct pfs_csv_table *csv = import->state;
	size_t i;

	if (csv->csv.n_fields != csv->n_fields) {
		PFS_TRY(pfs_import_problem(import, WHERE "%zu fields; the header has %zu",
					   import->input.name, row->line, csv->csv.n_fields,
					   csv->n_fields));
		return 1;
	}
	for (i = 0; i < csv->n_fields; i++) {
		const struct pfs_csv_field *field = &csv->csv.fields[i];
		const char *why = NULL;

		if (is_attribute(csv, i))
			why = pfs_import_column_see(&csv->columns.list[i], field->text, field->len);
		if (why) {
			PFS_TRY(pfs_import_problem(import, WHERE "the value of '%s' %s",
						   import->input.name, row->line,
						   csv->columns.list[i].name, why));
			return 1;
		}
		row->any |= field->len > 0 && is_attribute(csv, i);
	}
	row->content = content_size(csv);
	return 0;
}

static int take_row(struct pfs_import *import)
{
	struct pfs_csv_table *csv = import->state;
	size_t n = csv->n_rows;
	int error;

	if (n >= NONE - 1)
		return -EOVERFLOW;
	PFS_TRY(pfs_grow(&csv->rows, &csv->rows_capacity, n + 1, sizeof(*csv->rows)));
	csv->rows[n] = (struct pfs_csv_row){
		.offset = csv->csv.offset,
		.line = csv->csv.line,
		.state = ROW_LEFT_OUT,
		.parent = NONE,
		.id = NONE,
	};
	csv->n_rows++;
	error = see_fields(import, &csv->rows[n]);
	if (error)
		return error > 0 ? 0 : error;
	return csv->path != NO_COLUMN ? pfs_csv_take_path(import, n) : pfs_csv_take_id(import, n);
}

static int read_rows(struct pfs_import *import)
{
	struct pfs_csv_table *csv = import->state;
	const char *why = NULL;
	int got;

	while ((got = pfs_csv_next(&csv->csv, &why)) == 1) {
		PFS_TRY(take_row(import));
		if (csv->n_rows % PROGRESS == 0)
			pfs_import_progress(import);
	}
	return got < 0 ? broken(import, got, why) : 0;
}

/* ---- the tree is known: who is a file, who has attributes ---- */

static int settle_rows(struct pfs_import *import)
{
	struct pfs_csv_table *csv = import->state;
	size_t i;

	for (i = 0; i < csv->n_rows; i++) {
		const struct pfs_csv_row *row = &csv->rows[i];
		struct stat attr = import->defaults;

		if (row->state != ROW_PLACED)
			continue;
		pfs_build_set_flags(import->build, row->node,
				    PFS_NODE_ROW | (row->any ? PFS_NODE_ATTRS : 0), 0);
		if (row->node == PFS_BUILD_ROOT || pfs_build_is_directory(import->build, row->node))
			continue;
		attr.st_size = (off_t)row->content;
		attr.st_blocks = pfs_import_blocks(row->content);
		PFS_TRY(pfs_build_set(import->build, row->node, &attr));
	}
	for (i = 0; i < csv->columns.n; i++)
		if (!is_attribute(csv, i))
			csv->columns.list[i].kept_out = true;
	return pfs_import_columns_settle(&csv->columns, pfs_build_store(import->build));
}

static int read_csv(struct pfs_import *import)
{
	struct pfs_csv_table *csv = calloc(1, sizeof(*csv));

	if (!csv)
		return -ENOMEM;
	import->state = csv;
	csv->csv.input = &import->input;
	csv->csv.delimiter = import->options.delimiter;
	PFS_TRY(pfs_import_keep(import));
	PFS_TRY(read_header(import));
	PFS_TRY(read_rows(import));
	if (csv->path == NO_COLUMN)
		PFS_TRY(pfs_csv_place_rows(import));
	pfs_intern_free(&csv->ids);
	return settle_rows(import);
}

/* ---- second pass ---- */

static int csv_written(struct pfs_import *import, uint32_t node, uint64_t prime)
{
	struct pfs_csv_table *csv = import->state;
	const struct pfs_csv_row *row;
	const char *why;
	size_t i;

	if (node >= csv->n_nodes || !csv->row_of_node[node])
		return 0;
	row = &csv->rows[csv->row_of_node[node] - 1];
	PFS_TRY(pfs_csv_seek(&csv->csv, row->offset));
	if (pfs_csv_next(&csv->csv, &why) != 1 || csv->csv.n_fields != csv->n_fields ||
	    content_size(csv) != row->content)
		return pfs_import_fail(import, "%s: changed while it was read", import->input.name);
	for (i = 0; i < csv->n_fields; i++)
		if (is_attribute(csv, i))
			PFS_TRY(pfs_import_column_put(
				&csv->columns.list[i], pfs_build_store(import->build), prime,
				csv->csv.fields[i].text, csv->csv.fields[i].len));
	return 0;
}

/* ---- the register ---- */

static bool same_register(const struct pfs_register_record *a, const struct pfs_register_record *b)
{
	return a->root == b->root && a->path == b->path && a->id == b->id &&
	       a->parent == b->parent && a->name == b->name && a->style == b->style &&
	       strcmp(a->delimiter, b->delimiter) == 0 && strcmp(a->slash, b->slash) == 0 &&
	       a->columns_len == b->columns_len &&
	       memcmp(a->columns, b->columns, a->columns_len) == 0;
}

/* -EEXIST when it is the one looked for. */
static int compare_register(void *arg, const struct pfs_register_record *record)
{
	return same_register(arg, record) ? -EEXIST : 0;
}

static int column_number(size_t column)
{
	return column == NO_COLUMN ? PFS_NO_COLUMN : (int)column;
}

static void copy_sign(char to[PFS_REGISTER_SIGN_MAX + 1], const char *sign)
{
	(void)snprintf(to, PFS_REGISTER_SIGN_MAX + 1, "%s", sign);
}

/* What export needs to give the table back, and the tree to show its rows. */
static int finish_csv(struct pfs_import *import)
{
	struct pfs_store *store = pfs_build_store(import->build);
	const struct pfs_import_options *options = &import->options;
	struct pfs_csv_table *csv = import->state;
	struct pfs_register_record record = {
		.root = pfs_build_prime(import->build, PFS_BUILD_ROOT),
		.path = column_number(csv->path),
		.id = column_number(csv->id),
		.parent = column_number(csv->parent),
		.name = column_number(csv->name),
		.style = csv->style,
	};
	char *columns PFS_FREE = NULL;
	size_t i, len = 0;
	int error;

	for (i = 0; i < csv->columns.n; i++)
		len += csv->columns.list[i].name_len + 1;
	columns = malloc(len + 1);
	if (!columns)
		return -ENOMEM;
	for (i = 0, len = 0; i < csv->columns.n; i++) {
		const struct pfs_import_column *column = &csv->columns.list[i];

		(void)memcpy(columns + len, column->name, column->name_len + 1);
		len += column->name_len + 1;
		if (pfs_nodes_has_column(column->name))
			pfs_import_note_column(import, column->name);
	}
	if (len > PFS_REGISTER_COLUMNS_MAX)
		return pfs_import_fail(import,
				       "%s:1: the names of the columns take more than 1 MiB",
				       import->input.name);
	record.columns = columns;
	record.columns_len = len;
	copy_sign(record.delimiter, options->delimiter ? options->delimiter : ",");
	copy_sign(record.slash, options->slash ? options->slash : "");
	error = pfs_store_scan_registers(store, compare_register, &record);
	if (error)
		return error == -EEXIST ? 0 : error;
	return pfs_store_put_register(store, &record);
}

static void close_csv(struct pfs_import *import)
{
	struct pfs_csv_table *csv = import->state;

	if (!csv)
		return;
	pfs_csv_free(&csv->csv);
	pfs_import_columns_free(&csv->columns);
	pfs_intern_free(&csv->ids);
	pfs_path_free(&csv->trail);
	free(csv->rows);
	free(csv->row_of_id);
	free(csv->names);
	free(csv->row_of_node);
	free(csv->way);
	free(csv);
}

const struct pfs_import_format pfs_import_csv = {
	.name = "csv",
	.read = read_csv,
	.written = csv_written,
	.finished = finish_csv,
	.close = close_csv,
};
