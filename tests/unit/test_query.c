/* SPDX-License-Identifier: MIT */
/* Statements over a tree that is being changed: rows, functions, attributes, errors, limits.  That
 * their rows equal SQLite's is for tests/query. */
#include "tests/unit/query_util.h"

#include "fs/query/internal.h"

/* The usual tree and /.rc; nothing may be changed. */
static int set_up_reading(void **state)
{
	int failed = set_up(state);

	(void)make(PFS_ROOT_PRIME, ".rc", S_IFREG | 0644);
	scope.may_change = false;
	return failed;
}

static void rest(struct pfs_query *query, const char *expected)
{
	char text[4096];

	rest_text(text, sizeof(text), query);
	assert_string_equal(text, expected);
}

static void refuse_at(const char *sql, int code, long offset, const char *words)
{
	struct pfs_query *query;

	assert_int_equal(pfs_query_start(&query, queries, &scope, sql, strlen(sql), &error), code);
	assert_null(query);
	assert_int_equal(error.error, code);
	if (!strstr(error.text, words))
		fail_msg("'%s' does not say '%s'", error.text, words);
	assert_int_equal(error.offset, offset);
}

/* Rows come in the order of the sub-select that they are from. */
static void test_order_of_sub_selects(void **state)
{
	(void)state;
	check("SELECT name FROM (SELECT name FROM nodes ORDER BY name DESC) LIMIT 3",
	      "e.tar.gz,d.c,c.txt");
	check("SELECT n FROM (SELECT name n, size FROM nodes ORDER BY size * 0, name DESC) "
	      "WHERE n < 'd' LIMIT 2",
	      "c.txt,b");
	check("WITH a AS (SELECT name FROM nodes ORDER BY name DESC), b AS (SELECT name FROM a) "
	      "SELECT name FROM b WHERE length(name) > 1 LIMIT 2",
	      "e.tar.gz,d.c");
	check("SELECT n FROM (SELECT name n, count(*) FROM nodes GROUP BY name ORDER BY 1 DESC) "
	      "LIMIT 2",
	      "e.tar.gz,d.c");
	check("SELECT n FROM (SELECT name n FROM nodes UNION ALL SELECT 'z' ORDER BY 1 DESC) LIMIT 2",
	      "z,e.tar.gz");
	check("SELECT DISTINCT name FROM (SELECT name FROM nodes ORDER BY name DESC) LIMIT 2",
	      "e.tar.gz,d.c");
	check("SELECT name, row_number() OVER () FROM (SELECT name FROM nodes ORDER BY name DESC) "
	      "LIMIT 2",
	      "e.tar.gz 1,d.c 2");
	check("SELECT group_concat(name, ';') FROM (SELECT name FROM nodes WHERE name > 'a' "
	      "ORDER BY name DESC)",
	      "e.tar.gz;d.c;c.txt;b");
	check("SELECT name FROM (SELECT name, ino FROM nodes ORDER BY name DESC) WHERE ino < "
	      "(SELECT max(ino) + 1 FROM nodes) LIMIT 2",
	      "e.tar.gz,d.c");
	check("SELECT name, (SELECT count(*) FROM nodes p WHERE p.parent = s.ino) FROM "
	      "(SELECT name, ino FROM nodes ORDER BY name DESC) s WHERE name > '' LIMIT 5",
	      "e.tar.gz 0,d.c 0,c.txt 0,b 1,a 2");
	check("SELECT a FROM (SELECT ext a, count(*) FROM nodes GROUP BY ext UNION ALL SELECT name, "
	      "count(*) FROM nodes GROUP BY name ORDER BY 1 DESC) LIMIT 3",
	      "txt,gz,e.tar.gz");
	check("SELECT x FROM (SELECT depth x FROM nodes WHERE depth < 3 ORDER BY ino * 0, depth DESC) "
	      "UNION ALL SELECT count(*) FROM nodes GROUP BY type LIMIT 3",
	      "2,2,1");
	check("SELECT name, rank() OVER (ORDER BY size * 0) r FROM (SELECT name, size FROM nodes "
	      "WHERE name > 'a' ORDER BY name DESC) ORDER BY r LIMIT 2",
	      "e.tar.gz 1,d.c 1");
	check("SELECT type, count(*) FROM (SELECT type FROM nodes WHERE name > 'a') GROUP BY type "
	      "ORDER BY type",
	      "d 1,f 3");
}

static void test_columns(void **state)
{
	(void)state;
	check("SELECT path FROM nodes ORDER BY path", "/,/.rc,/a,/a/b,/a/b/c.txt,/a/d.c,/e.tar.gz");
	check("SELECT path, ext, type, depth FROM nodes WHERE ext IS NOT NULL ORDER BY 1",
	      "/a/b/c.txt txt f 3,/a/d.c c f 2,/e.tar.gz gz f 1");
	check("SELECT count(*), count(ext), count(parent) FROM nodes", "7 3 6");
	check("SELECT rowid = ino, mode, nlink FROM nodes WHERE path = '/a'", "1 16877 3");
	check("SELECT typeof(mtime), mtime > '2001-01-01', mtime < '2001-01-01' FROM nodes "
	      "WHERE name = 'd.c'",
	      "integer 1 0");
	check("SELECT count(*) FROM nodes WHERE mtime BETWEEN '2001-01-01' AND '2250-01-01T12:00Z'",
	      "7");
	check("SELECT p.name, c.name FROM nodes p JOIN nodes c ON c.parent = p.ino "
	      "WHERE p.depth = 1 ORDER BY 2",
	      "a b,a d.c");
	check("SELECT ext, count(*) FROM nodes GROUP BY ext ORDER BY ext", "- 4,c 1,gz 1,txt 1");
	check("WITH RECURSIVE up(i) AS (SELECT ino_of('/a/b/c.txt') UNION ALL SELECT parent FROM "
	      "nodes, up WHERE ino = i AND parent IS NOT NULL) SELECT count(*) FROM up",
	      "4");
	check("WITH RECURSIVE t(i) AS (SELECT ino_of('/a') UNION ALL SELECT n.ino FROM nodes n JOIN t ON n.parent = i) "
	      "SELECT path FROM t JOIN nodes ON ino = i ORDER BY path",
	      "/a,/a/b,/a/b/c.txt,/a/d.c");
	check("SELECT (SELECT group_concat(name) FROM nodes WHERE parent = v.column1) "
	      "FROM (VALUES (ino_of('/a/b')), (ino_of('/a/d.c')), (0), (-3), (NULL), ('2x')) v",
	      "c.txt,-,-,-,-,-");
}

static void test_functions(void **state)
{
	(void)state;
	check("SELECT path FROM nodes WHERE under(ino, '/a') ORDER BY path",
	      "/a,/a/b,/a/b/c.txt,/a/d.c");
	check("SELECT path FROM nodes WHERE under(ino, 'a/b/') AND type = 'f'", "/a/b/c.txt");
	check("SELECT path FROM nodes WHERE child_of(ino, '/a') ORDER BY path", "/a/b,/a/d.c");
	check("SELECT path FROM nodes WHERE child_of(ino, 2) AND type = 'd'", "/a");
	check("SELECT path FROM nodes WHERE ancestor_of(ino, '/a/b/c.txt') ORDER BY path",
	      "/,/a,/a/b");
	check("SELECT path FROM nodes WHERE NOT under(ino, '/a') ORDER BY path",
	      "/,/.rc,/e.tar.gz");
	check("SELECT count(*) FROM nodes WHERE under(ino, '/nowhere')", "0");
	check("SELECT ino_of(''), path_of(''), ino_of(x''), under(2, ''), child_of('', '/')",
	      "- - - - -");
	check("SELECT common_ancestor('/a', ''), ancestor_of('', '/a')", "- -");
	check("SELECT common_ancestor(p) FROM (SELECT '' AS p)", "-");
	check("SELECT count(*) FROM nodes WHERE under(ino, '')", "0");
	check("SELECT count(*) FROM nodes WHERE NOT under(ino, '')", "0");
	check("SELECT count(*) FROM nodes WHERE child_of(ino, '')", "0");
	check("SELECT count(*) FROM nodes WHERE ancestor_of(ino, x'')", "0");
	check("SELECT count(*) FROM nodes WHERE child_of(ino, '') OR under(ino, '')", "0");
	check("SELECT count(*) FROM nodes n JOIN nodes m USING (ino) WHERE under(n.ino, '')", "0");
	check("SELECT count(*) FROM nodes WHERE NOT under(ino, '/nowhere')", "0");
	check("SELECT under(2, '/nowhere'), ino_of('/x'), path_of(9), path_of('/a/./b/..'), "
	      "ino_of('/') ",
	      "- - - /a 2");
	check("SELECT path_of(common_ancestor('/a/b/c.txt', '/a/d.c'))", "/a");
	check("SELECT path_of(common_ancestor(ino)) FROM nodes WHERE ext IN ('c', 'txt')", "/a");
	check("SELECT common_ancestor(ino) FROM nodes WHERE ext = 'none'", "-");
	check("SELECT ancestor_of(ino_of('/a'), '/a'), ancestor_of(2, '/a'), child_of('/a', '/')",
	      "0 1 1");
}

static void set_mode(const char *path, mode_t mode)
{
	const struct stat attr = {.st_mode = mode};
	struct pfs_entry entry;

	assert_int_equal(
		pfs_tree_setattr(tree, &entry, ino_of(path), &attr, PFS_SET_MODE, &temp_root), 0);
}

static void test_scope(void **state)
{
	(void)state;
	scope.ino = ino_of("/a/b");
	check("SELECT path FROM nodes ORDER BY path", "/a/b,/a/b/c.txt");
	check("SELECT count(*) FROM nodes WHERE path GLOB '/a/*'", "2");
	scope.ino = 9;
	refuse_at("SELECT 1", -ENOENT, -1, "gone");
	scope.ino = PFS_ROOT_PRIME;
	scope.sees_all = false;
	scope.uid = scope.gid = 500; /* what else others see and do not: test_query_visible.c */
	check("SELECT count(*) FROM nodes", "7");
	set_mode("/a", 0750);
	check("SELECT path FROM nodes ORDER BY path", "/,/.rc,/a,/e.tar.gz");
	scope.ino = ino_of("/a/b");
	refuse_at("SELECT 1", -EACCES, -1, "read and search");
}

static void set_attr(const char *path, const char *name, const char *value)
{
	assert_int_equal(pfs_tree_setxattr(tree, ino_of(path), name, value, strlen(value), 0), 0);
}

/* More attributes than can be columns: one of the rest is refused by its name. */
static void test_many_attributes(void **state)
{
	char name[32];

	(void)state;
	for (unsigned i = 0; i < PFS_ATTR_COLUMNS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "user.t%04u", i);
		set_attr("/a", name, "x");
	}
	check("SELECT t1899 FROM nodes WHERE t0000 = 'x'", "x");
	set_attr("/a", "user.z", "y");
	check("SELECT t1899 FROM nodes WHERE t0000 = 'x'", "x");
	check("SELECT count(*) FROM (SELECT * FROM nodes)", "7");
	refuse_at("SELECT z FROM nodes", -EINVAL, 7, "no such column: z");
	refuse_at("SELECT z FROM nodes", -EINVAL, 7, "only 1900 attributes can be columns");
	refuse_at("SELECT zz FROM nodes", -EINVAL, 7, "table_info(nodes)");
	refuse_at("SELECT 1 FROM nodes WHERE ext = accepted", -EINVAL, 32,
		  "a text is written 'accepted'");
	refuse_at("SELECT 1 FROM nodes WHERE name = x.c", -EINVAL, 33, "a text is written 'x.c'");
}

static void test_attributes(void **state)
{
	(void)state;
	refuse_at("SELECT tag FROM nodes", -EINVAL, 7, "no such column: tag");
	set_attr("/a", "user.tag", "one");
	set_attr("/a/d.c", "user.size", "big"); /* the built-in column wins */
	check("SELECT name, tag FROM nodes WHERE tag IS NOT NULL", "a one");
	assert_int_equal(pfs_tree_sync(tree), 0);
	check("SELECT name, tag FROM nodes WHERE tag IS NOT NULL", "a one");
	set_attr("/a", "user.tag", "two");
	set_attr("/e.tar.gz", "user.tag", "three");
	check("SELECT name, tag FROM nodes WHERE tag IS NOT NULL ORDER BY 1",
	      "a two,e.tar.gz three");
	check("SELECT \"user.size\", size FROM nodes WHERE \"user.size\" = 'big'", "big 0");
	assert_int_equal(pfs_tree_removexattr(tree, ino_of("/a"), "user.tag"), 0);
	check("SELECT name, tag FROM nodes WHERE tag IS NOT NULL", "e.tar.gz three");
	set_attr("/a", "user.Tag", "other capitals");
	check("SELECT \"user.tag\" || tag, name FROM nodes WHERE \"user.tag\" || tag NOTNULL", "");
	check("SELECT a.tag, b.tag FROM nodes a, nodes b WHERE a.tag < b.tag", "");
	set_attr("/a", "user.RowId", "mine");
	check("SELECT count(*), \"user.rowid\" FROM nodes WHERE rowid = 2", "1 -");
	set_attr("/a", "user.TAG", "others still"); /* comes before them in the order of bytes */
	check("SELECT name, tag FROM nodes WHERE tag IS NOT NULL", "e.tar.gz three");
	check("SELECT name, \"user.tag\" FROM nodes WHERE \"user.tag\" IS NOT NULL",
	      "a other capitals");
	assert_int_equal(pfs_tree_sync(tree), 0);
	check("SELECT name, tag FROM nodes WHERE tag IS NOT NULL", "e.tar.gz three");
	assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, "e.tar.gz"), 0);
	check("SELECT count(tag) + count(\"user.tag\") FROM nodes", "1");
}

static void refuse_nested(void)
{
	enum { DEPTH = 20000 };
	char *sql = malloc(DEPTH + 16);

	assert_non_null(sql);
	(void)snprintf(sql, DEPTH + 16, "SELECT %0*d", DEPTH, 1);
	for (char *c = sql; *c; c++)
		*c = *c == '0' ? '(' : *c;
	refuse_at(sql, -EINVAL, -1, "nested too deeply");
	free(sql);
}

static void test_errors(void **state)
{
	char *text;

	(void)state;
	refuse_at("SELECT nmae FROM nodes", -EINVAL, 7, "did you mean name?");
	refuse_at("SELECT 1 FROM nods", -EINVAL, 14, "nodes");
	refuse_at("SELECT mtime > '2020-01-01', x", -EINVAL, 7, "no such column");
	refuse_at("SELECT mtime > '2020-01-01' FROM nodes, nowhere", -EINVAL, 40, "no such table");
	refuse_at("SELECT 1 FORM nodes x", -EINVAL, 14, "correct it");
	refuse_at("SELECT paht FROM nodes", -EINVAL, 7, "did you mean path?");
	refuse_at("SELECT foo FROM nodes", -EINVAL, 7, "a text is written 'foo'");
	refuse_at("SELECT name", -EINVAL, 7, "nodes has it; write FROM nodes");
	refuse_at("SELECT x.name FROM nodes n", -EINVAL, 7, "see what FROM calls that table");
	refuse_at("SELECT 'a FROM nodes", -EINVAL, 7, "quote is not closed");
	refuse_at("SELECT 1 FROM nodes WHERE size > 10K", -EINVAL, 33, "numbers have no units");
	refuse_at("SHOW TABLES", -EINVAL, 0, "begins with SELECT");
	refuse_at("SELECT under('/a') FROM nodes", -EINVAL, 7, "primefs-query(1)");
	refuse_at("SELECT * FROM resolve", -EINVAL, -1, "resolve() takes an argument");
	refuse_at("SELECT * FROM nodes_at()", -EINVAL, -1, "nodes_at() takes an argument");
	refuse_nested();
	refuse_at("SELECT (1 + \n", -EINVAL, 11, "has to follow");
	refuse_at("SELECT mtime > '2020-01-01' AND (", -EINVAL, 33, "has to follow");
	refuse_at("", -EINVAL, -1, "no statement");
	refuse_at(" -- nothing\n ", -EINVAL, -1, "no statement");
	refuse_at("SELECT 1; SELECT 2", -EINVAL, 9, "one at a time");
	refuse_at("SELECT ?", -EINVAL, -1, "parameters");
	refuse_at("ATTACH 'x' AS y", -EACCES, -1, "ATTACH");
	refuse_at("PRAGMA cache_size = 7", -EACCES, -1, "PRAGMA cache_size");
	refuse_at("SELECT load_extension('x')", -EACCES, 7, "load_extension");
	refuse_at("CREATE TABLE t (a)", -EACCES, -1, "SELECT");
	refuse_at("BEGIN", -EACCES, -1, "transaction");
	refuse_at("DROP TABLE nodes", -EACCES, -1, "SELECT");
	refuse_at("DELETE FROM nodes", -EACCES, -1, "SELECT");
	refuse_at("DELETE FROM sqlite_master", -EINVAL, -1, "may not be modified");
	refuse_at("CREATE TEMP TABLE t AS SELECT 1", -EACCES, -1, "SELECT");
	refuse_at("CREATE VIEW v AS SELECT 1", -EACCES, -1, "SELECT");
	refuse_at("VACUUM", -EACCES, -1, "SELECT");
	check("SELECT sum(value) FROM json_each('[1,2]')", "3");
	check("SELECT 1 ; -- the end ; \n ;", "1");
	check("SELECT count(*) > 20 FROM pragma_table_info('nodes')", "1");

	refuse_at("SELECT size,\n\tbad\nFROM nodes", -EINVAL, 14, "bad");
	text = pfs_query_error_text(&error, "SELECT size,\n\tbad\nFROM nodes", 27);
	assert_non_null(text);
	assert_non_null(strstr(text, "\n  \tbad\n  \t^"));
	free(text);
}

static void test_failures(void **state)
{
	struct pfs_query *query = begin("SELECT abs(-9223372036854775807 - 1)");
	char *big = malloc(PFS_STATEMENT_MAX + 1);

	(void)state;
	assert_int_equal(pfs_query_next(query, &error), -EINVAL);
	assert_non_null(strstr(error.text, "integer overflow"));
	assert_int_equal(pfs_query_next(query, &error), -EINVAL);
	pfs_query_finish(query);

	assert_non_null(big);
	memset(big, ' ', PFS_STATEMENT_MAX + 1);
	assert_int_equal(pfs_query_start(&query, queries, &scope, big, PFS_STATEMENT_MAX + 1,
					 &error),
			 -E2BIG);
	assert_non_null(strstr(error.text, "more than 65536 bytes"));
	free(big);

	scope.memory_limit = 4 << 20;
	query = begin("SELECT length(zeroblob(8000000))");
	assert_int_equal(pfs_query_next(query, &error), -ENOMEM);
	pfs_query_finish(query);
	scope.memory_limit = 1000;
	query = begin("SELECT path FROM nodes");
	assert_int_equal(pfs_query_next(query, &error), -ENOMEM);
	pfs_query_finish(query);
}

#define ENDLESS                                                                                    \
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n"

static void test_interrupt(void **state)
{
	struct pfs_query *query = begin(ENDLESS);

	(void)state;
	pfs_query_interrupt(query);
	assert_int_equal(pfs_query_next(query, &error), -EINTR);
	pfs_query_finish(query);
	scope.time_limit_ms = 20;
	query = begin(ENDLESS);
	assert_int_equal(pfs_query_next(query, &error), -ETIMEDOUT);
	pfs_query_finish(query);
	check("SELECT 1", "1"); /* the connection is as new */
}

/* Columns are named as the statement was written, whatever it runs as. */
static void test_titles(void **state)
{
	static const char *const titles[] = {
		"mtime > '2024-01-01'",
		"x",
		"count(*)",
		"(SELECT count(*) FROM nodes)",
		"2 * (SELECT count(*) AS n FROM nodes WHERE mtime < '2024-02')",
		"'2024-01-01'",
	};
	char sql[512] = "SELECT ";
	struct pfs_query *query;

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(titles); i++)
		(void)sprintf(sql + strlen(sql), "%s%s%s", i ? ", " : "",
			      i == 1 ? "mtime < '2024-01-01' AS " : "", titles[i]);
	(void)sprintf(sql + strlen(sql), " FROM nodes");
	query = begin(sql);
	assert_int_equal(pfs_query_columns(query), PFS_COUNT(titles));
	for (size_t i = 0; i < PFS_COUNT(titles); i++)
		assert_string_equal(pfs_query_column_name(query, i), titles[i]);
	pfs_query_finish(query);
	query = begin("SELECT count(*) FROM nodes");
	assert_string_equal(pfs_query_column_name(query, 0), "count(*)");
	pfs_query_finish(query);
}

static bool is_gone(void *asked)
{
	return ++*(unsigned *)asked > 3;
}

/* Also while the statement begins: one that changes something has run by then. */
static void test_nobody_waits(void **state)
{
	unsigned asked = 0;
	struct pfs_query *query;

	(void)state;
	scope.may_change = true;
	scope.gone = is_gone;
	scope.gone_arg = &asked;
	query = begin(ENDLESS);
	assert_int_equal(pfs_query_next(query, &error), -EINTR);
	pfs_query_finish(query);
	asked = 0;
	refuse_at(
		"INSERT INTO nodes(path) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
		"SELECT '/' || i FROM n",
		-EINTR, -1, "interrupted");
	scope.gone = NULL;
	check("SELECT count(*) FROM nodes", "7");
}

/* A change between two rows: what was read is thrown away, and the second run is left alone. */
static void test_restart(void **state)
{
	struct pfs_query *query;
	char name[16];

	(void)state;
	set_attr("/a", "user.tag", "one");
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		(void)make(PFS_ROOT_PRIME, name, S_IFREG | 0644);
	}
	query = begin("SELECT count(path) OVER (ROWS CURRENT ROW), tag FROM nodes");
	assert_int_equal(pfs_query_next(query, &error), 1);
	set_attr("/a", "user.tag", "two");
	for (int rows = 1;; rows++) {
		int got = pfs_query_next(query, &error);

		assert_true(rows < 1007 && (got == 1 || got == -EAGAIN));
		if (got == -EAGAIN)
			break;
	}
	for (int i = 0; i < 1007; i++)
		assert_int_equal(pfs_query_next(query, &error), 1);
	assert_int_equal(pfs_query_next(query, &error), 0);
	set_attr("/a", "user.tag", "three"); /* the tree is free again */
	pfs_query_finish(query);

	query = begin("SELECT name FROM nodes a WHERE name = 'f7'"); /* bound when it runs */
	(void)make(PFS_ROOT_PRIME, "g", S_IFREG | 0644);
	rest(query, "f7");
	pfs_query_finish(query);
	query = begin("SELECT name FROM nodes"); /* given up in the second run */
	assert_int_equal(pfs_query_next(query, &error), 1);
	(void)make(PFS_ROOT_PRIME, "h", S_IFREG | 0644);
	while (pfs_query_next(query, &error) == 1)
		;
	assert_int_equal(error.error, -EAGAIN);
	assert_int_equal(pfs_query_next(query, &error), 1);
	pfs_query_finish(query);
	(void)make(PFS_ROOT_PRIME, "i", S_IFREG | 0644);
}

static char *plan_of(const char *sql, const char *rows)
{
	struct pfs_query *query;
	char *text;

	scope.explains = true;
	query = begin(sql);
	rest(query, rows);
	assert_int_equal(pfs_query_plan(query, &text), 0);
	assert_non_null(text);
	pfs_query_finish(query);
	scope.explains = false;
	return text;
}

/* How the rows come to that order: sorted by SQLite, or here, or not at all. */
static void check_order(const char *sql, const char *rows, const char *how)
{
	char *text = plan_of(sql, rows);

	if (!strstr(text, how) ||
	    (strstr(how, "TEMP B-TREE") == NULL && strstr(text, "TEMP B-TREE")))
		fail_msg("%s: %s", sql, text);
	free(text);
}

static void test_preorder(void **state)
{
	(void)state;
	check("SELECT hex(preorder) FROM nodes WHERE depth < 2 ORDER BY 1",
	      "00,002E7263,0061,00652E7461722E677A");
	check("SELECT count(*) FROM nodes WHERE preorder = CAST(x'0061' AS TEXT)", "1");
	check("SELECT count(*) FROM pragma_table_info('nodes') WHERE name = 'preorder'", "0");
	assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, ".rc"), 0); /* the others ascend */
	check_order("SELECT path FROM nodes ORDER BY preorder",
		    "/,/a,/a/b,/a/b/c.txt,/a/d.c,/e.tar.gz", "in order as found");
	/* those that sort between a name and what lies in it as bytes of a path, not as names */
	(void)make(ino_of("/a"), "b-c", S_IFDIR | 0755);
	(void)make(ino_of("/a"), "b c", S_IFREG | 0644);
	(void)make(ino_of("/a"), "b\nc", S_IFREG | 0644);
	(void)make(ino_of("/a/b-c"), "x", S_IFREG | 0644);
	(void)make(PFS_ROOT_PRIME, "a.b", S_IFREG | 0644);
	check_order("SELECT path FROM nodes ORDER BY preorder",
		    "/,/a,/a/b,/a/b/c.txt,/a/b\nc,/a/b c,/a/b-c,/a/b-c/x,/a/d.c,/a.b,/e.tar.gz",
		    "then sorted");
	check_order("SELECT path FROM nodes ORDER BY +preorder",
		    "/,/a,/a/b,/a/b/c.txt,/a/b\nc,/a/b c,/a/b-c,/a/b-c/x,/a/d.c,/a.b,/e.tar.gz",
		    "TEMP B-TREE");
	check_order(
		"SELECT name FROM nodes WHERE under(ino, '/a') AND type = 'f' ORDER BY preorder DESC",
		"d.c,x,b c,b\nc,c.txt", "then sorted");
	check_order("SELECT depth, name FROM nodes WHERE depth > 1 ORDER BY depth, preorder DESC",
		    "2 d.c,2 b-c,2 b c,2 b\nc,2 b,3 x,3 c.txt", "then sorted");
	assert_int_equal(pfs_tree_rename(tree, ino_of("/a"), "b", PFS_ROOT_PRIME, "a-", 0), 0);
	check("SELECT path FROM nodes WHERE size >= 0 ORDER BY preorder LIMIT 6",
	      "/,/a,/a/b\nc,/a/b c,/a/b-c,/a/b-c/x");
	check("SELECT path FROM nodes ORDER BY preorder LIMIT 4 OFFSET 6",
	      "/a/d.c,/a-,/a-/c.txt,/a.b");
}

static void test_plan(void **state)
{
	char *text =
		plan_of("SELECT a.name FROM nodes a JOIN nodes b ON b.parent = a.ino "
			"WHERE b.size BETWEEN 0 AND 9 AND b.name GLOB 'c*' AND under(b.ino, '/a')",
			"b");

	(void)state;
	assert_non_null(strstr(text, "SCAN b: "));
	assert_non_null(strstr(text, "size BETWEEN 0 AND 9"));
	assert_non_null(strstr(text, "name begins with 'c'"));
	assert_null(strstr(text, "name >=")); /* which SQLite shows, too */
	assert_non_null(strstr(text, "under(ino, "));
	assert_non_null(strstr(text, "SCAN a: ino = "));
	assert_non_null(strstr(text, "selected 1, read 1"));
	free(text);
}

/* What a range of a column costs by its index and by a scan: before the index is there, and
 * then. */
static void test_plan_of_index(void **state)
{
	static const char sql[] =
		"SELECT path FROM nodes WHERE size BETWEEN 7 AND 9 AND type = 'f'";
	char *text = plan_of(sql, "");

	(void)state;
	assert_non_null(strstr(text, "index or scan: "));
	assert_non_null(strstr(text, " ms by the index of size, "));
#ifndef PFS_VERIFY /* which asks twice */
	assert_non_null(strstr(text, "chosen: the scan, for that index is not made yet"));
#endif
	for (unsigned i = 0; i < 2; i++) {
		free(text);
		text = plan_of(sql, "");
	}
	assert_non_null(strstr(text, "by index of size"));
	assert_non_null(strstr(text, "chosen: the index"));
	free(text);
	text = plan_of("SELECT path FROM nodes WHERE type = 'l'", "");
	assert_null(strstr(text, "index or scan"));
	free(text);
}

static void test_plan_of_side_index(void **state)
{
	static const char sql[] = "SELECT n FROM indexed WHERE t = 't7'";
	char *text;

	(void)state;
	scope.may_change = true;
	change("CREATE TABLE indexed (t TEXT, n INTEGER)", 0);
	change("CREATE INDEX indexed_t ON indexed (t)", 0);
	change("INSERT INTO indexed WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 20000) "
	       "SELECT 't' || i, i FROM c",
	       20000);
	text = plan_of(sql, "7");
	for (unsigned i = 0; i < 400 && !strstr(text, "chosen: the index");
	     i++) { /* until SQLite's copy is worth what it takes */
		assert_non_null(strstr(text, "index or scan: "));
		assert_non_null(strstr(text, " ms by an index of the table, "));
		assert_non_null(strstr(text, "chosen: the operators"));
		free(text);
		text = plan_of(sql, "7");
	}
	assert_non_null(strstr(text, "chosen: the index"));
	free(text);
	text = plan_of("SELECT n FROM indexed WHERE n % 7000 = 7", "7,7007,14007");
	assert_null(strstr(text, "index or scan"));
	free(text);
}

/* A part's reals stay reals where SQLite keeps its rows for a join. */
static void test_reals_of_part(void **state)
{
	(void)state;
	scope.may_change = true;
	change("CREATE TABLE twice (t INTEGER)", 0);
	change("INSERT INTO twice VALUES (1), (2)", 2);
	change("CREATE TABLE reals (r, t)", 0);
	change("INSERT INTO reals SELECT x.r - 1, typeof(x.r) FROM twice s JOIN (SELECT CAST(ino AS REAL) AS r FROM nodes) AS x LIMIT 2",
	       2);
	free(plan_of("SELECT count(*) FROM reals WHERE typeof(r) = 'real' AND t = 'real'", "2"));
}

static void test_raw_bytes(void **state)
{
	struct pfs_sql_value value;
	struct pfs_query *query;

	(void)state;
	(void)make(PFS_ROOT_PRIME, "\xff\xfe'\n", S_IFREG | 0644);
	query = begin("SELECT name FROM nodes WHERE name = CAST(x'fffe270a' AS TEXT)");
	assert_int_equal(pfs_query_next(query, &error), 1);
	pfs_query_value(query, 0, &value);
	assert_int_equal(value.type, PFS_SQL_TEXT);
	assert_int_equal(value.size, 4);
	assert_memory_equal(value.bytes, "\xff\xfe'\n", 4);
	pfs_query_finish(query);
}

/* ---- parts of statements, which the operators run ---- */

#define OVERFLOWS "(SELECT sum(9223372036854775807 - depth * 0) FROM nodes)"

static void says(const char *plan, const char *what, bool is_said)
{
	if ((strstr(plan, what) != NULL) != is_said)
		fail_msg("%s\n%s %s", plan, is_said ? "says nothing of" : "says", what);
}

static void test_parts(void **state)
{
	char *plan = plan_of(
		"SELECT hex(type), count(*) AS n, rank() OVER (ORDER BY count(*)) FROM nodes "
		"GROUP BY type HAVING n > 1 ORDER BY 1",
		"64 3 1,66 3 1");

	(void)state;
	says(plan, "SCAN sqlite_part_0: part 0\n", true);
	says(plan, "part 0: run by the relational operators on the host: nodes, grouped by type\n",
	     true);
	says(plan, "estimated: ", true);
	says(plan, "SQLite over the columns of the image, for it has a function that is SQLite's\n",
	     true);
	free(plan);
	plan = plan_of("SELECT upper(name) FROM nodes WHERE name = 'a'", "A");
	says(plan, "part", false);
	free(plan);
}

static void test_titles_of_parts(void **state)
{
	static const char *const titles[] = {"hex( type )", "n",
					     "count( * ) + (SELECT count(*) FROM nodes)", "type"};
	struct pfs_query *query = begin(
		"SELECT hex( type ), count(*) AS n, count( * ) + (SELECT count(*) FROM nodes), type "
		"FROM (SELECT type FROM nodes GROUP BY type, parent) GROUP BY type");

	(void)state;
	assert_non_null(query->parts);
	assert_int_equal(pfs_query_columns(query), PFS_COUNT(titles));
	for (size_t i = 0; i < PFS_COUNT(titles); i++)
		assert_string_equal(pfs_query_column_name(query, i), titles[i]);
	rest_text((char[256]){""}, 256, query);
	pfs_query_finish(query);
	check("SELECT \"count(*)\" || '' FROM (SELECT hex(type), count(*) FROM nodes GROUP BY type)",
	      "3,3");
	check("SELECT b || '' FROM (SELECT hex(type) a, type b, count(*) FROM nodes GROUP BY type)",
	      "d,f");
}

/* A table of a part is there for its statement alone, and for none that has such a name. */
static void test_names_of_parts(void **state)
{
	(void)state;
	check("SELECT hex(type), count(*) FROM nodes GROUP BY type", "64 3,66 3");
	refuse("SELECT * FROM sqlite_part_0", -EINVAL, "no such table: sqlite_part_0");
	check("WITH sqlite_part_0 AS (SELECT 7 AS c0) SELECT hex(type), (SELECT c0 FROM sqlite_part_0) FROM "
	      "nodes GROUP BY type",
	      "64 7,66 7");
	refuse("SELECT upper(type), count(*) FROM nodes GROUP BY typ", -EINVAL,
	       "no such column: typ");
	assert_int_equal(error.offset, 49);
}

static void fails(const char *sql, const char *why)
{
	struct pfs_query *query = begin(sql);
	int got;

	while ((got = pfs_query_next(query, &error)) == 1)
		;
	assert_true(got < 0);
	assert_non_null(strstr(error.text, why));
	pfs_query_finish(query);
}

static void test_parts_without_answer(void **state)
{
	char *plan;

	(void)state;
	fails("SELECT hex(type), " OVERFLOWS " FROM nodes GROUP BY type", "integer overflow");
	plan = plan_of(
		"SELECT upper(name) FROM nodes WHERE depth = 0 OR (depth > 9 AND 5 > " OVERFLOWS
		")",
		"");
	says(plan, "part", false); /* SQLite, which does not get there, runs it all */
	free(plan);
}

/* Parts and what is around them are of one tree. */
static void test_parts_restart(void **state)
{
	static const char sql[] =
		"SELECT (SELECT count(*) FROM nodes), count(*) OVER (ROWS CURRENT ROW) FROM nodes";
	struct pfs_query *query;
	char name[16];
	int rows = 0, got;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		(void)make(PFS_ROOT_PRIME, name, S_IFREG | 0644);
	}
	query = begin(sql);
	assert_non_null(query->parts);
	assert_int_equal(pfs_query_next(query, &error), 1);
	(void)make(PFS_ROOT_PRIME, "late", S_IFREG | 0644);
	while ((got = pfs_query_next(query, &error)) != 0) {
		struct pfs_sql_value value;

		rows = got == 1 ? rows + 1 : 0;
		if (got == -EAGAIN)
			continue;
		assert_int_equal(got, 1);
		pfs_query_value(query, 0, &value);
		assert_int_equal(value.integer, rows < 3006 ? value.integer : 3007);
	}
	assert_int_equal(rows, 3007);
	pfs_query_finish(query);
	query = begin(sql); /* the part runs once the statement does */
	(void)make(PFS_ROOT_PRIME, "later", S_IFREG | 0644);
	assert_int_equal(pfs_query_next(query, &error), 1);
	pfs_query_finish(query);
}

/* More of them than are taken: those are SQLite's. */
static void test_many_parts(void **state)
{
	char *sql;
	size_t len;
	FILE *out = open_memstream(&sql, &len);

	(void)state;
	(void)fputs("SELECT 0", out);
	for (unsigned i = 0; i < 40; i++)
		(void)fprintf(out, " + (SELECT count(*) FROM nodes WHERE depth >= %u)", i % 2);
	(void)fclose(out);
	check(sql, "220");
	free(sql);
}

int main(void)
{
#define TEST(name)  cmocka_unit_test_setup_teardown(name, set_up_reading, tear_down)
#define PARTS(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_columns),
		TEST(test_order_of_sub_selects),
		TEST(test_functions),
		TEST(test_scope),
		TEST(test_attributes),
		TEST(test_many_attributes),
		TEST(test_errors),
		TEST(test_failures),
		TEST(test_interrupt),
		TEST(test_restart),
		TEST(test_plan),
		TEST(test_plan_of_index),
		TEST(test_plan_of_side_index),
		TEST(test_preorder),
		TEST(test_reals_of_part),
		TEST(test_raw_bytes),
		TEST(test_nobody_waits),
		TEST(test_titles),
		PARTS(test_parts),
		PARTS(test_titles_of_parts),
		PARTS(test_names_of_parts),
		PARTS(test_parts_without_answer),
		PARTS(test_parts_restart),
		PARTS(test_many_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
