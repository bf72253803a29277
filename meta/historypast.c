/* SPDX-License-Identifier: MIT */
/* The store as it was: temporary views hide the tables `node`, `attr` and `meta`. They show the
 * present rows, replaced by former ones if there are any. */
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "meta/history.h"
#include "meta/internal.h"

/* For each node and attribute: the row before its first change after group ?1. The columns have the
 * same types as the store's, so that SQLite uses indexes for comparisons, and merges the two parts
 * of a view in their order. */
static const char *const make_tables[] = {
	"CREATE TEMP TABLE was (prime INTEGER PRIMARY KEY, parent INTEGER, slot INTEGER, mode "
	"INTEGER, "
	"flags INTEGER, mtime ANY, atime ANY, ctime ANY, name BLOB, rdev INTEGER, target BLOB, uid "
	"INTEGER, "
	"gid INTEGER, size INTEGER, blocks INTEGER) STRICT",
	"CREATE TEMP TABLE was_attr (prime INTEGER NOT NULL, name INTEGER NOT NULL, value ANY, "
	"PRIMARY KEY (prime, name)) STRICT, WITHOUT ROWID",
};

static const char *const take_over[] = {
	"INSERT OR IGNORE INTO was (" PFS_NODE_COLUMNS ") SELECT " PFS_NODE_COLUMNS
	" FROM main.history_node WHERE seq > ?1 ORDER BY seq",
	"INSERT OR IGNORE INTO was_attr SELECT prime, name, value FROM main.history_attr WHERE seq "
	"> ?1 "
	"ORDER BY seq",
};

/* The numbers in `meta` are those of the views: today's nodes without those that came later, with
 * those that are gone. */
#define COUNT_WAS(column, op)                                                                      \
	"m." #column " + (SELECT count(*) FROM temp.was WHERE mode IS NOT NULL AND prime " op      \
	" 4294967296) - (SELECT count(*) FROM temp.was AS w CROSS JOIN main.node AS n ON n.prime " \
	"= "                                                                                       \
	"w.prime WHERE w.prime " op " 4294967296) AS " #column

static const char views[] =
	"CREATE TEMP VIEW node AS SELECT " PFS_NODE_COLUMNS " FROM main.node "
	"WHERE NOT EXISTS (SELECT 1 FROM temp.was WHERE was.prime = node.prime) "
	"UNION ALL SELECT " PFS_NODE_COLUMNS " FROM temp.was WHERE mode IS NOT NULL;"
	"CREATE TEMP VIEW attr AS SELECT prime, name, value FROM main.attr AS a "
	"WHERE NOT EXISTS (SELECT 1 FROM temp.was_attr AS w WHERE w.prime = a.prime AND w.name = "
	"a.name) "
	"UNION ALL SELECT prime, name, value FROM temp.was_attr WHERE value IS NOT NULL;"
	"CREATE TEMP TABLE was_meta AS SELECT m.id, m.seed, m.seq, m.next_directory, "
	"m.next_other, " COUNT_WAS(directories, "<") ", " COUNT_WAS(
		others, ">=") ", m.end_slot, m.feed_start, m.handle, m.birth, NULL AS token, NULL "
			      "AS feed_token "
			      "FROM main.meta AS m;"
			      "CREATE TEMP VIEW meta AS SELECT * FROM temp.was_meta";

#define LAST_GROUP "SELECT coalesce(max(seq), 0) FROM main.history_group"

static int run(struct pfs_db *db, const char *text, int64_t parameter)
{
	sqlite3_stmt *statement = NULL;
	int got = pfs_db_errno(db, sqlite3_prepare_v2(db->handle, text, -1, &statement, NULL));

	if (!got) {
		(void)sqlite3_bind_int64(statement, 1, parameter);
		got = pfs_db_step(db, statement);
	}
	(void)sqlite3_finalize(statement);
	return got;
}

/* Sets *seq to the last group at that time. Groups with times in the future (see pull_back) count
 * as directly after the group before them. */
static int find_group(struct pfs_db *db, int64_t *seq, int64_t at)
{
	sqlite3_stmt *row = NULL;
	int got = pfs_db_errno(
		db,
		sqlite3_prepare_v2(
			db->handle,
			"SELECT max(since_seq, coalesce((SELECT max(seq) FROM history_group WHERE time <= ?1 "
			"OR (time > ?2 AND ?1 >= (SELECT coalesce(max(time), 0) FROM history_group "
			"WHERE time <= ?2))), 0)), since > ?1 AND since <= ?2 FROM history WHERE id = 1",
			-1, &row, NULL));

	if (got)
		return got;
	(void)sqlite3_bind_int64(row, 1, at);
	(void)sqlite3_bind_int64(row, 2, pfs_history_clock());
	got = pfs_db_step(db, row);
	if (got == 1) {
		*seq = sqlite3_column_int64(row, 0);
		got = sqlite3_column_int(row, 1) ? -ESTALE : 0;
	} else if (!got) {
		got = pfs_db_damaged(db, "history", 0, "its row is missing");
	}
	(void)sqlite3_finalize(row);
	return got;
}

static int take_over_rows(struct pfs_db *db, int64_t after)
{
	for (size_t i = 0; i < PFS_COUNT(take_over); i++)
		PFS_TRY(run(db, take_over[i], after));
	return 0;
}

static int put_over(struct pfs_store *store, struct pfs_db *db, int64_t at)
{
	PFS_TRY(find_group(db, &store->past_seq, at));
	for (size_t i = 0; i < PFS_COUNT(make_tables); i++)
		PFS_TRY(run(db, make_tables[i], 0));
	PFS_TRY(take_over_rows(db, store->past_seq));
	PFS_TRY(pfs_db_exec(db, views));
	return PFS_MIN(pfs_history_ask(db, &store->taken_seq, 1, LAST_GROUP, 0, 0), 0);
}

int pfs_history_dress(struct pfs_store *store, struct pfs_db *db, int64_t at)
{
	int error;

	if (!db->has_history)
		return -ENODATA;
	store->reads_since_ns = pfs_now_ns();
	error = pfs_db_exec(db, "PRAGMA query_only = 0");
	if (!error)
		error = put_over(store, db, at);
	return error ? error : pfs_db_exec(db, "PRAGMA query_only = 1");
}

/* ---- what is committed while it is read ---- */

void pfs_history_pause(struct pfs_store *past)
{
	/* some failures end the transaction */
	bool has_ended = past->is_paused || sqlite3_get_autocommit(past->group->handle);

	past->is_paused = has_ended || !pfs_db_exec(past->group, "COMMIT");
}

/* If a node had no former row yet, the first of its new ones counts. */
static int take_over_new(struct pfs_store *past)
{
	struct pfs_db *db = past->group;
	int64_t since = 0, last = 0;
	int got = pfs_history_is_there(db);

	if (got == 1)
		got = pfs_history_ask(db, &since, 1,
				      "SELECT since_seq FROM main.history WHERE id = 1", 0, 0);
	if (got <= 0)
		return got ? got : -ENODATA;
	if (since > past->past_seq)
		return -ESTALE;
	PFS_TRY(PFS_MIN(pfs_history_ask(db, &last, 1, LAST_GROUP, 0, 0), 0));
	if (last == past->taken_seq)
		return 0;
	PFS_TRY(pfs_db_exec(db, "PRAGMA query_only = 0"));
	PFS_TRY(take_over_rows(db, PFS_MAX(past->taken_seq, past->past_seq)));
	past->taken_seq = last;
	return pfs_db_exec(db, "PRAGMA query_only = 1");
}

int pfs_history_go_on(struct pfs_store *past)
{
	uint64_t now = pfs_now_ns();
	int error;

	if (!past->is_paused && now - past->reads_since_ns < PFS_HISTORY_HOLD_NS)
		return 0;
	pfs_history_pause(past);
	if (!past->is_paused)
		return -EIO;
	PFS_TRY(pfs_db_exec(past->group, "BEGIN"));
	past->is_paused = false;
	past->reads_since_ns = now;
	error = take_over_new(past);
	if (error)
		pfs_history_pause(past);
	return error;
}
