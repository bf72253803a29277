/* SPDX-License-Identifier: MIT */
/* What a statement may use: its stack, memory and time. */
#include <pthread.h>
#include <sys/mman.h>

#include "base/thread.h"
#include "meta/account.h"
#include "tests/unit/query_util.h"

/* ---- statements at the edges of what may be ---- */

static char *sql;
static size_t sql_len;
static FILE *out;

static void open_text(void)
{
	free(sql);
	out = open_memstream(&sql, &sql_len);
	assert_non_null(out);
}

/* n names of WITH, each of the one before: n + 2 SELECTs. */
static void write_chain(unsigned n)
{
	open_text();
	(void)fputs("WITH a0 AS(SELECT 1 x)", out);
	for (unsigned i = 1; i <= n; i++)
		(void)fprintf(out, ",a%u AS(SELECT*FROM a%u)", i, i - 1);
	(void)fprintf(out, "SELECT*FROM a%u", n);
	(void)fclose(out);
}

static void write_repeated(const char *first, const char *more, unsigned n, const char *last)
{
	open_text();
	(void)fputs(first, out);
	while (n-- > 0)
		(void)fputs(more, out);
	(void)fputs(last, out);
	(void)fclose(out);
}

struct run {
	int code;
	size_t stack; /* bytes of it that were touched */
};

static size_t touched_stack(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *resident;
	pthread_attr_t attr;
	void *base;
	size_t size, at = 0;

	assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
	assert_int_equal(pthread_attr_getstack(&attr, &base, &size), 0);
	(void)pthread_attr_destroy(&attr);
	assert_true(size >= PFS_THREAD_STACK);
	resident = calloc(size / page, 1);
	assert_non_null(resident);
	assert_int_equal(mincore(base, size, resident), 0);
	while (at < size / page && !(resident[at] & 1))
		at++;
	free(resident);
	return size - at * page;
}

static void run(void *arg)
{
	struct run *run = arg;
	struct pfs_query *query;

	run->code = pfs_query_start(&query, queries, &scope, sql, sql_len, &error);
	while (!run->code && (run->code = pfs_query_next(query, &error)) == 1)
		run->code = 0;
	pfs_query_finish(query);
	run->stack = touched_stack();
}

/* As whoever runs statements does. */
static int run_text(void)
{
	struct run done;

	error.text[0] = 0;
	assert_int_equal(pfs_thread_call(run, &done), 0);
	assert_true(done.stack < PFS_THREAD_STACK / 10);
	return done.code;
}

static void refused(int code, const char *why)
{
	assert_int_equal(run_text(), code);
	if (!strstr(error.text, why))
		fail_msg("%s", error.text);
}

static void test_selects_are_counted(void **state)
{
	(void)state;
	write_chain(498);
	assert_int_equal(run_text(), 0);
	write_chain(499);
	refused(-E2BIG, "more than 500 SELECTs");
	write_chain(2400); /* 64 KiB, all that a statement may have */
	refused(-E2BIG, "more than 500 SELECTs");
	write_repeated("SELECT 1", " UNION SELECT 2", 249, "");
	assert_int_equal(run_text(), 0);
	write_repeated("SELECT 1", " UNION SELECT 2", 250, "");
	refused(-EINVAL, "too many terms in compound SELECT");
	write_repeated("SELECT 1", " UNION ALL SELECT 2", 3000, "");
	refused(-EINVAL, "too many terms in compound SELECT");
}

static void test_depth_is_bounded(void **state)
{
	(void)state;
	write_repeated("SELECT ino", "+ino", 990, " FROM nodes");
	assert_int_equal(run_text(), 0);
	write_repeated("SELECT ino", "+ino", 1000, " FROM nodes");
	refused(-EINVAL, "Expression tree is too large");
	write_repeated("SELECT 1 FROM nodes WHERE ino", "-ino", 15000, "");
	refused(-EINVAL, "Expression tree is too large");
	write_repeated("SELECT ", "(", 30000, "1");
	refused(-EINVAL, "parser stack overflow");
	write_repeated("SELECT 1 WHERE 1", " ", (unsigned)PFS_STATEMENT_MAX, "");
	refused(-E2BIG, "");
}

static void test_patterns_are_bounded(void **state)
{
	(void)state;
	write_repeated("SELECT replace(hex(zeroblob(2000)),'0','a') LIKE "
		       "replace(hex(zeroblob(2000)),'0','%a')", "", 0, "");
	assert_int_equal(run_text(), 0);
	write_repeated("SELECT replace(hex(zeroblob(20000)),'0','a') LIKE "
		       "replace(hex(zeroblob(20000)),'0','%a')", "", 0, "");
	refused(-EINVAL, "pattern too complex");
}

/* Between two looks at the clock: the more a statement does with its values, the shorter they may
 * be. */
static void test_operations_shorten_values(void **state)
{
	static const struct {
		const char *operation;
		unsigned n; /* of them, that leave no room for values so long */
	} many[] = {
		{"x COLLATE NOCASE = x", 60},
		{"x + x", 30},
		{"x = y", 60},
		{"max(x, y, x, y, x)", 10},
		{"CAST(x AS INTEGER)", 60},
		{"NOT x", 60},
		{"unicode(x)", 60},
		{"strftime(x)", 1},
		{"char(x, y, x, y)", 10},
		{"x IS y", 60},
	};

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(many); i++) {
		char more[64];

		(void)snprintf(more, sizeof(more), ", %s", many[i].operation);
		write_repeated("SELECT 1", more, many[i].n,
			       " FROM (SELECT zeroblob(16000000) || '' AS x, "
			       "zeroblob(16000000) || '' AS y LIMIT 1)");
		refused(-ENOMEM, "ask in several statements");
		write_repeated("SELECT 1", more, many[i].n,
			       " FROM (SELECT zeroblob(60000) || '' AS x, "
			       "zeroblob(60000) || '' AS y LIMIT 1)");
		assert_int_equal(run_text(), 0);
	}
	write_repeated(
		"SELECT x = 'a', length(x), x LIKE '%a' FROM (SELECT zeroblob(16000000) AS x LIMIT 1)",
		"", 0, "");
	assert_int_equal(run_text(), 0);
	write_repeated("SELECT CASE ino WHEN 2 THEN 1", " WHEN 1 THEN 2", 1900,
		       " END FROM nodes WHERE ino > 0");
	assert_int_equal(run_text(), 0);
}

/* What names of sub-selects stand for is put in their place, each time: here 2^15 sums. */
static void test_operations_are_counted(void **state)
{
	(void)state;
	write_repeated("SELECT x + x FROM (SELECT x + x AS x FROM (", "SELECT x + x AS x FROM (",
		       12, "SELECT ino AS x FROM nodes");
	sql = realloc(sql, sql_len + 16);
	assert_non_null(sql);
	memset(sql + sql_len, ')', 14);
	sql_len += 14;
	refused(-E2BIG, "more than 20000 operations");
	sql[sql_len] = 0;
}

/* ---- memory ---- */

static uint64_t most_used;

static bool note_use(void *arg)
{
	(void)arg;
	most_used = PFS_MAX(most_used, pfs_accounts_used());
	return false;
}

/* The largest blobs that fit a value, n of them in a row. */
static void write_blobs(unsigned n)
{
	open_text();
	(void)fputs("SELECT 1", out);
	for (unsigned i = 0; i < n; i++)
		(void)fprintf(out, ", randomblob(%u)", 15000000 + i);
	(void)fclose(out);
}

static void test_memory_is_bounded(void **state)
{
	uint64_t before = pfs_accounts_used();

	(void)state;
	scope.memory_limit = 64 << 20;
	scope.gone = note_use;
	most_used = 0;
	write_blobs(8);
	refused(-ENOMEM, "query_memory");
	write_blobs(3);
	assert_int_equal(run_text(), 0);
	write_repeated("WITH RECURSIVE n(i, b) AS (SELECT 1, zeroblob(1) UNION ALL SELECT i + 1, "
		       "randomblob(15000000) FROM n LIMIT 30) SELECT group_concat(b) FROM n",
		       "", 0, "");
	assert_int_equal(run_text(), -ENOMEM);
	write_repeated("SELECT randomblob(200000000)", "", 0, "");
	refused(-ENOMEM, "query_value");
	write_repeated("SELECT typeof(printf('%17000000d', ino)), count(*) FROM nodes GROUP BY 1",
		       "", 0, "");
	refused(-ENOMEM, "ask in several statements");
	scope.value_limit = 1 << 20;
	write_repeated("SELECT format('%s%1048570d', 'abcdef', 1) IS NULL", "", 0, "");
	refused(-ENOMEM, "query_value");
	write_repeated("SELECT randomblob(1048577)", "", 0, "");
	refused(-ENOMEM, "query_value");
	write_repeated("SELECT randomblob(1048000)", "", 0, "");
	assert_int_equal(run_text(), 0);
	assert_true(most_used <= before + ((uint64_t)65 << 20));
	write_repeated("SELECT 1", "", 0, "");
	assert_int_equal(run_text(), 0);
	assert_true(pfs_accounts_used() < before + ((uint64_t)1 << 20));
}

/* A text of 250,000 bytes of the few names, beside so many operations on values. */
static void write_text(unsigned n)
{
	open_text();
	(void)fputs("SELECT group_concat(name, '", out);
	for (unsigned i = 0; i < 60000; i++)
		(void)fputc('x', out);
	(void)fputs("')", out);
	for (unsigned i = 0; i < n; i++)
		(void)fputs(i % 20 ? "+1" : ", count(*)", out);
	(void)fputs(" FROM nodes", out);
	(void)fclose(out);
}

static void test_text_of_rows_is_bounded(void **state)
{
	(void)state;
	write_text(20);
	assert_int_equal(run_text(), 0);
	write_text(200);
	refused(-ENOMEM, "beside so many operations");
}

static void test_total_is_bounded(void **state)
{
	struct pfs_query *query;

	(void)state;
	pfs_accounts_limit(32 << 20);
	query = begin("SELECT randomblob(15000000), ino FROM nodes");
	assert_int_equal(pfs_query_next(query, &error), 1);
	write_blobs(2);
	refused(-ENOMEM, "query_memory_total");
	assert_int_equal(pfs_query_next(query, &error), 1); /* the other one has its part */
	pfs_query_finish(query);
	write_blobs(1);
	assert_int_equal(run_text(), 0);
	pfs_accounts_limit(0);
}

static void do_statement(const char *text)
{
	write_repeated(text, "", 0, "");
	if (run_text())
		fail_msg("%s: %s", text, error.text);
}

static void test_copies_count(void **state)
{
	(void)state;
	do_statement("CREATE TABLE t(a)");
	do_statement("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 80) "
		     "INSERT INTO t SELECT randomblob(100000) FROM n");
	reopen();
	scope.memory_limit = 4 << 20;
	write_repeated("SELECT count(*) FROM t NOT INDEXED", "", 0,
		       ""); /* which is SQLite's, as what names a blob is */
	refused(-ENOMEM, "query_memory");
	write_repeated("DELETE FROM t WHERE a IS NOT NULL", "", 0, "");
	refused(-ENOMEM, "query_memory");
	scope.memory_limit = 64 << 20;
	do_statement("SELECT 1 / (count(*) = 80) FROM t NOT INDEXED");
	scope.memory_limit = 0;
	do_statement("UPDATE t SET a = 1");
	scope.memory_limit = 4 << 20;
	reopen();
	do_statement("SELECT count(*) FROM t NOT INDEXED");
}

/* However long the values are that a statement may make. */
static void test_copies_have_long_rows(void **state)
{
	(void)state;
	do_statement("CREATE TABLE t(k INTEGER UNIQUE, x TEXT)");
	do_statement("INSERT INTO t VALUES (1, hex(zeroblob(1500000))), (2, 'a')");
	reopen();
	scope.value_limit = 64 << 10;
	do_statement("SELECT 1 / (sum(k) = 3) FROM t NOT INDEXED");
	do_statement("UPDATE t SET k = 3 WHERE k = 2");
	do_statement("SELECT 1 / (max(k) = 3) FROM t NOT INDEXED");
	write_repeated("SELECT x FROM t NOT INDEXED", "", 0, "");
	refused(-ENOMEM, "query_value");
	write_repeated("UPDATE t SET k = 4 WHERE k = 1", "", 0, "");
	refused(-ENOMEM, "query_value");
	do_statement("DELETE FROM t WHERE k = 1");
	reopen();
	do_statement("SELECT 1 / (group_concat(x) = 'a') FROM t NOT INDEXED");
	scope.value_limit = 0;
}

/* The longest that a side table may have. */
static void test_rows_can_be_sorted(void **state)
{
	static const char *const orders[] = {
		"ORDER BY k",
		"ORDER BY x, k DESC",
		"WHERE k > 0 AND x <> 'b' ORDER BY x DESC",
		"GROUP BY x ORDER BY k",
	};

	(void)state;
	do_statement("CREATE TABLE t(k INTEGER, x TEXT)");
	do_statement("INSERT INTO t VALUES (1, hex(zeroblob(4194296))), (2, 'a'), "
		     "(3, hex(zeroblob(4194296)))");
	for (size_t i = 0; i < PFS_COUNT(orders); i++) {
		write_repeated("SELECT x, k FROM t NOT INDEXED ", "", 0, orders[i]);
		if (run_text())
			fail_msg("%s: %s", sql, error.text);
	}
	write_repeated("SELECT x FROM t NOT INDEXED ORDER BY x COLLATE NOCASE", "", 0, "");
	refused(-ENOMEM, "beside so many operations");
	write_repeated("SELECT x FROM t NOT INDEXED ORDER BY quote(x) || quote(x)", "", 0, "");
	refused(-ENOMEM, "beside so many operations");
}

static void write_doubling(unsigned n)
{
	open_text();
	(void)fputs("WITH a0 AS(SELECT 1 x)", out);
	for (unsigned i = 1; i <= n; i++)
		(void)fprintf(out, ",a%u AS(SELECT 1 FROM a%u,a%u y)", i, i - 1, i - 1);
	(void)fprintf(out, "SELECT*FROM a%u", n);
	(void)fclose(out);
}

static void test_preparing_is_bounded(void **state)
{
	(void)state;
	write_doubling(8);
	assert_int_equal(run_text(), 0);
	write_doubling(20);
	refused(-E2BIG, "again and again");
	scope.time_limit_ms = 20;
	refused(-ETIMEDOUT, "longer than it may");
	do_statement("SELECT 1");
}

/* ---- time ---- */

static void is_planned(const char *text, const char *step)
{
	struct pfs_query *query = begin(text);
	char *plan;

	assert_int_equal(pfs_query_plan(query, &plan), 0);
	if (!strstr(plan, step))
		fail_msg("%s: %s", text, plan);
	free(plan);
	pfs_query_finish(query);
}

static void test_patterns_go_by_indexes(void **state)
{
	(void)state;
	do_statement("CREATE TABLE t(a TEXT COLLATE NOCASE, b TEXT)");
	do_statement("CREATE INDEX ta ON t(a)");
	do_statement("CREATE INDEX tb ON t(b)");
	do_statement("INSERT INTO t VALUES ('abc', 'abc'), ('abd', 'abd'), ('b', 'b')");
	is_planned("SELECT b FROM t WHERE a LIKE 'ab%'", "SEARCH t USING INDEX ta (a>? AND a<?)");
	is_planned("SELECT a FROM t WHERE b GLOB 'ab*'", "SEARCH t USING INDEX tb (b>? AND b<?)");
	is_planned("SELECT a FROM t WHERE b GLOB 'ab*' AND a LIKE '%b%'", "SCAN t");
	is_planned("SELECT a FROM t WHERE a LIKE 'ab%' AND \"like\"(b, a)", "SCAN t");
	is_planned("SELECT a FROM t WHERE a LIKE 'ab%' ESCAPE 'x'", "SCAN t");
	is_planned("SELECT a FROM t WHERE a LIKE 'a_%'", "SCAN t");
	is_planned("SELECT a FROM t WHERE a LIKE 'ab%' AND like(b, a)", "SCAN t");
	is_planned("SELECT a FROM t WHERE a LIKE b", "SCAN t");
	do_statement("SELECT 1 / (count(*) = 2) FROM t WHERE a LIKE 'AB%'");
	do_statement("SELECT 1 / (count(*) = 2) FROM t WHERE b GLOB 'ab*'");
	do_statement("SELECT 1 / (count(*) = 1) FROM t WHERE b LIKE '%D'");
}

static void *stop_all(void *arg)
{
	const struct timespec while_it_runs = {.tv_nsec = 200000000};

	(void)arg;
	(void)nanosleep(&while_it_runs, NULL);
	pfs_queries_stop(queries);
	return NULL;
}

static void test_all_are_stopped(void **state)
{
	pthread_t thread;

	(void)state;
	write_repeated("SELECT count(*) FROM nodes a", ", nodes", 30, "");
	assert_int_equal(pthread_create(&thread, NULL, stop_all, NULL), 0);
	assert_int_equal(run_text(), -EINTR);
	assert_int_equal(pthread_join(thread, NULL), 0);
	write_repeated("SELECT 1", "", 0, "");
	assert_int_equal(run_text(), -EINTR);
}

static int end(void **state)
{
	free(sql);
	return tear_down(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_selects_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_depth_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_patterns_are_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_operations_shorten_values, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_operations_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_memory_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_text_of_rows_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_total_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_copies_count, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_copies_have_long_rows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rows_can_be_sorted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_preparing_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_patterns_go_by_indexes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_all_are_stopped, set_up, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
