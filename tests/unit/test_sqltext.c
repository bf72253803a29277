/* SPDX-License-Identifier: MIT */
/* Functions on text against SQLite's own: the same results, of random arguments. */
#include "meta/sql/sqlquery_impl.h"
#include "tests/ref/random.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS	   20000
#define LENGTH_MAX 3000 /* a width may be any number */

static uint64_t seed = 20261122;
static sqlite3 *theirs;
static struct pfs_sql ours;

static int never(void *user)
{
	(void)user;
	return 0;
}

static int open_both(void **state)
{
	(void)state;
	pfs_accounts_begin();
	ours.tick = never;
	assert_int_equal(sqlite3_open(":memory:", &theirs), 0);
	assert_int_equal(sqlite3_open(":memory:", &ours.handle), 0);
	(void)sqlite3_limit(theirs, SQLITE_LIMIT_LENGTH, LENGTH_MAX);
	(void)sqlite3_limit(ours.handle, SQLITE_LIMIT_LENGTH, LENGTH_MAX);
	assert_int_equal(pfs_sql_add_text_functions(&ours, false), 0);
	return 0;
}

static int close_both(void **state)
{
	(void)state;
	pfs_sql_json_close(ours.json);
	ours.json = NULL;
	(void)sqlite3_close(theirs);
	(void)sqlite3_close(ours.handle);
	return 0;
}

static uint32_t rnd(uint32_t below)
{
	return (uint32_t)(random_next(&seed) % below);
}

static const char *const parts[] = {"a",    "A",    "b",    "ab",    " ",	 "%",
				    "_",    "*",    "?",    "[a-c]", "\xc3\xa9", "\xe2\x82\xac",
				    "\x80", "\xff", "\xc1", "\xa9",  "\xc3",	 "\xe2\x82",
				    "'",    "\"",   "1",    "-2",    "0.5"};
static const char *const conversions[] = {
	"%d",	  "%5d",    "%-5d|", "%05d",   "%+d",	"% d",	"%,d",	"%x",	"%#X",
	"%o",	  "%u",	    "%lld",  "%ld",    "%i",	"%s",	"%10s", "%-9s", "%.2s",
	"%!.2s",  "%!5.1s", "%q",    "%Q",     "%w",	"%z",	"%c",	"%5c",	"%.3c",
	"%-8.3c", "%f",	    "%.2f",  "%10.3f", "%e",	"%g",	"%G",	"%E",	"%!.15g",
	"%#g",	  "%+.1f",  "%,.2f", "%%",     "%5%",	"%*d",	"%-*d", "%.*f", "%*.*f",
	"%r",	  "%3r",    "%p",    "%n",     "%T",	"%S",	"%y",	"%l",	"%",
	"%5",	  "%.",	    "%-",    "%lls",   "%llld", "%05s", "%0*d", "%1*d", "%*5d"};

static void add(char *out, size_t size, const char *part)
{
	size_t len = strlen(out);

	(void)snprintf(out + len, size - len, "%s", part);
}

/* A value as an expression of its own. */
static void bind_random(sqlite3_stmt *a, sqlite3_stmt *b, int parameter, bool is_format)
{
	char text[128] = "";
	sqlite3_stmt *both[] = {a, b};
	uint32_t kind = is_format ? 7 : rnd(10);
	int64_t integer = (int64_t)(random_next(&seed) >> rnd(64)) - (int64_t)rnd(100);

	for (uint32_t n = rnd(7); n > 0; n--)
		add(text, sizeof(text),
		    is_format && rnd(2) ? conversions[rnd(PFS_COUNT(conversions))]
					: parts[rnd(PFS_COUNT(parts))]);
	for (int i = 0; i < 2; i++) {
		if (kind == 0)
			(void)sqlite3_bind_null(both[i], parameter);
		else if (kind == 1)
			(void)sqlite3_bind_int64(both[i], parameter, integer % 200);
		else if (kind == 2)
			(void)sqlite3_bind_int64(both[i], parameter, integer);
		else if (kind == 3)
			(void)sqlite3_bind_double(both[i], parameter, (double)integer / 1024);
		else if (kind == 4)
			(void)sqlite3_bind_blob(both[i], parameter, text, (int)strlen(text),
						SQLITE_TRANSIENT);
		else
			(void)sqlite3_bind_text(both[i], parameter, text, -1, SQLITE_TRANSIENT);
	}
}

static void compare(const char *sql, sqlite3_stmt *a, sqlite3_stmt *b)
{
	int got = sqlite3_step(a), wanted = sqlite3_step(b);
	const void *x, *y;

	if (got == SQLITE_TOOBIG && wanted == SQLITE_ROW && /* printf: ours is an error */
	    sqlite3_column_type(b, 0) == SQLITE_NULL)
		return;
	if (got != wanted)
		fail_msg("%s: %d (%s), not %d (%s)", sqlite3_expanded_sql(a), got,
			 sqlite3_errmsg(ours.handle), wanted, sqlite3_errmsg(theirs));
	if (got != SQLITE_ROW)
		return;
	x = sqlite3_column_blob(a, 0);
	y = sqlite3_column_blob(b, 0);
	if (sqlite3_column_type(a, 0) != sqlite3_column_type(b, 0) ||
	    sqlite3_column_bytes(a, 0) != sqlite3_column_bytes(b, 0) ||
	    (x && memcmp(x, y, (size_t)sqlite3_column_bytes(a, 0)) != 0))
		fail_msg("%s: %s: '%.*s', not '%.*s'", sql, sqlite3_expanded_sql(a),
			 sqlite3_column_bytes(a, 0), (const char *)x, sqlite3_column_bytes(b, 0),
			 (const char *)y);
}

static void check_call(const char *sql, bool is_format)
{
	sqlite3_stmt *a, *b;

	assert_int_equal(sqlite3_prepare_v2(ours.handle, sql, -1, &a, NULL), 0);
	assert_int_equal(sqlite3_prepare_v2(theirs, sql, -1, &b, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		for (int n = sqlite3_bind_parameter_count(a), p = 1; p <= n; p++)
			bind_random(a, b, p, is_format && p == 1);
		compare(sql, a, b);
		(void)sqlite3_reset(a);
		(void)sqlite3_reset(b);
	}
	(void)sqlite3_finalize(a);
	(void)sqlite3_finalize(b);
}

static void test_functions(void **state)
{
	(void)state;
	check_call("SELECT instr(?1, ?2)", false);
	check_call("SELECT replace(?1, ?2, ?3)", false);
	check_call("SELECT trim(?1, ?2)", false);
	check_call("SELECT ltrim(?1, ?2)", false);
	check_call("SELECT rtrim(?1, ?2)", false);
	check_call("SELECT ?1 LIKE ?2", false);
	check_call("SELECT ?1 GLOB ?2", false);
	check_call("SELECT like(?1, ?2, 'a')", false);
	check_call("SELECT ?1 LIKE ?2 ESCAPE ?3", false);
	check_call("SELECT trim(?1)", false);
}

static void test_format(void **state)
{
	(void)state;
	check_call("SELECT format(?1)", true);
	check_call("SELECT printf(?1, ?2)", true);
	check_call("SELECT printf(?1, ?2, ?3, ?4)", true);
	check_call("SELECT printf(?1, ?2, ?3, ?4, ?5, ?6)", true);
	check_call("SELECT printf()", false);
	check_call("SELECT printf(NULL, ?1)", false);
	check_call("SELECT json_array(json_patch('{\"a\":' || abs(?1) || '}', '{\"b\":2}'))",
		   false);
	check_call("SELECT json_patch(?1, '{\"b\":2}')", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_functions, open_both, close_both),
		cmocka_unit_test_setup_teardown(test_format, open_both, close_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
