/* SPDX-License-Identifier: MIT */
/* Dates in statements: what is read as a time, where it is replaced, and where places end up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "fs/query/times.h"

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

static void becomes(const char *sql, const char *expected)
{
	struct pfs_edits edits;

	assert_int_equal(pfs_times_replace(&edits, sql, strlen(sql)), 0);
	edits.text[edits.len] = 0;
	assert_string_equal(edits.text, expected);
	pfs_edits_finish(&edits);
}

#define SECOND "'1970-01-01T00:00:01'"
#define NUMBER "1000000000"

static void test_replace(void **state)
{
	(void)state;
	becomes("mtime > " SECOND, "mtime > " NUMBER);
	becomes("n.\"mtime\"<=" SECOND " x", "n.\"mtime\"<=" NUMBER " x");
	becomes(SECOND " < t.Ctime", NUMBER " < t.Ctime");
	becomes(SECOND " is not atime", NUMBER " is not atime");
	becomes("atime IS NOT " SECOND, "atime IS NOT " NUMBER);
	becomes("subtree_mtime not between " SECOND " AND " SECOND,
		"subtree_mtime not between " NUMBER " AND " NUMBER);
	becomes("mtime in (" SECOND ", 5, " SECOND ") or name = " SECOND,
		"mtime in (" NUMBER ", 5, " NUMBER ") or name = " SECOND);
	becomes("mtime /* " SECOND " */ = -- " SECOND "\n" SECOND,
		"mtime /* " SECOND " */ = -- " SECOND "\n" NUMBER);
	becomes("HAVING max( mtime ) < " SECOND " AND " SECOND " >= MIN(n.\"ctime\")",
		"HAVING max( mtime ) < " NUMBER " AND " NUMBER " >= MIN(n.\"ctime\")");
	becomes("max(mtime) NOT BETWEEN " SECOND " AND " SECOND,
		"max(mtime) NOT BETWEEN " NUMBER " AND " NUMBER);
	/* left alone */
	becomes("max(mtime, " SECOND ") > name", "max(mtime, " SECOND ") > name");
	becomes("max(name, mtime) > " SECOND, "max(name, mtime) > " SECOND);
	becomes("date(mtime) > " SECOND, "date(mtime) > " SECOND);
	becomes("max(ino) > " SECOND ", max(f(mtime)) > " SECOND,
		"max(ino) > " SECOND ", max(f(mtime)) > " SECOND);
	becomes("name > " SECOND, "name > " SECOND);
	becomes("mtime > 'it''s'", "mtime > 'it''s'");
	becomes("mtime > '2024'", "mtime > '2024'");
	becomes("mtime > x'00', 'mtime' > " SECOND, "mtime > x'00', 'mtime' > " SECOND);
	becomes("a = " SECOND " AND name < mtime", "a = " SECOND " AND name < mtime");
	becomes("mtime + " SECOND, "mtime + " SECOND);
	becomes("mtime, " SECOND, "mtime, " SECOND);
	becomes("f(mtime, " SECOND ")", "f(mtime, " SECOND ")");
	becomes("mtime > (SELECT " SECOND ")", "mtime > (SELECT " SECOND ")");
	becomes("", "");
	becomes("'unended", "'unended");
	becomes("mtime = 'unended", "mtime = 'unended");
	becomes("mtime > '", "mtime > '");
	becomes("/* unended", "/* unended");
}

static void test_offsets(void **state)
{
	static const char sql[] = "mtime > " SECOND " and ? < " SECOND " or mtime < " SECOND " !";
	struct pfs_edits edits;
	const char *mark;

	(void)state;
	assert_int_equal(pfs_times_replace(&edits, sql, strlen(sql)), 0);
	assert_int_equal(edits.n, 2);
	edits.text[edits.len] = 0;
	mark = strchr(edits.text, '?');
	assert_int_equal(pfs_edits_offset(&edits, mark - edits.text), strchr(sql, '?') - sql);
	mark = strchr(edits.text, '!');
	assert_int_equal(pfs_edits_offset(&edits, mark - edits.text), strchr(sql, '!') - sql);
	assert_int_equal(pfs_edits_offset(&edits, 3), 3);
	assert_int_equal(pfs_edits_offset(&edits, 10), 8); /* inside of the number */
	assert_int_equal(pfs_edits_offset(&edits, -1), -1);
	pfs_edits_finish(&edits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_replace),
		cmocka_unit_test(test_offsets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
