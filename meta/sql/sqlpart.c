/* SPDX-License-Identifier: MIT */
/* meta/sql/sqlpart.c - parts of a statement as virtual tables: SQLite reads their rows, which are
 * known before the statement's first step, one after the other. */
#include "meta/sql/sqlquery.h"

#include "meta/sql/sqlquery_impl.h"

#include <stdio.h>
#include <string.h>

struct part_cursor {
	sqlite3_vtab_cursor base;
	uint64_t row, n;
};

static const struct pfs_sql_part *part_of(const sqlite3_vtab_cursor *cursor)
{
	return ((const struct pfs_sql_vtab *)cursor->pVtab)->of;
}

static int connect_part(sqlite3 *handle, void *arg, int argc PFS_UNUSED,
			const char *const *argv PFS_UNUSED, sqlite3_vtab **out,
			char **message PFS_UNUSED)
{
	const struct pfs_sql_part *part = arg;

	return pfs_sql_vtab_connect(handle, out, part->declaration, NULL, part);
}

static int best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	const struct pfs_sql_part *part = ((struct pfs_sql_vtab *)table)->of;

	info->idxNum = (int)(PFS_SQL_PART_PLANS + part->number);
	info->estimatedCost = part->rows_assumed;
	info->estimatedRows = part->rows_assumed;
	return SQLITE_OK;
}

static int open_part(sqlite3_vtab *table PFS_UNUSED, sqlite3_vtab_cursor **out)
{
	return pfs_sql_vtab_open(out, sizeof(struct part_cursor));
}

static int close_part(sqlite3_vtab_cursor *base)
{
	sqlite3_free(base);
	return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int id PFS_UNUSED, const char *text PFS_UNUSED,
		  int argc PFS_UNUSED, sqlite3_value **argv PFS_UNUSED)
{
	struct part_cursor *cursor = (struct part_cursor *)base;

	cursor->row = 0;
	cursor->n = part_of(base)->rows(part_of(base)->arg);
	return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base)
{
	((struct part_cursor *)base)->row++;
	return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
	const struct part_cursor *cursor = (struct part_cursor *)base;

	return cursor->row >= cursor->n;
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
	const struct pfs_sql_part *part = part_of(base);
	struct pfs_sql_value value = {.type = PFS_SQL_NULL};

	part->value(part->arg, &value, ((struct part_cursor *)base)->row, (size_t)number);
	pfs_sql_vtab_give(context, &value, SQLITE_STATIC);
	return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite_int64 *out)
{
	*out = (sqlite_int64)((struct part_cursor *)base)->row;
	return SQLITE_OK;
}

/* A module without xCreate exists as soon as it is named. */
static const sqlite3_module module = {
	.iVersion = 1,
	.xConnect = connect_part,
	.xBestIndex = best_index,
	.xDisconnect = pfs_sql_vtab_disconnect,
	.xOpen = open_part,
	.xClose = close_part,
	.xFilter = filter,
	.xNext = next_row,
	.xEof = at_end,
	.xColumn = give_column,
	.xRowid = give_rowid,
};

static int set_module(struct pfs_sql *sql, unsigned number, const sqlite3_module *to, void *arg)
{
	char name[sizeof(PFS_SQL_PART_NAME) + 12];

	(void)snprintf(name, sizeof(name), PFS_SQL_PART_NAME "%u", number);
	return sqlite3_create_module_v2(sql->handle, name, to, arg, NULL);
}

int pfs_sql_set_parts(struct pfs_sql *sql, const struct pfs_sql_part *parts, size_t n)
{
	int result = SQLITE_OK;

	pfs_sql_finish(sql);
	while (sql->n_parts)
		(void)set_module(sql, --sql->n_parts, NULL, NULL);
	for (; sql->n_parts < n && !result; sql->n_parts++)
		result = set_module(sql, sql->n_parts, &module, (void *)&parts[sql->n_parts]);
	return result ? -ENOMEM : 0;
}

/* By SQLite's own rule. */
const char *pfs_sql_column_affinity(const struct pfs_sql *sql, size_t column)
{
	static const char *const words[][2] = {
		{"INT", "INT"},	  {"CHAR", "TEXT"}, {"CLOB", "TEXT"}, {"TEXT", "TEXT"},
		{"BLOB", "BLOB"}, {"REAL", "REAL"}, {"FLOA", "REAL"}, {"DOUB", "REAL"},
	};
	const char *type = sqlite3_column_decltype(sql->statement, (int)column);

	for (size_t i = 0; type && i < PFS_COUNT(words); i++) {
		if (strcasestr(type, words[i][0]))
			return words[i][1];
	}
	return type ? "NUM" : NULL;
}
