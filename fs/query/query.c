/* SPDX-License-Identifier: MIT */
/* Statements, and the connections that they run on: one each, kept for the next when it is done,
 * since opening one takes longer than many a statement.
 *
 * A statement that changes something is run to its end by pfs_query_start. */
#include "fs/query/sides.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/tree/relation.h"
#include "fs/tree/sides.h"
#include "meta/sqlside.h"

#define IDLE_CONNECTIONS 4
#define AGAIN_MAX	 8 /* runs anew: a second one may meet an attribute that was not expected */

/* ---- connections ---- */

static void close_connection(struct pfs_connection *connection)
{
	if (!connection)
		return;
	pfs_sql_close(connection->sql);
	pfs_node_table_destroy(connection->table);
	free(connection);
}

/* Between two steps of SQLite's: has the statement to end? */
static int tick(void *user)
{
	struct pfs_query *query = user;
	const struct timespec *deadline = &query->deadline;
	struct timespec now;

	if (query->stop)
		return 1;
	if (!deadline->tv_sec && !deadline->tv_nsec)
		return 0;
	(void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	query->late = now.tv_sec > deadline->tv_sec ||
		      (now.tv_sec == deadline->tv_sec && now.tv_nsec >= deadline->tv_nsec);
	return query->late;
}

static int open_connection(struct pfs_connection **out, struct pfs_queries *queries)
{
	struct pfs_connection *connection = calloc(1, sizeof(*connection));
	struct pfs_sql_options options = {
		.source = &pfs_nodes_source,
		.functions = pfs_tree_functions,
		.tick = tick,
	};
	int error;

	if (!connection)
		return -ENOMEM;
	error = pfs_node_table_create(&connection->table, queries->tree);
	if (!error) {
		options.declaration = connection->table->declaration;
		error = pfs_sql_open(&connection->sql, &options);
	}
	if (error)
		close_connection(connection);
	else
		*out = connection;
	return error;
}

static struct pfs_connection *take_idle(struct pfs_queries *queries)
{
	PFS_LOCKED(&queries->lock);
	struct pfs_connection *connection = queries->idle;

	if (connection) {
		queries->idle = connection->next;
		queries->n_idle--;
	}
	return connection;
}

/* One that knows all attributes. */
int pfs_connection_get(struct pfs_connection **out, struct pfs_queries *queries)
{
	uint64_t n_names = pfs_attr_names_count(queries->tree);

	while ((*out = take_idle(queries)) != NULL) {
		if ((*out)->table->n_names == n_names)
			return 0;
		close_connection(*out);
	}
	return open_connection(out, queries);
}

void pfs_connection_put(struct pfs_queries *queries, struct pfs_connection *connection)
{
	if (!connection)
		return;
	connection->spent |= !pfs_sql_rest(connection->sql);
	{
		PFS_LOCKED(&queries->lock);
		if (queries->n_idle < IDLE_CONNECTIONS && !connection->spent) {
			connection->next = queries->idle;
			queries->idle = connection;
			queries->n_idle++;
			connection = NULL;
		}
	}
	close_connection(connection);
}

int pfs_queries_open(struct pfs_queries **out, struct pfs_tree *tree)
{
	struct pfs_queries *queries = calloc(1, sizeof(*queries));
	int error;

	*out = NULL;
	if (!queries)
		return -ENOMEM;
	queries->tree = tree;
	(void)pthread_mutex_init(&queries->lock, NULL);
	error = pfs_owners_create(&queries->owners);
	if (error)
		pfs_queries_close(queries);
	else
		*out = queries;
	return error;
}

void pfs_queries_close(struct pfs_queries *queries)
{
	if (!queries)
		return;
	while (queries->idle) {
		struct pfs_connection *connection = queries->idle;

		queries->idle = connection->next;
		close_connection(connection);
	}
	pfs_owners_destroy(queries->owners);
	(void)pthread_mutex_destroy(&queries->lock);
	free(queries);
}

/* ---- the tree as a statement sees it ---- */

int pfs_query_hold(struct pfs_query *query)
{
	uint64_t epoch;

	if (!query->holds) {
		epoch = pfs_scan_lock(query->tree);
		if (query->bound && epoch != query->epoch) {
			pfs_scan_unlock(query->tree);
			return -EAGAIN;
		}
		query->epoch = epoch;
		query->bound = true;
		query->holds = query->again != 0; /* the statement's own */
	}
	query->holds++;
	return 0;
}

void pfs_query_release(struct pfs_query *query)
{
	if (--query->holds == 0)
		pfs_scan_unlock(query->tree);
}

/* The end of a run. */
static void let_go(struct pfs_query *query)
{
	if (query->holds)
		pfs_query_release(query);
}

/* ---- attributes ---- */

static int open_attr(struct pfs_query *query, size_t i)
{
	const struct pfs_node_column *column = &query->connection->table->columns[i];

	return pfs_attr_reader_open(&query->attrs[i], query->tree, column->attr, column->attr_len);
}

int pfs_query_attr(struct pfs_query *query, struct pfs_attr_reader **out, size_t column)
{
	size_t n = query->connection->table->n;

	if (!query->attrs)
		query->attrs = calloc(n, sizeof(struct pfs_attr_reader *));
	if (!query->attr_wanted)
		query->attr_wanted = calloc(n, sizeof(bool));
	if (!query->attrs || !query->attr_wanted)
		return -ENOMEM;
	query->attr_wanted[column] = true;
	if (!query->attrs[column] && query->holds)
		return -EAGAIN;
	if (!query->attrs[column])
		PFS_TRY(open_attr(query, column));
	return pfs_attr_reader_copy(out, query->attrs[column]);
}

static void close_attrs(struct pfs_query *query)
{
	for (size_t i = 0; query->attrs && i < query->connection->table->n; i++) {
		pfs_attr_reader_close(query->attrs[i]);
		query->attrs[i] = NULL;
	}
}

/* Those of the run before, as they are now. */
static int reopen_attrs(struct pfs_query *query)
{
	int error = 0;

	close_attrs(query);
	for (size_t i = 0; query->attr_wanted && i < query->connection->table->n && !error; i++) {
		if (query->attr_wanted[i])
			error = open_attr(query, i);
	}
	return error;
}

int pfs_query_use(struct pfs_query *query, int64_t bytes)
{
	query->memory = (uint64_t)((int64_t)query->memory + bytes);
	return bytes > 0 && query->memory_limit && query->memory > query->memory_limit ? -ENOMEM
										       : 0;
}

/* ---- statements ---- */

static void set_deadline(struct pfs_query *query, unsigned ms)
{
	struct timespec *deadline = &query->deadline;

	if (!ms)
		return;
	(void)clock_gettime(CLOCK_MONOTONIC_COARSE, deadline);
	deadline->tv_sec += ms / 1000;
	deadline->tv_nsec += (long)(ms % 1000) * 1000000;
	if (deadline->tv_nsec >= 1000000000) {
		deadline->tv_nsec -= 1000000000;
		deadline->tv_sec++;
	}
}

/* What the statement is about must be there. */
static int look_at_tree(struct pfs_query *query)
{
	uint32_t slot;

	query->epoch = pfs_scan_lock(query->tree);
	query->n_nodes = pfs_relation_nodes(query->tree);
	slot = pfs_scan_slot_of(query->tree, query->top);
	pfs_scan_unlock(query->tree);
	return slot == PFS_NO_SLOT ? -ENOENT : 0;
}

/* With the side tables that it names, all as they are at one moment. */
static int prepare_text(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	struct pfs_connection *connection = query->connection;
	int error;

	do {
		PFS_TRY(pfs_sides_refresh(connection, query->tree));
		PFS_TRY(pfs_sql_prepare(connection->sql, query->text.text, query->text.len,
					problem));
		error = pfs_sides_fill(connection, query->tree);
	} while (error == -EAGAIN);
	return error;
}

static int prepare(struct pfs_query *query, const struct pfs_query_scope *scope, const char *sql,
		   size_t len, struct pfs_sql_problem *problem)
{
	struct pfs_queries *queries = query->queries;

	if (len > PFS_STATEMENT_MAX)
		return -E2BIG;
	if (!scope->sees_all) /* what others may see is not known here yet: nothing */
		return -EACCES;
	PFS_TRY(look_at_tree(query));
	PFS_TRY(pfs_times_replace(&query->text, sql, len));
	PFS_TRY(pfs_connection_get(&query->connection, queries));
	query->connection->plan_ids = 0;
	pfs_sql_set_up(query->connection->sql, query, scope->memory_limit, scope->may_change);
	return prepare_text(query, problem);
}

/* The tree changed: once more from the beginning, and this time it may not. */
static int prepare_again(struct pfs_query *query)
{
	pfs_sql_reset(query->connection->sql);
	let_go(query);
	query->again++;
	query->bound = false;
	query->path_known = false;
	return reopen_attrs(query);
}

/* ---- statements that change something: run here to their end ---- */

static int run(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	struct pfs_sql *sql = query->connection->sql;
	int error = pfs_sql_run(sql, problem);

	while (error == -EAGAIN && query->again < AGAIN_MAX) {
		PFS_TRY(prepare_again(query));
		error = pfs_sql_run(sql, problem);
	}
	let_go(query);
	return error == -EINTR && query->late ? -ETIMEDOUT : error;
}

static int change_tables(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	struct pfs_connection *connection = query->connection;
	int error;

	pfs_sides_hold(query->tree);
	error = prepare_text(query, problem); /* they may have changed up to now */
	if (!error)
		error = run(query, problem);
	if (!error)
		error = pfs_sides_keep(connection, query->tree, problem);
	if (!error && pfs_sql_effect(connection->sql) == PFS_SQL_CHANGES_ROWS)
		query->changes = pfs_sql_changes(connection->sql);
	pfs_sides_release(query->tree);
	return error;
}

/* What the statement asks for is known when it has run, and is then done in one piece. */
static int change_nodes(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	struct pfs_sql *sql = query->connection->sql;
	int error;

	for (;;) {
		pfs_change_set_clear(&query->set);
		error = pfs_sql_run(sql, problem);
		pfs_sql_rollback(sql); /* there is nothing in it */
		let_go(query);
		if (!error)
			error = pfs_nodes_change(query);
		if (error != -EAGAIN || query->again == AGAIN_MAX)
			break;
		PFS_TRY(prepare_again(query));
	}
	query->changes = query->set.n;
	if (error && *query->why)
		(void)snprintf(problem->text, sizeof(problem->text), "%s", query->why);
	return error == -EINTR && query->late ? -ETIMEDOUT : error;
}

static int change(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	switch (pfs_sql_effect(query->connection->sql)) {
	case PFS_SQL_READS:
		return 0;
	case PFS_SQL_CHANGES_SOURCE:
		query->ended = true;
		return change_nodes(query, problem);
	case PFS_SQL_CHANGES_ROWS:
	case PFS_SQL_CHANGES_TABLES:
		break;
	}
	query->ended = true;
	return change_tables(query, problem);
}

int pfs_query_start(struct pfs_query **out, struct pfs_queries *queries,
		    const struct pfs_query_scope *scope, const char *sql, size_t len,
		    struct pfs_query_error *error)
{
	struct pfs_sql_problem problem = {.offset = -1};
	struct pfs_query *query = calloc(1, sizeof(*query));
	int code;

	*out = NULL;
	if (!query)
		return -ENOMEM;
	query->queries = queries;
	query->tree = queries->tree;
	query->top = scope->ino;
	query->uid = scope->uid;
	query->gid = scope->gid;
	query->memory_limit = scope->memory_limit;
	set_deadline(query, scope->time_limit_ms);
	code = prepare(query, scope, sql, len, &problem);
	if (!code)
		code = change(query, &problem);
	if (code) {
		(void)pfs_query_complain(query, error, code, &problem);
		pfs_query_finish(query);
		return code;
	}
	*out = query;
	return 0;
}

void pfs_query_finish(struct pfs_query *query)
{
	if (!query)
		return;
	if (query->connection)
		pfs_sql_finish(query->connection->sql);
	let_go(query);
	close_attrs(query);
	free(query->attrs);
	free(query->attr_wanted);
	pfs_connection_put(query->queries, query->connection);
	pfs_plan_finish(query);
	pfs_edits_finish(&query->text);
	pfs_change_set_finish(&query->set);
	free(query->path);
	free(query);
}

void pfs_query_interrupt(struct pfs_query *query)
{
	query->stop = true;
	pfs_sql_interrupt(query->connection->sql);
}

size_t pfs_query_columns(const struct pfs_query *query)
{
	return pfs_sql_columns(query->connection->sql);
}

const char *pfs_query_column_name(const struct pfs_query *query, size_t column)
{
	return pfs_sql_column_name(query->connection->sql, column);
}

static int begin_again(struct pfs_query *query, struct pfs_query_error *error)
{
	int code = prepare_again(query);

	query->ended = code != 0;
	query->failure = code;
	return pfs_query_complain(query, error, code ? code : -EAGAIN, NULL);
}

int pfs_query_next(struct pfs_query *query, struct pfs_query_error *error)
{
	struct pfs_sql_problem problem = {.offset = -1};
	int got;

	if (query->ended)
		return query->failure ? pfs_query_complain(query, error, query->failure, NULL) : 0;
	got = query->stop ? -EINTR : pfs_sql_step(query->connection->sql, &problem);
	if (got == 1)
		return 1;
	if (got == -EAGAIN && query->again < AGAIN_MAX)
		return begin_again(query, error);
	if (got == -EINTR && query->late)
		got = -ETIMEDOUT;
	query->ended = true;
	query->failure = got;
	let_go(query);
	return got ? pfs_query_complain(query, error, got, &problem) : 0;
}

void pfs_query_value(const struct pfs_query *query, size_t column, struct pfs_query_value *out)
{
	struct pfs_sql_value value;

	pfs_sql_value(query->connection->sql, &value, column);
	*out = (struct pfs_query_value){.type = PFS_VALUE_NULL};
	switch (value.type) {
	case PFS_SQL_NULL:
		break;
	case PFS_SQL_INTEGER:
		out->type = PFS_VALUE_INT;
		out->integer = value.integer;
		break;
	case PFS_SQL_REAL:
		out->type = PFS_VALUE_REAL;
		out->real = value.real;
		break;
	case PFS_SQL_TEXT:
	case PFS_SQL_BLOB:
		out->type = value.type == PFS_SQL_TEXT ? PFS_VALUE_TEXT : PFS_VALUE_BLOB;
		out->bytes = value.bytes;
		out->size = value.size;
		break;
	}
}

uint64_t pfs_query_changes(const struct pfs_query *query)
{
	return query->changes;
}

uint64_t pfs_query_epoch(const struct pfs_query *query)
{
	return query->epoch;
}
