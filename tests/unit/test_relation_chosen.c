/* SPDX-License-Identifier: MIT */
/* Keys that somebody has chosen so that their hashes meet: under the seed that he knows a device
 * gives its table up and the host answers; under another seed they are keys like any. The host's
 * tables go by the seed, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "both_util.h"
#include "gpu/aggregate.h"
#include "gpu/textheap.h"
#include "gpu/textkey.h"
#include "tests/ref/random.h"

#define KNOWN	UINT64_C(0x0123456789abcdef)
#define UNKNOWN UINT64_C(0x8badf00d5eed5eed)
#define ROWS	1000u /* more than a table looks at for one key */
#define PLACES	2048u /* of a table for so many rows */

/* NUMBER and NEXT: a device takes the least of the column away, and adds 1 for keys of a group. */
enum { NAME, NUMBER, NEXT, COLUMNS };

static uint32_t names[ROWS];
static uint64_t numbers[ROWS], nexts[ROWS];
static uint8_t bytes[ROWS * 24];
static struct pfs_heap heap;
static const struct pfs_table_column columns[COLUMNS] = {
	{.kind = PFS_KIND_PLACE, .width = 4, .not_null = true, .data = names, .heap = &heap},
	{.kind = PFS_KIND_INTEGER, .width = 8, .not_null = true, .data = numbers},
	{.kind = PFS_KIND_INTEGER, .width = 8, .not_null = true, .data = nexts},
};
static const struct pfs_table table = {.n_rows = ROWS, .n_columns = COLUMNS, .columns = columns};
static const struct pfs_source source = {.table = &table};

static void choose_names(void)
{
	unsigned long long tried = 0;
	uint64_t at = 0;

	for (uint32_t row = 0; row < ROWS; tried++) {
		char text[24];
		int len = snprintf(text, sizeof(text), "name-%llu", tried);

		if (pfs_textkey_hash(PFS_BINARY, (const uint8_t *)text, (uint32_t)len, KNOWN) %
		    PLACES)
			continue;
		names[row++] = pfs_heap_put(bytes, &at, text, (size_t)len);
	}
	heap = pfs_heap_of(bytes, at);
}

static void choose_numbers(void)
{
	uint64_t state = 1;

	numbers[0] = nexts[0] = 1;
	for (uint32_t row = 1; row < ROWS;) {
		uint64_t number = random_next(&state) >> 3;

		if (pfs_hash_number(number, KNOWN) % PLACES)
			continue;
		numbers[row] = number;
		nexts[row++] = number + 1;
	}
}

/* ---- questions ---- */

static void group_by(struct pfs_run *run, uint16_t column)
{
	const struct pfs_group_key key = {.ref = {0, column}};
	const struct pfs_aggregate count = {.op = PFS_COUNT_ALL};
	struct pfs_tuples *tuples;

	assert_int_equal(pfs_group(run, &tuples, &source, &key, 1, &count, 1), 0);
	assert_int_equal(pfs_tuples_here(run, tuples), 0);
	assert_int_equal(tuples->n, ROWS);
	for (uint32_t i = 0; i < ROWS; i++)
		assert_int_equal(tuples->computed[0].integers[i], 1);
	pfs_tuples_free(run, tuples);
}

static void group_by_names(struct pfs_run *run)
{
	group_by(run, NAME);
}

static void group_by_numbers(struct pfs_run *run)
{
	group_by(run, NUMBER);
}

static void count_different(struct pfs_run *run)
{
	const struct pfs_aggregate count = {.op = PFS_COUNT_DISTINCT, .ref = {0, NEXT}};
	struct pfs_tuples *tuples;

	assert_int_equal(pfs_group(run, &tuples, &source, NULL, 0, &count, 1), 0);
	assert_int_equal(pfs_tuples_here(run, tuples), 0);
	assert_int_equal(tuples->computed[0].integers[0], ROWS);
	pfs_tuples_free(run, tuples);
}

static void join(struct pfs_run *run)
{
	const struct pfs_join_key key = {.left = {0, NUMBER}, .right = {0, NUMBER}};
	const struct pfs_join how = {.keys = &key, .n_keys = 1};
	struct pfs_tuples *tuples;

	assert_int_equal(pfs_join(run, &tuples, &source, &source, &how), 0);
	assert_int_equal(tuples->n, ROWS);
	pfs_tuples_free(run, tuples);
}

/* A device answers all of them, or the host does. */
static void ask(unsigned threads, enum pfs_engine_kind kind, uint64_t seed, bool by_device)
{
	static void (*const questions[])(struct pfs_run *) = {group_by_names, group_by_numbers,
							      count_different, join};
	struct pfs_run run = {.operators = operators_or_skip(kind, threads), .on = kind};
	struct pfs_operator_counts counts;

	pfs_random_use_seed(seed);
	for (size_t i = 0; i < 4; i++) {
		questions[i](&run);
		pfs_operators_count(run.operators, &counts);
		assert_int_equal(counts.device, by_device ? i + 1 : 0);
		assert_int_equal(counts.host, by_device ? 0 : i + 1);
	}
	pfs_operators_close(run.operators);
}

static void run_chosen(unsigned threads, enum pfs_engine_kind kind)
{
	choose_names();
	choose_numbers();
	ask(threads, kind, KNOWN, false);
	ask(threads, kind, UNKNOWN, kind == PFS_ENGINE_CUDA);
}

ON_BOTH(chosen, run_chosen, 2)

/* ---- the host's hashes ---- */

#define MANY                                                                                       \
	100000u /* groups, more than the host puts in order: so they show their hashes' order */

static uint32_t many_names[MANY];
static uint64_t many_numbers[MANY];
static uint8_t many_bytes[MANY * 16];
static struct pfs_heap many_heap;
static const struct pfs_table_column many_columns[] = {
	{.kind = PFS_KIND_PLACE, .width = 4, .data = many_names, .heap = &many_heap},
	{.kind = PFS_KIND_INTEGER, .width = 8, .data = many_numbers},
};
static const struct pfs_table many = {.n_rows = MANY, .n_columns = 2, .columns = many_columns};

static void fill_many(void)
{
	uint64_t at = 0, state = 2;

	for (uint32_t row = 0; row < MANY; row++) {
		char text[16];
		int len = snprintf(text, sizeof(text), "name-%u", row);

		many_names[row] = pfs_heap_put(many_bytes, &at, text, (size_t)len);
		many_numbers[row] = random_next(&state) >> 3;
	}
	many_heap = pfs_heap_of(many_bytes, at);
}

static void list_groups(uint32_t rows[MANY], struct pfs_run *run, uint16_t column, uint64_t seed)
{
	const struct pfs_source all = {.table = &many};
	const struct pfs_group_key key = {.ref = {0, column}};
	struct pfs_tuples *tuples;

	pfs_random_use_seed(seed);
	assert_int_equal(pfs_group(run, &tuples, &all, &key, 1, NULL, 0), 0);
	assert_int_equal(tuples->n, MANY);
	memcpy(rows, tuples->tables[0].rows, MANY * sizeof(*rows));
	pfs_tuples_free(run, tuples);
}

static void host_goes_by_the_seed(void **state PFS_UNUSED)
{
	static uint32_t rows[MANY], again[MANY], other[MANY];
	struct pfs_run run = {.operators = operators_or_skip(PFS_ENGINE_HOST, 1),
			      .on = PFS_ENGINE_HOST};

	fill_many();
	for (uint16_t column = 0; column < 2; column++) {
		list_groups(rows, &run, column, KNOWN);
		list_groups(again, &run, column, KNOWN);
		list_groups(other, &run, column, UNKNOWN);
		assert_memory_equal(rows, again, sizeof(rows));
		assert_memory_not_equal(rows, other, sizeof(rows));
	}
	pfs_operators_close(run.operators);
}

int main(void)
{
	const struct CMUnitTest tests[] = {BOTH(chosen), cmocka_unit_test(host_goes_by_the_seed)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
