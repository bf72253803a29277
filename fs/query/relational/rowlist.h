/* SPDX-License-Identifier: MIT */
/* fs/query/relational/rowlist.h - all rows of a SELECT of rows as they are (struct pfs_row_plan),
 * read and kept: what a part of a statement needs, whose rows SQLite may ask for more than once.
 *
 * Threads: one at a time. */
#ifndef PFS_FS_QUERY_RELATIONAL_ROWLIST_H
#define PFS_FS_QUERY_RELATIONAL_ROWLIST_H

#include "fs/query/relational/run.h"

struct pfs_row_list { /* all 0: empty */
	struct pfs_sql_value *values; /* row by row; their texts follow one another in `bytes` */
	size_t n_columns;
	uint64_t n, capacity; /* rows */
	char *bytes;
	size_t size, bytes_capacity;
	uint64_t charged;
};

/* Reads the rows of a block that has `rows` into an empty list; the tree is not held.  -EAGAIN: it
 * has changed meanwhile; -EOPNOTSUPP; -ENOMEM; -EINTR.  After an error it is to be freed, too. */
PFS_MUST_CHECK int pfs_row_list_read(struct pfs_row_list *out, const struct pfs_block *block,
				     struct pfs_run_context *context);
/* Gets a value, whose bytes stay until the list is freed. */
void pfs_row_list_value(const struct pfs_row_list *list, uint64_t row, size_t column,
			struct pfs_sql_value *out);
void pfs_row_list_free(struct pfs_row_list *list, struct pfs_account *account); /* empty again */

#endif
