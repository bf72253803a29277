/* SPDX-License-Identifier: MIT */
#include "tests/ref/corners.h"

#include <string.h>

#include "base/err.h"
#include "tests/ref/random.h"

static uint64_t *state; /* of the statement being written */

static uint32_t below(uint32_t n)
{
	return random_below(state, n);
}

#define PICK(array) array[below(PFS_COUNT(array))]

/* In forms %N is a column of numbers, %T one of texts; %K and %S are a number and a text, mostly;
 * %P is a pattern, %O a comparison, %C a condition, %A an aggregate, %D a direction and %L a
 * limit. */

static const char *const numbers[] = {"a.size",	  "a.size",	    "a.depth", "a.uid",
				      "a.stars",  "a.score",	    "a.nlink", "a.blocks",
				      "a.parent", "a.subtree_count"};
static const char *const texts[] = {"a.ext", "a.ext", "a.name", "a.type", "a.tag", "a.owner"};
static const char *const constants[] = {"0",
					"1",
					"2",
					"100",
					"4096",
					"-1",
					"2.5",
					"100.0",
					"NULL",
					"'100'",
					"' 2 '",
					"'1e2'",
					"'0x10'",
					"''",
					"'txt'",
					"5e18",
					"9223372036854775807",
					"TRUE",
					"0.0",
					"x'3130'",
					"'100.0'",
					"17",
					"1e3",
					"-0.0",
					"'4096'"};
static const char *const strings[] = {"'c'",   "'txt'", "''", "'red'", "'d1'", "'F1'",
				      "'100'", "NULL",	"1",  "'gz'",  "'f'"};
static const char *const patterns[] = {"'f1%'",
				       "'%!_%' ESCAPE '!'",
				       "'f!%%' ESCAPE '!'",
				       "'%#.c' ESCAPE '#'",
				       "'%\\_x' ESCAPE '\\'",
				       "'d%%' ESCAPE 'd'",
				       "'%1_' ESCAPE '_'",
				       "'d__' ESCAPE '_'",
				       "'%!!%' ESCAPE '!'",
				       "'_!' ESCAPE '!'",
				       "'D%' ESCAPE '%'",
				       "'%0' ESCAPE '0'",
				       "'1%'",
				       "'_'",
				       "NULL"};
static const char *const comparisons[] = {"=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT", "=="};
static const char *const aggregates[] = {"count(*)",	      "count(%N)",     "sum(%N)",
					 "min(%N)",	      "max(%N)",       "avg(%N)",
					 "max(%T)",	      "min(%T)",       "count(DISTINCT %T)",
					 "total(%N)",	      "sum(%N %O %K)", "count(%T) + 1",
					 "sum(%N) / count(*)"};
static const char *const conditions[] = {
	"%N IN (%K, %K, NULL)",
	"%N NOT IN (%K, %K)",
	"%N NOT IN (%K, NULL)",
	"%T IN (%S, %S, NULL)",
	"%T NOT IN (%S, %S)",
	"(%N IN (%K, NULL)) IS NULL",
	"%N IN ()",
	"%T NOT IN ()",
	"%T IN (SELECT ext FROM side)",
	"%N NOT IN (SELECT n FROM side WHERE n %O %K)",
	"%N IN (SELECT v FROM cased)",
	"%N %O %K",
	"%N %O %K",
	"%T %O %K",
	"%N %O %S",
	"%T %O %N",
	"%N + 0 %O %K",
	"%N || '' %O %K",
	"%T || '' = %S",
	"CAST(%N AS TEXT) %O %K",
	"CAST(%T AS INTEGER) %O %K",
	"+%T %O %N",
	"%T LIKE %P",
	"%T NOT LIKE %P",
	"%N LIKE %P",
	"%N BETWEEN %K AND %K",
	"%T BETWEEN %S AND %S",
	"%N IS NULL",
	"%T NOTNULL",
	"NOT (%C)",
	"(%C) IS NULL",
	"(%C) IS NOT TRUE",
	"(%C) = (%C)",
	"%C AND %C",
	"(%C) OR %C",
	"%N",
	"CASE WHEN %C THEN %C ELSE %K END",
	"coalesce(%N, %K) %O %N",
	"nullif(%N, %K) IS NULL",
	"ifnull(%T, %S) %O %S",
	"iif(%C, %N, %K) > %K",
};

/* A statement, and whether SQLite's order of its rows is known. */
static const struct form {
	const char *text;
	bool is_ordered;
} forms[] = {
	{"SELECT DISTINCT %T, %N FROM nodes a WHERE %C ORDER BY 2%D, 1%D%L", true},
	{"SELECT DISTINCT %T, %N, %N FROM nodes a ORDER BY 3, 1%L", true},
	{"SELECT DISTINCT %T, %N FROM nodes a ORDER BY %N%L", true},
	{"SELECT a.path, %A FROM nodes a JOIN nodes b ON b.parent = a.ino WHERE %C GROUP BY a.path ORDER BY 2%D%L",
	 true},
	{"SELECT a.path, b.ext, %A FROM nodes a LEFT JOIN nodes b ON b.parent = a.ino GROUP BY 2, a.path%L",
	 true},
	{"SELECT a.name, %A, %A FROM nodes a WHERE %C GROUP BY a.name ORDER BY 2%D, 3%D%L", true},
	{"SELECT %T, %A FROM nodes a WHERE %C GROUP BY 1 HAVING %A %O %K ORDER BY 2%D%L", true},
	{"SELECT %A FROM nodes a GROUP BY %T, %N HAVING %C ORDER BY 1%D%L", true},
	{"WITH w AS (SELECT %T AS t, %N AS n FROM nodes a WHERE %C) SELECT x.t, count(*), max(y.n) FROM w x JOIN w y ON x.t = y.t "
	 "GROUP BY x.t",
	 true},
	{"WITH w AS (SELECT %T AS t, %N AS n FROM nodes a WHERE %C) SELECT count(*), (SELECT max(n) FROM w) FROM w WHERE n IN "
	 "(SELECT n FROM w WHERE t IS NOT NULL)",
	 false},
	{"WITH w AS (SELECT %T AS t, %A AS n FROM nodes a GROUP BY 1) SELECT t, n FROM w WHERE n = (SELECT max(n) FROM w) UNION "
	 "ALL SELECT t, n FROM w WHERE n %O %K",
	 false},
	{"WITH w AS (SELECT %T AS t, %N AS n FROM nodes a) SELECT t FROM w WHERE n %O %K INTERSECT SELECT t FROM w WHERE t LIKE %P",
	 true},
	{"SELECT * FROM (SELECT %T AS t, %N AS n FROM nodes a WHERE %C ORDER BY 2%D, 1) UNION ALL SELECT * FROM (SELECT %T, %N "
	 "FROM nodes a WHERE %C ORDER BY 1)",
	 false},
	{"SELECT * FROM (SELECT %T AS t, %N AS n FROM nodes a WHERE %C ORDER BY 2%D, ino LIMIT 20) UNION ALL SELECT * FROM "
	 "(SELECT %T, %N FROM nodes a ORDER BY ino LIMIT 9) ORDER BY 1%D, 2%L",
	 true},
	{"SELECT t, count(*), sum(n) FROM (SELECT %T AS t, %N AS n FROM nodes a WHERE %C UNION ALL SELECT %T, %N FROM nodes a) "
	 "GROUP BY t ORDER BY 2%D%L",
	 true},
	{"SELECT a.name, a.ino FROM nodes a LEFT JOIN nodes b ON b.parent = a.ino AND b.size %O %K WHERE b.ino IS NULL",
	 false},
	{"SELECT %A, %A FROM nodes a LEFT JOIN side s ON s.ext = a.ext AND s.n %O %K WHERE s.n IS NULL",
	 false},
	{"SELECT %T, s.k, s.n FROM nodes a LEFT JOIN side s ON s.n = %N WHERE s.k IS NOT NULL OR %C",
	 false},
	{"SELECT %T, s.k, %N FROM nodes a RIGHT JOIN side s ON s.ext = a.ext WHERE %C", false},
	{"SELECT s.k, count(*), %A FROM side s LEFT JOIN nodes a ON a.ext = s.ext AND %C GROUP BY s.k",
	 true},
	{"SELECT s.k, count(a.ino) FROM side s FULL JOIN nodes a ON a.ext = s.ext GROUP BY 1 ORDER BY 2%D%L",
	 true},
	{"SELECT count(*), count(w.v), %A FROM nodes a LEFT JOIN cased w ON w.v = %N LEFT JOIN side s ON s.n = w.v WHERE s.n IS "
	 "NULL",
	 false},
	{"SELECT %A, %A FROM nodes a WHERE %C HAVING %A %O %K", false},
	{"SELECT %A FROM nodes a HAVING %A IS NOT NULL", false},
	{"SELECT a.name, a.ino FROM nodes a WHERE %C ORDER BY ino%D%L", true},
	{"SELECT a.name, %N FROM nodes a WHERE %C ORDER BY 2, ino%L", true},
	{"SELECT count(*), max(n) FROM (SELECT %N AS n FROM nodes a WHERE %C ORDER BY ino%L)",
	 false},
	{"SELECT CASE WHEN %C THEN %N ELSE %N END AS v, count(*) FROM nodes a GROUP BY 1 ORDER BY 2%D, 1%L",
	 true},
	{"SELECT %C, count(*), %A FROM nodes a GROUP BY 1", true},
	{"SELECT %C AS c, %C AS d, count(*) FROM nodes a GROUP BY 1, 2 ORDER BY 3%D%L", true},
	{"SELECT count(*) FROM nodes a WHERE %C", false},
	{"SELECT a.ino FROM nodes a WHERE %C", false},
	{"SELECT count(*) FROM nodes a WHERE EXISTS (SELECT 1 FROM nodes b WHERE b.parent = a.ino AND b.size %O %K) AND %C",
	 false},
	{"SELECT count(*) FROM nodes a WHERE NOT EXISTS (SELECT 1 FROM side s WHERE s.n = %N) OR %C",
	 false},
};

static void put(FILE *out, const char *form, unsigned depth);

static void put_condition(FILE *out, unsigned depth)
{
	const char *form = PICK(conditions);

	while (depth == 0 && strstr(form, "%C"))
		form = PICK(conditions);
	put(out, form, depth - (depth > 0));
}

static void put_limit(FILE *out)
{
	static const unsigned offsets[] = {0, 1, 3, 1000, 100000};

	if (below(3) == 0)
		return;
	(void)fprintf(out, " LIMIT %d", (int)below(14) - 1);
	if (below(3) == 0)
		(void)fprintf(out, " OFFSET %u", PICK(offsets));
}

static void put(FILE *out, const char *form, unsigned depth)
{
	for (; *form; form++) {
		if (*form != '%' || !strchr("NTKSPOCADL", form[1])) {
			(void)fputc(*form, out);
			continue;
		}
		switch (*++form) {
		case 'N':
			(void)fputs(PICK(numbers), out);
			break;
		case 'T':
			(void)fputs(PICK(texts), out);
			break;
		case 'K':
			(void)fputs(PICK(constants), out);
			break;
		case 'S':
			(void)fputs(PICK(strings), out);
			break;
		case 'P':
			(void)fputs(PICK(patterns), out);
			break;
		case 'O':
			(void)fputs(PICK(comparisons), out);
			break;
		case 'C':
			put_condition(out, depth);
			break;
		case 'A':
			put(out, PICK(aggregates), depth);
			break;
		case 'D':
			(void)fputs(below(2) ? " DESC" : "", out);
			break;
		default:
			put_limit(out);
		}
	}
}

bool random_corners(FILE *out, uint64_t *seed)
{
	const struct form *form;

	state = seed;
	form = &PICK(forms);
	put(out, form->text, 2);
	return form->is_ordered;
}
