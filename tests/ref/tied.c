/* SPDX-License-Identifier: MIT */
#include "tests/ref/tied.h"

#include "base/err.h"
#include "tests/ref/random.h"

static uint64_t *state; /* of the statement being written */

static uint32_t below(uint32_t n)
{
	return random_below(state, n);
}

#define PICK(array) array[below(PFS_COUNT(array))]

/* ---- the sub-select, of a table x, tied to a node n ---- */

static const char *const node_ties[] = {
	"x.parent = n.ino",	  "n.ino = x.parent",	    "x.ino = n.parent",
	"x.parent = n.parent",	  "x.ext = n.ext",	    "n.name = x.ext",
	"x.size = n.size",	  "x.tag = n.ext",	    "x.stars = n.stars",
	"x.score = n.size",	  "x.uid = n.depth",	    "x.parent = n.parent AND n.ext = x.ext",
	"x.depth = n.depth + 1",  "x.size < n.size",	    "x.type = n.type AND x.uid = n.uid",
	"x.name = upper(n.name)", "lower(x.name) = n.name", "x.parent IS n.parent",
	"x.size + 1 = n.size",	  "x.owner = n.tag",	    "parent = n.ino",
	"x.ino = n.ino",	  "x.size = n.name",	    "x.ext = n.stars"};
static const char *const side_ties[] = {
	"x.ext = n.ext", "n.uid = x.n",	   "k = name",	       "x.k = n.name",
	"x.n = n.stars", "x.n = size",	   "n.tag = k",	       "x.ext = n.ext AND x.n = n.uid",
	"x.n = n.ext",	 "\"k\" = n.name", "n.name = \"name\"", "x.n = n.ino",
	"n.parent = x.n"};
static const char *const bare_ties[] = {"x.v = n.size",
					"x.w = n.ext",
					"n.ext = x.w",
					"x.x = n.ext",
					"v = n.uid",
					"n.tag = x.w",
					"x.w = n.ext AND x.v = n.uid"};
static const char *const made_ties[] = {"x.t = n.ext", "n.size = x.m", "x.m = n.parent",
					"x.t = n.name AND m > 3"};

static const struct {
	const char *from;
	const char *const *ties;
	uint32_t n_ties;
	const char *columns[5], *conditions[3], *texts[2];
} tables[] = {
	{"nodes x",
	 node_ties,
	 PFS_COUNT(node_ties),
	 {"x.size", "x.ino", "x.parent", "x.ext", "x.stars"},
	 {"x.size > 50", "x.name LIKE '%1%'", "x.parent IS NOT NULL"},
	 {"x.ext", "x.name"}},
	{"nodes x",
	 node_ties,
	 PFS_COUNT(node_ties),
	 {"x.depth", "x.name", "x.score", "x.tag", "x.uid"},
	 {"x.type = 'd'", "x.stars NOT NULL", "x.tag IS NOT NULL"},
	 {"x.name", "x.tag"}},
	{"side x",
	 side_ties,
	 PFS_COUNT(side_ties),
	 {"x.n", "x.k", "x.ext", "n", "k"},
	 {"x.n > 1", "x.n IS NOT NULL", "k IS NOT NULL"},
	 {"x.k", "ext"}},
	{"bare x",
	 bare_ties,
	 PFS_COUNT(bare_ties),
	 {"x.v", "x.w", "x.x", "v", "w"},
	 {"x.v <> 2", "x.w IS NOT NULL", "v < 0"},
	 {"x.w", "x.x"}},
	{"(SELECT ext AS t, max(size) AS m FROM nodes GROUP BY ext) x",
	 made_ties,
	 PFS_COUNT(made_ties),
	 {"x.t", "x.m", "m", "t", "m + 1"},
	 {"m > 100", "t IS NOT NULL", "x.m < 0"},
	 {"x.t", "t"}},
	{"nodes x JOIN side s ON s.ext = x.ext",
	 node_ties,
	 PFS_COUNT(node_ties),
	 {"s.n", "x.size", "x.ino", "k", "x.name"},
	 {"s.n > 1", "x.size > 5", "k IS NOT NULL"},
	 {"k", "x.name"}},
};

/* FROM and WHERE. */
static void put_source(FILE *out, uint32_t table, bool is_tied)
{
	const char *const *conditions = tables[table].conditions;

	(void)fprintf(out, " FROM %s", tables[table].from);
	if (is_tied)
		(void)fprintf(out, " WHERE %s", tables[table].ties[below(tables[table].n_ties)]);
	if (below(2))
		(void)fprintf(out, " %s %s", is_tied ? "AND" : "WHERE", conditions[below(3)]);
}

static void put_exists(FILE *out)
{
	static const char *const results[] = {"1",	   "*",	       "NULL",
					      "x.rowid",   "count(*)", "2 + 3",
					      "1 AS size", "2 name",   "x.rowid AS tag"};
	uint32_t table = below(PFS_COUNT(tables));

	(void)fprintf(out, "%sEXISTS (SELECT %s", below(3) ? "" : "NOT ",
		      below(6) ? PICK(results) : tables[table].columns[0]);
	put_source(out, table, below(6));
	(void)fprintf(out, "%s)", below(8) ? "" : below(4) ? " LIMIT 1" : " LIMIT 0");
}

static void put_in(FILE *out)
{
	static const char *const numbers[] = {"n.ino",	 "n.parent",  "n.size", "n.stars",
					      "n.score", "n.uid + 0", "5"};
	static const char *const texts[] = {"n.ext", "name", "n.tag", "n.type"};
	static const char *const ends[] = {"",
					   "",
					   "",
					   "",
					   " ORDER BY 1 LIMIT 3",
					   " ORDER BY 1",
					   " UNION SELECT '100'",
					   " GROUP BY 1",
					   " UNION ALL SELECT name FROM nodes"};
	uint32_t table = below(PFS_COUNT(tables));
	bool is_text = below(2);

	(void)fprintf(out, "%s %sIN (SELECT %s%s%s", is_text ? PICK(texts) : PICK(numbers),
		      below(2) ? "" : "NOT ", below(6) ? "" : "DISTINCT ",
		      is_text == (below(6) > 0) ? PICK(tables[table].texts)
						: PICK(tables[table].columns),
		      below(12) ? "" : " COLLATE NOCASE");
	put_source(out, table, below(3) == 0);
	(void)fprintf(out, "%s)", PICK(ends));
}

static void put_value(FILE *out, bool may_be_tied)
{
	static const char *const aggregates[] = {
		"count(*)",	    "count(%s)",
		"sum(%s)",	    "max(%s)",
		"min(%s)",	    "avg(%s)",
		"total(%s)",	    "count(DISTINCT %s)",
		"max(%s) + 1",	    "count(*) FILTER (WHERE %s > 1)",
		"max(%s) - min(%s)"};
	uint32_t table = below(PFS_COUNT(tables));
	const char *of = PICK(tables[table].columns);

	if (may_be_tied && below(6) == 0) {
		static const char *const own[] = {"name", "size", "parent",	"x.tag",
						  "ext",  "path", "x.stars * 2"};

		(void)fprintf(out, "(SELECT %s FROM nodes x WHERE %s)", PICK(own),
			      below(2) ? "x.ino = n.parent" : "n.ino = x.ino AND x.size > 10");
		return;
	}
	(void)fputs("(SELECT ", out);
	for (const char *c = PICK(aggregates); *c; c++) {
		if (c[0] == '%' && c[1] == 's') {
			(void)fputs(of, out);
			c++;
		} else {
			(void)fputc(*c, out);
		}
	}
	put_source(out, table, may_be_tied && below(3));
	(void)fputs(below(12) ? ")" : " LIMIT 1)", out);
}

/* ---- the statement ---- */

static void put_condition(FILE *out, unsigned depth)
{
	static const char *const comparisons[] = {"> 2",       "= 0",		"IS NULL",
						  "<> n.size", "< n.size",	"BETWEEN 1 AND 200",
						  "= n.name",  "+ 1 > n.depth", "IN (1, 2, 100)"};
	static const char *const plain[] = {"n.size > 20", "n.type = 'f'", "n.ext IS NOT NULL",
					    "n.depth < 3", "under(n.ino, '/d1')"};

	switch (below(depth ? 9 : 6)) {
	case 0:
	case 1:
		put_exists(out);
		break;
	case 2:
	case 3:
		put_in(out);
		break;
	case 4:
		put_value(out, true);
		(void)fprintf(out, " %s", PICK(comparisons));
		break;
	case 5:
		(void)fputs(PICK(plain), out);
		break;
	case 6:
		(void)fputs("NOT (", out);
		put_condition(out, depth - 1);
		(void)fputc(')', out);
		break;
	default:
		(void)fputc('(', out);
		put_condition(out, depth - 1);
		(void)fputs(below(3) ? " AND " : " OR ", out);
		put_condition(out, depth - 1);
		(void)fputc(')', out);
	}
}

/* ORDER BY all of so many columns. */
static bool put_end(FILE *out, unsigned columns)
{
	if (below(2))
		return false;
	(void)fputs(" ORDER BY ", out);
	for (unsigned i = columns; i; i--)
		(void)fprintf(out, "%s%u%s", i < columns ? ", " : "", i, below(3) ? "" : " DESC");
	if (below(3) == 0)
		(void)fprintf(out, " LIMIT %u", below(9));
	return true;
}

static bool put_rows(FILE *out, const char *from)
{
	unsigned n = below(3);

	(void)fputs(below(4) ? "SELECT n.ino, n.name" : "SELECT DISTINCT n.depth, n.ext", out);
	for (unsigned i = n; i; i--) {
		(void)fputs(", ", out);
		below(4) ? put_value(out, true) : put_condition(out, 0);
	}
	(void)fprintf(out, " FROM %s", from);
	if (below(2)) {
		(void)fputs(" WHERE ", out);
		put_condition(out, 2);
	}
	return put_end(out, 2 + n);
}

static bool put_groups(FILE *out, const char *from)
{
	(void)fputs("SELECT n.ext, count(*)", out);
	if (below(2)) {
		(void)fputs(" * 100 / ", out);
		put_value(out, false);
	}
	(void)fprintf(out, " FROM %s", from);
	if (below(2)) {
		(void)fputs(" WHERE ", out);
		put_condition(out, 2);
	}
	(void)fputs(" GROUP BY n.ext", out);
	if (below(3) == 0) {
		(void)fputs(" HAVING count(*) > ", out);
		put_value(out, false);
	}
	return put_end(out, 2);
}

bool random_tied(FILE *out, uint64_t *seed)
{
	static const char *const froms[] = {"nodes n",
					    "nodes n",
					    "nodes n",
					    "nodes n JOIN side t ON t.ext = n.ext",
					    "nodes n LEFT JOIN side t ON t.n = n.uid",
					    "(SELECT * FROM nodes WHERE size < 5000) n"};
	const char *from;

	state = seed;
	from = PICK(froms);
	switch (below(4)) {
	case 0:
		return put_rows(out, from);
	case 1:
		return put_groups(out, from);
	default:
		(void)fprintf(out, "SELECT count(*), sum(n.size), max(n.name) FROM %s WHERE ",
			      from);
		put_condition(out, 2);
		return false;
	}
}
