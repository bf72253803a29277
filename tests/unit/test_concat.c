/* SPDX-License-Identifier: MIT */
/* GROUP_CONCAT: lists that threads have made become one, no text is as long as the limit, and long
 * texts are made in parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "both_util.h"
#include "gpu/host/concat.h"
#include "tests/ref/random.h"

#define MOST   200u
#define ROWS   100000u
#define DIGITS 5u

static uint64_t seeded = 0x5eed0014;

/* ---- lists ---- */

struct list {
	uint32_t at, last;
	int64_t count;
	struct pfs_fold_table table;
};

static void begin_list(struct list *list)
{
	*list = (struct list){.count = 0};
	list->table.at = &list->at;
	list->table.last = &list->last;
	list->table.count = &list->count;
}

/* Two lists of positions below n, which are in the list that `is_other` says. */
static void merge(const bool *is_other, const bool *is_there, uint32_t n)
{
	uint32_t next[MOST], at, found = 0;
	const struct pfs_fold fold = {.next = next, .n_next = n};
	struct list into, other;

	begin_list(&into);
	begin_list(&other);
	for (uint32_t i = 0; i < n; i++) {
		if (is_there[i])
			pfs_concat_add(&fold, is_other[i] ? &other.table : &into.table, 0, i);
	}
	if (other.count == 0)
		return;
	pfs_concat_merge(&fold, &into.table, 0, &other.table, 0);
	at = into.at;
	for (uint32_t i = 0; i < n; i++) {
		if (!is_there[i])
			continue;
		assert_int_equal(at, i);
		found++;
		if (at == into.last)
			break;
		at = next[at];
	}
	assert_int_equal(found, into.count);
	for (uint32_t i = into.last + 1; i < n; i++)
		assert_false(is_there[i]);
}

/* By turns, one behind the other, one inside of the other, and one alone. */
static void lists(void **state)
{
	bool is_other[MOST], is_there[MOST];

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		uint32_t n = 1 + random_below(&seeded, MOST), a = random_below(&seeded, n + 1);
		uint32_t b = random_below(&seeded, n + 1), share = 1 + random_below(&seeded, 5);

		for (uint32_t i = 0; i < n; i++) {
			is_there[i] = random_below(&seeded, share) == 0;
			is_other[i] = round % 3 == 0   ? random_below(&seeded, 2)
				      : round % 3 == 1 ? (i < a) == (round % 2 == 0)
						       : (i < a) != (i < b);
		}
		merge(is_other, is_there, n);
	}
}

/* ---- the limit ---- */

static uint32_t numbers[ROWS];
static const struct pfs_table_column columns[] = {
	{.kind = PFS_KIND_INTEGER, .width = 4, .not_null = true, .base = 10000, .data = numbers}};
static const struct pfs_table table = {.n_rows = ROWS, .n_columns = 1, .columns = columns};

/* The numbers of a table's rows, each of DIGITS digits, behind each other with a comma between. */
static void limit(void **state)
{
	struct pfs_run run = {.on = PFS_ENGINE_HOST,
			      .operators = operators_or_skip(PFS_ENGINE_HOST, 4)};
	const uint64_t size = (uint64_t)ROWS * (DIGITS + 1) - 1;
	const struct pfs_source source = {.table = &table, .to = ROWS};

	(void)state;
	for (uint32_t i = 0; i < ROWS; i++)
		numbers[i] = random_below(&seeded, 90000);
	for (uint64_t most = size - 1; most <= size + 1; most++) {
		struct pfs_texts texts = {.limit = most};
		const struct pfs_aggregate aggregate = {
			.op = PFS_GROUP_CONCAT,
			.separator = {.type = PFS_IS_TEXT, .text = ",", .len = 1},
			.texts = &texts};
		struct pfs_tuples *tuples;
		int error = pfs_group(&run, &tuples, &source, NULL, 0, &aggregate, 1);
		const char *text;
		size_t len;

		assert_int_equal(error, most > size ? 0 : -EOPNOTSUPP);
		if (error)
			continue;
		text = (const char *)pfs_vector_text(&tuples->computed[0], 0, &len);
		assert_int_equal(len, size);
		for (uint32_t i = 0; i < ROWS; i++, text += DIGITS + 1) {
			char digits[16];

			(void)snprintf(digits, sizeof(digits), "%u", numbers[i] + 10000);
			assert_memory_equal(text, digits, DIGITS);
		}
		pfs_tuples_free(&run, tuples);
		pfs_texts_free(&run, &texts);
	}
	pfs_operators_close(run.operators);
}

/* ---- groups of all sizes ---- */

/* Tuples of each group; those of the last one are all NULL. */
static const uint32_t sizes[] = {1, 8191, 8192, 8193, 2, 16384, 40000, 5, 3};
#define GROUPS PFS_COUNT(sizes)

static uint8_t keys[ROWS];
static uint64_t nulls[ROWS / 64 + 1];

/* Gives the tuples to groups by chance; returns how many there are. */
static uint32_t deal(void)
{
	uint32_t n = 0;

	for (uint32_t group = 0; group < GROUPS; group++) {
		for (uint32_t i = 0; i < sizes[group]; i++) {
			uint32_t at = random_below(&seeded, n + 1);

			keys[n] = keys[at];
			keys[at] = (uint8_t)group;
			numbers[n++] = random_below(&seeded, 90000);
		}
	}
	for (uint32_t i = 0; i < n; i++)
		nulls[i / 64] |= (uint64_t)(keys[i] == GROUPS - 1) << i % 64;
	return n;
}

static void check_group(const struct pfs_vector *texts, uint64_t result, uint8_t key, uint32_t n)
{
	size_t len;
	const char *text = (const char *)pfs_vector_text(texts, result, &len), *at = text;

	for (uint32_t i = 0; i < n; i++) {
		char digits[16];

		if (keys[i] != key)
			continue;
		(void)snprintf(digits, sizeof(digits), "%s%u", at > text ? ", " : "",
			       numbers[i] + 10000);
		assert_true((size_t)(text + len - at) >= strlen(digits));
		assert_memory_equal(at, digits, strlen(digits));
		at += strlen(digits);
	}
	assert_ptr_equal(at, text + len);
}

static void groups(void **state)
{
	struct pfs_run run = {.on = PFS_ENGINE_HOST,
			      .operators = operators_or_skip(PFS_ENGINE_HOST, 4)};
	const struct pfs_table_column both[] = {
		{.kind = PFS_KIND_INTEGER,
		 .width = 4,
		 .nulls = nulls,
		 .base = 10000,
		 .data = numbers},
		{.kind = PFS_KIND_INTEGER, .width = 1, .not_null = true, .data = keys}};
	const uint32_t n = deal();
	const struct pfs_table dealt = {.n_rows = n, .n_columns = 2, .columns = both};
	const struct pfs_group_key key = {.ref = {0, 1}};
	struct pfs_texts texts = {.limit = UINT32_MAX};
	const struct pfs_aggregate aggregate = {
		.op = PFS_GROUP_CONCAT,
		.separator = {.type = PFS_IS_TEXT, .text = ", ", .len = 2},
		.texts = &texts};
	const struct pfs_source source = {.table = &dealt, .to = n};
	struct pfs_tuples *tuples;
	struct pfs_vector of;

	(void)state;
	assert_int_equal(pfs_group(&run, &tuples, &source, &key, 1, &aggregate, 1), 0);
	assert_int_equal(tuples->n, GROUPS);
	assert_int_equal(pfs_gather(&run, &of, &(struct pfs_source){.tuples = tuples}, key.ref), 0);
	for (uint64_t i = 0; i < GROUPS; i++) {
		bool is_null = pfs_vector_is_null(&tuples->computed[0], i);

		assert_int_equal(is_null, of.integers[i] == GROUPS - 1);
		if (!is_null)
			check_group(&tuples->computed[0], i, (uint8_t)of.integers[i], n);
	}
	pfs_vector_free(&run, &of);
	pfs_tuples_free(&run, tuples);
	pfs_texts_free(&run, &texts);
	pfs_operators_close(run.operators);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(lists), cmocka_unit_test(limit),
					   cmocka_unit_test(groups)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
