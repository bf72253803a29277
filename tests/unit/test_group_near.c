/* SPDX-License-Identifier: MIT */
/* Grouping of many tuples whose groups lie near each other, and come back: beside a plain loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "gpu/aggregate.h"
#include "gpu/relation.h"

#define ROWS	  300000u
#define ELEMENTS  90000u /* more than are grouped by index */
#define PER_GROUP 12u
#define SAMPLED	  16384u /* each sample begins at a multiple of it */

enum { VALUE, BY_WAY, BY_ELEMENT, REAL, NUMBER, N_COLUMNS };

static int64_t values[ROWS];
static uint32_t via[ROWS];
static uint64_t elements[ELEMENTS], numbers[ROWS], live[(ROWS + 63) / 64];
static double reals[ROWS];

static const struct pfs_table_column columns[N_COLUMNS] = {
	[VALUE] = {.kind = PFS_KIND_INTEGER,
		   .width = 8,
		   .is_signed = true,
		   .not_null = true,
		   .data = values},
	[BY_WAY] = {.kind = PFS_KIND_INTEGER,
		    .width = 8,
		    .data = elements,
		    .via = via,
		    .n_elements = ELEMENTS},
	[BY_ELEMENT] = {.kind = PFS_KIND_INTEGER,
			.width = 8,
			.data = elements,
			.via = via,
			.is_by_via = true,
			.n_elements = ELEMENTS},
	[REAL] = {.kind = PFS_KIND_REAL, .width = 8, .not_null = true, .data = reals},
	[NUMBER] = {.kind = PFS_KIND_INTEGER, .width = 8, .not_null = true, .data = numbers},
};
static const struct pfs_table table = {
	.n_rows = ROWS, .n_columns = N_COLUMNS, .columns = columns, .live = live};

/* Which group a row is of: stretches of rows, every second of a group that comes three times, far
 * apart, and the others each of its own; one is of no element. */
static uint32_t group_of(uint32_t row)
{
	uint32_t stretch = row / PER_GROUP;

	if (stretch % 2)
		return (stretch + ROWS / PER_GROUP) * 7919 % ELEMENTS;
	return stretch % (ROWS / PER_GROUP / 3 / 2 * 2) * 7919 % ELEMENTS;
}

static void fill(void)
{
	for (uint32_t i = 0; i < ELEMENTS; i++)
		elements[i] = UINT64_C(3) + (uint64_t)i * 104729;
	for (uint32_t i = 0; i < ROWS; i++) {
		uint32_t group = group_of(i);

		values[i] = (int64_t)i * 31 - 4000000;
		via[i] = group ? group : PFS_NO_ROW;
		reals[i] = group / 2.0;
		numbers[i] = (uint64_t)group << 32;
		live[i / 64] |= (uint64_t)(i % 13 != 5) << i % 64;
	}
}

struct plain {
	int64_t count, sum;
	uint32_t first;
};

static bool is_in(uint32_t row, bool selected)
{
	return (live[row / 64] >> row % 64 & 1) && (!selected || values[row] > 0);
}

static void assert_groups(const struct pfs_tuples *tuples, bool selected)
{
	struct plain *plain = calloc(ELEMENTS, sizeof(*plain));
	uint64_t n = 0;

	assert_non_null(plain);
	for (uint32_t i = 0; i < ROWS; i++) {
		struct plain *of = &plain[group_of(i)];

		if (!is_in(i, selected))
			continue;
		if (!of->count) {
			of->first = i;
			n++;
		}
		of->count++;
		of->sum += values[i];
	}
	assert_int_equal(tuples->n, n);
	for (uint64_t i = 0; i < n; i++) {
		uint32_t row = tuples->tables[0].rows[i];
		struct plain *of = &plain[group_of(row)];

		assert_int_equal(of->first, row);
		assert_int_equal(of->count, tuples->computed[0].integers[i]);
		assert_int_equal(of->sum, tuples->computed[1].integers[i]);
		of->count = 0;
	}
	free(plain);
}

static int group(const struct pfs_run *run, struct pfs_tuples **tuples, uint16_t key, bool selected)
{
	const struct pfs_step steps[] = {
		{.op = PFS_OP_COLUMN, .ref = {0, VALUE}},
		{.op = PFS_OP_CONSTANT, .constant = {.type = PFS_IS_INTEGER, .integer = 0}},
		{.op = PFS_OP_GT},
	};
	const struct pfs_program where = {.steps = steps, .n = PFS_COUNT(steps)};
	const struct pfs_source source = {.table = &table, .where = selected ? &where : NULL};
	const struct pfs_group_key keys[] = {{.ref = {0, key}}};
	const struct pfs_aggregate aggregates[] = {{.op = PFS_COUNT_ALL},
						   {.op = PFS_SUM, .ref = {0, VALUE}}};

	return pfs_group(run, tuples, &source, keys, 1, aggregates, PFS_COUNT(aggregates));
}

static void test_groups(void **state)
{
	struct pfs_run run = {.on = PFS_ENGINE_HOST};
	struct pfs_tuples *tuples;

	(void)state;
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 3), 0);
	for (unsigned key = BY_WAY; key <= NUMBER; key++) {
		for (unsigned selected = 0; selected < 2; selected++) {
			assert_int_equal(group(&run, &tuples, (uint16_t)key, selected), 0);
			assert_groups(tuples, selected);
			pfs_tuples_free(&run, tuples);
		}
	}
	pfs_operators_close(run.operators);
}

/* Rows and their parts: the same key by way of rows of a batch. */
static void test_batch(void **state)
{
	const struct pfs_group_key keys[] = {{.ref = {0, BY_WAY}}};
	const struct pfs_aggregate aggregates[] = {{.op = PFS_COUNT_ALL},
						   {.op = PFS_SUM, .ref = {0, VALUE}}};
	struct pfs_run run = {.on = PFS_ENGINE_HOST};
	struct pfs_source source = {.table = &table};
	struct pfs_tuples *tuples;
	struct pfs_rows *rows;

	(void)state;
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 2), 0);
	assert_int_equal(pfs_select(&run, &rows, &source, NULL), 0);
	assert_int_equal(pfs_tuples_of_rows(&run, &source.tuples, &table, rows), 0);
	source.table = NULL;
	assert_int_equal(
		pfs_group(&run, &tuples, &source, keys, 1, aggregates, PFS_COUNT(aggregates)), 0);
	assert_groups(tuples, false);
	pfs_tuples_free(&run, tuples);
	pfs_tuples_free(&run, source.tuples);
	pfs_rows_free(&run, rows);
	pfs_operators_close(run.operators);
}

/* ---- what ends it ---- */

struct allowance {
	int64_t charged, most;
	int64_t peak; /* of charged; exact with one thread */
};

static int charge(void *context, int64_t bytes)
{
	struct allowance *a = context;
	int64_t now = __atomic_add_fetch(&a->charged, bytes, __ATOMIC_RELAXED);

	if (bytes <= 0 || now <= a->most) {
		if (now > __atomic_load_n(&a->peak, __ATOMIC_RELAXED))
			__atomic_store_n(&a->peak, now, __ATOMIC_RELAXED);
		return 0;
	}
	(void)__atomic_sub_fetch(&a->charged, bytes, __ATOMIC_RELAXED);
	return -ENOMEM;
}

static void test_memory(void **state)
{
	struct allowance a = {.most = INT64_MAX};
	struct pfs_run run = {.on = PFS_ENGINE_HOST, .charge = charge, .context = &a};
	struct pfs_tuples *tuples;
	int error = -ENOMEM;

	(void)state;
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 2), 0);
	for (a.most = 4096; error == -ENOMEM; a.most *= 2) {
		error = group(&run, &tuples, BY_WAY, true);
		assert_true(error == 0 || error == -ENOMEM);
		if (!error)
			pfs_tuples_free(&run, tuples);
		assert_int_equal(a.charged, 0);
	}
	pfs_operators_close(run.operators);
}

/* ---- many groups ---- */

struct polls {
	struct allowance allowance; /* first, as charge has it */
	unsigned n, fails_at;	    /* 0: never */
};

static int poll_until(void *context)
{
	struct polls *polls = context;

	return ++polls->n == polls->fails_at ? -EINTR : PFS_RUN_PAUSE;
}

static int pause_run(void *context PFS_UNUSED)
{
	return 0;
}

/* Different values of each group: more than are sorted by their first tuples. */
static int count_different(struct polls *polls, struct pfs_tuples **tuples,
			   struct pfs_operators *operators)
{
	const struct pfs_run run = {.operators = operators,
				    .on = PFS_ENGINE_HOST,
				    .poll = poll_until,
				    .pause = pause_run,
				    .charge = charge,
				    .context = polls};
	const struct pfs_source source = {.table = &table};
	const struct pfs_group_key keys[] = {{.ref = {0, BY_WAY}}};
	const struct pfs_aggregate aggregates[] = {{.op = PFS_COUNT_DISTINCT, .ref = {0, VALUE}}};

	return pfs_group(&run, tuples, &source, keys, 1, aggregates, PFS_COUNT(aggregates));
}

static void assert_counts(const struct pfs_tuples *tuples)
{
	int64_t *count = calloc(ELEMENTS, sizeof(*count));

	assert_non_null(count);
	for (uint32_t i = 0; i < ROWS; i++)
		count[group_of(i)] += is_in(i, false);
	for (uint64_t i = 0; i < tuples->n; i++)
		assert_int_equal(tuples->computed[0].integers[i],
				 count[group_of(tuples->tables[0].rows[i])]);
	free(count);
}

/* Whichever poll ends it, nothing is left. */
static void test_polls(void **state)
{
	const unsigned step = getenv("PFS_TEST_SMALL") ? 16 : 1;
	struct polls polls = {.allowance.most = INT64_MAX};
	struct pfs_operators *operators;
	struct pfs_tuples *tuples;
	int error = -EINTR;

	(void)state;
	assert_int_equal(pfs_operators_open(&operators, PFS_ENGINE_HOST, 1), 0);
	for (unsigned at = 1; error == -EINTR; at += step) {
		polls.n = 0;
		polls.fails_at = at;
		error = count_different(&polls, &tuples, operators);
		assert_true(error == 0 || error == -EINTR);
		if (error)
			assert_int_equal(polls.allowance.charged, 0);
	}
	assert_counts(tuples);
	polls.fails_at = 0;
	pfs_tuples_free(
		&(struct pfs_run){.operators = operators, .charge = charge, .context = &polls},
		tuples);
	assert_int_equal(polls.allowance.charged, 0);
	pfs_operators_close(operators);
}

/* ---- many groups far from each other ---- */

#define SPARSE_GROUPS 70000u /* more than are sorted by their first tuples */
#define SPARSE_STEP   60u    /* rows for each: so many that their positions are not sorted */

static uint32_t sparse_values[SPARSE_GROUPS * SPARSE_STEP];
static uint8_t sparse_keys[SPARSE_GROUPS * SPARSE_STEP];
static uint64_t sparse_live[PFS_COUNT(sparse_values) / 64 + 1];

/* Returns the peak of the memory for counting as many different values, one in `step` rows, of the
 * only group, which has a key or none. */
static int64_t peak_of_count(struct pfs_operators *operators, uint32_t step, size_t n_keys)
{
	struct allowance a = {.most = INT64_MAX};
	const struct pfs_run run = {
		.operators = operators, .on = PFS_ENGINE_HOST, .charge = charge, .context = &a};
	const struct pfs_table_column of_sparse[] = {
		{.kind = PFS_KIND_INTEGER, .width = 4, .not_null = true, .data = sparse_values},
		{.kind = PFS_KIND_INTEGER, .width = 1, .not_null = true, .data = sparse_keys}};
	const struct pfs_table sparse = {.n_rows = SPARSE_GROUPS * step,
					 .n_columns = 2,
					 .columns = of_sparse,
					 .live = sparse_live};
	const struct pfs_group_key key = {.ref = {0, 1}};
	const struct pfs_source source = {.table = &sparse};
	const struct pfs_aggregate aggregate = {.op = PFS_COUNT_DISTINCT, .ref = {0, 0}};
	struct pfs_tuples *tuples;

	memset(sparse_live, 0, sizeof(sparse_live));
	for (uint32_t i = 0; i < sparse.n_rows; i++) {
		sparse_values[i] = i;
		sparse_live[i / 64] |= (uint64_t)(i % step == 0) << i % 64;
	}
	assert_int_equal(pfs_group(&run, &tuples, &source, &key, n_keys, &aggregate, 1), 0);
	assert_int_equal(tuples->computed[0].integers[0], SPARSE_GROUPS);
	pfs_tuples_free(&run, tuples);
	assert_int_equal(a.charged, 0);
	return a.peak;
}

/* Groups whose first tuples are far from each other take no more memory than sorting them would,
 * and without keys they are not sorted. What their tuples were distributed into is given back
 * before all groups come into one table. */
static void test_sparse(void **state)
{
	const int64_t sorting = (int64_t)SPARSE_GROUPS * 32;
	struct pfs_operators *operators;
	int64_t dense, sparse;

	(void)state;
	assert_int_equal(pfs_operators_open(&operators, PFS_ENGINE_HOST, 1), 0);
	dense = peak_of_count(operators, 1, 1);
	sparse = peak_of_count(operators, SPARSE_STEP, 1);
	assert_in_range(dense, 0, (int64_t)SPARSE_GROUPS * 44);
	assert_in_range(sparse, 0, dense + sorting);
	assert_in_range(peak_of_count(operators, SPARSE_STEP, 0), 0, sparse);
	pfs_operators_close(operators);
}

/* What is counted and summed in group i of misleading rows, of which `expected` are in it. */
static void assert_aggregates(const struct pfs_tuples *tuples, uint64_t i, int64_t expected)
{
	const struct pfs_vector *sums = &tuples->computed[3];
	uint32_t row = tuples->tables[0].rows[i];
	bool is_null = pfs_vector_is_null(sums, i);

	assert_int_equal(tuples->computed[0].integers[i], expected);
	assert_int_equal(tuples->computed[1].integers[i], expected * (int64_t)numbers[row]);
	assert_int_equal(tuples->computed[4].integers[i], expected);
	if (expected > 1)
		return;
	assert_int_equal(tuples->computed[2].integers[i], !is_null);
	assert_int_equal(is_null, via[row] == PFS_NO_ROW);
	assert_int_equal(sums->integers[i], is_null ? 0 : elements[via[row]]);
}

/* Wherever a sample looks at a large table, tuples of a group lie beside each other, and nowhere
 * else. */
static void test_misleading(void **state)
{
	const struct pfs_table_column both[] = {columns[NUMBER], columns[BY_WAY]};
	const struct pfs_table large = {.n_rows = ROWS, .n_columns = 2, .columns = both};
	const struct pfs_group_key keys[] = {{.ref = {0, 0}}};
	const struct pfs_aggregate aggregates[] = {{.op = PFS_COUNT_ALL},
						   {.op = PFS_SUM, .ref = {0, 0}},
						   {.op = PFS_COUNT, .ref = {0, 1}},
						   {.op = PFS_SUM, .ref = {0, 1}},
						   {.op = PFS_COUNT_ALL}};
	const struct pfs_step steps[] = {
		{.op = PFS_OP_COLUMN, .ref = {0, 0}},
		{.op = PFS_OP_CONSTANT, .constant = {.type = PFS_IS_INTEGER, .integer = -1}},
		{.op = PFS_OP_NE},
	};
	const struct pfs_program where = {.steps = steps, .n = PFS_COUNT(steps)};
	struct allowance a = {.most = INT64_MAX};
	struct pfs_run run = {.on = PFS_ENGINE_HOST, .charge = charge, .context = &a};
	uint64_t n = 0;

	(void)state;
	for (uint32_t i = 0; i < ROWS; i++) {
		bool is_alone = i % SAMPLED >= SAMPLED / 3;

		numbers[i] = (uint64_t)(is_alone ? i : i / SAMPLED) << 32;
		n += is_alone || i % SAMPLED == 0;
	}
	for (unsigned workers = 1; workers < 4; workers++) {
		for (unsigned selected = 0; selected < 2; selected++) {
			struct pfs_source source = {.table = &large,
						    .where = selected ? &where : NULL};
			struct pfs_tuples *tuples;

			assert_int_equal(
				pfs_operators_open(&run.operators, PFS_ENGINE_HOST, workers), 0);
			assert_int_equal(pfs_group(&run, &tuples, &source, keys, 1, aggregates,
						   PFS_COUNT(aggregates)),
					 0);
			assert_int_equal(tuples->n, n);
			for (uint64_t i = 0; i < n; i++) {
				uint32_t row = tuples->tables[0].rows[i];

				assert_aggregates(tuples, i,
						  row % SAMPLED ? 1
								: PFS_MIN(SAMPLED / 3, ROWS - row));
			}
			pfs_tuples_free(&run, tuples);
			assert_int_equal(a.charged, 0);
			pfs_operators_close(run.operators);
		}
	}
	fill();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups), cmocka_unit_test(test_batch),
		cmocka_unit_test(test_memory), cmocka_unit_test(test_polls),
		cmocka_unit_test(test_sparse), cmocka_unit_test(test_misleading),
	};

	fill();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
