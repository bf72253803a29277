/* SPDX-License-Identifier: MIT */
/* How long a statement goes on without looking at the clock: every function, sort and set operator
 * with long values.  With PFS_LONG=1 in the environment: with the longest that may be, of many
 * kinds, and exactly. What is bounded is the processor time that the statement's thread takes
 * between two looks, since the machine may have other things to do; the longest of all, and how
 * long that was by the clock, is printed. */
#include <time.h>

#include "base/thread.h"
#include "tests/unit/query_util.h"

#ifdef __SANITIZE_ADDRESS__
#define USUAL_MS 100000 /* it fills and remembers each block that is freed */
#else
#define USUAL_MS 1000
#endif
#define EXACT_MS 100
#define TOLD_MS	 60   /* in the long mode these are printed, too */
#define LIMIT_MS 2000 /* of each statement: it then ends, at a look */

/* Milliseconds of the thread's processor time, and of time. */
struct gap {
	double cpu, wall;
};

static bool is_long;
static struct gap looked, longest, longest_of_all;
static unsigned n_late;

static double read_ms(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static struct gap read_clocks(void)
{
	return (struct gap){read_ms(CLOCK_THREAD_CPUTIME_ID), read_ms(CLOCK_MONOTONIC)};
}

static bool look(void *arg)
{
	struct gap now = read_clocks();

	(void)arg;
	if (now.cpu - looked.cpu > longest.cpu)
		longest = (struct gap){now.cpu - looked.cpu, now.wall - looked.wall};
	looked = now;
	return false;
}

struct run {
	const char *sql;
	int code;
};

static void run(void *arg)
{
	struct run *run = arg;
	struct pfs_query *query;

	looked = read_clocks();
	longest = (struct gap){0};
	run->code = pfs_query_start(&query, queries, &scope, run->sql, strlen(run->sql), &error);
	while (!run->code && (run->code = pfs_query_next(query, &error)) == 1)
		run->code = 0;
	(void)look(NULL);
	pfs_query_finish(query);
	(void)look(NULL);
}

/* What the statement returns. */
static int measure(const char *sql)
{
	double most = is_long ? EXACT_MS : USUAL_MS;
	struct run of = {sql, 0};

	assert_int_equal(pfs_thread_call(run, &of), 0);
	if (longest.cpu > longest_of_all.cpu)
		longest_of_all = longest;
	if (longest.cpu > (is_long ? TOLD_MS : most))
		print_message("%.0f ms (%.0f by the clock): %.300s\n", longest.cpu, longest.wall,
			      sql);
	n_late += longest.cpu > most;
	return of.code;
}

/* One that runs to its end, or to the limit of its time. */
static void measure_whole(const char *sql)
{
	int code = measure(sql);

	if (code && code != -ETIMEDOUT)
		fail_msg("%s: %s", sql, error.text);
}

static void assert_in_time(const char *of)
{
	print_message("%s: %.0f ms at most (%.0f by the clock)\n", of, longest_of_all.cpu,
		      longest_of_all.wall);
	longest_of_all = (struct gap){0};
	assert_int_equal(n_late, 0);
}

/* ---- functions ---- */

#define LONG "replace(hex(zeroblob(2600000)), '0', 'a')"

/* Of each kind that some function takes long for: with a number in it, or none. */
static const struct {
	const char *text;
	unsigned n; /* 0: the text is all */
	const char *rest;
} kinds[] = {
	{"replace(hex(zeroblob(", 4190000, ")), '0', 'a')"},
	{"'b' || replace(hex(zeroblob(", 4000000, ")), '0', 'a')"},
	{"'[1' || replace(hex(zeroblob(", 2090000, ")), '0', ',1') || ']'"},
	{"(WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i LIMIT ", 620000,
	 ") SELECT '{' || group_concat('\"k' || i || '\":1') || '}' FROM i)"},
	{"replace(hex(zeroblob(2400)), '00', '%a') || 'b'", 0, ""},
	{"replace(hex(zeroblob(2400)), '00', '*a') || 'b'", 0, ""},
	{"replace(hex(zeroblob(", 2090000, ")), '0', '%s')"},
	{"replace(hex(zeroblob(", 4190000, ")), '0', '1')"},
	{"1", 0, ""},
	{"zeroblob(", 8380000, ")"},
	{"replace(hex(zeroblob(", 2090000, ")), '0', char(233))"},
	{"replace(hex(zeroblob(", 4190000, ")), '0', ' ')"},
	{"NULL", 0, ""},
};
#define FEW    5 /* kinds, of three arguments */
#define SCALES 4 /* of each kind, each a third of the one before: where a function may not have the longest */

/* Usually all are short: some take the product of their lengths. */
static void make_values(void)
{
	char number[16], insert[600];

	scope.time_limit_ms = 600000; /* what is measured has another limit */
	change("CREATE TABLE v(k INTEGER PRIMARY KEY, x)", 0);
	scope.value_limit = 64 << 20; /* what makes them is not what is measured */
	for (unsigned i = 0; i < PFS_COUNT(kinds); i++) {
		unsigned n = is_long ? kinds[i].n : kinds[i].n / 16;

		for (unsigned scale = 0; scale < SCALES; scale++, n /= 3) {
			(void)snprintf(number, sizeof(number), "%u", n);
			(void)snprintf(insert, sizeof(insert), "INSERT INTO v VALUES (%u, %s%s%s)",
				       i * SCALES + scale, kinds[i].text, kinds[i].n ? number : "",
				       kinds[i].rest);
			change(insert, 1);
		}
	}
	scope.value_limit = 0;
	scope.time_limit_ms = LIMIT_MS;
}

/* The longest values of these kinds that it may have. */
static void call(const char *name, const char *type, const unsigned *of, unsigned n)
{
	char sql[1024];

	for (unsigned scale = 0; scale < SCALES; scale++) {
		size_t at = (size_t)snprintf(sql, sizeof(sql), "SELECT typeof(\"%s\"(", name);

		for (unsigned i = 0; i < n; i++)
			at += (size_t)snprintf(sql + at, sizeof(sql) - at, "%sv%u.x", i ? ", " : "",
					       i);
		at += (size_t)snprintf(sql + at, sizeof(sql) - at, ")%s)",
				       *type == 'w' ? " OVER ()" : "");
		for (unsigned i = 0; i < n; i++)
			at += (size_t)snprintf(sql + at, sizeof(sql) - at, "%sv v%u",
					       i ? ", " : " FROM ", i);
		for (unsigned i = 0; i < n; i++)
			at += (size_t)snprintf(sql + at, sizeof(sql) - at, "%sv%u.k = %u",
					       i ? " AND " : " WHERE ", i, of[i] * SCALES + scale);
		if (measure(sql) != -ENOMEM)
			break;
	}
}

static void call_all(const char *name, const char *type, unsigned n, unsigned n_kinds)
{
	unsigned of[3], combinations = 1;

	for (unsigned i = 0; i < n; i++)
		combinations *= n_kinds;
	for (unsigned i = 0; i < combinations; i++) {
		for (unsigned j = 0, rest = i; j < n; j++, rest /= n_kinds)
			of[j] = rest % n_kinds;
		call(name, type, of, n);
	}
}

struct function {
	char name[64], type[4];
	int n;
};

static size_t list_functions(struct function *list, size_t room)
{
	struct pfs_query *query =
		begin("SELECT DISTINCT name, type, narg FROM pragma_function_list");
	struct pfs_sql_value value;
	size_t n = 0;

	while (pfs_query_next(query, &error) == 1 && n < room) {
		pfs_query_value(query, 0, &value);
		(void)snprintf(list[n].name, sizeof(list[n].name), "%.*s", (int)value.size,
			       value.bytes);
		pfs_query_value(query, 1, &value);
		(void)snprintf(list[n].type, sizeof(list[n].type), "%.*s", (int)value.size,
			       value.bytes);
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
	make_values();
	n_late = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned most = list[i].n < 0 ? 2 : PFS_MIN((unsigned)list[i].n, 3);
		static const unsigned usual[][3] = {{0, 1, 0}, {2, 2, 2}, {3, 3, 3}};

		if (is_long)
			call_all(list[i].name, list[i].type, most,
				 most == 3 ? FEW : (unsigned)PFS_COUNT(kinds));
		for (size_t j = 0; !is_long && j < PFS_COUNT(usual); j++)
			call(list[i].name, list[i].type, usual[j], most);
	}
	assert_in_time("functions");
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
		"SELECT " LONG " GLOB replace(hex(zeroblob(1600)), '00', '*[a-z]') || 'b'",
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
		measure_whole(statements[i]);
	assert_in_time("superlinear");
}

/* ---- one row ---- */

/* So many operations in a row, over values as long as may be then. */
static void measure_row(const char *operation, unsigned n)
{
	char sql[65536];

	for (unsigned size = 16000000 / (is_long ? 1 : 8); size > 4000; size -= size / 4) {
		size_t at = (size_t)snprintf(sql, sizeof(sql), "SELECT 1");

		for (unsigned i = 0; i < n; i++)
			at += (size_t)snprintf(sql + at, sizeof(sql) - at, ", %s", operation);
		(void)snprintf(
			sql + at, sizeof(sql) - at,
			" FROM (SELECT hex(zeroblob(%u)) AS x, hex(zeroblob(%u)) AS y LIMIT 1)",
			size / 2, size / 2);
		if (measure(sql) != -ENOMEM)
			return;
	}
	fail_msg("%s", error.text);
}

static void test_rows(void **state)
{
	static const char *const operations[] = {
		"x COLLATE NOCASE = y",
		"x COLLATE RTRIM = y",
		"x = y",
		"x + y",
		"max(x, y, x)",
		"strftime(x)",
		"NOT x",
		"CAST(x AS INTEGER)",
		"length(x)",
		"quote(x)",
		"json_array(x)",
		"hex(x)",
		"x LIKE '%1'",
		"instr(x, y || 'q')",
		"trim(x, y)",
		"x || y",
	};
	static const unsigned numbers[] = {1, 3, 8, 60, 1500};

	(void)state;
	n_late = 0;
	for (size_t i = 0; i < PFS_COUNT(operations); i++) {
		for (size_t j = 0; j < PFS_COUNT(numbers); j++)
			measure_row(operations[i], numbers[j]);
	}
	assert_in_time("rows");
}

/* ---- sorts and set operators ---- */

#define ROWS(n) "WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i LIMIT " #n ") "

/* As long as what is sorted may be; the second one, if only bytes are compared. */
#define SORTED "replace(hex(zeroblob(1200000)), '0', 'a')"
#define ROW    "zeroblob(8380000)"

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
		ROWS(40) "SELECT " SORTED " || i AS x FROM i ORDER BY x DESC",
		ROWS(40) "SELECT " SORTED " || i AS x FROM i ORDER BY x COLLATE NOCASE",
		ROWS(18) "SELECT " ROW " || i AS x FROM i ORDER BY x DESC",
		ROWS(40) "SELECT DISTINCT " SORTED " || i FROM i",
		ROWS(40) "SELECT DISTINCT x COLLATE NOCASE FROM (SELECT " SORTED
			 " || i AS x FROM i)",
		ROWS(20) "SELECT " SORTED " || i FROM i UNION SELECT " SORTED " || -i FROM i",
		ROWS(40) "SELECT last_value(x) OVER () FROM (SELECT " SORTED " || i AS x FROM i)",
		ROWS(2000) "SELECT sum(x = y) FROM i, (SELECT " SORTED " AS x, " SORTED " AS y)",
		ROWS(2000) "SELECT sum(length(x)) FROM i, (SELECT " LONG " AS x LIMIT 1)",
		"SELECT count(*) FROM nodes a, nodes b, nodes c, nodes d, nodes e, nodes f, nodes g, nodes h",
	};

	(void)state;
	n_late = 0;
	scope.memory_limit = 512 << 20;
	for (size_t i = 0; i < PFS_COUNT(statements); i++)
		measure_whole(statements[i]);
	assert_in_time("sorts");
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

/* Statements in the command line are measured, and nothing else. */
static int measure_given(char **statements)
{
	(void)set_up_looks(NULL);
	for (; *statements; statements++) {
		int code = measure(*statements);

		print_message("%.0f ms (%.0f by the clock), %d: %.300s\n", longest.cpu,
			      longest.wall, code, *statements);
	}
	return tear_down(NULL);
}

int main(int argc, char **argv)
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

	if (argc > 1)
		return measure_given(argv + 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
