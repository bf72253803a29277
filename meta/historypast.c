/* SPDX-License-Identifier: MIT */
/* The store as it was: temporary views stand before the tables `node`, `attr` and `meta`, of
 * today's rows with the former ones put over them. */
#include "base/cleanup.h"
#include "meta/history.h"
#include "meta/internal.h"

/* Of each node and attribute the row before the first change after the group ?1. The columns have
 * the types of the store's: so SQLite takes indexes for what is compared, and merges the two parts
 * of a view in their order. */
static const char *const gather[] = {
	"CREATE TEMP TABLE was (prime INTEGER PRIMARY KEY, parent INTEGER, slot INTEGER, mode "
	"INTEGER, "
	"flags INTEGER, mtime ANY, atime ANY, ctime ANY, name BLOB, rdev INTEGER, target BLOB, uid "
	"INTEGER, "
	"gid INTEGER, size INTEGER, blocks INTEGER) STRICT",
	"CREATE TEMP TABLE was_attr (prime INTEGER NOT NULL, name INTEGER NOT NULL, value ANY, "
	"PRIMARY KEY (prime, name)) STRICT, WITHOUT ROWID",
	"INSERT OR IGNORE INTO was (" PFS_NODE_COLUMNS ") SELECT " PFS_NODE_COLUMNS
	" FROM main.history_node WHERE seq > ?1 ORDER BY seq",
	"INSERT OR IGNORE INTO was_attr SELECT prime, name, value FROM main.history_attr WHERE seq "
	"> ?1 "
	"ORDER BY seq",
};

/* `meta` counts what the views have: today's nodes less what has come, and with what has gone. */
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

/* *seq = the last group at that time. */
static int find_group(struct pfs_db *db, int64_t *seq, int64_t at)
{
	sqlite3_stmt *row = NULL;
	int got = pfs_db_errno(
		db, sqlite3_prepare_v2(db->handle,
				       "SELECT max(since_seq, coalesce((SELECT max(seq) FROM "
				       "history_group WHERE time <= ?1), 0)), since > ?1 FROM "
				       "history WHERE id = 1",
				       -1, &row, NULL));

	if (got)
		return got;
	(void)sqlite3_bind_int64(row, 1, at);
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

static int put_over(struct pfs_db *db, int64_t at)
{
	int64_t seq = 0;
	int error = find_group(db, &seq, at);

	for (size_t i = 0; i < PFS_COUNT(gather) && !error; i++)
		error = run(db, gather[i], seq);
	return error ? error : pfs_db_exec(db, views);
}

int pfs_history_dress(struct pfs_db *db, int64_t at)
{
	int error;

	if (!db->has_history)
		return -ENODATA;
	error = pfs_db_exec(db, "PRAGMA query_only = 0");
	if (!error)
		error = put_over(db, at);
	return error ? error : pfs_db_exec(db, "PRAGMA query_only = 1");
}
