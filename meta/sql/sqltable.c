/* SPDX-License-Identifier: MIT */
/* meta/sql/sqltable.c - the source as a virtual table of SQLite.
 *
 * The plan is passed to the scan as a text of hexadecimal numbers: the bits of the columns used;
 * the limit; the number of columns that order the rows, and each of these (times 2, plus 1 if it
 * descends); then the column and the operator of each argument. Columns are counted from 1.
 *
 * SQLite gets copies of texts: it would keep pointers to static ones longer than a batch lasts
 * (max(name), GROUP BY). */
#include "meta/sql/sqlquery_impl.h"

#include <stdlib.h>

#include "base/cleanup.h"

#define CONSTRAINTS_MAX 64 /* constraints that are considered; SQLite tests further ones itself */

struct pfs_sql_cursor {
	sqlite3_vtab_cursor base;
	struct pfs_sql_scan *scan;
	struct pfs_sql_rows rows;
	size_t row; /* the present row of the batch */
	/* The plan with which the scan has begun, and will begin again; the inner one of a join
	 * does so many times. */
	bool is_planned;
	struct pfs_sql_begin begin;
	struct pfs_sql_order order[PFS_SQL_ORDER_MAX];
	struct pfs_sql_argument arguments[CONSTRAINTS_MAX];
};

static struct pfs_sql *sql_of(const sqlite3_vtab *table)
{
	return ((const struct pfs_sql_vtab *)table)->sql;
}

static int failed(sqlite3_vtab *table, int error)
{
	return pfs_sql_failed(sql_of(table), error);
}

/* ---- the table ---- */

static int connect_table(sqlite3 *handle, void *arg, int argc PFS_UNUSED,
			 const char *const *argv PFS_UNUSED, sqlite3_vtab **out,
			 char **message PFS_UNUSED)
{
	struct pfs_sql *sql = arg;

	return pfs_sql_vtab_connect(handle, out, sql->declaration, sql, NULL);
}

static int find_function(sqlite3_vtab *table, int n_arguments, const char *name,
			 void (**fn)(sqlite3_context *, int, sqlite3_value **), void **arg)
{
	const struct pfs_sql *sql = sql_of(table);
	const char *const *known = sql->source->functions;

	for (int i = 0; n_arguments == 2 && known[i]; i++) {
		if (sqlite3_stricmp(known[i], name) == 0 &&
		    pfs_sql_find_function(sql, name, fn, arg))
			return SQLITE_INDEX_CONSTRAINT_FUNCTION + i;
	}
	return 0;
}

/* ---- planning ---- */

/* Returns the operator, or -1: a source is not asked about it. */
static int op_of(int op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return PFS_SQL_EQ;
	case SQLITE_INDEX_CONSTRAINT_NE:
		return PFS_SQL_NE;
	case SQLITE_INDEX_CONSTRAINT_LT:
		return PFS_SQL_LT;
	case SQLITE_INDEX_CONSTRAINT_LE:
		return PFS_SQL_LE;
	case SQLITE_INDEX_CONSTRAINT_GT:
		return PFS_SQL_GT;
	case SQLITE_INDEX_CONSTRAINT_GE:
		return PFS_SQL_GE;
	case SQLITE_INDEX_CONSTRAINT_IS:
		return PFS_SQL_IS;
	case SQLITE_INDEX_CONSTRAINT_ISNULL:
		return PFS_SQL_IS_NULL;
	case SQLITE_INDEX_CONSTRAINT_ISNOTNULL:
		return PFS_SQL_NOT_NULL;
	case SQLITE_INDEX_CONSTRAINT_GLOB:
		return PFS_SQL_GLOB;
	case SQLITE_INDEX_CONSTRAINT_LIKE:
		return PFS_SQL_LIKE;
	default:
		return op >= SQLITE_INDEX_CONSTRAINT_FUNCTION
			       ? PFS_SQL_FUNCTION + op - SQLITE_INDEX_CONSTRAINT_FUNCTION
			       : -1;
	}
}

struct planning {
	struct pfs_sql_constraint constraints[CONSTRAINTS_MAX];
	struct pfs_sql_value values[CONSTRAINTS_MAX];
	int of[CONSTRAINTS_MAX]; /* SQLite's number of each constraint */
	struct pfs_sql_order order[PFS_SQL_ORDER_MAX];
	struct pfs_sql_plan plan;
};

static void list_constraints(struct planning *planning, sqlite3_index_info *info)
{
	struct pfs_sql_plan *plan = &planning->plan;

	for (int i = 0; i < info->nConstraint && plan->n < CONSTRAINTS_MAX; i++) {
		int op = op_of(info->aConstraint[i].op);
		sqlite3_value *value = NULL;
		size_t n = plan->n;

		if (!info->aConstraint[i].usable || op < 0 ||
		    sqlite3_stricmp(sqlite3_vtab_collation(info, i), "BINARY") != 0)
			continue;
		planning->of[n] = i;
		planning->constraints[n] = (struct pfs_sql_constraint){
			.column = info->aConstraint[i].iColumn,
			.op = op,
			.is_in = sqlite3_vtab_in(info, i, -1),
		};
		if (sqlite3_vtab_rhs_value(info, i, &value) == SQLITE_OK) {
			if (pfs_sql_from_value(&planning->values[n], value))
				planning->constraints[n].value = &planning->values[n];
		}
		plan->n++;
	}
}

/* GROUP BY needs an order, too. Rows that only need to differ (2) are compared faster without one.
 */
static void list_order(struct planning *planning, sqlite3_index_info *info)
{
	if (info->nOrderBy > PFS_SQL_ORDER_MAX || sqlite3_vtab_distinct(info) == 2)
		return;
	for (int i = 0; i < info->nOrderBy; i++)
		planning->order[i] = (struct pfs_sql_order){
			.column = info->aOrderBy[i].iColumn,
			.descending = info->aOrderBy[i].desc,
		};
	planning->plan.order = planning->order;
	planning->plan.n_order = (size_t)info->nOrderBy;
}

/* Returns the sum of LIMIT and OFFSET, if they are numbers. */
static uint64_t limit_of(sqlite3_index_info *info)
{
	uint64_t limit = 0;
	bool limited = false;

	for (int i = 0; i < info->nConstraint; i++) {
		int op = info->aConstraint[i].op;
		sqlite3_value *value = NULL;

		if (op != SQLITE_INDEX_CONSTRAINT_LIMIT && op != SQLITE_INDEX_CONSTRAINT_OFFSET)
			continue;
		if (sqlite3_vtab_rhs_value(info, i, &value) != SQLITE_OK ||
		    sqlite3_value_int64(value) < 0)
			return UINT64_MAX;
		limit += (uint64_t)sqlite3_value_int64(value);
		limited |= op == SQLITE_INDEX_CONSTRAINT_LIMIT;
	}
	return limited ? limit : UINT64_MAX;
}

/* A plan's numbers are written by hand, since printf takes longer than everything else that a plan
 * needs. */
static char *put_number(char *at, uint64_t number)
{
	unsigned shift = number ? (63u - (unsigned)__builtin_clzll(number)) / 4 * 4 : 0;

	*at++ = ' ';
	for (shift += 4; shift > 0;) {
		shift -= 4;
		*at++ = "0123456789abcdef"[number >> shift & 15];
	}
	return at;
}

static uint64_t take_number(const char **at)
{
	uint64_t number = 0;

	for (++*at; **at > ' '; ++*at)
		number = number << 4 | (uint64_t)(**at <= '9' ? **at - '0' : **at - 'a' + 10);
	return number;
}

/* What the scan will get, and SQLite's part of the choice. */
static int tell(struct planning *planning, sqlite3_index_info *info)
{
	const struct pfs_sql_plan *plan = &planning->plan;
	size_t n_order = plan->ordered ? plan->n_order : 0;
	char *at = sqlite3_malloc64((3 + n_order + 2 * plan->n) * 17 + 1);
	int arguments = 0;

	if (!at)
		return SQLITE_NOMEM;
	info->idxStr = at;
	at = put_number(put_number(put_number(at, plan->columns), plan->limit), n_order);
	for (size_t i = 0; i < n_order; i++) /* -1 is the rowid's column */
		at = put_number(at, ((uint64_t)plan->order[i].column + 1) << 1 |
					    plan->order[i].descending);
	for (size_t i = 0; i < plan->n; i++) {
		const struct pfs_sql_constraint *constraint = &plan->constraints[i];
		int of = planning->of[i];

		if (!constraint->take)
			continue;
		at = put_number(put_number(at, (uint64_t)constraint->column + 1),
				(uint64_t)constraint->op);
		info->aConstraintUsage[of].argvIndex = ++arguments;
		info->aConstraintUsage[of].omit = constraint->exact;
	}
	*at = 0;
	info->needToFreeIdxStr = 1;
	info->idxNum = (int)plan->id;
	info->orderByConsumed = plan->ordered;
	info->estimatedCost = plan->cost;
	info->estimatedRows = plan->rows;
	info->idxFlags = plan->unique ? SQLITE_INDEX_SCAN_UNIQUE : 0;
	return SQLITE_OK;
}

static int best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	struct planning planning;
	struct pfs_sql_plan *plan = &planning.plan;
	struct pfs_sql *sql = sql_of(table);

	sql->columns |= info->colUsed;
	*plan = (struct pfs_sql_plan){
		.constraints = planning.constraints,
		.columns = info->colUsed,
		.limit = limit_of(info),
		.cost = 1e6,
		.rows = 1000000,
	};
	list_constraints(&planning, info);
	list_order(&planning, info);
	sql->source->plan(sql->user, plan);
	return tell(&planning, info);
}

/* ---- scanning ---- */

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **out)
{
	const struct pfs_sql *sql = sql_of(table);
	int result = pfs_sql_vtab_open(out, sizeof(struct pfs_sql_cursor));
	int error;

	if (result)
		return result;
	error = sql->source->open(sql->user, &((struct pfs_sql_cursor *)*out)->scan);
	if (!error)
		return SQLITE_OK;
	sqlite3_free(*out);
	*out = NULL;
	return failed(table, error);
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct pfs_sql_cursor *cursor = (struct pfs_sql_cursor *)base;

	sql_of(base->pVtab)->source->close(cursor->scan);
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static int fetch(struct pfs_sql_cursor *cursor)
{
	sqlite3_vtab *table = cursor->base.pVtab;
	int error;

	cursor->row = 0;
	error = sql_of(table)->source->fetch(cursor->scan, &cursor->rows);
	if (error)
		cursor->rows.n = 0;
	return error ? failed(table, error) : SQLITE_OK;
}

/* The value, and the number that a text reads as where it is compared with one. */
static int take_argument(struct pfs_sql_argument *argument, sqlite3_value *value)
{
	if (!pfs_sql_from_value(&argument->value, value))
		return SQLITE_NOMEM;
	pfs_sql_number_of(&argument->number, value);
	return SQLITE_OK;
}

/* The plan's text, without the arguments' values. */
static void read_plan(struct pfs_sql_cursor *cursor, int id, const char *text, size_t n)
{
	struct pfs_sql_begin *begin = &cursor->begin;

	*begin = (struct pfs_sql_begin){
		.id = (unsigned)id,
		.order = cursor->order,
		.arguments = cursor->arguments,
		.n = n,
	};
	begin->columns = take_number(&text);
	begin->limit = take_number(&text);
	begin->n_order = take_number(&text);
	for (size_t i = 0; i < begin->n_order; i++) {
		uint64_t number = take_number(&text);

		cursor->order[i].descending = number & 1;
		cursor->order[i].column = (int)(number >> 1) - 1;
	}
	for (size_t i = 0; i < n; i++) {
		cursor->arguments[i].column = (int)take_number(&text) - 1;
		cursor->arguments[i].op = (int)take_number(&text);
	}
	cursor->is_planned = true;
}

static int filter(sqlite3_vtab_cursor *base, int id, const char *text, int argc,
		  sqlite3_value **argv)
{
	struct pfs_sql_cursor *cursor = (struct pfs_sql_cursor *)base;
	int error;

	if (!cursor->is_planned || cursor->begin.id != (unsigned)id)
		read_plan(cursor, id, text, (size_t)argc);
	for (int i = 0; i < argc; i++) {
		error = take_argument(&cursor->arguments[i], argv[i]);
		if (error)
			return error;
	}
	cursor->rows.n = 0;
	error = sql_of(base->pVtab)->source->start(cursor->scan, &cursor->begin);
	return error ? failed(base->pVtab, error) : fetch(cursor);
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct pfs_sql_cursor *cursor = (struct pfs_sql_cursor *)base;

	return ++cursor->row < cursor->rows.n ? SQLITE_OK : fetch(cursor);
}

static int at_end(sqlite3_vtab_cursor *base)
{
	return ((struct pfs_sql_cursor *)base)->rows.n == 0;
}

static void return_bytes(sqlite3_context *context, const struct pfs_sql_column *column, size_t row)
{
	uint64_t from = column->offset[row], size = column->offset[row + 1] - from;

	if (column->is_null && column->is_null[row])
		return;
	/* NULL, as a batch of nothing but empty text may have, would be SQL's */
	sqlite3_result_text64(context, size ? column->bytes + from : "", size, SQLITE_TRANSIENT,
			      SQLITE_UTF8);
}

/* The value is NULL unless one is set. */
static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
	struct pfs_sql_cursor *cursor = (struct pfs_sql_cursor *)base;
	const struct pfs_sql_column *column = &cursor->rows.columns[number];
	int error;

	if (sqlite3_vtab_nochange(context)) /* an UPDATE does not change the column */
		return SQLITE_OK;
	if (column->kind == PFS_SQL_ABSENT) {
		error = sql_of(base->pVtab)->source->gather(cursor->scan, &cursor->rows, number);
		if (error)
			return failed(base->pVtab, error);
	}
	switch (column->kind) {
	case PFS_SQL_INTEGERS:
		if (column->integers[cursor->row] != PFS_SQL_NO_INTEGER)
			sqlite3_result_int64(context, column->integers[cursor->row]);
		break;
	case PFS_SQL_BYTES:
		return_bytes(context, column, cursor->row);
		break;
	case PFS_SQL_VALUES:
		pfs_sql_vtab_give(context, &column->values[cursor->row], SQLITE_TRANSIENT);
		break;
	case PFS_SQL_ABSENT:
		break;
	}
	return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite_int64 *out)
{
	struct pfs_sql_cursor *cursor = (struct pfs_sql_cursor *)base;
	int64_t rowid = 0;
	int error = sql_of(base->pVtab)->source->rowid(cursor->scan, &rowid, cursor->row);

	*out = rowid;
	return error ? failed(base->pVtab, error) : SQLITE_OK;
}

/* ---- changing ---- */

static int make_update_room(struct pfs_sql *sql, size_t n)
{
	if (n <= sql->update_width)
		return 0;
	free(sql->update_values);
	free(sql->update_given);
	sql->update_width = 0;
	sql->update_values = calloc(n, sizeof(*sql->update_values));
	sql->update_given = calloc(n, sizeof(*sql->update_given));
	if (!sql->update_values || !sql->update_given)
		return -ENOMEM;
	sql->update_width = n;
	return 0;
}

/* Returns true if the row keeps its number, which is NULL for a new row. As SQLite's own rowids,
 * the number may be given as a text or a real. */
static bool is_rowid(sqlite3_value *rowid, sqlite3_value *given)
{
	int type = sqlite3_value_numeric_type(given); /* which makes a text one */
	sqlite3_int64 number = sqlite3_value_int64(given);

	if (type == SQLITE_FLOAT && (double)number == sqlite3_value_double(given))
		type = SQLITE_INTEGER;
	return type == sqlite3_value_type(rowid) &&
	       (type == SQLITE_NULL || number == sqlite3_value_int64(rowid));
}

/* argv has the row's number or NULL and, unless the row is deleted, its new number and the columns.
 */
static int update(sqlite3_vtab *table, int argc, sqlite3_value **argv, sqlite_int64 *rowid)
{
	struct pfs_sql *sql = sql_of(table);
	struct pfs_sql_update asked = {.kind = PFS_SQL_DELETES};
	int error;

	if (sqlite3_vtab_on_conflict(sql->handle) != SQLITE_ABORT) {
		table->zErrMsg = sqlite3_mprintf("OR IGNORE and the like cannot be used with %s; "
						 "leave it out", sql->source->name);
		return SQLITE_ERROR;
	}
	if (sqlite3_value_type(argv[0]) != SQLITE_NULL)
		asked.rowid = sqlite3_value_int64(argv[0]);
	if (argc > 1) {
		asked.kind = sqlite3_value_type(argv[0]) == SQLITE_NULL ? PFS_SQL_INSERTS
									 : PFS_SQL_UPDATES;
		asked.n = (size_t)argc - 2;
		asked.sets_rowid = !is_rowid(argv[0], argv[1]);
	}
	error = make_update_room(sql, asked.n);
	for (size_t i = 0; i < asked.n && !error; i++) {
		sqlite3_value *value = argv[i + 2];

		sql->update_given[i] = asked.kind == PFS_SQL_UPDATES
					       ? !sqlite3_value_nochange(value)
					       : sqlite3_value_type(value) != SQLITE_NULL;
		if (sql->update_given[i] && !pfs_sql_from_value(&sql->update_values[i], value))
			error = -ENOMEM;
	}
	asked.columns = sql->update_values;
	asked.given = sql->update_given;
	*rowid = 0;
	if (!error)
		error = sql->source->update(sql->user, &asked);
	return error ? failed(table, error) : SQLITE_OK;
}

/* A module without xCreate exists as soon as it is named. */
static const sqlite3_module module = {
	.iVersion = 1,
	.xConnect = connect_table,
	.xBestIndex = best_index,
	.xDisconnect = pfs_sql_vtab_disconnect,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter,
	.xNext = next_row,
	.xEof = at_end,
	.xColumn = give_column,
	.xRowid = give_rowid,
	.xUpdate = update,
	.xFindFunction = find_function,
};

int pfs_sql_add_table(struct pfs_sql *sql)
{
	return sqlite3_create_module_v2(sql->handle, sql->source->name, &module, sql, NULL);
}
