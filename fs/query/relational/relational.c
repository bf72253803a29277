/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/relational.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "fs/query/relational/choice.h"
#include "fs/query/relational/cost.h"
#include "fs/query/relational/cursor.h"
#include "fs/query/relational/describe.h"
#include "fs/query/relational/kept_rates.h"
#include "fs/query/relational/side_lookup.h"
#include "fs/query/relational/rowlist.h"
#include "fs/query/relational/run.h"
#include "fs/query/relational/verify.h"

#define BOUND_BYTES ((size_t)16 << 20) /* of a statement's plan */
#define ATTEMPTS    4 /* to find the tree as it was when the columns were made ready */

struct pfs_relational {
	struct pfs_query *query;
	struct pfs_arena arena;	   /* what is bound, and */
	struct pfs_arena ran;	   /* what running it needs */
	struct pfs_parsed *parsed; /* whose texts the block points to */
	struct pfs_block *bound;   /* NULL: it is not */
	struct pfs_block *block;   /* the same; NULL: SQLite runs it, */
	const char *why;	   /* as this is not taken, or though it is bound */
	bool failed;		   /* the operators had no answer */
	bool has_run;
	struct pfs_run run;
	struct pfs_rates rates; /* of which the cost is */
	struct pfs_cost cost;
	struct pfs_side_weighed weighed;
	struct pfs_run_context context;
	struct pfs_answer_rows rows;
	struct pfs_row_list list;      /* of a part that is rows as they are: those */
	uint64_t at;		       /* rows read; the row is the one before */
	struct pfs_row_cursor *cursor; /* of rows as they are; NULL: not begun */
	bool was_settled;
};

/* ---- plans ---- */

static int bind(struct pfs_relational *relational, const char *sql, size_t len,
		struct pfs_bind_part *part)
{
	struct pfs_query *query = relational->query;
	struct pfs_not_taken refusal = {.why = NULL};
	const struct pfs_statement *statement;
	int error = pfs_parse(&relational->parsed, sql, len, &refusal);

	if (error) {
		relational->why = refusal.why;
		return error;
	}
	statement = pfs_parsed_statement(relational->parsed);
	if (statement->kind != PFS_STATEMENT_SELECT) {
		relational->why = "a statement that changes something";
		error = -ENOTSUP;
	} else {
		error = pfs_bind(&relational->bound, &relational->why, query, &relational->arena,
				 statement->select, part);
	}
	return error;
}

/* Decides, by what there is now, whether the operators run what is bound. */
static void judge(struct pfs_relational *relational, enum pfs_block_use use)
{
	struct pfs_block *bound = relational->bound;

	(void)pfs_side_weigh(bound, PFS_SQLITE_READS, &relational->weighed);
	relational->why = pfs_block_why_not(bound, relational->query, use);
	relational->block = relational->why ? NULL : bound;
	if (relational->why)
		pfs_block_finish(bound, relational->query->queries);
}

/* Finds out where it will run, which the plan tells. */
static int place(struct pfs_relational *relational)
{
	struct pfs_placement *placement;

	PFS_TRY(pfs_queries_placement(relational->query->queries, &placement));
	pfs_kept_rates_get(relational->query->queries->rates, &relational->rates);
	relational->cost = pfs_cost_of(relational->block, &relational->rates,
				       relational->query->n_nodes, placement->processors);
	relational->run.operators = placement->operators;
	relational->run.on =
		relational->query->is_limited || /* what is seen is on no device, nor are totals */
				relational->block->rows || pfs_block_has_totals(relational->block)
			? PFS_ENGINE_HOST
			: pfs_placement_of(placement, &relational->cost);
	return 0;
}

static int plan(struct pfs_relational *relational, struct pfs_bind_part *part)
{
	struct pfs_query *query = relational->query;
	const char *text = part->text ? part->text : query->text.text;
	int error;

	error = bind(relational, text, part->text ? part->len : query->text.len, part);
	if (!error)
		judge(relational, !part->text	    ? PFS_BLOCK_WHOLE
				  : part->takes_rows ? PFS_BLOCK_CHANGE_PART
						     : PFS_BLOCK_PART);
	else if (!relational->why)
		relational->why = "more than the memory of a plan";
	return relational->block ? place(relational) : 0;
}

static void set_query(struct pfs_relational *relational, struct pfs_query *query)
{
	relational->query = query;
	pfs_run_context_begin(&relational->context, &relational->run, query, &relational->ran);
}

int pfs_relational_plan_part(struct pfs_relational **out, struct pfs_query *query,
			     struct pfs_bind_part *part)
{
	struct pfs_relational *relational = calloc(1, sizeof(*relational));
	int error;

	*out = NULL;
	if (!relational)
		return -ENOMEM;
	relational->arena.limit = relational->ran.limit = BOUND_BYTES;
	set_query(relational, query);
	error = plan(relational, part);
	if (error)
		pfs_relational_free(relational);
	else
		*out = relational;
	return error;
}

int pfs_relational_plan(struct pfs_relational **out, struct pfs_query *query)
{
	return pfs_relational_plan_part(out, query, &(struct pfs_bind_part){.text = NULL});
}

void pfs_relational_rest(struct pfs_relational *relational)
{
	if (!relational->query) /* it does so already */
		return;
	pfs_row_cursor_close(PFS_TAKE(relational->cursor));
	pfs_relational_forget(relational);
	pfs_dictionary_finish(&relational->context.owners[0].dictionary);
	pfs_dictionary_finish(&relational->context.owners[1].dictionary);
	pfs_block_finish(relational->bound, relational->query->queries);
	pfs_arena_finish(&relational->ran);
	relational->block = NULL;
	relational->failed = relational->has_run = relational->was_settled = false;
	relational->at = 0;
	relational->query = NULL;
}

bool pfs_relational_resume(struct pfs_relational *relational, struct pfs_query *query)
{
	int error = 0;

	set_query(relational, query);
	if (relational->bound)
		error = pfs_block_take_sides(relational->bound, query);
	if (!error && relational->bound)
		judge(relational, PFS_BLOCK_WHOLE);
	if (!error && relational->block)
		error = place(relational);
	if (error)
		pfs_relational_rest(relational);
	return !error;
}

bool pfs_relational_is_bound(const struct pfs_relational *relational)
{
	return relational->bound != NULL;
}

size_t pfs_relational_memory(const struct pfs_relational *relational)
{
	return sizeof(*relational) + relational->arena.total +
	       pfs_parsed_memory(relational->parsed);
}

void pfs_relational_free(struct pfs_relational *relational)
{
	if (!relational)
		return;
	pfs_relational_rest(relational);
	pfs_parsed_free(relational->parsed);
	pfs_arena_finish(&relational->arena);
	free(relational);
}

bool pfs_relational_is_planned(const struct pfs_relational *relational)
{
	return relational && relational->block &&
	       (!relational->failed || relational->query->is_limited);
}

bool pfs_relational_has_rows(const struct pfs_relational *relational)
{
	return relational && relational->block && !relational->failed;
}

bool pfs_relational_is_answered(const struct pfs_relational *relational)
{
	return pfs_relational_has_rows(relational) && relational->has_run;
}

const struct pfs_parsed *pfs_relational_not_bound(const struct pfs_relational *relational)
{
	return relational->bound ? NULL : relational->parsed;
}

bool pfs_relational_gives_rows(const struct pfs_relational *relational)
{
	return pfs_relational_has_rows(relational) && relational->block->rows;
}

const struct pfs_block *pfs_relational_block(const struct pfs_relational *relational)
{
	return relational->block;
}

/* ---- values ---- */

void pfs_relational_value(const struct pfs_relational *relational, size_t column,
			  struct pfs_sql_value *out)
{
	pfs_answer_value(&relational->rows, relational->at - 1, column, out);
}

void pfs_relational_value_at(const struct pfs_relational *relational, uint64_t row, size_t column,
			     struct pfs_sql_value *out)
{
	if (relational->block->rows)
		pfs_row_list_value(&relational->list, row, column, out);
	else
		pfs_answer_value(&relational->rows, row, column, out);
}

uint64_t pfs_relational_rows(const struct pfs_relational *relational)
{
	return relational->block->rows ? relational->list.n : relational->rows.n;
}

/* ---- running ---- */

void pfs_relational_forget(struct pfs_relational *relational)
{
	pfs_answer_rows_free(&relational->rows, &relational->run);
	pfs_row_list_free(&relational->list, relational->query->account);
}

static int run_block(struct pfs_relational *relational)
{
	pfs_relational_forget(relational);
	relational->context.owners[0].codes = relational->context.owners[1].codes = NULL;
	relational->context.few.by = NULL;
	return pfs_block_run(&relational->rows, relational->block, &relational->context);
}

/* Rows as they are: their cursor holds the tree as it goes. */
static int read_rows(struct pfs_relational *relational)
{
	pfs_relational_forget(relational);
	return pfs_row_list_read(&relational->list, relational->block, &relational->context);
}

static int run_once(struct pfs_relational *const *list, size_t n)
{
	struct pfs_query *query = list[0]->query;
	int error = 0;

	for (size_t i = 0; i < n; i++) {
		list[i]->context.is_slower = false;
		PFS_TRY(pfs_inputs_prepare(list[i]->block, &list[i]->context));
	}
	query->bound = false; /* nothing of it has been seen */
	PFS_TRY(pfs_query_hold(query));
	for (size_t i = 0; i < n && !error; i++)
		error = list[i]->block->rows ? 0 : run_block(list[i]);
	pfs_query_release(query);
	for (size_t i = 0; i < n && !error; i++)
		error = list[i]->block->rows ? read_rows(list[i]) : 0;
	return error;
}

/* A device that failed took with it what lay there; of a frozen tree it has no copies. */
static void go_to_host(struct pfs_relational *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		list[i]->run.on = PFS_ENGINE_HOST;
}

static int run_until_it_stands(struct pfs_relational *const *list, size_t n)
{
	struct pfs_query *query = list[0]->query;
	int error;

	if (query->frozen)
		go_to_host(list, n);
	error = run_once(list, n);
	for (unsigned attempt = 1; (error == -EAGAIN || error == -EIO) && attempt < ATTEMPTS;
	     attempt++) {
		go_to_host(list, n);
		if (error == -EAGAIN && !query->frozen)
			PFS_TRY(pfs_query_freeze(query));
		error = run_once(list, n);
	}
	return error;
}

int pfs_relational_run(struct pfs_relational *const *list, size_t n)
{
	uint64_t start = pfs_now_ns(), took;
	struct pfs_placement *placement;

	for (size_t i = 0; i < n; i++)
		list[i]->context.thread = pthread_self();
	PFS_TRY(pfs_queries_placement(list[0]->query->queries, &placement));
	PFS_TRY(run_until_it_stands(list, n));
	took = pfs_now_ns() - start;
	(void)atomic_fetch_add(&list[0]->query->queries->operators_ns, took);
	for (size_t i = 0; i < n; i++) {
		if (list[i]->run.on == PFS_ENGINE_HOST)
			pfs_placement_took(placement, &list[i]->cost, took / n);
	}
	return 0;
}

void pfs_relational_restart(struct pfs_relational *relational)
{
	if (!relational)
		return;
	pfs_row_cursor_close(PFS_TAKE(relational->cursor));
	relational->context.is_slower = false;
	relational->context.owners[0].codes = relational->context.owners[1].codes =
		NULL; /* of the tree that it read */
}

static int fail(struct pfs_relational *relational, int error)
{
	relational->failed = true;
	relational->why = pfs_run_why_not(&relational->context, error);
	return -EOPNOTSUPP;
}

int pfs_relational_settle(struct pfs_relational *relational)
{
	struct pfs_query *query;

	if (!pfs_relational_gives_rows(relational) || !relational->cursor ||
	    relational->was_settled)
		return -EOPNOTSUPP;
	query = relational->query;
	relational->context.thread = pthread_self();
	relational->was_settled = true; /* it is tried once */
	PFS_TRY(pfs_row_cursor_part(relational->cursor));
	PFS_TRY(pfs_query_begin_freeze(query));
	if (pfs_frozen_epoch(query->still) == query->epoch)
		return 0;
	pfs_query_thaw(query);
	return -EAGAIN; /* as the next hold says, and the statement begins again */
}

int pfs_relational_go_on(struct pfs_relational *relational)
{
	struct pfs_query *query = relational->query;
	int error = pfs_query_freeze(query);

	query->bound = false; /* what its viewer sees is found anew */
	query->path_known = false;
	if (!error)
		error = pfs_query_reopen_attrs(query);
	if (!error)
		error = pfs_row_cursor_go_on(relational->cursor);
	return error == -EAGAIN ? -EIO : error;
}

bool pfs_relational_is_between(const struct pfs_relational *relational)
{
	return pfs_row_cursor_is_between(relational->cursor);
}

/* The tree has changed, and the statement can go on over what it was. */
static bool has_changed(const struct pfs_relational *relational, int got)
{
	return got == -EAGAIN && relational->query->still;
}

static int next_as_it_is(struct pfs_relational *relational)
{
	int got;

	relational->context.thread = pthread_self();
	if (!relational->cursor) {
		pfs_relational_verify_rows(relational->query, relational->block,
					   &relational->context);
		PFS_TRY(pfs_row_cursor_open(&relational->cursor, relational->block,
					    &relational->context, &relational->query->walk));
	}
	got = pfs_row_cursor_next(relational->cursor);
	if (has_changed(relational, got)) {
		PFS_TRY(pfs_relational_go_on(relational));
		got = pfs_row_cursor_next(relational->cursor);
	}
	if (got >= 0 || got == -EINTR || got == -EAGAIN || relational->query->lost ||
	    pfs_row_cursor_has_begun(relational->cursor))
		return got;
	pfs_relational_restart(relational);
	pfs_plan_finish(relational->query); /* SQLite's scans are the statement's */
	return fail(relational, got);
}

int pfs_relational_parts(struct pfs_relational *relational, size_t *n_parts, pfs_portion_fn fn,
			 void *arg)
{
	int got;

	*n_parts = 0;
	if (!relational || !relational->cursor || !pfs_row_cursor_has_begun(relational->cursor))
		return 0;
	relational->context.thread = pthread_self();
	got = pfs_row_cursor_parts(relational->cursor, n_parts, fn, arg);
	if (!has_changed(relational, got))
		return got;
	PFS_TRY(pfs_relational_go_on(relational));
	return pfs_row_cursor_parts(relational->cursor, n_parts, fn, arg);
}

int pfs_relational_next(struct pfs_relational *relational)
{
	if (relational->block->rows)
		return next_as_it_is(relational);
	if (!relational->has_run) {
		int error = pfs_relational_run(&relational, 1);

		relational->has_run = true;
		if (error == -EINTR || (error && relational->query->lost))
			return error;
		if (error)
			return fail(relational, error);
		pfs_relational_verify(relational->query, relational->block, relational->rows.n,
				      pfs_answer_value, &relational->rows);
	}
	if (relational->at == relational->rows.n)
		return 0;
	if (relational->at % 1024 == 0 && pfs_query_tick(relational->query))
		return -EINTR;
	relational->at++;
	return 1;
}

/* ---- what is said of it ---- */

void pfs_relational_not_changed(struct pfs_relational *relational, const char *why)
{
	if (relational)
		relational->why = why;
}

static void describe_index(const struct pfs_relational *relational, FILE *out)
{
	(void)fprintf(
		out,
		"\nindex or scan: %.3f ms by an index of the table, %.3f ms by the operators; chosen: the %s",
		(double)relational->weighed.index_ns / 1e6,
		(double)relational->weighed.operators_ns / 1e6,
		pfs_relational_is_planned(relational) ? "operators" : "index");
}

void pfs_relational_describe(const struct pfs_relational *relational, FILE *out)
{
	if (pfs_relational_is_planned(relational)) {
		pfs_describe_select(out,
				    relational->query->is_limited
					    ? ", or by SQLite if they have no answer"
				    : relational->run.on == PFS_ENGINE_HOST ? " on the host"
									    : " on the device",
				    pfs_parsed_text(relational->parsed),
				    pfs_parsed_statement(relational->parsed)->select);
		if (!relational->query->is_limited)
			pfs_cost_describe(&relational->cost, &relational->rates, out,
					  pfs_operators_has_device(relational->run.operators),
					  relational->run.on == PFS_ENGINE_HOST);
		if (!relational->query->is_limited)
			pfs_cost_describe_few(&relational->context.few, out);
	} else {
		(void)fprintf(out, "run by SQLite over the columns of the image, for it has %s",
			      relational->why);
	}
	if (relational->weighed.is_index && !relational->query->is_limited)
		describe_index(relational, out);
	(void)fputc('\n', out);
}
