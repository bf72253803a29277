/* SPDX-License-Identifier: MIT */
/* What statements may do. */
#include "meta/sql/sqlquery_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SELECTS_MAX 500 /* SELECTs of a statement, each counted as often as it is used */

/* Returns true for pragmas that only tell something. */
static bool is_harmless(const char *pragma)
{
	static const char *const names[] = {
		"table_info",	 "table_xinfo",	   "table_list",      "function_list",
		"database_list", "collation_list", "compile_options", "encoding",
	};

	for (size_t i = 0; pragma && i < PFS_COUNT(names); i++) {
		if (sqlite3_stricmp(pragma, names[i]) == 0)
			return true;
	}
	return false;
}

static bool is_harmful(const char *function)
{
	return function && (sqlite3_stricmp(function, "load_extension") == 0 ||
			    sqlite3_stricmp(function, "fts3_tokenizer") == 0);
}

static bool is_schema(const char *table)
{
	return table && sqlite3_stricmp(table, "sqlite_master") == 0;
}

static bool is_own(const char *table)
{
	return sqlite3_strnicmp(table, "sqlite_", 7) == 0;
}

static int refuse(struct pfs_sql *sql, const char *what, const char *name, const char *instead)
{
	if (!*sql->refused)
		(void)snprintf(sql->refused, sizeof(sql->refused), "%s%s%s cannot be used here; %s",
			       what, name ? " " : "", name ? name : "", instead);
	sql->refusal = -EACCES;
	return SQLITE_DENY;
}

static int count_select(struct pfs_sql *sql)
{
	if (++sql->selects <= SELECTS_MAX)
		return SQLITE_OK;
	if (!*sql->refused)
		(void)snprintf(sql->refused, sizeof(sql->refused),
			       "more than %d SELECTs, each name of WITH being one wherever it is "
			       "used; ask in several statements",
			       SELECTS_MAX);
	sql->refusal = -E2BIG;
	return SQLITE_DENY;
}

/* Rows of a table change, or its indexes do. */
static void note_change(struct pfs_sql *sql, const char *table)
{
	(void)snprintf(sql->changed, sizeof(sql->changed), "%s", table);
	pfs_sql_side_seen(sql, table);
}

static int authorize_rows(struct pfs_sql *sql, int action, const char *table, const char *column)
{
	if (is_schema(table) || (sql->saw & PFS_SQL_SAW_SCHEMA && is_own(table)))
		return SQLITE_OK;
	if (!sql->may_change)
		return refuse(sql, "a change of the table", table, "write a SELECT");
	if (is_own(table))
		return refuse(sql, "a change of SQLite's own table", table, "leave it out");
	if (sqlite3_stricmp(table, sql->source->name) == 0) {
		sql->saw |= PFS_SQL_SAW_SOURCE;
		return SQLITE_OK;
	}
	sql->saw |= PFS_SQL_SAW_ROWS;
	if (action == SQLITE_UPDATE)
		sql->updated |= pfs_sql_name_bit(column);
	if (action == SQLITE_DELETE && sql->saw & PFS_SQL_SAW_SCHEMA) {
		pfs_sql_side_dropped(sql, table);
		return SQLITE_OK;
	}
	note_change(sql, table);
	/* SQLITE_IGNORE makes SQLite delete row by row, and tell of each row */
	return action == SQLITE_DELETE ? SQLITE_IGNORE : SQLITE_OK;
}

static int authorize_schema(struct pfs_sql *sql, int action, const char *name, const char *table)
{
	if (action == SQLITE_CREATE_TABLE && !sql->may_change) /* see below */
		return SQLITE_OK;
	if (!sql->may_change)
		return refuse(sql, "this kind of statement", NULL, "write a SELECT");
	if (action == SQLITE_CREATE_TABLE && pfs_sql_is_reserved(sql, name))
		return refuse(sql, "the name", name, "it is reserved; choose another");
	sql->saw |= PFS_SQL_SAW_SCHEMA;
	if (action == SQLITE_CREATE_INDEX || action == SQLITE_DROP_INDEX)
		note_change(sql, table);
	return SQLITE_OK;
}

int pfs_sql_authorize(void *arg, int action, const char *a, const char *b, const char *database,
		      const char *inner PFS_UNUSED)
{
	struct pfs_sql *sql = arg;

	if (sql->own)
		return SQLITE_OK;
	switch (action) {
	case SQLITE_READ:
		pfs_sql_note_read(sql, a, b);
		pfs_sql_side_seen(sql, a);
		return SQLITE_OK;
	case SQLITE_SELECT:
		return count_select(sql);
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	/* SQLite also asks this when json_each or the like is first named; see check_one */
	case SQLITE_CREATE_TABLE:
	case SQLITE_CREATE_INDEX:
	case SQLITE_DROP_TABLE:
	case SQLITE_DROP_INDEX:
	case SQLITE_REINDEX: /* CREATE INDEX asks this, too */
		/* CREATE TABLE temp.t would make a table that stays in this connection, in front of
		 * the store's t. */
		if (database && strcmp(database, "temp") == 0)
			return refuse(sql, "the database", database, "leave it out");
		return authorize_schema(sql, action, a, b);
	case SQLITE_FUNCTION:
		return is_harmful(b) ? refuse(sql, "the function", b, "leave it out") : SQLITE_OK;
	case SQLITE_PRAGMA:
		return is_harmless(a)
			       ? SQLITE_OK
			       : refuse(sql, "PRAGMA", a, "only table_info and the like can");
	case SQLITE_ATTACH:
	case SQLITE_DETACH:
		return refuse(sql, "ATTACH and DETACH", NULL, "import the data as a table");
	case SQLITE_TRANSACTION:
	case SQLITE_SAVEPOINT:
		return refuse(sql, "BEGIN, COMMIT and SAVEPOINT", NULL,
			      "a statement is a transaction of its own");
	case SQLITE_INSERT:
	case SQLITE_UPDATE:
	case SQLITE_DELETE:
		return authorize_rows(sql, action, a, b);
	default:
		return refuse(sql, "this kind of statement", NULL, "write a SELECT");
	}
}
