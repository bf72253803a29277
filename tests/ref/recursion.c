/* SPDX-License-Identifier: MIT */
#include "tests/ref/recursion.h"

#include "base/err.h"
#include "tests/ref/random.h"

static uint64_t *state; /* of the statement being written */

static uint32_t below(uint32_t n)
{
	return random_below(state, n);
}

#define PICK(array) array[below(PFS_COUNT(array))]

/* What it begins with: a number, and what the steps make of it. */
static void put_first(FILE *out)
{
	static const char *const firsts[] = {
		"SELECT 2, 0",
		"SELECT CAST(2 AS BIGINT), 0",
		"VALUES (2, 0)",
		"VALUES (2, 1), (2, 2), (NULL, 3), (3, 4)",
		"SELECT ino, depth FROM nodes WHERE type = 'd' AND size < 5000",
		"SELECT ino, size FROM nodes WHERE depth < 3",
		"SELECT max(ino), count(*) FROM nodes GROUP BY type",
		"SELECT min(ino), 9007199254740993 FROM nodes",
		"SELECT ino, 0 FROM nodes WHERE ino = 2",
		"SELECT n, 1 FROM side",
		"SELECT 2.0, 0",
		"SELECT 2, 0.5",
		"SELECT 2, NULL",
		"SELECT '2', 0",
		"SELECT ino, 0 FROM nodes WHERE size < 0",
		"SELECT ino, 0 FROM nodes WHERE depth = 1 UNION ALL VALUES (2, 1)",
	};

	(void)fputs(firsts[below(below(3) ? 9 : PFS_COUNT(firsts))], out);
}

static void put_step(FILE *out)
{
	static const char *const made[] = {"b + 1",
					   "t.b",
					   "n.size",
					   "n.depth",
					   "b * 2",
					   "n.uid + b",
					   "b",
					   "n.parent",
					   "n.size + t.b",
					   "t.a - n.parent",
					   "coalesce(b, 0) + 1"};
	static const char *const rare[] = {"n.name", "n.stars", "n.size / 2.5", "NULL", "n.path"};
	static const char *const froms[] = {
		"nodes n JOIN t ON n.parent = t.a", "t JOIN nodes n ON t.a = n.parent",
		"nodes n, t WHERE n.parent = a", "t, nodes n WHERE a = n.parent",
		"t AS t JOIN nodes AS n ON parent = a"};
	static const char *const conditions[] = {
		"n.type = 'd'", "n.size < 5000", "b < 4",	    "n.name LIKE '%1%'",
		"n.depth > b",	"b IS NOT NULL", "n.stars IS NULL", "n.size + b <> 100"};
	bool has_where;
	uint32_t from = below(PFS_COUNT(froms));

	if (below(14) == 0) {
		(void)fprintf(
			out,
			"SELECT n.parent, %s FROM nodes n JOIN t ON n.ino = t.a WHERE n.parent > 0",
			PICK(made));
		return;
	}
	(void)fprintf(out, "SELECT %s, %s FROM ", below(12) ? "n.ino" : "n.ino + 0",
		      below(8) ? PICK(made) : PICK(rare));
	(void)fputs(froms[from], out);
	has_where = from == 2 || from == 3;
	if (below(2))
		(void)fprintf(out, " %s %s", has_where ? "AND" : "WHERE", PICK(conditions));
}

bool random_recursion(FILE *out, uint64_t *seed)
{
	static const char *const asked[] = {
		"SELECT count(*), sum(a), min(b), max(b) FROM t",
		"SELECT b, count(*), sum(a) FROM t GROUP BY b",
		"SELECT count(*), sum(n.size), max(t.b) FROM t JOIN nodes n ON n.ino = t.a",
		"SELECT n.type, count(*), sum(b) FROM nodes n JOIN t ON n.ino = t.a GROUP BY 1",
		"SELECT DISTINCT b FROM t",
		"SELECT n.name, x.b FROM t x JOIN nodes n ON n.ino = x.a WHERE n.size > 50",
		"SELECT x.b, y.b, count(*) FROM t x JOIN t y ON x.a = y.a GROUP BY 1, 2",
		"SELECT n.ext, count(t.a) FROM nodes n LEFT JOIN t ON t.a = n.ino GROUP BY n.ext",
		"SELECT count(*) FROM nodes WHERE ino IN (SELECT a FROM t)",
		"SELECT a, b FROM t",
	};
	static const char *const ordered[] = {
		"SELECT a, b FROM t ORDER BY a, b",
		"SELECT b, count(*) FROM t GROUP BY b ORDER BY 2 DESC, 1 LIMIT 5",
		"SELECT t.a, n.name, b FROM t JOIN nodes n ON n.ino = t.a ORDER BY 1, 2, 3",
	};
	bool is_ordered;

	state = seed;
	is_ordered = below(4) == 0;
	(void)fputs("WITH RECURSIVE t(a, b) AS (", out);
	put_first(out);
	(void)fprintf(out, " UNION %s", below(8) ? "ALL " : "");
	put_step(out);
	(void)fputs(below(20) ? ") " : " ORDER BY 2, 1) ", out);
	(void)fputs(is_ordered ? PICK(ordered) : PICK(asked), out);
	return is_ordered;
}
