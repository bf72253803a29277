/* SPDX-License-Identifier: MIT */
/* Who runs statements over side tables and changes of them, the operators or SQLite, and that their
 * rows are the same. */
#include "tests/unit/side_util.h"

#include "fs/query/internal.h"
#include "fs/query/relational/relational.h"
#include "fs/query/sides.h"
#include "fs/tree/sides.h"
#include "fs/tree/tree_impl.h"
#include "meta/sql/sqlside.h"

/* Whether SQLite has changed the table last: its copy is of that version, or the connection has
 * made more than rows, and looks at the tables again. */
static bool is_sqlites(const char *table)
{
	struct pfs_connection *connection = queries->idle;
	const struct pfs_sql_side *side =
		connection ? pfs_sql_side_find(connection->sql, table) : NULL;

	return !connection || !pfs_sides_are_known(connection, tree) ||
	       (side && side->filled && side->version == pfs_sides_version(tree));
}

/* Who runs it, and that the rows are the other's. */
static void test_few_rows_are_found(void **state)
{
	static const struct {
		const char *select, *rest;
		bool is_ours;
	} cases[] = {
		{"SELECT n, s FROM e", " WHERE n <= 40 ORDER BY n", true},
		{"SELECT n, s, r FROM e", " WHERE n <= 15000 ORDER BY n", true},
		{"SELECT n, s, r FROM e", " WHERE 15000 >= n AND n > 100 ORDER BY n", true},
		{"SELECT n, s FROM e", " WHERE n BETWEEN 100 AND 140 AND r > 1 ORDER BY n", true},
		{"SELECT n FROM e", " WHERE n > 40 AND n < 40", true},
		{"SELECT n FROM e", " WHERE n > 19.5 AND n < 22.25 ORDER BY n", true},
		{"SELECT n FROM e", " WHERE n >= 9223372036854775807 OR n = 3 ORDER BY n", true},
		{"SELECT n FROM e", " WHERE n >= 9223372036854775807 AND n IS NOT NULL", true},
		{"SELECT n FROM e", " WHERE s = 's7' ORDER BY n",
		 false}, /* a text, which SQLite's index has */
		{"SELECT n FROM e", " WHERE s >= 's' ORDER BY n", true},
		{"SELECT s, count(*), sum(r) FROM e", " WHERE n < 30 GROUP BY s ORDER BY s", true},
		{"SELECT s, count(*), sum(r) FROM e", " WHERE n < 9000 GROUP BY s ORDER BY s",
		 true},
		{"SELECT r, n FROM e", " WHERE r > 249 ORDER BY n", true}, /* r has no index */
		{"SELECT n FROM e", " ORDER BY n DESC LIMIT 3", false},
		{"SELECT r, n FROM e", " ORDER BY r DESC, n LIMIT 3", true},
		{"SELECT max(n) FROM e", "", false},
		{"SELECT max(r) FROM e", "", true},
	};

	(void)state;
	change("CREATE TABLE e (n INTEGER, s TEXT, r REAL)", 0);
	run_any("INSERT INTO e WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i LIMIT 2000) "
		"SELECT v * 7919 % 20011, 's' || (v % 300), v / 8.0 FROM i");
	change("UPDATE e SET n = NULL WHERE rowid % 100 = 1", 20);
	change("CREATE INDEX e_n ON e (n, r)", 0);
	change("CREATE INDEX e_s ON e (s)", 0);
	change("CREATE INDEX e_r ON e (r) WHERE r < 0", 0);
	check("SELECT count(*) FROM e NOT INDEXED", "2000"); /* so that SQLite has a copy */
	for (size_t i = 0; i < PFS_COUNT(cases); i++) {
		static char text[1 << 20];
		struct pfs_query *query;
		char sql[256];

		(void)snprintf(sql, sizeof(sql), "%s%s", cases[i].select, cases[i].rest);
		query = begin(sql);
		rest_text(text, sizeof(text), query);
		if (pfs_relational_has_rows(query->relational) != cases[i].is_ours)
			fail_msg("%s: %s", sql,
				 cases[i].is_ours ? "run by SQLite" : "not run by SQLite");
		pfs_query_finish(query);
		check_both("few", cases[i].select, cases[i].rest);
	}
}

/* What each changes, and whether the operators run it. */
static const struct change_case {
	const char *sql;
	int rows; /* that it changes, or the error */
	bool is_ours;
} changes[] = {
	{"UPDATE t SET b = a + 1, c = 'x' WHERE a <= 3000", 3000, true},
	{"UPDATE t SET c = b", 4000, false}, /* a number as a text */
	{"UPDATE t SET b = 2.0 WHERE a > 1", 3999, true},
	{"UPDATE t SET r = a WHERE a <= 2000", 2000, true},
	{"UPDATE t SET b = 9223372036854775807 WHERE a = 7", 1, true},
	{"UPDATE t SET r = b + 1 WHERE a = 7", 1, true}, /* it overflows, to a real */
	{"UPDATE t SET a = NULL", -EINVAL, false},
	{"UPDATE t SET b = NULL WHERE b = 2", 3999, true},
	{"UPDATE t SET rowid = rowid + 10000", 4000, false},
	{"INSERT INTO t SELECT a + 4000, b, c, r FROM t WHERE a <= 3000", 3000, true},
	{"INSERT INTO t (r, c, b, a) SELECT 1.5, 'y', a, a FROM t WHERE a > 6000", 1000, true},
	{"INSERT INTO t (a) SELECT a FROM t WHERE a = 4", 1,
	 false}, /* the others' defaults are SQLite's */
	{"INSERT INTO t VALUES (1, 2, 'z', 3)", 1, true},
	{"INSERT INTO t VALUES (1, NULL, 'a', 1), (2, 5, NULL, 2.5), (-3, 16, '', NULL)", 3, true},
	{"INSERT INTO t (c, a, r, b) VALUES ('z', 1, 2, 3)", 1, true},
	{"INSERT INTO t SELECT 7, 8, 'w', 9", 1, true},
	{"INSERT INTO t (a) VALUES (1)", 1, false},
	{"INSERT INTO t VALUES (NULL, 2, 'z', 3)", -EINVAL, false},
	{"INSERT INTO t VALUES (1, 2, 'z')", -EINVAL, false},
	{"INSERT INTO t VALUES (1, '7', 'z', 3)", 1, false}, /* texts that become numbers, */
	{"INSERT INTO t VALUES (1, 7, 8, 3)", 1, false},     /* and numbers that become texts */
	{"INSERT INTO t VALUES (1, 2, lower('Z'), 3)", 1, false},
	{"INSERT INTO k VALUES (NULL, 3)", 1, false},
	{"DELETE FROM k WHERE v = 3 AND id > 2000", 1, true},
	{"DELETE FROM t WHERE a > 3000 AND c = 'y'", 1000, true},
	{"DELETE FROM t WHERE a > 3000 AND c IS NOT NULL", -1, true},
	{"DELETE FROM t WHERE a > 10000000", 0, true},
	{"INSERT INTO k SELECT a, b FROM t", -EINVAL, false},
	{"UPDATE k SET v = v + 1", 2000, true}, /* a number of rows is no constraint */
	{"UPDATE k SET id = id + 5000", 2000, false},
	{"UPDATE q SET v = v + 1", 2000, false}, /* CHECK */
	{"UPDATE w SET v = v + 1", 2000, false}, /* UNIQUE */
	{"UPDATE o SET v = v + 1", 2000, false}, /* an index of an expression */
	{"DELETE FROM t", -1, true},
	{"DELETE FROM t", 0, true},
};

static const char *const asked_of[][2] = {
	{"SELECT c, count(*), sum(a), count(b), min(b), max(b), sum(r), count(DISTINCT a) FROM t",
	 " GROUP BY c ORDER BY c"},
	{"SELECT count(*), sum(id), sum(v), min(id), max(v) FROM k", ""},
	{"SELECT count(*), sum(v), min(v), max(v) FROM q", ""},
	{"SELECT count(*), sum(v), min(v), max(v) FROM w", ""},
	{"SELECT count(*), sum(v), min(v), max(v) FROM o", ""}};

static void make_tables(void)
{
	change("CREATE TABLE t (a INTEGER NOT NULL, b INTEGER, c TEXT, r REAL)", 0);
	change("CREATE INDEX t_a ON t (a)", 0);
	run_any("INSERT INTO t WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i LIMIT 4000) "
		"SELECT v, NULL, NULL, 0.5 FROM i");
	change("CREATE TABLE k (id INTEGER PRIMARY KEY, v INTEGER)", 0);
	change("CREATE TABLE q (v INTEGER CHECK (v > 0))", 0);
	change("CREATE TABLE w (v INTEGER UNIQUE, x)", 0);
	change("CREATE TABLE o (v INTEGER)", 0);
	change("CREATE INDEX o_v ON o (abs(v))", 0);
	for (const char *name = "kqwo"; *name; name++) {
		char sql[128];

		(void)snprintf(sql, sizeof(sql),
			       "INSERT INTO %c%s SELECT %s FROM t WHERE a <= 2000 ORDER BY a DESC",
			       *name, *name == 'w' ? " (v)" : "", *name == 'k' ? "a, a" : "a");
		change(sql, 2000);
	}
}

static void check_change(const struct change_case *c)
{
	char name[2] = {c->sql[*c->sql == 'U' ? 7 : 12]};
	uint64_t version = pfs_sides_version(tree);
	struct pfs_query *query;
	int code = pfs_query_start(&query, queries, &scope, c->sql, strlen(c->sql), &error);

	if (code != (c->rows < -1 ? c->rows : 0))
		fail_msg("%s: %d, %s", c->sql, code, error.text);
	if (c->rows >= 0)
		assert_int_equal(pfs_query_changes(query), c->rows);
	pfs_query_finish(query);
	/* builds that verify have SQLite run it, too, and undo that */
	if (!code && pfs_sides_version(tree) > version && is_sqlites(name) == c->is_ours)
		fail_msg("%s: %s", c->sql, c->is_ours ? "run by SQLite" : "not run by SQLite");
	for (size_t i = 0; i < PFS_COUNT(asked_of); i++)
		check_both(c->sql, asked_of[i][0], asked_of[i][1]);
}

/* The plan says for what reason SQLite changes the rows; NULL: the operators do. */
static void check_reason(const char *sql, const char *why)
{
	struct pfs_query *query;
	char *plan;

	scope.explains = true;
	query = begin(sql);
	scope.explains = false;
	assert_int_equal(pfs_query_plan(query, &plan), 0);
	if (why ? !strstr(plan, why) : !query->is_by_operators)
		fail_msg("%s: %s", sql, plan);
	free(plan);
	pfs_query_finish(query);
}

static void test_reasons_are_told(void **state)
{
	static const struct {
		const char *sql, *why;
	} cases[] = {
		{"UPDATE t SET b = 5 WHERE a = 98",
		 "for it has a column with values of several classes\n"},
		{"UPDATE t SET b = 5, e = 1 WHERE a = 98", NULL},
		{"UPDATE t SET b = 5 WHERE e = 'x'",
		 "for it has a column with values of several classes\n"},
		{"DELETE FROM t WHERE a = 99", NULL},
		{"UPDATE u SET v = v + 1 WHERE a = 1", NULL},
		{"UPDATE u SET x = a",
		 "for it has a value that its column would keep as another\n"},
		{"UPDATE OR IGNORE u SET v = 1",
		 "for it has what is to be done where rows conflict\n"},
		{"UPDATE u SET rowid = a + 10", "for it has a row's number that it sets\n"},
		{"INSERT INTO u (a) VALUES (1)", "for it has a column that gets its default\n"},
		{"UPDATE q SET v = 2",
		 "for it has a table with constraints, or with such indexes\n"},
		{"UPDATE u SET v = hex(a)", "for it has a function that is SQLite's\n"},
	};

	(void)state;
	change("CREATE TABLE t (a INT, b INT, c TEXT, d REAL, e)", 0);
	change("INSERT INTO t VALUES (98, 1, 'c', 0.5, 'x'), (99, 2, 'd', 1.5, 7)", 2);
	change("CREATE TABLE u (a INT, v INT, x TEXT)", 0);
	change("INSERT INTO u VALUES (1, 2, NULL), (2, 3, NULL)", 2);
	change("CREATE TABLE q (v INTEGER CHECK (v > 0))", 0);
	change("INSERT INTO q VALUES (1)", 1);
	for (size_t i = 0; i < PFS_COUNT(cases); i++)
		check_reason(cases[i].sql, cases[i].why);
}

static void test_operators_change_rows(void **state)
{
	(void)state;
	make_tables();
	for (size_t i = 0; i < PFS_COUNT(changes); i++)
		check_change(&changes[i]);
	reopen();
	check("SELECT count(*) FROM t", "0");
	check("SELECT count(*), sum(v), min(id) FROM k", "2000 2003000 5001");
}

/* Names and texts in which such words stand say nothing of rows. */
/* SQLite keeps a real column's -0.0 as 0, and any other's as it is. */
static void test_zeros_have_signs(void **state)
{
	static const char *const made[] = {
		"INSERT INTO z VALUES (-0.0, -0.0, 1)",
		"INSERT INTO z VALUES (-1.5, -1.5, 2)",
		"INSERT INTO z SELECT r * 0.0, b * 0.0, 3 FROM z WHERE r < 0",
		"UPDATE z SET r = r * 0.0, b = b * 0.0 WHERE n = 2",
	};
	static const char *const asked[][2] = {
		{"SELECT DISTINCT r, b, n FROM z", " ORDER BY n"},
		{"SELECT DISTINCT n, r * -1, b * -1 FROM z", " ORDER BY n"},
		{"SELECT n, max(r), min(r), max(b), min(b) FROM z", " GROUP BY n ORDER BY n"},
		{"SELECT count(DISTINCT r), count(DISTINCT b) FROM z", ""}};

	(void)state;
	change("CREATE TABLE z (r REAL, b, n INTEGER)", 0);
	for (size_t i = 0; i < PFS_COUNT(made); i++) {
		run_any(made[i]);
		for (size_t k = 0; k < PFS_COUNT(asked); k++)
			check_both(made[i], asked[k][0], asked[k][1]);
	}
	check("SELECT DISTINCT r FROM z", "0");
}

static void test_only_words_constrain(void **state)
{
	static const struct {
		const char *columns;
		bool is_ours;
	} cases[] = {
		{"a INTEGER, checked TEXT DEFAULT 'check', \"strict\" INTEGER", true},
		{"a INTEGER, strict INTEGER, conflict INTEGER /* on conflict */", true},
		{"a INTEGER, [autoincrement] TEXT", true},
		{"a INTEGER, b INTEGER CHECK (b > 0)", false},
		{"a INTEGER, CHECK (a > 0)", false},
		{"a INTEGER NOT NULL ON CONFLICT IGNORE", false},
		{"a INTEGER) STRICT --", false},
	};

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(cases); i++) {
		char sql[256];

		(void)snprintf(sql, sizeof(sql), "CREATE TABLE t (%s\n)", cases[i].columns);
		if (strstr(sql, "STRICT --"))
			(void)snprintf(sql, sizeof(sql), "CREATE TABLE t (a INTEGER) STRICT");
		change(sql, 0);
		change("INSERT INTO t (a) WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i LIMIT 4000) "
		       "SELECT v FROM i",
		       4000);
		change("DELETE FROM t WHERE a > 0", 4000);
		if (is_sqlites("t") == cases[i].is_ours)
			fail_msg("%s: %s", sql,
				 cases[i].is_ours ? "run by SQLite" : "not run by SQLite");
		change("DROP TABLE t", 0);
	}
}

/* A table that is too large for the operators is not read again and again to find that out. */
/* SQLite's way takes longer to begin with, however few the rows are, and however often it is
 * asked. */
static void test_changes_of_small_tables(void **state)
{
	(void)state;
	change("CREATE TABLE small (n INTEGER, v INTEGER)", 0);
	change("CREATE TABLE taken (n INTEGER, v INTEGER)", 0);
	change("CREATE INDEX small_n ON small (n)", 0);
	change("INSERT INTO small VALUES (1, 10), (2, 20), (3, 30)", 3);
	for (unsigned i = 0; i < 20; i++) {
		struct pfs_query *query =
			begin("INSERT INTO taken SELECT n, v FROM small WHERE n <= 2");

		assert_int_equal(pfs_query_changes(query), 2);
		assert_true(query->is_by_operators);
		pfs_query_finish(query);
	}
	check("SELECT count(*), sum(v) FROM taken", "40 600");
}

static void test_too_large_is_remembered(void **state)
{
	unsigned refused;

	(void)state;
	change("CREATE TABLE e (n INTEGER, s TEXT)", 0);
	run_any("INSERT INTO e WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i LIMIT 30000) "
		"SELECT v, 's' || v FROM i");
	reopen();
	scope.memory_limit = (uint64_t)1 << 20;
	refused = queries->n_sides_refused;
	for (unsigned i = 0; i < 3; i++) {
		char sql[128];
		struct pfs_query *query;

		(void)snprintf(sql, sizeof(sql),
			       "SELECT s, count(*) FROM e GROUP BY s HAVING count(*) > %u", i);
		if (!pfs_query_start(&query, queries, &scope, sql, strlen(sql), &error))
			pfs_query_finish(query);
		assert_int_equal(queries->n_sides_refused - refused, 1);
	}
	scope.memory_limit = 0;
	change("UPDATE e SET s = 'x' WHERE n = 7", 1);
	check("SELECT count(DISTINCT s) FROM e", "30000");
	assert_int_equal(queries->n_sides_refused - refused, 1);
}

/* More than is kept for older connections, and more than makes the committer begin at once. */
static void test_large_changes(void **state)
{
	struct pfs_query *held;
	uint64_t schema;

	(void)state;
	change("CREATE TABLE t (a INTEGER, b TEXT)", 0);
	change("INSERT INTO t VALUES (1, 'x')", 1);
	held = begin("SELECT a FROM t");
	for (unsigned i = 0; i < 3; i++) {
		change("INSERT INTO t VALUES (2, hex(zeroblob(1500000)))", 1);
		assert_int_equal(pfs_tree_sync(tree), 0);
	}
	pfs_query_finish(held);
	check("SELECT count(*), sum(length(b)) FROM t", "4 9000001");
	schema = pfs_sides_schema(tree);
	change("INSERT INTO t WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i "
	       "LIMIT 24) SELECT 3, hex(zeroblob(1500000)) FROM i",
	       24);
	held = begin("SELECT 1");
	check("SELECT a, count(*), sum(length(b)) FROM t GROUP BY a",
	      "1 1 1,2 3 9000000,3 24 72000000");
	pfs_query_finish(held);
	change("UPDATE t SET a = 4 WHERE a = 3", 24);
	assert_false(is_sqlites("t"));
	assert_int_equal(pfs_sides_schema(tree), schema); /* nothing was committed apart */
	check("SELECT a, count(*), sum(length(b)) FROM t GROUP BY a",
	      "1 1 1,2 3 9000000,4 24 72000000");
	reopen();
	check("SELECT a, count(*), sum(length(b)) FROM t GROUP BY a",
	      "1 1 1,2 3 9000000,4 24 72000000");
}

/* What SQLite has changed is committed apart if there is no memory for its rows beside its copy;
 * what there is no memory for at all changes nothing. */
static void test_changes_need_memory(void **state)
{
	static const char large[] = "UPDATE t SET b = hex(substr(b, 1, 250000))";
	uint64_t schema, size = 0;
	struct pfs_query *query;
	int code = -ENOMEM;

	(void)state;
	change("CREATE TABLE t (a INTEGER, b TEXT)", 0);
	change("INSERT INTO t WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i "
	       "LIMIT 24) SELECT v, hex(zeroblob(250000)) FROM i",
	       24);
	schema = pfs_sides_schema(tree);
	while (code == -ENOMEM) {
		check("SELECT count(*) FROM t WHERE b LIKE '3%'", "0");
		scope.memory_limit = size += (uint64_t)4 << 20;
		code = pfs_query_start(&query, queries, &scope, large, strlen(large), &error);
		scope.memory_limit = 0;
		if (code == -ENOMEM)
			assert_non_null(strstr(error.text, "memory"));
	}
	assert_int_equal(code, 0);
	pfs_query_finish(query);
	assert_true(pfs_sides_schema(tree) > schema);
	check("SELECT count(*), sum(length(b)) FROM t WHERE b LIKE '3%'", "24 12000000");
}

/* Nor does a table have to fit into memory to be dropped. */
static void test_dropping_needs_no_rows(void **state)
{
	(void)state;
	change("CREATE TABLE t (a INTEGER, b TEXT)", 0);
	change("CREATE INDEX t_a ON t (a)", 0);
	change("CREATE TABLE u (a INTEGER)", 0);
	change("INSERT INTO u VALUES (7)", 1);
	change("INSERT INTO t WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i "
	       "LIMIT 30) SELECT v, hex(zeroblob(100000)) FROM i",
	       30);
	reopen();
	scope.memory_limit = (uint64_t)2 << 20;
	refuse("DELETE FROM t WHERE hex(b) = ''", -ENOMEM, "memory");
	change("DROP TABLE t", 0);
	scope.memory_limit = 0;
	refuse("SELECT * FROM t", -EINVAL, "no such table");
	check("SELECT group_concat(name), (SELECT a FROM u) FROM sqlite_master", "u 7");
	reopen();
	refuse("SELECT * FROM t", -EINVAL, "no such table");
}

/* Numbers that take less room in SQLite's copy than packed. */
static void test_rows_are_too_many_for_operators(void **state)
{
	(void)state;
	change("CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER, d INTEGER)", 0);
	change("INSERT INTO t WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i "
	       "LIMIT 50000) SELECT v % 5, NULL, NULL, NULL FROM i",
	       50000);
	check("SELECT sum(a) FROM t", "100000");
	scope.memory_limit = (uint64_t)2 << 20;
	check_reason("UPDATE t SET a = a + 1", "for it has more rows than there is memory for\n");
	scope.memory_limit = 0;
	check("SELECT sum(a) FROM t", "150000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_few_rows_are_found),
		TEST(test_reasons_are_told),
		TEST(test_operators_change_rows),
		TEST(test_only_words_constrain),
		TEST(test_too_large_is_remembered),
		TEST(test_large_changes),
		TEST(test_zeros_have_signs),
		TEST(test_changes_of_small_tables),
		TEST(test_dropping_needs_no_rows),
		TEST(test_changes_need_memory),
		TEST(test_rows_are_too_many_for_operators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
