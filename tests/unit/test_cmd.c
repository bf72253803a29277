/* SPDX-License-Identifier: MIT */
/* Options and operands of commands, and the JSON that they print. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/cmd.h"

enum { COLOUR, LOUD, SIZE, X };

static const struct pfs_cmd_option options[] = {
	[COLOUR] = {"colour", 'c', "NAME", "paint it so"},
	[LOUD] = {"loud", 'l', NULL, "say more"},
	[SIZE] = {"size", 0, "N", "how much"},
	[X] = {NULL, 'x', NULL, "only a letter"},
	{0},
};
static const struct pfs_cmd command = {"paint", "STORE [PATH]", "Paints.", options, NULL};

/* What a command line came to: "c=red l x | a b" or "2" for wrong usage. */
static char result[512];

static const char *parse(const char *line, int min, int max)
{
	char copy[256], *words[32], *save;
	struct pfs_cmd_args args;
	uint64_t size = 0;
	int n = 0, option, i;

	(void)snprintf(copy, sizeof(copy), "paint %s", line);
	for (words[n] = strtok_r(copy, " ", &save); words[n]; words[n] = strtok_r(NULL, " ", &save))
		n++;
	*result = '\0';
	pfs_cmd_begin(&args, &command, n, words);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == SIZE)
			pfs_cmd_number(&args, &size, SIZE, 2, 9);
		(void)snprintf(result + strlen(result), sizeof(result) - strlen(result), "%c%s%s ",
			       "clsx"[option], args.value ? "=" : "", args.value ? args.value : "");
	}
	if (pfs_cmd_end(&args, min, max)) {
		(void)snprintf(result, sizeof(result), "%d", args.status);
		return result;
	}
	assert_null(args.operands[args.n_operands]);
	(void)snprintf(result + strlen(result), sizeof(result) - strlen(result), "|");
	for (i = 0; i < args.n_operands; i++)
		(void)snprintf(result + strlen(result), sizeof(result) - strlen(result), " %s",
			       args.operands[i]);
	return result;
}

static void reads_options(void **state PFS_UNUSED)
{
	assert_string_equal(parse("", 0, 0), "|");
	assert_string_equal(parse("a b", 1, 2), "| a b");
	assert_string_equal(parse("--colour=red a", 1, 2), "c=red | a");
	assert_string_equal(parse("--colour red a", 1, 2), "c=red | a");
	assert_string_equal(parse("-c red a", 1, 2), "c=red | a");
	assert_string_equal(parse("-cred a", 1, 2), "c=red | a");
	assert_string_equal(parse("-lxcred a", 1, 2), "l x c=red | a");
	assert_string_equal(parse("a -l b --loud", 1, 2), "l l | a b");
	assert_string_equal(parse("a - -- -l", 3, 3), "| a - -l");
	assert_string_equal(parse("--colour= a", 1, 2), "c= | a");
	assert_string_equal(parse("-c -l a", 1, 2), "c=-l | a");
	assert_string_equal(parse("a b c d e", 0, -1), "| a b c d e");
	assert_string_equal(parse("--size=9", 0, 0), "s=9 |");
}

static void refuses_the_rest(void **state PFS_UNUSED)
{
	assert_string_equal(parse("", 1, 2), "2");
	assert_string_equal(parse("a b c", 1, 2), "2");
	assert_string_equal(parse("--colou=red a", 1, 2), "2");
	assert_string_equal(parse("--colours=red a", 1, 2), "2");
	assert_string_equal(parse("--loud=yes a", 1, 2), "2");
	assert_string_equal(parse("-y a", 1, 2), "2");
	assert_string_equal(parse("-ly a", 1, 2), "2");
	assert_string_equal(parse("a --colour", 1, 2), "2");
	assert_string_equal(parse("a -c", 1, 2), "2");
	assert_string_equal(parse("--size=1", 0, 0), "2");
	assert_string_equal(parse("--size=10", 0, 0), "2");
	assert_string_equal(parse("--size=-3", 0, 0), "2");
	assert_string_equal(parse("--size=3x", 0, 0), "2");
	assert_string_equal(parse("--x", 0, 0), "2");
}

/* ---- JSON ---- */

static void prints_json(void **state PFS_UNUSED)
{
	char *text;
	size_t size;
	struct pfs_json json = {.out = open_memstream(&text, &size)};

	pfs_json_open(&json, NULL, '{');
	pfs_json_u64(&json, "big", UINT64_MAX);
	pfs_json_real(&json, "real", 0.5);
	pfs_json_real(&json, "none", 1e308 * 10);
	pfs_json_bool(&json, "yes", true);
	pfs_json_open(&json, "list", '[');
	pfs_json_string(&json, NULL, "a\"b\\\n");
	pfs_json_open(&json, NULL, '{');
	pfs_json_close(&json, '}');
	pfs_json_close(&json, ']');
	pfs_json_close(&json, '}');
	assert_int_equal(fclose(json.out), 0);
	assert_string_equal(text, "{\n"
				  "  \"big\": 18446744073709551615,\n"
				  "  \"real\": 0.5,\n"
				  "  \"none\": null,\n"
				  "  \"yes\": true,\n"
				  "  \"list\": [\n"
				  "    \"a\\\"b\\\\\\u000a\",\n"
				  "    {}\n"
				  "  ]\n"
				  "}\n");
	free(text);
}

static void bytes_that_are_no_utf8(void **state PFS_UNUSED)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82"},
		{"\xff", "\\ufffd"},
		{"a\xc3", "a\\ufffd"},				      /* cut short */
		{"\xc0\xaf", "\\ufffd\\ufffd"},			      /* overlong */
		{"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},	      /* a surrogate */
		{"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"}, /* beyond U+10FFFF */
		{"\xe2\x82z", "\\ufffd\\ufffdz"},
		{"\x01\x7f", "\\u0001\\u007f"},
	};
	size_t i;

	for (i = 0; i < PFS_COUNT(cases); i++) {
		char *text, wanted[128];
		size_t size;
		struct pfs_json json = {.out = open_memstream(&text, &size)};

		pfs_json_string(&json, NULL, cases[i].in);
		assert_int_equal(fclose(json.out), 0);
		(void)snprintf(wanted, sizeof(wanted), "\"%s\"\n", cases[i].out);
		assert_string_equal(text, wanted);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_options),
		cmocka_unit_test(refuses_the_rest),
		cmocka_unit_test(prints_json),
		cmocka_unit_test(bytes_that_are_no_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
