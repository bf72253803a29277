/* SPDX-License-Identifier: MIT */
/* The operators over tables of the shapes for which a device has kernels of their own: each answer
 * is compared with a plain loop's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "both_util.h"
#include "gpu/aggregate.h"
#include "tests/ref/random.h"

#define MOST 300000u /* rows of a table */

static uint64_t seeded = 0x5eed0013;

/* A table of some columns of integers that cannot be NULL. */
struct made {
	struct pfs_table_column columns[2];
	struct pfs_table table;
	void *data[2];
};

static void make_column(struct made *m, unsigned i, unsigned width, bool is_signed)
{
	m->data[i] = calloc(MOST, width);
	assert_non_null(m->data[i]);
	m->columns[i] = (struct pfs_table_column){.kind = PFS_KIND_INTEGER,
						  .width = (uint8_t)width,
						  .is_signed = is_signed,
						  .not_null = true,
						  .data = m->data[i]};
	m->table.columns = m->columns;
	m->table.n_columns = (uint16_t)(i + 1);
}

static void free_made(struct made *m)
{
	for (unsigned i = 0; i < m->table.n_columns; i++)
		free(m->data[i]);
}

static int64_t value_of(const struct made *m, unsigned column, uint64_t row)
{
	const struct pfs_table_column *c = &m->columns[column];
	uint64_t raw = 0;

	memcpy(&raw, (const char *)m->data[column] + row * c->width, c->width);
	return (int64_t)(raw + (uint64_t)c->base);
}

static uint64_t row_of(const struct pfs_tuples *tuples, unsigned table, uint64_t place)
{
	const struct pfs_tuple_table *t = &tuples->tables[table];

	return t->rows ? t->rows[place] : t->from + place;
}

/* A device does all of this itself. */
static void close_operators(struct pfs_run *run)
{
	struct pfs_operator_counts counts;

	pfs_operators_count(run->operators, &counts);
	assert_int_equal(run->on == PFS_ENGINE_HOST ? counts.device : counts.host, 0);
	pfs_operators_close(run->operators);
}

/* ---- indexes merged ---- */

/* Row i of n has the key first + step * (i * share / n): each of `share` keys about equally often,
 * in an order of no meaning. */
static void fill_keys(struct made *m, uint32_t n, uint32_t first, uint32_t step, uint32_t share)
{
	uint32_t *keys = m->data[0];

	m->table.n_rows = n;
	for (uint32_t i = 0; i < n; i++)
		keys[i] = first + step * (uint32_t)((uint64_t)i * share / n);
	for (uint32_t i = n; i > 1; i--) {
		uint32_t at = random_below(&seeded, i), key = keys[i - 1];

		keys[i - 1] = keys[at];
		keys[at] = key;
	}
}

static uint64_t pairs_of(const struct made *left, const struct made *right)
{
	uint32_t *counts = calloc((size_t)1 << 20, sizeof(*counts));
	uint64_t pairs = 0;

	assert_non_null(counts);
	for (uint64_t i = 0; i < right->table.n_rows; i++)
		counts[value_of(right, 0, i)]++;
	for (uint64_t i = 0; i < left->table.n_rows; i++)
		pairs += counts[value_of(left, 0, i)];
	free(counts);
	return pairs;
}

/* As many as there are, each of equal keys, and in order, so that none is there twice. */
static void assert_pairs(const struct pfs_tuples *tuples, const struct made *left,
			 const struct made *right, uint64_t *key, uint64_t *rows)
{
	for (uint64_t i = 0; i < tuples->n; i++) {
		uint64_t l = row_of(tuples, 0, i), r = row_of(tuples, 1, i);
		uint64_t now = (uint64_t)value_of(left, 0, l);

		assert_int_equal(now, value_of(right, 0, r));
		if (*key != UINT64_MAX)
			assert_true(now > *key || (now == *key && (l << 32 | r) > *rows));
		*key = now;
		*rows = l << 32 | r;
	}
}

static void merge(const struct pfs_run *run, const struct made *left, const struct made *right,
		  size_t k)
{
	const struct pfs_source sources[] = {{.table = &left->table}, {.table = &right->table}};
	uint64_t left_at[8], right_at[8], n = 0, key = UINT64_MAX, rows = 0;
	struct pfs_column_index *a, *b;

	assert_int_equal(pfs_column_index_build(run, &a, &sources[0], 0, PFS_BINARY), 0);
	assert_int_equal(pfs_column_index_build(run, &b, &sources[1], 0, PFS_BINARY), 0);
	assert_int_equal(pfs_column_index_cut(run, left_at, right_at, k, a, b), 0);
	for (size_t i = 0; i < k; i++) {
		const struct pfs_index_fragment l = {a, left_at[i], left_at[i + 1]};
		const struct pfs_index_fragment r = {b, right_at[i], right_at[i + 1]};
		struct pfs_tuples *tuples;

		assert_int_equal(pfs_column_index_join(run, &tuples, &l, &r), 0);
		assert_int_equal(pfs_tuples_here(run, tuples), 0);
		assert_pairs(tuples, left, right, &key, &rows);
		n += tuples->n;
		pfs_tuples_free(run, tuples);
	}
	assert_int_equal(n, pairs_of(left, right));
	pfs_column_index_free(run, a);
	pfs_column_index_free(run, b);
}

static void run_merges(unsigned threads, enum pfs_engine_kind kind)
{
	static const struct {
		uint32_t n, first, step, share; /* of the smaller table */
		uint32_t m, first_m, step_m, share_m;
	} cases[] = {
		{3000, 7, 3, 3000, 100000, 7, 3, 3000},	     /* all rows have partners */
		{3000, 7, 3, 3000, 100000, 4, 2, 5000},	     /* some, on either side */
		{3000, 7, 3, 3000, 100000, 10, 9000, 1},     /* one key has all pairs */
		{20000, 0, 1, 20000, 100000, 5000, 10, 300}, /* a block's pairs are far apart */
		{20000, 0, 1, 20000, 120000, 0, 1, 120000},  /* no key is there twice */
		{3000, 7, 3, 1500, 60000, 7, 3, 2000},	     /* keys repeat on either side */
		{2048, 0, 1, 2048, 2048, 0, 1, 2048},	     /* exactly a block's pairs */
		{300, 0, 2, 300, 100000, 1, 2, 300},	     /* none */
		{0, 0, 1, 1, 100000, 0, 2, 300},
	};
	struct pfs_run run = {.on = kind};
	struct made few = {0}, many = {0};

	run.operators = operators_or_skip(kind, threads);
	make_column(&few, 0, 4, false);
	make_column(&many, 0, 4, false);
	for (size_t i = 0; i < PFS_COUNT(cases); i++) {
		fill_keys(&few, cases[i].n, cases[i].first, cases[i].step, cases[i].share);
		fill_keys(&many, cases[i].m, cases[i].first_m, cases[i].step_m, cases[i].share_m);
		merge(&run, &few, &many, 1);
		merge(&run, &few, &many, 7);
		merge(&run, &many, &few, 1);
	}
	free_made(&few);
	free_made(&many);
	close_operators(&run);
}

/* ---- joins of all rows of a range ---- */

/* Left's rows from..to, joined with unique keys. */
static void join(const struct pfs_run *run, const struct made *left, const struct made *right,
		 uint32_t from, uint32_t to, enum pfs_join_kind kind)
{
	const struct pfs_source sources[] = {{.table = &left->table, .from = from, .to = to},
					     {.table = &right->table}};
	const struct pfs_join_key key = {.left = {0, 0}, .right = {0, 0}};
	const struct pfs_join what = {.kind = kind, .keys = &key, .n_keys = 1};
	bool *is_right = calloc((size_t)1 << 20, sizeof(*is_right)),
	     *is_met = calloc(MOST, sizeof(*is_met));
	struct pfs_tuples *tuples;
	uint64_t n = 0;

	assert_non_null(is_right);
	assert_non_null(is_met);
	for (uint64_t i = 0; i < right->table.n_rows; i++)
		is_right[value_of(right, 0, i)] = true;
	for (uint64_t i = from; i < to; i++)
		n += kind == PFS_JOIN_LEFT || is_right[value_of(left, 0, i)];
	assert_int_equal(pfs_join(run, &tuples, &sources[0], &sources[1], &what), 0);
	assert_int_equal(pfs_tuples_here(run, tuples), 0);
	assert_int_equal(tuples->n, n);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t l = row_of(tuples, 0, i), r = row_of(tuples, 1, i);

		assert_true(l >= from && l < to && !is_met[l]);
		is_met[l] = true;
		if (r == PFS_NO_ROW)
			assert_false(is_right[value_of(left, 0, l)]);
		else
			assert_int_equal(value_of(left, 0, l), value_of(right, 0, r));
	}
	pfs_tuples_free(run, tuples);
	free(is_right);
	free(is_met);
}

static void run_joins(unsigned threads, enum pfs_engine_kind kind)
{
	static const uint32_t ranges[][2] = {
		{0, MOST}, {1, MOST - 1}, {2, 40001}, {3, 5}, {4, 4096}};
	struct pfs_run run = {.on = kind};
	struct made left = {0}, right = {0};
	uint32_t *keys;

	run.operators = operators_or_skip(kind, threads);
	make_column(&left, 0, 4, false);
	make_column(&right, 0, 4, false);
	keys = left.data[0];
	fill_keys(&left, MOST, 3, 2, 1000);
	fill_keys(&right, 1000, 3, 2, 1000);
	for (unsigned missing = 0; missing < 3; missing++) { /* none; the last row; a half */
		for (size_t i = 0; i < PFS_COUNT(ranges); i++) {
			join(&run, &left, &right, ranges[i][0], ranges[i][1], PFS_JOIN_INNER);
			join(&run, &left, &right, ranges[i][0], ranges[i][1], PFS_JOIN_LEFT);
		}
		keys[MOST - 2] = missing ? 5 : 4;
		for (uint32_t i = 0; missing && i < MOST; i += 2)
			keys[i]++;
	}
	free_made(&left);
	free_made(&right);
	close_operators(&run);
}

/* ---- groups ---- */

struct expected {
	uint64_t count;
	int64_t sum, most;
	uint32_t first;
};

/* Rows from..to by column 0, whose elements are below `limit`: how many, and the sum of column 1,
 * if there is one, and the most. */
static void group(const struct pfs_run *run, const struct made *m, uint32_t limit, uint32_t from,
		  uint32_t to, bool has_most)
{
	const struct pfs_source source = {.table = &m->table, .from = from, .to = to};
	const struct pfs_group_key key = {.ref = {0, 0}};
	const struct pfs_aggregate aggregates[] = {{.op = PFS_COUNT_ALL},
						   {.op = PFS_SUM, .ref = {0, 1}},
						   {.op = PFS_MAX, .ref = {0, 1}}};
	const bool has_sum = m->table.n_columns > 1;
	const size_t n_aggregates = has_sum ? 2 + has_most : 1;
	struct expected *expected = calloc(limit, sizeof(*expected));
	struct pfs_tuples *tuples;
	uint64_t n = 0;

	assert_non_null(expected);
	for (uint32_t i = from; i < to; i++) {
		struct expected *e = &expected[value_of(m, 0, i) - m->columns[0].base];

		if (e->count++ == 0) {
			e->first = i;
			e->most = INT64_MIN;
			n++;
		}
		if (!has_sum)
			continue;
		e->sum += value_of(m, 1, i);
		e->most = PFS_MAX(e->most, value_of(m, 1, i));
	}
	assert_int_equal(pfs_group(run, &tuples, &source, &key, 1, aggregates, n_aggregates), 0);
	assert_int_equal(pfs_tuples_here(run, tuples), 0);
	assert_int_equal(tuples->n, n);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t row = row_of(tuples, 0, i);
		struct expected *e = &expected[value_of(m, 0, row) - m->columns[0].base];

		assert_int_equal(row, e->first);
		assert_int_equal(tuples->computed[0].integers[i], e->count);
		if (has_sum)
			assert_int_equal(tuples->computed[1].integers[i], e->sum);
		if (n_aggregates > 2)
			assert_int_equal(tuples->computed[2].integers[i], e->most);
		e->count = 0; /* each is there once */
	}
	pfs_tuples_free(run, tuples);
	free(expected);
}

/* Elements below `limit` as keys, which are met at once or late, and any as values. */
static void fill_groups(struct made *m, uint32_t limit)
{
	m->table.n_rows = MOST;
	for (uint32_t i = 0; i < MOST; i++) {
		uint64_t key = random_below(&seeded, i < MOST / 2 ? limit / 2 : limit);
		uint64_t value = random_next(&seeded) >> random_below(&seeded, 40) >> 20;

		if (i % 3 == 0 && m->columns[1].is_signed)
			value = ~value;
		memcpy((char *)m->data[0] + (size_t)i * m->columns[0].width, &key,
		       m->columns[0].width);
		if (m->table.n_columns > 1)
			memcpy((char *)m->data[1] + (size_t)i * m->columns[1].width, &value,
			       m->columns[1].width);
	}
}

static void run_groups(unsigned threads, uint32_t limit, enum pfs_engine_kind kind)
{
	static const uint32_t ranges[][2] = {
		{0, MOST}, {1, MOST - 1}, {2, 50003}, {5, 7}, {4, 8192}};
	static const unsigned widths[] = {1, 2, 4}, value_widths[] = {0, 4, 8};
	struct pfs_run run = {.on = kind};

	run.operators = operators_or_skip(kind, threads);
	for (unsigned i = 0; i < PFS_COUNT(widths) * PFS_COUNT(value_widths); i++) {
		unsigned value_width = value_widths[i / 3];
		struct made m = {0};

		if (limit > 1u << 8 * PFS_MIN(widths[i % 3], 3u))
			continue;
		make_column(&m, 0, widths[i % 3], false);
		m.columns[0].base = i % 2 ? -70 : 0;
		if (value_width)
			make_column(&m, 1, value_width, value_width == 8);
		fill_groups(&m, limit);
		for (size_t r = 0; r < PFS_COUNT(ranges); r++)
			group(&run, &m, limit, ranges[r][0], ranges[r][1], (i + r) % 2);
		free_made(&m);
	}
	close_operators(&run);
}

/* ---- groups of a batch, without aggregates ---- */

#define DIFFERENT 90u /* keys of left; right has a second of them */

static void run_different(unsigned threads, enum pfs_engine_kind kind)
{
	const struct pfs_join_key on = {.left = {0, 0}, .right = {0, 0}};
	const struct pfs_join what = {.kind = PFS_JOIN_INNER, .keys = &on, .n_keys = 1};
	const struct pfs_group_key key = {.ref = {0, 0}}, by_count = {.ref = {PFS_COMPUTED, 0}};
	const struct pfs_aggregate count = {.op = PFS_COUNT_ALL};
	struct pfs_run run = {.on = kind};
	struct made left = {0}, right = {0};
	struct pfs_tuples *pairs, *tuples, *counts;

	run.operators = operators_or_skip(kind, threads);
	make_column(&left, 0, 4, false);
	make_column(&right, 0, 4, false);
	fill_keys(&left, MOST, 0, 1, DIFFERENT);
	fill_keys(&right, DIFFERENT / 2, 0, 2, DIFFERENT / 2);
	assert_int_equal(pfs_join(&run, &pairs, &(struct pfs_source){.table = &left.table},
				  &(struct pfs_source){.table = &right.table}, &what),
			 0);
	assert_int_equal(pfs_group(&run, &tuples, &(struct pfs_source){.tuples = pairs}, &key, 1,
				   NULL, 0),
			 0);
	assert_int_equal(pfs_tuples_here(&run, tuples), 0);
	assert_int_equal(tuples->n, DIFFERENT / 2);
	for (uint64_t i = 0; i < tuples->n; i++)
		assert_int_equal(value_of(&left, 0, row_of(tuples, 0, i)),
				 value_of(&right, 0, row_of(tuples, 1, i)));
	pfs_tuples_free(&run, tuples);
	assert_int_equal(pfs_group(&run, &tuples, &(struct pfs_source){.tuples = pairs}, &key, 1,
				   &count, 1),
			 0);
	assert_int_equal(pfs_group(&run, &counts, &(struct pfs_source){.tuples = tuples},
				   &by_count, 1, NULL, 0),
			 0);
	assert_int_equal(pfs_tuples_here(&run, counts), 0);
	assert_in_range(counts->n, 1, 2);
	for (uint64_t i = 0; i < counts->n; i++)
		assert_in_range(counts->computed[0].integers[i], MOST / DIFFERENT,
				MOST / DIFFERENT + 1);
	pfs_tuples_free(&run, counts);
	pfs_tuples_free(&run, tuples);
	pfs_tuples_free(&run, pairs);
	free_made(&left);
	free_made(&right);
	close_operators(&run);
}

ON_BOTH(merges, run_merges, 2)
ON_BOTH(joins, run_joins, 2)
ON_BOTH(few_groups, run_groups, 2, 200)
ON_BOTH(several_groups, run_groups, 2, 9000)
ON_BOTH(many_groups, run_groups, 2, 50000)
ON_BOTH(different, run_different, 2)

/* With an argument, a pattern, only the tests that match it. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {BOTH(merges), BOTH(joins), BOTH(few_groups),
					   BOTH(several_groups), BOTH(many_groups),
					   BOTH(different)};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
