/* SPDX-License-Identifier: MIT */
/* meta/sql/sqltablefunction.c - table functions of one value, whose rows callbacks give one after the other.
 * NAME(value) has the function's columns, and the value as a hidden one behind them. */
#include "base/checked.h"
#include "meta/sql/sqlquery_impl.h"

struct rows_table {
	sqlite3_vtab base;
	struct pfs_sql *sql;
	const struct pfs_sql_table_function *function;
};

struct rows_cursor {
	sqlite3_vtab_cursor base;
	void *rows; /* the function's; NULL: there are none */
	sqlite3_int64 row;
	bool has_row;
};

static const struct rows_table *table_of(const struct rows_cursor *cursor)
{
	return (const struct rows_table *)cursor->base.pVtab;
}

static int connect_rows(sqlite3 *handle, void *arg, int argc PFS_UNUSED, const char *const *argv,
			sqlite3_vtab **out, char **message PFS_UNUSED)
{
	struct pfs_sql *sql = arg;
	const struct pfs_sql_table_function *function = sql->tables;
	struct rows_table *table = sqlite3_malloc(sizeof(*table));
	char *declaration;
	int result;

	while (function->name && sqlite3_stricmp(function->name, argv[0]) != 0)
		function++;
	declaration = sqlite3_mprintf("CREATE TABLE x(%s, argument HIDDEN)", function->columns);
	result = !table || !declaration ? SQLITE_NOMEM : sqlite3_declare_vtab(handle, declaration);
	sqlite3_free(declaration);
	if (result) {
		sqlite3_free(table);
		return result;
	}
	*table = (struct rows_table){.sql = sql, .function = function};
	*out = &table->base;
	return SQLITE_OK;
}

static int disconnect_rows(sqlite3_vtab *table)
{
	sqlite3_free(table);
	return SQLITE_OK;
}

int pfs_sql_index_of_argument(sqlite3_index_info *info, int argument, sqlite3_int64 rows)
{
	bool unusable = false;

	info->estimatedCost = 1e12;
	for (int i = 0; i < info->nConstraint; i++) {
		if (info->aConstraint[i].iColumn != argument || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
			continue;
		if (!info->aConstraint[i].usable) {
			unusable = true;
			continue;
		}
		info->aConstraintUsage[i].argvIndex = 1;
		info->aConstraintUsage[i].omit = 1;
		info->estimatedCost = (double)rows;
		info->estimatedRows = rows;
		return SQLITE_OK;
	}
	return unusable ? SQLITE_CONSTRAINT : SQLITE_OK;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	return pfs_sql_index_of_argument(info, ((const struct rows_table *)base)->function->n_columns, 1000000);
}

static int open_rows(sqlite3_vtab *table PFS_UNUSED, sqlite3_vtab_cursor **out)
{
	struct rows_cursor *cursor = sqlite3_malloc(sizeof(*cursor));

	if (!cursor)
		return SQLITE_NOMEM;
	*cursor = (struct rows_cursor){.rows = NULL};
	*out = &cursor->base;
	return SQLITE_OK;
}

static void end_rows(struct rows_cursor *cursor)
{
	if (cursor->rows)
		table_of(cursor)->function->close(cursor->rows);
	cursor->rows = NULL;
	cursor->has_row = false;
}

static int close_rows(sqlite3_vtab_cursor *base)
{
	end_rows((struct rows_cursor *)base);
	sqlite3_free(base);
	return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct rows_cursor *cursor = (struct rows_cursor *)base;
	int got = table_of(cursor)->function->next(cursor->rows);

	cursor->row++;
	cursor->has_row = got == 1;
	return got < 0 ? pfs_sql_failed(table_of(cursor)->sql, got) : SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int id PFS_UNUSED, const char *plan PFS_UNUSED,
		  int argc, sqlite3_value **argv)
{
	struct rows_cursor *cursor = (struct rows_cursor *)base;
	const struct rows_table *table = table_of(cursor);
	struct pfs_sql_value value = {.type = PFS_SQL_NULL};
	char problem[PFS_SQL_PROBLEM_SIZE] = "";
	int error;

	end_rows(cursor);
	cursor->row = 0;
	if (argc == 0 || sqlite3_value_type(argv[0]) == SQLITE_NULL)
		return SQLITE_OK;
	if (!pfs_sql_from_value(&value, argv[0]))
		return SQLITE_NOMEM;
	error = table->function->open(table->sql->user, &cursor->rows, &value, problem);
	if (error && *problem) {
		sqlite3_free(base->pVtab->zErrMsg);
		base->pVtab->zErrMsg = sqlite3_mprintf("%s", problem);
		return SQLITE_ERROR;
	}
	return error ? pfs_sql_failed(table->sql, error) : next_row(base);
}

static int at_end(sqlite3_vtab_cursor *base)
{
	return !((struct rows_cursor *)base)->has_row;
}

static void give(sqlite3_context *context, const struct pfs_sql_value *value)
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
	case PFS_SQL_TEXT:
	case PFS_SQL_BLOB:
		sqlite3_result_text64(context, value->bytes, value->size, SQLITE_TRANSIENT,
				      SQLITE_UTF8);
		break;
	}
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	const struct rows_cursor *cursor = (struct rows_cursor *)base;
	const struct rows_table *table = table_of(cursor);
	struct pfs_sql_value value = {.type = PFS_SQL_NULL};
	int error = 0;

	if (column < table->function->n_columns)
		error = table->function->value(cursor->rows, &value, column);
	if (error)
		return pfs_sql_failed(table->sql, error);
	give(context, &value);
	return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite_int64 *out)
{
	*out = ((struct rows_cursor *)base)->row;
	return SQLITE_OK;
}

/* Without xCreate: there as soon as it is named. */
static const sqlite3_module module = {
	.iVersion = 1,
	.xConnect = connect_rows,
	.xBestIndex = best_index,
	.xDisconnect = disconnect_rows,
	.xOpen = open_rows,
	.xClose = close_rows,
	.xFilter = filter,
	.xNext = next_row,
	.xEof = at_end,
	.xColumn = give_column,
	.xRowid = give_rowid,
};

int pfs_sql_add_table_functions(struct pfs_sql *sql)
{
	int result = SQLITE_OK;

	for (const struct pfs_sql_table_function *function = sql->tables;
	     function && function->name && !result; function++)
		result = sqlite3_create_module_v2(sql->handle, function->name, &module, sql, NULL);
	return result;
}

bool pfs_sql_is_table_function(const struct pfs_sql *sql, const char *name)
{
	const struct pfs_sql_table_function *function = sql->tables;

	while (function && function->name && sqlite3_stricmp(function->name, name) != 0)
		function++;
	return function && function->name;
}
