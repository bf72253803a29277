/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/cursor_impl.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/cleanup.h"

#define FIRST_PIECE ((uint64_t)128) /* rows of the table that are looked at first, */
#define PIECE_GROWS 8	  /* how many times as many next, */
#define PIECE_NS    UINT64_C(2000000) /* and how long a piece should take: patterns may be slow at each row */
#define STEPS	    UINT64_C(4000000) /* of patterns, in one hold of the tree: some milliseconds */
#define TRIED_ROWS  ((uint64_t)4096) /* before a scan looks for the few rows that a short answer has */
#define FIRST_ROWS  32	  /* gathered first: a LIMIT, or who asks, may want no more */
#define ROWS_MAX    PFS_ROW_PART /* gathered at once */

int pfs_row_cursor_open(struct pfs_row_cursor **out, const struct pfs_block *block,
			struct pfs_run_context *context, struct pfs_portion_walk *walk)
{
	struct pfs_row_cursor *cursor = malloc(sizeof(*cursor));

	*out = cursor;
	if (!cursor)
		return -ENOMEM;
	/* the rest of what is pushed is large, and not looked at */
	memset(cursor, 0, offsetof(struct pfs_row_cursor, pushed));
	cursor->pushed.n = cursor->pushed.n_text = 0;
	memset(&cursor->ordered, 0, sizeof(*cursor) - offsetof(struct pfs_row_cursor, ordered));
	cursor->query = context->query;
	cursor->block = block;
	cursor->plan = block->rows;
	cursor->context = context;
	cursor->walk = walk;
	*walk = (struct pfs_portion_walk){.row = 0};
	cursor->skip = block->offset;
	cursor->left = block->limit;
	cursor->piece = FIRST_PIECE;
	cursor->batch = FIRST_ROWS;
	cursor->wave = PFS_ROW_PART;
	cursor->wave_max = pfs_row_cursor_largest_wave();
	(void)pthread_mutex_init(&cursor->lock, NULL);
	return 0;
}

void pfs_row_cursor_close(struct pfs_row_cursor *cursor)
{
	if (!cursor)
		return;
	pfs_row_cursor_close_hands(cursor);
	cursor->walk->portion.n = 0;
	pfs_gathered_close(cursor->gather);
	pfs_ordered_close(cursor->ordered);
	pfs_slots_finish(&cursor->within);
	pfs_pushed_finish(&cursor->pushed);
	pfs_rows_free(cursor->context->run, cursor->found);
	if (cursor->is_begun)
		pfs_running_end(&cursor->running);
	pfs_account_discharge(cursor->query->account,
			      cursor->charged + cursor->capacity * sizeof(*cursor->slots));
	free(cursor->slots);
	(void)pthread_mutex_destroy(&cursor->lock);
	free(cursor);
}

/* ---- slots ---- */

static int charge(struct pfs_row_cursor *cursor, size_t bytes)
{
	cursor->charged += bytes;
	return pfs_account_charge(cursor->query->account, (int64_t)bytes);
}

static int make_room(struct pfs_row_cursor *cursor, size_t n)
{
	size_t capacity = PFS_MAX(n, cursor->capacity + cursor->capacity / 2);
	uint32_t *slots;

	if (n <= cursor->capacity)
		return 0;
	if ((capacity - cursor->capacity) * sizeof(*slots) >
	    pfs_account_left(cursor->query->account))
		return -ENOMEM;
	slots = realloc(cursor->slots, capacity * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	cursor->slots = slots;
	n = capacity - cursor->capacity;
	cursor->capacity = capacity;
	return pfs_account_charge(cursor->query->account, (int64_t)(n * sizeof(*slots)));
}

static int list_rows(struct pfs_row_cursor *cursor, struct pfs_rows *rows)
{
	const struct pfs_run *run = cursor->context->run;
	uint64_t n, next = 0;

	PFS_TRY(pfs_rows_here(run, rows));
	PFS_TRY(pfs_rows_count(run, &n, rows));
	if (!n)
		return 0;
	PFS_TRY(make_room(cursor, cursor->n + n));
	cursor->n += pfs_rows_next(rows, &next, cursor->slots + cursor->n, n);
	return 0;
}

/* Rows that may be looked at while the tree is held: at each of a name's places a pattern may go on
 * to its end. */
static uint64_t largest_piece(const struct pfs_row_cursor *cursor)
{
	uint64_t most = pfs_running_piece(&cursor->running), bytes = 0;

	for (size_t i = 0; i < cursor->program.n; i++) {
		const struct pfs_step *step = &cursor->program.steps[i];

		if (step->op == PFS_OP_LIKE || step->op == PFS_OP_GLOB)
			bytes += step->constant.len;
	}
	if (!bytes || cursor->query->frozen)
		return most;
	return PFS_MIN(most, PFS_MAX(STEPS / (NAME_MAX * bytes), (uint64_t)1));
}

static uint64_t next_piece(uint64_t piece, uint64_t took_ns)
{
	if (took_ns > PIECE_NS)
		return PFS_MAX(piece * PIECE_NS / took_ns, FIRST_PIECE);
	return PFS_MIN(piece * PIECE_GROWS, PFS_PIECE_ROWS);
}

/* Adds the next piece's rows to the slots. */
static int select_piece(struct pfs_row_cursor *cursor)
{
	const struct pfs_run *run = cursor->context->run;
	const struct pfs_table *table = &cursor->running.tables[0];
	uint64_t most = largest_piece(cursor);
	struct pfs_source source = {
		.table = table, .rows = cursor->found, .from = cursor->next_row};
	uint64_t started = pfs_now_ns();
	struct pfs_rows *rows;
	int error;

	source.to = PFS_MIN(source.from + PFS_MIN(cursor->piece, most), (uint64_t)table->n_rows);
	if (source.from == source.to) {
		cursor->is_done = true;
		return 0;
	}
	error = pfs_select(run, &rows, &source, cursor->program.n ? &cursor->program : NULL);
	if (!error) {
		error = list_rows(cursor, rows);
		pfs_rows_free(run, rows);
	}
	if (error == -ENOMEM && cursor->piece > FIRST_PIECE) {
		cursor->piece = FIRST_PIECE;
		return 0;
	}
	PFS_TRY(error);
	cursor->next_row = source.to;
	cursor->piece = next_piece(cursor->piece, pfs_now_ns() - started);
	return 0;
}

static int next_ordered(struct pfs_row_cursor *cursor)
{
	cursor->n = PFS_MIN(cursor->batch, ROWS_MAX);
	if (cursor->given)
		cursor->n = cursor->wave_max;
	PFS_TRY(make_room(cursor, cursor->n));
	PFS_TRY(pfs_ordered_next(cursor->ordered, cursor->slots, &cursor->n));
	cursor->is_done = !cursor->n;
	return 0;
}

/* OFFSET and LIMIT. */
static void cut(struct pfs_row_cursor *cursor)
{
	size_t skipped = (size_t)PFS_MIN(cursor->skip, (uint64_t)(cursor->n - cursor->at));

	cursor->skip -= skipped;
	cursor->at += skipped;
	cursor->n = (size_t)PFS_MIN(cursor->left, (uint64_t)(cursor->n - cursor->at)) + cursor->at;
	cursor->left -= cursor->n - cursor->at;
	cursor->is_done |= !cursor->left;
	pfs_plan_seen(cursor->query, 0, cursor->n - cursor->at);
}

/* The operators select, and not a scan alone. */
static bool selects(const struct pfs_row_cursor *cursor)
{
	return cursor->plan->n_rest && (!cursor->plan->is_short || cursor->is_trying);
}

/* They are the piece, without those that have been tried. */
static int take_slots(struct pfs_row_cursor *cursor, const struct pfs_slots *slots)
{
	pfs_account_discharge(cursor->query->account, cursor->capacity * sizeof(*cursor->slots));
	free(cursor->slots);
	cursor->slots = slots->slot;
	cursor->n = cursor->capacity = slots->n;
	for (cursor->at = 0;
	     cursor->at < cursor->n && cursor->slots[cursor->at] < cursor->next_row;)
		cursor->at++;
	cursor->is_done = true;
	cut(cursor);
	return pfs_account_charge(cursor->query->account,
				  (int64_t)(slots->n * sizeof(*slots->slot)));
}

/* What a scan is asked is found whole; where nothing else is, its slots are the piece. */
static int scan(struct pfs_row_cursor *cursor)
{
	struct pfs_query *query = cursor->query;
	const struct pfs_run *run = cursor->context->run;
	struct pfs_slots slots = {.slot = NULL};
	int error;

	if (cursor->pushed.nothing) {
		cursor->is_done = true;
		return 0;
	}
	PFS_TRY(pfs_scan_select(query->tree, &slots, cursor->pushed.predicates, cursor->pushed.n,
				NULL, &query->watch));
	if (!cursor->next_row)
		pfs_plan_record(query, 0, &cursor->pushed, slots.n, NULL);
	if (!selects(cursor))
		return take_slots(cursor, &slots);
	error = pfs_rows_of_list(run, &cursor->found, cursor->running.tables[0].n_rows, slots.slot,
				 (uint32_t)slots.n);
	pfs_slots_finish(&slots);
	return error;
}

/* Too few of the first rows fit: a scan finds the rest of them. */
static int scan_rest(struct pfs_row_cursor *cursor)
{
	const struct pfs_row_plan *plan = cursor->plan;
	int error;

	pfs_pushed_finish(&cursor->pushed);
	error = pfs_push_arguments(cursor->query, &cursor->pushed, plan->arguments,
				   plan->n_arguments);
	cursor->is_trying = false;
	if (!error)
		error = scan(cursor);
	cursor->is_trying = error != 0; /* it may be asked again, over another tree */
	return error;
}

/* Adds slots. */
static int add_slots(struct pfs_row_cursor *cursor)
{
	cursor->n = cursor->at = 0;
	if (cursor->is_trying && cursor->next_row >= TRIED_ROWS)
		return scan_rest(cursor);
	PFS_TRY(cursor->ordered ? next_ordered(cursor) : select_piece(cursor));
	cut(cursor);
	return 0;
}

int pfs_row_cursor_slots(struct pfs_row_cursor *cursor)
{
	while (cursor->at == cursor->n && !cursor->is_done) {
		PFS_TRY(add_slots(cursor));
		PFS_TRY(pfs_query_look(cursor->query));
	}
	return 0;
}

/* ---- beginning ---- */

static int order(struct pfs_row_cursor *cursor)
{
	const struct pfs_row_plan *plan = cursor->plan;
	uint64_t limit;
	struct pfs_ordered_question question = {
		.order = plan->order,
		.n_order = plan->n_order,
		.predicates = cursor->pushed.predicates,
		.n = cursor->pushed.n,
		.within = plan->n_rest ? &cursor->within : NULL,
		.watch = &cursor->query->watch,
	};

	if (__builtin_add_overflow(cursor->skip, cursor->left, &limit))
		limit = UINT64_MAX;
	question.limit = limit;
	while (plan->n_rest && !cursor->is_done) {
		PFS_TRY(select_piece(cursor));
		PFS_TRY(pfs_query_look(cursor->query));
	}
	if (plan->n_rest) {
		cursor->within = (struct pfs_slots){cursor->slots, cursor->n};
		cursor->charged += cursor->capacity * sizeof(*cursor->slots);
		cursor->slots = NULL;
		cursor->n = cursor->capacity = 0;
		cursor->is_done = !cursor->within.n;
	}
	if (cursor->is_done)
		return 0;
	PFS_TRY(pfs_ordered_open(&cursor->ordered, cursor->query->tree, &question));
	pfs_plan_record(cursor->query, 0, &cursor->pushed, pfs_ordered_selected(cursor->ordered),
			cursor->ordered);
	return charge(cursor, pfs_ordered_memory(cursor->ordered));
}

/* Tables and programs, where the operators select. */
static int prepare(struct pfs_row_cursor *cursor)
{
	const struct pfs_row_plan *plan = cursor->plan;

	PFS_TRY(pfs_running_tables(&cursor->running));
	return selects(cursor) ? pfs_running_conditions(&cursor->running, &cursor->program,
							plan->rest, plan->n_rest)
			       : 0;
}

/* The first rows that there are, if a scan does not find them at once. */
static int begin_short(struct pfs_row_cursor *cursor)
{
	const struct pfs_row_plan *plan = cursor->plan;
	const struct pfs_pushed *pushed = &cursor->pushed;

	PFS_TRY(pfs_push_arguments(cursor->query, &cursor->pushed, NULL, 0));
	if (pushed->n)
		return scan_rest(cursor);
	PFS_TRY(pfs_push_arguments(cursor->query, &cursor->pushed, plan->arguments,
				   plan->n_arguments));
	cursor->is_trying = !pushed->nothing &&
			    !pfs_scan_is_short(cursor->query->tree, pushed->predicates, pushed->n);
	if (!cursor->is_trying)
		return scan(cursor);
	pfs_pushed_finish(&cursor->pushed);
	PFS_TRY(pfs_push_arguments(cursor->query, &cursor->pushed, NULL, 0));
	pfs_plan_record(cursor->query, 0, &cursor->pushed, 0, NULL);
	return prepare(cursor);
}

static int begin_held(struct pfs_row_cursor *cursor)
{
	const struct pfs_row_plan *plan = cursor->plan;

	if (plan->is_short)
		return begin_short(cursor);
	PFS_TRY(pfs_push_arguments(cursor->query, &cursor->pushed, plan->arguments,
				   plan->n_arguments));
	cursor->is_done = cursor->pushed.nothing;
	if (cursor->is_done)
		return 0;
	if (selects(cursor) || (!plan->n_order && !cursor->pushed.n))
		PFS_TRY(prepare(cursor));
	if (plan->n_order)
		return order(cursor);
	if (cursor->pushed.n)
		return scan(cursor);
	pfs_plan_record(cursor->query, 0, &cursor->pushed, 0, NULL);
	return 0;
}

static int open_gather(struct pfs_row_cursor *cursor)
{
	const struct pfs_row_plan *plan = cursor->plan;

	PFS_TRY(pfs_gathered_open(&cursor->gather, cursor->query));
	for (size_t i = 0; i < plan->n_columns; i++)
		PFS_TRY(pfs_gathered_want(cursor->gather, (size_t)plan->columns[i]));
	return 0;
}

/* Before the tree is held: what wants it otherwise. */
static int begin(struct pfs_row_cursor *cursor)
{
	const struct pfs_row_plan *plan = cursor->plan;
	int error;

	PFS_TRY(open_gather(cursor));
	PFS_TRY(pfs_inputs_prepare(cursor->block, cursor->context));
	if (plan->n_arguments || plan->n_order)
		pfs_scan_prepare(cursor->query->tree);
	cursor->is_begun = true;
	PFS_TRY(pfs_running_begin(&cursor->running, cursor->block, cursor->context));
	PFS_TRY(pfs_query_hold(cursor->query));
	error = begin_held(cursor);
	pfs_query_release(cursor->query);
	if (error == -ENOENT) /* what they are to be under is gone */
		cursor->is_done = true;
	return error == -ENOENT ? 0 : error;
}

/* ---- over another tree ---- */

/* All that are to come in order.  The tree is held. */
static int drain(struct pfs_row_cursor *cursor)
{
	size_t n = cursor->n - cursor->at, more = 1;

	if (n)
		memmove(cursor->slots, cursor->slots + cursor->at, n * sizeof(*cursor->slots));
	cursor->at = 0;
	cursor->n = n;
	for (; more && cursor->left; n += more) {
		more = (size_t)PFS_MIN((uint64_t)cursor->wave_max, cursor->left);
		PFS_TRY(make_room(cursor, n + more));
		PFS_TRY(pfs_ordered_next(cursor->ordered, cursor->slots + n, &more));
		cursor->n = n + more;
		cursor->left -= more;
		pfs_plan_seen(cursor->query, 0, more);
		PFS_TRY(pfs_query_look(cursor->query));
	}
	cursor->is_done = true;
	return 0;
}

bool pfs_row_cursor_is_between(const struct pfs_row_cursor *cursor)
{
	return cursor->walk->row + 1 >= cursor->walk->portion.n;
}

int pfs_row_cursor_part(struct pfs_row_cursor *cursor)
{
	int error;

	if (!cursor->given || !pfs_row_cursor_is_between(cursor))
		return -EOPNOTSUPP;
	if (!cursor->ordered || cursor->is_done)
		return 0;
	PFS_TRY(pfs_query_hold(cursor->query));
	error = drain(cursor);
	pfs_query_release(cursor->query);
	return error;
}

int pfs_row_cursor_go_on(struct pfs_row_cursor *cursor)
{
	int error;

	pfs_row_cursor_close_hands(cursor);
	pfs_gathered_close(PFS_TAKE(cursor->gather));
	cursor->walk->portion.n = 0;
	PFS_TRY(open_gather(cursor));
	if (cursor->is_done)
		return 0;
	pfs_running_end(&cursor->running);
	cursor->is_begun = false;
	PFS_TRY(pfs_inputs_prepare(cursor->block, cursor->context));
	PFS_TRY(pfs_running_begin(&cursor->running, cursor->block, cursor->context));
	cursor->is_begun = true;
	PFS_TRY(pfs_query_hold(cursor->query));
	error = prepare(cursor);
	pfs_query_release(cursor->query);
	return error;
}

/* ---- rows to walk through ---- */

/* Returns how many rows are gathered next, by what the last n took. */
static size_t next_batch(const struct pfs_row_cursor *cursor, size_t n)
{
	size_t batch = PFS_MIN(cursor->batch * 4, ROWS_MAX);
	size_t bytes = pfs_gathered_bytes(cursor->gather);
	uint64_t left = pfs_account_left(cursor->query->account) / PFS_ROW_MEMORY_PART;
	uint64_t row = (uint64_t)pfs_gathered_memory(cursor->gather) / n + 1;

	if (bytes > PFS_ROW_WAVE_BYTES / 32) /* what comes next may well have more */
		batch = PFS_MIN(batch, PFS_MAX(n * (PFS_ROW_WAVE_BYTES / 2) / bytes, 1));
	return (size_t)PFS_MAX(PFS_MIN((uint64_t)batch, left / row), (uint64_t)FIRST_ROWS);
}

static int gather_held(struct pfs_row_cursor *cursor)
{
	size_t n;

	PFS_TRY(pfs_row_cursor_slots(cursor));
	n = PFS_MIN(cursor->n - cursor->at, cursor->batch);
	if (!n)
		return 0;
	PFS_TRY(pfs_gathered_rows(cursor->gather, cursor->slots + cursor->at, n));
	*cursor->walk = (struct pfs_portion_walk){
		.portion = {n, pfs_gathered_columns(cursor->gather), cursor->plan->columns}};
	cursor->at += n;
	cursor->batch = next_batch(cursor, n);
	return 0;
}

int pfs_row_cursor_next(struct pfs_row_cursor *cursor)
{
	int error;

	cursor->walk->portion.n = 0;
	if (cursor->query->stop || pfs_query_tick(cursor->query))
		return -EINTR;
	if (!cursor->is_begun)
		PFS_TRY(begin(cursor));
	if (cursor->is_done && cursor->at == cursor->n)
		return 0;
	PFS_TRY(pfs_query_hold(cursor->query));
	error = gather_held(cursor);
	pfs_query_release(cursor->query);
	PFS_TRY(error);
	cursor->given += cursor->walk->portion.n;
	return cursor->walk->portion.n != 0;
}

bool pfs_row_cursor_has_begun(const struct pfs_row_cursor *cursor)
{
	return cursor->given != 0;
}
