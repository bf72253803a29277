/* SPDX-License-Identifier: MIT */
/* meta/sql/program.c - bounds the length of values by SQLite's program for a statement.
 *
 * SQLite's machine calls its progress handler at jumps, and not between the steps for one row. Each
 * of these steps takes a nanosecond or two for each byte of a value, and a statement may have
 * thousands of them. So the more steps read whole values, the shorter values may be. */
#include "meta/sql/sqlquery_impl.h"

#include <errno.h>
#include <string.h>

#include "base/checked.h"

#define STEPS_FREE 4	 /* so many operations may work on the longest values: some 50 ms */
#define SHORT	   16	 /* bytes: a shorter text, such as SELECT 1, need not be checked */
#define STEPS_SORT 16	 /* a sort counts as so many */
#define STEPS_MAX  20000 /* so many may work on values of LEAST bytes: the same time again */
#define LEAST	   4096	 /* the least bytes that a value may have: a path */

struct instruction {
	int at, p1, p2, p3;
	const char *name, *p4; /* p4 NULL: none */
};

/* The columns are address, opcode, p1, p2, p3, p4, ... */
static struct instruction op_of(sqlite3_stmt *row)
{
	const char *name = (const char *)sqlite3_column_text(row, 1);

	return (struct instruction){
		.at = sqlite3_column_int(row, 0),
		.p1 = sqlite3_column_int(row, 2),
		.p2 = sqlite3_column_int(row, 3),
		.p3 = sqlite3_column_int(row, 4),
		.name = name ? name : "",
		.p4 = (const char *)sqlite3_column_text(row, 5),
	};
}

/* Calls fn for each step of the program, for which the statement is prepared once more. Returns
 * SQLITE_DONE; SQLITE_ABORT if fn returned non-zero, which ends it; or SQLite's error. */
static int each_op(struct pfs_sql *sql, int (*fn)(void *arg, const struct instruction *op),
		   void *arg)
{
	char *text = sqlite3_mprintf("EXPLAIN %s", sqlite3_sql(sql->statement));
	struct pfs_account *before PFS_ACCOUNT = pfs_account_enter(sql->account);
	sqlite3_stmt *row = NULL;
	int result = SQLITE_NOMEM;

	sql->own = true; /* what the statement may do has been decided before */
	if (text)
		result = sqlite3_prepare_v3(sql->handle, text, -1, 0, &row, NULL);
	sql->own = false;
	while (!result && (result = sqlite3_step(row)) == SQLITE_ROW) {
		struct instruction op = op_of(row);

		result = fn(arg, &op) ? SQLITE_ABORT : SQLITE_OK;
	}
	(void)sqlite3_finalize(row);
	sqlite3_free(text);
	return result;
}

/* ---- steps that go through a whole value ---- */

struct steps {
	uint64_t n;
	uint64_t sorts; /* of them, those of sorts that compare bytes */
	/* registers that are set from others or from columns, perhaps for arguments */
	uint64_t moved;
	bool has_variadic; /* a function of any number of arguments */
};

struct cost {
	const char *name;
	unsigned n;
};

static const struct cost costs[] = {
	{"Eq", 1},
	{"Ne", 1},
	{"Lt", 1},
	{"Le", 1},
	{"Gt", 1},
	{"Ge", 1},
	{"Add", 2},
	{"Subtract", 2},
	{"Multiply", 2},
	{"Divide", 2},
	{"Remainder", 2},
	{"BitAnd", 2},
	{"BitOr", 2},
	{"ShiftLeft", 2},
	{"ShiftRight", 2},
	{"BitNot", 1},
	{"Concat", 1},
	{"And", 2},
	{"Or", 2},
	{"Not", 1},
	{"If", 1},
	{"IfNot", 1},
	{"IsTrue", 1},
	{"Cast", 1},
	{"RealAffinity", 1},
	{"MustBeInt", 1},
	{"Found", 1},
	{"NotFound", 1},
	{"NoConflict", 1},
	{"Function0", 1},
	{"PureFunc0", 1},
	{"VFilter", 2},
	/* up to 16 runs are merged at a time: so many rows are compared at once */
	{"SorterOpen", STEPS_SORT},
};
/* How long functions take for a byte, by the beginnings of their names: longer than other
 * functions, or no time except in the allocator, which looks at the clock. */
static const struct cost other_functions[] = {
	{"json", 16},	    {"->", 16},	       {"strftime(", 32},   {"date(", 4},
	{"time(", 4},	    {"datetime(", 4},  {"quote(", 2},	    {"substr", 2},
	{"julianday(", 4},  {"unixepoch(", 4}, {"group_concat", 4}, {"zeroblob(", 0},
	{"randomblob(", 0},
};

static uint64_t cost_of_function(struct steps *steps, const char *name)
{
	if (!name)
		return 1;
	if (strstr(name, "(-1)"))
		steps->has_variadic = true;
	for (size_t i = 0; i < PFS_COUNT(other_functions); i++) {
		if (strncmp(name, other_functions[i].name, strlen(other_functions[i].name)) == 0)
			return other_functions[i].n;
	}
	return 1;
}

static bool is_call(const char *name)
{
	static const char *const names[] = {"Function", "PureFunc",   "AggStep",
					    "AggStep0", "AggInverse", "AggInverse1"};

	for (size_t i = 0; i < PFS_COUNT(names); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

/* A sorter's p4 lists the columns that are compared, with their collations. */
static bool compares_bytes(const struct instruction *op)
{
	return strcmp(op->name, "SorterOpen") == 0 && op->p4 && !strstr(op->p4, "NOCASE") &&
	       !strstr(op->p4, "RTRIM");
}

static int add_step(void *arg, const struct instruction *op)
{
	struct steps *steps = arg;

	if (strcmp(op->name, "Copy") == 0)
		steps->moved += (uint64_t)op->p3 + 1;
	else if (strcmp(op->name, "SCopy") == 0 || strcmp(op->name, "Column") == 0 ||
		 strcmp(op->name, "VColumn") == 0)
		steps->moved++;
	else if (strcmp(op->name, "Compare") == 0)
		steps->n += (uint64_t)op->p3;
	else if (strcmp(op->name, "Affinity") == 0)
		steps->n += (uint64_t)op->p2;
	else if (is_call(op->name))
		steps->n += cost_of_function(steps, op->p4);
	else
		for (size_t i = 0; i < PFS_COUNT(costs); i++)
			steps->n += strcmp(op->name, costs[i].name) == 0 ? costs[i].n : 0;
	steps->sorts += compares_bytes(op) ? STEPS_SORT : 0;
	return 0;
}

static int refuse(struct pfs_sql *sql)
{
	(void)sqlite3_snprintf(
		sizeof(sql->refused), sql->refused,
		"more than %d operations on the values of a row; ask in several statements",
		STEPS_MAX);
	sql->refusal = -E2BIG;
	return SQLITE_AUTH;
}

static bool is_harmless(struct pfs_sql *sql)
{
	return strlen(sqlite3_sql(sql->statement)) < SHORT || sql->saw & PFS_SQL_SAW_SCHEMA ||
	       sqlite3_stmt_isexplain(sql->statement);
}

/* Sets *limit to what a value may have, at most value_limit. Returns SQLite's result. */
static int find_limit(struct pfs_sql *sql, uint64_t *limit)
{
	uint64_t least = PFS_MIN(sql->value_limit, LEAST), most;
	struct steps steps = {0};
	int result;

	*limit = sql->value_limit;
	if (is_harmless(sql))
		return SQLITE_OK;
	result = each_op(sql, add_step, &steps);
	if (result != SQLITE_DONE)
		return result;
	if (steps.has_variadic)
		steps.n += steps.moved;
	if (steps.n > STEPS_MAX)
		return refuse(sql);
	most = PFS_MAX(sql->value_limit, PFS_SQL_VALUE_MAX) * STEPS_FREE / PFS_MAX(steps.n, 1);
	/* bytes are compared faster, and one sort comes after the other */
	if (steps.n - steps.sorts <= STEPS_FREE)
		most = PFS_MAX(most, PFS_SQL_ROW_MAX);
	if (most < sql->value_limit)
		*limit = PFS_MAX(most, least);
	return SQLITE_OK;
}

int pfs_sql_bound_values(struct pfs_sql *sql)
{
	int result = find_limit(sql, &sql->steps_limit);

	if (!result)
		(void)sqlite3_limit(sql->handle, SQLITE_LIMIT_LENGTH, (int)sql->steps_limit);
	return result;
}

void pfs_sql_let_rows(struct pfs_sql *sql, bool let)
{
	uint64_t limit = sql->steps_limit ? sql->steps_limit : sql->value_limit;

	(void)sqlite3_limit(sql->handle, SQLITE_LIMIT_LENGTH,
			    (int)(let ? PFS_MAX(limit, PFS_SQL_ROW_MAX) : limit));
}

int pfs_sql_value_limit(struct pfs_sql *sql, uint64_t *limit)
{
	*limit = sql->steps_limit;
	return sql->steps_limit || find_limit(sql, limit) == SQLITE_OK ? 0 : -EOPNOTSUPP;
}
