/* SPDX-License-Identifier: MIT */
/* The statements of bench query: first those that the relational operators or a scan run
 * completely, then those that SQLite runs, or that they run in part.
 *
 * $ino and $path are a directory with about a tenth of all nodes below; $deep is the ino of a node
 * as deep as there is, and $wide of the directory with most children; $rare is a size that ten
 * nodes exceed; $prefix and $part are the options. */
#include "tools/bench/query.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"

/* Walks down the directory's subtree, one level a step. */
#define BELOW                                                                                      \
	"WITH RECURSIVE t(ino, level) AS (SELECT CAST($ino AS BIGINT), 0 UNION ALL "               \
	"SELECT n.ino, level + 1 FROM nodes n JOIN t ON n.parent = t.ino) "

const struct pfs_bench_question pfs_bench_questions[] = {
	{"a statement without rows of nodes", "SELECT 1", NULL, 0, NULL},
	{"name prefix, paths", "SELECT path FROM nodes WHERE name GLOB '$prefix*'", NULL, 1, NULL},
	{"part of a name, paths", "SELECT path FROM nodes WHERE name GLOB '*$part*'", NULL, 1,
	 NULL},
	{"rare size range, paths", "SELECT path FROM nodes WHERE size > $rare", NULL, 0.67, NULL},
	{"wide size range, counted and summed",
	 "SELECT count(*), sum(size) FROM nodes WHERE size BETWEEN 1000 AND 100000", NULL, 0.67,
	 NULL},
	{"all counted", "SELECT count(*) FROM nodes", NULL, 0.67, NULL},
	{"sum of sizes", "SELECT sum(size) FROM nodes", NULL, 0.67, NULL},
	{"distinct extensions", "SELECT DISTINCT ext FROM nodes", NULL, 0, NULL},
	{"grouped by extension, with sums",
	 "SELECT ext, count(*), sum(size) FROM nodes GROUP BY ext", NULL, 0.67, NULL},
	{"grouped by type, with sums", "SELECT type, count(*), sum(size) FROM nodes GROUP BY type",
	 NULL, 0.67, NULL},
	{"ten directories with most in them",
	 "SELECT parent, count(*), sum(size) FROM nodes GROUP BY parent ORDER BY 2 DESC, 1 LIMIT 10",
	 NULL, 0.67, NULL},
	{"joined with 1,000 owners, grouped",
	 "WITH RECURSIVE ids(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM ids LIMIT 1000), "
	 "owners(uid, team) AS MATERIALIZED (SELECT id, 'team ' || id % 7 FROM ids) "
	 "SELECT team, count(*), sum(size) FROM nodes JOIN owners USING (uid) GROUP BY team",
	 "SELECT team, count(*), sum(size) FROM nodes JOIN owners USING (uid) GROUP BY team", 0.67,
	 NULL},
	{"parents of what begins so, joined",
	 "SELECT count(*), count(DISTINCT d.ino) FROM nodes f JOIN nodes d ON f.parent = d.ino "
	 "WHERE f.name GLOB '$prefix*'",
	 NULL, 0.67, NULL},
	{"IN, a list of extensions",
	 "SELECT count(*), sum(size) FROM nodes WHERE ext IN ('c', 'h', 'py', 'so')", NULL, 0.67,
	 NULL},
	{"the ten largest", "SELECT path, size FROM nodes ORDER BY size DESC LIMIT 10", NULL, 0.67,
	 NULL},
	{"the first ten paths", "SELECT path FROM nodes ORDER BY path LIMIT 10", NULL, 0.67, NULL},
	{"ranked within folders, a window",
	 "SELECT max(r) FROM (SELECT rank() OVER (PARTITION BY parent ORDER BY size DESC) AS r "
	 "FROM nodes WHERE size > 100000)",
	 NULL, 0.67, NULL},
	{"a subtree counted", "SELECT count(*) FROM nodes WHERE under(ino, $ino)",
	 "SELECT 1 + count(*) FROM nodes WHERE path > $path || '/' AND path < $path || '0'", 1,
	 NULL},
	{"a subtree's total, kept", "SELECT subtree_count FROM nodes WHERE ino = $ino",
	 "SELECT 1 + count(*) FROM nodes WHERE path > $path || '/' AND path < $path || '0'", 1,
	 NULL},
	{"a subtree listed", "SELECT path FROM nodes WHERE under(ino, $ino)",
	 "SELECT path FROM nodes WHERE path >= $path AND path < $path || '0' "
	 "AND (path = $path OR path > $path || '/')",
	 1, NULL},
	{"ancestors", "SELECT ino FROM nodes WHERE ancestor_of(ino, $deep)",
	 "WITH RECURSIVE up(i) AS (SELECT parent FROM nodes WHERE ino = $deep UNION ALL "
	 "SELECT (SELECT parent FROM nodes WHERE ino = i) FROM up WHERE i IS NOT NULL) "
	 "SELECT i FROM up WHERE i IS NOT NULL",
	 1, NULL},
	{"children, names and sizes", "SELECT name, size FROM nodes WHERE parent = $wide", NULL, 1,
	 NULL},
	{"totals of every directory", "SELECT ino, subtree_size FROM nodes WHERE type = 'd'",
	 "WITH RECURSIVE up(a, s) AS (SELECT ino, CASE type WHEN 'd' THEN 0 ELSE size END "
	 "FROM nodes UNION ALL SELECT (SELECT parent FROM nodes WHERE ino = a), s FROM up "
	 "WHERE a IS NOT NULL) SELECT a, sum(s) FROM up WHERE a IN (SELECT ino FROM nodes WHERE type = 'd') GROUP BY a",
	 1, NULL},
	/* what SQLite runs, or ran */
	{"first rows of a size", "SELECT ino, size FROM nodes WHERE size > 1000 LIMIT 5", NULL, 0,
	 NULL},
	{"a node by its number", "SELECT name, size FROM nodes WHERE ino = $deep", NULL, 0, NULL},
	{"the first ten names of a directory",
	 "SELECT name FROM nodes WHERE parent = $wide ORDER BY name LIMIT 10", NULL, 0, NULL},
	{"a subtree by recursion, counted", BELOW "SELECT count(*) FROM t", NULL, 0, NULL},
	{"a subtree by recursion, by levels", BELOW "SELECT level, count(*) FROM t GROUP BY level",
	 NULL, 0, NULL},
	{"a subtree by recursion, joined",
	 BELOW "SELECT sum(n.size) FROM t JOIN nodes n ON n.ino = t.ino", NULL, 0, NULL},
	{"ancestors by recursion",
	 "WITH RECURSIVE up(i) AS (SELECT CAST($deep AS BIGINT) UNION ALL SELECT n.parent FROM nodes n JOIN up ON "
	 "n.ino = up.i WHERE n.parent IS NOT NULL) SELECT count(*) FROM up",
	 NULL, 0, NULL},
	{"numbers by recursion",
	 "WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i WHERE v < 20000) SELECT "
	 "sum(v) FROM i",
	 NULL, 0, NULL},
	{"row_number of all by size",
	 "SELECT max(ino) FROM (SELECT ino, row_number() OVER (ORDER BY size DESC, ino) AS r FROM "
	 "nodes) WHERE r <= 10",
	 NULL, 0, NULL},
	{"rank within folders, all",
	 "SELECT max(r) FROM (SELECT rank() OVER (PARTITION BY parent ORDER BY size DESC) AS r FROM "
	 "nodes)",
	 NULL, 0, NULL},
	{"the largest of each folder",
	 "SELECT count(*), sum(size) FROM (SELECT size, row_number() OVER (PARTITION BY parent ORDER "
	 "BY size DESC, ino) AS r FROM nodes WHERE size > 10000) WHERE r = 1",
	 NULL, 0, NULL},
	{"running sums within folders",
	 "SELECT max(s) FROM (SELECT sum(size) OVER (PARTITION BY parent ORDER BY ino) AS s FROM "
	 "nodes WHERE size > 10000)",
	 NULL, 0, NULL},
	{"shares of folders",
	 "SELECT max(1.0 * size / s) FROM (SELECT size, sum(size) OVER (PARTITION BY parent) AS s "
	 "FROM nodes WHERE size > 10000)",
	 NULL, 0, NULL},
	{"lag by size",
	 "SELECT max(size - before) FROM (SELECT size, lag(size) OVER (ORDER BY size, ino) AS before "
	 "FROM nodes WHERE size > 10000)",
	 NULL, 0, NULL},
	{"quarters by size",
	 "SELECT q, count(*), min(size) FROM (SELECT size, ntile(4) OVER (ORDER BY size, ino) AS q "
	 "FROM nodes WHERE size > 10000) GROUP BY q",
	 NULL, 0, NULL},
	{"directories where something large is",
	 "SELECT count(*) FROM nodes d WHERE type = 'd' AND EXISTS (SELECT 1 FROM nodes f WHERE "
	 "f.parent = d.ino AND f.size > 1000000)",
	 NULL, 0, NULL},
	{"children counted for each directory",
	 "SELECT max((SELECT count(*) FROM nodes c WHERE c.parent = d.ino)) FROM nodes d WHERE type "
	 "= 'd'",
	 NULL, 0, NULL},
	{"names that files and directories have",
	 "SELECT count(*) FROM (SELECT name FROM nodes WHERE type = 'f' INTERSECT SELECT name FROM "
	 "nodes WHERE type = 'd')",
	 NULL, 0, NULL},
	{"directories without children",
	 "SELECT count(*) FROM (SELECT ino FROM nodes WHERE type = 'd' EXCEPT SELECT parent FROM "
	 "nodes)",
	 NULL, 0, NULL},
	{"NOT IN, a sub-select",
	 "SELECT count(*) FROM nodes WHERE type = 'd' AND ino NOT IN (SELECT parent FROM nodes WHERE "
	 "parent IS NOT NULL)",
	 NULL, 0, NULL},
	{"nodes that a few numbers name",
	 "SELECT count(*), sum(size) FROM nodes WHERE ino IN (SELECT parent FROM nodes WHERE size > $rare)",
	 NULL, 0, NULL},
	{"children that a few numbers name",
	 "SELECT count(*), sum(size) FROM nodes WHERE parent IN (SELECT parent FROM nodes WHERE size > $rare)",
	 NULL, 0, NULL},
	{"grouped by a first letter",
	 "SELECT upper(substr(name, 1, 1)) AS c, count(*) FROM nodes GROUP BY c", NULL, 0, NULL},
	{"names taken apart", "SELECT count(*) FROM nodes WHERE replace(name, 'a', '') = name",
	 NULL, 0, NULL},
	{"a part of names, by instr", "SELECT count(*) FROM nodes WHERE instr(name, '$part') > 0",
	 NULL, 0, NULL},
	{"a pattern with ESCAPE", "SELECT count(*) FROM nodes WHERE name LIKE '%!_%' ESCAPE '!'",
	 NULL, 0, NULL},
	{"aggregates with FILTER",
	 "SELECT count(*) FILTER (WHERE size > 1000), sum(size) FILTER (WHERE type = 'f') FROM nodes",
	 NULL, 0, NULL},
	{"names in one text",
	 "SELECT length(group_concat(name, ',')) FROM nodes WHERE size > 100000", NULL, 0, NULL},
	{"printed numbers", "SELECT count(DISTINCT printf('%d kB', size / 1000)) FROM nodes", NULL,
	 0, "SELECT count(DISTINCT printf('%d kB', size // 1000)) FROM nodes"},
	{"longest names", "SELECT name FROM nodes ORDER BY length(name) DESC, name LIMIT 10", NULL,
	 0, NULL},
	{"VALUES, joined",
	 "WITH v(e) AS (VALUES ('c'), ('h'), ('py')) SELECT e, count(*) FROM v JOIN nodes ON ext = e "
	 "GROUP BY e",
	 NULL, 0, NULL},
	{"JSON of large files",
	 "SELECT length(json_group_array(json_object('name', name, 'size', size))) FROM (SELECT name, size "
	 "FROM nodes ORDER BY size DESC LIMIT 10000)",
	 NULL, 0, ""},
	{"sizes beside each other, an inequality",
	 "SELECT count(*) FROM (SELECT size FROM nodes ORDER BY size DESC LIMIT 300) a JOIN (SELECT "
	 "size FROM nodes ORDER BY size DESC LIMIT 300) b ON a.size < b.size",
	 NULL, 0, NULL},
	{"a total and an average",
	 "SELECT total(size), round(avg(size), 2) FROM nodes WHERE type = 'f'", NULL, 0,
	 "SELECT sum(size)::DOUBLE, round(avg(size), 2) FROM nodes WHERE type = 'f'"},
};

const size_t pfs_bench_n_questions = PFS_COUNT(pfs_bench_questions);

int pfs_bench_fill_in(char *out, size_t size, const char *sql, const char *const (*words)[2],
		      size_t n)
{
	size_t len = 0;

	while (*sql && len < size - 1) {
		size_t i = 0;

		while (i < n && strncmp(sql, words[i][0], strlen(words[i][0])) != 0)
			i++;
		if (i == n) {
			out[len++] = *sql++;
			continue;
		}
		len += (size_t)snprintf(out + len, size - len, "%s", words[i][1]);
		sql += strlen(words[i][0]);
	}
	out[PFS_MIN(len, size - 1)] = 0;
	return len < size - 1 ? 0 : -E2BIG;
}
