/* SPDX-License-Identifier: MIT */
/* Groups by texts of a heap and by rows that a column goes by way of, for which a device has
 * numbers of its own; and orders that it begins and the host ends: each answer is compared with a
 * plain loop's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "both_util.h"
#include "gpu/aggregate.h"
#include "gpu/textheap.h"

#define ROWS	200000u
#define NAMES	5000u
#define CLASSES (NAMES * 6 + 1) /* what names are by bytes, and NULL */
#define PARENTS 9000u
#define SIZES	1000u

enum { NAME, PARENT, SIZE, FEW, COLUMNS };

static uint32_t places[ROWS], parents[ROWS], sizes[ROWS], few[ROWS];
static uint64_t nulls[ROWS / 64 + 1], numbers[PARENTS];
static uint8_t bytes[ROWS * 24];
static struct pfs_heap heap;
static const struct pfs_table_column columns[COLUMNS] = {
	{.kind = PFS_KIND_PLACE, .width = 4, .data = places, .nulls = nulls, .heap = &heap},
	{.kind = PFS_KIND_INTEGER,
	 .width = 8,
	 .data = numbers,
	 .via = parents,
	 .n_elements = PARENTS,
	 .is_by_via = true},
	{.kind = PFS_KIND_INTEGER, .width = 4, .not_null = true, .data = sizes},
	{.kind = PFS_KIND_INTEGER, .width = 4, .not_null = true, .data = few},
};
static const struct pfs_table table = {.n_rows = ROWS, .n_columns = COLUMNS, .columns = columns};

static bool is_null(uint32_t row)
{
	return row % 97 == 5;
}

/* A third of all rows have one name; others have it in capitals, or with spaces behind. */
static uint32_t name_of(uint32_t row)
{
	return row % 3 == 0 ? 0 : row * 7919 % NAMES;
}

/* Tells names apart as the collation does. */
static uint32_t class_of(uint32_t row, enum pfs_collation collation)
{
	uint32_t spaces = row / 16 % 3, is_capital = row / 8 % 2;

	if (is_null(row))
		return CLASSES - 1;
	return name_of(row) * 6 + (collation == PFS_NOCASE ? 0 : is_capital * 3) +
	       (collation == PFS_RTRIM ? 0 : spaces);
}

static void fill(void)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < PARENTS; i++)
		numbers[i] = 2000000011u * (uint64_t)(i + 1);
	for (uint32_t row = 0; row < ROWS; row++) {
		char text[24];
		int len = snprintf(text, sizeof(text), "%cAme-%u%.*s", row / 8 % 2 ? 'N' : 'n',
				   name_of(row), (int)(row / 16 % 3), "  ");

		places[row] = pfs_heap_put(bytes, &at, text, (size_t)len);
		nulls[row / 64] |= (uint64_t)is_null(row) << row % 64;
		/* neighbours are mostly of one parent */
		parents[row] = row % 1000 == 7 ? PFS_NO_ROW : row / 11 * 31 % PARENTS;
		sizes[row] = row * 131 % SIZES;
		few[row] = row % 5;
	}
	heap = pfs_heap_of(bytes, at);
}

/* A device does all of this itself. */
static void close_operators(struct pfs_run *run)
{
	struct pfs_operator_counts counts;

	pfs_operators_count(run->operators, &counts);
	assert_int_equal(run->on == PFS_ENGINE_HOST ? counts.device : counts.host, 0);
	pfs_operators_close(run->operators);
}

static struct pfs_run open_run(unsigned threads, enum pfs_engine_kind kind)
{
	struct pfs_run run = {.operators = operators_or_skip(kind, threads), .on = kind};

	fill();
	return run;
}

static uint32_t row_of(const struct pfs_tuples *tuples, uint64_t i)
{
	return tuples->tables[0].rows ? tuples->tables[0].rows[i]
				      : tuples->tables[0].from + (uint32_t)i;
}

/* ---- groups ---- */

struct expected {
	uint32_t n, first;
	uint64_t sum;
};

static void add_row(struct expected *e, uint32_t row)
{
	e->first = e->n++ ? e->first : row;
	e->sum += sizes[row];
}

/* Groups with a count and a sum are those that are expected, each once. */
static void check_groups(struct pfs_tuples *tuples, const struct expected *expected, size_t n,
			 uint32_t (*number)(uint32_t row, enum pfs_collation by),
			 enum pfs_collation by)
{
	uint64_t groups = 0;

	for (size_t i = 0; i < n; i++)
		groups += expected[i].n != 0;
	assert_int_equal(tuples->n, groups);
	for (uint64_t i = 0; i < tuples->n; i++) {
		const struct expected *e = &expected[number(row_of(tuples, i), by)];

		assert_int_equal(row_of(tuples, i), e->first);
		assert_int_equal(tuples->computed[0].integers[i], e->n);
		assert_int_equal(tuples->computed[1].integers[i], e->sum);
	}
}

/* Groups come in the order of their first tuples, and so each time in the same. */
static void check_order(const struct pfs_tuples *tuples)
{
	for (uint64_t i = 1; i < tuples->n; i++)
		assert_true(row_of(tuples, i - 1) < row_of(tuples, i));
}

static uint32_t parent_of(uint32_t row, enum pfs_collation by PFS_UNUSED)
{
	return parents[row] == PFS_NO_ROW ? PARENTS : parents[row];
}

static void group_by(struct pfs_run *run, unsigned column, enum pfs_collation by,
		     uint32_t (*number)(uint32_t row, enum pfs_collation by), uint32_t from)
{
	static struct expected expected[CLASSES];
	const struct pfs_aggregate aggregates[] = {{.op = PFS_COUNT_ALL},
						   {.op = PFS_SUM, .ref = {0, SIZE}}};
	const struct pfs_group_key key = {.ref = {0, (uint16_t)column}, .collation = by};
	const struct pfs_source source = {.table = &table, .from = from};
	struct pfs_tuples *tuples;

	memset(expected, 0, sizeof(expected));
	for (uint32_t row = from; row < ROWS; row++)
		add_row(&expected[number(row, by)], row);
	assert_int_equal(pfs_group(run, &tuples, &source, &key, 1, aggregates, 2), 0);
	assert_int_equal(pfs_tuples_here(run, tuples), 0);
	check_groups(tuples, expected, CLASSES, number, by);
	if (column == NAME)
		check_order(tuples);
	pfs_tuples_free(run, tuples);
}

static void run_groups(unsigned threads, enum pfs_engine_kind kind)
{
	struct pfs_run run = open_run(threads, kind);

	for (unsigned by = PFS_BINARY; by <= PFS_RTRIM; by++)
		group_by(&run, NAME, (enum pfs_collation)by, class_of, by * 1001);
	group_by(&run, PARENT, PFS_BINARY, parent_of, 0);
	group_by(&run, PARENT, PFS_BINARY, parent_of, 150001);
	close_operators(&run);
}

/* By a name and a parent at once: numbers of a table, not places. */
static void run_pairs(unsigned threads, enum pfs_engine_kind kind)
{
	static uint8_t seen[CLASSES][PARENTS / 8 + 1];
	struct pfs_run run = open_run(threads, kind);
	const struct pfs_group_key keys[] = {{.ref = {0, NAME}}, {.ref = {0, PARENT}}};
	const struct pfs_source source = {.table = &table};
	struct pfs_tuples *tuples;
	uint64_t n = 0;

	memset(seen, 0, sizeof(seen));
	for (uint32_t row = 0; row < ROWS; row++) {
		uint32_t parent = parent_of(row, PFS_BINARY);
		uint8_t *byte = &seen[class_of(row, PFS_BINARY)][parent / 8];

		n += !(*byte >> parent % 8 & 1);
		*byte |= (uint8_t)(1 << parent % 8);
	}
	assert_int_equal(pfs_group(&run, &tuples, &source, keys, 2, NULL, 0), 0);
	assert_int_equal(pfs_tuples_here(&run, tuples), 0);
	assert_int_equal(tuples->n, n);
	if (kind == PFS_ENGINE_CUDA) /* the host orders no more than 65,536 groups */
		check_order(tuples);
	pfs_tuples_free(&run, tuples);
	close_operators(&run);
}

/* ---- different texts ---- */

static int64_t different(uint32_t one_of_five, enum pfs_collation by)
{
	static uint8_t seen[CLASSES];
	int64_t n = 0;

	memset(seen, 0, sizeof(seen));
	for (uint32_t row = 0; row < ROWS; row++) {
		uint32_t class = class_of(row, by);

		if ((one_of_five < 5 && few[row] != one_of_five) || is_null(row))
			continue;
		n += !seen[class];
		seen[class] = 1;
	}
	return n;
}

static void run_different(unsigned threads, enum pfs_engine_kind kind)
{
	struct pfs_run run = open_run(threads, kind);
	const struct pfs_group_key key = {.ref = {0, FEW}};
	const struct pfs_source source = {.table = &table};
	struct pfs_tuples *tuples;

	for (unsigned by = PFS_BINARY; by <= PFS_RTRIM; by++) {
		const struct pfs_aggregate count = {.op = PFS_COUNT_DISTINCT,
						    .ref = {0, NAME},
						    .collation = (enum pfs_collation)by};

		assert_int_equal(pfs_group(&run, &tuples, &source, NULL, 0, &count, 1), 0);
		assert_int_equal(pfs_tuples_here(&run, tuples), 0);
		assert_int_equal(tuples->computed[0].integers[0], different(5, count.collation));
		pfs_tuples_free(&run, tuples);
		assert_int_equal(pfs_group(&run, &tuples, &source, &key, 1, &count, 1), 0);
		assert_int_equal(pfs_tuples_here(&run, tuples), 0);
		assert_int_equal(tuples->n, 5);
		for (uint64_t i = 0; i < 5; i++)
			assert_int_equal(tuples->computed[0].integers[i],
					 different(few[row_of(tuples, i)], count.collation));
		pfs_tuples_free(&run, tuples);
	}
	close_operators(&run);
}

/* ---- the first of an order ---- */

static int compare_rows(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	size_t x_len, y_len;
	const uint8_t *x_text = pfs_heap_text(&heap, places[x], &x_len);
	const uint8_t *y_text = pfs_heap_text(&heap, places[y], &y_len);
	int order = is_null(y) - is_null(x);

	if (!order && !is_null(x))
		order = memcmp(x_text, y_text, PFS_MIN(x_len, y_len));
	if (!order && !is_null(x))
		order = (x_len > y_len) - (x_len < y_len);
	return order ? order : (x > y) - (x < y);
}

static void run_first(unsigned threads, enum pfs_engine_kind kind)
{
	static uint32_t expected[ROWS];
	struct pfs_run run = open_run(threads, kind);
	const struct pfs_sort_key keys[] = {{.ref = {0, SIZE}, .descending = true},
					    {.ref = {0, NAME}}};
	const struct pfs_source source = {.table = &table};
	struct pfs_tuples *tuples;
	size_t n = 0;

	for (uint32_t row = 0; row < ROWS; row++) {
		if (sizes[row] == SIZES - 1)
			expected[n++] = row;
	}
	qsort(expected, n, sizeof(*expected), compare_rows);
	assert_true(n > 13);
	assert_int_equal(pfs_sort(&run, &tuples, &source, keys, 2, 3, 10), 0);
	assert_int_equal(pfs_tuples_here(&run, tuples), 0);
	assert_int_equal(tuples->n, 10);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(row_of(tuples, i), expected[3 + i]);
	pfs_tuples_free(&run, tuples);
	close_operators(&run);
}

/* ---- lists ---- */

/* Of a heap's texts: as they are, and whatever the letters' size. */
static void run_lists(unsigned threads, enum pfs_engine_kind kind)
{
	struct pfs_run run = open_run(threads, kind);
	const struct pfs_source source = {.table = &table};
	const struct pfs_constant list[] = {
		{.type = PFS_IS_TEXT, .text = "nAme-1", .len = 6},
		{.type = PFS_IS_INTEGER, .integer = 1},
		{.type = PFS_IS_TEXT, .text = "nAme-0 ", .len = 7},
	};
	uint64_t count, expected;
	struct pfs_rows *rows;

	for (unsigned i = 0; i < 4; i++) {
		enum pfs_collation by = i / 2 ? PFS_NOCASE : PFS_BINARY;
		const struct pfs_step steps[] = {
			{.op = PFS_OP_COLUMN, .ref = {0, NAME}},
			{.op = PFS_OP_IN, .list = list, .n_list = 3, .collation = by},
			{.op = PFS_OP_NOT}};
		const struct pfs_program program = {.steps = steps, .n = 2 + i % 2};

		expected = 0;
		for (uint32_t row = 0; row < ROWS; row++) {
			uint32_t class = class_of(row, by);

			expected += !is_null(row) && (class == 6 || class == 1) != i % 2;
		}
		assert_int_equal(pfs_select(&run, &rows, &source, &program), 0);
		assert_int_equal(pfs_rows_count(&run, &count, rows), 0);
		assert_int_equal(count, expected);
		pfs_rows_free(&run, rows);
	}
	close_operators(&run);
}

/* ---- columns that are vectors ---- */

/* A sub-select's rows as a table: its columns are read where they were computed. */
static void run_vectors(unsigned threads, enum pfs_engine_kind kind)
{
	static struct expected expected[CLASSES];
	struct pfs_run run = open_run(threads, kind);
	const struct pfs_step steps[] = {{.op = PFS_OP_COLUMN, .ref = {0, PARENT}},
					 {.op = PFS_OP_COLUMN, .ref = {0, SIZE}}};
	const struct pfs_program programs[] = {{&steps[0], 1}, {&steps[1], 1}};
	const struct pfs_aggregate aggregates[] = {{.op = PFS_COUNT_ALL},
						   {.op = PFS_SUM, .ref = {0, 1}}};
	const struct pfs_group_key key = {.ref = {0, 0}};
	const struct pfs_source source = {.table = &table};
	struct pfs_table_column of_vectors[2];
	const struct pfs_table made = {.n_rows = ROWS, .n_columns = 2, .columns = of_vectors};
	struct pfs_tuples *vectors, *tuples;

	memset(expected, 0, sizeof(expected));
	for (uint32_t row = 0; row < ROWS; row++)
		add_row(&expected[parent_of(row, PFS_BINARY)], row);
	assert_int_equal(pfs_project(&run, &vectors, &source, programs, 2), 0);
	assert_int_equal(vectors->n_tables, 0);
	assert_int_equal(vectors->n_computed, 2);
	for (uint16_t i = 0; i < 2; i++)
		of_vectors[i] = (struct pfs_table_column){.kind = PFS_KIND_INTEGER,
							  .width = 8,
							  .is_signed = true,
							  .data = vectors->computed[i].data,
							  .nulls = vectors->computed[i].nulls,
							  .batch = vectors,
							  .vector = i};
	assert_int_equal(pfs_group(&run, &tuples, &(struct pfs_source){.table = &made}, &key, 1,
				   aggregates, 2),
			 0);
	assert_int_equal(pfs_tuples_here(&run, tuples), 0);
	check_groups(tuples, expected, CLASSES, parent_of, PFS_BINARY);
	pfs_tuples_free(&run, tuples);
	assert_int_equal(pfs_table_here(&run, &made), 0);
	for (uint32_t row = 0; row < ROWS; row++) {
		bool is_none = parents[row] == PFS_NO_ROW;

		assert_int_equal(pfs_cell_at(&of_vectors[0], row) == PFS_NO_ROW, is_none);
		if (!is_none)
			assert_int_equal(pfs_cell_integer(&of_vectors[0], row),
					 numbers[parents[row]]);
	}
	pfs_tuples_free(&run, vectors);
	close_operators(&run);
}

ON_BOTH(groups, run_groups, 2)
ON_BOTH(pairs, run_pairs, 2)
ON_BOTH(different, run_different, 2)
ON_BOTH(first, run_first, 2)
ON_BOTH(lists, run_lists, 2)
ON_BOTH(vectors, run_vectors, 2)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		BOTH(groups), BOTH(pairs), BOTH(different), BOTH(first), BOTH(lists), BOTH(vectors),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
