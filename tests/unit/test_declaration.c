/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "meta/declaration.h"

static char why[PFS_DECLARATION_WHY];

static char *parse(const char *name, const char *text)
{
	char *sql;
	int error = pfs_declaration_parse(&sql, why, name, text, strlen(text));

	assert_int_equal(pfs_declaration_parse(NULL, why, name, text, strlen(text)), error);
	assert_true(error == 0 || error == -EUCLEAN);
	assert_int_equal(error != 0, sql == NULL);
	assert_int_equal(error != 0, *why != 0);
	return sql;
}

static void test_constrains(void **state)
{
	static const char *const plain[] = {
		"CREATE TABLE t (a INTEGER PRIMARY KEY, b NOT NULL UNIQUE)",
		"CREATE TABLE t (checked, \"check\", [autoincrement], 'strict', conflict, strict DEFAULT 'on conflict')",
		"CREATE TABLE t (a -- CHECK\n, b /* STRICT */)"};
	static const char *const constrained[] = {
		"CREATE TABLE t (a check (a > 0))",
		"CREATE TABLE t (a, CHECK (a > 0))",
		"CREATE TABLE t (a) strict",
		"CREATE TABLE t (a UNIQUE ON CONFLICT IGNORE)",
		"CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT)",
		"CREATE TABLE t (a \x01)"};

	(void)state;
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		assert_false(pfs_declaration_constrains(plain[i], strlen(plain[i])));
	for (size_t i = 0; i < sizeof(constrained) / sizeof(*constrained); i++)
		assert_true(pfs_declaration_constrains(constrained[i], strlen(constrained[i])));
}

/* What was understood, composed anew. */
static void test_composed(void **state)
{
	static const struct {
		const char *name, *text, *sql;
	} good[] = {
		{"t", "CREATE TABLE t(a);\n", "CREATE TABLE \"t\" ( a );\n"},
		{"T", "create table[t](a VARCHAR(10, -2), \"b\" 'x y' NOT NULL)",
		 "create table \"T\" ( a VARCHAR ( 10 , - 2 ) , \"b\" 'x y' NOT NULL );\n"},
		{"a\"b", "CREATE TABLE \"A\"\"b\"(c INTEGER PRIMARY KEY) STRICT;",
		 "CREATE TABLE \"a\"\"b\" ( c INTEGER PRIMARY KEY ) STRICT;\n"},
		{"t",
		 "CREATE TABLE t(a -- one\n, b /* two */ DEFAULT (1<>2), c AS (abs(a) || x'00') STORED,"
		 "CHECK (a IN (1, 2) AND substr(b, 1) >= '''')); CREATE UNIQUE INDEX i ON t(lower(a), b "
		 "COLLATE NOCASE DESC) WHERE a IS NOT NULL;\nCREATE INDEX 'j' ON t(b);",
		 "CREATE TABLE \"t\" ( a , b DEFAULT ( 1 <> 2 ) , c AS ( abs ( a ) || x'00' ) STORED , "
		 "CHECK ( a IN ( 1 , 2 ) AND substr ( b , 1 ) >= '''' ) );\n"
		 "CREATE UNIQUE INDEX i ON \"t\" ( lower ( a ) , b COLLATE NOCASE DESC ) WHERE a IS NOT "
		 "NULL;\nCREATE INDEX 'j' ON \"t\" ( b );\n"},
		{"t", "CREATE TABLE t(a REFERENCES other(b), FOREIGN KEY (a) REFERENCES u(c))",
		 "CREATE TABLE \"t\" ( a REFERENCES other ( b ) , FOREIGN KEY ( a ) REFERENCES u ( c ) "
		 ");\n"},
		{"t", "CREATE TABLE t(a DEFAULT -1.5e+3)",
		 "CREATE TABLE \"t\" ( a DEFAULT - 1.5e+3 );\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		char *sql = parse(good[i].name, good[i].text);

		if (!sql)
			fail_msg("%s: %s", good[i].text, why);
		assert_string_equal(sql, good[i].sql);
		free(sql);
	}
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"SELECT 1",
		"CREATE TABLE t",
		"CREATE TABLE t(",
		"CREATE TABLE t()",
		"CREATE TABLE t(a",
		"CREATE TABLE t(a,)",
		"CREATE TABLE t(a) WITHOUT ROWID",
		"CREATE TABLE u(a)",
		"CREATE TABLE \"t(a)",
		"CREATE TABLE temp.t(a)",
		"CREATE TEMP TABLE t(a)",
		"CREATE VIRTUAL TABLE t USING x(a)",
		"CREATE TABLE t AS SELECT 1",
		"CREATE TABLE t AS WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v FROM i) SELECT v FROM i",
		"CREATE TABLE t(a DEFAULT (SELECT 1))",
		"CREATE TABLE t(a CHECK (a IN (VALUES (1))))",
		"CREATE TABLE t(a AS (path_of(a)) STORED)",
		"CREATE TABLE t(a AS (\"PATH_of\" (a)))",
		"CREATE TABLE t(a AS ([ino_of](a)))",
		"CREATE TABLE t(a DEFAULT (under(2, '/')))",
		"CREATE TABLE t(a, CHECK (child_of/**/(a, 2)))",
		"CREATE TABLE t(a); CREATE INDEX i ON t(path_of(a))",
		"CREATE TABLE t(a); CREATE INDEX i ON t(a) WHERE ancestor_of(a, 2)",
		"CREATE TABLE t(a AS (load_extension('x')))",
		"CREATE TABLE t(a); CREATE INDEX i ON u(a)",
		"CREATE TABLE t(a); INSERT INTO t VALUES (1)",
		"CREATE TABLE t(a); CREATE TABLE u(a)",
		"CREATE TABLE t(a); CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END",
		"CREATE TABLE t(a DEFAULT ?1)",
		"CREATE TABLE t(a CHECK (a; b))",
		"CREATE TABLE t(a CHECK ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char *sql = parse("t", bad[i]);

		if (sql)
			fail_msg("%s: %s", bad[i], sql);
	}
	assert_null(parse("t", "CREATE TABLE t(a AS (path_of(a)))"));
	assert_string_equal(why, "calls path_of(), which it may not");
	assert_int_equal(pfs_declaration_parse(NULL, why, "t", "CREATE TABLE t(a\0)", 18),
			 -EUCLEAN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_constrains),
					   cmocka_unit_test(test_composed),
					   cmocka_unit_test(test_refused)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
