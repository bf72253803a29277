/* SPDX-License-Identifier: MIT */
/* History as it is written: former rows, the groups that left them, and their removal. */
#include "meta/history.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "meta/internal.h"

#define PRUNE_ROWS 4096 /* former rows that one group removes */
#define AGE_SLACK  64	/* history may be a 64th older than the rule says, */
#define CLOCK_SET                                                                                  \
	(INT64_C(1735689600) *                                                                     \
	 PFS_NS_PER_S)	/* 2025: a clock with an earlier time was never set */
/* or is cut to a 16th below the rule's size, so that pruning is seldom needed */
#define SIZE_SLACK 16

sqlite3_stmt *pfs_history_statement(const struct pfs_store *store, enum pfs_history_statement which)
{
	return store->writer->history[which];
}

int pfs_history_note(struct pfs_store *store, enum pfs_history_statement which)
{
	sqlite3_stmt *statement PFS_RESET = pfs_history_statement(store, which);
	int got;

	if (!statement)
		return 0;
	got = pfs_db_step(store->writer, statement);
	if (got < 0) {
		store->group_error = got;
		return got;
	}
	store->history.noted += (uint64_t)sqlite3_changes(store->writer->handle);
	return 0;
}

int pfs_history_ask(struct pfs_db *db, int64_t *values, int n, const char *text, int64_t first,
		    int64_t second)
{
	sqlite3_stmt *row = NULL;
	int got = pfs_db_errno(db, sqlite3_prepare_v2(db->handle, text, -1, &row, NULL));

	if (!got) {
		(void)sqlite3_bind_int64(row, 1, first);
		(void)sqlite3_bind_int64(row, 2, second);
		got = pfs_db_step(db, row);
	}
	for (int i = 0; got == 1 && i < n; i++)
		values[i] = sqlite3_column_int64(row, i);
	(void)sqlite3_finalize(row);
	return got;
}

/* ---- what is known of it ---- */

static int learn_oldest(struct pfs_store *store)
{
	int64_t oldest[2] = {0, 0};
	int got = pfs_history_ask(store->writer, oldest, 2,
				  "SELECT seq, time FROM history_group ORDER BY seq LIMIT 1", 0, 0);

	store->history.oldest_seq = (uint64_t)oldest[0];
	store->history.oldest = oldest[1];
	return PFS_MIN(got, 0);
}

static int learn(struct pfs_store *store)
{
	struct pfs_history_state *state = &store->history;
	int64_t rule[4] = {0, 0, 0, 0}, sums[2] = {0, 0};

	*state = (struct pfs_history_state){.is_known = true};
	__atomic_store_n(&store->keeps_history, store->writer->history[0] != NULL,
			 __ATOMIC_RELAXED);
	if (!store->writer->history[0])
		return 0;
	PFS_TRY(PFS_MIN(
		0,
		pfs_history_ask(
			store->writer, rule, 4,
			"SELECT keep_time, keep_size, since_seq, since FROM history WHERE id = 1",
			0, 0)));
	PFS_TRY(PFS_MIN(
		0, pfs_history_ask(store->writer, sums, 2,
				   "SELECT coalesce(sum(size), 0), max(time) FROM history_group", 0,
				   0)));
	state->age = rule[0];
	state->size = (uint64_t)rule[1];
	state->since_seq = (uint64_t)rule[2];
	state->since = rule[3];
	state->bytes = (uint64_t)PFS_MAX(sums[0], 0);
	state->last = PFS_MAX(sums[1], rule[3]);
	return learn_oldest(store);
}

int pfs_history_begin(struct pfs_store *store)
{
	int error = store->history.is_known ? 0 : learn(store);

	store->history.is_known = !error;
	return error;
}

void pfs_history_end(struct pfs_store *store, bool committed)
{
	store->history.noted = 0;
	if (!committed)
		store->history.is_known = false;
}

int64_t pfs_history_clock(void)
{
	return pfs_clock_ns(CLOCK_REALTIME);
}

/* A clock that has not been set yet, as that of a machine without a battery, does not say how old
 * earlier groups are. */
static int64_t now_of(const struct pfs_history_state *state)
{
	int64_t now = pfs_history_clock();

	return now < CLOCK_SET ? PFS_MAX(now, state->last) : now;
}

int64_t pfs_history_now(const struct pfs_store *store)
{
	return now_of(&store->history);
}

/* Groups with a time in the future, from a clock that was ahead, get the present time. Otherwise
 * later groups could not be told from them by their times, and they would never be too old. */
static int pull_back(struct pfs_store *store, int64_t now)
{
	struct pfs_history_state *state = &store->history;

	if (state->last <= now)
		return 0;
	PFS_TRY(pfs_history_ask(store->writer, NULL, 0,
				"UPDATE history_group SET time = ?1 WHERE time > ?1", now, 0));
	PFS_TRY(pfs_history_ask(store->writer, NULL, 0,
				"UPDATE history SET since = ?1 WHERE since > ?1", now, 0));
	state->last = now;
	state->oldest = PFS_MIN(state->oldest, now);
	state->since = PFS_MIN(state->since, now);
	return 0;
}

int pfs_history_write(struct pfs_store *store, uint64_t seq)
{
	sqlite3_stmt *put PFS_RESET = pfs_history_statement(store, PFS_HISTORY_GROUP_PUT);
	struct pfs_history_state *state = &store->history;
	int64_t now;
	int got;

	if (!put || !state->noted)
		return 0;
	now = now_of(state);
	got = pull_back(store, now);
	if (got) {
		store->group_error = got;
		return got;
	}
	state->last = now;
	pfs_bind_u64(put, 1, seq);
	pfs_bind_int(put, 2, now);
	while ((got = pfs_db_step(store->writer, put)) == 1)
		state->bytes += (uint64_t)sqlite3_column_int64(put, 0);
	if (got) {
		store->group_error = got;
		return got;
	}
	if (!state->oldest_seq) {
		state->oldest_seq = seq;
		state->oldest = state->last;
	}
	return 0;
}

/* ---- forgetting ---- */

bool pfs_history_is_due(const struct pfs_store *store)
{
	const struct pfs_history_state *state = &store->history;
	int64_t now;

	if (!state->is_known || !state->oldest_seq)
		return false;
	now = now_of(state);
	return state->oldest_seq <= state->since_seq || state->last > now ||
	       (state->size && state->bytes > state->size) ||
	       (state->age && state->oldest < now - state->age - state->age / AGE_SLACK);
}

/* Gets the last group to be removed; 0: there is none. */
static int choose(struct pfs_store *store, int64_t *seq)
{
	struct pfs_history_state *state = &store->history;
	int64_t by_age = 0, by_size = 0;

	if (state->age)
		PFS_TRY(PFS_MIN(
			0, pfs_history_ask(
				   store->writer, &by_age, 1,
				   "SELECT coalesce((SELECT seq - 1 FROM history_group WHERE time "
				   "> ?1 "
				   "ORDER BY seq LIMIT 1), (SELECT max(seq) FROM history_group))",
				   pfs_history_now(store) - state->age, 0)));
	if (state->size && state->bytes > state->size)
		PFS_TRY(PFS_MIN(
			0, pfs_history_ask(store->writer, &by_size, 1,
					   "SELECT max(seq) FROM (SELECT seq, sum(size) OVER "
					   "(ORDER BY seq DESC) "
					   "AS size FROM history_group) WHERE size > ?1",
					   (int64_t)(state->size - state->size / SIZE_SLACK), 0)));
	*seq = PFS_MAX(by_age, by_size);
	return 0;
}

/* From now on nothing is known of the times before that group. */
static int move_since(struct pfs_store *store)
{
	int64_t seq = 0, group[2] = {0, 0};
	int got = choose(store, &seq);

	if (!got && seq)
		got = pfs_history_ask(store->writer, group, 2,
				      "SELECT seq, time FROM history_group WHERE seq <= ?1 ORDER "
				      "BY seq DESC LIMIT 1",
				      seq, 0);
	if (got <= 0)
		return got;
	got = pfs_history_ask(store->writer, NULL, 0,
			      "UPDATE history SET since_seq = ?1, since = ?2", group[0], group[1]);
	store->history.since_seq = (uint64_t)group[0];
	store->history.since = group[1];
	return got;
}

static int forget_rows(struct pfs_store *store, int64_t *left, const char *text)
{
	int got = pfs_history_ask(store->writer, NULL, 0, text, (int64_t)store->history.since_seq,
				  *left);

	if (!got)
		*left -= sqlite3_changes(store->writer->handle);
	return got;
}

/* Groups whose rows are gone. */
static int forget_groups(struct pfs_store *store, int64_t most)
{
	struct pfs_history_state *state = &store->history;
	int64_t sums[2] = {0, 0};

	PFS_TRY(PFS_MIN(
		0, pfs_history_ask(
			   store->writer, sums, 2,
			   "SELECT coalesce(sum(size), 0), max(seq) FROM (SELECT seq, size FROM "
			   "history_group WHERE seq <= ?1 ORDER BY seq LIMIT ?2)",
			   (int64_t)state->since_seq, most)));
	PFS_TRY(pfs_history_ask(store->writer, NULL, 0, "DELETE FROM history_group WHERE seq <= ?1",
				sums[1], 0));
	state->bytes -= PFS_MIN(state->bytes, (uint64_t)sums[0]);
	return learn_oldest(store);
}

static int prune(struct pfs_store *store)
{
	struct pfs_history_state *state = &store->history;
	int64_t left = PRUNE_ROWS;

	PFS_TRY(pull_back(store, now_of(state)));
	if (state->oldest_seq > state->since_seq)
		PFS_TRY(move_since(store));
	PFS_TRY(forget_rows(
		store, &left,
		"DELETE FROM history_node WHERE (seq, prime) IN (SELECT seq, prime FROM "
		"history_node WHERE seq <= ?1 ORDER BY seq, prime LIMIT ?2)"));
	if (left > 0)
		PFS_TRY(forget_rows(
			store, &left,
			"DELETE FROM history_attr WHERE (seq, prime, name) IN (SELECT seq, prime, "
			"name FROM history_attr WHERE seq <= ?1 ORDER BY seq, prime, name LIMIT "
			"?2)"));
	return left > 0 ? forget_groups(store, left) : 0;
}

int pfs_history_prune(struct pfs_store *store)
{
	int error;

	if (!store->in_group || store->group_error)
		return store->in_group ? store->group_error : -EINVAL;
	if (!store->writer->history[0] || !pfs_history_is_due(store))
		return 0;
	error = prune(store);
	if (error)
		store->group_error = error;
	return error;
}

/* ---- reading ---- */

int pfs_history_is_there(struct pfs_db *db)
{
	return pfs_history_ask(db, NULL, 0,
			       "SELECT 1 FROM main.sqlite_schema WHERE name = 'history'", 0, 0);
}

int pfs_history_read(struct pfs_store *store, struct pfs_history *out)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int64_t rule[3], sums[4], now = pfs_history_clock();
	int got;

	*out = (struct pfs_history){0};
	PFS_TRY(pfs_reader_get(store, &reader.db));
	got = pfs_history_is_there(reader.db);
	if (got == 1)
		got = pfs_history_ask(
			reader.db, rule, 3,
			"SELECT keep_time, keep_size, since FROM main.history WHERE id = 1", 0, 0);
	if (got == 1)
		got = pfs_history_ask(reader.db, sums, 4,
				      "SELECT count(*), coalesce(sum(former), 0), "
				      "coalesce(sum(size), 0), max(time) "
				      "FROM main.history_group",
				      0, 0);
	if (got != 1)
		return got;
	*out = (struct pfs_history){.rule = {rule[0], (uint64_t)rule[1]},
				    .groups = (uint64_t)sums[0],
				    .rows = (uint64_t)sums[1],
				    .bytes = (uint64_t)sums[2],
				    .since = PFS_MIN(rule[2], now),
				    .last = PFS_MIN(PFS_MAX(sums[3], rule[2]), now)};
	return 0;
}
