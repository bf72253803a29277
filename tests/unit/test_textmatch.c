/* SPDX-License-Identifier: MIT */
/* Texts that are looked for in others: every version of the search against plain loops; tests that
 * are taken apart, and what the operators select by them among names, against base/pattern.h and
 * plain comparisons. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "gpu/relation.h"
#include "gpu/textheap.h"
#include "gpu/textmatch.h"
#include "tests/ref/random.h"

#define WORDS 5u
#define N     (WORDS * 64u)
#define UNIT  4u

static uint64_t seed = 20260914;
static uint64_t random_state;

static uint64_t rnd64(void)
{
	return random_next(&random_state);
}

static uint32_t rnd(uint32_t n)
{
	return (uint32_t)(rnd64() % n);
}

static bool bit(const uint64_t *bits, size_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

/* The heap: at each place a length byte, then the bytes, of few letters. It ends with its last
 * text. */
static uint8_t bytes[N * 256 + 512];
static uint32_t places[N];
static struct pfs_heap heap = {.bytes = bytes, .place_shift = 2, .length_size = 1};

static void fill_heap(const char *letters, uint32_t longest)
{
	uint32_t at = 1;

	for (size_t i = 0; i < N; i++) {
		uint32_t len = rnd(8) ? rnd(longest / 4) : rnd(longest);

		places[i] = at;
		bytes[(size_t)at * UNIT] = (uint8_t)len;
		for (uint32_t k = 1; k <= len; k++)
			bytes[(size_t)at * UNIT + k] =
				(uint8_t)letters[rnd((uint32_t)strlen(letters))];
		heap.size = (uint64_t)at * UNIT + 1 + len;
		at += (len + UNIT) / UNIT;
	}
}

/* ---- versions of the search ---- */

static bool contains(const uint8_t *text, size_t len, const struct pfs_needle *needle)
{
	for (size_t at = 0; at + needle->len <= len; at++)
		if (pfs_same_bytes(text + at, needle->text, needle->len, needle->fold))
			return true;
	return false;
}

static void check_texts(const struct pfs_needle_search *search)
{
	uint8_t text[256];
	struct pfs_needle needle = {
		.text = text, .len = 1 + rnd(rnd(20) ? 4 : 255), .fold = rnd(2)};
	uint64_t bits[WORDS], before[WORDS];

	for (size_t i = 0; i < needle.len; i++)
		text[i] = (uint8_t) "abc@`{[AB"[rnd(needle.fold ? 7 : 9)];
	for (size_t w = 0; w < WORDS; w++)
		before[w] = bits[w] = rnd(4) ? rnd64() : 0;
	search->keep_containing(bits, &heap, places, WORDS, &needle);
	for (size_t i = 0; i < N; i++) {
		size_t len;
		const uint8_t *in = pfs_heap_text(&heap, places[i], &len);

		assert_int_equal(bit(bits, i), bit(before, i) && contains(in, len, &needle));
	}
}

/* In many texts at once, the needle being in one of them or across two. */
static void check_bytes(const struct pfs_needle_search *search)
{
	size_t at = rnd(sizeof(bytes) - PFS_NEEDLE_SLACK - 2100), size = rnd(2000);
	uint8_t text[64];
	struct pfs_needle needle = {.text = text, .len = 1 + rnd(rnd(20) ? 6 : 64), .fold = rnd(2)};

	memcpy(text, bytes + at + rnd(2000), needle.len);
	for (size_t i = 0; i < needle.len && needle.fold; i++)
		text[i] = text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i];
	assert_int_equal(search->has(bytes + at, size, &needle),
			 contains(bytes + at, size, &needle));
}

static void test_versions(void **state)
{
	const struct pfs_needle_search *search;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (unsigned v = 0; (search = pfs_needle_version(v)); v++) {
		print_message("%s\n", search->name);
		random_state = seed;
		for (int round = 0; round < 300; round++) {
			if (round % 30 == 0)
				fill_heap("abABc@`{[", 256);
			check_texts(search);
			check_bytes(search);
		}
	}
}

/* ---- tests of names ---- */

static const enum pfs_op ops[] = {PFS_OP_LIKE,	 PFS_OP_GLOB,	  PFS_OP_PREFIX,
				  PFS_OP_SUFFIX, PFS_OP_CONTAINS, PFS_OP_EQ,
				  PFS_OP_GE,	 PFS_OP_LT};

static int compare(const uint8_t *a, size_t a_len, const char *b)
{
	size_t len = strlen(b), n = PFS_MIN(a_len, len);
	int order = memcmp(a, b, n);

	return order ? order : (a_len > len) - (a_len < len);
}

static bool naive(enum pfs_op op, const char *pattern, const uint8_t *text, size_t len)
{
	size_t n = strlen(pattern);

	switch (op) {
	case PFS_OP_LIKE:
		return pfs_pattern_matches(PFS_PATTERN_LIKE, pattern, 0, text, len);
	case PFS_OP_GLOB:
		return pfs_pattern_matches(PFS_PATTERN_GLOB, pattern, 0, text, len);
	case PFS_OP_PREFIX:
		return len >= n && memcmp(text, pattern, n) == 0;
	case PFS_OP_SUFFIX:
		return len >= n && memcmp(text + len - n, pattern, n) == 0;
	case PFS_OP_CONTAINS:
		return memmem(text, len, pattern, n) != NULL;
	default:
		return pfs_op_holds(op, compare(text, len, pattern));
	}
}

/* Of letters that the heap has, wildcards, and what counts as some. */
static enum pfs_op any_pattern(char out[16])
{
	enum pfs_op op = ops[rnd(PFS_COUNT(ops))];
	size_t n = rnd(rnd(4) ? 5 : 15);

	for (size_t i = 0; i < n; i++) {
		uint32_t kind = rnd(8);

		if (kind < 5)
			out[i] = "aAb.B"[rnd(5)];
		else
			out[i] = op == PFS_OP_LIKE   ? "%_%\xc3"[rnd(4)]
				 : op == PFS_OP_GLOB ? "*?[]^*\xc3"[rnd(7)]
						     : 'a';
	}
	out[n] = 0;
	return op;
}

/* Takes the place of a column's NULLs and of rows that are not there, too. */
static uint64_t nulls[WORDS], live[WORDS];

static void check_select(const struct pfs_run *run, enum pfs_op op, const char *pattern)
{
	const struct pfs_constant text = {
		.type = PFS_IS_TEXT, .text = pattern, .len = strlen(pattern)};
	const struct pfs_step match[] = {{.op = PFS_OP_COLUMN}, {.op = op, .constant = text}};
	const struct pfs_step equal[] = {
		{.op = PFS_OP_COLUMN}, {.op = PFS_OP_CONSTANT, .constant = text}, {.op = op}};
	const struct pfs_program program = {op < PFS_OP_LIKE ? equal : match,
					    op < PFS_OP_LIKE ? 3 : 2};
	const struct pfs_table_column column = {
		.kind = PFS_KIND_PLACE, .width = 4, .data = places, .nulls = nulls, .heap = &heap};
	const struct pfs_table table = {
		.n_rows = N, .n_columns = 1, .columns = &column, .live = live};
	const struct pfs_source source = {.table = &table};
	struct pfs_rows *rows;

	assert_int_equal(pfs_select(run, &rows, &source, &program), 0);
	for (uint32_t i = 0; i < N; i++) {
		size_t len;
		const uint8_t *in = pfs_heap_text(&heap, places[i], &len);
		bool expected = bit(live, i) && !bit(nulls, i) && naive(op, pattern, in, len);

		if (pfs_rows_has(rows, i) != expected)
			fail_msg("%d '%s' of '%.*s': not %d", op, pattern, (int)len,
				 (const char *)in, expected);
	}
	pfs_rows_free(run, rows);
}

static void check_match(enum pfs_op op, const char *pattern)
{
	struct pfs_text_match match;

	assert_int_equal(pfs_text_match_init(&match, op, pattern, strlen(pattern)), 0);
	for (uint32_t i = 0; i < N; i++) {
		size_t len;
		const uint8_t *in = pfs_heap_text(&heap, places[i], &len);
		bool outside = pfs_text_match_holds_outside(&match, in, len),
		     expected = naive(op, pattern, in, len);

		assert_true(match.rest == PFS_REST_NONE ? outside == expected
							: outside || !expected);
	}
	pfs_text_match_finish(&match);
}

static void test_names(void **state)
{
	struct pfs_run run = {.on = PFS_ENGINE_HOST};
	char pattern[16];

	(void)state;
	random_state = seed;
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 1), 0);
	for (int round = 0; round < 2000; round++) {
		enum pfs_op op = any_pattern(pattern);

		if (round % 50 == 0) {
			fill_heap("aAbB.\xc3\xa4", 24);
			for (size_t w = 0; w < WORDS; w++) {
				nulls[w] = rnd(2) ? rnd64() << rnd(64) : 0;
				live[w] = rnd(2) ? rnd64() : UINT64_MAX;
			}
		}
		check_select(&run, op, pattern);
		if (op == PFS_OP_EQ || op >= PFS_OP_LIKE)
			check_match(op, pattern);
	}
	pfs_operators_close(run.operators);
}

/* A text of no bytes may be none in memory: all are beyond it. */
static void test_empty(void **state)
{
	static const enum pfs_op compared[] = {PFS_OP_GE, PFS_OP_LT};
	struct pfs_run run = {.on = PFS_ENGINE_HOST};
	const struct pfs_table_column column = {.kind = PFS_KIND_PLACE,
						.width = 4,
						.not_null = true,
						.data = places,
						.heap = &heap};
	const struct pfs_table table = {.n_rows = N, .n_columns = 1, .columns = &column};
	const struct pfs_source source = {.table = &table};

	(void)state;
	random_state = seed;
	fill_heap("ab", 24);
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 1), 0);
	for (size_t i = 0; i < PFS_COUNT(compared); i++) {
		const struct pfs_step steps[] = {
			{.op = PFS_OP_COLUMN},
			{.op = PFS_OP_CONSTANT, .constant = {.type = PFS_IS_TEXT}},
			{.op = compared[i]}};
		struct pfs_rows *rows;
		uint64_t n;

		assert_int_equal(pfs_select(&run, &rows, &source,
					    &(struct pfs_program){steps, PFS_COUNT(steps)}),
				 0);
		assert_int_equal(pfs_rows_count(&run, &n, rows), 0);
		assert_int_equal(n, compared[i] == PFS_OP_GE ? N : 0);
		pfs_rows_free(&run, rows);
	}
	pfs_operators_close(run.operators);
}

static int count_poll(void *context)
{
	++*(unsigned *)context;
	return 0;
}

/* A text that does not end as a pattern does is not taken through it, however long that may
 * take. */
static void test_long(void **state)
{
	static char text[20000], pattern[10003];
	static uint8_t room[sizeof(text) + 64];
	unsigned polls = 0;
	struct pfs_run run = {.on = PFS_ENGINE_HOST, .poll = count_poll, .context = &polls};
	uint64_t n = 0;
	uint32_t place = pfs_heap_put(room, &n, memset(text, 'x', sizeof(text)), sizeof(text));
	const struct pfs_heap long_texts = pfs_heap_of(room, n);
	const struct pfs_table_column column = {.kind = PFS_KIND_PLACE,
						.width = 4,
						.not_null = true,
						.data = &place,
						.heap = &long_texts};
	const struct pfs_table table = {.n_rows = 1, .n_columns = 1, .columns = &column};
	const struct pfs_source source = {.table = &table};
	const struct pfs_step steps[] = {
		{.op = PFS_OP_COLUMN},
		{.op = PFS_OP_LIKE,
		 .constant = {.type = PFS_IS_TEXT, .text = pattern, .len = sizeof(pattern) - 1}}};
	struct pfs_rows *rows;

	(void)state;
	for (size_t i = 0; i < sizeof(pattern) - 1; i++)
		pattern[i] = i % 2 ? 'x' : '_';
	pattern[0] = '%';
	pattern[sizeof(pattern) - 2] = 'b';
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 1), 0);
	assert_int_equal(
		pfs_select(&run, &rows, &source, &(struct pfs_program){steps, PFS_COUNT(steps)}),
		0);
	assert_int_equal(pfs_rows_count(&run, &n, rows), 0);
	pfs_rows_free(&run, rows);
	pfs_operators_close(run.operators);
	assert_int_equal(n, 0);
	assert_in_range(polls, 0, 10);
}

static void test_ranges(void **state)
{
	char low[16], high[16];

	(void)state;
	random_state = seed;
	fill_heap("aAbB.", 24);
	for (int round = 0; round < 1000; round++) {
		bool has_low = rnd(4), has_high = rnd(4);
		uint64_t bits[WORDS];
		struct pfs_text_match match;

		(void)any_pattern(low);
		(void)any_pattern(high);
		if (low[0] && !rnd(4)) { /* all that begins so */
			memcpy(high, low, sizeof(high));
			high[strlen(high) - 1]++;
		}
		pfs_text_match_init_range(&match, has_low ? low : NULL, strlen(low),
					  has_high ? high : NULL, strlen(high));
		memset(bits, 0xff, sizeof(bits));
		pfs_text_match_keep(&match, bits, &heap, places, WORDS);
		for (uint32_t i = 0; i < N; i++) {
			size_t len;
			const uint8_t *in = pfs_heap_text(&heap, places[i], &len);
			bool expected = (!has_low || compare(in, len, low) >= 0) &&
					(!has_high || compare(in, len, high) < 0);

			assert_int_equal(bit(bits, i), expected);
			assert_int_equal(pfs_text_match_holds_outside(&match, in, len), expected);
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_ranges),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
