/* SPDX-License-Identifier: MIT */
/* Answers made some rows at a time: when what has been made may be read, and what the statement's
 * time is. */
#include "base/clock.h"
#include "fs/query/internal.h"
#include "fs/query/output/making.h"
#include "meta/account.h"
#include "tests/unit/query_util.h"

#define FILES 4000

static const char rows_of_none[] =
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i, i * i FROM n";

static struct pfs_answer *answer;
static struct pfs_making *making;

static int set_up_files(void **state)
{
	int failed = set_up(state);
	uint64_t dir = ino_of("/a/b");
	char name[32];

	for (int i = 0; i < FILES; i++) {
		(void)snprintf(name, sizeof(name), "file %d", i);
		(void)make(dir, name, S_IFREG | 0644);
	}
	scope.ino = dir;
	return failed;
}

static int begin_making(const char *sql)
{
	const struct pfs_asked asked = {sql, strlen(sql), PFS_FORMAT_TSV};

	assert_int_equal(pfs_answer_create(&answer, 0, 0), 0);
	return pfs_making_open(&making, answer, queries, &scope, &asked, &error);
}

/* Its lines. */
static size_t finish(void)
{
	size_t size = pfs_answer_size(answer), lines = 0;
	char *text = malloc(size + 1);

	assert_non_null(text);
	assert_int_equal(pfs_answer_read(answer, text, size + 1, 0), size);
	for (size_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	free(text);
	pfs_making_close(making);
	pfs_answer_close(answer);
	return lines;
}

static int to_end(void)
{
	int status;

	do
		status = pfs_making_step(making, &error);
	while (status > 0);
	return status;
}

static void test_of_no_tree(void **state PFS_UNUSED)
{
	assert_int_equal(begin_making(rows_of_none), 0);
	assert_int_equal(pfs_making_step(making, &error), 1);
	assert_true(pfs_making_is_settled(making));
	assert_int_equal(to_end(), 0);
	assert_int_equal(finish(), 20001);
}

/* What a tree that may change has is not settled; one that has changed is frozen, and the rows
 * begin anew. */
static void test_of_tree(void **state PFS_UNUSED)
{
	assert_int_equal(begin_making("SELECT name FROM nodes"), 0);
	assert_int_equal(pfs_making_step(making, &error), 1);
	assert_false(pfs_making_is_settled(making));
	(void)make(scope.ino, "late", S_IFREG | 0644);
	assert_int_equal(pfs_making_step(making, &error), 1);
	assert_true(pfs_making_is_settled(making));
	(void)make(scope.ino, "later", S_IFREG | 0644);
	assert_int_equal(to_end(), 0);
	assert_int_equal(finish(), 1 + 2 + FILES + 1);
}

/* Rows as they are go on over a frozen tree, as if it had not changed, once they are to be
 * settled. */
static void test_settles(void **state PFS_UNUSED)
{
	static const char *const statements[] = {
		"SELECT name FROM nodes",
		"SELECT path, tag FROM nodes ORDER BY name DESC",
		"SELECT path FROM nodes WHERE length(name) > 1 OR size > 7",
		"SELECT name, ext, depth, subtree_count FROM nodes WHERE path LIKE '%' LIMIT 100000",
		"SELECT path FROM nodes WHERE ino > 1 AND size >= 0 LIMIT 100000",
		"SELECT ino FROM nodes WHERE under(ino, 2) AND tag IS NULL ORDER BY ino",
	};

	assert_int_equal(pfs_tree_setxattr(tree, scope.ino, "user.tag", "x", 1, 0), 0);
	for (size_t i = 0; i < sizeof(statements) / sizeof(*statements); i++) {
		size_t rows;

		assert_int_equal(begin_making(statements[i]), 0);
		assert_int_equal(to_end(), 0);
		rows = finish();
		assert_int_equal(begin_making(statements[i]), 0);
		assert_int_equal(pfs_making_step(making, &error), 1);
		assert_false(pfs_making_is_settled(making));
		assert_int_equal(pfs_making_settle(making, &error), 1);
		assert_false(pfs_making_query(making)->frozen);
		pfs_answer_set_growing(answer, true);
		(void)make(scope.ino, statements[i] + 7, S_IFREG | 0644);
		assert_int_equal(to_end(), 0);
		assert_true(pfs_making_query(making)->frozen);
		pfs_answer_set_growing(answer, false);
		assert_int_equal(finish(), rows);
	}
}

/* Rows of a tree that has changed by then are made anew. */
static void test_settles_late(void **state PFS_UNUSED)
{
	assert_int_equal(begin_making("SELECT name FROM nodes"), 0);
	assert_int_equal(pfs_making_step(making, &error), 1);
	(void)make(scope.ino, "soon", S_IFREG | 0644);
	assert_int_equal(pfs_making_settle(making, &error), 0);
	assert_int_equal(pfs_making_step(making, &error), 1);
	assert_int_equal(pfs_making_settle(making, &error), 1);
	assert_int_equal(to_end(), 0);
	assert_true(finish() > FILES);
}

/* The operators have no such frame: SQLite runs it. */
static const char windows[] =
	"SELECT name, sum(size) OVER (ORDER BY ino ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM nodes";

/* What SQLite runs itself begins anew over a frozen tree, which nobody changes. */
static void test_settles_of_sqlite(void **state PFS_UNUSED)
{
	size_t rows;

	assert_int_equal(begin_making(windows), 0);
	assert_int_equal(to_end(), 0);
	rows = finish();
	assert_int_equal(begin_making(windows), 0);
	assert_int_equal(pfs_making_step(making, &error), 1);
	assert_false(pfs_making_is_settled(making));
	assert_int_equal(pfs_making_settle(making, &error), 0);
	assert_true(pfs_making_is_settled(making));
	assert_true(pfs_making_query(making)->frozen);
	assert_int_equal(pfs_answer_made(answer), 0);
	(void)make(scope.ino, "after", S_IFREG | 0644);
	assert_int_equal(pfs_making_step(making, &error), 1);
	assert_int_equal(pfs_making_settle(making, &error), 1);
	pfs_answer_set_growing(answer, true);
	(void)make(scope.ino, "still after", S_IFREG | 0644);
	assert_int_equal(to_end(), 0);
	pfs_answer_set_growing(answer, false);
	assert_int_equal(finish(), rows);
}

/* Where no tree can be frozen, the answer goes on to its end. */
static void test_cannot_settle(void **state PFS_UNUSED)
{
	size_t rows;

	assert_int_equal(begin_making(windows), 0);
	assert_int_equal(to_end(), 0);
	rows = finish();
	assert_int_equal(begin_making(windows), 0);
	assert_int_equal(pfs_making_step(making, &error), 1);
	pfs_accounts_limit(1);
	assert_int_equal(pfs_making_settle(making, &error), -EOPNOTSUPP);
	pfs_accounts_limit(0);
	assert_int_equal(to_end(), 0);
	assert_int_equal(finish(), rows);
}

/* Rows that the operators have put in order are all there. */
static void test_of_operators(void **state PFS_UNUSED)
{
	assert_int_equal(
		begin_making("SELECT size, name, count(*) FROM nodes GROUP BY 1, 2 ORDER BY 2"), 0);
	assert_int_equal(pfs_making_step(making, &error), 1);
	assert_true(pfs_making_is_settled(making));
	pfs_answer_set_growing(answer, true);
	(void)make(scope.ino, "latest", S_IFREG | 0644);
	assert_int_equal(to_end(), 0);
	assert_int_equal(pfs_answer_size(answer), 0);
	pfs_answer_set_growing(answer, false);
	assert_int_equal(finish(), 1 + 2 + FILES + 2);
}

/* What has been read is not made anew. */
static void test_growing_fails(void **state PFS_UNUSED)
{
	assert_int_equal(begin_making("SELECT name FROM nodes"), 0);
	assert_int_equal(pfs_making_step(making, &error), 1);
	pfs_answer_set_growing(answer, true);
	(void)make(scope.ino, "last", S_IFREG | 0644);
	assert_int_equal(to_end(), -EIO);
	assert_non_null(strstr(error.text, "open it again"));
	pfs_answer_set_growing(answer, false);
	(void)finish();
}

/* Of a statement that may take an hour, and has, of which nobody asked for rows so long. */
static int with_rest(uint64_t ns)
{
	int status;

	scope.time_limit_ms = 3600000;
	status = begin_making(rows_of_none);
	scope.time_limit_ms = 0;
	if (!status) {
		struct pfs_query *query = pfs_making_query(making);

		query->deadline_ns -= 3600 * PFS_NS_PER_S;
		pfs_query_rested(query, ns);
		status = to_end();
	}
	(void)finish();
	return status;
}

static void test_rest_is_no_time(void **state PFS_UNUSED)
{
	assert_int_equal(with_rest(0), -ETIMEDOUT);
	assert_int_equal(with_rest(UINT64_C(7200999999999)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_no_tree),    cmocka_unit_test(test_of_tree),
		cmocka_unit_test(test_of_operators),  cmocka_unit_test(test_growing_fails),
		cmocka_unit_test(test_rest_is_no_time), cmocka_unit_test(test_settles),
		cmocka_unit_test(test_settles_late),  cmocka_unit_test(test_settles_of_sqlite),
		cmocka_unit_test(test_cannot_settle),
	};

	return cmocka_run_group_tests_name("making", tests, set_up_files, tear_down);
}
