/* SPDX-License-Identifier: MIT */
/* The rows of nodes.  A scan first selects slots, then gathers the columns that the statement uses
 * for a batch of them at a time, so that the tree is held for a batch only; a tree that changes in
 * between ends the statement with -EAGAIN. */
#include "fs/query/internal.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/query/gather.h"

#define FIRST_BATCH 32 /* rows: min(), EXISTS or a LIMIT may want no more */
#define ROOM_KEPT   128 /* slots, for the next statement */
#define BATCH	    4096
#define HELD_BYTES  ((size_t)8 << 20) /* gathered while the tree is held, about, and */
#define HELD_ATTRS  4096u /* attributes, each of which may be looked for among what has changed */

struct pfs_sql_scan {
	struct pfs_query *query;
	unsigned id; /* of the plan */
	struct pfs_slots slots;
	size_t next, batch; /* the next slot; how many rows the next batch may have */
	struct pfs_ordered *ordered; /* instead of slots */
	struct pfs_pushed *pushed; /* what the slots were found by */
	uint32_t *room; /* a batch of its slots */
	size_t room_rows;
	size_t gathered; /* rows of the last batch */
	size_t held; /* bytes of memory for slots, either way */
	bool is_fetched; /* the first batch, by start */
	const uint32_t *rows; /* slots of the batch */
	size_t n;	      /* of them */
	struct pfs_gathered *gather; /* their columns */
};

/* ---- columns ---- */

static int gather(struct pfs_sql_scan *scan, struct pfs_sql_rows *rows PFS_UNUSED, int column)
{
	return pfs_gathered_column(scan->gather, (size_t)column);
}

static int rowid(struct pfs_sql_scan *scan, int64_t *out, size_t row)
{
	const struct pfs_sql_column *ino = &pfs_gathered_columns(scan->gather)[pfs_node_ino];

	if (ino->kind == PFS_SQL_ABSENT)
		PFS_TRY(pfs_gathered_column(scan->gather, (size_t)pfs_node_ino));
	*out = ino->integers[row];
	return 0;
}

/* ---- scans ---- */

/* Forgets the slots. */
static int let_go(struct pfs_sql_scan *scan)
{
	pfs_account_discharge(scan->query->account, scan->held);
	scan->held = 0;
	pfs_slots_finish(&scan->slots);
	scan->slots = (struct pfs_slots){.slot = NULL};
	pfs_ordered_close(scan->ordered);
	scan->ordered = NULL;
	pfs_pushed_finish(scan->pushed);
	return 0;
}

static void free_scan(struct pfs_sql_scan *scan)
{
	pfs_gathered_close(scan->gather);
	free(scan->pushed);
	free(scan->room);
	free(scan);
}

void pfs_nodes_free_spare(struct pfs_connection *connection)
{
	if (connection->spare)
		free_scan(PFS_TAKE(connection->spare));
}

static void close_scan(struct pfs_sql_scan *scan)
{
	struct pfs_connection *connection = scan->query->connection;

	(void)let_go(scan);
	pfs_gathered_rest(scan->gather);
	if (scan->room_rows > ROOM_KEPT) {
		free(PFS_TAKE(scan->room));
		scan->room_rows = 0;
	}
	pfs_nodes_free_spare(connection);
	connection->spare = scan;
}

static int make_scan(struct pfs_sql_scan **out, struct pfs_query *query)
{
	struct pfs_sql_scan *scan = calloc(1, sizeof(*scan));

	if (!scan)
		return -ENOMEM;
	scan->pushed = malloc(sizeof(*scan->pushed));
	if (!scan->pushed || pfs_gathered_open(&scan->gather, query)) {
		free_scan(scan);
		return -ENOMEM;
	}
	scan->pushed->n_text = 0;
	*out = scan;
	return 0;
}

/* The one before, if there was one: many a statement takes no longer than to allocate it. */
static int open_scan(void *user, struct pfs_sql_scan **out)
{
	struct pfs_query *query = user;
	struct pfs_sql_scan *scan = PFS_TAKE(query->connection->spare);

	if (scan)
		pfs_gathered_go_on(scan->gather, query);
	else
		PFS_TRY(make_scan(&scan, query));
	scan->query = query;
	*out = scan;
	return 0;
}

/* Says in the image's words in which order rows are to come. */
static void spell_order(struct pfs_order *out, const struct pfs_query *query,
			const struct pfs_sql_begin *begin)
{
	for (size_t i = 0; i < begin->n_order; i++)
		out[i] = (struct pfs_order){
			.field = pfs_push_column(query->connection->table, begin->order[i].column)
					 ->field,
			.descending = begin->order[i].descending,
		};
}

static int select_ordered(struct pfs_sql_scan *scan, const struct pfs_sql_begin *begin)
{
	struct pfs_query *query = scan->query;
	struct pfs_order order[PFS_SQL_ORDER_MAX];
	struct pfs_ordered_question question = {
		.order = order,
		.n_order = begin->n_order,
		.predicates = scan->pushed->predicates,
		.n = scan->pushed->n,
		.limit = begin->limit,
		.watch = &query->watch,
	};

	spell_order(order, query, begin);
	PFS_TRY(pfs_ordered_open(&scan->ordered, query->tree, &question));
	scan->held = pfs_ordered_memory(scan->ordered);
	pfs_plan_record(query, scan->id, scan->pushed, pfs_ordered_selected(scan->ordered),
			scan->ordered);
	return 0;
}

static int select_slots(struct pfs_sql_scan *scan)
{
	struct pfs_query *query = scan->query;

	PFS_TRY(pfs_scan_select(query->tree, &scan->slots, scan->pushed->predicates,
				scan->pushed->n, NULL, &query->watch));
	scan->held = scan->slots.n * sizeof(*scan->slots.slot);
	pfs_plan_record(query, scan->id, scan->pushed, scan->slots.n, NULL);
	return 0;
}

/* Finds the slots.  The tree is held. */
static int find(struct pfs_sql_scan *scan, const struct pfs_sql_begin *begin)
{
	int error = pfs_push_arguments(scan->query, scan->pushed, begin->arguments, begin->n);

	if (!error && !scan->pushed->nothing)
		error = begin->n_order ? select_ordered(scan, begin) : select_slots(scan);
	return error && error != -ENOENT
		       ? error
		       : pfs_account_charge(scan->query->account, (int64_t)scan->held);
}

/* The slots of the next batch, scan->n of them. */
static int next_slots(struct pfs_sql_scan *scan)
{
	if (!scan->ordered) {
		scan->rows = scan->slots.n ? scan->slots.slot + scan->next : NULL;
		scan->n = PFS_MIN(scan->slots.n - scan->next, scan->batch);
		scan->next += scan->n;
		return 0;
	}
	if (scan->batch > scan->room_rows) {
		free(scan->room);
		scan->room_rows = 0;
		scan->room = malloc(scan->batch * sizeof(*scan->room));
		if (!scan->room)
			return -ENOMEM;
		scan->room_rows = scan->batch;
	}
	scan->rows = scan->room;
	scan->n = scan->batch;
	return pfs_ordered_next(scan->ordered, scan->room, &scan->n);
}

/* Returns how many rows the next batch may have, by what the last one took. */
static size_t next_batch(const struct pfs_sql_scan *scan)
{
	size_t attrs = pfs_gathered_attrs(scan->gather);
	size_t batch =
		PFS_MIN(scan->batch * 4, attrs ? PFS_MAX(HELD_ATTRS / attrs, FIRST_BATCH) : BATCH);
	size_t bytes = pfs_gathered_bytes(scan->gather);

	if (bytes > HELD_BYTES / 16) /* what comes next may well have more */
		batch = PFS_MIN(batch, PFS_MAX(scan->gathered * HELD_BYTES / bytes, 1));
	return batch;
}

static int take_slots(struct pfs_sql_scan *scan)
{
	PFS_TRY(next_slots(scan));
	scan->batch = next_batch(scan);
	pfs_plan_seen(scan->query, scan->id, scan->n);
	return 0;
}

static int fetch_held(struct pfs_sql_scan *scan)
{
	PFS_TRY(take_slots(scan));
	scan->gathered = scan->n;
	return pfs_gathered_rows(scan->gather, scan->rows, scan->n);
}

static int start(struct pfs_sql_scan *scan, const struct pfs_sql_begin *begin)
{
	int error;

	PFS_TRY(let_go(scan));
	scan->id = begin->id;
	scan->next = 0;
	scan->n = 0;
	scan->batch = begin->limit < FIRST_BATCH ? PFS_MAX(begin->limit, 1) : FIRST_BATCH;
	for (size_t i = 0; i < scan->query->connection->table->n && i < 63; i++)
		if (begin->columns >> i & 1)
			PFS_TRY(pfs_gathered_want(scan->gather, i));
	if (!scan->query->holds)
		pfs_scan_prepare(scan->query->tree);
	PFS_TRY(pfs_query_hold(scan->query));
	error = find(scan, begin);
	if (!error)
		error = fetch_held(scan);
	pfs_query_release(scan->query);
	scan->is_fetched = true;
	return error;
}

static int fetch(struct pfs_sql_scan *scan, struct pfs_sql_rows *rows)
{
	int error = 0;

	if (scan->query->stop)
		return -EINTR;
	if (!scan->ordered && scan->next == scan->slots.n && !scan->is_fetched) {
		scan->n = 0;
	} else if (!scan->is_fetched) {
		PFS_TRY(pfs_query_hold(scan->query));
		error = fetch_held(scan);
		pfs_query_release(scan->query);
	}
	scan->is_fetched = false;
	rows->columns = pfs_gathered_columns(scan->gather);
	rows->n = error ? 0 : scan->n;
	return error;
}

static const char *const functions[] = {
	[PFS_CALL_UNDER] = "under",
	[PFS_CALL_CHILD_OF] = "child_of",
	[PFS_CALL_ANCESTOR_OF] = "ancestor_of",
	NULL,
};

const struct pfs_sql_source pfs_nodes_source = {
	.name = "nodes",
	.functions = functions,
	.plan = pfs_push_plan,
	.open = open_scan,
	.close = close_scan,
	.start = start,
	.fetch = fetch,
	.gather = gather,
	.rowid = rowid,
	.update = pfs_nodes_update,
};
