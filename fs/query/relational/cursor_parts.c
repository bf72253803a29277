/* SPDX-License-Identifier: MIT */
/* Rows by all cores: each thread gathers a part of them and hands it on. */
#include "fs/query/relational/cursor_impl.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"

/* Parts that who holds the tree gathers and writes himself in one hold; of what is left then, other
 * threads having done less than he has, the next hold does more. */
#define OWN_PARTS 8u

/* An attribute may have to be looked for among what has changed, which takes as long as all else of
 * a row. */
static size_t own_parts(const struct pfs_row_cursor *cursor)
{
	return PFS_MAX(OWN_PARTS / (1 + pfs_gathered_attrs(cursor->gather)), 1);
}

struct hand {
	struct pfs_gathered *gather;
	struct hand *next;
};

/* Some parts for each core, so that none waits long for the last one. */
size_t pfs_row_cursor_largest_wave(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	return PFS_ROW_PART * (size_t)PFS_MIN(PFS_MAX(4 * cores, 16L), (long)PFS_PARTS_MAX);
}

void pfs_row_cursor_close_hands(struct pfs_row_cursor *cursor)
{
	while (cursor->hands) {
		struct hand *hand = cursor->hands;

		cursor->hands = hand->next;
		pfs_gathered_close(hand->gather);
		free(hand);
	}
}

struct work {
	struct pfs_row_cursor *cursor;
	size_t rows, grain; /* of all parts, of one */
	pfs_portion_fn fn;
	void *arg;
	int done[PFS_PARTS_MAX]; /* what fn returned, or why it was not called */
};

static int take_hand(struct pfs_row_cursor *cursor, struct hand **out)
{
	struct hand *hand;
	int error;
	PFS_LOCKED(&cursor->lock);

	hand = cursor->hands;
	if (hand) {
		cursor->hands = hand->next;
		*out = hand;
		return 0;
	}
	hand = malloc(sizeof(*hand));
	if (!hand)
		return -ENOMEM;
	error = pfs_gathered_copy(&hand->gather, cursor->gather, cursor->plan->columns,
				  cursor->plan->n_columns);
	if (error)
		free(hand);
	else
		*out = hand;
	return error;
}

static void put_hand(struct pfs_row_cursor *cursor, struct hand *hand)
{
	PFS_LOCKED(&cursor->lock);
	hand->next = cursor->hands;
	cursor->hands = hand;
}

static int do_part(struct work *work, size_t from, size_t to)
{
	struct pfs_row_cursor *cursor = work->cursor;
	struct pfs_portion part = {.n = to - from, .of = cursor->plan->columns};
	struct hand *hand;
	int done;

	PFS_TRY(take_hand(cursor, &hand));
	part.columns = pfs_gathered_columns(hand->gather);
	done = pfs_gathered_rows(hand->gather, cursor->slots + cursor->at + from, part.n);
	cursor->bytes += pfs_gathered_bytes(hand->gather);
	if (!done)
		done = work->fn(work->arg, from / work->grain, &part);
	put_hand(cursor, hand);
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

/* Returns how many rows parts may have together, as memory allows. */
static size_t wave_of(const struct pfs_row_cursor *cursor)
{
	size_t wave = PFS_MIN(
		cursor->wave,
		cursor->rows * PFS_ROW_WAVE_BYTES / PFS_MAX(atomic_load(&cursor->bytes), 1) + 1);
	uint64_t left = pfs_account_left(cursor->query->account);
	uint64_t row = (uint64_t)pfs_gathered_memory(cursor->gather) / 128 + 1;

	return (size_t)PFS_MIN(wave, left / PFS_ROW_MEMORY_PART / row);
}

/* The rows that are done, up to the first that is not: what comes behind it is done again, or
 * yet. */
static int count_done(struct work *work, size_t *n_parts)
{
	struct pfs_row_cursor *cursor = work->cursor;
	size_t rows = 0, i = 0;
	bool is_cut = false;

	for (; rows < work->rows && !is_cut && work->done[i]; i++) {
		int wanted = (int)PFS_MIN(work->grain, work->rows - rows);

		if (work->done[i] < 0)
			return work->done[i];
		is_cut = work->done[i] < wanted;
		rows += (size_t)work->done[i];
	}
	*n_parts = i;
	cursor->at += rows;
	cursor->given += rows;
	cursor->wave =
		rows < work->rows ? PFS_MAX(rows, 1) : PFS_MIN(cursor->wave * 2, cursor->wave_max);
	return 1;
}

static int work_held(struct work *work, size_t *n_parts)
{
	struct pfs_row_cursor *cursor = work->cursor;

	PFS_TRY(pfs_row_cursor_slots(cursor));
	work->rows = PFS_MIN(wave_of(cursor), cursor->n - cursor->at);
	work->grain = PFS_MIN(work->rows, PFS_ROW_PART);
	if (!work->rows)
		return 0;
	cursor->rows = work->rows;
	cursor->bytes = 0;
	(void)pfs_scan_run_some(cursor->query->tree, work->rows, work->grain, own_parts(cursor),
				do_parts, work);
	return count_done(work, n_parts);
}

int pfs_row_cursor_parts(struct pfs_row_cursor *cursor, size_t *n_parts, pfs_portion_fn fn,
			 void *arg)
{
	struct work work = {.cursor = cursor, .fn = fn, .arg = arg};
	int got;

	*n_parts = 0;
	/* Of another tree the first rows come alone, which make ready what several threads read. */
	if (!cursor->walk->portion.n || !pfs_row_cursor_is_between(cursor) ||
	    (cursor->is_done && cursor->at == cursor->n))
		return 0;
	if (cursor->query->stop || pfs_query_tick(cursor->query))
		return -EINTR;
	PFS_TRY(pfs_query_hold(cursor->query));
	got = work_held(&work, n_parts);
	pfs_query_release(cursor->query);
	return got;
}
