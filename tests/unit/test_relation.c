/* SPDX-License-Identifier: MIT */
/* The relational operators of every engine over random tables, beside SQLite.  PFS_LONG=1: many
 * more; PFS_SEED=N: that one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/checked.h"
#include "gpu/aggregate.h"
#include "both_util.h"
#include "tests/ref/relation_met.h"

static const uint32_t sizes[] = {0, 1, 2, 63, 64, 100, 1023, 1024, 1025, 4095, 4096, 4097};

static unsigned chosen(unsigned usual, unsigned small, unsigned in_long_mode)
{
	const char *word = getenv("PFS_LONG");

	if (word && *word == '1')
		return in_long_mode;
	return getenv("PFS_TEST_SMALL") ? small : usual;
}

static unsigned rounds_of(uint32_t n)
{
	unsigned base = chosen(24, 6, 1200);

	return n < 200 ? base * 2 : base;
}

static void run_cases(void (*run_case)(struct ref_world *), uint32_t most,
		      enum pfs_engine_kind kind)
{
	const char *seed_text = getenv("PFS_SEED");
	uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0) : 20261122;
	struct pfs_operators *operators = operators_or_skip(kind, 3);
	struct ref_world w;

	print_message("seed %llu\n", (unsigned long long)seed);
	ref_open(&w, operators, kind, seed);
	for (size_t i = 0; i < PFS_COUNT(sizes); i++) {
		uint32_t n = PFS_MIN(sizes[i], most);

		for (unsigned round = 0; round < rounds_of(n); round++) {
			if (round % 6 == 0)
				ref_fill(&w, n, PFS_MIN(1 + ref_below(&w, 150), most));
			run_case(&w);
		}
	}
	ref_close(&w);
	pfs_operators_close(operators);
}

static bool has_device(void)
{
	struct pfs_operators *operators;
	int error = pfs_operators_open(&operators, PFS_ENGINE_CUDA, 1);

	pfs_operators_close(operators);
	return !error;
}

/* As many rows as several threads, partitions and parts of a sort take. */
static void large(void **state)
{
	static void (*const cases[])(struct ref_world *) = {ref_case_select, ref_case_compute,
							    ref_case_sort,   ref_case_group,
							    ref_case_join,   ref_case_index};
	unsigned rounds = chosen(3, 1, 60);
	struct pfs_operators *operators;
	struct ref_world w;

	(void)state;
	assert_int_equal(pfs_operators_open(&operators, PFS_ENGINE_HOST, 3), 0);
	ref_open(&w, operators, PFS_ENGINE_HOST, 42);
	for (unsigned round = 0; round < rounds; round++) {
		ref_fill(&w, 66000 + ref_below(&w, 3000), 12);
		for (unsigned i = 0; i < 2 * PFS_COUNT(cases); i++)
			cases[i / 2](&w);
	}
	/* So long that every thread has its share, however late it wakes. */
	ref_fill(&w, chosen(400000, 70000, 400000), 12);
	for (unsigned i = 0; i < chosen(6, 1, 60); i++)
		ref_case_group(&w);
	ref_close(&w);
	pfs_operators_close(operators);
}

#define CASES(name, most) ON_BOTH(name, run_cases, ref_case_##name, most)

CASES(select, UINT32_MAX)
CASES(filter, 1025)
CASES(compute, UINT32_MAX)
CASES(sort, UINT32_MAX)
CASES(group, UINT32_MAX)
CASES(join, 1025)
CASES(index, 1025)

/* ---- what was asked ---- */

#define ENOUGH 200 /* of each pair of an operator and a kind of operands, in the long mode */

/* The cases above reach each operator with operands of each kind that it can have, and that
 * often. */
static void each_pair_is_met(void **state)
{
	static const enum pfs_engine_kind kinds[] = {PFS_ENGINE_HOST, PFS_ENGINE_CUDA};

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(kinds); i++) {
		struct ref_least least = ref_least_met(kinds[i]);

		print_message("%s: each pair at least %llu times (operator %u, kind %u)\n",
			      i ? "cuda" : "host", (unsigned long long)least.n, least.op,
			      least.kind);
		if (i == 0 || has_device())
			assert_true(least.n >= chosen(0, 0, ENOUGH));
	}
}

/* ---- who answers ---- */

struct counting {
	struct pfs_run run;
	uint64_t device; /* operators that it had answered when last looked at */
};

/* The device, and it alone, answered since. */
static void assert_device_answered(struct counting *c, uint64_t operators)
{
	struct pfs_operator_counts counts;

	pfs_operators_count(c->run.operators, &counts);
	assert_int_equal(counts.host, 0);
	assert_int_equal(counts.device, c->device + operators);
	c->device = counts.device;
}

#define N_ASKED 5000u

static uint32_t asked_codes[N_ASKED], asked_numbers[N_ASKED];
static const uint64_t letters_offset[] = {0, 1, 2, 3, 4}, others_offset[] = {0, 1, 2, 3};
static const struct pfs_dictionary letters = {
	.bytes = (const uint8_t *)"dbcA", .offset = letters_offset, .n = 4};
static const struct pfs_dictionary others = {
	.bytes = (const uint8_t *)"aDb", .offset = others_offset, .n = 3};
static const uint32_t other_codes[] = {0, 1, 2};
static const struct pfs_table_column asked_columns[] = {
	{.kind = PFS_KIND_CODE, .width = 4, .not_null = true, .data = asked_codes,
	 .dictionary = &letters},
	{.kind = PFS_KIND_INTEGER, .width = 4, .not_null = true, .data = asked_numbers},
};
static const struct pfs_table_column other_columns[] = {
	{.kind = PFS_KIND_CODE, .width = 4, .not_null = true, .data = other_codes,
	 .dictionary = &others},
};
static const struct pfs_table asked = {.n_rows = N_ASKED, .n_columns = 2, .columns = asked_columns};
static const struct pfs_table other = {.n_rows = 3, .n_columns = 1, .columns = other_columns};

/* Of four texts one is the other table's by bytes, three whatever the letters' size. */
static void join_texts(struct counting *c)
{
	struct pfs_join_key key = {.left = {0, 0}, .right = {0, 0}};
	const struct pfs_join join = {.keys = &key, .n_keys = 1};
	const struct pfs_source left = {.table = &asked}, right = {.table = &other};
	struct pfs_tuples *tuples;

	for (unsigned i = 0; i < 2; i++) {
		key.collation = i ? PFS_NOCASE : PFS_BINARY;
		assert_int_equal(pfs_join(&c->run, &tuples, &left, &right, &join), 0);
		assert_int_equal(tuples->n, N_ASKED / 4 * (i ? 3 : 1));
		pfs_tuples_free(&c->run, tuples);
		assert_device_answered(c, 1);
	}
}

/* As `number NOT IN (SELECT ...)` is bound: what the other side has no row for is kept. */
static void keep_unjoined(struct counting *c)
{
	const struct pfs_join_key key = {.left = {0, 0}, .right = {0, 0}};
	const struct pfs_join join = {.kind = PFS_JOIN_LEFT, .keys = &key, .n_keys = 1};
	const struct pfs_source left = {.table = &asked}, right = {.table = &other};
	const struct pfs_step steps[] = {
		{.op = PFS_OP_COLUMN, .ref = {1, 0}},
		{.op = PFS_OP_IS_NULL},
		{.op = PFS_OP_CONSTANT, .constant = {.type = PFS_IS_INTEGER, .integer = 3}},
		{.op = PFS_OP_CONSTANT, .constant = {.type = PFS_IS_REAL, .real = 3}},
		{.op = PFS_OP_EQ},
		{.op = PFS_OP_AND},
	};
	const struct pfs_program program = {.steps = steps, .n = 6};
	struct pfs_source joined = {0};
	struct pfs_tuples *tuples;

	assert_int_equal(pfs_join(&c->run, &joined.tuples, &left, &right, &join), 0);
	assert_device_answered(c, 1);
	assert_int_equal(pfs_filter(&c->run, &tuples, &joined, &program), 0);
	assert_device_answered(c, 1);
	assert_int_equal(tuples->n, N_ASKED / 4 * 3);
	assert_int_equal(pfs_tuples_here(&c->run, tuples), 0);
	for (uint64_t i = 0; i < tuples->n; i++)
		assert_int_equal(tuples->tables[1].rows[i], PFS_NO_ROW);
	pfs_tuples_free(&c->run, tuples);
	pfs_tuples_free(&c->run, joined.tuples);
}

/* Of 77 numbers two are in the list; which of the others are is not known, if that has a NULL. */
static void find_in_lists(struct counting *c)
{
	const struct pfs_source source = {.table = &asked};
	const struct pfs_constant list[] = {{.type = PFS_IS_INTEGER, .integer = 5},
					    {.type = PFS_IS_REAL, .real = 6},
					    {.type = PFS_IS_NULL}};
	struct pfs_step steps[] = {{.op = PFS_OP_COLUMN, .ref = {0, 1}},
				   {.op = PFS_OP_IN, .list = list},
				   {.op = PFS_OP_NOT}};
	struct pfs_program program = {.steps = steps};
	uint64_t count, of_two = 2 * (N_ASKED / 77) + 2;
	struct pfs_rows *rows;

	for (unsigned i = 0; i < 6; i++) {
		const uint64_t expected[] = {0, N_ASKED, of_two, N_ASKED - of_two, of_two, 0};

		steps[1].n_list = i / 2 ? 1 + i / 2 : 0;
		program.n = 2 + i % 2;
		assert_int_equal(pfs_select(&c->run, &rows, &source, &program), 0);
		assert_device_answered(c, 1);
		assert_int_equal(pfs_rows_count(&c->run, &count, rows), 0);
		assert_int_equal(count, expected[i]);
		pfs_rows_free(&c->run, rows);
	}
}

static void group_texts(struct counting *c)
{
	const struct pfs_source source = {.table = &asked};
	const struct pfs_aggregate aggregates[] = {
		{.op = PFS_COUNT_DISTINCT, .ref = {0, 1}},
		{.op = PFS_COUNT_DISTINCT, .ref = {0, 0}},
		{.op = PFS_MIN, .ref = {0, 0}},
		{.op = PFS_MAX, .ref = {0, 0}},
	};
	struct pfs_tuples *tuples;
	const uint8_t *text;
	size_t len;

	assert_int_equal(pfs_group(&c->run, &tuples, &source, NULL, 0, aggregates, 4), 0);
	assert_device_answered(c, 1);
	assert_int_equal(pfs_tuples_here(&c->run, tuples), 0);
	assert_int_equal(tuples->n, 1);
	assert_int_equal(tuples->computed[0].integers[0], 77);
	assert_int_equal(tuples->computed[1].integers[0], 4);
	text = pfs_vector_text(&tuples->computed[2], 0, &len);
	assert_true(len == 1 && *text == 'A');
	text = pfs_vector_text(&tuples->computed[3], 0, &len);
	assert_true(len == 1 && *text == 'd');
	pfs_tuples_free(&c->run, tuples);
}

static void sort_texts(struct counting *c)
{
	const struct pfs_source source = {.table = &asked};
	const struct pfs_sort_key key = {.ref = {0, 0}, .collation = PFS_NOCASE};
	struct pfs_tuples *tuples;

	assert_int_equal(pfs_sort(&c->run, &tuples, &source, &key, 1, 0, UINT64_MAX), 0);
	assert_device_answered(c, 1);
	assert_int_equal(pfs_tuples_here(&c->run, tuples), 0);
	assert_int_equal(asked_codes[tuples->tables[0].rows[0]], 3);
	assert_int_equal(asked_codes[tuples->tables[0].rows[N_ASKED - 1]], 0);
	pfs_tuples_free(&c->run, tuples);
}

/* Twice a column, and the sum of that. */
static void compute_numbers(struct counting *c)
{
	const struct pfs_step steps[] = {
		{.op = PFS_OP_COLUMN, .ref = {0, 1}},
		{.op = PFS_OP_CONSTANT, .constant = {.type = PFS_IS_INTEGER, .integer = 2}},
		{.op = PFS_OP_MULTIPLY},
	};
	const struct pfs_program program = {.steps = steps, .n = 3};
	const struct pfs_aggregate sum = {.op = PFS_SUM, .ref = {PFS_COMPUTED, 0}};
	struct pfs_source source = {.table = &asked};
	struct pfs_tuples *tuples, *group;
	int64_t expected = 0;

	assert_int_equal(pfs_compute(&c->run, &tuples, &source, &program, 1), 0);
	assert_device_answered(c, 1);
	source = (struct pfs_source){.tuples = tuples};
	assert_int_equal(pfs_group(&c->run, &group, &source, NULL, 0, &sum, 1), 0);
	assert_device_answered(c, 1);
	assert_int_equal(pfs_tuples_here(&c->run, group), 0);
	for (uint32_t i = 0; i < N_ASKED; i++)
		expected += (int64_t)asked_numbers[i] * 2;
	assert_int_equal(group->computed[1].integers[0], expected);
	pfs_tuples_free(&c->run, group);
	pfs_tuples_free(&c->run, tuples);
}

#define N_LATE 600000u

/* The first row of a group that few rows have is found wherever it is: near 2^18, and the last. */
static void late_firsts(struct counting *c)
{
	static uint32_t numbers[N_LATE];
	const struct pfs_table_column column = {
		.kind = PFS_KIND_INTEGER, .width = 4, .not_null = true, .data = numbers};
	const struct pfs_table table = {.n_rows = N_LATE, .n_columns = 1, .columns = &column};
	const struct pfs_source source = {.table = &table};
	const struct pfs_group_key key = {.ref = {0, 0}};
	const struct pfs_aggregate count = {.op = PFS_COUNT_ALL};
	const uint32_t late[] = {1u << 18, (1u << 18) - 1, (1u << 18) + 1, 399999, N_LATE - 1};
	struct pfs_tuples *tuples;

	for (uint32_t i = 0; i < N_LATE; i++)
		numbers[i] = i % 7;
	for (uint32_t i = 0; i < 5; i++)
		numbers[late[i]] = 7 + i;
	numbers[500000] = 10; /* once more, behind its first */
	assert_int_equal(pfs_group(&c->run, &tuples, &source, &key, 1, &count, 1), 0);
	assert_device_answered(c, 1);
	assert_int_equal(pfs_tuples_here(&c->run, tuples), 0);
	assert_int_equal(tuples->n, 12);
	for (uint64_t i = 0; i < tuples->n; i++) {
		uint32_t row = tuples->tables[0].rows[i], number = numbers[row];

		assert_int_equal(row, number < 7 ? number : late[number - 7]);
		if (number >= 7)
			assert_int_equal(tuples->computed[0].integers[i], number == 10 ? 2 : 1);
	}
	pfs_tuples_free(&c->run, tuples);
}

#define N_MIRRORED 10000000u
#define MIRRORED   ((size_t)1 << 20) /* bytes at a time */

static int give_way(void *context)
{
	unsigned *left = context;

	return (*left)-- == 1 ? -EAGAIN : 0;
}

/* How often more has changed. */
static unsigned mirror(struct counting *c, const struct pfs_table *table)
{
	unsigned times = 0;
	int more;

	while ((more = pfs_table_mirror(&c->run, table, MIRRORED)) == 1 && times < N_MIRRORED)
		times++;
	assert_int_equal(more, 0);
	return times;
}

/* A column is copied in pieces, before it is asked for; what a statement that gives way has copied
 * stays. */
static void mirror_in_pieces(struct counting *c)
{
	static uint32_t numbers[N_MIRRORED];
	struct pfs_reserve blocks = {0};
	struct pfs_stamps stamps;
	const struct pfs_table_column column = {.kind = PFS_KIND_INTEGER,
						.width = 4,
						.not_null = true,
						.data = numbers,
						.data_stamps = &stamps};
	const struct pfs_table table = {.n_rows = N_MIRRORED, .n_columns = 1, .columns = &column};
	const struct pfs_source source = {.table = &table};
	const struct pfs_aggregate sum = {.op = PFS_SUM, .ref = {0, 0}};
	struct pfs_tuples *tuples;
	unsigned left = 4; /* the fourth look, before the third piece */
	int64_t expected = 0;

	assert_int_equal(pfs_stamps_reserve(&stamps, &blocks), 0);
	for (uint32_t i = 0; i < N_MIRRORED; i++)
		expected += numbers[i] = i % 1000;
	c->run.poll = give_way;
	c->run.context = &left;
	assert_int_equal(pfs_group(&c->run, &tuples, &source, NULL, 0, &sum, 1), -EAGAIN);
	c->run.poll = NULL;
	assert_in_range(mirror(c, &table), 1, sizeof(numbers) / MIRRORED - 16);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(mirror(c, &table), 0);
		assert_int_equal(pfs_group(&c->run, &tuples, &source, NULL, 0, &sum, 1), 0);
		assert_device_answered(c, 1);
		assert_int_equal(pfs_tuples_here(&c->run, tuples), 0);
		assert_int_equal(tuples->computed[0].integers[0], expected);
		pfs_tuples_free(&c->run, tuples);
		numbers[i * 3333333]++;
		pfs_stamps_touch(&stamps, i * 3333333, i + 1);
		expected++;
	}
	assert_int_equal(pfs_group(&c->run, &tuples, &source, NULL, 0, &sum, 1), 0);
	assert_device_answered(c, 1);
	assert_int_equal(pfs_tuples_here(&c->run, tuples), 0);
	assert_int_equal(tuples->computed[0].integers[0], expected);
	pfs_tuples_free(&c->run, tuples);
	pfs_reserve_close(&blocks);
}

/* What is done with texts by code, with different values and with arithmetic is the device's. */
static void device_answers(void **state)
{
	struct counting c = {.run.on = PFS_ENGINE_CUDA};
	int error = pfs_operators_open(&c.run.operators, PFS_ENGINE_CUDA, 1);

	(void)state;
	if (error == -ENODEV)
		skip();
	assert_int_equal(error, 0);
	for (uint32_t i = 0; i < N_ASKED; i++) {
		asked_codes[i] = i % 4;
		asked_numbers[i] = i % 77;
	}
	join_texts(&c);
	keep_unjoined(&c);
	find_in_lists(&c);
	group_texts(&c);
	sort_texts(&c);
	compute_numbers(&c);
	late_firsts(&c);
	mirror_in_pieces(&c);
	pfs_operators_close(c.run.operators);
}

/* With an argument, a pattern, only the tests that match it. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		BOTH(select),
		BOTH(filter),
		BOTH(compute),
		BOTH(sort),
		BOTH(group),
		BOTH(join),
		cmocka_unit_test(large),
		BOTH(index),
		cmocka_unit_test(each_pair_is_met),
		cmocka_unit_test(device_answers),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
