/* SPDX-License-Identifier: MIT */
/* What is read as a time. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "fs/query/times/times.h"

#define DAY INT64_C(86400000000000)

static void reads(const char *text, int64_t expected)
{
	int64_t value = -1;

	assert_true(pfs_time_parse(&value, text, strlen(text)));
	assert_int_equal(value, expected);
}

static void test_parse(void **state)
{
	static const char *const wrong[] = {
		"",	      "2024",		   "2024-",	       "2024-13",
		"2024-00-01", "2024-02-30",	   "2023-02-29",       "2024-01-01T",
		"1700000000", "2024-01-01T24:00",  "2024-01-01T10",    "2024-01-01T10:61",
		"2024-1-1",   "2024-01-01x",	   "2024-01-01T10:00x", "2024-01-01T10:00:00.",
		"24-01-01",   "2024-01-01T10:00+", "2262-04-12",       "1677-09-21",
	};

	(void)state;
	reads("1970-01-01", 0);
	reads("1970-01", 0);
	reads("1970-01-02", DAY);
	reads("1969-12-31", -DAY);
	reads("2000-02-29", 11016 * DAY);
	reads("2024-01-31T00:00:00Z", 19753 * DAY);
	reads("1970-01-01 01:02", INT64_C(3720000000000));
	reads("1970-01-01T00:00:01.5", 1500000000);
	reads("1970-01-01T00:00:00,123456789987Z", 123456789);
	reads("1970-01-01T01:00+01:00", 0);
	reads("1970-01-01T01:00:00+0130", INT64_C(-1800000000000));
	reads("1970-01-01T00:00-02", INT64_C(7200000000000));
	for (size_t i = 0; i < PFS_COUNT(wrong); i++) {
		int64_t value;

		if (pfs_time_parse(&value, wrong[i], strlen(wrong[i])))
			fail_msg("'%s' is no time", wrong[i]);
	}
}

#define NOW (19789 * DAY + 3723000000456) /* 2024-03-07T01:02:03 and a little */
#define NOON(day) ((day) * DAY + 3723000000456)

static void sees(const char *text, int64_t expected)
{
	int64_t value = -1;

	if (!pfs_time_read(&value, text, strlen(text), NOW))
		fail_msg("'%s' is not understood", text);
	if (value != expected)
		fail_msg("'%s' is %lld, not %lld", text, (long long)value, (long long)expected);
}

static void test_relative(void **state)
{
	static const char *const wrong[] = {"",
					    "lastyear",
					    "last year",
					    "30 days",
					    "ago",
					    "1 ago",
					    "day ago",
					    "-30 days ago",
					    "1 year -2 days",
					    "+1 year 2 days",
					    "-1 fortnite",
					    "--1 day",
					    "-1",
					    "1 dayago x",
					    "yesterdays",
					    "today ago",
					    "1 day ago now",
					    "1.5 hours ago",
					    "-1 day,",
					    "1e3 days ago",
					    "- days",
					    "-1234567890 s",
					    "-9999 years",
					    "+9000 years",
					    "2024",
					    "-999999999 d",
					    "'today'",
					    "-30\tday\vs",
					    "1 year 2 months"};

	(void)state;
	sees("now", NOW);
	sees("today", 19789 * DAY);
	sees("Yesterday", 19788 * DAY);
	sees(" TOMORROW ", 19790 * DAY);
	sees("2024-03-07", 19789 * DAY);
	sees("2024-03-07 01:02:03 ", 19789 * DAY + 3723 * INT64_C(1000000000));
	sees("-30 days", NOW - 30 * DAY);
	sees("- 30days", NOW - 30 * DAY);
	sees("+1 week", NOW + 7 * DAY);
	sees("1 day ago", NOW - DAY);
	sees("a week ago", NOW - 7 * DAY);
	sees("an hour ago", NOW - DAY / 24);
	sees("one second ago", NOW - 1000000000);
	sees("2 hours 5 min ago", NOW - INT64_C(7500000000000));
	sees("-1 day -2 h", NOW - DAY - DAY / 12);
	sees("+1 day -2 hours", NOW + DAY - DAY / 12);
	sees("1 year ago", NOON(19789 - 366));
	sees("12 months ago", NOON(19789 - 366));
	sees("-1 y", NOON(19789 - 366));
	sees("1 month ago", NOON(19789 - 29)); /* from March to February */
	sees("-7 days -1 month", NOON(19789 - 29 - 7));
	sees("-2 months -1 year", NOON(19789 - 366 - 59));
	sees("54 years 2 months 6 days ago", NOON(0));
	for (size_t i = 0; i < PFS_COUNT(wrong); i++) {
		int64_t value;

		if (pfs_time_read(&value, wrong[i], strlen(wrong[i]), NOW))
			fail_msg("'%s' is no time", wrong[i]);
	}
}

/* 1: an integer, 2: a real, -1: refused */
static int value_of(int64_t *integer, const struct pfs_sql_value *value, char *problem)
{
	struct pfs_sql_value out;

	if (pfs_time_value(&out, value, NOW, true, problem))
		return -1;
	if (out.type == PFS_SQL_REAL) /* one beyond integers is none of the tests' business */
		out.integer = out.real > -9e18 && out.real < 9e18 ? (int64_t)out.real : 0;
	*integer = out.integer;
	return out.type == PFS_SQL_INTEGER ? 1 : out.type == PFS_SQL_REAL ? 2 : 0;
}

static void test_values(void **state)
{
	static const struct {
		const char *text;
		int type;
		int64_t value;
	} texts[] = {
		{"1 year ago", 1, NOON(19789 - 366)},
		{"1700000000", -1, 0},
		{" 1700000000000000000 ", 1, 1700000000000000000},
		{"0", 1, 0},
		{"1.7e18", 2, 1700000000000000000},
		{"1.7e9", -1, 0},
		{"2024", -1, 0},
		{"abc", -1, 0},
		{"", -1, 0},
	};
	static const struct {
		int64_t number;
		bool taken;
	} numbers[] = {{0, true},
		       {1, false},
		       {-1, false},
		       {99999999999999, false},
		       {-99999999999999, false},
		       {100000000000000, true},
		       {-100000000000000, true},
		       {INT64_MAX, true},
		       {INT64_MIN, true}};
	char problem[PFS_TIME_PROBLEM];
	struct pfs_sql_value value;
	int64_t integer = 0;

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(texts); i++) {
		value = (struct pfs_sql_value){.type = PFS_SQL_TEXT,
					       .bytes = texts[i].text,
					       .size = strlen(texts[i].text)};
		assert_int_equal(value_of(&integer, &value, problem), texts[i].type);
		if (texts[i].type > 0)
			assert_int_equal(integer, texts[i].value);
	}
	for (size_t i = 0; i < PFS_COUNT(numbers); i++) {
		value = (struct pfs_sql_value){.type = PFS_SQL_INTEGER,
					       .integer = numbers[i].number};
		assert_int_equal(value_of(&integer, &value, problem), numbers[i].taken ? 1 : -1);
		value = (struct pfs_sql_value){.type = PFS_SQL_REAL,
					       .real = (double)numbers[i].number};
		assert_int_equal(value_of(&integer, &value, problem), numbers[i].taken ? 2 : -1);
	}
	value = (struct pfs_sql_value){.type = PFS_SQL_NULL};
	assert_int_equal(value_of(&integer, &value, problem), 0);
	value = (struct pfs_sql_value){.type = PFS_SQL_BLOB, .bytes = "2024-01-01", .size = 10};
	assert_int_equal(value_of(&integer, &value, problem), -1);
}

static void test_seconds(void **state)
{
	char problem[PFS_TIME_PROBLEM];
	struct pfs_sql_value value = {.type = PFS_SQL_INTEGER, .integer = 1700000000}, out;

	(void)state;
	assert_int_equal(pfs_time_from_seconds(&out, &value, problem), 0);
	assert_int_equal(out.integer, 1700000000000000000);
	value = (struct pfs_sql_value){.type = PFS_SQL_REAL, .real = -1.5};
	assert_int_equal(pfs_time_from_seconds(&out, &value, problem), 0);
	assert_int_equal(out.integer, -1500000000);
	value = (struct pfs_sql_value){.type = PFS_SQL_TEXT, .bytes = "12", .size = 2};
	assert_int_equal(pfs_time_from_seconds(&out, &value, problem), 0);
	assert_int_equal(out.integer, 12000000000);
	value.bytes = "1x";
	assert_int_equal(pfs_time_from_seconds(&out, &value, problem), -EINVAL);
	value = (struct pfs_sql_value){.type = PFS_SQL_INTEGER, .integer = INT64_MAX};
	assert_int_equal(pfs_time_from_seconds(&out, &value, problem), -EINVAL);
	value = (struct pfs_sql_value){.type = PFS_SQL_REAL, .real = 1e300};
	assert_int_equal(pfs_time_from_seconds(&out, &value, problem), -EINVAL);
	value = (struct pfs_sql_value){.type = PFS_SQL_NULL};
	assert_int_equal(pfs_time_from_seconds(&out, &value, problem), 0);
	assert_int_equal(out.type, PFS_SQL_NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_relative),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
