/* SPDX-License-Identifier: MIT */
#include "meta/sql/sqlside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/db.h"
#include "meta/declaration.h"
#include "meta/sql/sqlquery_impl.h"

/* ---- statements of this module's own ---- */

int pfs_sql_own_prepare(struct pfs_sql *sql, sqlite3_stmt **out, char *text)
{
	struct pfs_account *before PFS_ACCOUNT = pfs_account_enter(sql->account);
	int result = SQLITE_NOMEM;

	*out = NULL;
	sql->own = true;
	if (text)
		result = sqlite3_prepare_v3(sql->handle, text, -1, 0, out, NULL);
	sql->own = false;
	sqlite3_free(text);
	return result;
}

int pfs_sql_own_step(const struct pfs_sql *sql, sqlite3_stmt *statement)
{
	struct pfs_account *before PFS_ACCOUNT = pfs_account_enter(sql->account);

	return sqlite3_step(statement);
}

/* Runs what begins, ends or clears up. It counts on no account, since it must not fail while there
 * is memory. */
static int exec(struct pfs_sql *sql, const char *text)
{
	struct pfs_account *before PFS_ACCOUNT = pfs_account_enter(NULL);
	int result;

	sql->own = true;
	result = sqlite3_exec(sql->handle, text, NULL, NULL, NULL);
	sql->own = false;
	return result;
}

int pfs_sql_own_errno(struct pfs_sql *sql, int result)
{
	struct pfs_sql_problem ignored;

	return result ? pfs_sql_explain_result(sql, &ignored, result) : 0;
}

/* ---- columns ---- */

struct columns {
	sqlite3_str *list; /* "a", "b" */
	size_t n;
	unsigned taken; /* bits: which of rowid_names are columns */
};

static const char *const rowid_names[] = {"rowid", "_rowid_", "oid"};

static void add_column(struct columns *columns, const char *name)
{
	sqlite3_str_appendf(columns->list, ", \"%w\"", name);
	columns->n++;
	for (size_t i = 0; i < PFS_COUNT(rowid_names); i++) {
		if (strcasecmp(name, rowid_names[i]) == 0)
			columns->taken |= 1u << i;
	}
}

/* Adds the stored columns of the table. */
static int add_columns(struct columns *columns, struct pfs_sql *sql, const char *table)
{
	sqlite3_stmt *row;
	int result =
		pfs_sql_own_prepare(sql, &row, sqlite3_mprintf("PRAGMA table_info(\"%w\")", table));
	const char *name = "";

	while (!result && name && (result = pfs_sql_own_step(sql, row)) == SQLITE_ROW) {
		name = (const char *)sqlite3_column_text(row, 1);
		result = SQLITE_OK;
		if (name)
			add_column(columns, name);
	}
	(void)sqlite3_finalize(row);
	if (!name)
		return -ENOMEM;
	return result == SQLITE_DONE ? 0 : pfs_sql_own_errno(sql, result);
}

int pfs_sql_list_columns(struct pfs_sql *sql, char **list, size_t *n, const char *table)
{
	struct columns columns = {.list = sqlite3_str_new(NULL)};
	int error = add_columns(&columns, sql, table);
	char *names = sqlite3_str_finish(columns.list);
	size_t i = 0;

	while (i < PFS_COUNT(rowid_names) && columns.taken & 1u << i)
		i++;
	if (!error && (i == PFS_COUNT(rowid_names) || !columns.n))
		error = -EINVAL;
	if (!error && columns.n > PFS_TABLE_COLUMNS_MAX)
		error = -E2BIG;
	if (!error) {
		*list = names ? sqlite3_mprintf("%s%s", rowid_names[i], names) : NULL;
		*n = columns.n;
		error = *list ? 0 : -ENOMEM;
	}
	sqlite3_free(names);
	return error;
}

/* ---- copies ---- */

static int drop(struct pfs_sql *sql, const char *name)
{
	char *text = sqlite3_mprintf("DROP TABLE IF EXISTS \"%w\"", name);
	int result = text ? exec(sql, text) : SQLITE_NOMEM;

	sql->tables_made++;
	sqlite3_free(text);
	return result ? -ENOMEM : 0;
}

int pfs_sql_sides_clear(struct pfs_sql *sql, bool (*keeps)(void *arg, uint32_t id), void *arg)
{
	size_t n = sql->n_sides, n_kept = 0;
	int error = 0;

	for (size_t i = 0; i < n; i++) {
		struct pfs_sql_side side = sql->sides[i];

		if (keeps && keeps(arg, side.id)) {
			sql->sides[n_kept++] = side;
			continue;
		}
		if (side.declared && drop(sql, side.name))
			error = -ENOMEM;
		free(side.name);
	}
	pfs_sql_sides_leave(sql, n_kept);
	return error;
}

void pfs_sql_sides_close(struct pfs_sql *sql)
{
	for (size_t i = 0; i < sql->n_sides; i++)
		free(sql->sides[i].name);
	free(sql->sides_by_name);
	free(sql->sides);
	free(sql->rowids);
}

/* Runs a declaration, which pfs_declaration_parse composed. It may do only what a statement may do.
 */
static int declare(struct pfs_sql *sql, const char *text, size_t len)
{
	struct pfs_account *before PFS_ACCOUNT = pfs_account_enter(sql->account);
	bool may_change = sql->may_change;
	const char *end = text + len;
	int result = SQLITE_OK;

	sql->may_change = true;
	sql->tables_made++;
	while (!result && text < end) {
		sqlite3_stmt *statement = NULL;
		const char *tail = text;

		sql->saw = 0;
		result = sqlite3_prepare_v3(sql->handle, text, (int)(end - text), 0, &statement,
					    &tail);
		if (!result && statement) {
			result = sqlite3_step(statement);
			result = result == SQLITE_DONE ? SQLITE_OK : result;
		}
		if (sql->saw & (PFS_SQL_SAW_ROWS | PFS_SQL_SAW_SOURCE))
			result = SQLITE_ERROR;
		(void)sqlite3_finalize(statement);
		text = tail > text ? tail : end;
	}
	sql->may_change = may_change;
	return (result & 0xff) == SQLITE_NOMEM ? -ENOMEM : result ? -EUCLEAN : 0;
}

int pfs_sql_side_declare(struct pfs_sql *sql, uint32_t id, const void *declaration, size_t len,
			 char *why)
{
	struct pfs_sql_side *side = pfs_sql_side_by_id(sql, id);
	char *list = NULL, *text = NULL;
	int error = pfs_declaration_parse(&text, why, side->name, declaration, len);

	if (!error) {
		(void)snprintf(why, PFS_DECLARATION_WHY, "is not SQLite's");
		error = declare(sql, text, strlen(text));
	}
	if (!error)
		error = pfs_sql_list_columns(sql, &list, &side->n_columns, side->name);
	sqlite3_free(list);
	free(text);
	side->declared = !error;
	if (!error)
		return 0;
	if (drop(sql, side->name))
		error = -ENOMEM;
	side->is_damaged = error != -ENOMEM;
	return error == -ENOMEM ? error : -EUCLEAN;
}

static int empty(struct pfs_sql *sql, const char *name)
{
	char *text = sqlite3_mprintf("DELETE FROM \"%w\"", name);
	int result = text ? exec(sql, text) : SQLITE_NOMEM;

	sqlite3_free(text);
	return result;
}

int pfs_sql_fill_begin(struct pfs_sql *sql, uint32_t id, bool anew)
{
	const struct pfs_sql_side *side = pfs_sql_side_by_id(sql, id);
	sqlite3_str *text;
	char *list;
	size_t n;
	int result;

	pfs_sql_let_rows(sql, true);
	PFS_TRY(pfs_sql_list_columns(sql, &list, &n, side->name));
	text = sqlite3_str_new(NULL);
	sqlite3_str_appendf(text, "INSERT INTO \"%w\" (%s) VALUES (?", side->name, list);
	for (size_t i = 0; i < n; i++)
		sqlite3_str_appendall(text, ", ?");
	sqlite3_str_appendall(text, ")");
	result = pfs_sql_own_prepare(sql, &sql->fill, sqlite3_str_finish(text));
	if (!result)
		result = pfs_sql_own_prepare(sql, &sql->empty,
				 sqlite3_mprintf("DELETE FROM \"%w\" WHERE %.*s = ?", side->name,
						 (int)strcspn(list, ","), list));
	sqlite3_free(list);
	if (!result)
		result = exec(sql, "BEGIN");
	if (!result && anew)
		result = empty(sql, side->name);
	return pfs_sql_own_errno(sql, result);
}

static int bind(sqlite3_stmt *statement, int parameter, const struct pfs_cell *cell)
{
	switch (cell->type) {
	case PFS_CELL_INTEGER:
		return sqlite3_bind_int64(statement, parameter, cell->integer);
	case PFS_CELL_REAL:
		return sqlite3_bind_double(statement, parameter, cell->real);
	case PFS_CELL_TEXT:
		return sqlite3_bind_text64(statement, parameter, cell->bytes, cell->size,
					   SQLITE_STATIC, SQLITE_UTF8);
	case PFS_CELL_BLOB:
		if (!cell->size)
			return sqlite3_bind_zeroblob(statement, parameter, 0);
		return sqlite3_bind_blob64(statement, parameter, cell->bytes, cell->size,
					   SQLITE_STATIC);
	case PFS_CELL_NULL:
		break;
	}
	return sqlite3_bind_null(statement, parameter);
}

int pfs_sql_fill_row(void *arg, int64_t row, const struct pfs_cell *cells, size_t n)
{
	struct pfs_sql *sql = arg;
	int result = SQLITE_OK;

	if (n + 1 != (size_t)sqlite3_bind_parameter_count(sql->fill))
		return -EUCLEAN;
	(void)sqlite3_bind_int64(sql->fill, 1, row);
	for (size_t i = 0; i < n && !result; i++)
		result = bind(sql->fill, (int)i + 2, &cells[i]);
	if (!result)
		result = pfs_sql_own_step(sql, sql->fill);
	(void)sqlite3_reset(sql->fill);
	switch (result & 0xff) {
	case SQLITE_DONE:
		return 0;
	case SQLITE_FULL:
		return -ENOMEM;
	case SQLITE_CONSTRAINT:
	case SQLITE_MISMATCH:
		return -EUCLEAN;
	default:
		return pfs_sql_own_errno(sql, result);
	}
}

int pfs_sql_fill_changed(void *arg, int64_t row, const struct pfs_cell *cells, size_t n)
{
	struct pfs_sql *sql = arg;
	int result;

	(void)sqlite3_bind_int64(sql->empty, 1, row);
	result = pfs_sql_own_step(sql, sql->empty);
	(void)sqlite3_reset(sql->empty);
	if (result != SQLITE_DONE)
		return pfs_sql_own_errno(sql, result);
	return cells ? pfs_sql_fill_row(arg, row, cells, n) : 0;
}

int pfs_sql_fill_end(struct pfs_sql *sql, uint32_t id, uint64_t version, int error)
{
	struct pfs_sql_side *side = pfs_sql_side_by_id(sql, id);

	(void)sqlite3_finalize(sql->fill);
	(void)sqlite3_finalize(sql->empty);
	sql->fill = sql->empty = NULL;
	if (!sqlite3_get_autocommit(sql->handle)) {
		int result = exec(sql, error ? "ROLLBACK" : "COMMIT");

		if (!error)
			error = pfs_sql_own_errno(sql, result);
	}
	pfs_sql_let_rows(sql, false);
	if (!error && side) {
		side->filled = true;
		side->version = version;
		side->missed_ns = 0;
	}
	return error;
}

void pfs_sql_side_is_of(struct pfs_sql *sql, uint32_t id, uint64_t version)
{
	struct pfs_sql_side *side = pfs_sql_side_by_id(sql, id);

	if (side)
		side->version = version;
}

/* ---- statements that change something ---- */

enum pfs_sql_effect pfs_sql_effect(const struct pfs_sql *sql)
{
	if (sqlite3_stmt_readonly(sql->statement))
		return PFS_SQL_READS;
	if (sql->saw & PFS_SQL_SAW_SCHEMA)
		return PFS_SQL_CHANGES_TABLES;
	return sql->saw & PFS_SQL_SAW_SOURCE ? PFS_SQL_CHANGES_SOURCE : PFS_SQL_CHANGES_ROWS;
}

int pfs_sql_run(struct pfs_sql *sql, struct pfs_sql_problem *problem)
{
	int error;

	/* there was no memory to roll the last run back */
	if (!sqlite3_get_autocommit(sql->handle))
		return -ENOMEM;
	PFS_TRY(pfs_sql_own_errno(sql, exec(sql, "BEGIN")));
	sql->n_rowids = 0;
	sql->rowids_lost = false;
	pfs_sql_let_rows(sql, false);
	(void)sqlite3_update_hook(sql->handle, pfs_sql_row_changed, sql);
	do
		error = pfs_sql_step(sql, problem);
	while (error == 1);
	(void)sqlite3_update_hook(sql->handle, NULL, NULL);
	(void)sqlite3_reset(sql->statement);
	pfs_sql_let_rows(sql, true); /* the caller reads what has changed */
	if (error)
		pfs_sql_rollback(sql);
	return error;
}

int pfs_sql_commit(struct pfs_sql *sql)
{
	return pfs_sql_own_errno(sql, exec(sql, "COMMIT"));
}

void pfs_sql_rollback(struct pfs_sql *sql)
{
	if (!sqlite3_get_autocommit(sql->handle))
		(void)exec(sql, "ROLLBACK");
}

uint64_t pfs_sql_changes(const struct pfs_sql *sql)
{
	return (uint64_t)sqlite3_changes64(sql->handle);
}

/* ---- what they have done ---- */

/* Sets *is_any to true if a query about the table finds a row. If names is not NULL, *names gets
 * the bit of the name in that row. */
static int any(struct pfs_sql *sql, bool *is_any, uint64_t *names, const char *format,
	       const char *table)
{
	sqlite3_stmt *row;
	int result = pfs_sql_own_prepare(sql, &row, sqlite3_mprintf(format, table, table));

	sql->own = true; /* a pragma in it asks the authorizer, too */
	if (!result)
		result = pfs_sql_own_step(sql, row);
	sql->own = false;
	*is_any = result == SQLITE_ROW;
	if (*is_any && names)
		*names |= pfs_sql_name_bit((const char *)sqlite3_column_text(row, 0));
	(void)sqlite3_finalize(row);
	return result == SQLITE_ROW || result == SQLITE_DONE ? 0 : pfs_sql_own_errno(sql, result);
}

#define IS_TABLE                                                                                   \
	"SELECT 1 FROM sqlite_schema WHERE type = 'table' AND lower(name) = lower(%Q)"
/* SQLite does not tell of a row that another one replaces in such an index, nor of a row whose
 * number an UPDATE changes. */
#define HAS_UNIQUE "SELECT 1 FROM pragma_index_list(%Q) WHERE \"unique\""
#define NUMBER "SELECT name FROM pragma_table_info(%Q) WHERE pk"

#define DECLARED "SELECT sql FROM sqlite_schema WHERE type = 'table' AND lower(name) = lower(%Q)"
#define HAS_OTHER_INDEX \
	"SELECT 1 FROM pragma_index_list(%Q) l WHERE l.\"unique\" OR l.partial " \
	"OR EXISTS (SELECT 1 FROM pragma_index_info(l.name) i WHERE i.cid < -1)"

static int is_constrained(struct pfs_sql *sql, bool *is, const char *table)
{
	sqlite3_stmt *row;
	int result = pfs_sql_own_prepare(sql, &row, sqlite3_mprintf(DECLARED, table));
	const char *text = NULL;

	if (!result)
		result = pfs_sql_own_step(sql, row);
	if (result == SQLITE_ROW)
		text = (const char *)sqlite3_column_text(row, 0);
	*is = !text || pfs_declaration_constrains(text, strlen(text));
	(void)sqlite3_finalize(row);
	return result == SQLITE_ROW || result == SQLITE_DONE ? 0 : pfs_sql_own_errno(sql, result);
}

int pfs_sql_side_is_simple(struct pfs_sql *sql, bool *is, const char *table)
{
	struct pfs_sql_side *side = pfs_sql_side_find(sql, table);
	bool is_not = true;

	*is = false;
	if (!side || !side->declared)
		return 0;
	if (!side->is_examined) {
		PFS_TRY(is_constrained(sql, &is_not, side->name));
		if (!is_not)
			PFS_TRY(any(sql, &is_not, NULL, HAS_OTHER_INDEX, side->name));
		side->is_examined = true;
		side->is_simple = !is_not;
	}
	*is = side->is_simple;
	return 0;
}

static int fate_of(struct pfs_sql *sql, const struct pfs_sql_side *side, enum pfs_sql_fate *fate)
{
	/* SQLite calls the row number so, unless that is a column */
	uint64_t number = pfs_sql_name_bit("ROWID");
	bool is_unique, has_number;

	if (sql->saw & PFS_SQL_SAW_SCHEMA) {
		*fate = PFS_SQL_INDEXED;
		return 0;
	}
	PFS_TRY(any(sql, &is_unique, NULL, HAS_UNIQUE, side->name));
	if (sql->updated)
		PFS_TRY(any(sql, &has_number, &number, NUMBER, side->name));
	*fate = is_unique || sql->rowids_lost || sql->updated & number ? PFS_SQL_REPLACED
								       : PFS_SQL_CHANGED;
	return 0;
}

typedef int fate_fn(void *arg, const struct pfs_sql_side *side, enum pfs_sql_fate fate);

static int prepare_names(struct pfs_sql *sql, sqlite3_stmt **row)
{
	return pfs_sql_own_prepare(
		sql, row,
		sqlite3_mprintf("SELECT name FROM sqlite_schema WHERE type = 'table' "
				"AND name NOT GLOB 'sqlite_*'"));
}

static int tell_new(struct pfs_sql *sql, fate_fn *fn, void *arg)
{
	sqlite3_stmt *row;
	int result = prepare_names(sql, &row);
	int error = 0;

	while (!result && !error && (result = pfs_sql_own_step(sql, row)) == SQLITE_ROW) {
		char *name = (char *)sqlite3_column_text(row, 0), *list = NULL;
		struct pfs_sql_side side = {.name = name, .filled = true};
		const struct pfs_sql_side *known;

		result = SQLITE_OK;
		if (!name)
			error = -ENOMEM;
		known = pfs_sql_side_find(sql, name);
		if (known && !known->declared)
			error = -EEXIST;
		else if (!error && !known)
			error = pfs_sql_list_columns(sql, &list, &side.n_columns, name);
		if (list)
			error = fn(arg, &side, PFS_SQL_MADE);
		sqlite3_free(list);
	}
	(void)sqlite3_finalize(row);
	return error || result == SQLITE_DONE ? error : pfs_sql_own_errno(sql, result);
}

int pfs_sql_fates(struct pfs_sql *sql, fate_fn *fn, void *arg)
{
	const struct pfs_sql_side *changed = pfs_sql_side_find(sql, sql->changed);
	enum pfs_sql_fate fate;
	bool is_there;

	for (size_t i = 0; sql->saw & PFS_SQL_SAW_SCHEMA && i < sql->n_sides; i++) {
		const struct pfs_sql_side *side = &sql->sides[i];

		if (!side->declared)
			continue;
		PFS_TRY(any(sql, &is_there, NULL, IS_TABLE, side->name));
		if (!is_there)
			PFS_TRY(fn(arg, side, PFS_SQL_DROPPED));
		if (!is_there && changed == side)
			changed = NULL;
	}
	if (sql->saw & PFS_SQL_SAW_SCHEMA)
		PFS_TRY(tell_new(sql, fn, arg));
	if (!changed)
		return 0;
	PFS_TRY(fate_of(sql, changed, &fate));
	return fn(arg, changed, fate);
}

/* *name: of a table that is there and not known; NULL: there is none. */
static int find_new(struct pfs_sql *sql, char **name)
{
	sqlite3_stmt *row;
	int result = prepare_names(sql, &row), error = 0;

	*name = NULL;
	while (!result && !*name && (result = pfs_sql_own_step(sql, row)) == SQLITE_ROW) {
		const char *found = (const char *)sqlite3_column_text(row, 0);

		result = SQLITE_OK;
		if (pfs_sql_side_find(sql, found))
			continue;
		*name = found ? strdup(found) : NULL;
		if (!*name)
			result = SQLITE_NOMEM;
	}
	if (result && result != SQLITE_DONE)
		error = pfs_sql_own_errno(sql, result);
	(void)sqlite3_finalize(row);
	return error;
}

int pfs_sql_sides_drop_new(struct pfs_sql *sql)
{
	char *name;
	int error = find_new(sql, &name);

	while (!error && name) {
		error = drop(sql, name);
		free(name);
		name = NULL;
		if (!error)
			error = find_new(sql, &name);
	}
	return error;
}

int pfs_sql_declaration(struct pfs_sql *sql, char **text, const char *table)
{
	sqlite3_stmt *row;
	sqlite3_str *out = sqlite3_str_new(NULL);
	char *whole;
	int result = pfs_sql_own_prepare(
		sql, &row,
		sqlite3_mprintf("SELECT sql FROM sqlite_schema WHERE lower(tbl_name) = "
				"lower(%Q) AND sql NOT NULL ORDER BY type DESC, rowid",
				table));

	while (!result && (result = pfs_sql_own_step(sql, row)) == SQLITE_ROW) {
		sqlite3_str_appendf(out, "%s;\n", sqlite3_column_text(row, 0));
		result = SQLITE_OK;
	}
	(void)sqlite3_finalize(row);
	whole = sqlite3_str_finish(out);
	*text = whole ? strdup(whole) : NULL;
	sqlite3_free(whole);
	if (result != SQLITE_DONE) {
		free(*text);
		*text = NULL;
		return pfs_sql_own_errno(sql, result);
	}
	return *text ? 0 : -ENOMEM;
}
