/* SPDX-License-Identifier: MIT */
/* meta/sql/sqlvtab.c - what the virtual tables of a connection share (sqlquery_impl.h). */
#include "meta/sql/sqlquery_impl.h"

#include <string.h>

int pfs_sql_vtab_connect(sqlite3 *handle, sqlite3_vtab **out, const char *declaration,
			 struct pfs_sql *sql, const void *of)
{
	struct pfs_sql_vtab *table = sqlite3_malloc(sizeof(*table));
	int result;

	if (!table)
		return SQLITE_NOMEM;
	*table = (struct pfs_sql_vtab){.sql = sql, .of = of};
	result = sqlite3_declare_vtab(handle, declaration);
	if (result) {
		sqlite3_free(table);
		return result;
	}
	*out = &table->base;
	return SQLITE_OK;
}

int pfs_sql_vtab_disconnect(sqlite3_vtab *table)
{
	sqlite3_free(table);
	return SQLITE_OK;
}

int pfs_sql_vtab_open(sqlite3_vtab_cursor **out, size_t size)
{
	sqlite3_vtab_cursor *cursor = sqlite3_malloc64(size);

	if (!cursor)
		return SQLITE_NOMEM;
	memset(cursor, 0, size);
	*out = cursor;
	return SQLITE_OK;
}

void pfs_sql_vtab_give(sqlite3_context *context, const struct pfs_sql_value *value,
		       sqlite3_destructor_type keep)
{
	switch (value->type) {
	case PFS_SQL_NULL:
		break;
	case PFS_SQL_INTEGER:
		sqlite3_result_int64(context, value->integer);
		break;
	case PFS_SQL_REAL:
		sqlite3_result_double(context, value->real);
		break;
	case PFS_SQL_TEXT: /* a text at NULL would be SQL's NULL */
		sqlite3_result_text64(context, value->size ? value->bytes : "", value->size, keep,
				      SQLITE_UTF8);
		break;
	case PFS_SQL_BLOB:
		sqlite3_result_blob64(context, value->bytes, value->size, keep);
		break;
	}
}
