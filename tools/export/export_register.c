/* SPDX-License-Identifier: MIT */
/* A table as it was imported: its columns in their order, a row for each node, ids and parents as
 * the tree is now. Attributes that the table did not have follow as further columns. */
#include "tools/export/export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/csv.h"
#include "base/number.h"
#include "tools/cmd.h"

struct table {
	struct pfs_export *to;
	struct pfs_register_record form;
	bool ncbi;
	size_t n; /* columns of the table; further ones are in to->columns */
	int64_t next_id;
	int64_t *new_ids; /* by depth, of the nodes on the way; 0: it has no number yet */
	size_t n_depths;
	uint64_t n_lost; /* how many rows are below a node without an id */
	/* the present node or, with paths, the one before: only then is it known whether a
	 * directory is empty */
	char *path; /* it begins with a slash */
	size_t path_len, path_capacity;
	uint64_t ino;
	uint32_t depth;
	bool any, directory, row;
	char value[PFS_ATTR_VALUE_MAX];
};

/* ---- fields ---- */

static int print_field(struct table *table, const char *column, const char *value, size_t len)
{
	struct pfs_export *to = table->to;

	if (!table->ncbi) {
		pfs_csv_print(to->out, *table->form.delimiter, value, len);
		return 0;
	}
	if (memchr(value, '\n', len) || memmem(value, len, PFS_CSV_NCBI, 2))
		return pfs_export_fail(to,
				       "the value '%.*s' of '%s' has a line end, or a tab and a "
				       "bar, in it, which such a table cannot hold; name the "
				       "columns with --columns, for commas",
				       (int)PFS_MIN(len, 200), value, column);
	(void)fwrite(value, 1, len, to->out);
	return 0;
}

static void print_delimiter(const struct table *table, size_t column)
{
	if (column)
		(void)fputs(table->form.delimiter, table->to->out);
}

static int end_record(const struct table *table)
{
	(void)fputs(table->ncbi ? "\t|\n" : "\n", table->to->out);
	return pfs_export_out_failed(table->to);
}

static int print_header(struct table *table)
{
	struct pfs_export *to = table->to;
	const char *column = table->form.columns;
	size_t i;

	for (i = 0; i < table->n; i++, column += strlen(column) + 1) {
		print_delimiter(table, i);
		PFS_TRY(print_field(table, column, column, strlen(column)));
	}
	for (i = 0; i < to->n_columns; i++) {
		print_delimiter(table, 1);
		PFS_TRY(print_field(table, to->columns[i], to->columns[i], strlen(to->columns[i])));
	}
	return end_record(table);
}

/* Prints the path as the table had it: with or without the first slash, and with one behind an
 * empty directory. */
static int print_path(struct table *table, const char *column)
{
	size_t skip = !(table->form.style & PFS_REGISTER_SLASHED) && table->path_len > 1;

	return print_field(table, column, table->path + skip, table->path_len - skip);
}

static int print_column(struct table *table, int number, const char *column)
{
	const struct pfs_register_record *form = &table->form;
	int64_t new = 0;
	ssize_t len;

	if (number == form->path)
		return print_path(table, column);
	len = pfs_export_value(table->to, table->value, table->ino, column);
	if (len < 0)
		return (int)len;
	if (len == 0 && table->depth && number == form->id)
		new = table->new_ids[table->depth];
	else if (len == 0 && table->depth && number == form->parent)
		new = table->new_ids[table->depth - 1];
	table->n_lost += len == 0 && !new && number == form->parent && table->depth > 1;
	if (new)
		len = (ssize_t)pfs_print_integer(table->value, new);
	return print_field(table, column, table->value, (size_t)len);
}

static int print_row(struct table *table)
{
	struct pfs_export *to = table->to;
	const char *column = table->form.columns;
	size_t i;

	for (i = 0; i < table->n; i++, column += strlen(column) + 1) {
		print_delimiter(table, i);
		PFS_TRY(print_column(table, (int)i, column));
	}
	for (i = 0; i < to->n_columns; i++) {
		print_delimiter(table, 1);
		PFS_TRY(print_column(table, PFS_NO_COLUMN - 1, to->columns[i]));
	}
	return end_record(table);
}

/* ---- rows that lie where a path says ---- */

/* Returns true if the directory has a value: a directory that is only a part of other paths was no
 * row. */
static int has_value(struct table *table)
{
	const char *column = table->form.columns;
	size_t i;

	for (i = 0; i < table->n; i++, column += strlen(column) + 1)
		if ((int)i != table->form.path &&
		    pfs_export_value(table->to, table->value, table->ino, column) > 0)
			return true;
	for (i = 0; i < table->to->n_columns; i++)
		if (pfs_export_value(table->to, table->value, table->ino, table->to->columns[i]) >
		    0)
			return true;
	return false;
}

static int print_last(struct table *table, uint32_t next_depth)
{
	bool empty = table->directory && next_depth <= table->depth && table->depth;

	if (!table->any ||
	    (table->directory && !table->row && !(empty && table->depth) && !has_value(table)))
		return 0;
	if (empty)
		table->path[table->path_len++] = '/';
	return print_row(table);
}

static int visit_path(void *arg, const struct pfs_walk_node *node)
{
	struct table *table = arg;

	PFS_TRY(print_last(table, node->depth));
	PFS_TRY(pfs_grow(&table->path, &table->path_capacity, node->path_len + 3, 1));
	table->path[0] = '/';
	(void)memcpy(table->path + 1, node->path, node->path_len);
	table->path_len = node->path_len + 1;
	table->ino = node->entry.attr.st_ino;
	table->depth = node->depth;
	table->directory = S_ISDIR(node->entry.attr.st_mode);
	table->row = node->entry.row;
	table->any = true;
	return 0;
}

static int write_paths(struct table *table)
{
	PFS_TRY(pfs_tree_walk(table->to->tree, table->to->root, visit_path, table));
	return print_last(table, 0);
}

/* ---- rows with ids ---- */

static const char *id_column(const struct table *table)
{
	const char *column = table->form.columns;
	int i;

	for (i = 0; i < table->form.id; i++)
		column += strlen(column) + 1;
	return column;
}

/* The next id is greater than every number that is one. */
static int find_next_id(void *arg, const struct pfs_walk_node *node)
{
	struct table *table = arg;
	ssize_t len = pfs_export_value(table->to, table->value, node->entry.attr.st_ino,
				       id_column(table));
	int64_t id;

	if (len < 0)
		return (int)len;
	if (len && pfs_is_integer(&id, table->value, (size_t)len) && id >= table->next_id &&
	    id < INT64_MAX)
		table->next_id = id + 1;
	return 0;
}

static int number_node(struct table *table)
{
	size_t depth = table->depth;
	ssize_t len;

	PFS_TRY(pfs_grow(&table->new_ids, &table->n_depths, depth + 1, sizeof(*table->new_ids)));
	table->new_ids[depth] = 0;
	if (!table->to->new_ids || !depth)
		return 0;
	len = pfs_export_value(table->to, table->value, table->ino, id_column(table));
	if (len == 0)
		table->new_ids[depth] = table->next_id++;
	return len < 0 ? (int)len : 0;
}

static int visit_id(void *arg, const struct pfs_walk_node *node)
{
	struct table *table = arg;

	table->ino = node->entry.attr.st_ino;
	table->depth = node->depth;
	PFS_TRY(number_node(table));
	return node->depth ? print_row(table) : 0;
}

static int write_ids(struct table *table)
{
	struct pfs_export *to = table->to;

	table->next_id = 1;
	if (to->new_ids)
		PFS_TRY(pfs_tree_walk(to->tree, to->root, find_next_id, table));
	PFS_TRY(pfs_tree_walk(to->tree, to->root, visit_id, table));
	if (table->n_lost)
		pfs_cmd_say("export",
			    "%s: %" PRIu64
			    " rows lie in directories that have no id, so that they have none of a "
			    "parent; --new-ids gives them numbers",
			    to->store, table->n_lost);
	return 0;
}

/* ---- the table ---- */

/* Leaves in to->columns what the table does not have. */
static int find_others(struct table *table)
{
	struct pfs_export *to = table->to;
	const char *column = table->form.columns, *end = column + table->form.columns_len;
	size_t i, kept;

	PFS_TRY(pfs_export_add_present(to));
	for (table->n = 0; column < end; column += strlen(column) + 1, table->n++) {
		for (i = kept = 0; i < to->n_columns; i++) {
			if (strcmp(to->columns[i], column) == 0)
				free(to->columns[i]);
			else
				to->columns[kept++] = to->columns[i];
		}
		to->n_columns = kept;
	}
	return 0;
}

static int write_table(struct table *table)
{
	table->ncbi = strcmp(table->form.delimiter, PFS_CSV_NCBI) == 0;
	if (table->to->new_ids && table->form.path != PFS_NO_COLUMN)
		return pfs_export_fail(table->to, "--new-ids: the table has paths and no ids");
	PFS_TRY(find_others(table));
	PFS_TRY(print_header(table));
	return table->form.path != PFS_NO_COLUMN ? write_paths(table) : write_ids(table);
}

int pfs_export_register(struct pfs_export *to)
{
	struct table *table = calloc(1, sizeof(*table));
	int error;

	if (!table)
		return -ENOMEM;
	table->to = to;
	error = pfs_tree_register(to->tree, &table->form, to->root);
	if (!error)
		error = write_table(table);
	else if (to->new_ids)
		error = pfs_export_fail(to, "--new-ids: nothing there came in a table with ids");
	free(table->path);
	free(table->new_ids);
	free(table);
	return error > 0 ? 0 : error;
}
