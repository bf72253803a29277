/* SPDX-License-Identifier: MIT */
/* meta/sql/sqltablefunction.c - table functions of one value, whose rows come from callbacks.
 * NAME(value) is a virtual table with the function's columns, and the value as a hidden column
 * behind them. */
#include "meta/sql/sqlquery_impl.h"

#include <string.h>

/* Rows that were opened for an argument: SQLite closes and opens cursors as often as an outer table
 * has rows. */
struct pfs_sql_opened {
	struct pfs_sql_opened *next;
	const struct pfs_sql_table_function *function;
	sqlite3_value *argument; /* a copy */
	void *rows;		 /* belongs to the function */
	bool in_use;		 /* a cursor uses it */
};

struct rows_cursor {
	sqlite3_vtab_cursor base;
	struct pfs_sql_opened *opened; /* NULL: there are no rows */
	sqlite3_int64 row;
	bool has_row;
};

enum { BY_KEY = 1 }; /* a plan in which the key follows the argument */
#define SPARE_MAX 4  /* how many rows nobody uses are kept, as somebody may ask for them again */

static struct pfs_sql *sql_of(const struct rows_cursor *cursor)
{
	return ((const struct pfs_sql_vtab *)cursor->base.pVtab)->sql;
}

static const struct pfs_sql_table_function *function_of(const sqlite3_vtab *table)
{
	return ((const struct pfs_sql_vtab *)table)->of;
}

static const struct pfs_sql_table_function *find_function(const struct pfs_sql *sql,
							  const char *name)
{
	const struct pfs_sql_table_function *const *function = sql->tables;

	while (function && *function && sqlite3_stricmp((*function)->name, name) != 0)
		function++;
	return function ? *function : NULL;
}

static int connect_rows(sqlite3 *handle, void *arg, int argc PFS_UNUSED, const char *const *argv,
			sqlite3_vtab **out, char **message PFS_UNUSED)
{
	struct pfs_sql *sql = arg;
	const struct pfs_sql_table_function *function = find_function(sql, argv[0]);
	char *declaration;
	int result;

	if (!function)
		return SQLITE_ERROR;
	declaration = sqlite3_mprintf("CREATE TABLE x(%s, argument HIDDEN)", function->columns);
	result = declaration ? pfs_sql_vtab_connect(handle, out, declaration, sql, function)
			     : SQLITE_NOMEM;
	sqlite3_free(declaration);
	return result;
}

/* Returns the usable constraint `column = ...`, or -1. *hidden: there is one that is not usable. */
static int find_equal(const sqlite3_index_info *info, int column, bool *hidden)
{
	for (int i = 0; i < info->nConstraint; i++) {
		if (info->aConstraint[i].iColumn != column ||
		    info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
			continue;
		if (info->aConstraint[i].usable)
			return i;
		*hidden = true;
	}
	return -1;
}

/* SQLite takes a function without its argument for a table, of which every row is wanted. */
static int miss_argument(sqlite3_vtab *table)
{
	table->zErrMsg = sqlite3_mprintf("%s() takes an argument; see primefs-query(1)",
					 function_of(table)->name);
	return SQLITE_ERROR;
}

static int best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	const struct pfs_sql_table_function *function = function_of(table);
	bool unusable = false, ignored = false;
	int argument = find_equal(info, function->n_columns, &unusable), key;

	info->estimatedCost = 1e12;
	if (argument < 0)
		return unusable ? SQLITE_CONSTRAINT : miss_argument(table);
	info->aConstraintUsage[argument].argvIndex = 1;
	info->aConstraintUsage[argument].omit = 1;
	info->estimatedCost = (double)function->rows_assumed;
	info->estimatedRows = function->rows_assumed;
	key = function->start ? find_equal(info, function->key_column, &ignored) : -1;
	if (key >= 0) {
		/* SQLite compares as well, since a text is no key here */
		info->aConstraintUsage[key].argvIndex = 2;
		info->idxNum = BY_KEY;
		info->estimatedCost = 8.0 + function->key_rows;
		info->estimatedRows = function->key_rows;
	}
	return SQLITE_OK;
}

static int open_rows(sqlite3_vtab *table PFS_UNUSED, sqlite3_vtab_cursor **out)
{
	return pfs_sql_vtab_open(out, sizeof(struct rows_cursor));
}

/* ---- rows that are open ---- */

static void close_opened(struct pfs_sql *sql, struct pfs_sql_opened *opened)
{
	struct pfs_sql_opened **link = &sql->opened;

	while (*link && *link != opened)
		link = &(*link)->next;
	if (*link)
		*link = opened->next;
	if (opened->rows)
		opened->function->close(opened->rows);
	sqlite3_value_free(opened->argument);
	sqlite3_free(opened);
}

/* Closes what nobody uses, but for so many that were used last. */
static void close_spare(struct pfs_sql *sql, unsigned most)
{
	struct pfs_sql_opened *next;
	unsigned n = 0;

	for (struct pfs_sql_opened *opened = sql->opened; opened; opened = next) {
		next = opened->next;
		if (!opened->in_use && n++ >= most)
			close_opened(sql, opened);
	}
}

void pfs_sql_close_opened(struct pfs_sql *sql)
{
	close_spare(sql, 0);
}

void pfs_sql_pause(struct pfs_sql *sql)
{
	for (struct pfs_sql_opened *opened = sql->opened; opened; opened = opened->next)
		if (opened->function->pause)
			opened->function->pause(opened->rows);
}

static bool is_same(sqlite3_value *a, sqlite3_value *b)
{
	int type = sqlite3_value_type(a);

	if (type != sqlite3_value_type(b))
		return false;
	if (type == SQLITE_INTEGER)
		return sqlite3_value_int64(a) == sqlite3_value_int64(b);
	return type == SQLITE_TEXT && sqlite3_value_bytes(a) == sqlite3_value_bytes(b) &&
	       memcmp(sqlite3_value_text(a), sqlite3_value_text(b),
		      (size_t)sqlite3_value_bytes(a)) == 0;
}

static struct pfs_sql_opened *find_spare(const struct pfs_sql *sql,
					 const struct pfs_sql_table_function *function,
					 sqlite3_value *argument)
{
	struct pfs_sql_opened *opened = sql->opened;

	while (opened && (opened->in_use || opened->function != function ||
			  !is_same(opened->argument, argument)))
		opened = opened->next;
	return opened;
}

static void end_rows(struct rows_cursor *cursor)
{
	struct pfs_sql_opened *opened = cursor->opened;

	cursor->opened = NULL;
	cursor->has_row = false;
	if (!opened)
		return;
	opened->in_use = false;
	if (opened->function->start)
		close_spare(sql_of(cursor), SPARE_MAX);
	else
		close_opened(sql_of(cursor), opened);
}

static int open_new(struct rows_cursor *cursor, sqlite3_value *argument)
{
	sqlite3_vtab *table = cursor->base.pVtab;
	struct pfs_sql_opened *opened = sqlite3_malloc(sizeof(*opened));
	struct pfs_sql_value value = {.type = PFS_SQL_NULL};
	char problem[PFS_SQL_PROBLEM_SIZE] = "";
	int error;

	if (!opened)
		return SQLITE_NOMEM;
	*opened = (struct pfs_sql_opened){.function = function_of(table),
					  .argument = sqlite3_value_dup(argument)};
	if (!opened->argument || !pfs_sql_from_value(&value, opened->argument)) {
		close_opened(sql_of(cursor), opened);
		return SQLITE_NOMEM;
	}
	error = opened->function->open(sql_of(cursor)->user, &opened->rows, &value, problem);
	if (!error) {
		opened->next = sql_of(cursor)->opened;
		sql_of(cursor)->opened = opened;
		cursor->opened = opened;
		return SQLITE_OK;
	}
	opened->rows = NULL;
	close_opened(sql_of(cursor), opened);
	if (!*problem)
		return pfs_sql_failed(sql_of(cursor), error);
	sqlite3_free(table->zErrMsg);
	table->zErrMsg = sqlite3_mprintf("%s", problem);
	return SQLITE_ERROR;
}

/* ---- reading ---- */

static int close_rows(sqlite3_vtab_cursor *base)
{
	end_rows((struct rows_cursor *)base);
	sqlite3_free(base);
	return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct rows_cursor *cursor = (struct rows_cursor *)base;
	int got = function_of(base->pVtab)->next(cursor->opened->rows);

	cursor->row++;
	cursor->has_row = got == 1;
	return got < 0 ? pfs_sql_failed(sql_of(cursor), got) : SQLITE_OK;
}

/* Starts with the first of all rows, or of those with a key. If the key is no integer, SQLite
 * compares all rows with it. */
static int start_rows(struct rows_cursor *cursor, sqlite3_value *key)
{
	const struct pfs_sql_table_function *function = cursor->opened->function;
	int64_t integer = 0;
	int error = 0;

	if (key && sqlite3_value_type(key) == SQLITE_NULL)
		return SQLITE_OK;
	if (key && sqlite3_value_type(key) == SQLITE_INTEGER)
		integer = sqlite3_value_int64(key);
	else
		key = NULL;
	if (function->start)
		error = function->start(cursor->opened->rows, key ? &integer : NULL);
	return error ? pfs_sql_failed(sql_of(cursor), error) : next_row(&cursor->base);
}

static int filter(sqlite3_vtab_cursor *base, int id, const char *plan PFS_UNUSED, int argc,
		  sqlite3_value **argv)
{
	struct rows_cursor *cursor = (struct rows_cursor *)base;

	end_rows(cursor);
	cursor->row = 0;
	if (argc == 0 || sqlite3_value_type(argv[0]) == SQLITE_NULL)
		return SQLITE_OK;
	cursor->opened = find_spare(sql_of(cursor), function_of(base->pVtab), argv[0]);
	if (!cursor->opened) {
		int result = open_new(cursor, argv[0]);

		if (result)
			return result;
	}
	cursor->opened->in_use = true;
	return start_rows(cursor, id == BY_KEY ? argv[1] : NULL);
}

static int at_end(sqlite3_vtab_cursor *base)
{
	return !((struct rows_cursor *)base)->has_row;
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	const struct rows_cursor *cursor = (struct rows_cursor *)base;
	const struct pfs_sql_table_function *function = function_of(base->pVtab);
	struct pfs_sql_value value = {.type = PFS_SQL_NULL};
	int error = 0;

	if (column < function->n_columns)
		error = function->value(cursor->opened->rows, &value, column);
	if (error)
		return pfs_sql_failed(sql_of(cursor), error);
	pfs_sql_vtab_give(context, &value, SQLITE_TRANSIENT);
	return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite_int64 *out)
{
	*out = ((struct rows_cursor *)base)->row;
	return SQLITE_OK;
}

/* A module without xCreate exists as soon as it is named. */
static const sqlite3_module module = {
	.iVersion = 1,
	.xConnect = connect_rows,
	.xBestIndex = best_index,
	.xDisconnect = pfs_sql_vtab_disconnect,
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

	for (const struct pfs_sql_table_function *const *function = sql->tables;
	     function && *function && !result; function++)
		result = sqlite3_create_module_v2(sql->handle, (*function)->name, &module, sql,
						  NULL);
	return result;
}

/* Statements of meta/sql read the pragmas so. */
bool pfs_sql_is_sqlites(const char *name)
{
	return sqlite3_strnicmp(name, "pragma_", 7) == 0 ||
	       sqlite3_stricmp(name, "json_each") == 0 || sqlite3_stricmp(name, "json_tree") == 0;
}

bool pfs_sql_is_reserved(const struct pfs_sql *sql, const char *name)
{
	return find_function(sql, name) || sqlite3_stricmp(name, sql->source->name) == 0 ||
	       pfs_sql_is_sqlites(name);
}
