/* SPDX-License-Identifier: MIT */
/* Reads a connection's copies of side tables: the declarations of their columns, all rows, and the
 * rows that a statement has changed. */
#include "meta/sql/sqlside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/order.h"
#include "meta/db.h"
#include "meta/sql/sqlquery_impl.h"

#define WALKED_PER_CHANGED 4

/* ---- columns ---- */

static int tell_column(struct pfs_sql *sql, const char *table, sqlite3_stmt *row,
		       int (*fn)(void *arg, const struct pfs_sql_declared *declared), void *arg)
{
	const char *type = (const char *)sqlite3_column_text(row, 2);
	struct pfs_sql_declared declared = {
		.name = (const char *)sqlite3_column_text(row, 1),
		.is_not_null = sqlite3_column_int(row, 3) || sqlite3_column_int(row, 5),
		.is_generated = sqlite3_column_int(row, 6) != 0,
		.is_number = sqlite3_column_int(row, 5) == 1 &&
			     sqlite3_stricmp(type ? type : "", "INTEGER") == 0,
		.is_indexed = sqlite3_column_int(row, 5) == 1 || sqlite3_column_int(row, 7),
	};

	if (!declared.name)
		return -ENOMEM;
	if (sqlite3_table_column_metadata(sql->handle, "main", table, declared.name, &declared.type,
					  &declared.collation, NULL, NULL, NULL))
		return -EINVAL;
	declared.type = declared.type ? declared.type : "";
	declared.collation = declared.collation ? declared.collation : "BINARY";
	return fn(arg, &declared);
}

int pfs_sql_side_declared(struct pfs_sql *sql, const char *table,
			  int (*fn)(void *arg, const struct pfs_sql_declared *declared), void *arg)
{
	static const char format[] =
		"SELECT *, EXISTS (SELECT 1 FROM pragma_index_list(%Q) l, pragma_index_info(l.name) i "
		"WHERE i.seqno = 0 AND i.cid = c.cid AND NOT l.partial) FROM pragma_table_xinfo(%Q) c";
	char *text = sqlite3_mprintf(format, table, table);
	sqlite3_stmt *row = NULL;
	int result, error = 0;

	if (!text)
		return -ENOMEM;
	sql->own = true; /* the pragmas in it ask the authorizer as they run */
	result = sqlite3_prepare_v3(sql->handle, text, -1, 0, &row, NULL);
	sqlite3_free(text);
	while (!result && !error && (result = sqlite3_step(row)) == SQLITE_ROW) {
		result = SQLITE_OK;
		error = tell_column(sql, table, row, fn, arg);
	}
	(void)sqlite3_finalize(row);
	sql->own = false;
	if (error)
		return error;
	return result == SQLITE_DONE ? 0 : result == SQLITE_NOMEM ? -ENOMEM : -EINVAL;
}

/* ---- rows ---- */

void pfs_sql_row_changed(void *arg, int op PFS_UNUSED, const char *database PFS_UNUSED,
			 const char *table PFS_UNUSED, sqlite3_int64 rowid)
{
	struct pfs_sql *sql = arg;

	if (sql->rowids_lost || pfs_grow(&sql->rowids, &sql->rowids_capacity, sql->n_rowids + 1,
					 sizeof(*sql->rowids)))
		sql->rowids_lost = true;
	else
		sql->rowids[sql->n_rowids++] = rowid;
}

typedef int row_fn(void *arg, int64_t row, const struct pfs_cell *cells, size_t n);

static int tell_row(sqlite3_stmt *row, row_fn *fn, void *arg)
{
	struct pfs_cell cells[PFS_TABLE_COLUMNS_MAX];
	int n = sqlite3_column_count(row) - 1;

	for (int i = 0; i < n; i++)
		pfs_column_cell(&cells[i], row, i + 1);
	return fn(arg, sqlite3_column_int64(row, 0), cells, (size_t)n);
}

/* Prepares a SELECT of the row number, which replaces %s in `condition`, and of the columns; rows
 * come in the order of their numbers. */
static int prepare_rows(struct pfs_sql *sql, sqlite3_stmt **out, const char *table,
			const char *condition)
{
	char *list, *where;
	size_t n;
	int result;

	*out = NULL;
	PFS_TRY(pfs_sql_list_columns(sql, &list, &n, table));
	where = sqlite3_mprintf(condition, (int)strcspn(list, ","), list);
	result = pfs_sql_own_prepare(
		sql, out,
		where ? sqlite3_mprintf("SELECT %s FROM \"%w\" NOT INDEXED %s", list, table, where)
		      : NULL);
	sqlite3_free(where);
	sqlite3_free(list);
	return result == SQLITE_ERROR ? -EINVAL : pfs_sql_own_errno(sql, result);
}

int pfs_sql_all_rows(struct pfs_sql *sql, const char *table, row_fn *fn, void *arg)
{
	sqlite3_stmt *row;
	int error = prepare_rows(sql, &row, table, "ORDER BY %.*s"), result = SQLITE_OK;

	while (!error && (result = pfs_sql_own_step(sql, row)) == SQLITE_ROW)
		error = tell_row(row, fn, arg);
	(void)sqlite3_finalize(row);
	return error || result == SQLITE_DONE ? error : pfs_sql_own_errno(sql, result);
}

/* Sorts the numbers, and keeps each once. */
static void sort_rowids(struct pfs_sql *sql)
{
	size_t n = 0;

	for (size_t i = 1; i < sql->n_rowids; i++) {
		if (sql->rowids[i] > sql->rowids[i - 1])
			continue;
		qsort(sql->rowids, sql->n_rowids, sizeof(*sql->rowids), pfs_compare_i64);
		break;
	}
	for (size_t i = 0; i < sql->n_rowids; i++) {
		if (!n || sql->rowids[n - 1] != sql->rowids[i])
			sql->rowids[n++] = sql->rowids[i];
	}
	sql->n_rowids = n;
}

static int look_up_rows(struct pfs_sql *sql, sqlite3_stmt *row, row_fn *fn, void *arg)
{
	int error = 0;

	for (size_t i = 0; i < sql->n_rowids && !error; i++) {
		int result;

		(void)sqlite3_bind_int64(row, 1, sql->rowids[i]);
		result = pfs_sql_own_step(sql, row);
		if (result == SQLITE_ROW)
			error = tell_row(row, fn, arg);
		else if (result == SQLITE_DONE)
			error = fn(arg, sql->rowids[i], NULL, 0);
		else
			error = pfs_sql_own_errno(sql, result);
		(void)sqlite3_reset(row);
	}
	return error;
}

/* Walks through all rows from the first changed one to the last, and picks those that changed,
 * since a step is cheaper than a search. */
static int walk_rows(struct pfs_sql *sql, sqlite3_stmt *row, row_fn *fn, void *arg)
{
	const int64_t *next = sql->rowids, *end = next + sql->n_rowids;
	int error = 0, result;

	(void)sqlite3_bind_int64(row, 1, *next);
	(void)sqlite3_bind_int64(row, 2, end[-1]);
	while (!error && (result = pfs_sql_own_step(sql, row)) == SQLITE_ROW) {
		int64_t number = sqlite3_column_int64(row, 0);

		while (!error && next < end && *next < number)
			error = fn(arg, *next++, NULL, 0);
		if (error || next == end || *next != number)
			continue;
		next++;
		error = tell_row(row, fn, arg);
	}
	if (!error && result != SQLITE_DONE)
		return pfs_sql_own_errno(sql, result);
	while (!error && next < end)
		error = fn(arg, *next++, NULL, 0);
	return error;
}

int pfs_sql_changed_rows(struct pfs_sql *sql, const char *table, row_fn *fn, void *arg)
{
	sqlite3_stmt *row;
	bool is_dense;
	int error;

	sort_rowids(sql);
	if (!sql->n_rowids)
		return 0;
	is_dense = (uint64_t)sql->rowids[sql->n_rowids - 1] - (uint64_t)sql->rowids[0] <
		   WALKED_PER_CHANGED * (uint64_t)sql->n_rowids;
	error = prepare_rows(sql, &row, table,
			     is_dense ? "WHERE %.*s BETWEEN ? AND ? ORDER BY 1" : "WHERE %.*s = ?");
	if (!error)
		error = is_dense ? walk_rows(sql, row, fn, arg) : look_up_rows(sql, row, fn, arg);
	(void)sqlite3_finalize(row);
	return error;
}
