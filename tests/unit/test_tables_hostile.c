/* SPDX-License-Identifier: MIT */
/* Side tables as somebody else may have put them into a store, and what one viewer's statements
 * leave for another's. */
#include "fs/query/internal.h"
#include "fs/tree/sides.h"
#include "meta/siderows.h"
#include "meta/sql/sqlside.h"
#include "tests/unit/query_util.h"

struct put {
	const char *name, *columns;
	unsigned n; /* of columns */
	int64_t row; /* with that number everywhere; 0: none */
};

static int write_put(void *arg, struct pfs_store *to)
{
	const struct put *put = arg;
	struct pfs_cell cell = {.type = PFS_CELL_INTEGER, .integer = put->row};
	const struct pfs_table_record record = {
		.name = put->name,
		.name_len = strlen(put->name),
		.columns = put->columns,
		.columns_len = strlen(put->columns),
	};
	struct pfs_side_rows rows PFS_SIDE_ROWS = {.table = 0};

	PFS_TRY(pfs_store_put_table(to, &rows.table, &record, put->n));
	if (put->row)
		PFS_TRY(pfs_store_put_row(to, &rows, 1, &cell, 1));
	return pfs_store_write_rows(to, &rows);
}

static void put_row(const char *name, const char *columns, int64_t number)
{
	struct put what = {name, columns, 1, number};

	pfs_sides_hold(tree);
	assert_int_equal(pfs_sides_commit(tree, 1000, write_put, &what), 0);
	pfs_sides_release(tree);
}

static void put(const char *name, const char *columns)
{
	put_row(name, columns, 2);
}

/* Values are not stored that are not everybody's. */
static void test_functions(void **state PFS_UNUSED)
{
	static const char *const refused[] = {
		"CREATE TABLE w (ino INTEGER, p AS (path_of(ino)) STORED)",
		"CREATE TABLE w (ino INTEGER, p AS (path_of(ino)))",
		"CREATE TABLE w (ino INTEGER, p GENERATED ALWAYS AS (\"path_of\"(ino)) STORED)",
		"CREATE TABLE w (ino INTEGER CHECK (path_of(ino) IS NOT NULL))",
		"CREATE TABLE w (ino INTEGER, CHECK (path_of(ino) IS NOT NULL))",
		"CREATE TABLE w (ino INTEGER DEFAULT (path_of(2)))",
		"CREATE INDEX i ON t (path_of(ino))",
		"CREATE INDEX i ON t (ino) WHERE path_of(ino) > 'a'",
	};

	scope.may_change = true;
	change("CREATE TABLE t (ino INTEGER)", 0);
	for (size_t i = 0; i < PFS_COUNT(refused); i++)
		refuse(refused[i], -EINVAL, "which it may not");
	change("CREATE TABLE v AS SELECT path_of(ino) AS p FROM nodes WHERE name = 'd.c'", 0);
	check("SELECT p FROM v", "/a/d.c");
	change("INSERT INTO t SELECT ino_of('/a')", 1);
	check("SELECT path_of(ino) FROM t", "/a");
	change("CREATE INDEX i ON t (abs(ino)) WHERE ino > 3", 0);
}

/* As an earlier version, or anybody, may have written them. */
static void test_declarations(void **state PFS_UNUSED)
{
	put("w", "CREATE TABLE w(ino INTEGER, p AS (path_of(ino)) STORED);\n");
	put("slow",
	    "CREATE TABLE slow AS WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i) "
	    "SELECT count(*) FROM i;\n");
	put("nodes", "CREATE TABLE nodes(a);\n");
	put("sqlite_x", "CREATE TABLE sqlite_x(a);\n");
	put("good", "CREATE TABLE good(a INTEGER);\n");
	refuse("SELECT * FROM w", -EINVAL, "no such table: w");
	refuse("SELECT * FROM slow", -EINVAL, "no such table: slow");
	refuse("CREATE TABLE slow (a)", -EEXIST, "damaged one has its name");
	check("SELECT count(*) FROM nodes", "6");
	check("SELECT a FROM good", "2");
	check("SELECT group_concat(name) FROM sqlite_schema", "good");
	assert_int_equal(pfs_table_drop(queries, "slow", &error), 0);
	close_queries();
	assert_int_equal(temp_store_findings(&store), 3);
	open_queries();
}

static void test_numbers_that_come_again(void **state PFS_UNUSED)
{
	put_row("old", "CREATE TABLE old(i INTEGER PRIMARY KEY AUTOINCREMENT);\n", 1);
	check("SELECT i FROM old", "1");
	change("INSERT INTO old VALUES (NULL)", 1);
	change("CREATE INDEX old_i ON old(i)", 0);
	refuse("DELETE FROM sqlite_sequence", -EACCES, "SQLite's own");
	reopen();
	check("SELECT i FROM old", "1,2");
	refuse("CREATE TABLE t (i INTEGER PRIMARY KEY AUTOINCREMENT)", -EINVAL,
	       "leave out AUTOINCREMENT");
	change("CREATE TABLE t (autoincrement_ INTEGER, \"autoincrement\" TEXT)", 0);
}

/* An earlier version accepted them. */
static void test_names_of_functions(void **state PFS_UNUSED)
{
	static const char *const names[] = {"resolve",		"Nodes_At",  "attrs_at",
					    "json_Each",	"json_tree", "Pragma_index_list",
					    "pragma_table_info"};
	struct pfs_sink sink = {NULL, NULL};
	char columns[64];

	for (size_t i = 0; pfs_table_functions[i]; i++)
		assert_int_equal(pfs_table_check_name(pfs_table_functions[i]->name), -EEXIST);
	for (size_t i = 0; i < PFS_COUNT(names); i++) {
		assert_int_equal(pfs_table_check_name(names[i]), -EEXIST);
		(void)snprintf(columns, sizeof(columns), "CREATE TABLE %s(a);\n", names[i]);
		put(names[i], columns);
	}
	check("SELECT path FROM resolve('/a/d.c')", "/a/d.c");
	check("SELECT count(*) FROM sqlite_schema WHERE name LIKE '%_at'", "0");
	check("SELECT value FROM json_each('[1,2]')", "1,2");
	check("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'j%' OR name LIKE 'p%'", "0");
	change("CREATE TABLE t (a UNIQUE)", 0);
	change("INSERT INTO t VALUES (5)", 1);
	change("UPDATE OR REPLACE t SET a = a + 1", 1);
	check("SELECT a FROM t", "6");
	for (size_t i = 0; i < PFS_COUNT(names); i++) {
		assert_int_equal(pfs_table_is_there(queries, names[i]), 0);
		assert_int_equal(pfs_table_export(queries, names[i], &sink, &error), -EINVAL);
		assert_non_null(strstr(error.text, "reserved"));
		assert_int_equal(pfs_table_drop(queries, names[i], &error), 0);
		assert_int_equal(pfs_table_is_there(queries, names[i]), -ENOENT);
	}
}

static size_t declared(size_t *filled)
{
	size_t n, found = 0;
	const struct pfs_sql_side *sides = pfs_sql_sides(queries->idle->sql, &n);

	*filled = 0;
	for (size_t i = 0; i < n; i++) {
		found += sides[i].declared;
		*filled += sides[i].filled;
	}
	return found;
}

static int write_many(void *arg, struct pfs_store *to)
{
	char name[32], columns[96];
	struct put one = {name, columns, 1, 7};

	for (unsigned i = 0; i < *(unsigned *)arg; i++) {
		(void)snprintf(name, sizeof(name), "t%u", i);
		(void)snprintf(columns, sizeof(columns), "CREATE TABLE t%u(a);\n%s", i,
			       i % 100 ? "" : "CREATE INDEX i ON t0(a);\n");
		if (i && i % 100 == 0)
			(void)snprintf(columns, sizeof(columns),
				       "CREATE TABLE t%u(a);\nCREATE INDEX i%u ON t%u(a);\n", i, i,
				       i);
		PFS_TRY(write_put(&one, to));
	}
	return 0;
}

static int count_name(void *n, const char *name)
{
	assert_int_equal(*name, 't');
	++*(unsigned *)n;
	return 0;
}

/* Of many tables a statement opens those that it names. */
static void test_many(void **state PFS_UNUSED)
{
	unsigned n = 1000, listed = 0;
	size_t filled;

	pfs_sides_hold(tree);
	assert_int_equal(pfs_sides_commit(tree, 100000, write_many, &n), 0);
	pfs_sides_release(tree);
	check("SELECT count(*) FROM nodes", "6");
	assert_int_equal(declared(&filled), 0);
	assert_int_equal(pfs_tables_names(queries, count_name, &listed), 0);
	assert_int_equal(listed, n);
	assert_int_equal(pfs_table_is_there(queries, "T999"), 0);
	assert_int_equal(pfs_table_is_there(queries, "t1000"), -ENOENT);
	assert_int_equal(declared(&filled), 0);
	check("SELECT [t7].a + \"T8\".a /* t9 don't */ FROM t7 JOIN 't8' -- t10's\n", "14");
	assert_int_equal(declared(&filled), 2);
	assert_int_equal(filled, 2);
	refuse("SELECT * FROM t1000", -EINVAL, "no such table");
	/* indexes have names in all tables */
	scope.may_change = true;
	refuse("CREATE INDEX i500 ON t3 (a)", -EINVAL, "already exists");
	change("DROP INDEX i700", 0);
	change("CREATE INDEX i700 ON t3 (a)", 0);
	check("SELECT a FROM t700", "7");
	check("SELECT count(*) FROM sqlite_schema WHERE type = 'table'", "1000");
}

/* What one limited viewer has filled another one does not find. */
static void test_viewers(void **state PFS_UNUSED)
{
	size_t filled;

	put("t", "CREATE TABLE t(a INTEGER);\n");
	scope = (struct pfs_query_scope){.ino = PFS_ROOT_PRIME, .uid = 1000, .gid = 1000};
	check("SELECT a FROM t", "2");
	(void)declared(&filled);
	assert_int_equal(filled, 1);
	check("SELECT a FROM t", "2");
	scope.uid = 1001;
	check("SELECT 1", "1");
	(void)declared(&filled);
	assert_int_equal(filled, 0);
	check("SELECT a FROM t", "2");
	scope.gid = 7;
	check("SELECT 1", "1");
	(void)declared(&filled);
	assert_int_equal(filled, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_functions, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_declarations, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_numbers_that_come_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_names_of_functions, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_viewers, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
