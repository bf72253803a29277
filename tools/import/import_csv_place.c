/* SPDX-License-Identifier: MIT */
/* Where the rows of a table belong: by a path, or by an id, that of the parent, and a name. */
#include "tools/import/import_csv_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define NONE  PFS_CSV_NONE
#define WHERE PFS_CSV_WHERE

/* pfs_import_problem with a row. */
static int problem(struct pfs_import *import, const struct pfs_csv_row *row, const char *what)
{
	return pfs_import_problem(import, WHERE "%s", import->input.name, row->line, what);
}

/* ---- a node for a row ---- */

static int note_node(struct pfs_csv_table *csv, uint32_t node, size_t row)
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
static int check_node(struct pfs_import *import, struct pfs_csv_row *row, uint32_t node,
		      enum pfs_build_seen seen)
{
	struct pfs_csv_table *csv = import->state;
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
	struct pfs_csv_table *csv = import->state;
	uint64_t skipped = import->report.skipped;

	PFS_TRY(check_node(import, &csv->rows[row], node, seen));
	if (import->report.skipped != skipped)
		return 0;
	return note_node(csv, node, row);
}

int pfs_csv_take_path(struct pfs_import *import, size_t row)
{
	struct pfs_csv_table *csv = import->state;
	const struct pfs_csv_field *path = &csv->csv.fields[csv->path];
	struct pfs_path_node at;
	int error = path->len ? pfs_path_add(&csv->trail, &at, import->build, path->text, path->len)
			      : -EINVAL;

	if (error == -ENOMEM || error == -EOVERFLOW)
		return error;
	csv->rows[row].state = ROW_LEFT_OUT;
	if (!csv->path_told && path->len && *path->text == '/')
		csv->style |= PFS_REGISTER_SLASHED;
	csv->path_told = true;
	if (error)
		return problem(import, &csv->rows[row], pfs_import_name_error(error));
	return place_node(import, row, at.node, at.seen);
}

/* Keeps a row's name with other characters for its slashes; the row is NEW if there can be one. */
static int take_name(struct pfs_import *import, struct pfs_csv_row *row, const char *name,
		     size_t len)
{
	const char *slash = import->options.slash ? import->options.slash : "/";
	const char *end = name + len;
	struct pfs_csv_table *csv = import->state;
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
		return problem(import, row,
				       pfs_import_name_error(size ? -ENAMETOOLONG : -EINVAL));
	row->name = csv->names_size;
	row->name_len = (uint8_t)size;
	row->state = ROW_NEW;
	csv->names_size += size;
	import->report.slashes += any;
	return 0;
}

int pfs_csv_take_id(struct pfs_import *import, size_t row)
{
	struct pfs_csv_table *csv = import->state;
	const struct pfs_csv_field *id = &csv->csv.fields[csv->id];
	const struct pfs_csv_field *parent = &csv->csv.fields[csv->parent];
	const struct pfs_csv_field *name = &csv->csv.fields[csv->name];
	struct pfs_csv_row *to = &csv->rows[row];

	to->state = ROW_LEFT_OUT;
	if (id->len == 0)
		return problem(import, to, "the id is empty");
	PFS_TRY(pfs_intern_add(&csv->ids, &to->id, id->text, id->len));
	to->parent = NONE;
	if (parent->len)
		PFS_TRY(pfs_intern_add(&csv->ids, &to->parent, parent->text, parent->len));
	if (!csv->parent_told && (to->parent == NONE || to->parent == to->id))
		csv->style |= to->parent == to->id ? PFS_REGISTER_OWN_PARENT : 0;
	csv->parent_told |= to->parent == NONE || to->parent == to->id;
	if (to->parent == to->id)
		to->parent = NONE;
	return take_name(import, to, name->text, name->len);
}

/* ---- between the passes: parents and children ---- */

static int index_ids(struct pfs_import *import)
{
	struct pfs_csv_table *csv = import->state;
	size_t i;

	csv->row_of_id = malloc((csv->ids.n + 1) * sizeof(*csv->row_of_id));
	if (!csv->row_of_id)
		return -ENOMEM;
	(void)memset(csv->row_of_id, 0xff, (csv->ids.n + 1) * sizeof(*csv->row_of_id));
	for (i = 0; i < csv->n_rows; i++) {
		struct pfs_csv_row *row = &csv->rows[i];
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
	struct pfs_csv_table *csv = import->state;
	struct pfs_csv_row *row = &csv->rows[n];
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
	if (error == -ENOMEM || error == -EOVERFLOW)
		return error;
	if (error)
		return problem(import, row, pfs_import_name_error(error));
	return place_node(import, n, node, seen);
}

/* Looks up from a row to one that is settled, or the top: csv->way[0..*n). */
static int look_up(struct pfs_import *import, size_t *n, uint32_t row)
{
	struct pfs_csv_table *csv = import->state;

	for (*n = 0; row != NONE && csv->rows[row].state == ROW_NEW;) {
		struct pfs_csv_row *at = &csv->rows[row];
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

int pfs_csv_place_rows(struct pfs_import *import)
{
	struct pfs_csv_table *csv = import->state;
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
