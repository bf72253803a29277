/* SPDX-License-Identifier: MIT */
/* Rows past SQLite.  A statement whose rows are those of one scan as they are is prepared, planned and
 * begun by SQLite; once many rows are known to come, the scan is read on without it, in batches that
 * are larger than SQLite's would be.  SQLite stays where it is, with the scan open, until the statement
 * is reset or finished. */
#include <stdlib.h>

#include "base/checked.h"
#include "fs/query/internal.h"

#define MANY_ROWS 1000 /* that asking whether the statement is plain is worth */

bool pfs_batch_is_worth(const struct pfs_query *query, uint64_t rows)
{
	return rows >= (query->many ? query->many : MANY_ROWS);
}

void pfs_batch_begin(struct pfs_query *query)
{
	struct pfs_sql_plain *plain = query->plain;
	unsigned plan_ids = query->connection->plan_ids;
	bool is_plain;

	query->long_scan = NULL;
	if (query->is_not_plain)
		return;
	if (!plain)
		plain = malloc(sizeof(*plain));
	if (!plain)
		return;
	query->connection->plan_ids = 0; /* so that scans get the numbers that they have */
	is_plain = pfs_sql_plain(query->connection->sql, plain);
	query->connection->plan_ids = plan_ids;
	for (size_t i = 0; is_plain && i < pfs_sql_columns(query->connection->sql); i++) {
		int *column = &plain->columns[i];

		if (*column < 0)
			*column = pfs_node_ino;
		/* all have been needed for the row that is there */
		is_plain = plain->rows.columns[*column].kind != PFS_SQL_ABSENT;
	}
	query->plain = plain;
	query->is_past = is_plain;
	query->is_not_plain = !is_plain;
	query->was_past |= is_plain;
	if (is_plain)
		pfs_nodes_enlarge(plain->scan);
}

int pfs_batch_next(struct pfs_query *query)
{
	struct pfs_sql_plain *plain = query->plain;

	if (++plain->row < plain->rows.n)
		return 1;
	if (pfs_query_tick(query))
		return -EINTR;
	plain->row = 0;
	PFS_TRY(pfs_nodes_source.fetch(plain->scan, &plain->rows));
	return plain->rows.n != 0;
}

void pfs_batch_value(const struct pfs_query *query, struct pfs_sql_value *out, size_t column)
{
	const struct pfs_sql_plain *plain = query->plain;
	const struct pfs_sql_column *values = &plain->rows.columns[plain->columns[column]];
	size_t row = plain->row;

	*out = (struct pfs_sql_value){.type = PFS_SQL_NULL};
	switch (values->kind) {
	case PFS_SQL_INTEGERS:
		out->integer = values->integers[row];
		if (out->integer != PFS_SQL_NO_INTEGER)
			out->type = PFS_SQL_INTEGER;
		break;
	case PFS_SQL_BYTES:
		if (values->is_null && values->is_null[row])
			break;
		out->type = PFS_SQL_TEXT;
		out->bytes = values->bytes + values->offset[row];
		out->size = values->offset[row + 1] - values->offset[row];
		break;
	case PFS_SQL_VALUES:
		*out = values->values[row];
		break;
	case PFS_SQL_ABSENT:
		break;
	}
}

void pfs_batch_end(struct pfs_query *query)
{
	query->is_past = false;
	query->long_scan = NULL;
}
