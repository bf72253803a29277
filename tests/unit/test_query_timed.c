/* SPDX-License-Identifier: MIT */
/* Statements that compare with times have the same rows, whichever way a time is written. */
#include "tests/unit/query_util.h"

#include <errno.h>
#include <strings.h>

#include "tests/ref/random.h"

#define FORMS	   500
#define FORMS_LONG 20000

static const char *const frames[][2] = {
	/* what ? is to be in, and what may be the time there, by commas */
	{"SELECT path FROM nodes WHERE ?", "mtime"},
	{"SELECT path FROM nodes WHERE ?", "\"mtime\""},
	{"SELECT path FROM nodes WHERE ?", "[MTIME]"},
	{"SELECT path FROM nodes WHERE ?", "nodes.mtime"},
	{"SELECT path FROM nodes WHERE ?", "main.nodes.`mtime`"},
	{"SELECT path FROM nodes n WHERE ? AND size >= 0 ORDER BY ino", "n.mtime"},
	{"SELECT path, mtime AS x FROM nodes WHERE NOT (?)", "x"},
	{"SELECT ? FROM nodes ORDER BY ino", "mtime"},
	{"SELECT path FROM nodes ORDER BY ?, ino", "mtime"},
	{"SELECT type, count(*) FROM nodes GROUP BY type, ?", "mtime"},
	{"SELECT type, count(*) FROM nodes GROUP BY type HAVING ?", "max(mtime)"},
	{"SELECT type, min(mtime) m FROM nodes GROUP BY type HAVING ?", "m"},
	{"SELECT sum(ino) FILTER (WHERE ?) FROM nodes", "mtime"},
	{"SELECT sum(ino) FROM nodes WHERE CASE WHEN ? THEN 1 ELSE 0 END", "mtime"},
	{"SELECT a.path, b.path FROM nodes a JOIN nodes b ON b.parent = a.ino AND ?", "b.mtime"},
	{"SELECT a.path, b.path FROM nodes a LEFT JOIN nodes b ON b.parent = a.ino AND ?",
	 "b.mtime"},
	{"SELECT path FROM nodes JOIN snap USING (path) WHERE ?", "nodes.mtime"},
	{"SELECT path FROM nodes n WHERE EXISTS (SELECT 1 FROM snap WHERE snap.path = n.path AND ?)",
	 "n.mtime"},
	{"SELECT path FROM nodes n WHERE ino IN (SELECT ino FROM nodes WHERE ?)", "n.mtime"},
	{"WITH t AS (SELECT * FROM nodes) SELECT path FROM t WHERE ?", "mtime"},
	{"WITH t AS MATERIALIZED (SELECT * FROM nodes) SELECT path FROM t WHERE ?", "t.mtime"},
	{"WITH t(p, x) AS (SELECT path, mtime FROM nodes), u AS (SELECT * FROM t) SELECT p FROM u WHERE ?",
	 "x"},
	{"SELECT p FROM (SELECT path p, mtime x FROM nodes) WHERE ?", "x"},
	{"SELECT p FROM (SELECT path p, mtime x FROM nodes UNION ALL SELECT path, ctime FROM nodes) WHERE ?",
	 "x"},
	{"SELECT p FROM (SELECT path p, first_value(mtime) OVER (ORDER BY ino) x FROM nodes) WHERE ?",
	 "x"},
	{"SELECT path FROM nodes n WHERE ?", "(SELECT z.mtime FROM nodes z WHERE z.ino = n.ino)"},
	{"SELECT count(*) FROM (SELECT 1 FROM nodes WHERE ? UNION SELECT 2)", "+mtime"},
	{"SELECT path FROM nodes WHERE ?", "coalesce(mtime, 0)"},
	{"SELECT path FROM nodes WHERE ?", "mtime + 0"},
	{"SELECT path FROM nodes WHERE ?", "iif(size < 0, ctime, mtime)"},
};

/* @: the time, $ and %: what it is compared with. */
static const char *const conditions[] = {
	"@ < $",
	"@ <= $",
	"@ = $",
	"@ == $",
	"@ <> $",
	"@ != $",
	"@ > $",
	"@ >= $",
	"@ IS $",
	"@ IS NOT $",
	"@ IS DISTINCT FROM $",
	"$ < @",
	"$ = @",
	"$ >= @",
	"@ BETWEEN $ AND %",
	"@ NOT BETWEEN $ AND %",
	"$ BETWEEN @ AND %",
	"@ IN ($, %)",
	"@ NOT IN ($)",
	"$ IN (%, @)",
	"@ IN (SELECT $)",
	"@ IN (SELECT $ UNION SELECT %)",
	"@ IN (VALUES ($), (%))",
	"@ NOT IN (WITH v(w) AS (SELECT $) SELECT w FROM v)",
	"@ < (SELECT $)",
	"(@, 5) < ($, 5)",
	"(5, @) = (5, $)",
	"(@, 5) IN (($, 5), (%, 5))",
	"CASE @ WHEN $ THEN 1 WHEN % THEN 0 END",
	"CASE $ WHEN @ THEN 1 ELSE 0 END",
	"CASE WHEN @ < $ THEN 1 ELSE 0 END",
	"nullif(@, $) IS NULL",
	"max(@, $) > %",
	"@ < $ AND @ < % OR NOT @ > %",
	"(@ < $) = (@ < %)",
	"(@) > ($)",
	"@ COLLATE NOCASE > $",
};

/* $ and %, as numbers and otherwise. */
static const char *const times[][2] = {
	{"1000000000000000000", "1000000001000000000"},
	{"'2001-09-09T01:46:40Z'", "'2001-09-09T01:46:41Z'"},
	{"'2001-09-09 01:46:40'", "'2001-09-09 03:46:41+02:00'"},
	{"' 2001-09-09 01:46:40 '", "'1000000001000000000'"},
	{"datetime(1000000000, 'unixepoch')",
	 "datetime('2001-09-09', '+106 minutes', '+41 seconds')"},
	{"seconds(1000000000)", "seconds('1000000001')"},
	{"(SELECT '2001-09-09T01:46:40Z')", "(SELECT t FROM times WHERE n = 2)"},
	{"coalesce(NULL, '2001-09-09T01:46:40Z')", "'2001-09-09' || 'T01:46:41'"},
};

static void write_form(char *sql, size_t size, const char *const *frame, const char *condition,
		       const char *const *values)
{
	FILE *out = fmemopen(sql, size, "w");

	for (const char *f = frame[0]; *f; f++) {
		if (*f != '?') {
			(void)fputc(*f, out);
			continue;
		}
		for (const char *c = condition; *c; c++) {
			if (*c == '@')
				(void)fputs(frame[1], out);
			else if (*c == '$')
				(void)fputs(values[0], out);
			else if (*c == '%')
				(void)fputs(values[1], out);
			else
				(void)fputc(*c, out);
		}
	}
	(void)fclose(out);
}

/* The rows, or the error; 0 or -errno. */
static int rows_of(char *text, size_t size, const char *sql)
{
	struct pfs_query *query;
	int got;

	*text = 0;
	got = pfs_query_start(&query, queries, &scope, sql, strlen(sql), &error);
	while (!got && (got = pfs_query_next(query, &error)) == 1) {
		for (size_t i = 0; i < pfs_query_columns(query); i++) {
			append_value(text, size, query, i);
			(void)strncat(text, " ", size - strlen(text) - 1);
		}
		(void)strncat(text, ",", size - strlen(text) - 1);
		got = 0;
	}
	pfs_query_finish(query);
	if (got)
		(void)snprintf(text, size, "%s", error.text);
	return got;
}

static void run(const char *sql)
{
	struct pfs_query *query = begin(sql);

	pfs_query_finish(query);
}

static void fill(void)
{
	run("UPDATE nodes SET mtime = 1000000000000000000 + (ino % 5 - 2) * 1000000000");
	run("CREATE TABLE times (n INTEGER, t TEXT)");
	run("INSERT INTO times VALUES (1, '2001-09-09T01:46:40Z'), (2, '2001-09-09 01:46:41')");
	run("CREATE TABLE snap AS SELECT path, datetime(mtime / 1000000000, 'unixepoch') AS mtime, "
	    "datetime(mtime / 1000000000, 'unixepoch') AS m FROM nodes");
}

/* Rows are the same; with what is no time, an error. */
static void check_form(const char *const *frame, const char *condition, const char *const *values)
{
	static const char *const wrong[][2] = {{"'lastyear'", "'soon'"},
					       {"1000000000", "-1000000001"}};
	char sql[1024], expected[4096], got[4096];
	bool strict = !strchr(frame[1], '+') || *frame[1] == '+';

	write_form(sql, sizeof(sql), frame, condition, times[0]);
	if (rows_of(expected, sizeof(expected), sql))
		fail_msg("%s: %s", sql, expected);
	write_form(sql, sizeof(sql), frame, condition, values);
	if (rows_of(got, sizeof(got), sql) || strcmp(got, expected) != 0)
		fail_msg("%s:\n%s, not\n%s", sql, got, expected);
	write_form(sql, sizeof(sql), frame, condition, wrong[0]);
	if (rows_of(got, sizeof(got), sql) != -EINVAL ||
	    !strstr(got, "is no time; write one like '2024-01-31'"))
		fail_msg("%s: %s", sql, got);
	write_form(sql, sizeof(sql), frame, condition, wrong[1]);
	if (strict &&
	    (rows_of(got, sizeof(got), sql) != -EINVAL ||
	     !strstr(got, "seconds? times here are nanoseconds: write seconds(x) or a date")))
		fail_msg("%s: %s", sql, got);
}

static void test_forms(void **state)
{
	const char *text = getenv("PFS_TEST_SEED"), *is_long = getenv("PFS_LONG");
	uint64_t seed = text ? strtoull(text, NULL, 10) : 20261122;
	unsigned n = is_long && strcmp(is_long, "0") != 0 ? FORMS_LONG : FORMS;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	fill();
	for (size_t i = 0; i < n; i++) { /* each frame and each condition at least once */
		size_t frame = i < PFS_COUNT(frames) ? i : random_below(&seed, PFS_COUNT(frames));
		size_t condition =
			i < PFS_COUNT(conditions) ? i : random_below(&seed, PFS_COUNT(conditions));

		check_form(frames[frame], conditions[condition],
			   times[1 + random_below(&seed, PFS_COUNT(times) - 1)]);
	}
}

/* The same names in another table mean nothing. */
static void test_other_tables(void **state)
{
	static const char *const pairs[][2] = {
		{"SELECT path FROM snap WHERE ?", "mtime"},
		{"SELECT path FROM nodes JOIN snap USING (path) WHERE ?", "snap.mtime"},
		{"SELECT path FROM nodes n WHERE EXISTS (SELECT 1 FROM snap WHERE snap.path = n.path AND ?)",
		 "mtime"},
		{"WITH nodes AS (SELECT * FROM snap) SELECT path FROM nodes WHERE ?", "mtime"},
		{"SELECT path FROM (SELECT path, mtime FROM snap) WHERE ?", "mtime"},
	};
	char sql[1024], got[4096], expected[4096];

	(void)state;
	fill();
	for (size_t i = 0; i < PFS_COUNT(pairs); i++) {
		for (size_t c = 0; c < PFS_COUNT(conditions); c++) {
			const char *const other[] = {pairs[i][0], i == 1 ? "snap.m" : "m"};
			const char *const inner[] = {
				"SELECT path FROM (SELECT path, m FROM snap) WHERE ?", "m"};

			write_form(sql, sizeof(sql), pairs[i], conditions[c], times[2]);
			assert_int_equal(rows_of(got, sizeof(got), sql), 0);
			write_form(sql, sizeof(sql), i == 4 ? inner : other, conditions[c],
				   times[2]);
			assert_int_equal(rows_of(expected, sizeof(expected), sql), 0);
			assert_string_equal(got, expected);
		}
	}
}

/* Those that people type first. */
static void test_typed(void **state)
{
	static const struct {
		const char *where, *rows;
	} typed[] = {
		{"mtime < datetime('now', '-1 year')", "1 "},
		{"mtime > datetime('now', '-1 year')", "5 "},
		{"mtime < '1 year ago'", "1 "},
		{"mtime > 'yesterday'", "5 "},
		{"mtime > 'today' OR mtime <= 'today'", "6 "},
		{"mtime > '-30 days'", "5 "},
		{"mtime > seconds(unixepoch('now') - 86400*30)", "5 "},
		{"mtime BETWEEN '-2 days' AND 'now'", "5 "},
		{"mtime BETWEEN '400 days ago' AND '-1 month'", "1 "},
	};
	char sql[256], got[512];

	(void)state;
	change("UPDATE nodes SET mtime = '-399 days' WHERE name = 'd.c' AND mtime > 'yesterday'",
	       1);
	change("UPDATE nodes SET atime = mtime WHERE mtime < datetime('now', '-1 year')", 1);
	change("DELETE FROM nodes WHERE mtime < '2 years ago'", 0);
	for (size_t i = 0; i < PFS_COUNT(typed); i++) {
		(void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM nodes WHERE %s",
			       typed[i].where);
		assert_int_equal(rows_of(got, sizeof(got), sql), 0);
		if (strncmp(got, typed[i].rows, strlen(typed[i].rows)) != 0)
			fail_msg("%s: %s", sql, got);
	}
	assert_int_equal(rows_of(got, sizeof(got),
				 "SELECT * FROM nodes WHERE mtime > unixepoch('now') - 86400*30"),
			 -EINVAL);
	assert_non_null(
		strstr(got, "seconds? times here are nanoseconds: write seconds(x) or a date"));
	assert_int_equal(rows_of(got, sizeof(got),
				 "SELECT * FROM nodes JOIN (SELECT 1 AS mtime) USING (mtime)"),
			 -EINVAL);
	assert_non_null(strstr(got, "a join by the name mtime"));
	assert_int_equal(rows_of(got, sizeof(got), "SELECT mtime < nowhere FROM nodes"), -EINVAL);
	assert_non_null(strstr(got, "no such column: nowhere")); /* SQLite's word comes first */
}

/* A range of times is the image's to find, computed or not. */
static void test_pushed(void **state)
{
	static const char *const wheres[] = {
		"mtime > '1 year ago'", "mtime > datetime('now', '-1 year')",
		"mtime BETWEEN seconds(5) AND date('now')", "mtime = (SELECT max(t) FROM times)"};
	char sql[256], got[4096];

	(void)state;
	fill();
	scope.explains = true;
	for (size_t i = 0; i < PFS_COUNT(wheres); i++) {
		struct pfs_query *query;
		int got_row;
		char *plan;

		(void)snprintf(sql, sizeof(sql), "SELECT path FROM nodes WHERE %s", wheres[i]);
		query = begin(sql);
		while ((got_row = pfs_query_next(query, &error)) == 1)
			;
		if (got_row)
			fail_msg("%s: %s", sql, error.text);
		assert_int_equal(pfs_query_plan(query, &plan), 0);
		(void)snprintf(got, sizeof(got), "%s", plan);
		free(plan);
		pfs_query_finish(query);
		if (!strstr(got, "mtime >") && !strstr(got, "mtime =") &&
		    !strstr(got, "mtime BETWEEN"))
			fail_msg("%s: %s", sql, got);
	}
	scope.explains = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_forms, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_tables, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_typed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pushed, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
