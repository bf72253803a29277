/* SPDX-License-Identifier: MIT */
/* How long a statement goes on without looking at the clock: every function, sort and set operator with
 * long values.  With PFS_LONG=1 in the environment: with the longest that may be, of many kinds, and exactly,
 * by the time that the thread has been given. */
#include <time.h>

#include "base/thread.h"
#include "tests/unit/query_util.h"

#ifdef __SANITIZE_ADDRESS__
#define USUAL_MS 100000 /* it fills and remembers each block that is freed */
#else
#define USUAL_MS 3000 /* on a machine that does other things, too */
#endif
#define EXACT_MS 100
#define LIMIT_MS 2000 /* of each statement: it then ends, at a look */

static bool is_long;
static double looked, longest; /* ms */

static double now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(is_long ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static bool look(void *arg)
{
	double now = now_ms();

	(void)arg;
	longest = PFS_MAX(longest, now - looked);
	looked = now;
	return false;
}

static void run(void *arg)
{
	const char *sql = arg;
	struct pfs_query *query;
	int code;

	looked = now_ms();
	longest = 0;
	code = pfs_query_start(&query, queries, &scope, sql, strlen(sql), &error);
	while (!code && pfs_query_next(query, &error) == 1)
		;
	(void)look(NULL);
	pfs_query_finish(query);
	(void)look(NULL);
}

static unsigned n_late;

static void measure(const char *sql)
{
	double most = is_long ? EXACT_MS : USUAL_MS;

	assert_int_equal(pfs_thread_call(run, (void *)sql), 0);
	if (longest > most) {
		print_message("%.0f ms: %.200s\n", longest, sql);
		n_late++;
	}
}

/* ---- functions ---- */

#define LONG "substr(replace(hex(zeroblob(8388000)), '0', 'a'), 1, 16776000)"

/* Of each kind that some function takes long for. */
static const char *const values[] = {
	LONG,
	"replace(hex(zeroblob(4000000)), '0', 'a') || 'b'",
	"'[' || replace(hex(zeroblob(3000000)), '0', '1,') || '1]'",
	"(SELECT '{' || group_concat('\"k' || i || '\":1') || '}' FROM i)",
	"replace(hex(zeroblob(2400)), '00', '%a') || 'b'",
	"replace(hex(zeroblob(2400)), '00', '*a') || 'b'",
	"replace(hex(zeroblob(4000000)), '0', '%s')",
	"replace(hex(zeroblob(8000000)), '0', '1')",
	"1",
	"zeroblob(16776000)",
	"replace(hex(zeroblob(4000000)), '0', char(233))",
	"replace(hex(zeroblob(8000000)), '0', ' ')",
	"NULL",
};
/* Those that take long already if the time is the product of their lengths. */
static const char *const shorter[] = {
	"replace(hex(zeroblob(500000)), '0', 'a')",
	"replace(hex(zeroblob(250000)), '0', 'a') || 'b'",
	"(SELECT '{' || group_concat('\"k' || i || '\":1') || '}' FROM i)",
};
#define FEW 5 /* values, of three arguments */

static void call(const char *name, const char *type, const size_t *of, unsigned n)
{
	const char *const *list = is_long ? values : shorter;
	char sql[4096];
	size_t at = (size_t)snprintf(sql, sizeof(sql),
				     "WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i "
				     "LIMIT %d) SELECT typeof(\"%s\"(",
				     is_long ? 200000 : 30000, name);

	for (unsigned i = 0; i < n; i++)
		at += (size_t)snprintf(sql + at, sizeof(sql) - at, "%s%s", i ? ", " : "", list[of[i]]);
	(void)snprintf(sql + at, sizeof(sql) - at, ")%s)", *type == 'w' ? " OVER ()" : "");
	measure(sql);
}

static void call_all(const char *name, const char *type, unsigned n, size_t n_values)
{
	size_t of[3], combinations = 1;

	for (unsigned i = 0; i < n; i++)
		combinations *= n_values;
	for (size_t i = 0; i < combinations; i++) {
		for (size_t j = 0, rest = i; j < n; j++, rest /= n_values)
			of[j] = rest % n_values;
		call(name, type, of, n);
	}
}

struct function {
	char name[64], type[4];
	int n;
};

static size_t list_functions(struct function *list, size_t room)
{
	struct pfs_query *query = begin("SELECT DISTINCT name, type, narg FROM pragma_function_list");
	struct pfs_query_value value;
	size_t n = 0;

	while (pfs_query_next(query, &error) == 1 && n < room) {
		pfs_query_value(query, 0, &value);
		(void)snprintf(list[n].name, sizeof(list[n].name), "%.*s", (int)value.size, value.bytes);
		pfs_query_value(query, 1, &value);
		(void)snprintf(list[n].type, sizeof(list[n].type), "%.*s", (int)value.size, value.bytes);
		pfs_query_value(query, 2, &value);
		list[n++].n = (int)value.integer;
	}
	pfs_query_finish(query);
	return n;
}

static void test_functions(void **state)
{
	static struct function list[512];
	size_t n = list_functions(list, PFS_COUNT(list));

	(void)state;
	assert_true(n > 60);
	n_late = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned most = list[i].n < 0 ? 2 : PFS_MIN((unsigned)list[i].n, 3);
		static const size_t usual[][3] = {{0, 1, 0}, {2, 2, 2}};

		if (is_long)
			call_all(list[i].name, list[i].type, most, most == 3 ? FEW : PFS_COUNT(values));
		for (size_t j = 0; !is_long && j < PFS_COUNT(usual); j++)
			call(list[i].name, list[i].type, usual[j], most);
	}
	assert_int_equal(n_late, 0);
}

/* ---- what they were that took for ever ---- */

static void test_superlinear(void **state)
{
	static const char *const statements[] = {
		"SELECT instr(hex(zeroblob(7000000)), hex(zeroblob(3000000)) || 'b')",
		"SELECT replace(hex(zeroblob(7000000)), hex(zeroblob(3000000)) || 'b', 'x')",
		"SELECT replace(hex(zeroblob(8000000)), '0', '')",
		"SELECT " LONG " LIKE '%' || substr(" LONG ", 1, 4000) || 'b'",
		"SELECT " LONG " LIKE replace(hex(zeroblob(2400)), '00', '%a') || 'b'",
		"SELECT " LONG " GLOB '*' || substr(" LONG ", 1, 4000) || 'b'",
		"SELECT " LONG " GLOB replace(hex(zeroblob(2400)), '00', '*[a-z]') || 'b'",
		"SELECT like('%' || substr(" LONG ", 1, 4000) || 'b', " LONG ", '!')",
		"SELECT trim(hex(zeroblob(20000)), replace(hex(zeroblob(10000)), '0', char(233)) || '0')",
		"SELECT rtrim(replace(hex(zeroblob(1000000)), '0', char(233)), "
		"replace(hex(zeroblob(1000000)), '0', char(234)) || char(233))",
		"SELECT ltrim(" LONG ", " LONG ")",
		"SELECT format(replace(hex(zeroblob(4000000)), '0', '%s'), 1)",
		"SELECT format(replace(hex(zeroblob(600000)), '0', '%!9c'), 1)",
		"SELECT printf('%.16000000c', 'x')",
	};

	(void)state;
	n_late = 0;
	for (size_t i = 0; i < PFS_COUNT(statements); i++)
		measure(statements[i]);
	assert_int_equal(n_late, 0);
}

/* ---- one row ---- */

/* As many operations in a row as there may be, over values as long as may be then. */
static void test_rows(void **state)
{
	static const char *const operations[] = {
		"x COLLATE NOCASE = y", "x COLLATE RTRIM = y", "x = y", "x + y", "max(x, y, x)",
		"strftime(x)", "NOT x", "CAST(x AS INTEGER)", "length(x)", "quote(x)",
	};
	static const unsigned numbers[] = {8, 60, 1500};
	char sql[65536];

	(void)state;
	n_late = 0;
	for (size_t i = 0; i < PFS_COUNT(operations); i++) {
		for (size_t j = 0; j < PFS_COUNT(numbers); j++) {
			size_t at = (size_t)snprintf(sql, sizeof(sql), "SELECT 1");
			/* about what they leave to each: meta/program.c */
			unsigned size = 16000000 / PFS_MAX(numbers[j] / (is_long ? 2 : 1), 8) * 8;

			for (unsigned n = numbers[j]; n > 0; n--)
				at += (size_t)snprintf(sql + at, sizeof(sql) - at, ", %s", operations[i]);
			(void)snprintf(sql + at, sizeof(sql) - at,
				       " FROM (SELECT replace(hex(zeroblob(%u)), '0', '%%') || '' AS x, "
				       "replace(hex(zeroblob(%u)), '0', '%%') || '' AS y LIMIT 1)",
				       size / 2, size / 2);
			measure(sql);
		}
	}
	assert_int_equal(n_late, 0);
}

/* ---- sorts and set operators ---- */

#define ROWS(n) "WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i LIMIT " #n ") "

static void test_sorts(void **state)
{
	static const char *const statements[] = {
		ROWS(1000000) "SELECT i FROM i ORDER BY random()",
		ROWS(1000000) "SELECT i FROM i ORDER BY i % 2, -i",
		ROWS(300000) "SELECT hex(zeroblob(20)) || i AS x FROM i ORDER BY x DESC",
		ROWS(300000) "SELECT DISTINCT random() % 100000 FROM i",
		ROWS(300000) "SELECT random() % 100000, count(*) FROM i GROUP BY 1",
		ROWS(300000) "SELECT i FROM i UNION SELECT -i FROM i",
		ROWS(300000) "SELECT i FROM i INTERSECT SELECT i + 5 FROM i",
		ROWS(300000) "SELECT i FROM i EXCEPT SELECT -i FROM i",
		ROWS(300000) "SELECT i FROM i UNION ALL SELECT -i FROM i ORDER BY 1",
		ROWS(100000) "SELECT i, row_number() OVER (ORDER BY random()) FROM i",
		ROWS(100000) "SELECT sum(i) OVER (ORDER BY random() ROWS 5 PRECEDING) FROM i",
		ROWS(100000) "SELECT count(DISTINCT random()) FROM i",
		ROWS(30) "SELECT " LONG " || i AS x FROM i ORDER BY x DESC",
		ROWS(20) "SELECT DISTINCT substr(" LONG ", i) FROM i",
		ROWS(20) "SELECT substr(" LONG ", i) FROM i UNION SELECT substr(" LONG ", i) FROM i",
		ROWS(2000) "SELECT sum(x = y) FROM i, (SELECT " LONG " AS x, " LONG " AS y)",
		ROWS(2000) "SELECT sum(length(x)) FROM i, (SELECT " LONG " AS x LIMIT 1)",
		"SELECT count(*) FROM nodes a, nodes b, nodes c, nodes d, nodes e, nodes f, nodes g, nodes h",
	};

	(void)state;
	n_late = 0;
	scope.memory_limit = 512 << 20;
	for (size_t i = 0; i < PFS_COUNT(statements); i++)
		measure(statements[i]);
	assert_int_equal(n_late, 0);
}

static int set_up_looks(void **state)
{
	const char *word = getenv("PFS_LONG");

	is_long = word && *word == '1';
	(void)set_up(state);
	scope.gone = look;
	scope.time_limit_ms = LIMIT_MS;
	return 0;
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
	return 77; /* one thread, and all that it looks at is time */
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_superlinear, set_up_looks, tear_down),
		cmocka_unit_test_setup_teardown(test_rows, set_up_looks, tear_down),
		cmocka_unit_test_setup_teardown(test_sorts, set_up_looks, tear_down),
		cmocka_unit_test_setup_teardown(test_functions, set_up_looks, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
