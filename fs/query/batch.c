/* SPDX-License-Identifier: MIT */
/* Rows past SQLite.  A statement whose rows are those of one scan as they are is prepared, planned and
 * begun by SQLite; once many rows are known to come, the scan is read on without it: row by row out of
 * large batches, or in parts that each thread gathers for itself and hands on.  SQLite stays where it
 * is, with the scan open, until the statement is reset or finished. */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/query/gather.h"

#define MANY_ROWS   1000 /* below this many rows, checking whether a statement is plain costs more than it saves */
#define PART_ROWS   1024 /* whose columns stay in a core's cache until they are written */
#define WAVE_BYTES  ((size_t)16 << 20) /* gathered while the tree is held, about */
#define REST_ROWS   4096 /* gathered at once where memory is too short for parts */
#define MEMORY_PART 4	 /* that much of what is left of the memory parts may take */

struct hand {
	struct pfs_gathered *gather;
	struct hand *next;
};

struct pfs_batch {
	struct pfs_sql_plain plain;
	size_t n_columns;
	const uint32_t *slots; /* of rows that are to come in parts */
	size_t n, at;
	size_t wave, wave_max; /* rows that are worked on at once */
	_Atomic size_t bytes; /* of the values of the last ones, */
	size_t rows;	      /* so many */
	pthread_mutex_t lock; /* of hands */
	struct hand *hands;   /* that are free: one for each thread that has been at work */
};

bool pfs_batch_is_worth(const struct pfs_query *query, uint64_t rows)
{
	return rows >= (query->many ? query->many : MANY_ROWS);
}

static struct pfs_batch *make_batch(struct pfs_query *query)
{
	struct pfs_batch *batch = query->batch ? query->batch : calloc(1, sizeof(*batch));

	if (batch && !query->batch)
		(void)pthread_mutex_init(&batch->lock, NULL);
	query->batch = batch;
	return batch;
}

/* Some parts for each core, so that none waits long for the last one. */
static size_t largest_wave(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	return PART_ROWS * (size_t)PFS_MIN(PFS_MAX(4 * cores, 16L), (long)PFS_PARTS_MAX);
}

void pfs_batch_begin(struct pfs_query *query)
{
	struct pfs_sql *sql = query->connection->sql;
	struct pfs_batch *batch = query->is_not_plain ? NULL : make_batch(query);
	unsigned plan_ids = query->connection->plan_ids;
	bool is_plain;

	query->long_scan = NULL;
	if (!batch)
		return;
	query->connection->plan_ids = 0; /* so that scans get the numbers that they have */
	is_plain = pfs_sql_plain(sql, &batch->plain);
	query->connection->plan_ids = plan_ids;
	batch->n_columns = is_plain ? pfs_sql_columns(sql) : 0;
	for (size_t i = 0; i < batch->n_columns; i++) {
		int *column = &batch->plain.columns[i];

		if (*column < 0)
			*column = pfs_node_ino;
		/* all have been needed for the row that is there */
		is_plain &= batch->plain.rows.columns[*column].kind != PFS_SQL_ABSENT;
	}
	query->is_past = is_plain;
	query->is_not_plain = !is_plain;
	query->was_past |= is_plain;
	batch->n = batch->at = 0;
	batch->wave = PART_ROWS;
	batch->rows = batch->plain.rows.n;
	batch->bytes = is_plain ? pfs_gathered_bytes(pfs_nodes_gathered(batch->plain.scan)) : 0;
	batch->wave_max = largest_wave();
	if (is_plain)
		pfs_nodes_enlarge(batch->plain.scan, batch->plain.columns, batch->n_columns);
}

void pfs_batch_end(struct pfs_query *query)
{
	struct pfs_batch *batch = query->batch;

	query->is_past = false;
	query->long_scan = NULL;
	while (batch && batch->hands) {
		struct hand *hand = batch->hands;

		batch->hands = hand->next;
		pfs_gathered_close(hand->gather);
		free(hand);
	}
}

void pfs_batch_destroy(struct pfs_query *query)
{
	if (!query->batch)
		return;
	pfs_batch_end(query);
	(void)pthread_mutex_destroy(&query->batch->lock);
	free(query->batch);
	query->batch = NULL;
}

/* ---- row by row ---- */

/* Of those that did not come in parts. */
static int gather_some(struct pfs_query *query, struct pfs_batch *batch)
{
	struct pfs_gathered *gather = pfs_nodes_gathered(batch->plain.scan);
	size_t n = PFS_MIN(batch->n - batch->at, REST_ROWS);
	int error;

	PFS_TRY(pfs_query_hold(query));
	error = pfs_gathered_rows(gather, batch->slots + batch->at, n);
	pfs_query_release(query);
	batch->plain.rows.n = error ? 0 : n;
	batch->at += n;
	return error;
}

int pfs_batch_next(struct pfs_query *query)
{
	struct pfs_batch *batch = query->batch;
	struct pfs_sql_plain *plain = &batch->plain;

	if (++plain->row < plain->rows.n)
		return 1;
	if (pfs_query_tick(query))
		return -EINTR;
	plain->row = 0;
	if (batch->at < batch->n)
		PFS_TRY(gather_some(query, batch));
	else
		PFS_TRY(pfs_nodes_source.fetch(plain->scan, &plain->rows));
	return plain->rows.n != 0;
}

void pfs_batch_value(const struct pfs_query *query, size_t column, struct pfs_query_value *out)
{
	const struct pfs_sql_plain *plain = &query->batch->plain;
	struct pfs_part part = {plain->rows.n, plain->rows.columns, plain->columns};

	pfs_part_value(&part, plain->row, column, out);
}

/* ---- in parts ---- */

struct work {
	struct pfs_query *query;
	struct pfs_batch *batch;
	size_t rows, grain; /* of all parts, of one */
	pfs_part_fn fn;
	void *arg;
	int done[PFS_PARTS_MAX]; /* what fn returned, or why it was not called */
};

static int take_hand(struct pfs_batch *batch, struct hand **out)
{
	struct hand *hand;
	int error;

	PFS_LOCKED(&batch->lock);
	hand = batch->hands;
	if (!hand) {
		hand = malloc(sizeof(*hand));
		if (!hand)
			return -ENOMEM;
		error = pfs_gathered_copy(&hand->gather, pfs_nodes_gathered(batch->plain.scan),
					batch->plain.columns, batch->n_columns);
		if (error) {
			free(hand);
			return error;
		}
	} else {
		batch->hands = hand->next;
	}
	*out = hand;
	return 0;
}

static void put_hand(struct pfs_batch *batch, struct hand *hand)
{
	PFS_LOCKED(&batch->lock);
	hand->next = batch->hands;
	batch->hands = hand;
}

static int do_part(struct work *work, size_t from, size_t to)
{
	struct pfs_batch *batch = work->batch;
	struct pfs_part part = {.n = to - from, .of = batch->plain.columns};
	struct hand *hand;
	int done;

	PFS_TRY(take_hand(batch, &hand));
	part.columns = pfs_gathered_columns(hand->gather);
	done = pfs_gathered_rows(hand->gather, batch->slots + batch->at + from, part.n);
	batch->bytes += pfs_gathered_bytes(hand->gather);
	if (!done)
		done = work->fn(work->arg, from / work->grain, &part);
	put_hand(batch, hand);
	return done;
}

static void do_parts(void *context, size_t from, size_t to)
{
	struct work *work = context;

	for (size_t end; from < to; from = end) { /* a thread alone gets all of them */
		end = PFS_MIN(from + work->grain, to);
		work->done[from / work->grain] = do_part(work, from, end);
	}
}

/* How many rows parts may have together, as memory allows. */
static size_t wave_of(const struct pfs_query *query, const struct pfs_batch *batch)
{
	size_t wave = PFS_MIN(batch->wave,
			      batch->rows * WAVE_BYTES / PFS_MAX(atomic_load(&batch->bytes), 1) + 1);
	uint64_t left = pfs_account_left(query->account);
	uint64_t row = (uint64_t)pfs_gathered_memory(pfs_nodes_gathered(batch->plain.scan)) / 128 + 1;

	return (size_t)PFS_MIN(wave, left / MEMORY_PART / row);
}

/* The rows that are done, up to the first that is not: what comes behind it is done again. */
static int count_done(struct work *work, size_t *n_parts)
{
	struct pfs_batch *batch = work->batch;
	size_t rows = 0, i = 0;
	bool cut = false;

	for (; rows < work->rows && !cut; i++) {
		int wanted = (int)PFS_MIN(work->grain, work->rows - rows);

		if (work->done[i] < 0)
			return work->done[i];
		cut = work->done[i] < wanted;
		rows += (size_t)work->done[i];
	}
	*n_parts = i;
	batch->at += rows;
	batch->wave = cut ? PFS_MAX(rows, 1) : PFS_MIN(batch->wave * 2, batch->wave_max);
	return 1;
}

static int work_held(struct work *work, size_t *n_parts)
{
	struct pfs_batch *batch = work->batch;
	size_t n = batch->wave_max;

	if (batch->at == batch->n) {
		PFS_TRY(pfs_nodes_slots(batch->plain.scan, &batch->slots, &n));
		batch->n = n;
		batch->at = 0;
	}
	work->rows = PFS_MIN(wave_of(work->query, batch), batch->n - batch->at);
	work->grain = PFS_MIN(work->rows, PART_ROWS);
	if (!work->rows)
		return 0;
	batch->rows = work->rows;
	batch->bytes = 0;
	pfs_scan_run(work->query->tree, work->rows, work->grain, do_parts, work);
	return count_done(work, n_parts);
}

int pfs_batch_parts(struct pfs_query *query, size_t *n_parts, pfs_part_fn fn, void *arg)
{
	struct work work = {.query = query, .batch = query->batch, .fn = fn, .arg = arg};
	int got;

	*n_parts = 0;
	if (!query->is_past || work.batch->plain.row + 1 < work.batch->plain.rows.n)
		return 0;
	if (query->stop || pfs_query_tick(query))
		return -EINTR;
	PFS_TRY(pfs_query_hold(query));
	got = work_held(&work, n_parts);
	pfs_query_release(query);
	return got;
}
