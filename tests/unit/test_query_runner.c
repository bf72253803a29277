/* SPDX-License-Identifier: MIT */
/* Who runs a statement: the operators, SQLite, or SQLite with parts of it run by the operators. */
#include "tests/unit/random_tree_util.h"

enum runner { SQLITE, PARTS, OPERATORS };

static enum runner runner_of(const char *sql)
{
	struct pfs_query *query = begin(sql, strlen(sql));
	struct pfs_query_error error;
	enum runner runner;
	int got;

	if (!query) {
		fail_msg("not run: %s", sql);
		return SQLITE;
	}
	while ((got = pfs_query_next(query, &error)) == 1 || got == -EAGAIN)
		;
	runner = pfs_relational_has_rows(query->relational) ? OPERATORS
		 : has_parts(query)			    ? PARTS
							    : SQLITE;
	pfs_query_finish(query);
	return runner;
}

/* Statements that the operators run whole, */
static const char *const operators[] = {
	"SELECT type, group_concat(name) FROM nodes GROUP BY type",
	"SELECT type, ext, printf('%d', max(size)) FROM nodes GROUP BY 1, 2",
	"SELECT ext, count(*), sum(size) FROM nodes GROUP BY ext ORDER BY 3 DESC LIMIT 10",
	"SELECT type, count(*) AS n FROM nodes GROUP BY type ORDER BY n",
	"SELECT depth, count(*) FROM nodes GROUP BY depth",
	"SELECT tag, avg(size) FROM nodes GROUP BY tag HAVING count(*) > 1",
	"SELECT owner, sum(size) FROM nodes GROUP BY owner",
	"SELECT parent, sum(size) FROM nodes GROUP BY parent ORDER BY 2 DESC LIMIT 10",
	"SELECT count(*), sum(size) FROM nodes WHERE size BETWEEN 100 AND 5000",
	"SELECT count(*) FROM nodes WHERE name LIKE '%d1%'",
	"SELECT DISTINCT ext FROM nodes",
	"SELECT k, count(*), sum(size) FROM nodes NATURAL JOIN side GROUP BY k",
	"SELECT a.path, n FROM nodes a JOIN side ON k = a.name ORDER BY n DESC LIMIT 3",
	"SELECT ext, s.ext, count(*), sum(n) FROM nodes LEFT JOIN side s USING (ext) GROUP BY 1, 2",
	"SELECT ext, k, sum(size) FROM side NATURAL LEFT JOIN nodes GROUP BY ext, k",
	"SELECT p.path, count(*) FROM nodes n JOIN nodes p ON n.parent = p.ino GROUP BY 1",
	"SELECT count(*) FROM nodes WHERE under(ino, 2) AND mtime > '2001-01-01'",
	"SELECT max(n) FROM (SELECT parent, count(*) AS n FROM nodes GROUP BY parent)",
	"SELECT path, n FROM (SELECT parent p, count(*) n FROM nodes GROUP BY 1) JOIN "
	"nodes ON ino = p",
	"WITH big AS (SELECT * FROM nodes WHERE size > 100) SELECT ext, sum(size) FROM big "
	"GROUP BY 1",
	"WITH a AS (SELECT depth FROM nodes), b(e, m) AS (SELECT * , 1 FROM a) SELECT "
	"sum(m) FROM b",
	"SELECT 'd' AS k, count(*) FROM nodes UNION ALL SELECT ext, size FROM nodes ORDER "
	"BY k, 2",
	"SELECT name FROM nodes UNION SELECT ext FROM nodes",
	"SELECT name FROM nodes INTERSECT SELECT ext FROM nodes",
	"SELECT ext FROM nodes GROUP BY ext EXCEPT SELECT ext FROM side",
	"SELECT ext FROM nodes UNION SELECT type FROM nodes EXCEPT SELECT name FROM nodes "
	"UNION ALL SELECT k FROM side",
	"SELECT count(*) FROM (SELECT ino FROM nodes WHERE type = 'd' EXCEPT SELECT parent "
	"FROM nodes)",
	"SELECT upper(substr(name, 1, 1)) AS c, count(*) FROM nodes GROUP BY c",
	"SELECT upper(type), substr(lower(ext), 2), sum(size) FROM nodes GROUP BY type, "
	"lower(ext)",
	"SELECT count(*) FROM nodes WHERE replace(name, 'd', '') = name AND instr(name, "
	"'1') > 0",
	"SELECT count(*) FROM nodes a JOIN nodes b ON upper(a.name) = b.name || '.C'",
	"SELECT min(substr(name, 2)), min(substr(name, 3)), min(substr(name, 4)), "
	"min(substr(name, 5)), min(substr(name, 6)), min(substr(name, 7)), "
	"min(substr(name, 8)), min(substr(name, 9)), min(substr(name, 10)), "
	"min(substr(name, 11)), min(substr(name, 12)), min(substr(name, 13)), "
	"min(substr(name, 14)), min(substr(name, 15)), min(substr(name, 16)), "
	"min(substr(name, 17)) FROM nodes",
	"WITH RECURSIVE i(v) AS (SELECT 0 UNION ALL SELECT v + 1 FROM i LIMIT 30), o(uid, "
	"team) AS "
	"(SELECT v, 'team ' || v % 3 FROM i) SELECT team, count(*), sum(size) FROM nodes "
	"JOIN o USING (uid) GROUP BY team",
	"WITH v(e) AS (VALUES ('c'), ('txt'), ('c')) SELECT e, count(*) FROM v JOIN nodes "
	"ON ext = e GROUP BY e",
	"SELECT ext, w FROM nodes LEFT JOIN (SELECT 'c' AS e, 2 AS w UNION ALL VALUES "
	"('h', 3)) ON ext = e GROUP BY ext, w",
	"SELECT count(*) FROM (SELECT size FROM nodes ORDER BY size, ino LIMIT 5)",
	"SELECT path FROM nodes WHERE size > 100",
	"SELECT path, tag FROM nodes WHERE path LIKE '%d1%' AND (size > 9 OR tag = 'x') "
	"ORDER BY path LIMIT 5 OFFSET 2",
	"SELECT * FROM nodes ORDER BY subtree_size DESC",
	"SELECT path FROM (SELECT * FROM nodes WHERE size > 100)",
	"SELECT path FROM nodes ORDER BY length(name) DESC, ino LIMIT 10",
	"SELECT name FROM nodes WHERE type = 'f' ORDER BY size % 7, ino",
	"SELECT name FROM nodes WHERE subtree_count > 1 AND ino = 2",
	"SELECT sum(size) OVER (ORDER BY ino) FROM nodes",
	"SELECT t, sum(n) OVER (ORDER BY t) FROM (SELECT ext t, count(*) n FROM nodes "
	"GROUP BY ext)",
	"SELECT path, rank() OVER (PARTITION BY parent ORDER BY size DESC) AS r FROM nodes "
	"ORDER BY r, ino LIMIT 5",
	"SELECT max(r) FROM (SELECT row_number() OVER (PARTITION BY ext ORDER BY size) AS "
	"r FROM nodes) WHERE r < 9",
	"SELECT rank() OVER (ORDER BY size), sum(size) OVER (PARTITION BY ext), "
	"row_number() OVER (ORDER BY ino) FROM nodes",
	"SELECT a.name FROM nodes a WHERE size = (SELECT max(size) FROM nodes b WHERE "
	"b.parent = a.parent)",
	"SELECT ext, 100.0 * count(*) / (SELECT count(*) FROM nodes) FROM nodes GROUP BY "
	"ext",
	"SELECT path FROM nodes WHERE size > (SELECT avg(size) FROM nodes)",
	"SELECT path FROM nodes WHERE ext IN (SELECT ext FROM side GROUP BY ext)",
	"SELECT path, (SELECT count(*) FROM nodes c WHERE c.parent = n.ino) FROM nodes n "
	"JOIN (SELECT parent p, sum(size) s FROM nodes GROUP BY 1 ORDER BY s, p LIMIT 5) "
	"ON ino = p",
	"SELECT name FROM nodes n WHERE NOT EXISTS (SELECT * FROM nodes WHERE parent = n.ino)",
	"SELECT ino FROM nodes WHERE parent NOT IN (SELECT ino FROM nodes WHERE size > 100)",
	"SELECT name, (SELECT count(*) FROM nodes c WHERE c.parent = n.ino) FROM nodes n ORDER BY "
	"2, 1",
	"SELECT name, (SELECT p.name FROM nodes p WHERE p.ino = n.parent) FROM nodes n",
	"SELECT ext FROM nodes GROUP BY ext HAVING sum(size) > (SELECT avg(size) FROM nodes)",
};

/* that SQLite runs whole, */
static const char *const sqlites[] = {
	"SELECT count(*) FROM nodes WHERE ino = 2",
	"SELECT max(size) FROM nodes",
	"SELECT round(size / 3), rank() OVER (ORDER BY size) FROM nodes",
	"SELECT hex(ext), name FROM nodes GROUP BY ext",
	"SELECT group_concat(a.name) FROM nodes a JOIN side s ON s.ext = a.ext",
	"SELECT n FROM (SELECT parent, count(*) n FROM nodes GROUP BY parent) WHERE parent "
	"= 2",
	"SELECT count(*) FROM (SELECT size FROM nodes ORDER BY size LIMIT 5)",
	"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 9) SELECT "
	"max(x) FROM n",
	"SELECT sum(size) OVER (ORDER BY ino ROWS 1 PRECEDING) FROM nodes",
	"SELECT count(*) FROM nodes WHERE size = name",
	"SELECT name FROM nodes n WHERE EXISTS (SELECT 1 FROM nodes c WHERE c.size < n.size)",
	"SELECT name, (SELECT c.name FROM nodes c WHERE c.parent = n.ino) FROM nodes n",
	"SELECT count(*) FROM bare WHERE EXISTS (SELECT 1 FROM bare x WHERE x.w = bare.w)",
	"SELECT name FROM nodes n WHERE EXISTS (SELECT 1 FROM nodes c WHERE c.parent = n.ino) "
	"LIMIT 3",
	"SELECT min(substr(name, 2)), min(substr(name, 3)), min(substr(name, 4)), "
	"min(substr(name, 5)), min(substr(name, 6)), min(substr(name, 7)), "
	"min(substr(name, 8)), min(substr(name, 9)), min(substr(name, 10)), "
	"min(substr(name, 11)), min(substr(name, 12)), min(substr(name, 13)), "
	"min(substr(name, 14)), min(substr(name, 15)), min(substr(name, 16)), "
	"min(substr(name, 17)), min(substr(name, 18)) FROM nodes", /* one more than there may be */
};

/* and parts of which the operators run. */
static const char *const parts[] = {
	"SELECT ext, count(*), rank() OVER (ORDER BY count(*)) FROM nodes GROUP BY ext",
	"SELECT hex(ext), count(*) AS n FROM nodes GROUP BY ext HAVING n > 1 ORDER BY "
	"abs(n)",
	"SELECT hex(type), sum(size) FROM nodes GROUP BY type",
	"SELECT type, ext, printf('%d of %q', max(size), min(name)) FROM nodes GROUP BY 1, 2",
	"SELECT round(avg(size), 1) FROM nodes",
	"SELECT name FROM nodes WHERE round(size, 1) > (SELECT avg(size) FROM nodes)",
	"SELECT (SELECT count(*) FROM nodes) - 1",
	"SELECT t, sum(n) OVER (ORDER BY t ROWS 2 PRECEDING) FROM (SELECT ext t, count(*) "
	"n FROM nodes GROUP BY ext)",
	"WITH w AS (SELECT ext, sum(size) s FROM nodes GROUP BY ext) SELECT hex(ext), s "
	"FROM w",
	"SELECT hex(a.name), rank() OVER (ORDER BY s.n) FROM nodes a JOIN side s ON "
	"s.ext = a.ext",
};

static void test_who_runs(void **state)
{
	(void)state;
	for (size_t i = 0; i < PFS_COUNT(operators); i++) {
		if (runner_of(operators[i]) != OPERATORS)
			fail_msg("not by operators: %s", operators[i]);
	}
	for (size_t i = 0; i < PFS_COUNT(parts); i++) {
		if (runner_of(parts[i]) != PARTS)
			fail_msg("not in parts: %s", parts[i]);
	}
	for (size_t i = 0; i < PFS_COUNT(sqlites); i++) {
		if (runner_of(sqlites[i]) != SQLITE)
			fail_msg("not by SQLite: %s", sqlites[i]);
	}
}

static int set_up(void **state)
{
	(void)state;
	open_random_tree();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close_random_tree();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_runs),
	};

	take_seed();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
