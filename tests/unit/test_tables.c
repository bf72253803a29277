/* SPDX-License-Identifier: MIT */
/* Side tables: from CSV and back, in statements, changed by statements, kept. */
#include "fs/journal/journal.h"
#include "fs/query/internal.h"
#include "tests/unit/query_util.h"
#include "tests/ref/random.h"

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */

static bool is_full; /* the store's filesystem */

int __real_pfs_journal_reserve(struct pfs_tree *of, size_t nodes, uint64_t bytes, bool nowait);
int __wrap_pfs_journal_reserve(struct pfs_tree *of, size_t nodes, uint64_t bytes, bool nowait);
int __wrap_pfs_journal_reserve(struct pfs_tree *of, size_t nodes, uint64_t bytes, bool nowait)
{
	return is_full ? -ENOSPC : __real_pfs_journal_reserve(of, nodes, bytes, nowait);
}

int __real_pfs_journal_reserve_set(struct pfs_tree *of, size_t nodes, uint64_t bytes,
				   unsigned columns, bool removal);
int __wrap_pfs_journal_reserve_set(struct pfs_tree *of, size_t nodes, uint64_t bytes,
				   unsigned columns, bool removal);
int __wrap_pfs_journal_reserve_set(struct pfs_tree *of, size_t nodes, uint64_t bytes,
				   unsigned columns, bool removal)
{
	return is_full ? -ENOSPC
		       : __real_pfs_journal_reserve_set(of, nodes, bytes, columns, removal);
}

/* NOLINTEND(bugprone-reserved-identifier) */

struct csv {
	const char *text;
	size_t size;
};

static ssize_t read_csv(void *arg, void *data, size_t size, uint64_t offset)
{
	const struct csv *csv = arg;

	size = offset < csv->size ? PFS_MIN(size, csv->size - offset) : 0;
	if (size)
		memcpy(data, csv->text + offset, size);
	return (ssize_t)size;
}

static int import_bytes(const char *name, const char *text, size_t size)
{
	struct csv csv = {text, size};
	const struct pfs_table_bytes bytes = {.arg = &csv, .read = read_csv};

	return pfs_table_import(queries, name, &bytes, &error);
}

static void import(const char *name, const char *text)
{
	if (import_bytes(name, text, strlen(text)))
		fail_msg("%s: %s", name, error.text);
}

static void refuse_import(const char *name, const char *text, int code, const char *why)
{
	int got = import_bytes(name, text, strlen(text));

	if (got != code || !strstr(error.text, why))
		fail_msg("%s: %d %s", text, got, error.text);
}

static void check_export(const char *name, const char *expected)
{
	struct pfs_answer *answer;
	struct pfs_sink sink = {.write = pfs_answer_write};
	char text[4096];
	ssize_t n;

	assert_int_equal(pfs_answer_create(&answer, 1 << 20, 0), 0);
	sink.arg = answer;
	if (pfs_table_export(queries, name, &sink, &error))
		fail_msg("%s: %s", name, error.text);
	n = pfs_answer_read(answer, text, sizeof(text) - 1, 0);
	assert_true(n >= 0);
	text[n] = 0;
	pfs_answer_close(answer);
	assert_string_equal(text, expected);
}

static int append_name(void *arg, const char *name)
{
	char *out = arg;

	(void)stpcpy(stpcpy(out + strlen(out), name), ";");
	return 0;
}

static void check_names(const char *expected)
{
	char text[4096] = "";

	assert_int_equal(pfs_tables_names(queries, append_name, text), 0);
	assert_string_equal(text, expected);
}

#define OWNERS "uid,name,rate\n0,root,1.5\n7,\"a, \"\"b\"\"\",2.0\n8,,\n"

static void test_csv(void **state)
{
	(void)state;
	import("owners", OWNERS);
	check_names("owners;");
	check_export("owners", "uid,name,rate\r\n0,root,1.5\r\n7,\"a, \"\"b\"\"\",2.0\r\n8,,\r\n");
	check("SELECT typeof(uid), typeof(name), typeof(rate) FROM owners WHERE uid < 8",
	      "integer text real,integer text real");
	reopen();
	check_names("owners;");
	/* replaced whole, whatever the capitals */
	import("Owners", "a\r\n007\r\n\r\n\"\"\r\n");
	check_names("Owners;");
	check("SELECT a IS NULL, typeof(a), a FROM OWNERS", "0 text 007,1 null -,0 text ");
	check_export("owners", "a\r\n007\r\n\r\n\"\"\r\n");
	assert_int_equal(pfs_table_drop(queries, "owners", &error), 0);
	assert_int_equal(pfs_table_drop(queries, "owners", &error), -ENOENT);
	check_names("");
	import("e", "a,b\n");
	check("SELECT count(*) FROM e", "0");
	assert_int_equal(pfs_table_is_there(queries, "E"), 0);
	assert_int_equal(pfs_table_is_there(queries, "f"), -ENOENT);
}

static void test_bad_csv(void **state)
{
	static const char *const names[] = {"",	   ".x",	 "a/b", "sqlite_x", "a\"b",
					    "\xff", "a\nb", "..",  "SQLite_"};

	(void)state;
	import("t", "a\n1\n");
	refuse_import("t", "", -EINVAL, "names the columns");
	refuse_import("t", "a,A\n", -EINVAL, "two columns");
	refuse_import("t", "a,\n", -EINVAL, "column 2 has no name");
	refuse_import("t", "rowid,OID,_rowid_\n1,2,3\n", -EINVAL, "rename one");
	refuse_import("t", "a,b\n1,2\n\n1\n", -EINVAL, "line 4: 1 fields");
	refuse_import("t", "a\n\"x\n", -EINVAL, "line 2: ");
	refuse_import("nodes", "a\n", -EEXIST, "reserved");
	refuse_import("NODES", "a\n", -EEXIST, "reserved");
	for (size_t i = 0; i < PFS_COUNT(names); i++)
		refuse_import(names[i], "a\n", -EINVAL, "name");
	check("SELECT a FROM t", "1"); /* as it was */
}

static void test_join(void **state)
{
	(void)state;
	import("join_only", "uid\r\n0\r\n"); /* the authorizer hears of no column of it */
	check("SELECT count(*) > 0 FROM nodes NATURAL JOIN join_only", "1");
	check("SELECT count(*) > 0 FROM nodes JOIN \"JOIN_only\" USING (uid)", "1");
	import("owners", OWNERS);
	import("kinds", "ext,what\ntxt,text\nc,code\n");
	check("SELECT n.name, k.what, o.name FROM nodes n JOIN kinds k USING (ext) "
	      "JOIN owners o ON o.uid = n.uid ORDER BY n.path",
	      "c.txt text root,d.c code root");
	check("SELECT count(*) FROM owners a, owners b WHERE a.uid < b.uid", "3");
	/* tables whose columns are named nowhere */
	check("SELECT count(*) FROM nodes JOIN kinds USING (ext)", "2");
	import("it's [o`dd]", "ext,k\nc,1\n");
	check("SELECT count(*) FROM nodes NATURAL JOIN 'it''s [o`dd]'", "1");
	reopen();
	check("SELECT count(*) FROM nodes JOIN KINDS USING (ext)", "2");
	check("SELECT path FROM nodes NATURAL JOIN(kinds)", "/a/b/c.txt,/a/d.c");
	check("SELECT count(*) FROM nodes NATURAL JOIN [kinds]", "2");
	refuse("SELECT * FROM owner", -EINVAL, "no such table");
}

static void test_statements(void **state)
{
	(void)state;
	change("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT DEFAULT 'x', b REAL)", 0);
	change("INSERT INTO t (b) VALUES (1), (2), (NULL)", 3);
	change("UPDATE t SET a = 'y' WHERE id = 2", 1);
	change("DELETE FROM t WHERE b IS NULL", 1);
	change("CREATE UNIQUE INDEX t_a ON t (a)", 0);
	refuse("INSERT INTO t (a) VALUES ('x')", -EINVAL, "UNIQUE");
	change("INSERT OR REPLACE INTO t (id, a) VALUES (9, 'x')", 1);
	check("SELECT * FROM t", "2 y 2,9 x -");
	reopen();
	check("SELECT * FROM t", "2 y 2,9 x -");
	refuse("INSERT INTO t (a) VALUES ('x')", -EINVAL, "UNIQUE");
	change("UPDATE t SET id = id + 1", 2);
	change("DROP INDEX t_a", 0);
	change("INSERT INTO t SELECT NULL, name, size FROM nodes WHERE type = 'f'", 3);
	reopen();
	check("SELECT group_concat(id), group_concat(a) FROM t",
	      "3,10,11,12,13 y,x,c.txt,d.c,e.tar.gz");
	change("DELETE FROM t", 5);
	reopen();
	check("SELECT count(*) FROM t", "0");
	change("CREATE TABLE u AS SELECT name, ino FROM nodes WHERE type = 'd'", 0);
	change("CREATE TABLE IF NOT EXISTS u (a)", 0);
	check("SELECT count(*) FROM u", "3");
	change("DROP TABLE t", 0);
	reopen();
	check_names("u;");
}

/* Runs a statement that changes something; it has so many parts for the operators. */
static void change_in_parts(const char *sql, unsigned n_parts)
{
	struct pfs_query *query;
	unsigned found = 0;
	char *plan;

	scope.explains = true;
	query = begin(sql);
	scope.explains = false;
	assert_int_equal(pfs_query_plan(query, &plan), 0);
	for (const char *at = plan; (at = strstr(at, "\npart ")); at++)
		found++;
	found += strncmp(plan, "part ", 5) == 0;
	if (found != n_parts || (n_parts && !strstr(plan, "relational operators on the host")) ||
	    !strstr(plan, "found and changed by the relational operators") !=
		    !query->is_by_operators)
		fail_msg("%s: %s", sql, plan);
	free(plan);
	pfs_query_finish(query);
}

/* What is inserted, or made a table of, is found by the operators, and written by SQLite: on a
 * connection that has never seen a part, and for good. */
static void test_parts(void **state)
{
	(void)state;
	change_in_parts(
		"CREATE TABLE t AS SELECT type, count(*) AS n, sum(size), max(DEPTH) FROM nodes GROUP BY type",
		1);
	check("SELECT name, type FROM pragma_table_info('t')",
	      "type TEXT,n ,sum(size) ,max(DEPTH) ");
	reopen();
	check("SELECT * FROM t ORDER BY type", "d 3 0 2,f 3 0 3");
	change_in_parts(
		"INSERT INTO t SELECT ext, count(*), min(depth), NULL FROM nodes WHERE type = 'f' GROUP BY ext",
		0); /* all of it is the operators', which the plan says */
	reopen();
	check("SELECT * FROM t WHERE type NOT IN ('d', 'f') ORDER BY type",
	      "c 1 2 -,gz 1 1 -,txt 1 3 -");
	change_in_parts(
		"CREATE TABLE u AS SELECT Depth, group_concat(n) FROM (SELECT depth, count(*) n FROM nodes "
		"GROUP BY depth ORDER BY depth) GROUP BY 1",
		1);
	check("SELECT name, type FROM pragma_table_info('u')", "depth INT,group_concat(n) ");
	change_in_parts("WITH x (d, n) AS (SELECT depth, count(*) FROM nodes GROUP BY depth) "
			"INSERT INTO u SELECT d, printf('%d!', n) FROM x WHERE d > 1", 1);
	check("SELECT * FROM u", "0 1,1 2,2 2,3 1,2 2!,3 1!");
	change_in_parts(
		"INSERT INTO u WITH x AS (SELECT type, count(*) n FROM nodes GROUP BY type) SELECT n, type FROM x",
		0);
	change_in_parts("INSERT INTO u SELECT size, path FROM nodes WHERE length(name) = 3", 1);
	change_in_parts("INSERT INTO u SELECT size, path FROM nodes WHERE name = 'd.c'",
			0); /* a scan finds it */
	change_in_parts(
		"UPDATE u SET depth = (SELECT count(*) FROM nodes WHERE size % 2 = 0), \"group_concat(n)\" = "
		"printf('%d', depth) WHERE depth > (SELECT count(*) FROM nodes WHERE depth = 3 AND size % 2 = 0)",
		2);
	reopen();
	check("SELECT * FROM u", "0 1,1 2,6 2,6 3,6 2,6 3,6 3,6 3,0 /a/d.c,0 /a/d.c");
}

static void test_refused(void **state)
{
	(void)state;
	change("CREATE TABLE t (a)", 0);
	refuse("CREATE TABLE t (a)", -EINVAL, "already exists");
	refuse("CREATE TABLE nodes (a)", -EACCES, "it is reserved");
	refuse("CREATE TABLE JSON_each (a)", -EACCES, "it is reserved");
	refuse("CREATE TABLE json_tree AS SELECT * FROM json_each('[1]')", -EACCES, "is reserved");
	refuse("CREATE TABLE pragma_index_list (a)", -EACCES, "it is reserved");
	change("CREATE TABLE w AS SELECT value AS v FROM json_each('[7,8]')", 0);
	check("SELECT v FROM w", "7,8");
	change("DROP TABLE w", 0);
	refuse("CREATE TABLE \"a/b\" (a)", -EINVAL, "none can have that name");
	refuse("CREATE TABLE w (a PRIMARY KEY) WITHOUT ROWID", -EINVAL, "WITHOUT ROWID");
	refuse("CREATE TABLE w (a INTEGER PRIMARY KEY autoincrement)", -EINVAL, "AUTOINCREMENT");
	refuse("CREATE TABLE w (rowid, oid, _rowid_)", -EINVAL, "another name");
	refuse("CREATE TEMP TABLE w (a)", -EACCES, "cannot be used");
	refuse("CREATE VIEW v AS SELECT 1", -EACCES, "SELECT");
	refuse("CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END", -EACCES, "");
	refuse("ALTER TABLE t ADD b", -EACCES, "");
	refuse("CREATE TABLE temp.t (a)", -EACCES, "the database temp");
	refuse("CREATE TABLE \"TEMP\".t AS SELECT 1", -EACCES, "the database temp");
	refuse("DELETE FROM sqlite_master", -EINVAL, "");
	refuse("INSERT INTO t VALUES (1) RETURNING a", -EINVAL, "RETURNING");
	refuse("ATTACH 'x' AS y", -EACCES, "ATTACH");
	refuse("BEGIN", -EACCES, "transaction");
	scope.may_change = false;
	refuse("INSERT INTO t VALUES (1)", -EACCES, "SELECT");
	refuse("DROP TABLE t", -EACCES, "SELECT");
	refuse("CREATE TABLE w (a)", -EACCES, "SELECT");
	scope.may_change = true;
	check_names("t;");
}

/* Values of every type, raw bytes and large ones, come back as they were. */
static void test_values(void **state)
{
	(void)state;
	change("CREATE TABLE v (a, b)", 0);
	change("INSERT INTO v VALUES (1, NULL), (-9223372036854775808, 1e300), (x'', x'00ff'), "
	       "('', CAST(x'fffe00' AS TEXT)), (zeroblob(100000), 0.1)",
	       5);
	reopen();
	check("SELECT typeof(a), quote(a), typeof(b), quote(b) FROM v WHERE rowid < 4",
	      "integer 1 null NULL,integer -9223372036854775808 real 1.0e+300,"
	      "blob X'' blob X'00FF'");
	check("SELECT typeof(a), length(a), typeof(b), hex(b) FROM v WHERE rowid = 4",
	      "text 0 text FFFE00");
	check("SELECT typeof(a), length(a), b FROM v WHERE rowid = 5",
	      "blob 100000 0.10000000000000001");
	refuse("INSERT INTO v VALUES (zeroblob(9000000), 1)", -E2BIG, "8 MiB");
	check("SELECT count(*) FROM v", "5");
}

static void create_wide(unsigned n, int code, const char *why)
{
	char sql[8192];
	size_t at = (size_t)snprintf(sql, sizeof(sql), "CREATE TABLE wide (c0");

	for (unsigned i = 1; i < n; i++)
		at += (size_t)snprintf(sql + at, sizeof(sql) - at, ", c%u", i);
	(void)snprintf(sql + at, sizeof(sql) - at, ")");
	if (code)
		refuse(sql, code, why);
	else
		change(sql, 0);
}

static void test_columns_are_few(void **state)
{
	(void)state;
	create_wide(501, -E2BIG, "more than 500 columns");
	create_wide(500, 0, NULL);
	reopen();
	check("SELECT count(*) FROM pragma_table_info('wide')", "500");
}

/* Also where SQLite would keep what was done before a row that fails. */
static void test_all_or_nothing(void **state)
{
	(void)state;
	change("CREATE TABLE t (a INTEGER UNIQUE)", 0);
	change("INSERT INTO t VALUES (1), (2)", 2);
	refuse("INSERT OR FAIL INTO t VALUES (3), (1), (4)", -EINVAL, "UNIQUE constraint failed");
	refuse("UPDATE OR FAIL t SET a = 7", -EINVAL, "UNIQUE constraint failed");
	check("SELECT a FROM t", "1,2");
	change("INSERT OR IGNORE INTO t VALUES (3), (1), (4)", 2);
	reopen();
	check("SELECT a FROM t", "1,2,3,4");
}

/* NOT INDEXED leaves a statement to SQLite, which adds reals. */
static void test_means_of_both_signs(void **state)
{
	static const char *const asked[][2] = {
		{"SELECT avg(v) FROM m", ""},
		{"SELECT total(v) FROM m", ""},
		{"SELECT avg(v), total(v), count(v) FROM m", " WHERE g = 1"},
		{"SELECT avg(v) FROM m", " WHERE g = 2"},
		{"SELECT avg(v), total(v) FROM m", " WHERE g > 2"},
		{"SELECT g, avg(v), total(v) FROM m", " GROUP BY g ORDER BY g"},
		{"SELECT g, avg(v), total(v) FROM m", " WHERE g > 2 GROUP BY g ORDER BY g"},
	};
	char sql[128], ours[512], its[512];

	(void)state;
	change("CREATE TABLE m (g INTEGER, v INTEGER)", 0);
	change("INSERT INTO m VALUES (1, 1152921504606846976), (1, 1), (1, -1152921504606846976), "
	       "(2, 3), (2, 9223372036854775807), (2, -9223372036854775807), (2, 5), "
	       "(3, -4), (3, 7), (3, NULL), (4, 9223372036854775807), (4, 4611686018427387904)",
	       12);
	for (size_t i = 0; i < PFS_COUNT(asked); i++) {
		(void)snprintf(sql, sizeof(sql), "%s%s", asked[i][0], asked[i][1]);
		query_text(ours, sizeof(ours), sql);
		(void)snprintf(sql, sizeof(sql), "%s NOT INDEXED%s", asked[i][0], asked[i][1]);
		query_text(its, sizeof(its), sql);
		assert_string_equal(ours, its);
	}
	check("SELECT avg(v), total(v) FROM m WHERE g = 3", "1.5 3");
}

/* More groups than are put in order, and sums that reals do not hold exactly. */
static void test_means_of_many_groups(void **state)
{
	(void)state;
	change("CREATE TABLE m (k INTEGER, v INTEGER)", 0);
	change("INSERT INTO m WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c "
	       "WHERE i < 69999) SELECT i * 7919, 1000000000000 + i FROM c",
	       70000);
	check("SELECT count(*), max(a) FROM (SELECT k, avg(v) AS a FROM m GROUP BY k)",
	      "70000 1000000069999");
}

static uint64_t random_state = 20240517;

static uint32_t rnd(uint32_t n)
{
	return random_below(&random_state, n);
}

/* Every @ becomes a random number. */
static void fill_in(char *out, const char *statement)
{
	for (; *statement; statement++) {
		if (*statement == '@')
			out += sprintf(out, "%u", rnd(60));
		else
			*out++ = *statement;
	}
	*out = 0;
}

/* The copy that statements have changed equals what the store has. */
static void test_random(void **state)
{
	static const char *const statements[] = {
		"INSERT INTO r (k, v) SELECT value % @, @ FROM json_each('[1,2,3,4,5,6,7]')",
		"INSERT OR REPLACE INTO r (id, v) VALUES (@, @)",
		"INSERT OR IGNORE INTO r (id, v) VALUES (@, @)",
		"UPDATE r SET v = v + 1 WHERE k % 3 = @ % 3 OR v = @",
		"UPDATE OR REPLACE r SET id = id / 2 WHERE k = @ AND v > @",
		"UPDATE OR IGNORE r SET id = id + @ WHERE v < @",
		"DELETE FROM r WHERE id % 10 = @ % 10 AND v <> @",
		"UPDATE r SET k = (SELECT count(*) FROM nodes) + @ WHERE v > @",
	};
	static char before[1 << 16];

	(void)state;
	print_message("seed %llu\n", (unsigned long long)random_state);
	change("CREATE TABLE r (id INTEGER PRIMARY KEY, k INTEGER, v)", 0);
	for (unsigned i = 0; i < 200; i++) {
		char sql[256];
		struct pfs_query *query;
		unsigned which = rnd(PFS_COUNT(statements));

		fill_in(sql, statements[which]);
		if (pfs_query_start(&query, queries, &scope, sql, strlen(sql), &error))
			assert_non_null(strstr(error.text, "UNIQUE"));
		pfs_query_finish(query);
		if (i == 100)
			change("CREATE UNIQUE INDEX r_id ON r (id, v)", 0);
		if (i % 10)
			continue;
		query_text(before, sizeof(before), "SELECT * FROM r ORDER BY id");
		reopen();
		check("SELECT * FROM r ORDER BY id", before);
	}
}

static void test_many_rows(void **state)
{
	char *text = malloc(4 << 20), *at = text;

	(void)state;
	at += sprintf(at, "id,name,half\n");
	for (int i = 0; i < 100000; i++)
		at += sprintf(at, "%d,name %d,%d.5\n", i, i % 977, i);
	assert_int_equal(import_bytes("many", text, (size_t)(at - text)), 0);
	free(text);
	check("SELECT count(*), sum(id), sum(half), count(DISTINCT name) FROM many",
	      "100000 4999950000 5000000000 977");
	change("UPDATE many SET name = NULL WHERE id % 2", 50000);
	reopen();
	check("SELECT count(name) FROM many", "50000");
}

static void test_optimize_and_check(void **state)
{
	(void)state;
	import("owners", OWNERS);
	change("CREATE INDEX by_name ON owners (name)", 0);
	import("gone", "a\n1\n");
	assert_int_equal(pfs_table_drop(queries, "gone", &error), 0);
	import("kinds", "ext,what\ntxt,text\n");
	close_queries();
	assert_int_equal(temp_store_findings(&store), 0);
	assert_int_equal(pfs_tree_optimize(store.path, 0), 0);
	assert_int_equal(temp_store_findings(&store), 0);
	open_queries();
	check_names("kinds;owners;");
	check("SELECT name FROM owners WHERE uid = 7", "a, \"b\"");
	change("DROP INDEX by_name", 0);
}

/* The left column's collation counts, else the right one's. */
static void test_collations(void **state)
{
	(void)state;
	change("CREATE TABLE c (n TEXT COLLATE NOCASE, b TEXT)", 0);
	change("INSERT INTO c VALUES ('ABC', 'abc'), ('x', 'x'), ('abc', 'ABC')", 3);
	check("SELECT count(*) FROM c WHERE n = b", "3");
	check("SELECT count(*) FROM c WHERE b = n", "1");
	check("SELECT count(*) FROM c WHERE n <> b", "0");
	check("SELECT count(*) FROM c WHERE b < n", "1");
	check("SELECT count(*) FROM c WHERE n < 'abd'", "2");
	check("SELECT count(*) FROM c WHERE 'abc' = n", "2");
	check("SELECT count(*) FROM c WHERE n IN ('abc')", "2");
	check("SELECT count(*) FROM c WHERE b IN ('abc')", "1");
	check("SELECT count(*) FROM c x JOIN c y ON x.n = y.b", "5");
	check("SELECT count(*) FROM c x JOIN c y ON x.b = y.n", "3");
	check("SELECT count(DISTINCT n), count(DISTINCT b) FROM c", "2 3");
	check("SELECT count(*) FROM c GROUP BY n ORDER BY n", "2,1");
	check("SELECT b FROM c ORDER BY n DESC, b", "x,ABC,abc");
}

/* It is not temporary files that have no room. */
static void test_no_space(void **state)
{
	static const char *const statements[] = {
		"CREATE INDEX p ON nodes(path)",
		"DROP INDEX q",
		"CREATE TABLE u(x)",
		"DROP TABLE t",
		"CREATE INDEX i ON t(k)",
		"INSERT INTO t VALUES (2, 'b')",
		"UPDATE t SET v = 'c'",
		"UPDATE t SET v = (SELECT max(path) FROM nodes)",
		"DELETE FROM t",
		"UPDATE nodes SET mtime = 0",
	};
	static const char why[] = "the store: its filesystem has no room for these changes";

	(void)state;
	import("t", "k,v\n1,a\n");
	change("CREATE INDEX q ON nodes(path)", 0);
	is_full = true;
	for (size_t i = 0; i < PFS_COUNT(statements); i++) {
		refuse(statements[i], -ENOSPC, why);
		assert_string_equal(error.text, why);
	}
	assert_int_equal(import_bytes("t", "a\n", 2), -ENOSPC);
	assert_string_equal(error.text, why);
	assert_int_equal(pfs_table_drop(queries, "t", &error), -ENOSPC);
	assert_string_equal(error.text, why);
	check("SELECT * FROM t", "1 a");
	is_full = false;
	change("DROP INDEX q", 0);
	change("DELETE FROM t", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_csv, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bad_csv, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_join, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_statements, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_parts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_values, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_columns_are_few, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_all_or_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_means_of_both_signs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_means_of_many_groups, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_random, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_rows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_optimize_and_check, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_collations, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_space, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
