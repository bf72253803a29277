/* SPDX-License-Identifier: MIT */
/* Sorting where the numbers by which values are sorted first do not tell all: NULLs that come last,
 * mixed numbers, texts that end in NUL; and the first of many rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "gpu/engine_impl.h"

#define N	20000u
#define N_NULLS 10240u /* the first ones: more than a thread's candidates */
#define LIMIT	2000u

static int start(void **state)
{
	struct pfs_run *run = calloc(1, sizeof(*run));

	assert_non_null(run);
	run->on = PFS_ENGINE_HOST;
	*state = run;
	return pfs_operators_open(&run->operators, PFS_ENGINE_HOST, 1);
}

static int finish(void **state)
{
	struct pfs_run *run = *state;

	pfs_operators_close(run->operators);
	free(run);
	return 0;
}

/* The first of many rows, where NULLs come first in the table and last in the order. */
static void check_nulls_last(const struct pfs_run *run, struct pfs_table_column column,
			     bool descending)
{
	static uint64_t nulls[N / 64 + 1];
	const struct pfs_table table = {.n_rows = N, .n_columns = 1, .columns = &column};
	const struct pfs_source source = {.table = &table};
	const struct pfs_sort_key key = {.descending = descending, .nulls_last = true};
	struct pfs_tuples *sorted;

	memset(nulls, 0xff, N_NULLS / 8);
	column.nulls = nulls;
	assert_int_equal(pfs_sort(run, &sorted, &source, &key, 1, 0, LIMIT), 0);
	assert_int_equal(sorted->n, LIMIT);
	for (uint32_t i = 0; i < LIMIT; i++)
		assert_int_equal(sorted->tables->rows[i], N_NULLS + i);
	pfs_tuples_free(run, sorted);
}

/* A value that comes last of all comes before a NULL. */
static void the_last_values_come_before_nulls(void **state)
{
	static const uint64_t offset[] = {0, 1, 2};
	static const struct pfs_dictionary texts = {
		.bytes = (const uint8_t *)"ab", .offset = offset, .n = 2};
	static int64_t greatest[N], least[N];
	static uint32_t codes[N];

	for (uint32_t i = 0; i < N; i++) {
		greatest[i] = INT64_MAX;
		least[i] = INT64_MIN;
	}
	check_nulls_last(*state, (struct pfs_table_column){
		.kind = PFS_KIND_INTEGER, .width = 8, .is_signed = true, .data = greatest}, false);
	check_nulls_last(*state, (struct pfs_table_column){
		.kind = PFS_KIND_INTEGER, .width = 8, .is_signed = true, .data = least}, true);
	check_nulls_last(*state, (struct pfs_table_column){
		.kind = PFS_KIND_CODE, .width = 4, .data = codes, .dictionary = &texts}, true);
}

#define N_MIXED 1000u /* more than are sorted by comparing alone */

static long double mixed_value(const struct pfs_vector *v, uint32_t i)
{
	return v->is_real[i / 64] >> i % 64 & 1 ? (long double)v->reals[i]
						: (long double)v->integers[i];
}

/* Integers that are the same as reals, or differ by less than reals tell. */
static void mixed_numbers_are_compared_exactly(void **state)
{
	static const int64_t integers[] = {INT64_C(1) << 53, (INT64_C(1) << 53) + 1, INT64_MAX,
					   INT64_MAX - 1};
	static const double reals[] = {9007199254740992.0, 9007199254740994.0,
				       9223372036854775808.0, -0.0};
	const struct pfs_run *run = *state;
	struct pfs_vector v = {.kind = PFS_KIND_NUMBER};
	struct pfs_tuples *mixed, *sorted;
	const struct pfs_sort_key key = {.ref = {PFS_COMPUTED, 0}};
	struct pfs_source source = {.table = NULL};

	assert_int_equal(pfs_vector_make(run, &v, PFS_KIND_NUMBER, N_MIXED), 0);
	assert_int_equal(pfs_vector_make_bits(run, &v.is_real, N_MIXED), 0);
	for (uint32_t i = 0; i < N_MIXED; i++) {
		uint32_t random = i * 2654435761u >> 16;

		v.is_real[i / 64] |= (uint64_t)(random & 1) << i % 64;
		if (random & 1)
			v.reals[i] = reals[random / 2 % PFS_COUNT(reals)];
		else
			v.integers[i] = integers[random / 2 % PFS_COUNT(integers)];
	}
	assert_int_equal(pfs_tuples_of_vectors(run, &mixed, N_MIXED, &v, 1), 0);
	source.tuples = mixed;
	assert_int_equal(pfs_sort(run, &sorted, &source, &key, 1, 0, UINT64_MAX), 0);
	assert_int_equal(sorted->n, N_MIXED);
	for (uint32_t i = 1; i < N_MIXED; i++)
		assert_true(mixed_value(&sorted->computed[0], i - 1) <=
			    mixed_value(&sorted->computed[0], i));
	pfs_tuples_free(run, sorted);
	pfs_tuples_free(run, mixed);
}

/* "a" comes before "a" and a NUL: fewer than eight bytes say all of a text only with its length. */
static void a_nul_at_the_end_counts(void **state)
{
	static const uint8_t bytes[64] = {1, 'a', 2, 'a', 0, 0, 8, 'a', 0,
					  0, 0,	  0, 0,	  0, 0, 7, 'a'};
	static const uint32_t in_order[] = {5, 0, 2, 15, 6}; /* places */
	static uint32_t places[N_MIXED];
	const struct pfs_heap heap = {.bytes = bytes, .size = sizeof(bytes), .length_size = 1};
	const struct pfs_table_column column = {.kind = PFS_KIND_PLACE,
						.width = 4,
						.not_null = true,
						.data = places,
						.heap = &heap};
	const struct pfs_table table = {.n_rows = N_MIXED, .n_columns = 1, .columns = &column};
	const struct pfs_source source = {.table = &table};
	const struct pfs_sort_key key = {.collation = PFS_BINARY};
	struct pfs_tuples *sorted;

	for (uint32_t i = 0; i < N_MIXED; i++)
		places[i] = in_order[i * 7 % PFS_COUNT(in_order)];
	assert_int_equal(pfs_sort(*state, &sorted, &source, &key, 1, 0, UINT64_MAX), 0);
	for (uint32_t i = 0; i < N_MIXED; i++)
		assert_int_equal(places[sorted->tables->rows[i]],
				 in_order[i / (N_MIXED / PFS_COUNT(in_order))]);
	pfs_tuples_free(*state, sorted);
}

#define N_MANY 200001u /* several threads' pieces, and more than candidates are kept of */

/* The first key has few values, or others in each row, or is most often the same or NULL. */
static void fill_many(int64_t *first, int64_t *second, uint64_t *nulls, unsigned which)
{
	memset(nulls, 0, (N_MANY / 64 + 1) * sizeof(*nulls));
	for (uint32_t i = 0; i < N_MANY; i++) {
		uint64_t random = (i + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);

		first[i] = (int64_t)(which == 0	  ? random >> 61
				     : which == 1 ? random
				     : which == 2 ? random >> 34
						  : (uint64_t)(random >> 50 == 5));
		second[i] = (int64_t)(random * random >> 3);
		nulls[i / 64] |= (uint64_t)(which == 3 && i % 3 == 0) << i % 64;
	}
}

/* The first rows by two keys are those of all rows by them, how many so ever. */
static void a_limit_of_many_leaves_the_first(void **state)
{
	static const uint64_t limits[] = {1, 65537, 70000, 120000, N_MANY - 1};
	static int64_t first[N_MANY], second[N_MANY];
	static uint64_t nulls[N_MANY / 64 + 1];
	const struct pfs_table_column columns[] = {
		{.kind = PFS_KIND_INTEGER,
		 .width = 8,
		 .is_signed = true,
		 .data = first,
		 .nulls = nulls},
		{.kind = PFS_KIND_INTEGER, .width = 8, .is_signed = true, .data = second},
	};
	const struct pfs_table table = {.n_rows = N_MANY, .n_columns = 2, .columns = columns};
	const struct pfs_source source = {.table = &table};
	struct pfs_run run = {.on = PFS_ENGINE_HOST};

	(void)state;
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 3), 0);
	for (unsigned i = 0; i < 4 * 4 * PFS_COUNT(limits); i++) {
		const struct pfs_sort_key keys[] = {
			{.ref = {0, 0}, .descending = i & 1, .nulls_last = i & 2},
			{.ref = {0, 1}, .descending = i & 2},
		};
		uint64_t limit = limits[i / 16], offset = i % 3 * 10;
		struct pfs_tuples *all, *some;

		fill_many(first, second, nulls, i / 4 % 4);
		assert_int_equal(pfs_sort(&run, &all, &source, keys, 2, 0, UINT64_MAX), 0);
		assert_int_equal(pfs_sort(&run, &some, &source, keys, 2, offset, limit), 0);
		assert_int_equal(some->n, PFS_MIN(limit, N_MANY - offset));
		assert_memory_equal(some->tables->rows, all->tables->rows + offset,
				    some->n * sizeof(*some->tables->rows));
		pfs_tuples_free(&run, some);
		pfs_tuples_free(&run, all);
	}
	pfs_operators_close(run.operators);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_values_come_before_nulls),
		cmocka_unit_test(mixed_numbers_are_compared_exactly),
		cmocka_unit_test(a_nul_at_the_end_counts),
		cmocka_unit_test(a_limit_of_many_leaves_the_first),
	};

	return cmocka_run_group_tests(tests, start, finish);
}
