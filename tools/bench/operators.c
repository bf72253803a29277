/* SPDX-License-Identifier: MIT */
/* primefs-bench operators - measures the relational operators over columns of generated rows, on
 * the host or a device. Beside each is the time for which a copy of the same run moves the bytes
 * that the operator must read.
 *
 * Columns are where the operator computes (on a device they are mirrored before the first figure),
 * and results stay there, unless a line says otherwise. Each answer is compared with that of a
 * plain loop. */
#include "tools/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "gpu/aggregate.h"
#include "gpu/probe.h"
#include "gpu/relation.h"

#define RUNS	   9
#define NAME_BYTES 20u

enum { ROWS, ENGINE, ONLY };

static const struct pfs_cmd_option options[] = {
	[ROWS] = {"rows", 'n', "N", "of the table (10000000)"},
	[ENGINE] = {"engine", 'e', "NAME", "host or cuda (host)"},
	[ONLY] = {"only", 'o', "WORD", "figures whose name has the word"},
	{0},
};

static const struct pfs_cmd command = {
	"operators",
	"",
	"Times the relational operators beside a copy of the bytes that they read.",
	options,
	"Each answer is compared with that of a plain loop: BAD where they differ.\n",
};

/* The columns of the table. */
enum { VALUE, LARGE, FEW, MANY, SKEWED_FEW, SKEWED, CHOSEN, NAME, COLUMNS };

struct bench {
	uint32_t n;
	struct pfs_operators *operators;
	struct pfs_run run;
	struct pfs_table table;
	struct pfs_table_column columns[COLUMNS];
	struct pfs_stamps stamps[COLUMNS];
	struct pfs_heap heap;
	uint8_t *names;
	void *data[COLUMNS];
	double copy_rate; /* bytes a second, both read and written */
	const char *only;
	bool bad;
	struct pfs_table small; /* for joins: unique keys */
	struct pfs_table_column small_column;
	struct pfs_stamps small_stamps;
	uint32_t *small_keys;
};

/* ---- the rows ---- */

#define FEW_GROUPS  1000u
#define MANY_GROUPS 1000000u

static int stamp(struct pfs_stamps *stamps, uint32_t n)
{
	static const uint64_t clock; /* nothing changes */

	stamps->id = pfs_table_new_id();
	stamps->clock = &clock;
	stamps->block = calloc(n / PFS_BLOCK_ROWS + 1, sizeof(*stamps->block));
	return stamps->block ? 0 : -ENOMEM;
}

static int add_column(struct bench *b, unsigned i, unsigned width)
{
	b->data[i] = malloc((size_t)b->n * width + 8);
	if (!b->data[i])
		return -ENOMEM;
	b->columns[i] = (struct pfs_table_column){.kind = PFS_KIND_INTEGER,
						  .width = (uint8_t)width,
						  .not_null = true,
						  .data = b->data[i],
						  .data_stamps = &b->stamps[i]};
	return stamp(&b->stamps[i], b->n);
}

/* Returns a rank that follows Zipf's law with exponent 0.86 over n values, roughly, by the inverse
 * of its integral. */
static uint32_t zipf(uint64_t random, uint32_t n)
{
	double u = (double)(random >> 11) * 0x1p-53, a = 1 - 0.86;
	double x = pow(u * (pow(n, a) - 1) + 1, 1 / a);

	return (uint32_t)PFS_MIN(x - 1, (double)(n - 1));
}

static void fill(struct bench *b)
{
	uint32_t *value = b->data[VALUE], *few = b->data[FEW], *many = b->data[MANY];
	uint32_t *skewed = b->data[SKEWED], *skewed_few = b->data[SKEWED_FEW];
	uint32_t *chosen = b->data[CHOSEN], *name = b->data[NAME];
	int64_t *large = b->data[LARGE];
	static const char needle[] = {'n', 'e', 'e', 'd', 'l', 'e'};

	for (uint32_t i = 0; i < b->n; i++) {
		uint64_t r = pfs_bench_mix(i + 1), s = pfs_bench_mix(r);
		uint8_t *text = b->names + (size_t)i * 24;

		value[i] = (uint32_t)(r & 0xffffff);
		large[i] = (int64_t)(s >> 29) - (int64_t)(UINT64_C(1) << 34);
		few[i] = (uint32_t)(r >> 32) % FEW_GROUPS;
		many[i] = (uint32_t)(s >> 32) % MANY_GROUPS;
		skewed[i] = zipf(pfs_bench_mix(s), MANY_GROUPS);
		skewed_few[i] = zipf(pfs_bench_mix(s), FEW_GROUPS);
		chosen[i] = (uint32_t)(s & 0xffff);
		name[i] = i * 3;
		text[0] = NAME_BYTES;
		for (unsigned k = 1; k <= NAME_BYTES; k++)
			text[k] = (uint8_t)('a' + (pfs_bench_mix(r + k) % 26));
		if (i % 100 == 7)
			memcpy(text + 5, needle, sizeof(needle));
	}
}

static int make_table(struct bench *b)
{
	static const unsigned width[COLUMNS] = {4, 8, 4, 4, 4, 4, 4, 4};

	for (unsigned i = 0; i < COLUMNS; i++)
		PFS_TRY(add_column(b, i, width[i]));
	b->names = malloc((size_t)b->n * 24 + 64);
	if (!b->names)
		return -ENOMEM;
	b->heap = (struct pfs_heap){.id = pfs_table_new_id(),
				    .bytes = b->names,
				    .size = (uint64_t)b->n * 24,
				    .place_shift = 3,
				    .length_size = 1};
	b->columns[NAME].kind = PFS_KIND_PLACE;
	b->columns[NAME].heap = &b->heap;
	b->table = (struct pfs_table){
		.n_rows = b->n, .n_columns = COLUMNS, .columns = b->columns, .epoch = 1};
	fill(b);
	return 0;
}

static void free_table(struct bench *b)
{
	for (unsigned i = 0; i < COLUMNS; i++) {
		free(b->data[i]);
		free(b->stamps[i].block);
	}
	free(b->names);
	free(b->small_keys);
	free(b->small_stamps.block);
}

/* ---- figures ---- */

typedef int what_fn(struct bench *b, bool check);

static void print(const struct bench *b, const char *name, uint64_t bytes, double *seconds,
		  const char *judged)
{
	double floor_ms = (double)bytes / b->copy_rate * 1e3;
	struct pfs_figure figure;

	pfs_figure_of(&figure, seconds, RUNS);
	(void)printf("%-46s %9.3f ms [%.3f %.3f]; its bytes copied %8.3f ms; %5.1f %%  %s\n", name,
		     figure.median * 1e3, figure.least * 1e3, figure.most * 1e3, floor_ms,
		     100 * floor_ms / (figure.median * 1e3), judged);
	(void)fflush(stdout);
}

static int time_what(struct bench *b, const char *name, uint64_t bytes, what_fn *what)
{
	double seconds[RUNS];
	int error;

	if (b->only && !strstr(name, b->only))
		return 0;
	b->bad = false;
	error = what(b, true); /* this also warms up */
	if (error) {
		(void)printf("%-46s %s\n", name, strerror(-error));
		return error == -EOPNOTSUPP ? 0 : error;
	}
	PFS_TRY(what(b, false));
	for (unsigned i = 0; i < RUNS; i++) {
		double start = pfs_bench_now();

		PFS_TRY(what(b, false));
		seconds[i] = pfs_bench_now() - start;
	}
	print(b, name, bytes, seconds, b->bad ? "BAD" : "ok");
	return 0;
}

static const struct pfs_source *table_of(struct bench *b)
{
	static struct pfs_source source;

	source = (struct pfs_source){.table = &b->table};
	return &source;
}

/* ---- selections ---- */

static struct pfs_constant number(int64_t x)
{
	return (struct pfs_constant){.type = PFS_IS_INTEGER, .integer = x};
}

#define COLUMN(c)   {.op = PFS_OP_COLUMN, .ref = {0, (c)}}
#define CONSTANT(x) {.op = PFS_OP_CONSTANT, .constant = number(x)}

static int select_two(struct bench *b, bool check)
{
	const struct pfs_step steps[] = {COLUMN(LARGE),	 CONSTANT(0),	   {.op = PFS_OP_GE},
					 COLUMN(CHOSEN), CONSTANT(0x1000), {.op = PFS_OP_LT},
					 {.op = PFS_OP_AND}};
	const int64_t *large = b->data[LARGE];
	const uint32_t *chosen = b->data[CHOSEN];
	struct pfs_rows *rows;
	uint64_t n, wanted = 0;

	PFS_TRY(pfs_select(&b->run, &rows, table_of(b), &(struct pfs_program){steps, 7}));
	if (check) {
		PFS_TRY(pfs_rows_count(&b->run, &n, rows));
		for (uint32_t i = 0; i < b->n; i++)
			wanted += large[i] >= 0 && chosen[i] < 0x1000;
		PFS_TRY(pfs_rows_here(&b->run, rows));
		for (uint32_t i = 0; i < PFS_MIN(b->n, 100000u); i++)
			b->bad |= pfs_rows_has(rows, i) != (large[i] >= 0 && chosen[i] < 0x1000);
		b->bad |= n != wanted;
	}
	pfs_rows_free(&b->run, rows);
	return 0;
}

static int count_names(struct bench *b, bool check)
{
	const struct pfs_step steps[] = {
		COLUMN(NAME),
		{.op = PFS_OP_CONTAINS,
		 .constant = {.type = PFS_IS_TEXT, .text = "needle", .len = 6}}};
	uint64_t n, wanted = 0;
	struct pfs_rows *rows;
	int error;

	PFS_TRY(pfs_select(&b->run, &rows, table_of(b), &(struct pfs_program){steps, 2}));
	error = pfs_rows_count(&b->run, &n, rows);
	pfs_rows_free(&b->run, rows);
	PFS_TRY(error);
	for (uint32_t i = 0; check && i < b->n; i++)
		wanted += memmem(b->names + (size_t)i * 24 + 1, NAME_BYTES, "needle", 6) != NULL;
	b->bad |= check && n != wanted;
	return 0;
}

/* ---- groups ---- */

static int check_groups(struct bench *b, struct pfs_tuples *tuples, uint16_t key, uint16_t value,
			uint32_t n_groups)
{
	uint64_t *count PFS_FREE = calloc(n_groups, sizeof(*count));
	int64_t *sum PFS_FREE = calloc(n_groups, sizeof(*sum));
	const uint32_t *keys = b->data[key];
	uint64_t groups = 0;

	if (!count || !sum)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->n; i++) {
		count[keys[i]]++;
		sum[keys[i]] += value == LARGE ? ((int64_t *)b->data[LARGE])[i]
					       : ((uint32_t *)b->data[value])[i];
	}
	for (uint32_t g = 0; g < n_groups; g++)
		groups += count[g] != 0;
	PFS_TRY(pfs_tuples_here(&b->run, tuples));
	b->bad |= tuples->n != groups;
	for (uint64_t i = 0; i < tuples->n && !b->bad; i++) {
		uint32_t row = tuples->tables[0].rows ? tuples->tables[0].rows[i]
						      : tuples->tables[0].from + (uint32_t)i;
		uint32_t g = keys[row];

		b->bad |= tuples->computed[0].integers[i] != (int64_t)count[g] ||
			  tuples->computed[1].integers[i] != sum[g];
	}
	return 0;
}

static int group_by(struct bench *b, bool check, uint16_t key, uint16_t value, uint32_t n_groups)
{
	const struct pfs_group_key keys = {.ref = {0, key}};
	const struct pfs_aggregate aggregates[] = {
		{.op = PFS_COUNT_ALL}, {.op = PFS_SUM, .ref = {0, value}}};
	struct pfs_tuples *tuples;
	int error;

	PFS_TRY(pfs_group(&b->run, &tuples, table_of(b), &keys, 1, aggregates, 2));
	error = check ? check_groups(b, tuples, key, value, n_groups) : 0;
	pfs_tuples_free(&b->run, tuples);
	return error;
}

static int group_few(struct bench *b, bool check)
{
	return group_by(b, check, FEW, VALUE, FEW_GROUPS);
}
static int group_many(struct bench *b, bool check)
{
	return group_by(b, check, MANY, VALUE, MANY_GROUPS);
}
static int group_skewed(struct bench *b, bool check)
{
	return group_by(b, check, SKEWED, VALUE, MANY_GROUPS);
}
static int group_skewed_large(struct bench *b, bool check)
{
	return group_by(b, check, SKEWED, LARGE, MANY_GROUPS);
}
static int group_skewed_few(struct bench *b, bool check)
{
	return group_by(b, check, SKEWED_FEW, VALUE, FEW_GROUPS);
}
static int group_skewed_few_large(struct bench *b, bool check)
{
	return group_by(b, check, SKEWED_FEW, LARGE, FEW_GROUPS);
}
static int group_few_large(struct bench *b, bool check)
{
	return group_by(b, check, FEW, LARGE, FEW_GROUPS);
}
static int group_many_large(struct bench *b, bool check)
{
	return group_by(b, check, MANY, LARGE, MANY_GROUPS);
}

static int sum_all(struct bench *b, bool check)
{
	const struct pfs_aggregate aggregate = {.op = PFS_SUM, .ref = {0, LARGE}};
	struct pfs_tuples *tuples;
	int64_t sum = 0;

	PFS_TRY(pfs_group(&b->run, &tuples, table_of(b), NULL, 0, &aggregate, 1));
	if (check) {
		for (uint32_t i = 0; i < b->n; i++)
			sum += ((int64_t *)b->data[LARGE])[i];
		PFS_TRY(pfs_tuples_here(&b->run, tuples));
		b->bad |= tuples->n != 1 || tuples->computed[0].integers[0] != sum;
	}
	pfs_tuples_free(&b->run, tuples);
	return 0;
}

/* ---- order ---- */

static int sort_rows(struct bench *b, bool check, uint64_t limit)
{
	const struct pfs_sort_key key = {.ref = {0, LARGE}, .descending = true, .nulls_last = true};
	const int64_t *large = b->data[LARGE];
	struct pfs_tuples *tuples;
	const uint32_t *rows;

	PFS_TRY(pfs_sort(&b->run, &tuples, table_of(b), &key, 1, 0, limit));
	if (check) {
		PFS_TRY(pfs_tuples_here(&b->run, tuples));
		rows = tuples->tables[0].rows;
		b->bad |= tuples->n != PFS_MIN(limit, b->n);
		for (uint64_t i = 1; i < tuples->n; i++)
			b->bad |= large[rows[i - 1]] < large[rows[i]] ||
				  (large[rows[i - 1]] == large[rows[i]] && rows[i - 1] >= rows[i]);
		for (uint32_t i = 0; tuples->n && limit < b->n && i < b->n; i++)
			b->bad |= large[i] > large[rows[0]];
	}
	pfs_tuples_free(&b->run, tuples);
	return 0;
}

static int sort_all(struct bench *b, bool check)
{
	return sort_rows(b, check, UINT64_MAX);
}
static int sort_ten(struct bench *b, bool check)
{
	return sort_rows(b, check, 10);
}

/* The same keys as numbers with 32-bit places, sorted where they lie: what no order by radix sorts
 * can do without. */
static int time_radix_sort(struct bench *b)
{
	static const char name[] = "sort: the same pairs by CUB's radix sort alone";
	double seconds[RUNS];
	int error;

	if (b->run.on != PFS_ENGINE_CUDA || (b->only && !strstr(name, b->only)))
		return 0;
	error = pfs_sort_probe(&b->run, seconds, RUNS, b->data[LARGE], b->n);
	if (!error)
		print(b, name, (uint64_t)b->n * 12 * 2, seconds, "yardstick");
	return error;
}

/* ---- joins ---- */

/* Makes a hundredth as many unique keys, in no order; each row of the large table has a partner. */
static int make_small(struct bench *b)
{
	uint32_t n = MANY_GROUPS;

	b->small_keys = malloc(n * sizeof(*b->small_keys));
	if (!b->small_keys)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		b->small_keys[i] = (uint32_t)((uint64_t)i * 999983 % n);
	PFS_TRY(stamp(&b->small_stamps, n));
	b->small_column = (struct pfs_table_column){.kind = PFS_KIND_INTEGER,
						    .width = 4,
						    .not_null = true,
						    .unique = true,
						    .data = b->small_keys,
						    .data_stamps = &b->small_stamps};
	b->small = (struct pfs_table){
		.n_rows = n, .n_columns = 1, .columns = &b->small_column, .epoch = 1};
	return 0;
}

static int join_small(struct bench *b, bool check, uint16_t column)
{
	const struct pfs_join_key key = {.left = {0, column}, .right = {0, 0}};
	const struct pfs_join join = {.keys = &key, .n_keys = 1};
	const struct pfs_source right = {.table = &b->small};
	const uint32_t *keys = b->data[column];
	struct pfs_tuples *tuples;

	PFS_TRY(pfs_join(&b->run, &tuples, table_of(b), &right, &join));
	if (check) {
		PFS_TRY(pfs_tuples_here(&b->run, tuples));
		b->bad |= tuples->n != b->n;
		for (uint64_t i = 0; i < tuples->n && !b->bad; i++)
			b->bad |= keys[tuples->tables[0].rows ? tuples->tables[0].rows[i] : i] !=
				  b->small_keys[tuples->tables[1].rows[i]];
	}
	pfs_tuples_free(&b->run, tuples);
	return 0;
}

static int join_even(struct bench *b, bool check)
{
	return join_small(b, check, MANY);
}
static int join_skewed(struct bench *b, bool check)
{
	return join_small(b, check, SKEWED);
}

/* ---- all of it ---- */

static int run_all(struct bench *b)
{
	static const struct {
		const char *what;
		double row; /* bytes that have to be read and written */
		int (*run)(struct bench *b, bool check);
	} all[] = {
		{"select: int64 >= and u32 <, to bits", 12 + 1.0 / 8, select_two},
		{"select: count names with a substring", 4 + 24, count_names},
		{"group: sum of int64, no key", 8, sum_all},
		{"group: count, sum of u32 by 1,000", 8, group_few},
		{"group: count, sum of int64 by 1,000", 12, group_few_large},
		{"group: count, sum of u32 by 1,000, Zipf", 8, group_skewed_few},
		{"group: count, sum of int64 by 1,000, Zipf", 12, group_skewed_few_large},
		{"group: count, sum of u32 by 1,000,000", 8, group_many},
		{"group: count, sum of int64 by 1,000,000", 12, group_many_large},
		{"group: count, sum of u32 by 1,000,000, Zipf", 8, group_skewed},
		{"group: count, sum of int64 by 1,000,000, Zipf", 12, group_skewed_large},
		{"sort: all by int64", 12 * 2, sort_all},
		{"sort: the ten largest int64", 8, sort_ten},
		{"join: with 1,000,000 unique keys", 12, join_even},
		{"join: with 1,000,000 unique keys, Zipf", 12, join_skewed},
	};

	for (size_t i = 0; i < PFS_COUNT(all); i++) {
		PFS_TRY(time_what(b, all[i].what, (uint64_t)((double)b->n * all[i].row),
				  all[i].run));
		if (all[i].run == sort_all)
			PFS_TRY(time_radix_sort(b));
	}
	return 0;
}

static int find_copy_rate(struct bench *b)
{
	struct pfs_engine *engine;
	struct pfs_figure figure;
	int error;

	PFS_TRY(pfs_engine_open(&engine, b->run.on));
	error = pfs_engine_probe(engine, &figure, PFS_PROBE_COPY, NULL, 0, 9);
	pfs_engine_close(engine);
	b->copy_rate = error ? 0 : (double)figure.bytes / figure.median;
	return error;
}

static int bench(struct bench *b)
{
	PFS_TRY(find_copy_rate(b));
	PFS_TRY(pfs_operators_open(&b->operators, b->run.on, 0));
	b->run.operators = b->operators;
	PFS_TRY(make_table(b));
	PFS_TRY(make_small(b));
	(void)printf("%u rows, %s; copy %.0f GB/s\n", b->n,
		     b->run.on == PFS_ENGINE_CUDA ? "cuda" : "host", b->copy_rate / 1e9);
	return run_all(b);
}

int pfs_bench_operators(int argc, char **argv)
{
	struct bench b = {.run.on = PFS_ENGINE_HOST};
	uint64_t rows = 10000000;
	struct pfs_cmd_args args;
	int option, error;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == ROWS)
			pfs_cmd_number(&args, &rows, ROWS, 1000, PFS_ROWS_MAX);
		else if (option == ONLY)
			b.only = args.value;
		else if (pfs_engine_by_name(&b.run.on, args.value) != 0)
			return pfs_cmd_usage("operators", "'%s': no engine", args.value);
	}
	if (pfs_cmd_end(&args, 0, 0))
		return args.status;
	b.n = (uint32_t)rows;
	error = bench(&b);
	pfs_operators_close(b.operators);
	free_table(&b);
	if (error)
		return pfs_cmd_fail("operators", "%s", strerror(-error));
	return pfs_cmd_flush("operators", PFS_EXIT_OK);
}
