/* SPDX-License-Identifier: MIT */
/* Records of CSV texts: RFC 4180, line numbers, what is refused; printing and reading agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/csv.h"

struct reader {
	struct pfs_input_stream input;
	struct pfs_csv csv;
	const char *why;
};

static void start(struct reader *reader, const void *text, size_t size)
{
	*reader = (struct reader){.why = NULL};
	assert_int_equal(pfs_input_open_memory(&reader->input, text, size), 0);
	reader->csv.input = &reader->input;
}

static void stop(struct reader *reader)
{
	pfs_csv_free(&reader->csv);
	pfs_input_close(&reader->input);
}

static int next(struct reader *reader)
{
	return pfs_csv_next(&reader->csv, &reader->why);
}

/* The fields with bars between them. */
static const char *joined(const struct reader *reader)
{
	static char text[512];
	size_t at = 0, i;

	for (i = 0; i < reader->csv.n_fields; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s", i ? "|" : "",
				       (int)reader->csv.fields[i].len, reader->csv.fields[i].text);
	return text;
}

static void reads(const char *text, const char *const *records)
{
	struct reader reader;

	start(&reader, text, strlen(text));
	for (; *records; records++) {
		assert_int_equal(next(&reader), 1);
		assert_string_equal(joined(&reader), *records);
	}
	assert_int_equal(next(&reader), 0);
	assert_int_equal(next(&reader), 0);
	stop(&reader);
}

#define READS(text, ...) reads(text, (const char *const[]){__VA_ARGS__, NULL})

static void test_records(void **state)
{
	(void)state;
	READS("", NULL);
	READS("\n\r\n\n", NULL);
	READS("a,b\nc,d\n", "a|b", "c|d");
	READS("a,b\r\nc,d\r\n", "a|b", "c|d");
	READS("a,b\n\nc,d", "a|b", "c|d");
	READS("a,\n,b\n,\n", "a|", "|b", "|");
	READS("a,", "a|");
	READS("\xef\xbb\xbf"
	      "a,b\n",
	      "a|b");
	READS("\"a\",\"b,c\"\n", "a|b,c");
	READS("\"a\"\"b\",\"\"\"\"\n", "a\"b|\"");
	READS("\"two\nlines\",\"crlf\r\n\"\r\nx,y\n", "two\nlines|crlf\r\n", "x|y");
	READS("\"\"\n", ""); /* not an empty line */
	READS("a\"b,c \"d\"\n", "a\"b|c \"d\"");
	READS("a\rb,c\r\n", "a\rb|c");
	READS(" a , b \n", " a | b ");
	READS("\xff\xfe,\x01\n", "\xff\xfe|\x01");
}

static void fails(const char *text, uint64_t line)
{
	struct reader reader;
	int got;

	start(&reader, text, strlen(text));
	while ((got = next(&reader)) == 1)
		;
	assert_int_equal(got, -EBADMSG);
	assert_non_null(reader.why);
	assert_int_equal(reader.csv.line, line);
	stop(&reader);
}

static void test_what_is_wrong_has_a_line(void **state)
{
	(void)state;
	fails("a,b\n\"open,1\n", 2);
	fails("a,b\n1,2\n3,\"x\ny\nz", 3);
	fails("\"a\"b\n", 1);
	fails("x\n\"1\n2\"\n\"a\" ,b\n", 4);
	fails("\"a\"\rb\n", 1);
}

static void test_lines_and_offsets(void **state)
{
	static const char text[] = "h\n\"1\n2\n3\"\n\nlast\n";
	struct reader reader;

	(void)state;
	start(&reader, text, strlen(text));
	assert_int_equal(next(&reader), 1);
	assert_int_equal(reader.csv.line, 1);
	assert_int_equal(next(&reader), 1);
	assert_int_equal(reader.csv.line, 2);
	assert_int_equal(reader.csv.offset, 2);
	assert_int_equal(next(&reader), 1);
	assert_int_equal(reader.csv.line, 6);
	assert_int_equal(pfs_csv_seek(&reader.csv, 2), 0);
	assert_int_equal(next(&reader), 1);
	assert_string_equal(joined(&reader), "1\n2\n3");
	stop(&reader);
}

static void test_what_is_printed_reads_the_same(void **state)
{
	static const char alphabet[] = "ab,\"\n\r \t\xff";
	uint64_t seed = 20240607, round;
	char fields[5][8];
	size_t lens[5], size, i, j;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (round = 0; round < 20000; round++) {
		struct reader reader;
		char *text;
		FILE *out = open_memstream(&text, &size);

		for (i = 0; i < 5; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			lens[i] = (size_t)(seed >> 60) % 8;
			for (j = 0; j < lens[i]; j++)
				fields[i][j] =
					alphabet[(seed >> (4 * j + 8)) % (sizeof(alphabet) - 1)];
			if (i)
				(void)fputc(',', out);
			pfs_csv_print(out, ',', fields[i], lens[i]);
		}
		(void)fputc('\n', out);
		(void)fclose(out);
		start(&reader, text, size);
		assert_int_equal(next(&reader), 1);
		assert_int_equal(reader.csv.n_fields, 5);
		for (i = 0; i < 5; i++) {
			assert_int_equal(reader.csv.fields[i].len, lens[i]);
			assert_memory_equal(reader.csv.fields[i].text, fields[i], lens[i]);
		}
		assert_int_equal(next(&reader), 0);
		stop(&reader);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_what_is_wrong_has_a_line),
		cmocka_unit_test(test_lines_and_offsets),
		cmocka_unit_test(test_what_is_printed_reads_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
