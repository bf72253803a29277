/* SPDX-License-Identifier: MIT */
#include "tests/ref/parts.h"

#include "base/err.h"
#include "tests/ref/nested.h"
#include "tests/ref/random.h"

static uint64_t *state; /* of the statement being written */

static uint32_t below(uint32_t n)
{
	return random_below(state, n);
}

#define PICK(array) array[below(PFS_COUNT(array))]

/* ---- a SELECT around columns t, n and m of x ---- */

/* What is equal in the order of a window has equal values. */
static const char *const values[] = {
	"upper(x.t)",
	"x.t || '!'",
	"typeof(x.n)",
	"typeof(x.m)",
	"round(x.n / 3.0, 2)",
	"quote(x.t)",
	"x.n = x.t",
	"x.t < x.m",
	"x.n = '2'",
	"x.m = x.t || ''",
	"x.t = x.n + 0",
	"x.n IN ('1', '2', 'c')",
	"x.t IN (1, 2, 5)",
	"CASE x.t WHEN x.n THEN 'same' ELSE x.n || '' END",
	"max(x.n, x.t)",
	"nullif(x.t, x.n)",
	"rank() OVER (ORDER BY x.n)",
	"dense_rank() OVER (PARTITION BY x.t ORDER BY x.m DESC)",
	"sum(x.n) OVER (PARTITION BY x.t)",
	"count(*) OVER (ORDER BY x.t)",
	"max(x.m) OVER (ORDER BY x.n)",
	"first_value(x.n) OVER (ORDER BY x.n)",
	"(SELECT count(*) FROM nodes)",
	"(SELECT max(n) FROM side)",
	"(SELECT sum(size) FROM nodes WHERE type = 'f')",
	"(SELECT count(*) FROM side s WHERE s.n = x.n)",
	"x.n IN (SELECT n FROM side GROUP BY n)",
	"x.t IN (SELECT ext FROM nodes GROUP BY ext HAVING count(*) > 1)",
	"x.n = (SELECT count(*) FROM side)",
	"x.t = (SELECT min(name) FROM nodes WHERE depth > 1)",
	"x.t IN (SELECT v FROM bare GROUP BY v)",
	"x.n IN (SELECT x FROM bare GROUP BY x)",
	"x.t IN (SELECT w FROM bare GROUP BY w)",
	"x.n = (SELECT count(*) || '' FROM bare)",
};

static const char *const conditions[] = {
	"x.n > 2",
	"x.t = x.n",
	"x.n = '2'",
	"x.m = '100'",
	"upper(x.t) > 'D'",
	"x.n IN (SELECT count(*) FROM nodes GROUP BY parent)",
	"EXISTS (SELECT 1 FROM side s WHERE s.n = x.n)",
	"x.t NOT IN (SELECT ext FROM side WHERE ext IS NOT NULL GROUP BY ext)",
};

static void put_sources(FILE *out, const char *source)
{
	static const char *const joins[] = {
		" JOIN nodes a ON a.ino = x.n",
		" LEFT JOIN side s ON s.ext = x.t",
		" JOIN side s ON s.n = x.n",
		" JOIN (SELECT v, count(*) c FROM bare GROUP BY v) s ON s.v = x.t",
		" JOIN (SELECT x AS v, count(*) c FROM bare GROUP BY x) s ON s.v = x.n",
		" JOIN (SELECT v, count(*) c FROM bare GROUP BY v) s ON s.c = x.t",
		" JOIN (SELECT DISTINCT w FROM bare) s ON s.w = x.t",
		" LEFT JOIN (SELECT ext e, count(*) c FROM nodes GROUP BY ext) s ON s.e = x.t",
	};

	(void)fprintf(out, " FROM %s", source);
	if (below(3) == 0)
		(void)fputs(PICK(joins), out);
}

static void put_question(FILE *out, const char *source)
{
	unsigned n = 1 + below(3);

	(void)fprintf(out, "SELECT%s ", below(5) ? "" : " DISTINCT");
	for (unsigned i = 0; i < n; i++)
		(void)fprintf(out, "%s%s", i ? ", " : "", PICK(values));
	put_sources(out, source);
	if (below(2))
		(void)fprintf(out, " WHERE %s", PICK(conditions));
}

static void ask_from(FILE *out)
{
	(void)fputs("SELECT * FROM (SELECT x.*, ", out);
	(void)fputs(PICK(values), out);
	(void)fputs(" AS v FROM (", out);
	random_sub_select(out, state);
	(void)fputs(") x) y", out);
	if (below(2))
		(void)fputs(" WHERE y.v IS NOT NULL", out);
}

static void ask_with(FILE *out)
{
	bool is_named = below(2);

	(void)fprintf(out, "WITH w%s AS (", is_named ? "(t, n, m)" : "");
	random_sub_select(out, state);
	(void)fputs(")", out);
	if (below(2))
		(void)fputs(", x AS (SELECT t, max(n) AS n, count(m) AS m FROM w GROUP BY t) ",
			    out);
	else
		(void)fputs(", x AS (SELECT t, n, m FROM w) ", out);
	put_question(out, below(3) ? "x" : "w AS x");
}

/* ---- compounds ---- */

static void put_arm(FILE *out)
{
	static const char *const arms[] = {
		"SELECT ext, count(*), max(size) FROM nodes GROUP BY ext",
		"SELECT name, depth, 0 FROM nodes GROUP BY name, depth",
		"SELECT max(name), uid, sum(size) FROM nodes GROUP BY uid",
		"SELECT DISTINCT ext, depth, uid FROM nodes",
		"SELECT k, n, length(ext) FROM side",
		"SELECT t, n, m FROM (SELECT type t, depth n, min(size) m FROM nodes GROUP BY 1, 2)",
		"SELECT upper(ext), count(*), sum(n) FROM side GROUP BY ext",
		"VALUES ('c', 2, 100), ('d1', 1, NULL)",
	};

	(void)fputs(PICK(arms), out);
}

static void ask_compound(FILE *out)
{
	static const char *const words[] = {" INTERSECT ", " EXCEPT ", " UNION ", " UNION ALL "};
	unsigned n = 2 + below(2);

	put_arm(out);
	while (--n) {
		(void)fputs(PICK(words), out);
		put_arm(out);
	}
}

/* Each %s is the key. */
static void put_form(FILE *out, const char *form, const char *key)
{
	for (; *form; form++) {
		bool is_key = form[0] == '%' && form[1] == 's';

		(void)fprintf(out, is_key ? "%s" : "%.1s", is_key ? key : form);
		form += is_key || (form[0] == '%' && form[1] == '%');
	}
}

/* ---- groups and joins with more than operators have around them ---- */

static void put_where(FILE *out)
{
	static const char *const wheres[] = {"type = 'f'", "size > 100", "depth < 3",
					     "name GLOB '*1*'", "ext IS NOT NULL"};

	if (below(2))
		(void)fprintf(out, " WHERE %s", PICK(wheres));
}

static void ask_grouped(FILE *out)
{
	static const char *const keys[] = {"ext", "type", "depth", "tag", "uid", "parent"};
	static const char *const results[] = {
		"upper(%s)",
		"count(*) || ''",
		"round(avg(size), 1)",
		"rank() OVER (ORDER BY count(*) DESC)",
		"sum(sum(size)) OVER (ORDER BY %s)",
		"count(*) OVER ()",
		"sum(size) > '100'",
		"typeof(max(%s))",
		"max(name) = count(*)",
		"%s = count(*)",
		"coalesce(%s, 'none')",
		"printf('%%d', max(size))",
		"%s IS 'c'",
		"-count(*)",
	};
	static const char *const havings[] = {"count(*) > 1", "n > 1", "upper(%s) > 'D'",
					      "max(name) <> %s", "abs(sum(size)) > 10"};
	const char *key = PICK(keys);
	unsigned n = 1 + below(3);

	(void)fprintf(out, "SELECT %s, count(*) AS n", key);
	for (unsigned i = 0; i < n; i++) {
		(void)fputs(", ", out);
		put_form(out, PICK(results), key);
	}
	(void)fputs(" FROM nodes", out);
	put_where(out);
	(void)fprintf(out, " GROUP BY %s", below(3) ? key : "1");
	if (below(2)) {
		(void)fputs(" HAVING ", out);
		put_form(out, PICK(havings), key);
	}
}

static bool end_grouped(FILE *out)
{
	if (below(2))
		return false;
	(void)fprintf(out, " ORDER BY %s, 1", below(2) ? "n DESC" : "abs(n)");
	if (below(2))
		(void)fprintf(out, " LIMIT %u", below(12));
	return true;
}

static void ask_joined(FILE *out)
{
	static const char *const results[] = {
		"upper(s.k)",
		"a.name || s.n",
		"rank() OVER (ORDER BY a.size)",
		"a.size = s.k",
		"a.path",
		"s.n = a.ext",
		"sum(s.n) OVER (PARTITION BY a.ext)",
		"count(*) OVER ()",
		"round(s.n, 1)",
		"a.name",
		"s.n + a.depth",
	};
	static const char *const froms[] = {
		"nodes a JOIN side s ON s.ext = a.ext",
		"side s JOIN nodes a ON s.k = a.name",
		"nodes a LEFT JOIN side s ON s.n = a.depth",
	};
	unsigned n = 1 + below(3);

	for (unsigned i = 0; i < n; i++)
		(void)fprintf(out, "%s %s", i ? "," : "SELECT", PICK(results));
	(void)fprintf(out, ", upper(a.type) AS kind FROM %s", PICK(froms));
	if (below(2))
		(void)fputs(" WHERE a.size > 100", out);
	if (below(3) == 0)
		(void)fputs(" ORDER BY kind, a.name", out);
}

bool random_parts(FILE *out, uint64_t *seed)
{
	state = seed;
	switch (below(6)) {
	case 0:
		ask_from(out);
		return false;
	case 1:
		ask_with(out);
		return false;
	case 2:
		ask_compound(out);
		return false;
	case 3:
	case 4:
		ask_grouped(out);
		return end_grouped(out);
	default:
		ask_joined(out);
		return false;
	}
}
