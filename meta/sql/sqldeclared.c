/* SPDX-License-Identifier: MIT */
/* What side tables are declared as. */
#include "meta/sql/sqlquery_impl.h"

#include <errno.h>

#include "meta/sql/sqlside.h"

static int tell(struct pfs_sql *sql, const char *table, sqlite3_stmt *row,
		int (*fn)(void *arg, const struct pfs_sql_declared *declared), void *arg)
{
	struct pfs_sql_declared declared = {
		.name = (const char *)sqlite3_column_text(row, 1),
		.is_not_null = sqlite3_column_int(row, 3) || sqlite3_column_int(row, 5),
		.is_generated = sqlite3_column_int(row, 6) != 0,
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
	char *text = sqlite3_mprintf("PRAGMA table_xinfo(\"%w\")", table);
	sqlite3_stmt *row = NULL;
	int result, error = 0;

	if (!text)
		return -ENOMEM;
	sql->own = true;
	result = sqlite3_prepare_v3(sql->handle, text, -1, 0, &row, NULL);
	sql->own = false;
	sqlite3_free(text);
	while (!result && !error && (result = sqlite3_step(row)) == SQLITE_ROW) {
		result = SQLITE_OK;
		error = tell(sql, table, row, fn, arg);
	}
	(void)sqlite3_finalize(row);
	if (error)
		return error;
	return result == SQLITE_DONE ? 0 : result == SQLITE_NOMEM ? -ENOMEM : -EINVAL;
}
