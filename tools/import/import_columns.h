/* SPDX-License-Identifier: MIT */
/* tools/import/import_columns.h - columns of a table that become typed attributes.
 *
 * A type that is not declared is inferred: integer, or else real, if every value prints back byte
 * for byte, else text.  An empty field is no value. */
#ifndef PFS_TOOLS_IMPORT_IMPORT_COLUMNS_H
#define PFS_TOOLS_IMPORT_IMPORT_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "meta/store.h"

struct pfs_import_column {
	char *name;
	size_t name_len;
	enum pfs_attr_type type; /* once declared or settled */
	bool declared;
	bool integers, reals; /* all values seen were such */
	bool seen;
	bool kept_out; /* no attribute */
};

struct pfs_import_columns {
	struct pfs_import_column *list;
	size_t n, capacity;
	char why[384]; /* a sentence with a name in it */
};

/* Adds a column. Returns NULL, or a sentence about why there can be no such attribute. */
const char *pfs_import_columns_add(struct pfs_import_columns *columns, const void *name,
				   size_t name_len);

/* Adds the columns of "name[:int|real|text],...". Returns NULL or a sentence. */
const char *pfs_import_columns_parse(struct pfs_import_columns *columns, const char *text);
void pfs_import_columns_free(struct pfs_import_columns *columns);

/* Looks at a value, in the first pass. Returns NULL, or why it cannot be one of this column. */
const char *pfs_import_column_see(struct pfs_import_column *column, const void *text, size_t len);

/* Returns the length of a value that was seen, as the attribute prints. */
size_t pfs_import_column_printed(const struct pfs_import_column *column, const void *text,
				 size_t len);

/* Between the passes: decides all types and tells the store. */
PFS_MUST_CHECK int pfs_import_columns_settle(struct pfs_import_columns *columns,
					     struct pfs_store *store);

/* Second pass: puts a value that was seen. */
PFS_MUST_CHECK int pfs_import_column_put(const struct pfs_import_column *column,
					 struct pfs_store *store, uint64_t prime, const void *text,
					 size_t len);

#endif
