/* SPDX-License-Identifier: MIT */
/* Statements as trees: what is taken and what not, where nodes stand, that operators bind as
 * SQLite's do, and that no text, however nested, and no lack of memory does harm.  PFS_TEST_SEED:
 * another seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/cleanup.h"
#include "tests/ref/random.h"
#include "tests/ref/unparse.h"

#define CORPUS "tests/query/statements.sql"

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static long calls_left = -1; /* until memory is short; -1: never */

static bool is_short(void)
{
	if (calls_left > 0)
		calls_left--;
	return calls_left == 0;
}

void *__wrap_malloc(size_t size)
{
	return is_short() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return is_short() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	return is_short() ? NULL : __real_realloc(memory, size);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* The statement with all its brackets, allocated; NULL: not taken. */
static char *again(const char *sql, size_t len)
{
	struct pfs_parsed *parsed;
	char *text = NULL;
	size_t size;
	FILE *out;
	int error = pfs_parse(&parsed, sql, len, NULL);

	if (error) {
		assert_int_equal(error, -ENOTSUP);
		return NULL;
	}
	out = open_memstream(&text, &size);
	assert_non_null(out);
	unparse_statement(out, pfs_parsed_statement(parsed));
	assert_int_equal(fclose(out), 0);
	pfs_parsed_free(parsed);
	return text;
}

static void assert_reads(const char *sql, const char *expected)
{
	char *text PFS_FREE = again(sql, strlen(sql));

	if (!text)
		fail_msg("not taken: %s", sql);
	assert_string_equal(text, expected);
}

static void assert_not_taken(const char *sql)
{
	struct pfs_not_taken not = {.why = NULL};
	struct pfs_parsed *parsed;

	if (pfs_parse(&parsed, sql, strlen(sql), &not ) != -ENOTSUP)
		fail_msg("taken: %s", sql);
	assert_null(parsed);
	assert_non_null(not .why);
	assert_true(not .at <= strlen(sql));
}

static const char *const readings[][2] = {
	{"select 1", "SELECT 1"},
	{" /* a */ SELECT --b\n 'it''s' \"a\"\"b\" ;", "SELECT 'it''s' AS \"a\"\"b\""},
	{"SELECT ext, count(*), sum(size) FROM nodes GROUP BY ext ORDER BY 3 DESC LIMIT 10",
	 "SELECT ext, count(*), sum(size) FROM nodes GROUP BY ext ORDER BY 3 DESC LIMIT "
	 "10"},
	{"SELECT DISTINCT n.*, * FROM main.nodes n, side AS [s t] JOIN x USING(a,b)",
	 "SELECT DISTINCT n.*, * FROM main.nodes AS n, side AS \"s t\" JOIN x USING (a, "
	 "b)"},
	{"SELECT 1 FROM a LEFT OUTER JOIN b ON a.x=b.y NATURAL CROSS JOIN (c INNER JOIN d)",
	 "SELECT 1 FROM a LEFT JOIN b ON (a.x = b.y) NATURAL CROSS JOIN (c JOIN d)"},
	{"SELECT 1 FROM a FULL JOIN b NATURAL RIGHT JOIN c INDEXED BY i JOIN d NOT INDEXED",
	 "SELECT 1 FROM a FULL JOIN b NATURAL RIGHT JOIN c JOIN d"},
	{"SELECT a+b*c-d||e<<2 & 3 = 4 AND NOT x IS NULL OR y",
	 "SELECT (((((((a + (b * c)) - (d || e)) << 2) & 3) = 4) AND (NOT (x IS NULL))) OR "
	 "y)"},
	{"SELECT - a ->> '$.b' -> 'c' COLLATE nocase, +~1",
	 "SELECT (((-a) ->> '$.b') -> ('c' COLLATE nocase)), (+(~1))"},
	{"SELECT a BETWEEN 1 AND 2 AND b NOT BETWEEN 3 AND 4",
	 "SELECT ((a BETWEEN 1 AND 2) AND (b NOT BETWEEN 3 AND 4))"},
	{"SELECT a LIKE 'x%' ESCAPE '\\' AND b NOT GLOB '*' OR c REGEXP d OR e MATCH f",
	 "SELECT ((((a LIKE 'x%' ESCAPE '\\') AND (b NOT GLOB '*')) OR (c REGEXP d)) OR "
	 "(e MATCH f))"},
	{"SELECT a IN (1,2), b NOT IN (SELECT 1), c IN t, d IN (), (e,f) IN (SELECT 1,2)",
	 "SELECT (a IN (1, 2)), (b NOT IN (SELECT 1)), (c IN t), (d IN ()), ((e, f) IN "
	 "(SELECT 1, 2))"},
	{"SELECT CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' END, CASE WHEN a>1 THEN 2 ELSE 3 "
	 "END",
	 "SELECT (CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' END), (CASE  WHEN (a > 1) THEN 2 "
	 "ELSE 3 END)"},
	{"SELECT cast(a AS varchar ( 10 )), EXISTS (SELECT 1), NOT EXISTS (SELECT 2), "
	 "(SELECT 3)",
	 "SELECT (CAST(a AS varchar ( 10 ))), (EXISTS (SELECT 1)), (NOT (EXISTS (SELECT "
	 "2))), "
	 "(SELECT 3)"},
	{"SELECT count(DISTINCT a) FILTER (WHERE b > 1), max(a,b), f(), filter, over, "
	 "window FROM t",
	 "SELECT count(DISTINCT a) FILTER (WHERE (b > 1)), max(a, b), f(), filter, over, "
	 "window "
	 "FROM t"},
	{"SELECT sum(a) OVER (PARTITION BY b ORDER BY c ROWS BETWEEN 1 PRECEDING AND "
	 "CURRENT ROW), "
	 "rank() OVER w FROM t WINDOW w AS (ORDER BY d)",
	 "SELECT sum(a) OVER (ORDER BY b, c, 1), rank() OVER (ORDER BY ) FROM t"},
	{"SELECT a ISNULL, b NOTNULL, c NOT NULL, d IS NOT 1, e IS NOT DISTINCT FROM f, g "
	 "IS "
	 "DISTINCT FROM 2",
	 "SELECT (a ISNULL), (b NOTNULL), (c NOTNULL), (d IS NOT 1), (e IS f), (g IS NOT "
	 "2)"},
	{"WITH a(x) AS MATERIALIZED (SELECT 1), b AS NOT MATERIALIZED (VALUES (1,2),(3,4)) "
	 "SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT x FROM a ORDER BY 1 NULLS LAST LIMIT "
	 "2,3",
	 "WITH a(x) AS MATERIALIZED (SELECT 1), b AS NOT MATERIALIZED (VALUES (1, 2), (3, "
	 "4)) "
	 "SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT x FROM a ORDER BY 1 NULLS LAST LIMIT 3 "
	 "OFFSET 2"},
	{"WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n+1 FROM r) SELECT x'0aFf', "
	 ".5e3, 0x1F, "
	 "?, ?2, :a, @b, $c, CURRENT_DATE, first, \"replace\" FROM r, json_each('[]') j",
	 "WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT (n + 1) FROM r) SELECT x'0aFf', "
	 ".5e3, "
	 "0x1F, ?, ?2, :a, @b, $c, CURRENT_DATE, first, \"replace\" FROM r, "
	 "json_each('[]') AS "
	 "j"},
	{"INSERT INTO t(a,b) SELECT 1,2", "INSERT INTO t(a, b) SELECT 1, 2"},
	{"REPLACE INTO t VALUES (1)", "INSERT INTO t VALUES (1)"},
	{"INSERT OR IGNORE INTO t DEFAULT VALUES", "INSERT INTO t DEFAULT VALUES"},
	{"WITH a AS (SELECT 1) UPDATE t AS u SET a=1, b=a||'x' FROM s WHERE u.c IN (2)",
	 "WITH a AS (SELECT 1) UPDATE t AS u SET a = 1, b = (a || 'x') FROM s WHERE (u.c "
	 "IN "
	 "(2))"},
	{"DELETE FROM nodes WHERE mtime < '2001-01-01'",
	 "DELETE FROM nodes WHERE (mtime < '2001-01-01')"},
	{"CREATE TABLE IF NOT EXISTS t (a INTEGER PRIMARY KEY, b TEXT NOT NULL DEFAULT -1, "
	 "c)",
	 "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL DEFAULT ((-1)), c)"},
	{"CREATE TABLE t AS SELECT * FROM nodes", "CREATE TABLE t AS SELECT * FROM nodes"},
	{"DROP TABLE IF EXISTS main.t", "DROP TABLE main.t"},
	{"CREATE UNIQUE INDEX i ON t (a DESC, lower(b))",
	 "CREATE INDEX i ON t (a DESC, lower(b))"},
	{"DROP INDEX i;;", "DROP INDEX i"},
};

static void test_reads(void **state)
{
	(void)state;
	for (size_t i = 0; i < PFS_COUNT(readings); i++)
		assert_reads(readings[i][0], readings[i][1]);
}

static void test_takes_not(void **state)
{
	static const char *const texts[] = {
		"",
		";",
		"SELECT",
		"SELECT 1; SELECT 2",
		"EXPLAIN SELECT 1",
		"PRAGMA x",
		"SELECT 'a",
		"SELECT \"a",
		"SELECT [a",
		"SELECT x'0'",
		"SELECT x'0g'",
		"SELECT 1a",
		"SELECT 0x",
		"SELECT 1 /* a",
		"SELECT #1",
		"SELECT a FROM",
		"SELECT a b c",
		"SELECT (1",
		"SELECT 1)",
		"SELECT 1 ORDER BY 1 UNION SELECT 2",
		"SELECT 1 LIMIT 1 UNION SELECT 2",
		"SELECT 1 FROM a LEFT BLUE JOIN b",
		"DELETE FROM t RETURNING a",
		"INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
		"CREATE TABLE t (a UNIQUE)",
		"CREATE TABLE t (a, PRIMARY KEY (a))",
		"SELECT select",
		"SELECT 1 WHERE",
		"\\",
		"SELECT !",
		"SELECT 1_000",
		"VACUUM",
		"BEGIN",
		"ATTACH 'a' AS b",
	};

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(texts); i++)
		assert_not_taken(texts[i]);
}

/* ---- hostile texts ---- */

/* before, `middle` n times, after. */
static char *repeated(const char *before, const char *middle, size_t n, const char *after)
{
	size_t len = strlen(middle);
	char *text = malloc(strlen(before) + n * len + strlen(after) + 1), *end;

	assert_non_null(text);
	end = stpcpy(text, before);
	for (size_t i = 0; i < n; i++)
		end = stpcpy(end, middle);
	(void)stpcpy(end, after);
	return text;
}

static void assert_repeats(const char *before, const char *middle, const char *after, size_t fits,
			   size_t too_many)
{
	char *small PFS_FREE = repeated(before, middle, fits, after);
	char *large PFS_FREE = repeated(before, middle, too_many, after);
	char *text PFS_FREE = again(small, strlen(small));

	assert_non_null(text);
	assert_not_taken(large);
}

static void test_limits(void **state)
{
	const char zero[] = "SELECT 1\0, 2";
	char *text;

	(void)state;
	assert_repeats("SELECT ", "(", "1", 0, 60000);
	assert_repeats("SELECT ", "-", "1", 0, 1000);
	assert_repeats("SELECT ", "- ", "1", 200, 20000);
	assert_repeats("SELECT ", "NOT ", "1", 200, 15000);
	assert_repeats("SELECT 1", " OR 1", "", 200, 8000);
	assert_repeats("SELECT 1", " COLLATE nocase", "", 200, 4000);
	assert_repeats("SELECT ", "abs(", "1", 0, 12000);
	assert_repeats("SELECT ", "(SELECT ", "1", 0, 8000);
	assert_repeats("SELECT 1", " UNION ALL SELECT 1", "", 200, 5000);
	assert_repeats("SELECT 1 FROM ", "(", "a", 0, 20000);
	assert_repeats("SELECT 1 IN (1", ",1", ")", 8000, 9000);
	assert_repeats("VALUES (1)", ",(1)", "", 4000, 5000);
	text = again(zero, sizeof(zero) - 1);
	assert_null(text);
	text = repeated("SELECT '", "a", PFS_PARSE_TEXT_MAX, "'");
	assert_not_taken(text);
	free(text);
}

static void test_without_memory(void **state)
{
	static const char sql[] =
		"WITH a(x, y) AS (SELECT 1, 2) SELECT n.*, max(x, 2) AS m, CASE x WHEN 1 THEN 'a' "
		"END "
		"FROM a JOIN b USING (x) LEFT JOIN (SELECT 3) AS c ON a.x = c.y WHERE x IN (1, 2) "
		"AND "
		"y LIKE 'a%' GROUP BY 1 HAVING count(*) > 1 ORDER BY 2 DESC LIMIT 3";
	struct pfs_parsed *parsed;
	int error = -ENOMEM;
	long n;

	(void)state;
	for (n = 1; error; n++) {
		calls_left = n;
		error = pfs_parse(&parsed, sql, strlen(sql), NULL);
		calls_left = -1;
		assert_true(error == 0 || error == -ENOMEM);
		assert_int_equal(parsed != NULL, error == 0);
	}
	pfs_parsed_free(parsed);
	assert_true(n > 3);
}

/* ---- places ---- */

static const char *source_text;

static void check_expr(const struct pfs_expr *expr);

static void check_items(const struct pfs_items *items)
{
	for (const struct pfs_item *item = items ? items->first : NULL; item; item = item->next) {
		if (item->expr)
			check_expr(item->expr);
	}
}

/* What stands at a node's place is the node. */
static void check_expr(const struct pfs_expr *expr)
{
	char *text PFS_FREE = NULL, *expected = NULL, *read PFS_FREE = NULL;
	size_t size;
	FILE *out = open_memstream(&expected, &size);

	assert_non_null(out);
	(void)fputs("SELECT ", out);
	unparse_expr(out, expr);
	assert_int_equal(fclose(out), 0);
	assert_true(asprintf(&text, "SELECT %.*s", (int)expr->span.len,
			     source_text + expr->span.at) > 0);
	read = again(text, strlen(text));
	if (!read || strcmp(read, expected) != 0)
		fail_msg("\"%s\" reads %s, not %s", text, read ? read : "nothing", expected);
	free(expected);
	if (expr->left)
		check_expr(expr->left);
	if (expr->right)
		check_expr(expr->right);
	if (expr->third)
		check_expr(expr->third);
	check_items(expr->items);
	for (const struct pfs_core *core = expr->select ? expr->select->first : NULL; core;
	     core = core->next)
		check_items(core->results);
}

static void check_places(const char *sql)
{
	struct pfs_parsed *parsed;
	const struct pfs_select *select;

	assert_int_equal(pfs_parse(&parsed, sql, strlen(sql), NULL), 0);
	source_text = pfs_parsed_text(parsed);
	select = pfs_parsed_statement(parsed)->select;
	for (const struct pfs_core *core = select->first; core; core = core->next) {
		check_items(core->results);
		check_items(core->group);
		if (core->where)
			check_expr(core->where);
		if (core->having)
			check_expr(core->having);
	}
	check_items(select->order);
	pfs_parsed_free(parsed);
}

static void test_places(void **state)
{
	static const char spread[] = "SELECT a.b , ( c ) /* d */ + ( e ) FROM f WHERE ( g = 1 )";
	const struct pfs_statement *statement;
	const struct pfs_core *core;
	struct pfs_parsed *parsed;

	(void)state;
	assert_int_equal(pfs_parse(&parsed, spread, strlen(spread), NULL), 0);
	statement = pfs_parsed_statement(parsed);
	core = statement->select->first;
	assert_int_equal(statement->span.at, 0);
	assert_int_equal(statement->span.len, strlen(spread));
	assert_int_equal(core->results->first->span.at, 7);
	assert_int_equal(core->results->first->span.len, 3);
	assert_int_equal(core->results->last->expr->op_span.at, 27);
	assert_int_equal(core->results->last->expr->right->span.at, 29);
	assert_int_equal(core->results->last->expr->right->span.len, 5);
	assert_int_equal(core->where->span.at, 48);
	assert_int_equal(core->where->span.len, 9);
	assert_int_equal(core->from->span.at, 40);
	assert_int_equal(core->from->span.len, 1);
	pfs_parsed_free(parsed);
	check_places(spread);
	check_places(
		"SELECT CAST ( a AS INT ) , x . y BETWEEN 1 AND f ( 2 , -3 ) , NOT a NOT NULL");
	check_places("SELECT count ( * ) FILTER ( WHERE a > 1 ) , b COLLATE nocase , CASE a WHEN 1 "
		     "THEN 2 END , ( SELECT 1 ) , EXISTS ( SELECT 2 ) , ( 1 , 2 ) = ( 3 , 4 )");
}

static void test_corpus(void **state)
{
	FILE *file PFS_FCLOSE = fopen(CORPUS, "re");
	char *line PFS_FREE = NULL;
	size_t capacity = 0, n = 0;

	(void)state;
	if (!file)
		skip();
	while (getline(&line, &capacity, file) > 0) {
		const char *sql = strncmp(line, "= ", 2) == 0 ? line + 2 : line;

		if (*sql == '\n' || strncmp(sql, "--", 2) == 0)
			continue;
		check_places(sql);
		n++;
	}
	assert_true(n > 400);
}

/* ---- operators bind as SQLite's do ---- */

static uint64_t seed;

static unsigned below(unsigned n)
{
	return random_below(&seed, n);
}

static void put_operand(FILE *out)
{
	static const char *const prefixes[] = {"- ", "NOT ", "~", "+"};
	static const char *const leaves[] = {"1",   "0",   "2", "NULL", "'1'",
					     "'a'", "2.5", "7", "-3",	"x'31'"};
	static const char *const suffixes[] = {
		" ISNULL",    " NOTNULL",    " NOT NULL",	 " COLLATE nocase",
		" IN (1, 2)", " NOT IN (0)", " BETWEEN 0 AND 2", " NOT BETWEEN 1 AND 7"};

	if (below(3) == 0)
		(void)fputs(prefixes[below(PFS_COUNT(prefixes))], out);
	(void)fputs(leaves[below(PFS_COUNT(leaves))], out);
	if (below(4) == 0)
		(void)fputs(suffixes[below(PFS_COUNT(suffixes))], out);
}

static void put_expression(FILE *out)
{
	static const char *const infix[] = {"OR",
					    "AND",
					    "=",
					    "==",
					    "<>",
					    "!=",
					    "<",
					    "<=",
					    ">",
					    ">=",
					    "IS",
					    "IS NOT",
					    "IS NOT DISTINCT FROM",
					    "IS DISTINCT FROM",
					    "&",
					    "|",
					    "<<",
					    ">>",
					    "+",
					    "-",
					    "*",
					    "/",
					    "%",
					    "||",
					    "LIKE",
					    "NOT LIKE",
					    "GLOB"};

	put_operand(out);
	for (unsigned n = 1 + below(6); n; n--) {
		(void)fprintf(out, " %s ", infix[below(PFS_COUNT(infix))]);
		put_operand(out);
	}
}

/* The value, as text that tells types apart, allocated; NULL: an error. */
static char *value_of(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	char *text = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		assert_true(asprintf(&text, "%d %s", sqlite3_column_type(statement, 0),
				     (const char *)sqlite3_column_text(statement, 0)) > 0);
	(void)sqlite3_finalize(statement);
	return text;
}

static void check_random(sqlite3 *db)
{
	char *sql = NULL, *bracketed PFS_FREE = NULL, *value PFS_FREE = NULL,
	     *other PFS_FREE = NULL;
	size_t size;
	FILE *out = open_memstream(&sql, &size);

	assert_non_null(out);
	(void)fputs("SELECT ", out);
	put_expression(out);
	assert_int_equal(fclose(out), 0);
	value = value_of(db, sql);
	bracketed = again(sql, size);
	if (value && !bracketed)
		fail_msg("not taken: %s", sql);
	if (value)
		other = value_of(db, bracketed);
	if (value && (!other || strcmp(value, other) != 0))
		fail_msg("%s is %s, %s is %s", sql, value, bracketed, other);
	free(sql);
}

static void test_binds_as_sqlite(void **state)
{
	const char *from_environment = getenv("PFS_TEST_SEED");
	sqlite3 *db;

	(void)state;
	seed = from_environment ? strtoull(from_environment, NULL, 0) : 13;
	(void)printf("PFS_TEST_SEED=%llu\n", (unsigned long long)seed);
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	for (unsigned i = 0; i < 20000; i++)
		check_random(db);
	(void)sqlite3_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),		cmocka_unit_test(test_takes_not),
		cmocka_unit_test(test_limits),		cmocka_unit_test(test_without_memory),
		cmocka_unit_test(test_places),		cmocka_unit_test(test_corpus),
		cmocka_unit_test(test_binds_as_sqlite),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
