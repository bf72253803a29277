/* SPDX-License-Identifier: MIT */
/* Rows of an answer taken apart: against one that looks at each byte. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/checked.h"
#include "tools/gnu/row.h"

#define SEED UINT64_C(0x70a1)
#define ROWS 20000

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* A name of up to 60 bytes, with what is escaped once in a while. */
static size_t make_name(char *out, uint64_t *seed)
{
	static const char odd[] = "\t\n\r\\\x01\x1f\x7f\xc3 ";
	size_t len = next(seed) % 60;

	for (size_t i = 0; i < len; i++)
		out[i] = next(seed) % 12 ? (char)('!' + next(seed) % 60)
					 : odd[next(seed) % (sizeof(odd) - 1)];
	out[len] = 0;
	return len;
}

static char *put_escaped(char *to, const char *text, size_t len)
{
	static const char from[] = "\t\n\r\\", letters[] = "tnr\\";

	for (size_t i = 0; i < len; i++) {
		const char *at = strchr(from, text[i]);

		if (at) {
			*to++ = '\\';
			*to++ = letters[at - from];
		} else {
			*to++ = text[i];
		}
	}
	return to;
}

/* In memory of its own, so that what is read beyond it shows. */
static char *in_its_own(const char *line, size_t size)
{
	char *own = calloc(1, size + PFS_ROW_SLACK);

	assert_non_null(own);
	(void)memcpy(own, line, size);
	return own;
}

static void texts_and_numbers(void **state)
{
	uint64_t seed = SEED;

	(void)state;
	print_message("seed %#" PRIx64 "\n", seed);
	for (int i = 0; i < ROWS; i++) {
		char first[64], last[64], line[320], *to = line, *own, *text;
		size_t first_len = make_name(first, &seed), last_len = make_name(last, &seed), size;
		uint64_t number = next(&seed) >> next(&seed) % 64;
		struct pfs_row row;

		to = put_escaped(to, first, first_len);
		to += sprintf(to, "\t%" PRIu64 "\t-%" PRIu64 "\td\t", number, number);
		to = put_escaped(to, last, last_len);
		*to++ = '\n';
		own = in_its_own(line, (size_t)(to - line));
		row = (struct pfs_row){.at = own};
		text = pfs_row_text(&row, &size);
		assert_int_equal(size, first_len);
		assert_memory_equal(text, first, size + 1);
		assert_ptr_equal(text + size + 1, row.at); /* the next field is behind it */
		assert_true(pfs_row_digits(&row, number % 2) == number);
		assert_true(pfs_row_digits(&row, number % 3) == -number);
		assert_int_equal(pfs_row_letter(&row), 'd');
		assert_false(row.ended);
		text = pfs_row_text(&row, &size);
		assert_int_equal(size, last_len);
		assert_memory_equal(text, last, size + 1);
		assert_true(row.ended);
		assert_ptr_equal(row.at, own + (to - line) - 1);
		free(own);
	}
}

/* What is missing is empty or 0, and nothing is read beyond the line. */
static void missing_fields(void **state)
{
	static const char *const lines[] = {"\n", "7\n", "\t\n", "name\n", "x\t\t\n", "12x\n"};
	size_t size;

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(lines); i++) {
		char *own = in_its_own(lines[i], strlen(lines[i]));
		struct pfs_row row = {.at = own};

		for (int j = 0; j < 4; j++)
			(void)pfs_row_text(&row, &size);
		assert_int_equal(size, 0);
		assert_true(row.ended);
		assert_int_equal(pfs_row_number(&row), 0);
		assert_int_equal(pfs_row_time(&row), 0);
		assert_int_equal(pfs_row_letter(&row), 0);
		assert_ptr_equal(row.at, own + strlen(lines[i]) - 1);
		free(own);
	}
}

static void a_number_ends_a_row(void **state)
{
	char line[] = "123456789012345678\nnext                ";
	struct pfs_row row = {.at = line};
	size_t size;

	(void)state;
	assert_true(pfs_row_time(&row) == INT64_C(123456789012345678));
	assert_int_equal(pfs_row_number(&row), 0);
	assert_string_equal(pfs_row_text(&row, &size), "");
	assert_true(row.ended);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_and_numbers),
		cmocka_unit_test(missing_fields),
		cmocka_unit_test(a_number_ends_a_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
