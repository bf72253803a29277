/* SPDX-License-Identifier: MIT */
/* A statement that is asked again is found as it was prepared, and answers as if it had not
 * been. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "fs/query/internal.h"
#include "fs/query/relational/relational.h"
#include "fs/query/relational/sidetable.h"
#include "tests/unit/query_util.h"

#define GROUPED "SELECT g, sum(v) FROM t GROUP BY g ORDER BY g"

static uint64_t found(void)
{
	struct pfs_plan_counts counts;

	pfs_queries_plans(queries, &counts);
	return counts.found;
}

static void ask(const char *sql, const char *expected, bool is_found)
{
	static char text[1 << 16];
	uint64_t before = found();

	query_text(text, sizeof(text), sql);
	if (strcmp(text, expected) != 0)
		fail_msg("%s: %s, not %s", sql, text, expected);
	if (found() - before != is_found)
		fail_msg("%s: %s", sql, is_found ? "not found" : "found");
}

static void run(const char *sql)
{
	struct pfs_query *query = begin(sql);

	pfs_query_finish(query);
}

static void make_table(void)
{
	run("CREATE TABLE t (g INTEGER, v INTEGER)");
	run("INSERT INTO t VALUES (1, 10), (1, 20), (2, 5)");
}

static void test_found(void **state)
{
	(void)state;
	make_table();
	ask(GROUPED, "1 30,2 5", false);
	for (unsigned i = 0; i < 3; i++)
		ask(GROUPED, "1 30,2 5", true);
	ask("SELECT name FROM nodes WHERE parent = 1 ORDER BY name", "", false);
	ask("SELECT count(*) FROM nodes", "6", false);
	ask("SELECT count(*) FROM nodes", "6", true);
	(void)make(PFS_ROOT_PRIME, "new", S_IFREG | 0644);
	ask("SELECT count(*) FROM nodes", "7", true); /* the tree is another one, the plan is not */
	ask("SELECT upper(name) FROM nodes WHERE name = 'new'", "NEW", false);
	ask("SELECT upper(name) FROM nodes WHERE name = 'new'", "NEW", true);
	ask("SELECT upper(name) FROM nodes WHERE name = 'new' -- so", "NEW", false);
	ask("SELECT upper(name) FROM nodes WHERE name = 'new' -- so", "NEW", true);
}

/* What binding knows of a column is no longer so. */
static void test_other_rows(void **state)
{
	(void)state;
	run("CREATE TABLE t (g, v)");
	run("INSERT INTO t VALUES (1, 10), (1, 20), (2, 5)");
	ask(GROUPED, "1 30,2 5", false);
	ask(GROUPED, "1 30,2 5", true);
	run("INSERT INTO t VALUES (2, 6)");
	ask(GROUPED, "1 30,2 11", true);
	run("UPDATE t SET g = 'x' WHERE g = 2");
	ask(GROUPED, "1 30,x 11", true);
	run("UPDATE t SET v = '7' WHERE g = 'x'");
	ask(GROUPED, "1 30,x 14", true);
	run("UPDATE t SET v = 0.5 WHERE g = 'x'");
	ask(GROUPED, "1 30,x 1", true);
	run("DELETE FROM t");
	ask(GROUPED, "", true);
	run("INSERT INTO t VALUES (x'41', 1)");
	ask(GROUPED, "A 1", true);
}

static void test_other_tables(void **state)
{
	(void)state;
	make_table();
	ask("SELECT * FROM t ORDER BY v", "2 5,1 10,1 20", false);
	ask("SELECT * FROM t ORDER BY v", "2 5,1 10,1 20", true);
	run("CREATE TABLE other (a)");
	ask("SELECT * FROM t ORDER BY v", "2 5,1 10,1 20", false);
	run("DROP TABLE t");
	refuse("SELECT * FROM t ORDER BY v", -EINVAL, "no such table");
	run("CREATE TABLE t (v, w)");
	run("INSERT INTO t VALUES (3, 4)");
	ask("SELECT * FROM t ORDER BY v", "3 4", false);
	run("CREATE INDEX t_v ON t (v)");
	ask("SELECT * FROM t ORDER BY v", "3 4", false);
	ask("SELECT name FROM sqlite_schema ORDER BY name", "other,t,t_v", false);
	ask("SELECT name FROM sqlite_schema ORDER BY name", "other,t,t_v", true);
	run("CREATE TABLE third (a)");
	ask("SELECT name FROM sqlite_schema ORDER BY name", "other,t,t_v,third", false);
}

/* Statements that change rows, by the operators and by SQLite. */
static void test_changes(void **state)
{
	static const char add[] = "INSERT INTO t SELECT 3, v FROM t WHERE g = 2";
	static const char more[] = "UPDATE t SET v = v + 1 WHERE g = 3";
	static const char one[] = "INSERT INTO t (g) VALUES (9)";
	static const char touch[] = "UPDATE nodes SET mode = 384 WHERE name = 'd.c' AND mode & 256";
	uint64_t before;

	(void)state;
	make_table();
	change(add, 1);
	before = found();
	change(add, 1);
	change(more, 2);
	change(more, 2);
	change(one, 1);
	change(one, 1);
	change(touch, 1);
	change(touch, 1);
	assert_int_equal(found() - before, 4);
	ask(GROUPED, "1 30,2 5,3 14,9 -", false);
	scope.may_change = false;
	refuse(more, -EACCES, "cannot be used");
	ask(GROUPED, "1 30,2 5,3 14,9 -", false); /* on other terms */
}

static void test_scopes(void **state)
{
	char text[256];

	(void)state;
	ask("SELECT count(*) FROM nodes", "6", false);
	scope.ino = ino_of("/a");
	ask("SELECT count(*) FROM nodes", "4", false);
	ask("SELECT count(*) FROM nodes", "4", true);
	scope.ino = PFS_ROOT_PRIME;
	ask("SELECT count(*) FROM nodes", "6", true);
	change("UPDATE nodes SET mode = 448 WHERE name = 'a'", 1);
	ask("SELECT count(*) FROM nodes", "6", true);
	scope.sees_all = false;
	scope.uid = scope.gid = 12345;
	query_text(text, sizeof(text), "SELECT count(*) FROM nodes");
	assert_string_equal(text, "3"); /* what is below is not seen */
	query_text(text, sizeof(text), "SELECT count(*) FROM nodes");
	assert_string_equal(text, "3");
	scope.uid = scope.gid = 0;
	query_text(text, sizeof(text), "SELECT count(*) FROM nodes");
	scope.sees_all = true;
	ask("SELECT count(*) FROM nodes", "6", true);
}

/* Errors and times are not kept, nor is what only tells how another statement runs. */
static void test_not_kept(void **state)
{
	struct pfs_query *query;
	char *plan;

	(void)state;
	refuse("SELECT absent FROM nodes", -EINVAL, "no such column");
	refuse("SELECT absent FROM nodes", -EINVAL, "no such column");
	ask("SELECT count(*) FROM nodes WHERE mtime > '1 year ago'", "6", false);
	ask("SELECT count(*) FROM nodes WHERE mtime > '1 year ago'", "6", false);
	ask("SELECT count(*) FROM nodes", "6", false);
	scope.explains = true;
	query = begin("SELECT count(*) FROM nodes");
	assert_int_equal(pfs_query_next(query, &error), 1);
	assert_int_equal(pfs_query_plan(query, &plan), 0);
	assert_non_null(strstr(plan, "operators"));
	free(plan);
	pfs_query_finish(query);
	scope.explains = false;
	ask("SELECT count(*) FROM nodes", "6", true);
}

static void test_bounds(void **state)
{
	struct pfs_plan_counts counts;
	char sql[128], text[64];

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		(void)snprintf(sql, sizeof(sql), "SELECT count(*) + %u FROM nodes", i);
		query_text(text, sizeof(text), sql);
	}
	pfs_queries_plans(queries, &counts);
	assert_in_range(counts.kept, 1, 40);
	assert_in_range(counts.bytes, 1, 4 << 20);
	assert_int_equal(counts.made, 200);
	(void)snprintf(text, sizeof(text), "%u", 199 + 6);
	ask(sql, text, true);
	ask("SELECT count(*) + 0 FROM nodes", "6", false); /* others took its place */
}

/* ---- others change side tables while a statement is prepared ---- */

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
void __real_pfs_sql_sides_named(struct pfs_sql *sql, const char *text, size_t len);
void __wrap_pfs_sql_sides_named(struct pfs_sql *sql, const char *text, size_t len);
int __real_pfs_side_table_get(const struct pfs_side_table **out, struct pfs_query *query,
			      const char *name);
int __wrap_pfs_side_table_get(const struct pfs_side_table **out, struct pfs_query *query,
			      const char *name);
/* NOLINTEND(bugprone-reserved-identifier) */

static _Thread_local unsigned intrusions; /* left, of this thread, as all of them */
static _Thread_local bool is_intruding, makes_tables;
static _Thread_local unsigned prepared; /* how often the statement itself was */

/* After the connection was told which tables there are, and before it declares them. */
static void intrude(void)
{
	static unsigned number;
	char sql[128];

	is_intruding = true;
	intrusions--;
	number++;
	(void)snprintf(sql, sizeof(sql), "%s%u%s",
		       makes_tables ? "CREATE TABLE x" : "INSERT INTO t VALUES (7, ", number,
		       makes_tables ? " (a)" : "00)");
	run(sql);
	is_intruding = false;
}

void __wrap_pfs_sql_sides_named(struct pfs_sql *sql, const char *text, size_t len)
{
	if (!is_intruding) {
		prepared++;
		if (intrusions)
			intrude();
	}
	__real_pfs_sql_sides_named(sql, text, len);
}

static void test_prepared_again(void **state)
{
	static const char text[] =
		"SELECT count(*), count(DISTINCT v) FROM t NOT INDEXED"; /* by SQLite, in its copy
									  */

	(void)state;
	make_table();
	reopen(); /* no connection knows the table */
	intrusions = 6;
	makes_tables = true;
	prepared = 0;
	ask(text, "3 3", false);
	assert_int_equal(intrusions, 0);
	assert_int_equal(prepared, 7);
	ask(text, "3 3", true);
	assert_int_equal(prepared, 7);
	ask("SELECT count(*) FROM x1", "0", false);
	reopen();
	intrusions = 3; /* after which changes wait */
	makes_tables = false;
	prepared = 0;
	ask(text, "6 6", false);
	assert_int_equal(intrusions, 0);
	assert_int_equal(prepared, 4);
	ask(text, "6 6", true);
	intrusions = 1;
	makes_tables = true;
	change("DELETE FROM t WHERE g = 7", 3);
	assert_int_equal(intrusions, 0);
	ask(text, "3 3", false);
}

/* ---- side by side ---- */

#define THREADS 4
#define ROUNDS	40

static _Atomic int64_t least; /* the sum after the last change: no later answer is below it */

static void *ask_often(void *arg)
{
	struct pfs_query_error problem;
	struct pfs_sql_value value;
	struct pfs_query *query;
	unsigned *wrong = arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		static const char *const texts[] = {
			"SELECT sum(v), count(*) FROM t WHERE g < 1000",
			"SELECT count(*) FROM t, t AS u WHERE t.v = u.v"};
		const char *sql = texts[i % 2];
		int64_t from = i % 2 ? 0 : atomic_load(&least);
		int got;

		if (pfs_query_start(&query, queries, &scope, sql, strlen(sql), &problem)) {
			++*wrong;
			continue;
		}
		while ((got = pfs_query_next(query, &problem)) == -EAGAIN)
			;
		if (got == 1)
			pfs_query_value(query, 0, &value);
		*wrong += got != 1 || value.type != PFS_SQL_INTEGER || value.integer < from;
		pfs_query_finish(query);
	}
	return NULL;
}

static int64_t number(const char *sql)
{
	char text[64];

	query_text(text, sizeof(text), sql);
	return strtoll(text, NULL, 10);
}

static void test_threads(void **state)
{
	unsigned wrong[THREADS] = {0};
	pthread_t threads[THREADS];
	int64_t sum, n;

	(void)state;
	make_table();
	sum = number("SELECT sum(v) FROM t");
	n = number("SELECT count(v) FROM t");
	atomic_store(&least, sum);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &wrong[i]), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		run(i % 2 ? "INSERT INTO t SELECT 4, 100 FROM t LIMIT 1"
			  : "UPDATE t SET v = v + 1");
		sum += i % 2 ? 100 : n;
		n += i % 2;
		atomic_store(&least, sum);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(wrong[i], 0);
	}
	assert_int_equal(number("SELECT sum(v), count(*) FROM t WHERE g < 1000"), sum);
	assert_true(found() > 0);
}

/* ---- tables that are not to be had for the moment ---- */

static int side_error; /* of those that are wanted; 0: none */

int __wrap_pfs_side_table_get(const struct pfs_side_table **out, struct pfs_query *query,
			      const char *name)
{
	*out = NULL;
	return side_error ? side_error : __real_pfs_side_table_get(out, query, name);
}

static bool is_by_operators(const char *sql)
{
	struct pfs_query *query = begin(sql);
	bool is = pfs_relational_has_rows(query->relational);

	pfs_query_finish(query);
	return is;
}

static void test_for_now(void **state)
{
	(void)state;
	make_table();
	side_error = -EAGAIN;
	assert_false(is_by_operators(GROUPED));
	side_error = 0;
	assert_true(is_by_operators(GROUPED));
	assert_true(is_by_operators(GROUPED)); /* as it was kept */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_rows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_tables, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_changes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_scopes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bounds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_prepared_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_threads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_for_now, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
