/* SPDX-License-Identifier: MIT */
/* Rules of what is left out, one by one, as git has them. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/import/ignore.h"

static bool ignores(const char *rules, const char *path)
{
	struct pfs_ignore ignore = {.n = 0};
	size_t len = strlen(path);
	bool directory = len && path[len - 1] == '/';
	char copy[256];
	char *slash;
	bool result;

	(void)snprintf(copy, sizeof(copy), "%.*s", (int)(len - directory), path);
	slash = strrchr(copy, '/');
	assert_int_equal(pfs_ignore_add_lines(&ignore, rules, strlen(rules)), 0);
	result = pfs_ignores(&ignore, copy, slash ? (size_t)(slash - copy) : 0,
			     slash ? slash + 1 : copy, directory);
	pfs_ignore_finish(&ignore);
	return result;
}

static const struct {
	const char *rules, *path;
	bool ignored;
} cases[] = {
	{"*.o", "a.o", true},
	{"*.o", "x/y/a.o", true},
	{"*.o", "a.of", false},
	{"# *.o", "a.o", false},
	{"", "a", false},
	{"\\#a", "#a", true},
	{"build/", "build/", true},
	{"build/", "build", false},
	{"build/", "x/build/", true},
	{"/build", "build", true},
	{"/build", "x/build", false},
	{"a/b", "a/b", true},
	{"a/b", "x/a/b", false},
	{"a/*", "a/b", true},
	{"a/*", "a/b/c", false},
	{"**/b", "b", true},
	{"**/b", "x/y/b", true},
	{"**/b/c", "x/b/c", true},
	{"a/**", "a/b/c", true},
	{"a/**", "a/", false},
	{"a/**/b", "a/b", true},
	{"a/**/b", "a/x/y/b", true},
	{"a/**/b", "a/x/yb", false},
	{"a**b/c", "axxb/c", true},
	{"****/b/***", "x/b/c", true},
	{"a**b/c", "ax/xb/c", false},
	{"a?c", "abc", true},
	{"a?c", "a/c", false},
	{"[a-c]x", "bx", true},
	{"[!a-c]x", "bx", false},
	{"[!a-c]x", "dx", true},
	{"[]]x", "]x", true},
	{"[a", "[a", false},
	{"[a/b]", "a", true},
	{"[[:digit:]]x", "1x", true},
	{"[[:digit:]]x", "ax", false},
	{"[![:digit:]]x", "ax", true},
	{"x[[:digit:]a-c[:upper:]]", "xb", true},
	{"x[[:digit:]a-c[:upper:]]", "xB", true},
	{"x[[:digit:]a-c[:upper:]]", "xd", false},
	{"x[[:digit:]-z]", "x-", true},
	{"x[[:digit:]-z]", "xa", false},
	{"x[a-[:digit:]]", "x]]", false},
	{"x[a-[:digit:]]", "xd]", true},
	{"x[a-[:digit:]]", "xa]", true},
	{"[z-a]", "z", true},
	{"[z-a]", "b", false},
	{"[[:alpha:]]", "\xe4", false},
	{"[[:none:]]", "n", false},
	{"[[:none:]a]", "a", false},
	{"[[:]a", ":a", true},
	{"[[:digit]", "d", true},
	{"[[:digit:", "1", false},
	{"\\*", "*", true},
	{"\\*", "a", false},
	{"*.o\n!a.o", "a.o", false},
	{"*.o\n!a.o", "b.o", true},
	{"!a.o\n*.o", "a.o", true},
	{"a  ", "a", true},
	{"a\\ ", "a ", true},
	{"a\r\nb\r\n", "a", true},
	{"*a*b*c", "xxaxbbxc", true},
	{"*a*b*c", "xxaxbbx", false},
	{"foo/**/x*y/**/z", "foo/1/2/xy/3/z", true},
	{"foo/**/x*y/**/z", "foo/1/2/x/3/z", false},
};

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < PFS_COUNT(cases); i++) {
		if (ignores(cases[i].rules, cases[i].path) != cases[i].ignored)
			print_message("rules \"%s\", path \"%s\"\n", cases[i].rules, cases[i].path);
		assert_int_equal(ignores(cases[i].rules, cases[i].path), cases[i].ignored);
	}
}

/* Rules of a folder are of paths from there, and count before those of one above. */
static void test_chain(void **state)
{
	struct pfs_ignore top = {.n = 0}, below = {.above = &top, .base_len = 3};

	(void)state;
	assert_int_equal(pfs_ignore_add_lines(&top, "*.o\n/x", 6), 0);
	assert_int_equal(pfs_ignore_add_lines(&below, "!keep.o\n/x", 10), 0);
	assert_true(pfs_ignores(&below, "a/b", 3, "x", false));
	assert_false(pfs_ignores(&below, "a/b/c", 5, "x", false));
	assert_true(pfs_ignores(&below, "a/b/c", 5, "y.o", false));
	assert_false(pfs_ignores(&below, "a/b/c", 5, "keep.o", false));
	assert_true(pfs_ignores(&top, "a/b/c", 5, "keep.o", false));
	pfs_ignore_finish(&top);
	pfs_ignore_finish(&below);
}

/* The byte order mark that some editors begin a file with is no part of its first rule. */
static void test_byte_order_mark(void **state)
{
	struct pfs_ignore ignore = {.n = 0};
	char name[] = "/tmp/primefs-ignore-XXXXXX";
	const char text[] = "\xEF\xBB\xBF*.o\n\xEF\xBB\xBF*.c\n";
	int fd = mkstemp(name);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	assert_int_equal(close(fd), 0);
	assert_int_equal(pfs_ignore_read(&ignore, AT_FDCWD, name, true), 0);
	assert_int_equal(unlink(name), 0);
	assert_true(pfs_ignores(&ignore, "", 0, "a.o", false));
	assert_false(pfs_ignores(&ignore, "", 0, "a.c", false)); /* it begins no file */
	assert_true(pfs_ignores(&ignore, "", 0,
				"\xEF\xBB\xBF"
				"a.c",
				false));
	pfs_ignore_finish(&ignore);
}

/* Stars that hardly fit cost no more than their product. */
static void test_hostile(void **state)
{
	struct pfs_ignore ignore = {.n = 0};
	char rule[600], path[4000];

	(void)state;
	for (int i = 0; i < 60; i++)
		(void)snprintf(rule + (size_t)i * 7, 8, "**/a*a/");
	(void)memcpy(rule + 420, "b", 2);
	for (int i = 0; i < 900; i++)
		(void)snprintf(path + (size_t)i * 3, 4, "aa/");
	path[2700] = 0;
	assert_int_equal(pfs_ignore_add(&ignore, rule, strlen(rule)), 0);
	assert_false(pfs_ignores(&ignore, path, strlen(path) - 1, "c", false));
	assert_true(pfs_ignores(&ignore, path, strlen(path) - 1, "b", false));
	pfs_ignore_finish(&ignore);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_byte_order_mark),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
