/* SPDX-License-Identifier: MIT */
/* meta/tablerows.c - rows of side tables that are written.
 *
 * SQLite takes a run of packed rows out of a virtual table in one statement, and removes a run in
 * one that looks at each number between the first and the last: its cursor stays where it is from
 * one row to the next. */
#include "meta/store.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "meta/internal.h"
#include "meta/siderows.h"

#define BATCH_SIZE ((size_t)1 << 20) /* bytes that pfs_store_put_row collects */
#define GAP	   8 /* looking at so many rows that stay costs as much as another statement */

struct pfs_packed_cursor {
	struct pfs_side_cursor cursor;		      /* at the next row */
	bool is_there;				      /* there is one */
	struct pfs_cell cells[PFS_TABLE_COLUMNS_MAX]; /* the cursor's */
};

/* ---- the virtual table: the rows from the cursor on that are put with so many cells ---- */

struct rows_table {
	sqlite3_vtab base;
	const struct pfs_db *db;
};

static int connect_rows(sqlite3 *handle, void *aux, int argc PFS_UNUSED,
			const char *const *argv PFS_UNUSED, sqlite3_vtab **out,
			char **why PFS_UNUSED)
{
	sqlite3_str *text = sqlite3_str_new(handle);
	struct rows_table *table = sqlite3_malloc(sizeof(*table));
	char *whole;
	int result = SQLITE_NOMEM;

	sqlite3_str_appendall(text, "CREATE TABLE rows (id");
	for (unsigned i = 0; i < PFS_TABLE_COLUMNS_MAX; i++)
		sqlite3_str_appendf(text, ", c%u", i);
	sqlite3_str_appendall(text, ")");
	whole = sqlite3_str_finish(text);
	if (whole && table)
		result = sqlite3_declare_vtab(handle, whole);
	sqlite3_free(whole);
	if (result) {
		sqlite3_free(table);
		return result;
	}
	*table = (struct rows_table){.db = aux};
	*out = &table->base;
	return SQLITE_OK;
}

static int disconnect_rows(sqlite3_vtab *table)
{
	sqlite3_free(table);
	return SQLITE_OK;
}

static int plan_rows(sqlite3_vtab *table PFS_UNUSED, sqlite3_index_info *info PFS_UNUSED)
{
	return SQLITE_OK;
}

static int open_rows(sqlite3_vtab *table PFS_UNUSED, sqlite3_vtab_cursor **out)
{
	*out = sqlite3_malloc(sizeof(**out));
	if (!*out)
		return SQLITE_NOMEM;
	**out = (sqlite3_vtab_cursor){0};
	return SQLITE_OK;
}

static int close_rows(sqlite3_vtab_cursor *cursor)
{
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static const struct pfs_db *db_of(const sqlite3_vtab_cursor *cursor)
{
	return ((const struct rows_table *)cursor->pVtab)->db;
}

static int begin_rows(sqlite3_vtab_cursor *cursor PFS_UNUSED, int number PFS_UNUSED,
		      const char *text PFS_UNUSED, int argc PFS_UNUSED,
		      sqlite3_value **argv PFS_UNUSED)
{
	return SQLITE_OK; /* where the last statement ended */
}

static int next_row(sqlite3_vtab_cursor *cursor)
{
	struct pfs_packed_cursor *rows = db_of(cursor)->rows;

	rows->is_there = pfs_side_cursor_next(&rows->cursor);
	return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *cursor)
{
	const struct pfs_db *db = db_of(cursor);

	return !db->rows->is_there || db->rows->cursor.n != db->row_columns;
}

static void give(sqlite3_context *context, const struct pfs_cell *cell)
{
	switch (cell->type) {
	case PFS_CELL_NULL:
		break;
	case PFS_CELL_INTEGER:
		sqlite3_result_int64(context, cell->integer);
		break;
	case PFS_CELL_REAL:
		sqlite3_result_double(context, cell->real);
		break;
	case PFS_CELL_TEXT:
		sqlite3_result_text64(context, cell->size ? cell->bytes : "", cell->size,
				      SQLITE_STATIC, SQLITE_UTF8);
		break;
	case PFS_CELL_BLOB:
		sqlite3_result_blob64(context, cell->size ? cell->bytes : "", cell->size,
				      SQLITE_STATIC);
		break;
	}
}

static int give_value(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
	const struct pfs_packed_cursor *rows = db_of(cursor)->rows;

	if (column)
		give(context, &rows->cells[column - 1]);
	else
		sqlite3_result_int64(context, rows->cursor.row);
	return SQLITE_OK;
}

static int give_number(sqlite3_vtab_cursor *cursor, sqlite3_int64 *number)
{
	*number = db_of(cursor)->rows->cursor.row;
	return SQLITE_OK;
}

static const sqlite3_module module = {
	.xConnect = connect_rows,
	.xDisconnect = disconnect_rows,
	.xBestIndex = plan_rows,
	.xOpen = open_rows,
	.xClose = close_rows,
	.xFilter = begin_rows,
	.xNext = next_row,
	.xEof = is_at_end,
	.xColumn = give_value,
	.xRowid = give_number,
};

/* is_removed(number), which is asked with rising numbers. */
static void is_removed(sqlite3_context *context, int argc PFS_UNUSED, sqlite3_value **argv)
{
	struct pfs_packed_cursor *rows = sqlite3_user_data(context);
	int64_t number = sqlite3_value_int64(argv[0]);

	while (rows->is_there && rows->cursor.is_removed && rows->cursor.row < number)
		rows->is_there = pfs_side_cursor_next(&rows->cursor);
	sqlite3_result_int(context,
			   rows->is_there && rows->cursor.is_removed && rows->cursor.row == number);
}

/* ---- statements ---- */

static int make_cursor(struct pfs_db *db)
{
	int result;

	db->rows = calloc(1, sizeof(*db->rows));
	if (!db->rows)
		return -ENOMEM;
	result = sqlite3_create_module(db->handle, "packed_rows", &module, db);
	if (!result)
		result = sqlite3_create_function(db->handle, "is_removed", 1,
						 SQLITE_UTF8 | SQLITE_DIRECTONLY, db->rows,
						 is_removed, NULL, NULL);
	if (result)
		free(PFS_TAKE(db->rows));
	return pfs_db_errno(db, result);
}

static int prepare(struct pfs_db *db, sqlite3_stmt **out, sqlite3_str *text)
{
	char *whole = sqlite3_str_finish(text);
	int result = SQLITE_NOMEM;

	if (whole)
		result = sqlite3_prepare_v3(db->handle, whole, -1, SQLITE_PREPARE_PERSISTENT, out,
					    NULL);
	sqlite3_free(whole);
	return pfs_db_errno(db, result);
}

static int prepare_put(struct pfs_db *db, size_t n)
{
	sqlite3_str *text;

	if (db->row_put && db->row_columns == n)
		return 0;
	(void)sqlite3_finalize(PFS_TAKE(db->row_put));
	db->row_columns = n;
	text = sqlite3_str_new(db->handle);
	sqlite3_str_appendf(text, "INSERT OR REPLACE INTO side_%u SELECT id",
			    (unsigned)db->row_table);
	for (unsigned i = 0; i < n; i++)
		sqlite3_str_appendf(text, ", c%u", i);
	sqlite3_str_appendall(text, " FROM packed_rows");
	return prepare(db, &db->row_put, text);
}

static int prepare_remove(struct pfs_db *db)
{
	sqlite3_str *text;

	if (db->row_remove)
		return 0;
	text = sqlite3_str_new(db->handle);
	sqlite3_str_appendf(text, "DELETE FROM side_%u WHERE id BETWEEN ? AND ? AND is_removed(id)",
			    (unsigned)db->row_table);
	return prepare(db, &db->row_remove, text);
}

/* ---- writing ---- */

static int put_run(struct pfs_db *db)
{
	sqlite3_stmt *put PFS_RESET = NULL;

	PFS_TRY(prepare_put(db, db->rows->cursor.n));
	put = db->row_put;
	return pfs_db_step(db, put);
}

/* Returns the number of the last of the rows from the cursor on that are removed together, and in
 * *n_behind how many are left behind them. */
static int64_t last_of_run(const struct pfs_packed_cursor *rows, size_t *n_behind)
{
	struct pfs_side_cursor next = rows->cursor;
	int64_t last;

	do {
		last = next.row;
		*n_behind = next.n_left;
	} while (pfs_side_cursor_next(&next) && next.is_removed && next.row > last &&
		 (uint64_t)next.row - (uint64_t)last <= GAP);
	return last;
}

/* Some of them may not be there. */
static int remove_run(struct pfs_db *db)
{
	struct pfs_packed_cursor *rows = db->rows;
	sqlite3_stmt *remove PFS_RESET = NULL;
	size_t n_behind;
	int64_t last;

	PFS_TRY(prepare_remove(db));
	remove = db->row_remove;
	pfs_bind_int(remove, 1, rows->cursor.row);
	last = last_of_run(rows, &n_behind);
	pfs_bind_int(remove, 2, last);
	PFS_TRY(pfs_db_step(db, remove));
	while (rows->is_there && rows->cursor.n_left >= n_behind)
		rows->is_there = pfs_side_cursor_next(&rows->cursor);
	return 0;
}

static int write_all(struct pfs_db *db, const struct pfs_side_rows *packed)
{
	int error = db->rows ? 0 : make_cursor(db);
	struct pfs_packed_cursor *rows = db->rows;

	if (!rows) /* it could not be made */
		return error;
	if (db->row_table != packed->table)
		pfs_db_forget_rows(db);
	db->row_table = packed->table;
	pfs_side_cursor_begin(&rows->cursor, packed, rows->cells);
	rows->is_there = pfs_side_cursor_next(&rows->cursor);
	while (rows->is_there && !error)
		error = rows->cursor.is_removed ? remove_run(db) : put_run(db);
	return error;
}

int pfs_store_write_rows(struct pfs_store *store, const struct pfs_side_rows *rows)
{
	int error = pfs_group_ready(store);

	if (error)
		return error;
	error = write_all(store->writer, rows);
	if (error)
		store->group_error = error;
	return error;
}

int pfs_store_put_row(struct pfs_store *store, struct pfs_side_rows *batch, int64_t row,
		      const struct pfs_cell *cells, size_t n)
{
	PFS_TRY(pfs_side_rows_add(batch, row, cells, n));
	if (batch->size < BATCH_SIZE)
		return 0;
	PFS_TRY(pfs_store_write_rows(store, batch));
	batch->n = batch->size = 0;
	return 0;
}
