/* SPDX-License-Identifier: MIT */
#include "tests/ref/nested.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "tests/ref/random.h"

static uint64_t *state; /* of the statement being written */

static uint32_t below(uint32_t n)
{
	return random_below(state, n);
}

#define PICK(array) array[below(PFS_COUNT(array))]

/* ---- sub-selects: of a text t and two numbers, n and m ---- */

static void put_where(FILE *out, const char *word)
{
	static const char *const conditions[] = {
		"size > 100",	    "depth < 3",  "type = 'f'", "name GLOB '*1*'",
		"ext IS NOT NULL",  "uid <> 17",  "NOT size",	"under(ino, '/d1')",
		"size IN (0, 100)", "tag = 'red'"};

	if (below(3))
		(void)fprintf(out, " %s %s", word, PICK(conditions));
}

static void put_plain(FILE *out)
{
	static const char *const lists[] = {
		"name AS t, parent AS n, size AS m",
		"upper(substr(name, 1, 1)) AS t, instr(name, '1') AS n, size AS m",
		"replace(ext, 'c', 'd1') || '' AS t, depth AS n, NULL AS m",
		"ext t, ino n, depth + uid m",
		"type AS t, length(name) AS n, stars AS m",
		"tag AS t, size AS n, score AS m",
		"owner AS t, coalesce(stars, 3) AS n, CAST(size AS REAL) AS m",
		"'label' AS t, 7 AS n, size AS m",
		"name AS t, size > 50 AS n, NULL AS m",
		"path AS p, name AS t, size n, nlink m",
		"*, ext AS t, size AS n, uid AS m",
	};

	(void)fprintf(out, "SELECT %s FROM nodes", PICK(lists));
	put_where(out, "WHERE");
	if (below(6) == 0)
		(void)fputs(" ORDER BY size", out);
}

static void put_grouped(FILE *out)
{
	static const char *const lists[][2] = {
		{"ext AS t, count(*) AS n, sum(size) AS m", "ext"},
		{"max(name) AS t, parent AS n, count(DISTINCT uid) AS m", "parent"},
		{"type AS t, depth AS n, min(size) AS m", "type, depth"},
		{"tag AS t, uid AS n, max(stars) AS m", "1, 2"},
	};
	size_t which = below(PFS_COUNT(lists));

	(void)fprintf(out, "SELECT %s FROM nodes", lists[which][0]);
	put_where(out, "WHERE");
	(void)fprintf(out, " GROUP BY %s", lists[which][1]);
	if (below(3) == 0)
		(void)fprintf(out, " HAVING count(*) > %u", below(4));
}

static void put_few(FILE *out)
{
	static const char *const forms[] = {
		"SELECT DISTINCT ext AS t, depth AS n, uid AS m FROM nodes",
		"SELECT DISTINCT type AS t, size AS n, 5 AS m FROM nodes WHERE size < 5000",
		"SELECT k AS t, n, length(ext) AS m FROM side",
		"SELECT ext t, n, n * 2 m FROM side WHERE n > 1",
		"SELECT a.name AS t, s.n, a.size AS m FROM nodes a JOIN side s ON s.ext = a.ext",
		"SELECT a.name t, b.ino n, 0 m FROM nodes a LEFT JOIN nodes b ON b.ino = a.parent",
		"SELECT max(name) AS t, count(*) AS n, sum(size) AS m FROM nodes",
		"SELECT max(name) AS t, count(*) AS n, sum(size) AS m FROM nodes WHERE size < 0",
	};

	(void)fputs(PICK(forms), out);
}

static void put_values(FILE *out)
{
	static const char *const forms[] = {
		"SELECT 'c' AS t, 100 AS n, 3 AS m",
		"SELECT NULL AS t, 2 AS n, NULL AS m",
		"SELECT 'red' t, CAST(0 AS BIGINT) n, 4 m",
		"SELECT * FROM (VALUES ('c', 1, 0), ('d1', 100, 7), (NULL, 2, NULL), ('c', 1, 0))",
		"SELECT column1 AS t, column2 AS n, column3 AS m FROM (VALUES ('txt', 0, 5), ('f', "
		"4096, 5))",
		"SELECT column1 AS t, column2 AS n, column3 AS m FROM (VALUES ('d1', 1.5, -1), "
		"('d', 100.0, 0), ('', 2.0, NULL))",
		"VALUES ('c', 2, 3), ('d3', 17, 2), ('d3', 17, 2)",
	};

	(void)fputs(PICK(forms), out);
}

static void put_cut(FILE *out)
{
	static const char *const forms[] = {
		"SELECT name AS t, ino AS n, size AS m FROM nodes ORDER BY size DESC, ino",
		"SELECT ext AS t, count(*) AS n, depth AS m FROM nodes GROUP BY ext, depth ORDER "
		"BY n, "
		"t, m",
		"SELECT DISTINCT ext AS t, size AS n, 1 AS m FROM nodes ORDER BY 2, 1",
	};

	(void)fputs(PICK(forms), out);
	(void)fprintf(out, " LIMIT %u", below(40));
	if (below(3) == 0)
		(void)fprintf(out, " OFFSET %u", below(9));
}

static void put_nested(FILE *out, unsigned depth);

static void put_union(FILE *out, unsigned depth)
{
	static const char *const words[] = {" UNION ALL ", " UNION ", " INTERSECT ", " EXCEPT "};
	unsigned n = 2 + below(2) + (below(4) == 0), kinds = below(2) ? 1 : 1 + below(4);

	for (unsigned i = 0; i < n; i++) {
		(void)fputs(!i ? "" : words[below(kinds)], out);
		switch (below(5)) {
		case 0:
			put_grouped(out);
			break;
		case 1:
			put_few(out);
			break;
		case 2:
			(void)fputs("SELECT t, n, m FROM (", out);
			put_nested(out, depth);
			(void)fputc(')', out);
			break;
		case 3:
			put_values(out);
			break;
		default:
			(void)fprintf(out, "SELECT %s AS t, size, %s FROM nodes",
				      below(3) ? below(2) ? "name" : "ext" : "'part'",
				      below(3) ? "depth" : "7");
			put_where(out, "WHERE");
		}
	}
}

static void put_nested(FILE *out, unsigned depth)
{
	switch (depth ? below(8) : below(4)) {
	case 0:
	case 1:
		put_plain(out);
		break;
	case 2:
		put_grouped(out);
		break;
	case 3:
		below(2) ? put_few(out) : below(2) ? put_cut(out) : put_values(out);
		break;
	case 4:
	case 5:
		put_union(out, depth - 1);
		break;
	case 6:
		(void)fputs(below(2) ? "SELECT * FROM (" : "SELECT t, n + 1 AS n, m FROM (", out);
		put_nested(out, depth - 1);
		(void)fprintf(out, ")%s", below(2) ? " WHERE n > 2" : "");
		break;
	default:
		(void)fputs("WITH w AS (", out);
		put_nested(out, depth - 1);
		(void)fputs(") SELECT t, max(n) AS n, count(m) AS m FROM w GROUP BY t", out);
	}
}

/* ---- what is asked of them ---- */

static void put_condition(FILE *out)
{
	static const char *const conditions[] = {
		"x.n > 2",	 "x.m IS NOT NULL",  "x.t LIKE '%1%'",	    "x.t = 'c'",
		"x.n = 100",	 "x.m < x.n",	     "x.t IN ('c', 'd1')",  "x.n BETWEEN 1 AND 500",
		"x.t IS NULL",	 "upper(x.t) = 'C'", "instr(x.t, '1') = 2", "NOT x.m",
		"x.n + x.m > 7", "x.t > 'd'",	     "x.m = '100'",	    "x.n IN (2, 5)"};

	if (below(2))
		(void)fprintf(out, " WHERE %s", PICK(conditions));
}

/* Rows that are equal in all that they are ordered by are equal. */
static bool put_end(FILE *out, unsigned columns)
{
	if (below(2))
		return false;
	(void)fputs(" ORDER BY ", out);
	for (unsigned i = 0; i < columns; i++)
		(void)fprintf(out, "%s%u%s", i ? ", " : "", (i + columns / 2) % columns + 1,
			      below(2) ? " DESC" : "");
	if (below(2))
		(void)fprintf(out, " LIMIT %u", below(12));
	return true;
}

static bool put_question(FILE *out, const char *from)
{
	static const char *const groups[] = {
		"SELECT x.t, count(*), sum(x.n), max(x.m) FROM %s",
		"SELECT x.n, count(DISTINCT x.t), min(x.t) FROM %s",
		"SELECT upper(substr(x.t, 1, 1)), count(*), min(lower(x.t)) FROM %s",
		"SELECT x.n + 1, count(x.m) FROM %s",
	};
	static const char *const wholes[] = {
		"SELECT count(*), sum(x.n), min(x.t) FROM %s",
		"SELECT count(*) FROM %s",
		"SELECT avg(x.m), max(x.t), count(DISTINCT x.n) FROM %s",
	};
	static const char *const rows[] = {
		"SELECT DISTINCT x.t, x.n FROM %s",
		"SELECT x.t, x.n, x.m FROM %s",
		"SELECT DISTINCT x.m, x.n > 5 FROM %s",
		"SELECT x.n - x.m, x.t FROM %s",
	};
	const char *form;
	unsigned kind = below(4), columns;

	form = kind == 0 ? PICK(wholes) : kind == 1 ? PICK(rows) : PICK(groups);
	columns = 1;
	for (const char *c = form; *c; c++)
		columns += c[0] == ',' && c[1] == ' ';
	while (*form) {
		if (form[0] == '%') {
			(void)fputs(from, out);
			form += 2;
		} else {
			(void)fputc(*form++, out);
		}
	}
	put_condition(out);
	if (kind > 1)
		(void)fprintf(out, " GROUP BY 1%s", below(4) ? "" : " HAVING count(*) > 1");
	return kind != 0 && put_end(out, columns);
}

static const char *const joins[] = {
	"%s JOIN nodes a ON upper(a.name) = upper(x.t)",
	"%s JOIN nodes a ON substr(a.name, 2) = x.t",
	"nodes a LEFT JOIN %s ON x.t = lower(a.ext) AND substr(a.name, 1, 1) = 'f'",
	"%s JOIN nodes a ON a.ino = x.n",
	"nodes a JOIN %s ON x.t = a.name",
	"nodes a LEFT JOIN %s ON x.n = a.size",
	"%s LEFT JOIN side s ON s.ext = x.t",
	"side s JOIN %s ON s.n = x.n",
	"%s JOIN nodes a ON a.ext = x.t AND a.depth < x.n",
};

/* The source with the derived one in its place, allocated. */
static char *place(const char *derived)
{
	const char *form = below(3) ? "%s" : PICK(joins);
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (; *form; form++) {
		if (*form != '%') {
			(void)fputc(*form, out);
			continue;
		}
		(void)fputs(derived, out);
		form++;
	}
	(void)fclose(out);
	return text;
}

/* Rows that follow from the text. */
static bool ask_closed(FILE *out)
{
	static const char *const ends[] = {"LIMIT 30", "LIMIT 5 OFFSET 3", "WHERE v < 40",
					   "WHERE v < 3"};
	static const char *const lists[] = {
		"v AS n, 'd' || v AS t, v * 2 AS m",
		"v AS n, substr('fdc', v % 3 + 1, 1) AS t, NULL AS m",
		"v / 2 AS n, CASE v % 4 WHEN 1 THEN 'txt' ELSE 'f' || v END AS t, v * 1.5 AS m",
		"v AS n, CASE WHEN v < 9 THEN 'c' END AS t, CAST(v AS INTEGER) AS m",
		"v AS n, v || '' AS t, CASE WHEN v < 5 THEN v ELSE 'x' END AS m"};
	bool ordered;
	char *from;

	(void)fprintf(out,
		      "WITH RECURSIVE i(v) AS (SELECT 0 UNION ALL SELECT v + 1 FROM i %s), x AS "
		      "(SELECT %s FROM i%s) ",
		      PICK(ends), PICK(lists), below(3) ? "" : " WHERE v <> 4");
	from = place("x");
	ordered = put_question(out, from);
	free(from);
	return ordered;
}

static bool ask_with(FILE *out)
{
	static const char *const forms[][2] = {
		{"x", "x"},
		{"x(t, n, m)", "x"},
		{"w", "w AS x"},
		{"w", "w x JOIN w y ON x.n = y.n AND x.t = y.t"},
	};
	size_t which = below(PFS_COUNT(forms));
	bool ordered;
	char *from;

	(void)fprintf(out, "WITH %s AS (", forms[which][0]);
	put_nested(out, 2);
	(void)fputs(") ", out);
	from = place(forms[which][1]);
	ordered = put_question(out, from);
	free(from);
	return ordered;
}

static bool ask_from(FILE *out)
{
	char *derived, *from;
	bool ordered;
	size_t size;
	FILE *text = open_memstream(&derived, &size);

	(void)fputc('(', text);
	put_nested(text, 2);
	(void)fputs(below(2) ? ") x" : ") AS x", text);
	(void)fclose(text);
	from = place(derived);
	ordered = put_question(out, from);
	free(from);
	free(derived);
	return ordered;
}

void random_sub_select(FILE *out, uint64_t *seed)
{
	state = seed;
	put_nested(out, 2);
}

/* ---- the order of groups and sets, which is known ---- */

/* Some sub-select has a LIMIT, for which SQLite may run the whole: rows of nodes that it makes
 * distinct itself have ties as nodes come to it. */
static bool cuts;

/* Returns true for groups, of which SQLite keeps the ORDER BY whatever is asked of them, and sets,
 * of which it leaves it out below another one; false: nodes that an ORDER BY leaves tied. */
static bool put_keys(FILE *out)
{
	static const char *const forms[] = {
		"SELECT ext AS t, depth AS n, count(*) AS m FROM nodes%s GROUP BY ext, depth",
		"SELECT type AS t, size AS n, count(*) AS m FROM nodes%s GROUP BY size, type",
		"SELECT max(name) AS t, parent AS n, count(*) AS m FROM nodes%s GROUP BY parent",
		"SELECT ext AS t, uid AS n, 1 AS m FROM nodes UNION SELECT type, depth, 2 FROM "
		"nodes%s",
		"SELECT ext AS t, uid AS n, depth AS m FROM nodes INTERSECT SELECT ext, uid, "
		"depth FROM nodes%s",
		"SELECT DISTINCT ext AS t, depth AS n, uid AS m FROM nodes%s",
	};
	static const char *const conditions[] = {"", " WHERE size > 50", " WHERE depth < 3",
						 " WHERE size < (SELECT max(size) FROM nodes)"};
	uint32_t which = below((uint32_t)PFS_COUNT(forms) - cuts);
	const char *form = forms[which], *at = strchr(form, '%');

	(void)fprintf(out, "%.*s%s%s", (int)(at - form), form, PICK(conditions), at + 2);
	return which < 5;
}

/* Of groups that a LIMIT leaves the first ones of, others may be SQLite's. */
static bool put_member(FILE *out, bool is_first)
{
	bool is_wrapped = !is_first || below(4) == 0, is_ordered;

	(void)fputs(is_wrapped ? "SELECT t, n, m FROM (" : "", out);
	is_ordered = put_keys(out);
	if (is_wrapped && cuts && below(2))
		(void)fprintf(out, " LIMIT %u OFFSET %u", 1 + below(9), below(2));
	(void)fputs(is_wrapped ? ")" : "", out);
	return is_ordered && !is_wrapped;
}

static void put_known(FILE *out)
{
	static const char *const orders[] = {"", "", " ORDER BY n, t DESC", " ORDER BY m DESC"};
	unsigned n = below(3);

	if (put_member(out, true) && !n)
		(void)fputs(PICK(orders), out);
	while (n--) {
		(void)fputs(" UNION ALL ", out);
		(void)put_member(out, false);
	}
}

/* What a LIMIT, a window or a text shows of it, also where each of its rows is joined with others,
 * of which one at most, or none, shows. */
static void ask_known(FILE *out)
{
	static const struct {
		const char *form;
		bool is_one; /* a row, or a column */
		bool is_cut; /* as what a row is joined with comes in no order without a LIMIT */
	} heads[] = {
		{"SELECT * FROM (%)", false, false},
		{"SELECT * FROM (SELECT t, m, n + 1 FROM (%))", false, false},
		{"SELECT t, n FROM (%)", false, false},
		{"SELECT m, t FROM (SELECT n, t, m FROM (%) WHERE n > 0)", false, false},
		{"SELECT DISTINCT m FROM (%)", true, false},
		{"SELECT DISTINCT t, m FROM (%)", false, false},
		{"SELECT group_concat(n) FROM (%)", true, false},
		{"SELECT n, row_number() OVER () FROM (%)", false, false},
		{"SELECT n, m > (SELECT avg(size) FROM nodes) FROM (%)", false, false},
		{"SELECT x.n, a.name, x.m FROM (%) x LEFT JOIN nodes a ON a.ino = x.n", false,
		 false},
		{"SELECT x.m, a.depth, b.ino FROM (%) x LEFT JOIN nodes a ON a.ino = x.n LEFT JOIN "
		 "nodes b ON b.ino = a.parent AND b.size < 100",
		 false, false},
		{"SELECT x.m, x.t, x.n FROM (%) x CROSS JOIN nodes a ON a.ext = x.t", false, false},
		{"SELECT x.t, x.n FROM (%) x CROSS JOIN nodes a ON a.parent = x.n WHERE a.size > 9",
		 false, false},
		{"SELECT x.m, x.n FROM (%) x LEFT JOIN side s ON s.n = x.n AND x.m > 1", false,
		 false},
		{"SELECT x.n, x.t FROM (%) x LEFT JOIN nodes a ON a.ino = x.n WHERE a.size > 50",
		 false, false},
		{"SELECT x.n, h.m, h.k FROM (%) x LEFT JOIN (SELECT depth k, -max(ino) m, count(*) "
		 "c FROM nodes GROUP BY depth) h ON h.k = x.n",
		 false, false},
		{"SELECT x.t, x.n FROM (%) x CROSS JOIN (SELECT size k, count(*) c FROM nodes "
		 "GROUP BY size) h WHERE h.c = x.m",
		 false, false},
		{"SELECT x.t, s.k, s.n FROM (%) x LEFT JOIN side s ON s.ext = x.t", false, true},
		{"SELECT s.ext, x.m, s.k FROM (%) x CROSS JOIN side s ON s.n = x.n", false, true},
		{"SELECT b.v, x.t, c.w FROM (%) x LEFT JOIN bare b ON b.v = x.n LEFT JOIN cased c "
		 "ON c.v = b.v AND b.v > 1",
		 false, true},
		{"SELECT x.n, c.w FROM (%) x LEFT JOIN cased c ON c.v = x.m WHERE c.w IS NULL",
		 false, true},
		{"SELECT x.n, x.m FROM (%) x LEFT JOIN nodes a ON a.ino = x.n WHERE a.ext IS NULL",
		 false, false},
		{"SELECT x.n, x.t FROM (%) x LEFT JOIN nodes a ON a.ino = x.n AND a.depth > 1 "
		 "WHERE "
		 "a.size > 50 OR x.m > 2",
		 false, false},
	};
	static const char *const ends[] = {
		"", "", " ORDER BY 1", " ORDER BY 2", " ORDER BY 1 DESC", " ORDER BY 2 DESC"};
	size_t which = below(PFS_COUNT(heads));
	const char *form = heads[which].form, *at = strchr(form, '%');

	(void)fprintf(out, "%.*s", (int)(at - form), form);
	/* How many rows SQLite takes a set for, with others or in an order, depends on the table of
	 * nodes. */
	if (heads[which].is_cut)
		(void)put_member(out, true);
	else
		put_known(out);
	(void)fputs(at + 1, out);
	(void)fputs(heads[which].is_one ? ends[below(2)] : PICK(ends), out);
	if (heads[which].is_cut || below(4))
		(void)fprintf(out, " LIMIT %u", below(12));
}

/* The same of a compound itself. */
static void ask_members(FILE *out)
{
	static const char *const ends[] = {"", " ORDER BY 3", " ORDER BY 2 DESC",
					   " ORDER BY 3 DESC, 2"};

	put_known(out);
	(void)fputs(PICK(ends), out);
	(void)fprintf(out, " LIMIT %u", below(12));
}

bool random_known(FILE *out, uint64_t *seed)
{
	state = seed;
	cuts = below(3) == 0;
	below(4) ? ask_known(out) : ask_members(out);
	return true;
}

bool random_nested(FILE *out, uint64_t *seed)
{
	state = seed;
	switch (below(6)) {
	case 5:
		return ask_closed(out);
	case 0:
		put_union(out, 1);
		return put_end(out, 3);
	case 1:
		return ask_with(out);
	default:
		return ask_from(out);
	}
}
