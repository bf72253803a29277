/* SPDX-License-Identifier: MIT */
/* What statements compare with times: found in their texts whatever way it is written, made a time,
 * and nothing else. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "fs/query/times/timed.h"

static int list_columns(void *arg, const char *table,
			int (*add)(void *to, const char *name, bool is_hidden), void *to)
{
	static const char *const nodes[] = {"path",  "name",  "ino",  "size",
					    "mtime", "atime", "ctime"};
	static const char *const side[] = {"path", "mtime", "t"};
	bool is_nodes = strcasecmp(table, "nodes") == 0;
	const char *const *names = is_nodes ? nodes : side;
	size_t n = is_nodes ? PFS_COUNT(nodes) : PFS_COUNT(side);

	(void)arg;
	if (!is_nodes && strcasecmp(table, "side") != 0)
		return -ENOENT;
	for (size_t i = 0; i < n; i++)
		PFS_TRY(add(to, names[i], false));
	return 0;
}

static const struct pfs_timed_tables tables = {.columns = list_columns};

#define SECOND "'1970-01-01T00:00:01'"
#define NUMBER "1000000000"
#define NOW    INT64_C(1700000000000000000)

static int try(struct pfs_sql_problem *doubt, const char *sql)
{
	struct pfs_edits edits;
	int got = pfs_timed_replace(&edits, sql, strlen(sql), NOW, &tables, doubt);

	pfs_edits_finish(&edits);
	return got;
}

static void replaces(struct pfs_edits *edits, struct pfs_sql_problem *doubt, const char *sql)
{
	assert_int_equal(pfs_timed_replace(edits, sql, strlen(sql), NOW, &tables, doubt), 0);
	edits->text[edits->len] = 0;
}

static void becomes(const char *sql, const char *expected)
{
	struct pfs_sql_problem doubt;
	struct pfs_edits edits;

	replaces(&edits, &doubt, sql);
	if (*doubt.text)
		fail_msg("%s: %s", sql, doubt.text);
	assert_string_equal(edits.text, expected);
	pfs_edits_finish(&edits);
}

static void stays(const char *sql)
{
	becomes(sql, sql);
}

static void of_nodes(const char *where, const char *expected)
{
	char from[512], to[512];

	(void)snprintf(from, sizeof(from), "SELECT * FROM nodes n WHERE %s", where);
	(void)snprintf(to, sizeof(to), "SELECT * FROM nodes n WHERE %s", expected);
	becomes(from, to);
}

static void test_conditions(void **state)
{
	(void)state;
	of_nodes("mtime > " SECOND, "mtime > " NUMBER);
	of_nodes("n.\"mtime\"<=" SECOND, "n.\"mtime\"<=" NUMBER);
	of_nodes(SECOND " < n.Ctime", NUMBER " < n.Ctime");
	of_nodes(SECOND " is not atime", NUMBER " is not atime");
	of_nodes("mtime IS NOT DISTINCT FROM " SECOND, "mtime IS NOT DISTINCT FROM " NUMBER);
	of_nodes("mtime not between " SECOND "AND " SECOND,
		 "mtime not between " NUMBER " AND " NUMBER);
	of_nodes("mtime BETWEEN" SECOND "AND" SECOND, "mtime BETWEEN " NUMBER " AND " NUMBER);
	of_nodes(SECOND " BETWEEN mtime AND " SECOND, NUMBER " BETWEEN mtime AND " NUMBER);
	of_nodes("mtime in (" SECOND ", 0, " SECOND ") or name = " SECOND,
		 "mtime in (" NUMBER ", 0, " NUMBER ") or name = " SECOND);
	of_nodes(SECOND " in (name, mtime)", NUMBER " in (time_of(name), mtime)");
	of_nodes("mtime /* " SECOND " */ = -- " SECOND "\n" SECOND,
		 "mtime /* " SECOND " */ = -- " SECOND "\n" NUMBER);
	of_nodes("mtime > (" SECOND ")", "mtime > " NUMBER);
	of_nodes("mtime > date('now')", "mtime > time_of(date('now'))");
	of_nodes("mtime > (SELECT " SECOND ")", "mtime > time_of((SELECT " SECOND "))");
	of_nodes("mtime > name || 'x' AND size", "mtime > time_of(name || 'x') AND size");
	of_nodes("mtime > \"1970-01-01\"", "mtime > 0");
	of_nodes("mtime = - 5e17 OR mtime = 0x7000000000000000 OR mtime IS NULL",
		 "mtime = - 5e17 OR mtime = time_of(0x7000000000000000) OR mtime IS NULL");
	of_nodes("CASE mtime WHEN " SECOND " THEN " SECOND " ELSE " SECOND " END",
		 "CASE mtime WHEN " NUMBER " THEN " SECOND " ELSE " SECOND " END");
	of_nodes("CASE WHEN size THEN mtime ELSE 0 END < " SECOND,
		 "CASE WHEN size THEN mtime ELSE 0 END < " NUMBER);
	of_nodes("max(mtime, " SECOND ") > " SECOND, "max(mtime, " NUMBER ") > " NUMBER);
	of_nodes("nullif(" SECOND ", mtime)", "nullif(" NUMBER ", mtime)");
	of_nodes("coalesce(mtime, 0) > " SECOND, "coalesce(mtime, 0) > " NUMBER);
	of_nodes("mtime - 5 > " SECOND " AND mtime - 5 > 5 AND mtime + 1 < name",
		 "mtime - 5 > " NUMBER " AND mtime - 5 > 5 AND mtime + 1 < time_of(name, 0)");
	of_nodes("(mtime, name) = (" SECOND ", " SECOND ")",
		 "(mtime, name) = (" NUMBER ", " SECOND ")");
	of_nodes("(name, mtime) IN ((" SECOND ", " SECOND "))",
		 "(name, mtime) IN ((" SECOND ", " NUMBER "))");
	of_nodes("(" SECOND " < mtime) = (" SECOND " < name)",
		 "(" NUMBER " < mtime) = (" SECOND " < name)");
	of_nodes(SECOND " < mtime = ctime", "time_of(" NUMBER " < mtime) = ctime");
	of_nodes("mtime IN (SELECT t FROM side)", "mtime IN (WITH primefs_times(time) AS (SELECT t "
						  "FROM side) SELECT time_of(time) FROM "
						  "primefs_times)");
	of_nodes("mtime IN (WITH x AS (SELECT t FROM side) SELECT t FROM x)",
		 "mtime IN (WITH primefs_times(time) AS (WITH x AS (SELECT t FROM side) SELECT t "
		 "FROM x) "
		 "SELECT time_of(time) FROM primefs_times)");
	of_nodes(SECOND " NOT IN (SELECT mtime FROM nodes)",
		 NUMBER " NOT IN (SELECT mtime FROM nodes)");
	of_nodes("size IN (SELECT size FROM side WHERE n.mtime = t)",
		 "size IN (SELECT size FROM side WHERE n.mtime = time_of(t))");
	of_nodes("mtime > seconds(5) AND seconds(name) > " SECOND,
		 "mtime > seconds(5) AND seconds(name) > " NUMBER);
}

static void test_left_alone(void **state)
{
	static const char *const wheres[] = {
		"date(mtime / 1000000000, 'unixepoch') > " SECOND,
		"name > " SECOND,
		"mtime IS NULL OR mtime NOT NULL OR mtime IS NOT NULL OR mtime ISNULL",
		"mtime IS TRUE AND mtime IS NOT FALSE",
		"mtime > ctime AND mtime IN (atime, ctime)",
		"mtime - ctime < 5 AND 5 > mtime - ctime AND mtime / 1000000000 > 1700000000",
		"mtime > 1700000000000000000 AND mtime <> 0 AND mtime < 1e300",
		"'mtime' > " SECOND,
		"f(mtime, " SECOND ")",
		"mtime LIKE '17%' OR mtime GLOB '1*'",
		"CAST(mtime AS TEXT) > '5'",
		"EXISTS (SELECT 1 FROM side WHERE side.mtime > " SECOND ")",
		"EXISTS (SELECT 1 FROM side WHERE mtime > " SECOND ")", /* the inner one's */
	};

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(wheres); i++)
		of_nodes(wheres[i], wheres[i]);
	stays("SELECT mtime, " SECOND " FROM nodes ORDER BY mtime");
	stays("SELECT * FROM side WHERE mtime > " SECOND);
	stays("SELECT side.mtime < " SECOND " FROM nodes JOIN side USING (path)");
	stays("WITH nodes AS (SELECT * FROM side) SELECT * FROM nodes WHERE mtime > " SECOND);
	stays("WITH t(mtime) AS (SELECT name FROM nodes) SELECT * FROM t WHERE mtime > " SECOND);
	stays("SELECT * FROM (SELECT size AS mtime FROM nodes) WHERE mtime > " SECOND);
	stays("INSERT INTO side(mtime) VALUES (" SECOND ")");
	stays("UPDATE side SET mtime = " SECOND ", t = 5");
	stays("UPDATE nodes SET mtime = seconds(5), atime = mtime, name = " SECOND);
	stays("UPDATE nodes SET mtime = mtime + 1, atime = max(mtime, ctime), mode = 5");
	stays("INSERT INTO nodes(path, mtime) VALUES ('/a', seconds(1700000000)), (" SECOND ", 0)");
	becomes("UPDATE nodes SET mtime = " SECOND ", atime = unixepoch(), name = " SECOND,
		"UPDATE nodes SET mtime = " NUMBER
		", atime = time_of(unixepoch()), name = " SECOND);
	becomes("UPDATE nodes SET mtime = t FROM side",
		"UPDATE nodes SET mtime = time_of(t) FROM side");
	becomes("INSERT INTO nodes(path, mtime) VALUES (" SECOND ", " SECOND ")",
		"INSERT INTO nodes(path, mtime) VALUES (" SECOND ", " NUMBER ")");
	stays("CREATE TABLE x (mtime INTEGER PRIMARY KEY, t DEFAULT " SECOND ")");
	stays("CREATE INDEX i ON side(mtime) WHERE mtime > " SECOND);
	stays("DELETE FROM side WHERE mtime > " SECOND);
	stays("");
	stays("'unended time");
	stays("/* unended time");
}

static void test_names(void **state)
{
	(void)state;
	becomes("WITH t(x) AS (SELECT mtime FROM nodes) SELECT * FROM t WHERE x < " SECOND,
		"WITH t(x) AS (SELECT mtime FROM nodes) SELECT * FROM t WHERE x < " NUMBER);
	becomes("WITH t(a, b, c, d, e, f, g) AS (SELECT * FROM nodes) SELECT * FROM t WHERE e "
		"< " SECOND " AND d < " SECOND,
		"WITH t(a, b, c, d, e, f, g) AS (SELECT * FROM nodes) SELECT * FROM t WHERE e "
		"< " NUMBER " AND d < " SECOND);
	becomes("WITH b AS (SELECT x FROM a), a AS (SELECT max(mtime) x FROM nodes) SELECT * FROM "
		"b WHERE x = " SECOND,
		"WITH b AS (SELECT x FROM a), a AS (SELECT max(mtime) x FROM nodes) SELECT * FROM "
		"b WHERE x = " NUMBER);
	becomes("WITH RECURSIVE t(x) AS (SELECT min(mtime) FROM nodes UNION ALL SELECT x + 5 FROM "
		"t WHERE x < " SECOND ") SELECT * FROM t WHERE x > " SECOND,
		"WITH RECURSIVE t(x) AS (SELECT min(mtime) FROM nodes UNION ALL SELECT x + 5 FROM "
		"t WHERE x < " NUMBER ") SELECT * FROM t WHERE x > " NUMBER);
	becomes("SELECT \"max(mtime)\" < " SECOND " FROM (SELECT max(mtime) FROM nodes)",
		"SELECT \"max(mtime)\" < " NUMBER " FROM (SELECT max(mtime) FROM nodes)");
	becomes("SELECT 1 FROM (SELECT a.mtime, b.mtime, max(a.mtime) AS mtime FROM nodes a, nodes "
		"b) WHERE "
		"\"mtime:1\" < " SECOND " AND [mtime:2] < " SECOND " AND mtime > " SECOND,
		"SELECT 1 FROM (SELECT a.mtime, b.mtime, max(a.mtime) AS mtime FROM nodes a, nodes "
		"b) WHERE "
		"\"mtime:1\" < " NUMBER " AND [mtime:2] < " NUMBER " AND mtime > " NUMBER);
	becomes("WITH t AS (SELECT * FROM side JOIN nodes) SELECT * FROM t WHERE \"mtime:1\" "
		"< " SECOND " AND mtime < " SECOND,
		"WITH t AS (SELECT * FROM side JOIN nodes) SELECT * FROM t WHERE \"mtime:1\" "
		"< " NUMBER " AND mtime < " SECOND);
	becomes("SELECT mtime AS m FROM nodes GROUP BY m HAVING m < " SECOND
		" ORDER BY m < " SECOND,
		"SELECT mtime AS m FROM nodes GROUP BY m HAVING m < " NUMBER
		" ORDER BY m < " NUMBER);
	becomes("SELECT * FROM (nodes a JOIN side b ON a.mtime = b.mtime) WHERE a.mtime = b.t",
		"SELECT * FROM (nodes a JOIN side b ON a.mtime = time_of(b.mtime)) WHERE a.mtime = "
		"time_of(b.t)");
	becomes("SELECT * FROM (nodes JOIN side USING (path)) AS j WHERE j.ctime = " SECOND,
		"SELECT * FROM (nodes JOIN side USING (path)) AS j WHERE j.ctime = " NUMBER);
	becomes("SELECT sum(size) FILTER (WHERE mtime < " SECOND ") OVER (ORDER BY mtime < " SECOND
		") FROM nodes",
		"SELECT sum(size) FILTER (WHERE mtime < " NUMBER ") OVER (ORDER BY mtime < " NUMBER
		") FROM nodes");
	becomes("SELECT x FROM (SELECT lag(mtime) OVER (ORDER BY ino) x FROM nodes) WHERE x "
		"> " SECOND,
		"SELECT x FROM (SELECT lag(mtime) OVER (ORDER BY ino) x FROM nodes) WHERE x "
		"> " NUMBER);
	becomes("UPDATE nodes AS n SET size = n.mtime > " SECOND " WHERE mtime < " SECOND,
		"UPDATE nodes AS n SET size = n.mtime > " NUMBER " WHERE mtime < " NUMBER);
	becomes("UPDATE side SET t = 1 FROM nodes WHERE nodes.mtime < side.mtime",
		"UPDATE side SET t = 1 FROM nodes WHERE nodes.mtime < time_of(side.mtime)");
	becomes("WITH t AS (SELECT mtime m FROM nodes) DELETE FROM side WHERE EXISTS (SELECT 1 "
		"FROM t WHERE m = " SECOND " AND side.mtime = " SECOND ")",
		"WITH t AS (SELECT mtime m FROM nodes) DELETE FROM side WHERE EXISTS (SELECT 1 "
		"FROM t WHERE m = " NUMBER " AND side.mtime = " SECOND ")");
	becomes("INSERT INTO side SELECT path, mtime, 1 FROM nodes WHERE mtime < " SECOND,
		"INSERT INTO side SELECT path, mtime, 1 FROM nodes WHERE mtime < " NUMBER);
	becomes("CREATE TABLE x AS SELECT mtime < " SECOND " AS y FROM nodes",
		"CREATE TABLE x AS SELECT mtime < " NUMBER " AS y FROM nodes");
	becomes("EXPLAIN QUERY PLAN SELECT * FROM nodes WHERE mtime < " SECOND ";",
		"EXPLAIN QUERY PLAN SELECT * FROM nodes WHERE mtime < " NUMBER ";");
	becomes("SELECT (SELECT mtime FROM nodes LIMIT 1) < " SECOND,
		"SELECT (SELECT mtime FROM nodes LIMIT 1) < " NUMBER);
	becomes("VALUES ((SELECT mtime < " SECOND " FROM nodes))",
		"VALUES ((SELECT mtime < " NUMBER " FROM nodes))");
}

static void doubts(const char *sql, const char *place, const char *why)
{
	struct pfs_sql_problem doubt;
	struct pfs_edits edits;

	replaces(&edits, &doubt, sql);
	if (!strstr(doubt.text, why) || doubt.offset != (place ? strstr(sql, place) - sql : -1))
		fail_msg("%s: '%s' at %ld", sql, doubt.text, doubt.offset);
	pfs_edits_finish(&edits);
}

static void test_doubts(void **state)
{
	(void)state;
	doubts("SELECT * FROM nodes WHERE mtime > 'lastyear'", "'lastyear'",
	       "'lastyear' is no time; write");
	doubts("EXPLAIN SELECT * FROM nodes WHERE mtime > '2024-13-01'", "'2024-13",
	       "is no time; write");
	doubts("SELECT * FROM nodes WHERE mtime > 1700000000", "1700000000",
	       "seconds? times here are");
	doubts("SELECT * FROM nodes WHERE mtime > -1.5", "-1.5", "seconds? times here are");
	doubts("SELECT * FROM nodes WHERE mtime IN (0, '5')", "'5'", "seconds? times here are");
	doubts("SELECT * FROM nodes WHERE mtime > x'00'", NULL, "");
	doubts("SELECT x < 'a' FROM (SELECT mtime x FROM nodes UNION ALL SELECT t FROM side)",
	       "x <", "whether x is a time cannot be told");
	doubts("SELECT * FROM nodes JOIN side USING (mtime)", "mtime)", "a join by the name mtime");
	doubts("SELECT * FROM nodes NATURAL JOIN side", "side", "a join by the name mtime");
	doubts("SELECT * FROM nodes WHERE (mtime, size) IN (SELECT t, 1 FROM side)",
	       "(mtime, size)", "cannot be told");
	doubts("SELECT * FROM nodes WHERE mtime < unknown.t", "unknown.t", "cannot be told");
	doubts("SELECT a FROM nodes WHERE mtime < 'x' RETURNING 1", "mtime", "cannot be told");
	doubts("SELECT CASE size WHEN 1 THEN mtime ELSE name END > '2024-01-01' FROM nodes", "CASE",
	       "cannot be told");
	doubts("SELECT date(mtime) FROM nodes", "mtime",
	       "date takes seconds; write mtime / 1000000000, 'unixepoch'");
	doubts("SELECT 1 FROM nodes n WHERE strftime('%Y', n.mtime) = '2024'", "n.mtime",
	       "strftime takes seconds");
	doubts("SELECT 1 FROM nodes WHERE mtime LIKE '2024-%'", "'2024-", "times here are numbers");
	doubts("SELECT 1 FROM nodes WHERE mtime GLOB '2024*'", "'2024", "times here are numbers");
	doubts("UPDATE nodes SET mode = 5, mtime = 1700000000", "1700000000",
	       "seconds? times here are");
	doubts("UPDATE nodes SET atime = 'lastyear' WHERE size > 5", "'lastyear'",
	       "is no time; write");
	doubts("INSERT INTO nodes(path, mtime) VALUES ('/a', 0), ('/b', 5)", "5)",
	       "seconds? times here are");
	/* what has nothing to do with nodes, or compares nothing */
	doubts("INSERT INTO side VALUES (1) ON CONFLICT DO UPDATE SET mtime = 5", NULL, "");
	doubts("DELETE FROM nodes RETURNING mtime", NULL, "");
}

static void test_hostile(void **state)
{
	struct pfs_sql_problem doubt;
	char *sql;
	size_t len;
	FILE *out = open_memstream(&sql, &len);

	(void)state;
	(void)fputs("WITH c0 AS (SELECT mtime FROM nodes)", out);
	for (int i = 1; i < 900; i++) /* each twice as wide as the one before */
		(void)fprintf(out, ", c%d AS (SELECT * FROM c%d a, c%d b)", i, i - 1, i - 1);
	(void)fputs(" SELECT * FROM c899 WHERE mtime < 'x'", out);
	(void)fclose(out);
	assert_true(try(&doubt, sql) == -ENOMEM || *doubt.text);
	free(sql);
	out = open_memstream(&sql, &len);
	(void)fputs("WITH c899 AS (SELECT mtime FROM c898)", out);
	for (int i = 898; i > 0; i--) /* each by way of the next */
		(void)fprintf(out, ", c%d AS (SELECT * FROM c%d)", i, i - 1);
	(void)fputs(", c0 AS (SELECT mtime FROM nodes) SELECT * FROM c899 WHERE mtime < 'x'", out);
	(void)fclose(out);
	assert_true(try(&doubt, sql) == -ENOMEM || *doubt.text);
	free(sql);
}

static void test_wrong_statements(void **state)
{
	static const char sql[] =
		"SELECT mtime > " SECOND " and (size < " SECOND " or mtime < name) ! FROM nodes";
	static const char good[] =
		"SELECT mtime > " SECOND " and (size < " SECOND " or mtime < name) + 1 FROM nodes";
	struct pfs_sql_problem doubt;
	struct pfs_edits edits;

	(void)state;
	replaces(&edits, &doubt, sql); /* wrong: nothing is done */
	assert_int_equal(edits.n, 0);
	pfs_edits_finish(&edits);
	replaces(&edits, &doubt, good);
	assert_int_equal(edits.n, 3);
	pfs_edits_finish(&edits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conditions), cmocka_unit_test(test_left_alone),
		cmocka_unit_test(test_names),	   cmocka_unit_test(test_doubts),
		cmocka_unit_test(test_hostile),	   cmocka_unit_test(test_wrong_statements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
