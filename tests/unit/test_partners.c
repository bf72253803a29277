/* SPDX-License-Identifier: MIT */
/* Rows that have partners: elements of one array, by way of another or as they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpu/relation.h"
#include "tests/ref/random.h"

#define N 70001u /* several threads' pieces */

static uint64_t seed = 7, numbers[N], live[N / 64 + 1], nulls[N / 64 + 1];
static uint32_t parents[N];

static struct pfs_table_column columns[] = {
	{.kind = PFS_KIND_INTEGER, .width = 8, .data = numbers, .unique = true, .not_null = true},
	{.kind = PFS_KIND_INTEGER,
	 .width = 8,
	 .data = numbers,
	 .via = parents,
	 .n_elements = N,
	 .is_by_via = true},
	{.kind = PFS_KIND_INTEGER, .width = 8, .data = numbers, .nulls = nulls},
};
static const struct pfs_table table = {
	.n_rows = N, .n_columns = PFS_COUNT(columns), .columns = columns, .live = live};

static bool is_live(uint32_t row)
{
	return live[row / 64] >> row % 64 & 1;
}

static void fill(void)
{
	for (uint32_t i = 0; i < N; i++) {
		numbers[i] = 3 * (uint64_t)i + 2;
		parents[i] = random_below(&seed, 50) ? random_below(&seed, i + 1) / 64 : PFS_NO_ROW;
	}
	for (uint32_t i = 0; i < PFS_COUNT(live); i++) {
		live[i] = random_next(&seed);
		live[i] |= random_next(&seed);
	}
	live[N / 64] &= (UINT64_C(1) << N % 64) - 1;
}

/* Compares the set with what the right side's rows from..to that are live have. */
static void check(struct pfs_run *run, struct pfs_source *right, uint16_t column, uint32_t from,
		  uint32_t to)
{
	const struct pfs_source left = {.table = &table};
	const struct pfs_join_key key = {.left = {0, 0}, .right = {0, column}};
	uint8_t *wanted = calloc(N, 1);
	struct pfs_rows *rows;

	assert_non_null(wanted);
	for (uint32_t i = from; i < to; i++) {
		uint32_t element = column ? parents[i] : i;

		if (is_live(i) && element != PFS_NO_ROW)
			wanted[element] = 1;
	}
	assert_int_equal(pfs_partners(run, &rows, &left, right, &key), 0);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(pfs_rows_has(rows, i), wanted[i]);
	pfs_rows_free(run, rows);
	free(wanted);
}

static void marked(void **state)
{
	struct pfs_run run = {.on = PFS_ENGINE_HOST};

	(void)state;
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 3), 0);
	for (uint16_t round = 0; round < 8; round++) {
		uint32_t from = round < 4 ? 0 : random_below(&seed, N), to = N;
		struct pfs_source right = {.table = &table, .from = from, .to = to}, batch = {0};

		fill();
		check(&run, &right, round % 2, from, to);
		assert_int_equal(pfs_compute(&run, &batch.tuples, &right, NULL, 0), 0);
		check(&run, &batch, round % 2, from, to);
		pfs_tuples_free(&run, batch.tuples);
	}
	pfs_operators_close(run.operators);
}

/* Another array, or values that may repeat or be NULL. */
static void refused(void **state)
{
	const struct pfs_source source = {.table = &table};
	struct pfs_join_key key = {.left = {0, 0}, .right = {0, 2}};
	struct pfs_run run = {.on = PFS_ENGINE_HOST};
	struct pfs_rows *rows;

	(void)state;
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 1), 0);
	assert_int_equal(pfs_partners(&run, &rows, &source, &source, &key), -EOPNOTSUPP);
	key.left.column = 1;
	key.right.column = 0;
	assert_int_equal(pfs_partners(&run, &rows, &source, &source, &key), -EOPNOTSUPP);
	assert_null(rows);
	pfs_operators_close(run.operators);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marked),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
