/* SPDX-License-Identifier: MIT */
/* What ends the relational operators before their work is done: memory, whoever waits, a device. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"
#include "gpu/aggregate.h"
#include "gpu/engine_impl.h"
#include "both_util.h"

struct budget {
	int64_t charged, most;
	unsigned polls_left;
};

static int charge(void *context, int64_t bytes)
{
	struct budget *b = context;
	int64_t now = __atomic_add_fetch(&b->charged, bytes, __ATOMIC_RELAXED);

	if (bytes <= 0 || now <= b->most)
		return 0;
	(void)__atomic_sub_fetch(&b->charged, bytes, __ATOMIC_RELAXED);
	return -ENOMEM;
}

static int poll(void *context)
{
	struct budget *b = context;
	unsigned left = __atomic_load_n(&b->polls_left, __ATOMIC_RELAXED);

	if (left == 0)
		return -ETIMEDOUT;
	if (left != UINT32_MAX)
		(void)__atomic_sub_fetch(&b->polls_left, 1, __ATOMIC_RELAXED);
	return 0;
}

/* ---- one of each operator, and what they answer ---- */

static const struct pfs_step positive[] = {
	{.op = PFS_OP_COLUMN, .ref = {0, 0}},
	{.op = PFS_OP_CONSTANT, .constant = {.type = PFS_IS_INTEGER, .integer = 5}},
	{.op = PFS_OP_GT},
};
static const struct pfs_step with_b[] = {
	{.op = PFS_OP_COLUMN, .ref = {0, 1}},
	{.op = PFS_OP_LIKE, .constant = {.type = PFS_IS_TEXT, .text = "%B", .len = 2}},
};
static const struct pfs_program programs[] = {{.steps = positive, .n = 3},
					      {.steps = with_b, .n = 2}};

static uint64_t mix(uint64_t digest, uint64_t value)
{
	return (digest ^ value) * UINT64_C(0x9e3779b97f4a7c15) + (digest >> 29);
}

/* Brings the batch here, adds it to the digest, whatever the order of its tuples, and frees it. */
static int take(const struct pfs_run *run, uint64_t *digest, struct pfs_tuples *tuples)
{
	uint64_t sum = 0;
	int error = pfs_tuples_here(run, tuples);

	for (uint64_t i = 0; !error && i < tuples->n; i++) {
		uint64_t one = 1;

		for (unsigned t = 0; t < tuples->n_tables; t++)
			one = mix(one, tuples->tables[t].rows ? tuples->tables[t].rows[i]
							      : tuples->tables[t].from + i);
		for (unsigned c = 0; c < tuples->n_computed; c++) {
			assert_int_equal(tuples->computed[c].kind, PFS_KIND_INTEGER);
			one = mix(one, (uint64_t)tuples->computed[c].integers[i]);
		}
		sum += one;
	}
	pfs_tuples_free(run, tuples);
	*digest = mix(*digest, sum);
	return error;
}

static int selects(const struct pfs_run *run, uint64_t *digest, const struct pfs_source *source)
{
	for (size_t i = 0; i < PFS_COUNT(programs); i++) {
		uint64_t next = 0, n = 0, in_order = 0;
		struct pfs_rows *rows;
		uint32_t row;
		int error = pfs_select(run, &rows, source, &programs[i]);

		error = error ? error : pfs_rows_count(run, &n, rows);
		error = error ? error : pfs_rows_here(run, rows);
		while (!error && pfs_rows_next(rows, &next, &row, 1) == 1)
			in_order = mix(in_order, row);
		pfs_rows_free(run, rows);
		*digest = mix(mix(*digest, n), in_order);
		PFS_TRY(error);
	}
	return 0;
}

static int computes(const struct pfs_run *run, uint64_t *digest, const struct pfs_source *source)
{
	struct pfs_source computed = {.table = NULL};
	const struct pfs_sort_key key = {.ref = {PFS_COMPUTED, 0}};
	struct pfs_tuples *tuples;
	int error;

	PFS_TRY(pfs_filter(run, &tuples, source, &programs[0]));
	PFS_TRY(take(run, digest, tuples));
	PFS_TRY(pfs_compute(run, &computed.tuples, source, programs, 2));
	error = pfs_sort(run, &tuples, &computed, &key, 1, 0,
			 UINT64_MAX); /* of what may lie on the device */
	error = error ? error : take(run, digest, tuples);
	pfs_tuples_free(run, computed.tuples);
	return error;
}

static int sorts(const struct pfs_run *run, uint64_t *digest, const struct pfs_source *source)
{
	const struct pfs_sort_key keys[] = {{.ref = {0, 1}}, {.ref = {0, 0}}};
	struct pfs_tuples *tuples;

	PFS_TRY(pfs_sort(run, &tuples, source, keys, 2, 0, UINT64_MAX));
	PFS_TRY(take(run, digest, tuples));
	PFS_TRY(pfs_sort(run, &tuples, source, keys, 2, 1, 3));
	return take(run, digest, tuples);
}

static int groups(const struct pfs_run *run, uint64_t *digest, const struct pfs_source *source)
{
	const struct pfs_group_key keys[] = {{.ref = {0, 1}}, {.ref = {0, 0}}};
	const struct pfs_aggregate aggregates[] = {{.op = PFS_SUM, .ref = {0, 0}},
						   {.op = PFS_COUNT_DISTINCT, .ref = {0, 1}}};
	struct pfs_tuples *tuples;

	for (size_t n_keys = 0; n_keys <= 2; n_keys++) {
		PFS_TRY(pfs_group(run, &tuples, source, keys, n_keys, aggregates, 2));
		PFS_TRY(take(run, digest, tuples));
	}
	return 0;
}

static int joins(const struct pfs_run *run, uint64_t *digest, const struct pfs_source *source)
{
	const struct pfs_join_key keys[] = {{{0, 0}, {0, 0}, PFS_BINARY},
					    {{0, 1}, {0, 1}, PFS_NOCASE}};
	const struct pfs_source some = {.table = source->table, .to = 3};
	struct pfs_tuples *tuples;

	for (size_t i = 0; i < PFS_COUNT(keys); i++) {
		const struct pfs_join join = {
			.kind = i ? PFS_JOIN_INNER : PFS_JOIN_LEFT, .keys = &keys[i], .n_keys = 1};

		PFS_TRY(pfs_join(run, &tuples, source, &some, &join));
		PFS_TRY(take(run, digest, tuples));
	}
	return 0;
}

static int indexes(const struct pfs_run *run, uint64_t *digest, const struct pfs_source *source)
{
	struct pfs_column_index *index;
	int error;

	PFS_TRY(pfs_column_index_build(run, &index, source, 0, PFS_BINARY));
	error = pfs_column_index_here(run, index);
	for (uint64_t i = 0; !error && i < index->n; i++)
		*digest = mix(*digest, index->rows[i]);
	pfs_column_index_free(run, index);
	return error;
}

/* One of each operator: the first error. */
static int run_all(const struct pfs_run *run, uint64_t *digest, const struct pfs_table *table)
{
	static int (*const operators[])(const struct pfs_run *run, uint64_t *digest,
					const struct pfs_source *source) = {
		selects, computes, sorts, groups, joins, indexes};
	const struct pfs_source source = {.table = table};

	*digest = 0;
	for (size_t i = 0; i < PFS_COUNT(operators); i++)
		PFS_TRY(operators[i](run, digest, &source));
	return 0;
}

#define N_ENDED 20000

static int64_t values[N_ENDED];
static uint32_t codes[N_ENDED];
static const uint64_t offset[] = {0, 1, 2, 3};
static const struct pfs_dictionary dictionary = {
	.bytes = (const uint8_t *)"abc", .offset = offset, .n = 3};
static const struct pfs_table_column columns[] = {
	{.kind = PFS_KIND_INTEGER, .width = 8, .is_signed = true, .data = values},
	{.kind = PFS_KIND_CODE, .width = 4, .data = codes, .dictionary = &dictionary},
};
static const struct pfs_table table = {.n_rows = N_ENDED, .n_columns = 2, .columns = columns};

static int fill_table(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < N_ENDED; i++) {
		values[i] = (int64_t)i * 7919 % 100003;
		codes[i] = i % 3;
	}
	return 0;
}

/* Whatever allocation fails, and whenever it is told to stop, an operator leaves nothing behind. */
static void ends(void **state)
{
	struct budget b = {.most = INT64_MAX, .polls_left = UINT32_MAX};
	struct pfs_run run = {.on = PFS_ENGINE_HOST, .charge = charge, .poll = poll, .context = &b};
	uint64_t expected, digest;
	int error = -ENOMEM;

	(void)state;
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 2), 0);
	assert_int_equal(run_all(&run, &expected, &table), 0);
	assert_int_equal(b.charged, 0);
	for (b.most = 64; error == -ENOMEM; b.most += b.most / 32 + 16) {
		error = run_all(&run, &digest, &table);
		assert_true(error == 0 || error == -ENOMEM);
		assert_int_equal(b.charged, 0);
	}
	assert_int_equal(error, 0);
	assert_int_equal(digest, expected);
	b.most = INT64_MAX;
	error = -ETIMEDOUT;
	for (unsigned polls = 0; error; polls++) {
		b.polls_left = polls;
		error = run_all(&run, &digest, &table);
		assert_true(error == 0 || error == -ETIMEDOUT);
		assert_int_equal(b.charged, 0);
	}
	assert_int_equal(digest, expected);
	pfs_operators_close(run.operators);
}

/* Every call of the device failing in turn: the answers are the host's, which has a statement to
 * itself where an operator's input was lost with the device, and no memory is left, here or
 * there. */
static void every_device_call(void **state)
{
	struct budget b = {.most = INT64_MAX, .polls_left = UINT32_MAX};
	struct pfs_run run = {.charge = charge, .poll = poll, .context = &b};
	uint64_t expected, digest;
	bool is_met = true;
	long n;

	(void)state;
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 2), 0);
	assert_int_equal(run_all(&run, &expected, &table), 0);
	pfs_operators_close(run.operators);
	for (n = 1; is_met; n++) {
		int error;

		run.operators = operators_or_skip(PFS_ENGINE_CUDA, 2);
		run.on = PFS_ENGINE_CUDA;
		pfs_cuda_fail_at(n);
		error = run_all(&run, &digest, &table);
		is_met = pfs_cuda_fail_at(0) == 0;
		assert_true(error == 0 || (is_met && error == -EIO));
		run.on = PFS_ENGINE_HOST;
		if (error)
			assert_int_equal(run_all(&run, &digest, &table), 0);
		assert_int_equal(digest, expected);
		assert_int_equal(b.charged, 0);
		pfs_operators_close(run.operators);
		assert_int_equal(pfs_cuda_bytes_left(), 0);
	}
	print_message("to call %ld\n", n);
	assert_true(n > 50);
}

#define N_MATCHED  1000u
#define MATCHED_LEN ((size_t)1000)
#define LONG_LEN   ((size_t)1 << 20)

/* How often selecting those of `among` (NULL: of all) without the pattern asks whether to go on;
 * told not to soon, it ends. */
static unsigned polls_of_pattern(struct pfs_run *run, const struct pfs_table_column *column,
				 uint32_t n, struct pfs_rows *among)
{
	static const char pattern[] = "%aaaaaab%";
	const struct pfs_table names = {.n_rows = n, .n_columns = 1, .columns = column};
	const struct pfs_source source = {.table = &names};
	const struct pfs_step steps[] = {
		{.op = PFS_OP_BITS, .bits = among},
		{.op = PFS_OP_COLUMN, .ref = {0, 0}},
		{.op = PFS_OP_LIKE,
		 .constant = {.type = PFS_IS_TEXT, .text = pattern, .len = sizeof(pattern) - 1}},
		{.op = PFS_OP_NOT},
		{.op = PFS_OP_AND},
	};
	const struct pfs_program program = {.steps = among ? steps : steps + 1, .n = among ? 5 : 3};
	struct budget *b = run->context;
	const unsigned most = 1u << 30;
	unsigned polls;
	uint64_t kept;
	struct pfs_rows *rows;

	b->polls_left = most;
	assert_int_equal(pfs_select(run, &rows, &source, &program), 0);
	polls = most - b->polls_left;
	assert_int_equal(pfs_rows_count(run, &kept, rows), 0);
	assert_int_equal(kept, among ? 1 : n);
	pfs_rows_free(run, rows);
	b->polls_left = polls - 1;
	assert_int_equal(pfs_select(run, &rows, &source, &program), -ETIMEDOUT);
	assert_int_equal(b->charged, 0);
	return polls;
}

static int always_pause(void *context)
{
	(void)context;
	return PFS_RUN_PAUSE;
}

/* Something has changed in the fifth pause. */
static int pause_four_times(void *context)
{
	return ++*(unsigned *)context > 4 ? -EAGAIN : 0;
}

/* One piece of names pauses by what patterns take, and ends with what a pause returns. */
static void check_pauses(struct pfs_operators *operators, const struct pfs_table_column *column)
{
	const struct pfs_table names = {.n_rows = N_MATCHED, .n_columns = 1, .columns = column};
	const struct pfs_source source = {.table = &names};
	const struct pfs_step steps[] = {
		{.op = PFS_OP_COLUMN},
		{.op = PFS_OP_LIKE,
		 .constant = {.type = PFS_IS_TEXT, .text = "%aaaaa_b%", .len = 9}},
	};
	const struct pfs_program program = {.steps = steps, .n = 2};
	unsigned pauses = 0;
	const struct pfs_run run = {.operators = operators,
				    .on = PFS_ENGINE_HOST,
				    .poll = always_pause,
				    .pause = pause_four_times,
				    .context = &pauses};
	struct pfs_rows *rows;

	assert_int_equal(pfs_select(&run, &rows, &source, &program), -EAGAIN);
	assert_int_equal(pauses, 5);
}

/* Few rows may take long: whether to go on is asked by what patterns take. */
static void patterns_ask_by_steps(void **state)
{
	static uint32_t places[N_MATCHED];
	const size_t stride = 4 + MATCHED_LEN;
	uint8_t *heap_bytes = malloc(N_MATCHED * stride), *long_bytes = malloc(LONG_LEN);
	const uint64_t ends_at[] = {0, LONG_LEN};
	const uint32_t code = 0;
	const struct pfs_heap heap = {
		.bytes = heap_bytes, .size = N_MATCHED * stride, .length_size = 4};
	const struct pfs_dictionary long_text = {.bytes = long_bytes, .offset = ends_at, .n = 1};
	const struct pfs_table_column names = {
		.kind = PFS_KIND_PLACE, .width = 4, .data = places, .heap = &heap};
	const struct pfs_table_column texts = {
		.kind = PFS_KIND_CODE, .width = 4, .data = &code, .dictionary = &long_text};
	struct budget b = {.most = INT64_MAX};
	struct pfs_run run = {.on = PFS_ENGINE_HOST, .charge = charge, .poll = poll, .context = &b};
	const uint32_t last = N_MATCHED - 1;
	struct pfs_rows *one;

	(void)state;
	assert_non_null(heap_bytes);
	assert_non_null(long_bytes);
	memset(heap_bytes, 'a', N_MATCHED * stride);
	memset(long_bytes, 'a', LONG_LEN);
	for (uint32_t i = 0; i < N_MATCHED; i++) {
		const uint32_t len = MATCHED_LEN;

		places[i] = (uint32_t)(i * stride);
		memcpy(heap_bytes + i * stride, &len, sizeof(len));
	}
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 1), 0);
	assert_in_range(polls_of_pattern(&run, &names, N_MATCHED, NULL), 8, 100);
	assert_in_range(polls_of_pattern(&run, &texts, 1, NULL), 10, 10000);
	/* what one part of the program leaves out the next does not look at */
	assert_int_equal(pfs_rows_of_list(&run, &one, N_MATCHED, &last, 1), 0);
	b.charged = 0;
	assert_in_range(polls_of_pattern(&run, &names, N_MATCHED, one), 1, 4);
	pfs_rows_free(&run, one);
	check_pauses(run.operators, &names);
	pfs_operators_close(run.operators);
	free(heap_bytes);
	free(long_bytes);
}

#define N_TIED	  150000u
#define TIED_LEN  20u
#define N_TEXTS	  40u /* of which some begin with the same bytes, and others say all in fewer than eight */

static uint8_t tied_bytes[N_TEXTS * (1 + TIED_LEN)];
static uint32_t tied_places[N_TIED];
static int64_t tied_numbers[N_TIED], few_numbers[N_TIED];
static uint64_t no_numbers[N_TIED / 64 + 1]; /* of those that are few */

/* Fills columns of which each leaves many ties to the next one. */
static void fill_tied(bool is_short)
{
	for (uint32_t i = 0; i < N_TEXTS; i++) {
		uint8_t *text = &tied_bytes[i * (1 + TIED_LEN)];

		text[0] = (uint8_t)(is_short || i % 4 == 0 ? 2 : TIED_LEN);
		memset(text + 1, 'a' + (int)i % 3, TIED_LEN);
		text[text[0]] = (uint8_t)('a' + i * 7 % 23);
	}
	for (uint32_t i = 0; i < N_TIED; i++) {
		uint32_t random = i * 2654435761u;

		tied_places[i] = (random >> 8) % N_TEXTS * (1 + TIED_LEN);
		few_numbers[i] = random >> 16 & 1;
		no_numbers[i / 64] |= (uint64_t)(random >> 20 & 1) << i % 64;
		tied_numbers[i] = (int64_t)((uint64_t)(random >> 5 & 0xfff) << 50);
	}
}

static int has_none(uint32_t i)
{
	return (int)(no_numbers[i / 64] >> i % 64 & 1);
}

/* Below 0, 0 or above 0, as the key has it. */
static int compare_tied(const struct pfs_sort_key *key, uint32_t a, uint32_t b)
{
	const uint8_t *x = tied_bytes + tied_places[a], *y = tied_bytes + tied_places[b];
	const int64_t *numbers = key->ref.column == 1 ? few_numbers : tied_numbers;
	int order = (numbers[a] > numbers[b]) - (numbers[a] < numbers[b]);

	if (key->ref.column == 1 && (has_none(a) || has_none(b)))
		order = has_none(b) - has_none(a);
	if (key->ref.column == 0) {
		order = memcmp(x + 1, y + 1, PFS_MIN(*x, *y));
		order = order ? order : *x - *y;
	}
	return key->descending ? -order : order;
}

/* Sorts all, or the first `limit`, and compares each with the one before. */
static void sort_tied(const struct pfs_run *run, const struct pfs_sort_key *keys, size_t n_keys,
		      uint64_t limit)
{
	const struct pfs_heap heap = {
		.bytes = tied_bytes, .size = sizeof(tied_bytes), .length_size = 1};
	const struct pfs_table_column by[] = {
		{.kind = PFS_KIND_PLACE,
		 .width = 4,
		 .not_null = true,
		 .data = tied_places,
		 .heap = &heap},
		{.kind = PFS_KIND_INTEGER,
		 .width = 8,
		 .is_signed = true,
		 .nulls = no_numbers,
		 .data = few_numbers},
		{.kind = PFS_KIND_INTEGER,
		 .width = 8,
		 .is_signed = true,
		 .not_null = true,
		 .data = tied_numbers},
	};
	const struct pfs_table tied = {.n_rows = N_TIED, .n_columns = PFS_COUNT(by), .columns = by};
	const struct pfs_source source = {.table = &tied};
	struct pfs_tuples *sorted;

	assert_int_equal(pfs_sort(run, &sorted, &source, keys, n_keys, 0, limit), 0);
	assert_int_equal(sorted->n, PFS_MIN(limit, N_TIED));
	for (uint64_t i = 1; i < sorted->n; i++) {
		uint32_t a = sorted->tables->rows[i - 1], b = sorted->tables->rows[i];
		int order = 0;

		for (size_t k = 0; k < n_keys && !order; k++)
			order = compare_tied(&keys[k], a, b);
		if (order > 0 || (order == 0 && a >= b))
			fail_msg("%u before %u", a, b);
	}
	pfs_tuples_free(run, sorted);
}

/* Whatever tells the tuples apart, in whatever order of keys, and what is equal stays in its
 * order. */
static void ties_are_sorted_by_the_next_key(void **state PFS_UNUSED)
{
	struct pfs_run run = {.on = PFS_ENGINE_HOST};

	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 2), 0);
	for (unsigned i = 0; i < 27 * 2; i++) {
		const struct pfs_sort_key keys[] = {
			{.ref.column = (uint16_t)(i % 3), .descending = i % 2, .nulls_last = i % 2},
			{.ref.column = (uint16_t)(i / 3 % 3),
			 .descending = i % 5 > 2,
			 .nulls_last = i % 5 > 2},
			{.ref.column = (uint16_t)(i / 9 % 3)},
		};

		fill_tied(i >= 27);
		sort_tied(&run, keys, PFS_COUNT(keys), UINT64_MAX);
		sort_tied(&run, keys, 1 + i % 3, i % 2 ? 1 : 9000);
	}
	pfs_operators_close(run.operators);
}

/* Texts that begin alike are compared one by one, which takes long if they are many: all of them,
 * or the first ones. */
static void comparing_texts_asks_whether_to_go_on(void **state PFS_UNUSED)
{
	static const struct pfs_sort_key key = {.ref.column = 0};
	static const uint64_t limits[] = {UINT64_MAX, N_TIED / 8 - 1};
	const unsigned most = 1u << 30;
	struct budget b = {.most = INT64_MAX};
	struct pfs_run run = {.on = PFS_ENGINE_HOST, .poll = poll, .context = &b};

	fill_tied(false);
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 1), 0);
	for (size_t i = 0; i < PFS_COUNT(limits); i++) {
		b.polls_left = most;
		sort_tied(&run, &key, 1, limits[i]);
		assert_true(most - b.polls_left > PFS_MIN(limits[i], N_TIED) / 64);
	}
	pfs_operators_close(run.operators);
}

/* Numbers fall, so that each is a candidate: those are cut many times, which takes as many looks as
 * there are candidates, not one each time. */
static void cutting_candidates_asks_whether_to_go_on(void **state PFS_UNUSED)
{
	static const struct pfs_sort_key key = {.ref.column = 2};
	const unsigned most = 1u << 30, limit = N_TIED / 8 - 1, looked_at = 4096;
	struct budget b = {.most = INT64_MAX, .polls_left = most};
	struct pfs_run run = {.on = PFS_ENGINE_HOST, .charge = charge, .poll = poll, .context = &b};

	for (uint32_t i = 0; i < N_TIED; i++)
		tied_numbers[i] = -(int64_t)i;
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 1), 0);
	sort_tied(&run, &key, 1, limit);
	assert_true(most - b.polls_left > (N_TIED - 2 * limit) / looked_at);
	assert_int_equal(b.charged, 0);
	pfs_operators_close(run.operators);
}

#define N_PAIRED 2000u

static void check_pairs(struct pfs_run *run, struct budget *b, struct pfs_tuples *tuples)
{
	assert_int_equal(tuples->n, N_PAIRED * N_PAIRED);
	pfs_tuples_free(run, tuples);
	assert_true((1u << 30) - b->polls_left > N_PAIRED * N_PAIRED / 5000);
	b->polls_left = 1u << 30;
}

/* A few tuples have as many partners as many have otherwise. */
static void joining_asks_by_pairs(void **state PFS_UNUSED)
{
	static const uint32_t same[N_PAIRED];
	static const struct pfs_table_column column = {
		.kind = PFS_KIND_INTEGER, .width = 4, .data = same};
	static const struct pfs_table pairing = {
		.n_rows = N_PAIRED, .n_columns = 1, .columns = &column};
	static const struct pfs_source source = {.table = &pairing};
	static const struct pfs_join_key key = {{0, 0}, {0, 0}, PFS_BINARY};
	const struct pfs_join join = {.keys = &key, .n_keys = 1, .how = PFS_JOIN_HASH};
	struct budget b = {.most = INT64_MAX, .polls_left = 1u << 30};
	struct pfs_run run = {.on = PFS_ENGINE_HOST, .charge = charge, .poll = poll, .context = &b};
	struct pfs_index_fragment all = {.from = 0, .to = N_PAIRED};
	struct pfs_column_index *index;
	struct pfs_tuples *tuples;

	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 1), 0);
	assert_int_equal(pfs_join(&run, &tuples, &source, &source, &join), 0);
	check_pairs(&run, &b, tuples);
	assert_int_equal(pfs_column_index_build(&run, &index, &source, 0, PFS_BINARY), 0);
	all.index = index;
	assert_int_equal(pfs_column_index_join(&run, &tuples, &all, &all), 0);
	check_pairs(&run, &b, tuples);
	pfs_column_index_free(&run, index);
	assert_int_equal(b.charged, 0);
	pfs_operators_close(run.operators);
}

#define N_RANKED   20000u
#define RANKED_LEN 8u

/* The texts of a dictionary that knows no order are sorted first, however few the rows are. */
static void ranking_texts_asks_whether_to_go_on(void **state PFS_UNUSED)
{
	static const struct pfs_sort_key key = {.collation = PFS_NOCASE};
	static uint8_t bytes[N_RANKED * RANKED_LEN + 1];
	static uint64_t ends_at[N_RANKED + 1];
	const struct pfs_dictionary texts = {.bytes = bytes, .offset = ends_at, .n = N_RANKED};
	const uint32_t of[] = {2, 1, 0};
	const struct pfs_table_column column = {
		.kind = PFS_KIND_CODE, .width = 4, .data = of, .dictionary = &texts};
	const struct pfs_table few = {.n_rows = 3, .n_columns = 1, .columns = &column};
	const struct pfs_source source = {.table = &few};
	const unsigned most = 1u << 30;
	struct budget b = {.most = INT64_MAX, .polls_left = most};
	struct pfs_run run = {.on = PFS_ENGINE_HOST, .charge = charge, .poll = poll, .context = &b};
	struct pfs_tuples *sorted;

	for (uint32_t i = 0; i < N_RANKED; i++) {
		(void)snprintf((char *)bytes + (size_t)i * RANKED_LEN, RANKED_LEN + 1, "%c%07u",
			       i % 2 ? 'a' : 'A', N_RANKED - i);
		ends_at[i + 1] = (uint64_t)(i + 1) * RANKED_LEN;
	}
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 1), 0);
	assert_int_equal(pfs_sort(&run, &sorted, &source, &key, 1, 0, UINT64_MAX), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(sorted->tables->rows[i], i);
	pfs_tuples_free(&run, sorted);
	assert_true(most - b.polls_left > N_RANKED / 64);
	for (unsigned polls = 1; polls < most - b.polls_left; polls *= 2) {
		struct budget little = {.most = INT64_MAX, .polls_left = polls};

		run.context = &little;
		assert_int_equal(pfs_sort(&run, &sorted, &source, &key, 1, 0, UINT64_MAX),
				 -ETIMEDOUT);
		assert_int_equal(little.charged, 0);
	}
	assert_int_equal(b.charged, 0);
	pfs_operators_close(run.operators);
}

/* Who polls while texts are compared, many polls after the run began. */
struct meeting {
	pthread_t caller;
	atomic_uint polls; /* the caller's */
	atomic_bool has_met;
};

/* Makes the caller wait, but not for ever, for a poll of another thread. */
static int poll_and_meet(void *context)
{
	struct meeting *meeting = context;

	if (!pthread_equal(pthread_self(), meeting->caller)) {
		if (atomic_load(&meeting->polls) >= 1000)
			atomic_store(&meeting->has_met, true);
		return 0;
	}
	if (atomic_fetch_add(&meeting->polls, 1) != 2000)
		return 0;
	for (unsigned i = 0; i < 10000 && !atomic_load(&meeting->has_met); i++)
		(void)usleep(1000);
	return atomic_load(&meeting->has_met) ? 0 : -ETIMEDOUT;
}

/* Ties that are not enough for a sort by all threads are sorted by a thread each. */
static void threads_share_ties(void **state PFS_UNUSED)
{
	static const struct pfs_sort_key key = {.ref.column = 0};
	struct meeting meeting = {.caller = pthread_self()};
	struct pfs_run run = {.on = PFS_ENGINE_HOST, .poll = poll_and_meet, .context = &meeting};

	fill_tied(false);
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 2), 0);
	sort_tied(&run, &key, 1, UINT64_MAX);
	assert_true(atomic_load(&meeting.polls) > 2000);
	pfs_operators_close(run.operators);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends),
		cmocka_unit_test(every_device_call),
		cmocka_unit_test(patterns_ask_by_steps),
		cmocka_unit_test(ties_are_sorted_by_the_next_key),
		cmocka_unit_test(comparing_texts_asks_whether_to_go_on),
		cmocka_unit_test(cutting_candidates_asks_whether_to_go_on),
		cmocka_unit_test(joining_asks_by_pairs),
		cmocka_unit_test(ranking_texts_asks_whether_to_go_on),
		cmocka_unit_test(threads_share_ties),
	};

	return cmocka_run_group_tests(tests, fill_table, NULL);
}
