/* SPDX-License-Identifier: MIT */
/* tools/import/import_csv_impl.h - inside of the import of tables: import_csv.c (header, values,
 * what becomes of rows), import_csv_place.c (where rows belong). */
#ifndef PFS_TOOLS_IMPORT_IMPORT_CSV_IMPL_H
#define PFS_TOOLS_IMPORT_IMPORT_CSV_IMPL_H

#include <inttypes.h>

#include "base/csv.h"
#include "tools/import/import.h"
#include "tools/import/import_columns.h"
#include "tools/import/import_paths.h"
#include "tools/import/intern.h"

#define PFS_CSV_NONE  UINT32_MAX
#define PFS_CSV_NO_COLUMN SIZE_MAX

enum pfs_csv_row_state {
	ROW_NEW,
	ROW_ON_WAY, /* on the way up from some row: met again, it is a cycle */
	ROW_PLACED,
	ROW_LEFT_OUT,
};

struct pfs_csv_row {
	uint64_t offset, line;
	uint64_t content;    /* bytes, should it become a file */
	uint64_t name;	     /* in names */
	uint32_t id, parent; /* in ids; parent PFS_CSV_NONE: at the top */
	uint32_t node;
	uint8_t name_len;
	uint8_t state; /* enum pfs_csv_row_state */
	bool any;      /* some attribute has a value */
};

struct pfs_csv_table {
	struct pfs_csv csv;
	size_t n_fields;
	struct pfs_import_columns columns; /* all of them, in order */
	size_t path, id, parent, name; /* with a meaning of their own, or PFS_CSV_NO_COLUMN */
	struct pfs_csv_row *rows;
	size_t n_rows, rows_capacity;
	struct pfs_intern ids;
	uint32_t *row_of_id; /* PFS_CSV_NONE: no such row */
	char *names;
	size_t names_size, names_capacity;
	struct pfs_path_trail trail;
	uint32_t *way; /* rows from one up to one that is settled */
	size_t way_capacity;
	uint32_t *row_of_node; /* 1 + row */
	size_t n_nodes, nodes_capacity;
	unsigned style; /* enum pfs_register_style, as the first row that tells has it */
	bool parent_told, path_told;
};

#define PFS_CSV_WHERE "%s:%" PRIu64 ": " /* the input and a line, before what is wrong with it */

/* The row at hand, number `row`: by its path at once; by its id and parent, when all have been
 * read. */
PFS_MUST_CHECK int pfs_csv_take_path(struct pfs_import *import, size_t row);
PFS_MUST_CHECK int pfs_csv_take_id(struct pfs_import *import, size_t row);
PFS_MUST_CHECK int pfs_csv_place_rows(struct pfs_import *import);

#endif
