/* SPDX-License-Identifier: MIT */
/* What is printed of vectors, beside SQLite's own printf(): random formats; numbers at the ends of
 * their range, and texts with NULs and with bytes that are no UTF-8. */
#include "fs/query/relational/printed.h"
#include "fs/query/relational/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "gpu/textheap.h"
#include "tests/ref/random.h"

#define ROUNDS 3000
#define ROWS   8

static uint64_t seed = 20261126;
static sqlite3 *reference;

static const int64_t integers[ROWS] = {0, 1, -1, INT64_MAX, INT64_MIN, 1234567, -42, 9};
static const double reals[ROWS] = {0, -0.5, 1e300, -1e300, 2.5, 1234567.891, 9.3e18, -9.3e18};
static const struct {
	const char *bytes;
	size_t len;
} texts[ROWS] = {{"", 0},     {"a", 1},		{"name.txt", 8}, {"\xc3\xa4\xe2\x82\xac", 5},
		 {"b\0c", 3}, {"\x80\xbfz", 3}, {"\xff\xe2", 2}, {"\xf0\x9f\x98\x80%d", 6}};

enum of { INTEGERS, REALS, TEXTS };

/* Values of one kind, some of which are NULL. */
struct values {
	enum of of;
	uint64_t nulls;
	struct pfs_vector vector;
};

static struct pfs_heap heap;
static uint32_t places[ROWS];

static void make_values(struct values *out, enum of of)
{
	out->of = of;
	out->nulls = random_below(&seed, 1u << ROWS) >> random_below(&seed, ROWS);
	out->vector = (struct pfs_vector){
		.kind = of == INTEGERS ? PFS_KIND_INTEGER
			: of == REALS  ? PFS_KIND_REAL
				       : PFS_KIND_PLACE,
		.data = of == INTEGERS ? (void *)integers
			: of == REALS  ? (void *)reals
				       : (void *)places,
		.nulls = &out->nulls,
		.n = ROWS,
		.heap = &heap,
	};
}

static void bind(sqlite3_stmt *row, int at, const struct values *values, unsigned i)
{
	int result;

	if (values->nulls >> i & 1)
		result = sqlite3_bind_null(row, at);
	else if (values->of == INTEGERS)
		result = sqlite3_bind_int64(row, at, integers[i]);
	else if (values->of == REALS)
		result = sqlite3_bind_double(row, at, reals[i]);
	else
		result = sqlite3_bind_text(row, at, texts[i].bytes, (int)texts[i].len,
					   SQLITE_STATIC);
	assert_int_equal(result, SQLITE_OK);
}

static void put_conversion(char *out, const char *letters)
{
	static const char *const flags[] = {"", "", "", "-", "+", " ", "#", "!", "0", ",", "-!"};
	static const char *const sizes[] = {"", "", "3", "9", ".2", ".0", "7.1", "4.6", "64"};

	(void)sprintf(out, "%s%%%s%s%c", random_below(&seed, 2) ? "" : "100%% \xc3\xa4",
		      flags[random_below(&seed, sizeof(flags) / sizeof(*flags))],
		      sizes[random_below(&seed, sizeof(sizes) / sizeof(*sizes))],
		      letters[random_below(&seed, (uint32_t)strlen(letters))]);
}

static void check_rows(const char *format, const struct pfs_sql_format *taken,
		       const struct values values[2])
{
	const struct pfs_printing printing = {.format = taken,
					      .values = {values[0].vector, values[1].vector}};
	struct pfs_text_room room = {.buffers = {{.bytes = NULL}}};
	sqlite3_stmt *row;

	assert_int_equal(sqlite3_prepare_v2(reference, "SELECT printf(?1, ?2, ?3)", -1, &row, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_bind_text(row, 1, format, -1, SQLITE_STATIC), SQLITE_OK);
	assert_true(pfs_printing_takes(&printing));
	for (unsigned i = 0; i < ROWS; i++) {
		const struct pfs_text_buffer *printed = &room.buffers[0];

		bind(row, 2, &values[0], i);
		bind(row, 3, &values[1], i);
		assert_int_equal(sqlite3_step(row), SQLITE_ROW);
		assert_int_equal(pfs_printing_row(&printing, &room.buffers[0], i), 0);
		if (printed->size != (size_t)sqlite3_column_bytes(row, 0) ||
		    memcmp(printed->bytes, sqlite3_column_text(row, 0), printed->size) != 0)
			fail_msg("'%s', row %u: '%.*s' instead of '%s'", format, i,
				 (int)printed->size, (const char *)printed->bytes,
				 (const char *)sqlite3_column_text(row, 0));
		(void)sqlite3_reset(row);
	}
	(void)sqlite3_finalize(row);
	pfs_text_room_finish(&room);
}

static void test_beside_sqlite(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		char format[64];
		struct pfs_sql_format taken;
		struct values values[2];

		*format = 0;
		for (unsigned i = 0; i < 2; i++) {
			bool is_text = random_below(&seed, 2);

			make_values(&values[i], is_text ? random_below(&seed, 2) ? TEXTS : INTEGERS
							: random_below(&seed, 2));
			put_conversion(format + strlen(format), is_text ? "s" : "diuxXofeEgG");
		}
		assert_true(pfs_sql_format_take(&taken, format, strlen(format)));
		assert_int_equal(taken.n_values, 2);
		check_rows(format, &taken, values);
	}
}

static void test_formats_not_taken(void **state)
{
	static const char *const formats[] = {"",
					      "%%",
					      "%",
					      "%5",
					      "%c",
					      "%q",
					      "%Q",
					      "%w",
					      "%z",
					      "%n",
					      "%p",
					      "%r",
					      "%*d",
					      "%.*s",
					      "%65d",
					      "%.65s",
					      "%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d",
					      "%y"};
	struct pfs_sql_format taken;

	(void)state;
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		assert_false(pfs_sql_format_take(&taken, formats[i], strlen(formats[i])));
	assert_false(pfs_sql_format_take(&taken, "%d\0", 3));
}

/* SQLite prints a real as a text; equal bits of a real and an integer are different values. */
static void test_reals(void **state)
{
	uint64_t bits[2] = {3, 3}, is_real = 1, nulls = 2;
	const struct pfs_vector values = {
		.kind = PFS_KIND_NUMBER, .data = bits, .is_real = &is_real, .nulls = NULL, .n = 2};
	struct pfs_sql_format taken;
	struct pfs_printing printing = {.format = &taken, .values = {values}};

	(void)state;
	assert_true(pfs_sql_format_take(&taken, "%s", 2));
	assert_false(pfs_printing_takes(&printing));
	assert_true(pfs_sql_format_take(&taken, "%d", 2));
	assert_true(pfs_printing_takes(&printing));
	assert_false(pfs_printing_same(&printing, 0, 1));
	is_real = 0;
	assert_true(pfs_printing_same(&printing, 0, 1));
	bits[0] = bits[1] = 0;
	printing.values[0].nulls = &nulls;
	assert_false(pfs_printing_same(&printing, 0, 1));
}

/* ---- integers that repeat ---- */

#define MANY 5000

/* Prints `many` numbers as codes; the codes' texts are those of the rows, and all different. */
static bool print_codes(const char *format, const struct pfs_vector *many)
{
	struct pfs_run run = {.on = PFS_ENGINE_HOST};
	struct pfs_running running = {.run = &run};
	struct pfs_sql_format taken;
	const struct pfs_printing printing = {.format = &taken, .values = {*many}};
	struct pfs_made_texts made = {.is_heap = false};
	const struct pfs_dictionary *texts_of = &made.dictionary.shown;
	static uint32_t cells[MANY], met[MANY];
	struct pfs_text_room room = {.buffers = {{.bytes = NULL}}};
	uint32_t n_met = 0;
	bool done;

	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 2), 0);
	assert_int_equal(pfs_dictionary_begin(&made.dictionary), 0);
	assert_true(pfs_sql_format_take(&taken, format, strlen(format)));
	assert_int_equal(pfs_running_print_codes(&running, &done, cells, &made, &printing), 0);
	memset(met, 0, sizeof(met));
	for (uint64_t i = 0; done && i < many->n; i++) {
		size_t len;
		const uint8_t *text = pfs_dictionary_text(texts_of, cells[i], &len);

		assert_int_equal(pfs_printing_row(&printing, &room.buffers[0], i), 0);
		assert_int_equal(len, room.buffers[0].size);
		assert_memory_equal(text, room.buffers[0].bytes, len);
		n_met += !met[cells[i]];
		met[cells[i]] = 1;
	}
	assert_int_equal(n_met, texts_of->n);
	pfs_text_room_finish(&room);
	pfs_dictionary_finish(&made.dictionary);
	pfs_operators_close(run.operators);
	return done;
}

static void test_codes(void **state)
{
	static const char *const formats[] = {"%d",	  "%i kB", "%05x", "%,d",
					      "<%-9u>%%", "%+.3d", "%#o"};
	static const int64_t bases[] = {-300, 0, INT64_MAX - 999, INT64_MIN, 1000000};
	static int64_t numbers[MANY];
	static uint64_t nulls[MANY / 64 + 1];
	struct pfs_vector many = {.kind = PFS_KIND_INTEGER, .integers = numbers, .n = MANY};

	(void)state;
	for (unsigned round = 0; round < 70; round++) {
		int64_t base = bases[round % PFS_COUNT(bases)];

		for (unsigned i = 0; i < MANY; i++)
			numbers[i] = base + (int64_t)random_below(&seed, 1000);
		assert_true(print_codes(formats[round % PFS_COUNT(formats)], &many));
	}
	for (unsigned i = 0; i < MANY; i++) /* NULL is printed as 0 */
		nulls[i / 64] |= (uint64_t)(numbers[i] % 3 == 0) << i % 64;
	many.nulls = nulls;
	assert_false(print_codes("%d", &many)); /* 0 is far from 1,000,000 */
	for (unsigned i = 0; i < MANY; i++)
		numbers[i] -= 999900;
	assert_true(print_codes("%d", &many));
	assert_false(print_codes("%s", &many));
	assert_false(print_codes("%.1f", &many));
	many.nulls = NULL;
	for (unsigned i = 0; i < MANY; i++) /* each is there twice */
		numbers[i] = i / 2;
	assert_false(print_codes("%d", &many));
	many.n = 0;
	(void)print_codes("%d", &many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beside_sqlite),
		cmocka_unit_test(test_formats_not_taken),
		cmocka_unit_test(test_reals),
		cmocka_unit_test(test_codes),
	};
	uint8_t bytes[256];
	uint64_t size = 0;
	int failed;

	for (unsigned i = 0; i < ROWS; i++)
		places[i] = pfs_heap_put(bytes, &size, texts[i].bytes, texts[i].len);
	heap = pfs_heap_of(bytes, size);
	if (sqlite3_open(":memory:", &reference))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)sqlite3_close(reference);
	return failed;
}
