/* SPDX-License-Identifier: MIT */
/* CREATE INDEX name ON nodes(path): names, what is refused, what is kept, and that answers are the
 * same. */
#include "query_util.h"

#include <sqlite3.h>

#include "fs/nodes/index_paths.h"
#include "fs/query/internal.h"
#include "fs/query/pathindex.h"
#include "fs/tree/sides.h"
#include "meta/store.h"

static void make_now(void)
{
	assert_int_equal(pfs_path_index_make(tree), 0);
}

static int append(void *arg, const char *name, size_t len)
{
	char *text = arg;

	(void)snprintf(text + strlen(text), 256 - strlen(text), "%s%.*s", *text ? " " : "",
		       (int)len, name);
	return 0;
}

static void check_names(const char *expected)
{
	struct pfs_path_index_info info;
	char text[256] = "";

	assert_int_equal(pfs_path_index_names(tree, append, text), 0);
	assert_string_equal(text, expected);
	assert_int_equal(pfs_path_index_describe(tree, &info), *expected != 0);
}

static void check_plan(const char *sql, const char *expected)
{
	char rows[4096], *text;
	struct pfs_query *query;

	scope.explains = true;
	query = begin(sql);
	rest_text(rows, sizeof(rows), query);
	assert_int_equal(pfs_query_plan(query, &text), 0);
	if (!strstr(text, expected))
		fail_msg("%s: no \"%s\" in %s", sql, expected, text);
	free(text);
	pfs_query_finish(query);
	scope.explains = false;
}

static void test_names(void **state)
{
	(void)state;
	check_names("");
	change("CREATE INDEX p ON nodes(path)", 0);
	change("create unique index if not exists \"a b\" on \"nodes\" ( [path] COLLATE binary ASC ) ;",
	       0);
	check_names("a b p");
	refuse("CREATE INDEX P ON nodes(path)", -EINVAL, "there is already an index named P");
	change("CREATE INDEX IF NOT EXISTS P ON nodes(path)", 0);
	check_names("a b p");
	reopen();
	check_names("a b p");
	change("DROP INDEX 'A B'", 0);
	check_names("p");
	change("DROP INDEX IF EXISTS main.p;", 0);
	check_names("");
	change("DROP INDEX IF EXISTS p", 0);
	refuse("DROP INDEX p", -EINVAL, "no such index: p");
}

static void test_one_space_with_tables(void **state)
{
	(void)state;
	change("CREATE TABLE t(x INTEGER)", 0);
	change("CREATE INDEX ti ON t(x)", 0);
	change("CREATE INDEX a ON t(x)", 0);
	change("CREATE INDEX q ON nodes(path)", 0);
	change("DROP INDEX q", 0);
	change("DROP INDEX a", 0);
	refuse("CREATE INDEX T ON nodes(path)", -EINVAL, "there is already a table named T");
	refuse("CREATE INDEX \"TI\" ON nodes(path)", -EINVAL, "there is already an index named TI");
	change("CREATE INDEX p ON nodes(path)", 0);
	refuse("CREATE INDEX P ON t(x)", -EINVAL, "there is already an index named P");
	change("CREATE INDEX IF NOT EXISTS P ON t(x)", 0);
	refuse("CREATE TABLE p(x)", -EINVAL, "there is already an index named p");
	change("DROP INDEX ti", 0); /* SQLite's */
	check_names("p");
	change("CREATE INDEX ti ON nodes(path)", 0);
	refuse("CREATE INDEX ti ON t(x)", -EINVAL, "there is already an index named ti");
	change("DROP INDEX p", 0);
	change("CREATE INDEX p ON t(x)", 0);
	check_names("ti");
}

static int put(void *arg, struct pfs_store *into)
{
	return pfs_store_put_path_index(into, arg, strlen(arg));
}

/* An earlier version made indexes with all of them but the last four, which are damage. */
static void test_names_that_no_table_has(void **state)
{
	static const char *const names[] = {"resolve",	"Nodes_At", "attrs_at", "nodes",
					    "sqlite_p", "a/b",	    ".p"};
	char sql[64];

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(names); i++) {
		assert_int_equal(pfs_sides_commit(tree, 64, put, (void *)names[i]), 0);
		pfs_path_index_want(tree, true, true);
		check_names(names[i]);
		(void)snprintf(sql, sizeof(sql), "DROP INDEX temp.\"%s\"", names[i]);
		refuse(sql, -EACCES, "the database temp cannot be used");
		(void)snprintf(sql, sizeof(sql), "DROP INDEX main.\"%s\"", names[i]);
		change(sql, 0);
		check_names("");
	}
	change("CREATE INDEX resolve ON nodes(path)", 0);
	change("CREATE INDEX main.NODES_AT ON nodes(path)", 0);
	change("CREATE INDEX IF NOT EXISTS resolve ON nodes(path)", 0);
	check_names("NODES_AT resolve");
	change("DROP INDEX resolve", 0);
	change("DROP INDEX IF EXISTS nodes_at", 0);
	check("SELECT path FROM resolve('/a')", "/a");
}

static ssize_t read_table(void *arg PFS_UNUSED, void *data, size_t size, uint64_t offset)
{
	static const char text[] = "a\n1\n";

	if (offset >= sizeof(text) - 1)
		return 0;
	size = PFS_MIN(size, sizeof(text) - 1 - offset);
	memcpy(data, text + offset, size);
	return (ssize_t)size;
}

static void test_of_a_newer_program(void **state)
{
	const struct pfs_table_bytes bytes = {NULL, read_table};
	sqlite3 *db;

	(void)state;
	change("CREATE TABLE t(x)", 0);
	close_queries();
	assert_int_equal(sqlite3_open(store.path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "INSERT INTO path_index (name, definition) VALUES "
				      "(CAST('q' AS BLOB), CAST('path of newer' AS BLOB))",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	open_queries();
	check_names("");
	for (const char *const *sql =
		     (const char *const[]){"CREATE INDEX q ON nodes(path)",
					   "CREATE INDEX Q ON nodes(path)",
					   "CREATE INDEX IF NOT EXISTS q ON nodes(path)",
					   "CREATE INDEX q ON t(x)", "CREATE TABLE q(a)", NULL};
	     *sql; sql++)
		refuse(*sql, -EINVAL, "there is already an index named ");
	change("CREATE INDEX IF NOT EXISTS q ON t(x)", 0);
	assert_int_equal(pfs_table_import(queries, "Q", &bytes, &error), -EEXIST);
	refuse("DROP INDEX Q", -EINVAL, "a newer primefs has made that index");
	refuse("DROP INDEX IF EXISTS q", -EINVAL, "a newer primefs has made that index");
	scope.may_change = false;
	refuse("DROP INDEX q", -EACCES, "write a SELECT");
	scope.may_change = true;
	change("CREATE INDEX p ON nodes(path)", 0);
	check_names("p");
	change("DROP INDEX p", 0);
	check_names("");
	close_queries();
	assert_int_equal(temp_store_findings(&store), 0);
	open_queries();
}

static void test_refused(void **state)
{
	char sql[400] = "CREATE INDEX ";

	(void)state;
	refuse("CREATE INDEX p ON nodes(name)", -EINVAL, "only (path) can be indexed");
	assert_int_equal(error.offset, strlen("CREATE INDEX p ON nodes("));
	refuse("CREATE INDEX p ON nodes(path, name)", -EINVAL, "only (path) can be indexed");
	refuse("CREATE INDEX p ON nodes(path COLLATE nocase)", -EINVAL,
	       "only (path) can be indexed");
	refuse("CREATE INDEX p ON nodes(path DESC)", -EINVAL, "alone, whole and ascending");
	assert_int_equal(error.offset, strlen("CREATE INDEX p ON nodes(path "));
	refuse("CREATE UNIQUE INDEX p ON nodes(path COLLATE binary DESC)", -EINVAL,
	       "alone, whole and ascending");
	refuse("CREATE INDEX p ON nodes(path) WHERE size > 1", -EINVAL,
	       "only (path) can be indexed");
	refuse("CREATE INDEX p ON nodes", -EINVAL, "incomplete input; something has to follow");
	refuse("CREATE INDEX sqlite_p ON nodes(path)", -EINVAL, "can have that name");
	refuse("CREATE INDEX nodes ON nodes(path)", -EINVAL, "can have that name");
	refuse("CREATE INDEX \"\" ON nodes(path)", -EINVAL, "can have that name");
	memset(sql + strlen(sql), 'x', 256);
	(void)snprintf(sql + 13 + 256, 64, " ON nodes(path)");
	refuse(sql, -EINVAL, "can have that name");
	scope.may_change = false;
	refuse("CREATE INDEX p ON nodes(path)", -EACCES, "write a SELECT");
	scope.may_change = true;
	change("CREATE INDEX p ON nodes(path)", 0);
	scope.may_change = false;
	refuse("DROP INDEX p", -EACCES, "write a SELECT");
	scope.may_change = true;
	check_names("p");
}

static void refuse_at(const char *sql, const char *part, const char *text)
{
	refuse(sql, -EINVAL, text);
	assert_int_equal(error.offset, strstr(sql, part) - sql);
}

/* What is wrong around a statement, and not in it, is what SQLite finds wrong. */
static void test_around(void **state)
{
	struct pfs_query *query;

	(void)state;
	refuse_at("CREATE INDEX p ON nodes(path); SELECT 1", " SELECT", "a second statement");
	refuse_at("CREATE INDEX p ON nodes(path) x", "x", "near \"x\": syntax error");
	refuse_at("CREATE INDEX p ON nodes(path).x", ".x", "near \".\": syntax error");
	refuse("CREATE INDEX p ON nodes(path", -EINVAL,
	       "incomplete input; something has to follow");
	assert_int_equal(error.offset, strlen("CREATE INDEX p ON nodes(path"));
	refuse("EXPLAIN CREATE INDEX p ON nodes(path)", -EINVAL, "cannot be explained");
	check_names("");
	change("\xef\xbb\xbf"
	       "CREATE \xef\xbb\xbf INDEX p ON nodes(path);; -- it is one",
	       0);
	check_names("p");
	refuse_at("DROP INDEX p; SELECT 1", " SELECT", "a second statement");
	refuse_at("DROP INDEX p x", "x", "near \"x\": syntax error");
	refuse("EXPLAIN DROP INDEX p", -EINVAL, "cannot be explained");
	refuse("EXPLAIN QUERY PLAN DROP INDEX p", -EINVAL, "cannot be explained");
	refuse("EXPLAIN DELETE FROM nodes", -EINVAL, "cannot be explained");
	check_names("p");
	change("\xef\xbb\xbf"
	       "DROP INDEX p ; /* it goes */ ;",
	       0);
	check_names("");
	assert_int_equal(pfs_query_start(&query, queries, &scope,
					 "CREATE INDEX p ON nodes(path)\0x",
					 strlen("CREATE INDEX p ON nodes(path)") + 2, &error),
			 0);
	pfs_query_finish(query);
	check_names("p");
}

/* Bytes below a slash, behind a name that others begin with. */
static void make_neighbours(void)
{
	uint64_t a = make(PFS_ROOT_PRIME, "k", S_IFDIR | 0755), many;

	(void)make(a, "x", S_IFREG | 0644);
	(void)make(a, "x-", S_IFDIR | 0700);
	for (const char *const *name =
		     (const char *const[]){"k!", "k-b", "k.", "k0", "kk", "k\1", NULL};
	     *name; name++)
		(void)make(PFS_ROOT_PRIME, *name, S_IFREG | 0644);
	many = make(PFS_ROOT_PRIME, "many", S_IFDIR | 0755);
	for (unsigned i = 0; i < 9000; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "f%u", i);
		(void)make(many, name, S_IFREG | 0644);
	}
}

static const char *const questions[] = {
	"SELECT path FROM nodes WHERE path GLOB '/k*' ORDER BY path",
	"SELECT path FROM nodes WHERE path GLOB '/k*' ORDER BY path DESC",
	"SELECT path FROM nodes WHERE path GLOB '/k/*' ORDER BY path",
	"SELECT path FROM nodes WHERE path GLOB '/k-*' ORDER BY path",
	"SELECT path FROM nodes WHERE path >= '/k' AND path < '/k/' ORDER BY path",
	"SELECT path FROM nodes WHERE path > '/k' AND path <= '/k0' ORDER BY path",
	"SELECT path FROM nodes WHERE path BETWEEN '/k-' AND '/k/x' ORDER BY path",
	"SELECT path FROM nodes WHERE path BETWEEN '/k!' AND '/k.' ORDER BY path DESC",
	"SELECT path FROM nodes WHERE path GLOB '/many/f12*' ORDER BY path LIMIT 5 OFFSET 3",
	"SELECT path FROM nodes WHERE path LIKE '/%' ORDER BY path LIMIT 9",
	"SELECT path FROM nodes ORDER BY path LIMIT 12",
	"SELECT path FROM nodes ORDER BY path DESC LIMIT 12",
	"SELECT path FROM nodes WHERE path IN ('/k', '/k/x', '/none', '/many/f8999') ORDER BY path",
	"SELECT count(*) FROM nodes WHERE path GLOB '/many/f1?3*'",
	"SELECT count(*) FROM nodes WHERE path >= '/many/f899'",
	"SELECT count(*), max(path) FROM nodes WHERE path GLOB '/many/f77*' AND type = 'f'",
};

/* As the tree was before a directory moved, and a node came and went. */
static void check_frozen(const char *sql, const char *expected)
{
	const uint64_t k = ino_of("/k");
	struct pfs_query *query = begin(sql);
	char text[1 << 12];

	assert_int_equal(pfs_query_freeze(query), 0);
	assert_int_equal(pfs_tree_rename(tree, PFS_ROOT_PRIME, "many", k, "moved", 0), 0);
	assert_int_equal(pfs_tree_unlink(tree, k, "x"), 0);
	(void)make(k, "later", S_IFREG | 0644);
	pfs_path_index_follow(tree);
	rest_text(text, sizeof(text), query);
	pfs_query_finish(query);
	if (strcmp(text, expected) != 0)
		fail_msg("%s, frozen: %s, not %s", sql, text, expected);
	assert_int_equal(pfs_tree_unlink(tree, k, "later"), 0);
	(void)make(k, "x", S_IFREG | 0644);
	assert_int_equal(pfs_tree_rename(tree, k, "moved", PFS_ROOT_PRIME, "many", 0), 0);
}

static void test_answers(void **state)
{
	static char before[PFS_COUNT(questions)][1 << 12], after[1 << 12];
	struct pfs_path_index_info info;
	uint64_t asked;

	(void)state;
	make_neighbours();
	for (unsigned round = 0; round < 2; round++) {
		scope.sees_all = round == 0;
		scope.uid = scope.gid = 1000;
		for (size_t i = 0; i < PFS_COUNT(questions); i++)
			query_text(before[i], sizeof(before[i]), questions[i]);
		pfs_path_index_want(tree, true, false);
		make_now();
		for (size_t i = 0; i < PFS_COUNT(questions); i++) {
			query_text(after, sizeof(after), questions[i]);
			if (strcmp(before[i], after) != 0)
				fail_msg("%s: %s, not %s", questions[i], after, before[i]);
		}
		assert_true(pfs_path_index_describe(tree, &info));
		asked = info.asked;
		for (size_t i = 0; i < PFS_COUNT(questions); i++)
			check_frozen(questions[i], before[i]);
		assert_true(pfs_path_index_describe(tree, &info));
		assert_true(info.asked > asked);
		pfs_path_index_want(tree, false, false);
	}
	scope.sees_all = true;
	assert_string_equal(before[0], "/k,/k\1,/k!,/k-b,/k.,/k/x,/k/x-,/k0,/kk");
	assert_string_equal(before[4], "/k,/k\1,/k!,/k-b,/k.");
}

static void test_plan(void **state)
{
	(void)state;
	make_neighbours();
	change("CREATE INDEX p ON nodes(path)", 0);
	make_now();
	check_plan("SELECT path FROM nodes WHERE path GLOB '/many/f12*'", "by path index");
	check_plan(
		"SELECT path FROM nodes WHERE path > '/many/f12' AND path < '/many/f13' ORDER BY path DESC",
		"by path index, in its order");
	check_plan("SELECT path FROM nodes ORDER BY path LIMIT 3", "by path index, in its order");
	check_plan("CREATE INDEX q ON nodes(path)", "names of path indexes");
	change("UPDATE nodes SET path = '/k/y' WHERE path = '/many'", 1);
	check_plan("SELECT path FROM nodes WHERE path GLOB '/k/y/f12*'", "by path index");
	check("SELECT count(*) FROM nodes WHERE path GLOB '/k/y/f123*'", "11");
	change("DROP INDEX p", 0);
	check_plan("SELECT path FROM nodes WHERE path GLOB '/k/y/f12*'", "by path index");
	change("DROP INDEX q", 0);
	check_plan("SELECT path FROM nodes WHERE path GLOB '/k/y/f12*'", "by range of slots");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_space_with_tables, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_names_that_no_table_has, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_of_a_newer_program, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_around, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_answers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_plan, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
