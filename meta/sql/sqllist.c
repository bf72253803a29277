/* SPDX-License-Identifier: MIT */
/* meta/sql/sqllist.c - a table function over the lines of a text: a row for each, with the number that a
 * callback has for it.  NAME(text) has the columns line (from 1), path, ino. */
#include <string.h>

#include "base/checked.h"
#include "meta/sql/sqlquery_impl.h"

#define BATCH 1024 /* lines that are asked about at once */

enum { LINE, PATH, INO, LIST };

struct list_table {
	sqlite3_vtab base;
	struct pfs_sql *sql;
};

struct list_cursor {
	sqlite3_vtab_cursor base;
	sqlite3_value *list; /* a copy of the argument; NULL: there is none */
	const char *text;
	size_t size, at;  /* at: where the next batch begins */
	size_t n, row;	  /* of the batch */
	sqlite3_int64 before; /* lines before the batch */
	struct pfs_sql_value lines[BATCH];
	int64_t numbers[BATCH];
};

static int connect_list(sqlite3 *handle, void *arg, int argc PFS_UNUSED,
			const char *const *argv PFS_UNUSED, sqlite3_vtab **out,
			char **message PFS_UNUSED)
{
	struct list_table *table = sqlite3_malloc(sizeof(*table));
	int result;

	if (!table)
		return SQLITE_NOMEM;
	*table = (struct list_table){.sql = arg};
	result = sqlite3_declare_vtab(
		handle, "CREATE TABLE x(line INTEGER, path TEXT, ino INTEGER, list HIDDEN)");
	if (result) {
		sqlite3_free(table);
		return result;
	}
	*out = &table->base;
	return SQLITE_OK;
}

static int disconnect_list(sqlite3_vtab *table)
{
	sqlite3_free(table);
	return SQLITE_OK;
}

static int best_index(sqlite3_vtab *table PFS_UNUSED, sqlite3_index_info *info)
{
	return pfs_sql_index_of_argument(info, LIST, 1000);
}

static int open_list(sqlite3_vtab *table PFS_UNUSED, sqlite3_vtab_cursor **out)
{
	struct list_cursor *cursor = sqlite3_malloc(sizeof(*cursor));

	if (!cursor)
		return SQLITE_NOMEM;
	memset(cursor, 0, sizeof(*cursor));
	*out = &cursor->base;
	return SQLITE_OK;
}

static int close_list(sqlite3_vtab_cursor *base)
{
	struct list_cursor *cursor = (struct list_cursor *)base;

	sqlite3_value_free(cursor->list);
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static int next_batch(struct list_cursor *cursor)
{
	struct pfs_sql *sql = ((struct list_table *)cursor->base.pVtab)->sql;
	int error;

	cursor->before += (sqlite3_int64)cursor->n;
	cursor->row = 0;
	for (cursor->n = 0; cursor->n < BATCH && cursor->at < cursor->size; cursor->n++) {
		const char *line = cursor->text + cursor->at;
		const char *end = memchr(line, '\n', cursor->size - cursor->at);
		size_t len = end ? (size_t)(end - line) : cursor->size - cursor->at;

		cursor->lines[cursor->n] =
			(struct pfs_sql_value){PFS_SQL_TEXT, .bytes = line, .size = len};
		cursor->at += len + (end != NULL);
	}
	if (!cursor->n)
		return SQLITE_OK;
	error = sql->list->number(sql->user, cursor->numbers, cursor->lines, cursor->n);
	if (error)
		cursor->n = 0;
	return error ? pfs_sql_failed(sql, error) : SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int id PFS_UNUSED, const char *plan PFS_UNUSED, int argc,
		  sqlite3_value **argv)
{
	struct list_cursor *cursor = (struct list_cursor *)base;
	struct pfs_sql_value value = {.type = PFS_SQL_NULL};

	sqlite3_value_free(cursor->list);
	cursor->list = NULL;
	cursor->size = cursor->at = cursor->n = 0;
	cursor->before = 0;
	if (argc > 0 && sqlite3_value_type(argv[0]) != SQLITE_NULL) {
		cursor->list = sqlite3_value_dup(argv[0]);
		if (!cursor->list || !pfs_sql_from_value(&value, cursor->list))
			return SQLITE_NOMEM;
	}
	if (value.type == PFS_SQL_TEXT || value.type == PFS_SQL_BLOB) {
		cursor->text = value.bytes;
		cursor->size = value.size;
	}
	return next_batch(cursor);
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct list_cursor *cursor = (struct list_cursor *)base;

	return ++cursor->row < cursor->n ? SQLITE_OK : next_batch(cursor);
}

static int at_end(sqlite3_vtab_cursor *base)
{
	return ((struct list_cursor *)base)->n == 0;
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	const struct list_cursor *cursor = (struct list_cursor *)base;
	const struct pfs_sql_value *line = &cursor->lines[cursor->row];

	switch (column) {
	case LINE:
		sqlite3_result_int64(context, cursor->before + (sqlite3_int64)cursor->row + 1);
		break;
	case PATH:
		sqlite3_result_text64(context, line->bytes, line->size, SQLITE_TRANSIENT,
				      SQLITE_UTF8);
		break;
	case INO:
		if (cursor->numbers[cursor->row] != PFS_SQL_NO_INTEGER)
			sqlite3_result_int64(context, cursor->numbers[cursor->row]);
		break;
	default:
		if (cursor->list)
			sqlite3_result_value(context, cursor->list);
		break;
	}
	return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite_int64 *out)
{
	const struct list_cursor *cursor = (struct list_cursor *)base;

	*out = cursor->before + (sqlite3_int64)cursor->row + 1;
	return SQLITE_OK;
}

/* Without xCreate: there as soon as it is named. */
static const sqlite3_module module = {
	.iVersion = 1,
	.xConnect = connect_list,
	.xBestIndex = best_index,
	.xDisconnect = disconnect_list,
	.xOpen = open_list,
	.xClose = close_list,
	.xFilter = filter,
	.xNext = next_row,
	.xEof = at_end,
	.xColumn = give_column,
	.xRowid = give_rowid,
};

int pfs_sql_add_list(struct pfs_sql *sql)
{
	if (!sql->list)
		return SQLITE_OK;
	return sqlite3_create_module_v2(sql->handle, sql->list->name, &module, sql, NULL);
}
