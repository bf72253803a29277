/* SPDX-License-Identifier: MIT */
/* Statements.  One that changes something is run to its end by pfs_query_start. */
#include "fs/query/parts/parts.h"
#include "fs/query/relational/relational.h"
#include "fs/query/pathindex.h"
#include "fs/query/sides.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "fs/image/imagefile.h"
#include "fs/query/times/timed.h"
#include "fs/nodes/relation.h"
#include "fs/tree/sides.h"
#include "meta/sql/sqlside.h"

#define NODES_ASSUMED	 100000 /* where their number is not the viewer's to know */
#define ATTEMPTS	 3 /* to plan a statement while side tables change */
/* runs anew of one that changes nodes, and finds afterwards that others changed them, too */
#define AGAIN_MAX 4

/* ---- statements ---- */

/* Whoever was refused memory may have been so because its time was over. */
static int cause_of(const struct pfs_query *query, int error)
{
	if (query->lost)
		return -ENOMEM;
	if (error != -EINTR && error != -ENOMEM)
		return error;
	return query->late ? -ETIMEDOUT : query->stop ? -EINTR : error;
}

/* What the statement is about must be there, and to be seen: whoever is in a directory that he was
 * let into past a closed one gets no answer, rather than an empty one. */
static int look_at_top(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	uint32_t slot;
	int error = 0;

	query->epoch = pfs_scan_lock(query->tree, __func__);
	query->n_nodes = query->is_limited ? NODES_ASSUMED : pfs_relation_nodes(query->tree);
	slot = pfs_scan_slot_of(query->tree, query->top);
	if (slot == PFS_NO_SLOT)
		error = -ENOENT;
	else
		error = pfs_query_look_around(query);
	if (!error && !pfs_visible_has(query->visible, query->tree, slot)) {
		error = -EACCES;
		(void)snprintf(problem->text, sizeof(problem->text),
			       "nodes are shown below directories that you may read and search "
			       "only, and not each one above this is");
	}
	pfs_scan_unlock(query->tree);
	return error;
}

static int look_at_tree(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	int error;

	if (query->is_limited)
		PFS_TRY(pfs_visible_make(query->tree, &query->viewer));
	error = look_at_top(query, problem);
	if (error != -EAGAIN)
		return error;
	query->frozen_wish =
		pfs_query_rights_wish(query); /* directories change faster than is followed */
	PFS_TRY(pfs_query_freeze(query));
	error = look_at_top(query, problem);
	pfs_query_thaw(query);
	return error;
}

static int take_connection(struct pfs_query *query)
{
	bool plain = pfs_patterns_are_plain(query->sql, query->len);
	struct pfs_attr_visibility attrs = {.shown = NULL};
	int error;

	do {
		free(attrs.shown);
		attrs.shown = NULL;
		if (query->is_limited)
			PFS_TRY(pfs_attr_visibility_find(query, &attrs));
		error = pfs_connection_get(&query->connection, query->queries, &attrs, plain,
					   query->is_limited ? &query->viewer : NULL);
	} while (error == -EAGAIN); /* an attribute of a new name came in between */
	free(attrs.shown);
	if (error)
		return error;
	query->connection->account = query->account;
	return pfs_query_enlist(query);
}

/* ---- plans ---- */

/* Returns true if SQLite needs the rows of side tables from the start. If the operators turn out to
 * have no answer, it gets them later. */
static bool needs_copies(const struct pfs_query *query)
{
#ifdef PFS_VERIFY
	return pfs_sql_effect(query->connection->sql) != PFS_SQL_CHANGES_ROWS;
#else
	return pfs_sql_effect(query->connection->sql) != PFS_SQL_CHANGES_ROWS &&
	       !pfs_relational_has_rows(query->relational);
#endif
}

static void set_terms(struct pfs_query *query, const struct pfs_query_scope *scope)
{
	const struct pfs_sql_terms terms = {query, query->account, scope->memory_limit,
					    scope->value_limit, scope->may_change};

	pfs_sql_set_up(query->connection->sql, &terms);
}

static bool changes_sides(const struct pfs_query *query)
{
	enum pfs_sql_effect effect = pfs_sql_effect(query->connection->sql);

	return effect == PFS_SQL_CHANGES_ROWS || effect == PFS_SQL_CHANGES_TABLES;
}

static int plan_once(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	PFS_TRY(pfs_query_prepare_text(query, problem));
	PFS_TRY(pfs_query_note_reads(query));
	if (!query->relational) {
		PFS_TRY(pfs_relational_plan(&query->relational, query));
		if (!changes_sides(query)) /* else they are planned when the tables stand still */
			PFS_TRY(pfs_parts_plan(&query->parts, query, query->relational));
	}
	query->is_planned = true;
	return needs_copies(query) ? pfs_sides_fill(query->connection, query->queries->tree) : 0;
}

/* Where side tables change all the time, changes wait after some attempts. */
static int plan(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	struct pfs_tree *tree = query->queries->tree;
	int error = -EAGAIN;

	for (unsigned attempt = 0; error == -EAGAIN; attempt++) {
		if (attempt && pfs_query_tick(query))
			return -EINTR;
		pfs_parts_free(PFS_TAKE(query->parts));
		pfs_relational_free(PFS_TAKE(query->relational));
		if (attempt >= ATTEMPTS)
			pfs_sides_hold(tree);
		error = plan_once(query, problem);
		if (attempt >= ATTEMPTS)
			pfs_sides_release(tree);
	}
	return error;
}

static int prepare(struct pfs_query *query, const struct pfs_query_scope *scope, const char *sql,
		   size_t len, struct pfs_sql_problem *problem)
{
	if (len > PFS_STATEMENT_MAX)
		return -E2BIG;
	PFS_TRY(pfs_account_open(&query->account, scope->memory_limit, pfs_query_tick, query));
	PFS_TRY(look_at_tree(query, problem));
	query->sql = sql;
	query->len = len;
	PFS_TRY(take_connection(query));
	query->connection->plan_ids = 0;
	set_terms(query, scope);
	PFS_TRY(pfs_path_index_statement(query, &query->is_index, scope->may_change, problem));
	query->ended = query->is_index;
	if (query->is_index)
		return 0;
	return plan(query, problem);
}

/* The tree changed: once more from the beginning, and this time it does not, for it is frozen. */
static int prepare_again(struct pfs_query *query)
{
	pfs_relational_restart(query->relational);
	pfs_sql_reset(query->connection->sql);
	pfs_parts_forget(query->parts);
	pfs_query_let_go(query);
	query->bound = false;
	query->path_known = false;
	if (query->frozen) {
		pfs_query_close_attrs(query);
		pfs_query_thaw(query);
	}
	PFS_TRY(pfs_query_freeze(query));
	return pfs_query_reopen_attrs(query);
}

/* ---- statements that change something: run here to their end ---- */

/* Runs the statement's parts, and then itself. */
static int run_once(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	if (query->parts)
		PFS_TRY(pfs_parts_run(query->parts, problem));
	return pfs_sql_run(query->connection->sql, problem);
}

static int run(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	int error = run_once(query, problem);

	while (error == -EAGAIN && !query->frozen) {
		PFS_TRY(prepare_again(query));
		error = run_once(query, problem);
	}
	pfs_query_let_go(query);
	return error;
}

/* Has SQLite make the change in the connection's copy. */
static int change_copy(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	struct pfs_connection *connection = query->connection;
	struct pfs_tree *tree = query->queries->tree;

	PFS_TRY(pfs_parts_plan(&query->parts, query, query->relational));
	PFS_TRY(pfs_sides_fill(connection, tree));
	PFS_TRY(run(query, problem));
	PFS_TRY(pfs_sides_keep(query, problem));
	if (pfs_sql_effect(connection->sql) == PFS_SQL_CHANGES_ROWS)
		query->changes = pfs_sql_changes(connection->sql);
	return 0;
}

static int change_tables(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	struct pfs_connection *connection = query->connection;
	struct pfs_tree *tree =
		query->queries->tree; /* the statement's own may get frozen while it runs */
	bool is_done = false;
	int error = 0;

	pfs_sides_hold(tree);
	if (pfs_sides_are_known(connection, tree)) {
		error = pfs_sides_refresh(connection, tree);
	} else {
		pfs_relational_free(PFS_TAKE(query->relational));
		error = plan_once(query, problem);
	}
	if (!error)
		error = pfs_path_index_leaves_name(tree, &is_done, query->sql, query->len, problem);
	if (!error && is_done) {
		pfs_sides_release(tree);
		return 0;
	}
	if (!error) {
		error = pfs_sides_change(query, problem);
		query->is_by_operators = !error;
	}
	if (error == -EOPNOTSUPP)
		error = change_copy(query, problem);
	pfs_sides_release(tree);
	return error;
}

/* What the statement asks for is known when it has run, and is then done in one piece: if the nodes
 * are still as it found them, or others change them as fast as it does. */
static int change_nodes(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	struct pfs_sql *sql = query->connection->sql;
	int error = -EAGAIN;

	for (unsigned again = 0; error == -EAGAIN && again <= AGAIN_MAX; again++) {
		if (again)
			PFS_TRY(prepare_again(query));
		pfs_change_set_clear(&query->set);
		error = run_once(query, problem);
		pfs_sql_rollback(sql); /* there is nothing in it */
		pfs_query_let_go(query);
		if (!error && pfs_query_is_lost(query))
			error = -ENOMEM;
		if (!error)
			error = pfs_nodes_change(query, again == AGAIN_MAX);
	}
	query->changes = query->set.n;
	return error;
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
	query->now = pfs_time_now();
	query->top = scope->ino;
	query->uid = scope->uid;
	query->gid = scope->gid;
	query->is_limited = !scope->sees_all;
	query->explains = scope->explains;
	query->viewer = (struct pfs_viewer){scope->uid, scope->gid, scope->groups, scope->n_groups};
	query->gone = scope->gone;
	query->gone_arg = scope->gone_arg;
	query->watch = (struct pfs_scan_watch){&query->stop, pfs_query_look, query};
	if (scope->time_limit_ms)
		query->deadline_ns =
			pfs_clock_ns(CLOCK_MONOTONIC_COARSE) + scope->time_limit_ms * PFS_NS_PER_MS;
	code = prepare(query, scope, sql, len, &problem);
	if (!code && !query->ended)
		code = change(query, &problem);
	code = cause_of(query, code);
	if (code) {
		query->is_planned = false;
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
	pfs_query_strike(query);
	pfs_plan_cache_give(query);
	pfs_relational_free(query->relational);
	if (query->connection)
		pfs_sql_finish(query->connection->sql);
	pfs_parts_free(query->parts);
	pfs_query_let_go(query);
	pfs_query_close_attrs(query);
	free(query->attrs);
	free(query->attr_wanted);
	if (query->connection &&
	    pfs_account_refusal(query->account)) /* it may not be what it should be after that */
		query->connection->spent = true;
	pfs_connection_put(query->queries, query->connection);
	pfs_plan_finish(query);
	pfs_query_forget_titles(query);
	pfs_edits_finish(&query->text);
	pfs_change_set_finish(&query->set);
	pfs_account_discharge(query->account, query->set_charged);
	pfs_visible_unref(query->visible);
	pfs_query_thaw(query);
	free(query->frozen_attrs);
	free(query->path);
	pfs_account_close(query->account);
	free(query);
}

size_t pfs_query_columns(const struct pfs_query *query)
{
	return pfs_sql_columns(query->connection->sql);
}

/* -EAGAIN tells callers that the rows begin anew, which happens once. */
static int final(int error)
{
	return error == -EAGAIN ? -EBUSY : error;
}

static int begin_again(struct pfs_query *query)
{
	query->failure = final(prepare_again(query));
	query->ended = query->failure != 0;
	return query->failure;
}

/* The operators had no answer, so that SQLite needs the rows of side tables: as they are now, if
 * they have changed. */
static int fill_copies(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	struct pfs_connection *connection = query->connection;
	struct pfs_tree *tree = query->queries->tree;
	int error = pfs_sides_fill(connection, tree);

	if (error != -EAGAIN)
		return error;
	pfs_sides_hold(tree);
	error = pfs_sides_refresh(connection, tree);
	if (!error)
		error = pfs_sides_declare(query, query->text.text, query->text.len);
	connection->plan_ids = 0;
	if (!error)
		error = pfs_sql_prepare(connection->sql, query->text.text, query->text.len,
					problem);
	if (!error)
		error = pfs_sides_fill(connection, tree);
	pfs_sides_release(tree);
	return error;
}

/* Fetches the next row, from the operators or from SQLite. */
static int step(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	int got;

	if (query->stop)
		return -EINTR;
	if (pfs_relational_has_rows(query->relational)) {
		got = pfs_relational_next(query->relational);
		if (got != -EOPNOTSUPP)
			return got;
		PFS_TRY(fill_copies(query, problem));
	}
	if (query->parts)
		PFS_TRY(pfs_parts_run(query->parts, problem));
	return pfs_sql_step(query->connection->sql, problem);
}

/* What was made of an image that is damaged is nothing. */
static int confirm(const struct pfs_query *query, int got)
{
	int error = got < 0 ? 0 : pfs_imagefile_failure(query->tree);

	return error ? -EUCLEAN : got;
}

/* Neither a row nor parts: the end, a restart, or an error. */
static int stop_at(struct pfs_query *query, int got, const struct pfs_sql_problem *problem,
		   struct pfs_query_error *error)
{
	if (got == -EAGAIN && !query->frozen) {
		got = begin_again(query);
		return pfs_query_complain(query, error, got ? got : -EAGAIN, NULL);
	}
	(void)pfs_query_is_lost(query);
	got = final(cause_of(query, got));
	query->ended = true;
	query->failure = got;
	pfs_query_let_go(query);
	return got ? pfs_query_complain(query, error, got, problem) : 0;
}

int pfs_query_next(struct pfs_query *query, struct pfs_query_error *error)
{
	struct pfs_sql_problem problem; /* not cleared for each row */
	int got;

	if (pfs_portion_walk_on(&query->walk) && !query->stop)
		return 1;
	problem.offset = -1;
	problem.text[0] = 0;
	if (query->ended)
		return query->failure ? pfs_query_complain(query, error, query->failure, NULL) : 0;
	got = confirm(query, step(query, &problem));
	return got == 1 ? 1 : stop_at(query, got, &problem, error);
}

int pfs_query_parts(struct pfs_query *query, size_t *n_parts, pfs_portion_fn fn, void *arg,
		    struct pfs_query_error *error)
{
	static const struct pfs_sql_problem no_words = {.offset = -1};
	int got = query->ended ? 0
			       : confirm(query,
					 pfs_relational_parts(query->relational, n_parts, fn, arg));

	return got < 0 ? stop_at(query, got, &no_words, error) : got;
}

void pfs_query_value(const struct pfs_query *query, size_t column, struct pfs_sql_value *out)
{
	if (query->walk.portion.n)
		pfs_portion_value(&query->walk.portion, query->walk.row, column, out);
	else if (pfs_relational_has_rows(query->relational))
		pfs_relational_value(query->relational, column, out);
	else
		pfs_sql_value(query->connection->sql, out, column);
}

/* The rows are there, or the tree that they come from is frozen, or will be if it changes, or none
 * of it has been seen. */
bool pfs_query_is_settled(const struct pfs_query *query)
{
	return query->ended || query->frozen || query->still || !query->bound ||
	       pfs_relational_is_answered(query->relational);
}

bool pfs_query_settle(struct pfs_query *query)
{
	return pfs_query_is_settled(query) || pfs_relational_settle(query->relational) == 0;
}

int pfs_query_begin_anew(struct pfs_query *query, struct pfs_query_error *error)
{
	int code;

	pfs_query_let_go(query);
	if (pfs_query_try_freeze(query))
		return -EOPNOTSUPP;
	code = begin_again(query);
	return code ? pfs_query_complain(query, error, code, NULL) : 0;
}

void pfs_query_rests(struct pfs_query *query)
{
	int error;

	pfs_sql_pause(query->connection->sql);
	if (query->ended || !query->still || !pfs_relational_is_between(query->relational))
		return;
	error = pfs_relational_go_on(query->relational);
	if (!error)
		return;
	query->ended = true;
	query->failure = cause_of(query, error);
}

void pfs_query_rested(struct pfs_query *query, uint64_t ns)
{
	if (query->deadline_ns)
		query->deadline_ns += (int64_t)ns;
}

uint64_t pfs_query_changes(const struct pfs_query *query)
{
	return query->changes;
}

uint64_t pfs_query_epoch(const struct pfs_query *query)
{
	return query->epoch;
}
