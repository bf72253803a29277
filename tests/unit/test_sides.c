/* SPDX-License-Identifier: MIT */
/* Rows of side tables that change: each connection sees them at once, as one version, and the store
 * has them with the next commit. */
#include "tests/unit/side_util.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "fs/journal/journal.h"
#include "fs/query/internal.h"
#include "fs/query/relational/relational.h"
#include "fs/query/relational/sidetable.h"
#include "fs/tree/sides.h"
#include "fs/tree/tree_impl.h"
#include "meta/sql/sqlside.h"
#include "tests/ref/random.h"

#define ALL "SELECT rowid, *, typeof(a), typeof(b) FROM t ORDER BY rowid"

static uint64_t seed = 20261122;

static uint32_t rnd(uint32_t n)
{
	return random_below(&seed, n);
}

/* Values that a column may have. */
static const char *const values[] = {"NULL",
				     "0",
				     "-1",
				     "7",
				     "9223372036854775807",
				     "-9223372036854775808",
				     "0.5",
				     "-0.0",
				     "1e300",
				     "9007199254740993",
				     "''",
				     "'a'",
				     "'B  '",
				     "'7'",
				     "'0.5'",
				     "x''",
				     "x'00ff'",
				     "'\xc3\xa4'",
				     "'7.0'",
				     "9007199254740993.0"};

static const char *value(void)
{
	return values[rnd(PFS_COUNT(values))];
}

/* @ becomes a value, # a small number. */
static void fill_in(char *out, const char *statement)
{
	for (; *statement; statement++) {
		if (*statement == '@')
			out = stpcpy(out, value());
		else if (*statement == '#')
			out += sprintf(out, "%u", rnd(40));
		else
			*out++ = *statement;
	}
	*out = 0;
}

static const char *const statements[] = {
	"INSERT INTO t VALUES (@, @), (@, @), (@, @)",
	"INSERT INTO t (rowid, a) VALUES (# * 3, @) ON CONFLICT DO NOTHING",
	"INSERT OR REPLACE INTO t (rowid, a, b) VALUES (#, @, @)",
	"INSERT INTO t SELECT b, a FROM t WHERE rowid % 7 = # % 7",
	"UPDATE t SET a = @ WHERE b = @",
	"UPDATE t SET a = b, b = a WHERE rowid < #",
	"UPDATE t SET b = a + 1 WHERE a > @",
	"UPDATE OR IGNORE t SET rowid = # + rowid * 50 WHERE rowid = #",
	"DELETE FROM t WHERE rowid % 5 = # % 5 OR a = @",
	"DELETE FROM t WHERE b IS @",
};

static void check_all_the_same(const char *why)
{
	static char first[1 << 18], second[1 << 18];

	query_text(first, sizeof(first), ALL);
	/* two connections, of which the one that was asked first knows least */
	for (int i = 0; i < 2; i++) {
		struct pfs_query *held = begin("SELECT 1");

		query_text(second, sizeof(second), ALL);
		pfs_query_finish(held);
		if (strcmp(first, second) != 0)
			fail_msg("%s: %s, and %s by another connection", why, first, second);
	}
}

static void test_connections_take_over_changes(void **state)
{
	static const char *const tables[] = {"CREATE TABLE t (a, b)",
					     "CREATE TABLE t (a INTEGER, b TEXT)",
					     "CREATE TABLE t (a REAL, b NUMERIC NOT NULL)",
					     "CREATE TABLE t (a TEXT COLLATE NOCASE, b INTEGER)",
					     "CREATE TABLE t (a INTEGER PRIMARY KEY, b)"};
	static char before[1 << 18];
	unsigned rounds = getenv("PFS_TEST_SMALL") ? 40 : 120;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (size_t i = 0; i < PFS_COUNT(tables); i++) {
		change(tables[i], 0);
		change("CREATE INDEX t_a ON t (a)", 0);
		for (unsigned round = 0; round < rounds; round++) {
			struct pfs_query *held = begin("SELECT 1");
			bool is_let_go = rnd(2);
			char sql[512];

			if (is_let_go)
				pfs_query_finish(held);
			fill_in(sql, statements[rnd(PFS_COUNT(statements))]);
			run_any(sql);
			if (!is_let_go)
				pfs_query_finish(held);
			check_all_the_same(sql);
			if (round % 20 == 19) {
				query_text(before, sizeof(before), ALL);
				reopen();
				check(ALL, before);
			}
		}
		change("DROP TABLE t", 0);
	}
}

/* ---- columns of the operators ---- */

static const char *const typed[] = {
	"INSERT INTO e VALUES (#, 's#', # / 4.0), (NULL, 's#', NULL), (-#, NULL, -0.5)",
	"INSERT INTO e SELECT n + 1, s || 'x', r FROM e WHERE n = # OR s = 's#'",
	"UPDATE e SET n = n + #, r = -r WHERE n % 5 = # % 5",
	"UPDATE e SET s = 't#', n = NULL WHERE r > # / 4.0",
	"DELETE FROM e WHERE n % 9 = # % 9 OR s IS 's#'",
	"DELETE FROM e WHERE rowid = (SELECT max(rowid) FROM e)",
	"INSERT OR IGNORE INTO e (rowid, n) VALUES (#, #)",
	"DELETE FROM e WHERE rowid % 2 = # % 2",
};

/* Before and after the place of NOT INDEXED, which leaves a statement to SQLite. */
static const char *const asked[][2] = {
	{"SELECT s, count(*), count(n), sum(n), min(r), max(n) FROM e", " GROUP BY s ORDER BY s"},
	{"SELECT n, count(*), max(s) FROM e", " WHERE r IS NULL OR r < 3 GROUP BY n ORDER BY n"},
	{"SELECT count(*), count(DISTINCT n), count(DISTINCT s), sum(r) FROM e", ""},
	{"SELECT DISTINCT n, s FROM e", " WHERE s GLOB 's1*' ORDER BY n, s"},
};

/* What the operators say beside what SQLite does. */
static void check_operators(const char *why)
{
	static char ours[1 << 18], its[1 << 18];

	for (size_t i = 0; i < PFS_COUNT(asked); i++) {
		char sql[256];
		struct pfs_query *query;

		(void)snprintf(sql, sizeof(sql), "%s%s", asked[i][0], asked[i][1]);
		query = begin(sql);
		rest_text(ours, sizeof(ours), query);
		assert_true(pfs_relational_has_rows(query->relational));
		pfs_query_finish(query);
		(void)snprintf(sql, sizeof(sql), "%s NOT INDEXED%s", asked[i][0], asked[i][1]);
		query_text(its, sizeof(its), sql);
		if (strcmp(ours, its) != 0)
			fail_msg("%s, %s: %s, not %s", why, sql, ours, its);
	}
}

static void test_columns_follow_changes(void **state)
{
	unsigned rounds = getenv("PFS_TEST_SMALL") ? 60 : 300;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	change("CREATE TABLE e (n INTEGER, s TEXT, r REAL)", 0);
	run_any("INSERT INTO e WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i LIMIT 1500) "
		"SELECT v % 40, 's' || (v % 30), v / 8.0 FROM i");
	for (unsigned round = 0; round < rounds; round++) {
		struct pfs_query *held =
			begin(rnd(4) ? "SELECT 1" : "SELECT s, count(*) FROM e GROUP BY s");
		char sql[512];

		assert_true(pfs_query_next(held, &error) >= 0);
		fill_in(sql, typed[rnd(PFS_COUNT(typed))]);
		run_any(sql);
		check_operators(sql);
		pfs_query_finish(held);
		if (!rnd(30))
			run_any("INSERT INTO e SELECT v, 's' || v, 1 FROM (WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL "
				"SELECT v + 1 FROM i LIMIT 900) SELECT v FROM i)");
	}
}

static void test_columns_are_not_made_anew(void **state)
{
	uint64_t made;

	(void)state;
	change("CREATE TABLE e (n INTEGER, s TEXT, r REAL)", 0);
	run_any("INSERT INTO e WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i LIMIT 5000) "
		"SELECT v, 's' || (v % 30), 0.5 FROM i");
	check("SELECT count(DISTINCT s), sum(n) FROM e", "30 12502500");
	made = queries->sides_made;
	for (int i = 0; i < 50; i++) {
		run_any("UPDATE e SET n = n + 1 WHERE n = 7");
		run_any("INSERT INTO e VALUES (7, 's1', NULL)");
		run_any("DELETE FROM e WHERE rowid = (SELECT max(rowid) FROM e)");
		check("SELECT count(DISTINCT s) FROM e", "30");
	}
	assert_int_equal(queries->sides_made, made);
	check_operators("in the end");
}

/* Neither when all of a change is in the list that is kept, and changes of another table no longer
 * are. */
static void test_columns_outlive_changes_of_others(void **state)
{
	uint64_t made;

	(void)state;
	change("CREATE TABLE e (n INTEGER)", 0);
	change("CREATE TABLE u (s TEXT)", 0);
	run_any("INSERT INTO e WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i LIMIT 5000) "
		"SELECT v FROM i");
	check("SELECT count(DISTINCT n), sum(n) FROM e", "5000 12502500");
	for (int i = 0; i < 3; i++) {
		change("INSERT INTO u VALUES (hex(zeroblob(3000000)))", 1);
		assert_int_equal(pfs_tree_sync(tree), 0);
		made = queries->sides_made;
		change("UPDATE e SET n = n + 1 WHERE n > 0", 5000);
		check("SELECT count(*) FROM e WHERE n > 1", "5000");
		assert_int_equal(queries->sides_made, made);
	}
}

static _Atomic unsigned ticks; /* looks at a statement's time */

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __real_pfs_query_tick(void *user);
int __wrap_pfs_query_tick(void *user);

int __wrap_pfs_query_tick(void *user)
{
	ticks++;
	return __real_pfs_query_tick(user);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* A statement's time is looked at while columns take over what has changed. */
static void test_columns_follow_in_time(void **state)
{
	(void)state;
	change("CREATE TABLE e (n INTEGER)", 0);
	run_any("INSERT INTO e WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i "
		"LIMIT 200000) "
		"SELECT v FROM i");
	check("SELECT count(DISTINCT n) FROM e", "200000");
	change("UPDATE e SET n = n + unicode('a') - 96", 200000);
	ticks = 0;
	check("SELECT sum(n) FROM e", "20000300000");
	assert_true(ticks >= 200000 / 4096);
}

/* ---- indexes of the operators ---- */

static void test_indexes_follow_changes(void **state)
{
	static const char *const changed[] = {
		"UPDATE e SET n = n + # WHERE n > # * 100 AND n < # * 150",
		"UPDATE e SET n = NULL WHERE n = # * 7",
		"UPDATE e SET n = # WHERE n IS NULL",
		"UPDATE e SET n = 9223372036854775807 WHERE n = #",
		"UPDATE e SET r = r / 2 WHERE n < # * 90",
		"DELETE FROM e WHERE n > # AND n < # * 2",
		"DELETE FROM e WHERE r > # * 15.5 AND r < # * 15.6",
		"INSERT INTO e SELECT n, s, -r FROM e WHERE n < # * 3 AND r > 0",
		"INSERT INTO e SELECT r, s, n FROM e WHERE n = # AND r > 0",
		"DELETE FROM e WHERE n >= # * 200"};
	unsigned rounds = getenv("PFS_TEST_SMALL") ? 12 : 60;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	change("CREATE TABLE e (n INTEGER, s TEXT, r REAL)", 0);
	change("CREATE INDEX e_n ON e (n)", 0);
	change("CREATE INDEX e_r ON e (r, n)", 0);
	for (unsigned round = 0; round < rounds; round++) {
		char sql[512], rest[256];

		if (round % 30 == 0)
			run_any("DELETE FROM e");
		if (round % 30 == 0)
			run_any("INSERT INTO e WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i LIMIT 1500) "
				"SELECT v, 's' || (v % 30), v / 8.0 FROM i");
		fill_in(sql, changed[rnd(PFS_COUNT(changed))]);
		run_any(sql);
		fill_in(rest, " WHERE n > # * 70 AND n <= # * 70 ORDER BY n, r, s");
		check_both(sql, "SELECT * FROM e", rest);
		fill_in(rest, " WHERE r >= # * 9.125 AND r < # * 10 ORDER BY n, r, s");
		check_both(sql, "SELECT * FROM e", rest);
		fill_in(rest, " WHERE n = # OR n = 9223372036854775807");
		check_both(sql, "SELECT count(*), sum(r) FROM e", rest);
		check_both(sql, "SELECT count(*), sum(r) FROM e", " WHERE n = 9223372036854775807");
	}
}

/* Real bounds beside the largest integers. */
static void test_indexes_know_the_largest(void **state)
{
	(void)state;
	change("CREATE TABLE t (a INTEGER)", 0);
	change("CREATE INDEX t_a ON t (a)", 0);
	change("INSERT INTO t WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i LIMIT 1000) SELECT v FROM i",
	       1000);
	change("INSERT INTO t VALUES (9210000000000000000)", 1);
	check("SELECT a FROM t WHERE a >= 9.2e18", "9210000000000000000");
	check("SELECT a FROM t WHERE a = 9.21e18", "9210000000000000000");
	check("SELECT a FROM t WHERE a > 9.3e18", "");
	change("DELETE FROM t WHERE a > 9.2e18", 1);
}

/* How many rows an index of the first column names for values up to `last`, of `most` at most;
 * SIZE_MAX: more. */
static size_t indexed(int64_t last, size_t most)
{
	const struct pfs_constant constant = {.type = PFS_IS_INTEGER, .integer = last};
	struct pfs_query *query = begin("SELECT 1 FROM e");
	struct pfs_side_range range = {0, UINT64_MAX};
	const struct pfs_side_table *table;
	uint32_t *rows;
	size_t n;

	assert_int_equal(pfs_side_table_get(&table, query, "e"), 0);
	pfs_side_range_narrow(&range, table, 0, PFS_OP_LE, &constant);
	assert_int_equal(pfs_side_table_find(table, &rows, &n, 0, &range, most, query->account), 0);
	if (!rows)
		n = SIZE_MAX;
	free(rows);
	pfs_side_table_put(queries, table);
	pfs_query_finish(query);
	return n;
}

/* Rows that are gone do not go on counting as what a value has. */
static void test_indexes_forget_rows(void **state)
{
	(void)state;
	change("CREATE TABLE e (n INTEGER, s TEXT)", 0);
	change("CREATE INDEX e_n ON e (n)", 0);
	run_any("INSERT INTO e WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i "
		"LIMIT 6400) SELECT v, 's' FROM i");
	assert_in_range(indexed(50, 256), 50, 52);
	for (unsigned i = 0; i < 50; i++) {
		change("DELETE FROM e WHERE n <= 50", 50);
		run_any("INSERT INTO e WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 "
			"FROM i LIMIT 50) SELECT v, 's' FROM i");
		change("INSERT INTO e VALUES (9999, 'the last, so that no row gets a number "
		       "again')",
		       1);
		assert_in_range(indexed(50, 450), 50, 250); /* and those that changed */
	}
	check("SELECT count(*), sum(n) FROM e WHERE n <= 50", "50 1275");
}

/* ---- what others' changes cost ---- */

static int count_row(void *arg, int64_t row, const struct pfs_cell *cells, size_t n)
{
	(void)row;
	(void)cells;
	(void)n;
	++*(unsigned *)arg;
	return 0;
}

static void test_a_join_makes_no_columns_anew(void **state)
{
	uint64_t made;

	(void)state;
	change("CREATE TABLE e (n INTEGER, s TEXT)", 0);
	change("CREATE TABLE f (n INTEGER, t TEXT)", 0);
	run_any("INSERT INTO e WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i LIMIT 3000) "
		"SELECT v, 's' || (v % 30) FROM i");
	change("INSERT INTO f SELECT n, s FROM e", 3000);
	check("SELECT count(*) FROM e JOIN f USING (n)", "3000");
	made = queries->sides_made;
	for (int i = 0; i < 10; i++) {
		change("UPDATE e SET s = s || 'x' WHERE n = 7", 1);
		check("SELECT count(*) FROM e JOIN f USING (n)", "3000");
		change("UPDATE f SET t = t || 'x' WHERE n = 9", 1);
		check("SELECT count(*) FROM e JOIN f USING (n)", "3000");
	}
	assert_int_equal(queries->sides_made, made);
}

static _Atomic unsigned fills; /* of copies of SQLite's */

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __real_pfs_sql_fill_begin(struct pfs_sql *sql, uint32_t id, bool anew);
int __wrap_pfs_sql_fill_begin(struct pfs_sql *sql, uint32_t id, bool anew);

int __wrap_pfs_sql_fill_begin(struct pfs_sql *sql, uint32_t id, bool anew)
{
	fills++;
	return __real_pfs_sql_fill_begin(sql, id, anew);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* Other tables are made, dropped, replaced and get indexes, as nodes do; rows change meanwhile. */
static void test_other_tables_make_no_copy_anew(void **state)
{
	struct pfs_query_error problem;
	uint64_t made;

	(void)state;
	change("CREATE TABLE e (n INTEGER, s TEXT)", 0);
	run_any("INSERT INTO e WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i "
		"LIMIT 3000) "
		"SELECT v, 's' || (v % 30) FROM i");
	check("SELECT count(DISTINCT n), sum(n) FROM e", "3000 4501500");
	check("SELECT count(*) FROM e NOT INDEXED", "3000");
	made = queries->sides_made;
	for (unsigned i = 1; i <= 5; i++) {
		change("CREATE TABLE f (n INTEGER UNIQUE)", 0);
		check("SELECT count(DISTINCT n) FROM e", "3000");
		change("INSERT INTO f VALUES (1)", 1);
		change("UPDATE e SET n = n WHERE n = 7", 1);
		change("CREATE TABLE g AS SELECT * FROM f", 0);
		check("SELECT sum(n) FROM e", "4501500");
		change("CREATE INDEX on_g ON g (n)", 0);
		change("DROP TABLE g", 0);
		assert_int_equal(pfs_table_drop(queries, "f", &problem), 0);
		check("SELECT max(n), count(DISTINCT s) FROM e", "3000 30");
	}
	assert_in_range(queries->sides_made - made, 0, 10); /* of f, and of g */
	check("SELECT count(*) FROM e NOT INDEXED", "3000");
	fills = 0;
	made = queries->sides_made;
	for (unsigned i = 1; i <= 5; i++) {
		change("CREATE TABLE f (n INTEGER)", 0);
		check("SELECT count(*), sum(n) FROM e", "3000 4501500");
		check("SELECT count(*), sum(n) FROM e NOT INDEXED", "3000 4501500");
		change("DROP TABLE f", 0);
		check("SELECT count(*), max(n) FROM e NOT INDEXED", "3000 3000");
		change("CREATE INDEX paths ON nodes(path)", 0);
		check("SELECT count(*), sum(n) FROM e", "3000 4501500");
		check("SELECT count(*), sum(n) FROM e NOT INDEXED", "3000 4501500");
		change("DROP INDEX paths", 0);
		check("SELECT count(*), max(n) FROM e", "3000 3000");
		check("SELECT count(*), max(n) FROM e NOT INDEXED", "3000 3000");
	}
	assert_int_equal(queries->sides_made, made);
	assert_int_equal(fills, 0);
	/* one that is dropped, and another one that has its name, or its number */
	change("DROP TABLE e", 0);
	change("CREATE TABLE e (n TEXT)", 0);
	change("INSERT INTO e VALUES ('x')", 1);
	check("SELECT max(n) FROM e", "x");
	check("SELECT count(*) FROM e NOT INDEXED", "1");
}

/* Who does not name a table does not take over what has changed of it. */
static void test_only_who_reads_takes_over(void **state)
{
	uint64_t version;

	(void)state;
	change("CREATE TABLE e (n INTEGER, s TEXT)", 0);
	change("CREATE TABLE f (n INTEGER, t TEXT)", 0);
	change("INSERT INTO e VALUES (1, 'x')", 1);
	check("SELECT n FROM e NOT INDEXED", "1");
	version = pfs_sides_version(tree);
	for (int i = 0; i < 20; i++) {
		struct pfs_query *held = begin("SELECT 1");

		change("INSERT INTO e VALUES (2, 'y')", 1);
		pfs_query_finish(held);
		check("SELECT count(*) FROM f NOT INDEXED", "0");
	}
	assert_int_equal(pfs_sql_side_find(queries->idle->sql, "e")->version, version);
	check("SELECT count(*) FROM e NOT INDEXED", "21");
	assert_int_equal(pfs_sql_side_find(queries->idle->sql, "e")->version,
			 pfs_sides_version(tree));
}

struct counting {
	unsigned rows, changed;
};

static int change_meanwhile(void *arg, int64_t row, const struct pfs_cell *cells, size_t n)
{
	struct counting *counting = arg;

	(void)row;
	(void)cells;
	(void)n;
	if (counting->rows++ == 100) {
		change("INSERT INTO e VALUES (2)", 1);
		assert_int_equal(pfs_tree_sync(tree), 0);
		change("DELETE FROM e WHERE rowid < 300", 299);
	}
	return 0;
}

static int count_changed(void *arg, int64_t row, const struct pfs_cell *cells, size_t n)
{
	struct counting *counting = arg;

	(void)row;
	(void)n;
	counting->changed += cells != NULL;
	return 0;
}

/* Whoever reads all rows holds up neither changes nor commits, and has what there was when it
 * began. */
static void test_reading_all_rows_holds_nobody_up(void **state)
{
	struct counting counting = {0, 0};
	uint64_t version;
	unsigned n = 0;

	(void)state;
	change("CREATE TABLE e (n INTEGER)", 0);
	change("CREATE TABLE u (n INTEGER)", 0);
	run_any("INSERT INTO e WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i LIMIT 500) SELECT v FROM i");
	assert_int_equal(pfs_tree_sync(tree), 0);
	/* more than the list keeps when it is committed */
	change("INSERT INTO e VALUES ('x' || hex(zeroblob(3000000)))", 1);
	(void)alarm(120); /* where it deadlocks */
	assert_int_equal(pfs_sides_rows(tree, 1, pfs_sides_version(tree), change_meanwhile,
					count_changed, &counting),
			 0);
	(void)alarm(0);
	assert_int_equal(counting.rows + counting.changed, 501);
	assert_int_equal(pfs_sides_rows(tree, 1, pfs_sides_version(tree) - 1, count_row, count_row,
					&counting),
			 -EAGAIN);
	version = pfs_sides_version(tree);
	change("INSERT INTO u VALUES (1)", 1); /* it is another table's change */
	assert_int_equal(pfs_sides_rows(tree, 1, version, count_row, count_row, &n), 0);
	assert_in_range(n, 203, 2 * 501); /* with those that wait */
	check("SELECT count(*) FROM e", "203");
}

static _Atomic unsigned n_taken_over;

/* abs(x), which an index of the copy asks for as a row is taken over. */
static void abs_meanwhile(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	(void)n;
	if (n_taken_over && --n_taken_over == 0) {
		change("INSERT INTO u VALUES (hex(zeroblob(3000000)))", 1);
		assert_int_equal(pfs_tree_sync(tree), 0); /* more than the list keeps */
	}
	sqlite3_result_int64(context, llabs(sqlite3_value_int64(arguments[0])));
}

static int replace_abs(sqlite3 *handle, const char **why, const void *routines)
{
	(void)why;
	(void)routines;
	return sqlite3_create_function(
		handle, "abs", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL,
		abs_meanwhile, NULL, NULL);
}

/* Nor does whoever takes over a change, which may have any size. */
static void test_taking_over_holds_nobody_up(void **state)
{
	(void)state;
	(void)sqlite3_auto_extension((void (*)(void))replace_abs);
	reopen();
	change("CREATE TABLE u (s TEXT)", 0);
	change("CREATE TABLE e (n INTEGER)", 0);
	change("CREATE INDEX e_n ON e (abs(n))", 0);
	change("INSERT INTO e VALUES (0)", 1);
	check("SELECT count(*) FROM e NOT INDEXED", "1");
	{
		struct pfs_query *held = begin("SELECT 1");

		change("INSERT INTO e WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 "
		       "FROM i LIMIT 500) SELECT v FROM i",
		       500);
		pfs_query_finish(held);
	}
	n_taken_over = 100;
	(void)alarm(120); /* where it deadlocks */
	check("SELECT count(*), sum(n) FROM e NOT INDEXED", "501 125250");
	(void)alarm(0);
	assert_int_equal(n_taken_over, 0);
	check("SELECT count(*) FROM u", "1");
	(void)sqlite3_cancel_auto_extension((void (*)(void))replace_abs);
}

/* Rows that wait are read where they are: they take no memory of who reads them. */
static void test_rows_that_wait_take_no_memory(void **state)
{
	static const char text[] = "SELECT length(s) FROM e NOT INDEXED";
	struct pfs_query *held, *query;
	char sql[64];
	int code;

	(void)state;
	change("CREATE TABLE e (s TEXT)", 0);
	change("INSERT INTO e VALUES ('x')", 1);
	pfs_journal_hold(tree);
	for (unsigned i = 0; i < 20; i++) {
		(void)snprintf(sql, sizeof(sql), "UPDATE e SET s = hex(zeroblob(%u))", 250000 + i);
		change(sql, 1);
	}
	held = begin("SELECT 1"); /* has the connection whose copy has changed */
	scope.memory_limit = (uint64_t)6 << 20;
	code = pfs_query_start(&query, queries, &scope, text, strlen(text), &error);
	scope.memory_limit = 0;
	pfs_journal_let_go(tree);
	assert_int_equal(code, 0);
	pfs_query_finish(query);
	pfs_query_finish(held);
	check(text, "500038");
}

/* Small changes do not wait for commits, and none is lost. */
static void test_rows_wait_for_the_next_commit(void **state)
{
	uint64_t seq, version;
	unsigned rows = 0;

	(void)state;
	change("CREATE TABLE t (a, b)", 0);
	seq = pfs_store_seq(tree->store);
	version = pfs_sides_version(tree);
	for (unsigned i = 0; i < 200; i++)
		change("INSERT INTO t VALUES (1, 2)", 1);
	assert_int_equal(pfs_sides_version(tree), version + 200);
	assert_true(pfs_store_seq(tree->store) < seq + 100);
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(pfs_store_scan_rows(tree->store, 1, NULL, count_row, &rows), 0);
	assert_int_equal(rows, 200);
	/* where the row's number is a column, too, unless that is set */
	change("CREATE TABLE k (id INTEGER PRIMARY KEY, a)", 0);
	change("INSERT INTO k (a) SELECT a FROM t", 200);
	assert_int_equal(pfs_tree_sync(tree), 0);
	seq = pfs_store_seq(tree->store);
	for (unsigned i = 0; i < 100; i++)
		change("UPDATE k SET a = a + 1 WHERE id = 7", 1);
	assert_true(pfs_store_seq(tree->store) < seq + 50);
	change("UPDATE k SET id = id + 1000 WHERE a = 101", 1);
	change("UPDATE t SET rowid = 1000 WHERE rowid = 200", 1);
	reopen();
	check("SELECT id, a FROM k WHERE a > 1", "1007 101");
	check("SELECT count(*), max(rowid) FROM t", "200 1000");
	change("UPDATE t SET rowid = 200 WHERE rowid = 1000", 1);
	/* what is more than rows takes with it those that wait */
	change("UPDATE t SET a = 3 WHERE rowid <= 100", 100);
	change("CREATE INDEX t_a ON t (a)", 0);
	change("DELETE FROM t WHERE a = 3 AND rowid <= 50", 50);
	change("CREATE TABLE u AS SELECT * FROM t", 0);
	change("INSERT INTO u SELECT * FROM t", 150);
	change("DROP TABLE t", 0);
	check("SELECT a, count(*) FROM u GROUP BY a", "1 200,3 100");
	reopen();
	check("SELECT a, count(*) FROM u GROUP BY a", "1 200,3 100");
}

/* A statement that fails has changed nothing, for nobody. */
static void test_what_fails_changes_nothing(void **state)
{
	uint64_t version;

	(void)state;
	change("CREATE TABLE t (a INTEGER NOT NULL, b)", 0);
	change("INSERT INTO t VALUES (1, 2), (3, 4)", 2);
	version = pfs_sides_version(tree);
	refuse("INSERT INTO t SELECT 5, 6 UNION ALL SELECT NULL, 7", -EINVAL, "NOT NULL");
	refuse("UPDATE t SET a = iif(rowid = 2, NULL, 9)", -EINVAL, "NOT NULL");
	refuse("UPDATE t SET b = iif(rowid = 2, zeroblob(9000000), 9)", -E2BIG, "8 MiB");
	assert_int_equal(pfs_sides_version(tree), version);
	check_all_the_same("refused");
	check("SELECT * FROM t", "1 2,3 4");
}

/* ---- side by side ---- */

static _Atomic bool is_over;
static _Atomic unsigned n_read, n_torn;

static void *read_rows(void *arg)
{
	struct pfs_query_error problem;

	while (!atomic_load(&is_over)) {
		static const char sql[] = "SELECT count(DISTINCT a), count(*) FROM t";
		struct pfs_query *query;
		struct pfs_sql_value distinct, rows;

		if (pfs_query_start(&query, queries, &scope, sql, sizeof(sql) - 1, &problem))
			continue;
		if (pfs_query_next(query, &problem) == 1) {
			pfs_query_value(query, 0, &distinct);
			pfs_query_value(query, 1, &rows);
			atomic_fetch_add(&n_torn, distinct.integer != 1 || rows.integer % 100);
			atomic_fetch_add(&n_read, 1);
		}
		pfs_query_finish(query);
	}
	return arg;
}

static void test_readers_see_one_version(void **state)
{
	unsigned rounds = getenv("PFS_TEST_SMALL") ? 30 : 100;
	pthread_t readers[3];

	(void)state;
	change("CREATE TABLE t (a INTEGER, b TEXT)", 0);
	change("INSERT INTO t WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i LIMIT 500) "
	       "SELECT 0, 'row ' || v FROM i",
	       500);
	atomic_store(&is_over, false);
	for (size_t i = 0; i < PFS_COUNT(readers); i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_rows, NULL), 0);
	for (unsigned i = 0; i < rounds; i++) {
		char sql[128];

		(void)snprintf(sql, sizeof(sql), "UPDATE t SET a = %u", i);
		change(sql, 500);
		change("DELETE FROM t WHERE rowid > 400", 100);
		change("INSERT INTO t SELECT a, b FROM t LIMIT 100", 100);
	}
	atomic_store(&is_over, true);
	for (size_t i = 0; i < PFS_COUNT(readers); i++)
		(void)pthread_join(readers[i], NULL);
	assert_true(atomic_load(&n_read) > 0);
	assert_int_equal(atomic_load(&n_torn), 0);
}

static void *make_files(void *arg)
{
	for (unsigned i = 0; !atomic_load(&is_over); i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "new%u", i);
		(void)temp_tree_make(tree, PFS_ROOT_PRIME, name, S_IFREG | 0644);
		(void)!pfs_tree_unlink(tree, PFS_ROOT_PRIME, name);
	}
	return arg;
}

/* A statement reads a frozen tree after the first change; what it makes goes to the live one. */
static void test_rows_of_a_tree_that_changes(void **state)
{
	unsigned rounds = getenv("PFS_TEST_SMALL") ? 5 : 20;
	pthread_t maker;

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "file%u", i);
		(void)make(PFS_ROOT_PRIME, name, S_IFREG | 0644);
	}
	change("CREATE TABLE t (a INTEGER, b TEXT)", 0);
	atomic_store(&is_over, false);
	assert_int_equal(pthread_create(&maker, NULL, make_files, NULL), 0);
	for (unsigned i = 0; i < rounds; i++) {
		static const char sql[] =
			"INSERT INTO t SELECT ino, upper(path) FROM nodes WHERE name GLOB 'file*'";
		struct pfs_query *query;
		struct pfs_query_error problem;

		if (pfs_query_start(&query, queries, &scope, sql, sizeof(sql) - 1, &problem))
			fail_msg("%s", problem.text);
		pfs_query_finish(query);
	}
	atomic_store(&is_over, true);
	(void)pthread_join(maker, NULL);
	check("SELECT count(DISTINCT a) FROM t", "3000");
	check("SELECT count(*) FROM t GROUP BY a LIMIT 1", getenv("PFS_TEST_SMALL") ? "5" : "20");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_connections_take_over_changes),
		TEST(test_columns_follow_changes),
		TEST(test_columns_are_not_made_anew),
		TEST(test_columns_outlive_changes_of_others),
		TEST(test_columns_follow_in_time),
		TEST(test_indexes_follow_changes),
		TEST(test_indexes_know_the_largest),
		TEST(test_indexes_forget_rows),
		TEST(test_a_join_makes_no_columns_anew),
		TEST(test_other_tables_make_no_copy_anew),
		TEST(test_only_who_reads_takes_over),
		TEST(test_reading_all_rows_holds_nobody_up),
		TEST(test_taking_over_holds_nobody_up),
		TEST(test_rows_that_wait_take_no_memory),
		TEST(test_rows_wait_for_the_next_commit),
		TEST(test_what_fails_changes_nothing),
		TEST(test_readers_see_one_version),
		TEST(test_rows_of_a_tree_that_changes),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
