/* SPDX-License-Identifier: MIT */
#include "meta/sql/sqlquery_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/log.h"
#include "meta/sql/sqlside.h"
#include "meta/vfs.h"

#define TICK_STEPS	16 /* the most steps of SQLite's machine between two ticks */
#define MEMORY_DEFAULT	((uint64_t)1 << 30) /* if there is no limit */
/* what is sorted in one piece, without a look at the clock */
#define SORT_MEMORY_MAX ((uint64_t)2 << 20)

/* These limits keep SQLite's recursion within a thread's stack (base/thread.h), and preparing
 * short. */
#define TEXT_MAX     (1 << 20) /* bytes, with what was replaced in the text */
#define DEPTH_MAX    1000      /* of an expression */
#define COMPOUND_MAX 250       /* SELECTs that one UNION connects */
#define PATTERN_MAX  10000     /* bytes of a pattern of LIKE or GLOB */
/* allocations while preparing: names of WITH that use others twice make many */
#define ALLOCATIONS_MAX 1000000

/* ---- errors ---- */

static int errno_of_refusal(enum pfs_refusal refusal)
{
	switch (refusal) {
	case PFS_REFUSED_TIME:
		return -EINTR;
	case PFS_REFUSED_NUMBER:
		return -E2BIG;
	case PFS_REFUSED_NOTHING:
	case PFS_REFUSED_MEMORY:
	case PFS_REFUSED_TOTAL:
		break;
	}
	return -ENOMEM;
}

/* NOLINTNEXTLINE(misc-no-recursion): once, with a plainer result */
static int errno_of(const struct pfs_sql *sql, int result)
{
	if (sql->error)
		return sql->error;
	if (*sql->refused) /* if a function is refused, SQLite's result is another one */
		return sql->refusal;
	switch (result & 0xff) {
	case SQLITE_NOMEM:
		return errno_of_refusal(pfs_account_refusal(sql->account));
	case SQLITE_TOOBIG:
		return -ENOMEM;
	case SQLITE_INTERRUPT:
		return -EINTR;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_IOERR:
		return result == SQLITE_IOERR_NOMEM ? errno_of(sql, SQLITE_NOMEM) : -EIO;
	case SQLITE_CANTOPEN:
		return -EIO;
	case SQLITE_AUTH:
		return -EACCES;
	default:
		return -EINVAL;
	}
}

int pfs_sql_explain_result(struct pfs_sql *sql, struct pfs_sql_problem *problem, int result)
{
	int error = errno_of(sql, result);
	const char *text = sqlite3_errmsg(sql->handle);

	if (*sql->refused)
		text = sql->refused;
	else if (error == -E2BIG && !sql->error)
		text = "names of WITH that use others again and again make the statement too "
		       "large; ask in several";
	else if (result == SQLITE_TOOBIG)
		text = sql->steps_limit && sql->steps_limit < sql->value_limit
			       ? "a value would be longer than it may be beside so many operations; ask in several statements"
			       : "a value would be longer than query_value lets it; make it shorter";
	else if (sql->error || error == -EINTR || error == -ENOMEM)
		text = ""; /* the caller knows more */
	problem->offset = sqlite3_error_offset(sql->handle);
	(void)snprintf(problem->text, sizeof(problem->text), "%s", text);
	return error;
}

static int complain(struct pfs_sql_problem *problem, int error, long offset, const char *text)
{
	problem->offset = offset;
	(void)snprintf(problem->text, sizeof(problem->text), "%s", text);
	return error;
}

/* ---- connections ---- */

static int tick(void *arg);

static void set_steps(struct pfs_sql *sql, int steps)
{
	if (sql->steps == steps)
		return;
	sql->steps = steps;
	sqlite3_progress_handler(sql->handle, steps, tick, sql);
}

/* The clock used here advances every few milliseconds. If it has advanced, steps may be slow
 * because of long values: then SQLite is to ask after as few steps as it can. */
static int tick(void *arg)
{
	struct pfs_sql *sql = arg;
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (now.tv_nsec == sql->ticked) {
		set_steps(sql, PFS_MIN(2 * sql->steps, TICK_STEPS));
		return 0;
	}
	sql->ticked = now.tv_nsec;
	set_steps(sql, 1);
	return sql->user ? sql->tick(sql->user) : 0;
}

static void set_limits(sqlite3 *handle)
{
	static const struct {
		int what, most;
	} limits[] = {
		{SQLITE_LIMIT_ATTACHED, 0},
		{SQLITE_LIMIT_WORKER_THREADS, 0},
		{SQLITE_LIMIT_SQL_LENGTH, TEXT_MAX},
		{SQLITE_LIMIT_EXPR_DEPTH, DEPTH_MAX},
		{SQLITE_LIMIT_COMPOUND_SELECT, COMPOUND_MAX},
		{SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_MAX},
	};

	for (size_t i = 0; i < PFS_COUNT(limits); i++)
		(void)sqlite3_limit(handle, limits[i].what, limits[i].most);
}

static int configure(struct pfs_sql *sql, bool plain_patterns)
{
	sqlite3 *handle = sql->handle;
	int result;

	(void)sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	(void)sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	(void)sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	set_limits(handle);
	result = sqlite3_exec(handle, "PRAGMA temp_store = FILE", NULL, NULL, NULL);
	if (!result)
		result = pfs_sql_add_functions(sql);
	if (!result)
		result = pfs_sql_add_text_functions(sql, plain_patterns);
	if (!result)
		result = pfs_sql_add_table(sql);
	if (!result)
		result = pfs_sql_add_table_functions(sql);
	if (!result)
		result = sqlite3_set_authorizer(handle, pfs_sql_authorize, sql);
	set_steps(sql, 1);
	return result;
}

int pfs_sql_open(struct pfs_sql **out, const struct pfs_sql_options *options)
{
	struct pfs_sql *sql = calloc(1, sizeof(*sql));
	int result = SQLITE_NOMEM;

	pfs_accounts_begin();
	*out = NULL;
	if (!sql)
		return -ENOMEM;
	sql->source = options->source;
	sql->functions = options->functions;
	sql->tables = options->tables;
	sql->tick = options->tick;
	sql->value_limit = PFS_SQL_VALUE_MAX;
	sql->declaration = strdup(options->declaration);
	if (sql->declaration)
		result = sqlite3_open_v2(":memory:", &sql->handle,
					 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
						 SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
					 pfs_vfs_name());
	if (!result)
		result = configure(sql, options->plain_patterns);
	if (result) {
		pfs_error("SQLite: %s", sqlite3_errstr(result));
		pfs_sql_close(sql);
		return result == SQLITE_NOMEM ? -ENOMEM : -EINVAL;
	}
	*out = sql;
	return 0;
}

void pfs_sql_close(struct pfs_sql *sql)
{
	if (!sql)
		return;
	pfs_sql_finish(sql);
	pfs_sql_sides_close(sql);
	pfs_sql_json_close(sql->json);
	(void)sqlite3_finalize(sql->to_real);
	(void)sqlite3_close(sql->handle);
	free(sql->update_values);
	free(sql->update_given);
	free(sql->bindings);
	pfs_sql_forget_reads(sql);
	free(sql->reads);
	free(sql->declaration);
	free(sql);
}

void pfs_sql_set_up(struct pfs_sql *sql, const struct pfs_sql_terms *terms)
{
	uint64_t memory = terms->memory ? terms->memory : MEMORY_DEFAULT;
	uint64_t value = terms->value ? terms->value : PFS_SQL_VALUE_MAX;
	uint64_t sort = PFS_MIN(memory / 4, SORT_MEMORY_MAX);
	char pragma[64];

	sql->ticked = 0; /* so that the first tick looks at the clock */
	set_steps(sql, 1);
	sql->user = terms->user;
	sql->account = terms->account;
	sql->may_change = terms->may_change;
	sql->value_limit = PFS_MAX(PFS_MIN(memory, PFS_MIN(value, INT32_MAX)), PFS_SQL_VALUE_MIN);
	if (sort == sql->sort_memory)
		return;
	sql->sort_memory = sort;
	sql->tables_made++; /* after this SQLite prepares every statement again */
	/* SQLite's sorter takes as much memory as the cache of the database may have. */
	(void)snprintf(pragma, sizeof(pragma), "PRAGMA cache_size = -%llu",
		       (unsigned long long)PFS_MAX(sort >> 10, 64));
	(void)sqlite3_set_authorizer(sql->handle, NULL, NULL);
	(void)sqlite3_exec(sql->handle, pragma, NULL, NULL, NULL);
	(void)sqlite3_set_authorizer(sql->handle, pfs_sql_authorize, sql);
}

/* ---- statements ---- */

bool pfs_sql_is_complete(const char *text)
{
	return sqlite3_complete(text) == 1;
}

/* Returns true if the text has more than blanks, comments and semicolons; SQLite itself tells. */
static bool is_statement(struct pfs_sql *sql, const char *text, int len)
{
	sqlite3_stmt *more = NULL;
	const char *tail = text;

	while (len > 0) {
		int result = sqlite3_prepare_v3(sql->handle, text, len, 0, &more, &tail);

		(void)sqlite3_finalize(more);
		if (result || more)
			return true;
		if (tail <= text)
			break;
		len -= (int)(tail - text);
		text = tail;
	}
	return false;
}

static int check_one(struct pfs_sql *sql, const char *text, int len, const char *tail,
		     struct pfs_sql_problem *problem)
{
	if (!sql->statement && tail == text + len)
		return complain(problem, -EINVAL, -1, "no statement; write SELECT ... FROM nodes");
	if (!sql->statement)
		return complain(problem, -EINVAL, 0,
				"an empty statement before another; write one");
	if (is_statement(sql, tail, len - (int)(tail - text)))
		return complain(problem, -EINVAL, (long)(tail - text),
				"a second statement; run them one at a time");
	if (!sqlite3_stmt_readonly(sql->statement) && !sql->may_change)
		return complain(problem, -EACCES, -1,
				"this kind of statement cannot be used here; write a SELECT");
	if (sqlite3_stmt_isexplain(sql->statement) == 1 && !sql->may_change)
		return complain(problem, -EACCES, -1,
				"EXPLAIN shows addresses in memory; write EXPLAIN QUERY PLAN");
	if (!sqlite3_stmt_readonly(sql->statement) && sqlite3_stmt_isexplain(sql->statement))
		return complain(problem, -EINVAL, -1,
				"what changes something cannot be explained; explain a SELECT");
	if (!sqlite3_stmt_readonly(sql->statement) && sqlite3_column_count(sql->statement))
		return complain(problem, -EINVAL, -1,
				"RETURNING cannot be used here; write a SELECT afterwards");
	if (sqlite3_bind_parameter_count(sql->statement))
		return complain(problem, -EINVAL, -1,
				"parameters (?, :name) have no values here; write the values");
	return 0;
}

static void count_allocations(struct pfs_sql *sql, uint64_t most)
{
	if (sql->account)
		pfs_account_count(sql->account, most);
}

int pfs_sql_prepare(struct pfs_sql *sql, const char *text, size_t len,
		    struct pfs_sql_problem *problem)
{
	struct pfs_account *before PFS_ACCOUNT = pfs_account_enter(sql->account);
	const char *tail = text;
	int error;

	pfs_sql_finish(sql);
	sql->error = 0;
	sql->is_lost = false;
	sql->refused[0] = sql->changed[0] = 0;
	sql->updated = 0;
	sql->saw = sql->selects = 0;
	pfs_sql_forget_reads(sql);
	if (len > INT32_MAX)
		return complain(problem, -E2BIG, -1, "the statement is too long");
	if (memchr(text, 0, len))
		return complain(problem, -EINVAL, (long)strlen(text), "a NUL byte; leave it out");
	sql->steps_limit = 0;
	(void)sqlite3_limit(sql->handle, SQLITE_LIMIT_LENGTH, (int)sql->value_limit);
	count_allocations(sql, ALLOCATIONS_MAX);
	error = sqlite3_prepare_v3(sql->handle, text, (int)len, 0, &sql->statement, &tail);
	count_allocations(sql, 0);
	if (error)
		return pfs_sql_explain_result(sql, problem, error);
	error = check_one(sql, text, (int)len, tail, problem);
	if (error)
		pfs_sql_finish(sql);
	return error;
}

void pfs_sql_finish(struct pfs_sql *sql)
{
	(void)sqlite3_finalize(sql->statement);
	sql->statement = NULL;
	pfs_sql_close_opened(sql);
}

bool pfs_sql_rest(struct pfs_sql *sql)
{
	pfs_sql_finish(sql);
	sql->user = NULL;
	sql->account = NULL;
	return sqlite3_get_autocommit(sql->handle);
}

void pfs_sql_reset(struct pfs_sql *sql)
{
	(void)sqlite3_reset(sql->statement);
	pfs_sql_close_opened(sql);
	sql->error = 0;
	sql->is_lost = false;
}

/* ---- what tables look like, whosever they are ---- */

static int list_columns(sqlite3_stmt *row, int (*fn)(void *arg, const char *name, bool is_hidden),
			void *arg, int *found)
{
	int result = sqlite3_step(row);

	*found = result == SQLITE_DONE ? -ENOENT : 0; /* a table always has columns */
	for (; result == SQLITE_ROW && !*found; result = sqlite3_step(row)) {
		const char *name = (const char *)sqlite3_column_text(row, 0);

		*found = name ? fn(arg, name, sqlite3_column_int(row, 1) == 1) : -ENOMEM;
	}
	return result;
}

int pfs_sql_table_columns(struct pfs_sql *sql, const char *table,
			  int (*fn)(void *arg, const char *name, bool is_hidden), void *arg)
{
	static const char text[] = "SELECT name, hidden FROM pragma_table_xinfo(?1)";
	struct pfs_sql_problem ignored;
	sqlite3_stmt *row = NULL;
	int result, found = 0;

	sql->own = true;
	result = sqlite3_prepare_v2(sql->handle, text, -1, &row, NULL);
	if (!result)
		result = sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC);
	if (!result)
		result = list_columns(row, fn, arg, &found);
	(void)sqlite3_finalize(row);
	sql->own = false;
	if (found)
		return found;
	return result == SQLITE_DONE ? 0 : pfs_sql_explain_result(sql, &ignored, result);
}

int pfs_sql_step(struct pfs_sql *sql, struct pfs_sql_problem *problem)
{
	struct pfs_account *before PFS_ACCOUNT = pfs_account_enter(sql->account);
	int result = sql->is_lost ? SQLITE_NOMEM : SQLITE_OK;

	if (!result && !sql->steps_limit)
		result = pfs_sql_bound_values(sql);
	if (!result)
		result = sqlite3_step(sql->statement);
	if (result == SQLITE_ROW)
		return 1;
	return result == SQLITE_DONE ? 0 : pfs_sql_explain_result(sql, problem, result);
}

void pfs_sql_interrupt(struct pfs_sql *sql)
{
	sqlite3_interrupt(sql->handle);
}

size_t pfs_sql_columns(const struct pfs_sql *sql)
{
	return (size_t)sqlite3_column_count(sql->statement);
}

const char *pfs_sql_column_name(const struct pfs_sql *sql, size_t column)
{
	const char *name = sqlite3_column_name(sql->statement, (int)column);

	return name ? name : "";
}

void pfs_sql_value(struct pfs_sql *sql, struct pfs_sql_value *out, size_t column)
{
	struct pfs_account *before PFS_ACCOUNT = pfs_account_enter(sql->account);

	if (!pfs_sql_from_value(out, sqlite3_column_value(sql->statement, (int)column)))
		sql->is_lost = true;
}

int pfs_sql_explain(struct pfs_sql *sql, const char *text, size_t len,
		    int (*fn)(void *arg, int id, int parent, const char *detail), void *arg)
{
	static const char prefix[] = "EXPLAIN QUERY PLAN ";
	struct pfs_account *before PFS_ACCOUNT = pfs_account_enter(sql->account);
	sqlite3_stmt *row = NULL;
	char *whole;
	int result, error = 0;

	sql->selects = 0;
	whole = sqlite3_mprintf("%s%.*s", prefix, (int)len, text);
	if (!whole)
		return -ENOMEM;
	result = sqlite3_prepare_v3(sql->handle, whole, -1, 0, &row, NULL);
	while (!result && !error && (result = sqlite3_step(row)) == SQLITE_ROW) {
		const char *detail = (const char *)sqlite3_column_text(row, 3);

		result = SQLITE_OK;
		error = detail ? fn(arg, sqlite3_column_int(row, 0), sqlite3_column_int(row, 1),
				    detail)
			       : -ENOMEM;
	}
	(void)sqlite3_finalize(row);
	sqlite3_free(whole);
	if (error || result == SQLITE_DONE)
		return error;
	return errno_of(sql, result);
}
