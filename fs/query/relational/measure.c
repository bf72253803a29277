/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "gpu/aggregate.h"
#include "gpu/relation.h"

#define ROUNDS	    3
#define ROWS	    65536u
#define FEW_GROUPS  1000u
#define NAME_BYTES  16u /* with the length, which comes first */
#define DEVICE_ROWS (UINT32_C(4) << 20)

/* ---- the table ---- */

enum { FEW, MANY, LARGE, NAME, COLUMNS };

struct samples {
	struct pfs_run run;
	struct pfs_table table;
	struct pfs_table_column columns[COLUMNS];
	struct pfs_heap heap;
	int64_t large[ROWS];
	uint32_t few[ROWS], many[ROWS], name[ROWS];
	uint8_t names[(size_t)ROWS * NAME_BYTES];
};

static uint64_t mix(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9;
	return x ^ x >> 32;
}

static struct pfs_table_column column(const void *data, uint8_t width)
{
	return (struct pfs_table_column){
		.kind = PFS_KIND_INTEGER, .width = width, .not_null = true, .data = data};
}

static void fill(struct samples *s)
{
	for (uint32_t i = 0; i < ROWS; i++) {
		uint64_t random = mix(i + 1);
		uint8_t *name = s->names + (size_t)i * NAME_BYTES;

		s->large[i] = (int64_t)(random >> 24);
		s->few[i] = (uint32_t)(random % FEW_GROUPS);
		s->many[i] = (uint32_t)(random >> 16 & (ROWS - 1));
		s->name[i] = i;
		name[0] = NAME_BYTES - 1;
		for (unsigned k = 1; k < NAME_BYTES; k++)
			name[k] = (uint8_t)('a' + (random >> 4 * k) % 26);
	}
	s->heap = (struct pfs_heap){
		.bytes = s->names, .size = sizeof(s->names), .place_shift = 4, .length_size = 1};
	s->columns[FEW] = column(s->few, sizeof(*s->few));
	s->columns[MANY] = column(s->many, sizeof(*s->many));
	s->columns[LARGE] = column(s->large, sizeof(*s->large));
	s->columns[LARGE].is_signed = true;
	s->columns[NAME] = column(s->name, sizeof(*s->name));
	s->columns[NAME].kind = PFS_KIND_PLACE;
	s->columns[NAME].heap = &s->heap;
	s->table = (struct pfs_table){.n_rows = ROWS, .n_columns = COLUMNS, .columns = s->columns};
}

/* ---- samples ---- */

static int select_rows(const struct pfs_run *run, const struct pfs_table *table,
		       const struct pfs_program *program)
{
	const struct pfs_source source = {.table = table};
	struct pfs_rows *rows;

	PFS_TRY(pfs_select(run, &rows, &source, program));
	pfs_rows_free(run, rows);
	return 0;
}

static int select_above(const struct pfs_run *run, const struct pfs_table *table, uint16_t number)
{
	const struct pfs_step steps[] = {
		{.op = PFS_OP_COLUMN, .ref = {0, number}},
		{.op = PFS_OP_CONSTANT,
		 .constant = {.type = PFS_IS_INTEGER, .integer = INT64_C(1) << 38}},
		{.op = PFS_OP_GE},
	};

	return select_rows(run, table, &(struct pfs_program){steps, PFS_COUNT(steps)});
}

static int look(const struct samples *s)
{
	return select_above(&s->run, &s->table, LARGE);
}

static int pattern(const struct samples *s)
{
	static const char text[] = "%n_edl%s%";
	const struct pfs_step steps[] = {
		{.op = PFS_OP_COLUMN, .ref = {0, NAME}},
		{.op = PFS_OP_LIKE,
		 .constant = {.type = PFS_IS_TEXT, .text = text, .len = sizeof(text) - 1}},
	};

	return select_rows(&s->run, &s->table, &(struct pfs_program){steps, PFS_COUNT(steps)});
}

/* Counts rows and adds values up; of groups, if there is a key. */
static int group(const struct samples *s, const struct pfs_group_key *key)
{
	const struct pfs_aggregate aggregates[] = {{.op = PFS_COUNT_ALL},
						   {.op = PFS_SUM, .ref = {0, LARGE}}};
	const struct pfs_source source = {.table = &s->table};
	struct pfs_tuples *tuples;

	PFS_TRY(pfs_group(&s->run, &tuples, &source, key, key != NULL, aggregates,
			  PFS_COUNT(aggregates)));
	pfs_tuples_free(&s->run, tuples);
	return 0;
}

static int fold(const struct samples *s)
{
	return group(s, NULL);
}

static int group_few(const struct samples *s)
{
	return group(s, &(struct pfs_group_key){.ref = {0, FEW}});
}

static int group_many(const struct samples *s)
{
	return group(s, &(struct pfs_group_key){.ref = {0, MANY}});
}

static int sort(const struct samples *s)
{
	const struct pfs_sort_key key = {.ref = {0, LARGE}};
	const struct pfs_source source = {.table = &s->table};
	struct pfs_tuples *tuples;

	PFS_TRY(pfs_sort(&s->run, &tuples, &source, &key, 1, 0, UINT64_MAX));
	pfs_tuples_free(&s->run, tuples);
	return 0;
}

static int join(const struct samples *s)
{
	const struct pfs_join_key key = {.left = {0, MANY}, .right = {0, MANY}};
	const struct pfs_join how = {.how = PFS_JOIN_HASH, .keys = &key, .n_keys = 1};
	const struct pfs_source source = {.table = &s->table};
	struct pfs_tuples *tuples;

	PFS_TRY(pfs_join(&s->run, &tuples, &source, &source, &how));
	pfs_tuples_free(&s->run, tuples);
	return 0;
}

/* Takes each sample once, and keeps the least time of each. */
static int take(struct pfs_measured *out, const struct samples *s)
{
	static int (*const all[PFS_N_SAMPLES])(const struct samples *s) = {
		[PFS_SAMPLE_LOOK] = look,
		[PFS_SAMPLE_PATTERN] = pattern,
		[PFS_SAMPLE_FOLD] = fold,
		[PFS_SAMPLE_GROUP_FEW] = group_few,
		[PFS_SAMPLE_GROUP_MANY] = group_many,
		[PFS_SAMPLE_SORT] = sort,
		[PFS_SAMPLE_JOIN] = join,
	};

	for (unsigned i = 0; i < PFS_N_SAMPLES; i++) {
		int64_t start = pfs_clock_ns(CLOCK_THREAD_CPUTIME_ID);

		PFS_TRY(all[i](s));
		out->ns[i] = fmin(out->ns[i],
				  (double)(pfs_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / ROWS);
	}
	return 0;
}

int pfs_measure_host(struct pfs_measured *out, int (*poll)(void *context), void *context)
{
	struct samples *s PFS_FREE = malloc(sizeof(*s));
	int error;

	for (unsigned i = 0; i < PFS_N_SAMPLES; i++)
		out->ns[i] = INFINITY;
	if (!s)
		return -ENOMEM;
	fill(s);
	s->run = (struct pfs_run){.on = PFS_ENGINE_HOST, .poll = poll, .context = context};
	error = pfs_operators_open(&s->run.operators, PFS_ENGINE_HOST, 1);
	for (unsigned i = 0; i < ROUNDS && !error; i++)
		error = take(out, s);
	pfs_operators_close(s->run.operators);
	return error;
}

/* ---- a device ---- */

/* Nanoseconds to select rows, the least of several times. The column is sent each time, because it
 * has no stamps; NULL: nothing is sent. */
static int time_device(double *ns, const struct pfs_run *run, const int64_t *values, uint32_t n)
{
	const struct pfs_table_column large = column(values, sizeof(*values));
	const struct pfs_table table = {
		.n_rows = n, .n_columns = values != NULL, .columns = &large};

	*ns = INFINITY;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t start = pfs_now_ns();

		PFS_TRY(values ? select_above(run, &table, 0) : select_rows(run, &table, NULL));
		*ns = fmin(*ns, (double)(pfs_now_ns() - start));
	}
	return 0;
}

int pfs_measure_device(struct pfs_seen *seen, struct pfs_operators *operators)
{
	struct pfs_operator_counts counts = {0};
	const struct pfs_run run = {
		.operators = operators, .on = PFS_ENGINE_CUDA, .counts = &counts};
	int64_t *values PFS_FREE = malloc(DEVICE_ROWS * sizeof(*values));
	double many;

	if (!values)
		return -ENOMEM;
	memset(values, 1, DEVICE_ROWS * sizeof(*values));
	PFS_TRY(time_device(&seen->launch_ns, &run, NULL, 1));
	PFS_TRY(time_device(&many, &run, values, DEVICE_ROWS));
	if (counts.host)
		return -EOPNOTSUPP;
	seen->byte_ns = (many - seen->launch_ns) / ((double)DEVICE_ROWS * sizeof(*values));
	return 0;
}
