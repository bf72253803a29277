/* SPDX-License-Identifier: MIT */
/* A table: one row a node, by a column of paths or by columns of ids, parents and names.
 *
 * Rows come in any order, so the whole table is read first (what is kept of a row: its place, and
 * its id, parent and name); then the tree is made from the top down; the values of the columns are
 * read again when the nodes have their primes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/csv.h"
#include "tools/import.h"
#include "tools/import_columns.h"
#include "tools/import_paths.h"
#include "tools/intern.h"

#define NONE	  UINT32_MAX
#define NO_COLUMN SIZE_MAX

enum row_state {
	ROW_NEW,
	ROW_ON_WAY, /* on the way up from some row: met again, it is a cycle */
	ROW_PLACED,
	ROW_LEFT_OUT,
};

struct row {
	uint64_t offset, line;
	uint64_t content;    /* bytes, should it become a file */
	uint64_t name;	     /* in names */
	uint32_t id, parent; /* in ids; parent NONE: at the top */
	uint32_t node;
	uint8_t name_len;
	uint8_t state; /* enum row_state */
	bool any;      /* some attribute has a value */
};

struct csv {
	struct pfs_csv csv;
	size_t n_fields;
	struct pfs_import_columns columns; /* all of them, in order */
	size_t path, id, parent, name;	   /* columns with a meaning of their own, or NO_COLUMN */
	struct row *rows;
	size_t n_rows, rows_capacity;
	struct pfs_intern ids;
	uint32_t *row_of_id; /* NONE: no such row */
	char *names;
	size_t names_size, names_capacity;
	struct pfs_path_trail trail;
	uint32_t *way; /* rows from one up to one that is settled */
	size_t way_capacity;
	uint32_t *row_of_node; /* 1 + row */
	size_t n_nodes, nodes_capacity;
};

#define WHERE "%s:%" PRIu64 ": "

static int problem(struct pfs_import *import, const struct row *row, const char *what)
{
	return pfs_import_problem(import, WHERE "%s", import->input.name, row->line, what);
}

/* ---- header ---- */

static int no_column(struct pfs_import *import, const char *name)
{
	struct csv *csv = import->state;
	char list[1024];
	size_t i, used = 0;

	list[0] = 0;
	for (i = 0; i < csv->columns.n && used < sizeof(list) - 1; i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 csv->columns.list[i].name);
	return pfs_import_fail(import, "%s:1: no column '%s'; there are: %s", import->input.name,
			       name, list);
}

static size_t find_column(const struct csv *csv, const char *name)
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
	struct csv *csv = import->state;

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
	struct csv *csv = import->state;

	if (error == -EBADMSG)
		return pfs_import_fail(import, WHERE "%s", import->input.name, csv->csv.line, why);
	return pfs_import_unreadable(import, error);
}

/* --columns: the types of some. */
static int declare_types(struct pfs_import *import)
{
	const char *list = import->options.columns;
	struct pfs_import_columns declared = {0};
	struct csv *csv = import->state;
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
	struct csv *csv = import->state;
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

static bool is_attribute(const struct csv *csv, size_t column)
{
	return column != csv->path && column != csv->id && column != csv->parent &&
	       column != csv->name;
}

/* Lines "key: value"; a line that begins with a blank goes on with the value before. */
static uint64_t content_size(const struct csv *csv)
{
	uint64_t size = 0;
	size_t i, at;

	for (i = 0; i < csv->n_fields; i++) {
		const struct pfs_csv_field *field = &csv->csv.fields[i];

		size += csv->columns.list[i].name_len + 2 + field->len + 1;
		for (at = 0; at < field->len; at++)
			size += field->text[at] == '\n';
	}
	return size;
}

/* Looks at the values; 1: the row is to be left out. */
static int see_fields(struct pfs_import *import, struct row *row)
{
	struct csv *csv = import->state;
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

static int note_node(struct csv *csv, uint32_t node, size_t row)
{
	PFS_TRY(pfs_grow(&csv->row_of_node, &csv->nodes_capacity, (size_t)node + 1,
			 sizeof(*csv->row_of_node)));
	while (csv->n_nodes <= node)
		csv->row_of_node[csv->n_nodes++] = 0;
	csv->row_of_node[node] = (uint32_t)row + 1;
	csv->rows[row].node = node;
	csv->rows[row].state = ROW_PLACED;
	return 0;
}

/* What is wrong with a row's node, if anything: -EEXIST, or 0. */
static int check_node(struct pfs_import *import, struct row *row, uint32_t node,
		      enum pfs_build_seen seen)
{
	struct csv *csv = import->state;
	uint32_t other = node < csv->n_nodes ? csv->row_of_node[node] : 0;

	if (other)
		return pfs_import_problem(import,
					  WHERE "the same place in the tree as line %" PRIu64,
					  import->input.name, row->line, csv->rows[other - 1].line);
	if (seen == PFS_BUILD_STORED && !pfs_build_is_directory(import->build, node))
		return problem(import, row, pfs_import_name_error(-EEXIST));
	return 0;
}

static int place_node(struct pfs_import *import, size_t row, uint32_t node,
		      enum pfs_build_seen seen)
{
	struct csv *csv = import->state;
	uint64_t skipped = import->report.skipped;

	PFS_TRY(check_node(import, &csv->rows[row], node, seen));
	if (import->report.skipped != skipped)
		return 0;
	return note_node(csv, node, row);
}

static int take_path(struct pfs_import *import, size_t row)
{
	struct csv *csv = import->state;
	const struct pfs_csv_field *path = &csv->csv.fields[csv->path];
	struct pfs_path_node at;
	int error = path->len ? pfs_path_add(&csv->trail, &at, import->build, path->text, path->len)
			      : -EINVAL;

	if (error == -ENOMEM)
		return error;
	csv->rows[row].state = ROW_LEFT_OUT;
	if (error)
		return problem(import, &csv->rows[row], pfs_import_name_error(error));
	return place_node(import, row, at.node, at.seen);
}

/* Keeps a row's name with other characters for its slashes; the row is NEW if there can be one. */
static int take_name(struct pfs_import *import, struct row *row, const char *name, size_t len)
{
	const char *slash = import->options.slash ? import->options.slash : "/";
	const char *end = name + len;
	struct csv *csv = import->state;
	size_t slash_len = strlen(slash), size = 0;
	bool any = memchr(name, '/', len);
	char *to;

	if (any && !import->options.slash)
		return pfs_import_problem(import,
					  WHERE "the name '%.*s' has a '/'; --slash=CHAR keeps "
						"CHAR in its place",
					  import->input.name, row->line, (int)len, name);
	if (import->options.slash && memmem(name, len, slash, slash_len))
		return pfs_import_problem(import,
					  WHERE "the name '%.*s' has '%s', which --slash keeps "
						"for '/'; choose another character",
					  import->input.name, row->line, (int)len, name, slash);
	PFS_TRY(pfs_grow(&csv->names, &csv->names_capacity,
			 csv->names_size + len * slash_len, 1));
	for (to = csv->names + csv->names_size; name < end; name++) {
		bool other = *name == '/';

		(void)memcpy(to + size, other ? slash : name, other ? slash_len : 1);
		size += other ? slash_len : 1;
	}
	if (size == 0 || size > PFS_NAME_MAX)
		return problem(import, row, pfs_import_name_error(size ? -ENAMETOOLONG : -EINVAL));
	row->name = csv->names_size;
	row->name_len = (uint8_t)size;
	row->state = ROW_NEW;
	csv->names_size += size;
	import->report.slashes += any;
	return 0;
}

static int take_id(struct pfs_import *import, size_t row)
{
	struct csv *csv = import->state;
	const struct pfs_csv_field *id = &csv->csv.fields[csv->id];
	const struct pfs_csv_field *parent = &csv->csv.fields[csv->parent];
	const struct pfs_csv_field *name = &csv->csv.fields[csv->name];
	struct row *to = &csv->rows[row];

	to->state = ROW_LEFT_OUT;
	if (id->len == 0)
		return problem(import, to, "the id is empty");
	PFS_TRY(pfs_intern_add(&csv->ids, &to->id, id->text, id->len));
	to->parent = NONE;
	if (parent->len)
		PFS_TRY(pfs_intern_add(&csv->ids, &to->parent, parent->text, parent->len));
	if (to->parent == to->id)
		to->parent = NONE;
	return take_name(import, to, name->text, name->len);
}

static int take_row(struct pfs_import *import)
{
	struct csv *csv = import->state;
	size_t n = csv->n_rows;
	int error;

	if (n >= NONE - 1)
		return -EFBIG;
	PFS_TRY(pfs_grow(&csv->rows, &csv->rows_capacity, n + 1, sizeof(*csv->rows)));
	csv->rows[n] = (struct row){
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
	return csv->path != NO_COLUMN ? take_path(import, n) : take_id(import, n);
}

static int read_rows(struct pfs_import *import)
{
	struct csv *csv = import->state;
	const char *why = NULL;
	int got;

	while ((got = pfs_csv_next(&csv->csv, &why)) == 1) {
		PFS_TRY(take_row(import));
		if (csv->n_rows % 16384 == 0)
			pfs_import_progress(import);
	}
	return got < 0 ? broken(import, got, why) : 0;
}

/* ---- between the passes: parents and children ---- */

static int index_ids(struct pfs_import *import)
{
	struct csv *csv = import->state;
	size_t i;

	csv->row_of_id = malloc((csv->ids.n + 1) * sizeof(*csv->row_of_id));
	if (!csv->row_of_id)
		return -ENOMEM;
	(void)memset(csv->row_of_id, 0xff, (csv->ids.n + 1) * sizeof(*csv->row_of_id));
	for (i = 0; i < csv->n_rows; i++) {
		struct row *row = &csv->rows[i];
		uint32_t *first;

		if (row->state == ROW_LEFT_OUT)
			continue;
		first = &csv->row_of_id[row->id];
		if (*first == NONE) {
			*first = (uint32_t)i;
			continue;
		}
		row->state = ROW_LEFT_OUT;
		PFS_TRY(pfs_import_problem(import, WHERE "the same id as line %" PRIu64,
					   import->input.name, row->line, csv->rows[*first].line));
	}
	return 0;
}

/* Under the parent, which has been placed (NONE: at the top). */
static int place_row(struct pfs_import *import, size_t n, uint32_t parent)
{
	struct csv *csv = import->state;
	struct row *row = &csv->rows[n];
	enum pfs_build_seen seen;
	uint32_t node;
	int error;

	row->state = ROW_LEFT_OUT;
	if (parent != NONE && csv->rows[parent].state == ROW_LEFT_OUT)
		return pfs_import_problem(import,
					  WHERE "its parent, line %" PRIu64 ", was left out",
					  import->input.name, row->line, csv->rows[parent].line);
	error = pfs_build_add(import->build, &node, &seen,
			      parent == NONE ? PFS_BUILD_ROOT : csv->rows[parent].node,
			      csv->names + row->name, row->name_len, NULL);
	if (error == -ENOMEM)
		return error;
	if (error)
		return problem(import, row, pfs_import_name_error(error));
	return place_node(import, n, node, seen);
}

/* Looks up from a row to one that is settled, or the top: csv->way[0..*n). */
static int look_up(struct pfs_import *import, size_t *n, uint32_t row)
{
	struct csv *csv = import->state;

	for (*n = 0; row != NONE && csv->rows[row].state == ROW_NEW;) {
		struct row *at = &csv->rows[row];
		uint32_t up;

		at->state = ROW_ON_WAY;
		PFS_TRY(pfs_grow(&csv->way, &csv->way_capacity, *n + 1, sizeof(*csv->way)));
		csv->way[(*n)++] = row;
		if (at->parent == NONE)
			return 0;
		up = csv->row_of_id[at->parent];
		if (up == NONE) {
			size_t len;
			const char *id = pfs_intern_get(&csv->ids, &len, at->parent);

			at->state = ROW_LEFT_OUT;
			--*n;
			return pfs_import_problem(
				import, WHERE "no row has the id of its parent, '%.*s'",
				import->input.name, at->line, (int)PFS_MIN(len, 200), id);
		}
		if (csv->rows[up].state == ROW_ON_WAY) {
			at->state = ROW_LEFT_OUT;
			--*n;
			return pfs_import_problem(import,
						  WHERE "lies under itself, through line %" PRIu64,
						  import->input.name, at->line, csv->rows[up].line);
		}
		row = up;
	}
	return 0;
}

static int place_rows(struct pfs_import *import)
{
	struct csv *csv = import->state;
	size_t n, i;

	PFS_TRY(index_ids(import));
	for (i = 0; i < csv->n_rows; i++) {
		PFS_TRY(look_up(import, &n, (uint32_t)i));
		while (n--) {
			uint32_t parent = csv->rows[csv->way[n]].parent;

			PFS_TRY(place_row(import, csv->way[n],
					  parent == NONE ? NONE : csv->row_of_id[parent]));
		}
	}
	return 0;
}

/* ---- the tree is known: who is a file, who has attributes ---- */

static int settle_rows(struct pfs_import *import)
{
	struct csv *csv = import->state;
	size_t i;

	for (i = 0; i < csv->n_rows; i++) {
		const struct row *row = &csv->rows[i];
		struct stat attr = import->defaults;

		if (row->state != ROW_PLACED)
			continue;
		if (row->any)
			pfs_build_set_flags(import->build, row->node, PFS_NODE_ATTRS, 0);
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
	struct csv *csv = calloc(1, sizeof(*csv));

	if (!csv)
		return -ENOMEM;
	import->state = csv;
	csv->csv.input = &import->input;
	csv->csv.delimiter = import->options.delimiter;
	PFS_TRY(pfs_import_keep(import));
	PFS_TRY(read_header(import));
	PFS_TRY(read_rows(import));
	if (csv->path == NO_COLUMN)
		PFS_TRY(place_rows(import));
	pfs_intern_free(&csv->ids);
	return settle_rows(import);
}

/* ---- second pass ---- */

static void print_content(const struct csv *csv, char *to)
{
	size_t i, at;

	for (i = 0; i < csv->n_fields; i++) {
		const struct pfs_csv_field *field = &csv->csv.fields[i];
		const struct pfs_import_column *column = &csv->columns.list[i];

		(void)memcpy(to, column->name, column->name_len);
		to += column->name_len;
		*to++ = ':';
		*to++ = ' ';
		for (at = 0; at < field->len; at++) {
			*to++ = field->text[at];
			if (field->text[at] == '\n')
				*to++ = ' ';
		}
		*to++ = '\n';
	}
}

static int put_content(struct pfs_import *import, uint64_t prime, uint64_t size)
{
	char *content PFS_FREE = malloc(size + 1);
	uint64_t at;

	if (!content)
		return -ENOMEM;
	print_content(import->state, content);
	for (at = 0; at < size; at += PFS_CHUNK_SIZE)
		PFS_TRY(pfs_store_put_chunk(pfs_build_store(import->build), prime,
					    at / PFS_CHUNK_SIZE, content + at,
					    PFS_MIN(size - at, PFS_CHUNK_SIZE)));
	return 0;
}

static int csv_written(struct pfs_import *import, uint32_t node, uint64_t prime)
{
	struct csv *csv = import->state;
	const struct row *row;
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
	if (node == PFS_BUILD_ROOT || pfs_build_is_directory(import->build, node))
		return 0;
	return put_content(import, prime, row->content);
}

static void close_csv(struct pfs_import *import)
{
	struct csv *csv = import->state;

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
	.close = close_csv,
};
