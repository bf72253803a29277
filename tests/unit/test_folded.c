/* SPDX-License-Identifier: MIT */
/* Aggregates of programs, which are computed while tuples are added, once for all that have the same
 * one, beside those of the vectors that the programs make, whose values are SQLite's; and arithmetic with constants at the ends of the integers. PFS_SEED=N:
 * that seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "gpu/aggregate.h"
#include "tests/ref/relation.h"

#define SEVEN 1 /* which of the programs is a constant */

static const struct {
	enum pfs_aggregate_op op;
	uint16_t program;
} ops[] = {
	{PFS_SUM, 0}, {PFS_SUM, SEVEN},	  {PFS_COUNT, 0},     {PFS_TOTAL, 0},
	{PFS_AVG, 0}, {PFS_COUNT, SEVEN}, {PFS_COUNT_ALL, 0},
};

static struct ref_expression expression;

static bool bit(const uint64_t *bits, uint64_t i)
{
	return bits && (bits[i / 64] >> i % 64 & 1);
}

static bool is_real(const struct pfs_vector *v, uint64_t i)
{
	return v->kind == PFS_KIND_REAL || bit(v->is_real, i);
}

/* One thread adds reals in the same order both times; several do not. Where all are NULL, a vector's
 * kind may be another one. */
static void compare(const struct pfs_vector *a, const struct pfs_vector *b, bool has_order)
{
	assert_int_equal(a->n, b->n);
	for (uint64_t i = 0; i < a->n; i++) {
		if (pfs_vector_is_null(a, i) && pfs_vector_is_null(b, i))
			continue;
		assert_int_equal(is_real(a, i), is_real(b, i));
		if (is_real(a, i) && !has_order)
			continue;
		assert_int_equal(pfs_vector_is_null(a, i), pfs_vector_is_null(b, i));
		assert_true(a->integers[i] == b->integers[i]);
	}
}

/* The vector's values are those that SQLite has for the rows of table a. */
static void check_values(struct ref_world *w, const struct pfs_vector *v)
{
	static char sql[sizeof(expression.sql) + 100];
	sqlite3_stmt *statement;
	uint64_t i = 0;

	(void)snprintf(sql, sizeof(sql), "SELECT %s FROM a ORDER BY r", expression.sql);
	statement = ref_prepare(w, sql, &expression);
	for (; sqlite3_step(statement) == SQLITE_ROW; i++) {
		int type = sqlite3_column_type(statement, 0);

		assert_true(i < v->n);
		assert_int_equal(pfs_vector_is_null(v, i), type == SQLITE_NULL);
		if (type == SQLITE_NULL)
			continue;
		assert_int_equal(is_real(v, i), type == SQLITE_FLOAT);
		if (type == SQLITE_FLOAT)
			assert_true(v->reals[i] == sqlite3_column_double(statement, 0));
		else
			assert_true(v->integers[i] == sqlite3_column_int64(statement, 0));
	}
	assert_int_equal(i, v->n);
	(void)sqlite3_finalize(statement);
}

/* Groups of a constant: 7 for each tuple. */
static void check_sevens(const struct pfs_tuples *groups)
{
	const struct pfs_vector *sum = &groups->computed[1], *n = &groups->computed[6];

	for (uint64_t i = 0; i < groups->n; i++)
		assert_true(n->integers[i] == 0 || sum->integers[i] == 7 * n->integers[i]);
}

static void group_both(struct ref_world *w, const struct pfs_source *source, bool has_order)
{
	const struct pfs_step seven = {.op = PFS_OP_CONSTANT,
				       .constant = {.type = PFS_IS_INTEGER, .integer = 7}};
	const struct pfs_program programs[] = {{.steps = expression.steps, .n = expression.n},
					       {.steps = &seven, .n = 1}};
	const struct pfs_group_key keys[] = {
		{.ref = {0, (uint16_t)ref_below(w, REF_COLUMNS_MAX)}},
		{.ref = {0, (uint16_t)ref_below(w, REF_COLUMNS_MAX)}},
	};
	size_t n_keys = ref_below(w, 3);
	struct pfs_aggregate folded[PFS_COUNT(ops)], read[PFS_COUNT(ops)];
	struct pfs_source computed = {0};
	struct pfs_tuples *at_once, *afterwards;
	int error;

	for (size_t i = 0; i < PFS_COUNT(ops); i++) {
		folded[i] = (struct pfs_aggregate){.op = ops[i].op,
						   .program = &programs[ops[i].program]};
		read[i] = (struct pfs_aggregate){.op = ops[i].op,
						 .ref = {PFS_COMPUTED, ops[i].program}};
	}
	assert_int_equal(pfs_compute(&w->run, &computed.tuples, source, programs, 2), 0);
	check_values(w, &computed.tuples->computed[0]);
	error = pfs_group(&w->run, &afterwards, &computed, keys, n_keys, read, PFS_COUNT(ops));
	assert_int_equal(pfs_group(&w->run, &at_once, source, keys, n_keys, folded, PFS_COUNT(ops)),
			 error);
	if (!error) {
		assert_int_equal(at_once->n, afterwards->n);
		assert_int_equal(at_once->n_computed + 2, afterwards->n_computed);
		for (size_t i = 0; i < PFS_COUNT(ops) && afterwards->n; i++)
			compare(&at_once->computed[i], &afterwards->computed[i + 2], has_order);
		check_sevens(at_once);
	}
	pfs_tuples_free(&w->run, at_once);
	pfs_tuples_free(&w->run, afterwards);
	pfs_tuples_free(&w->run, computed.tuples);
}

static void fold_random(unsigned n_threads)
{
	static const uint32_t sizes[] = {0, 1, 63, 64, 1000, 1024, 1025, 5000, 40000};
	const char *seed = getenv("PFS_SEED");
	struct pfs_operators *operators;
	struct ref_world w;

	assert_int_equal(pfs_operators_open(&operators, PFS_ENGINE_HOST, n_threads), 0);
	ref_open(&w, operators, PFS_ENGINE_HOST, seed ? strtoull(seed, NULL, 0) : 20261127);
	for (size_t i = 0; i < PFS_COUNT(sizes); i++) {
		for (unsigned round = 0; round < 40; round++) {
			struct pfs_source source = {.table = &w.a.table};

			if (round % 8 == 0)
				ref_fill(&w, sizes[i], 1);
			memset(&expression, 0, sizeof(expression));
			ref_number(&w, &expression, 1 + ref_below(&w, 3));
			group_both(&w, &source, n_threads == 1);
			ref_expression_finish(&w, &expression);
		}
	}
	ref_close(&w);
	pfs_operators_close(operators);
}

static void as_computed(void **state)
{
	(void)state;
	fold_random(1);
	fold_random(3);
}

/* An end would have to be looked up where it was found. */
static void ends_are_refused(void **state)
{
	const struct pfs_step step = {.op = PFS_OP_CONSTANT, .constant = {.type = PFS_IS_INTEGER}};
	const struct pfs_program program = {.steps = &step, .n = 1};
	const struct pfs_aggregate max = {.op = PFS_MAX, .program = &program};
	const struct pfs_table table = {.n_rows = 2};
	const struct pfs_source source = {.table = &table};
	struct pfs_run run = {.on = PFS_ENGINE_HOST};
	struct pfs_tuples *tuples;

	(void)state;
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 1), 0);
	assert_int_equal(pfs_group(&run, &tuples, &source, NULL, 0, &max, 1), -EINVAL);
	assert_null(tuples);
	pfs_operators_close(run.operators);
}

/* ---- constants ---- */

static const int64_t ends[] = { /* they ascend */
	INT64_MIN,
	INT64_MIN + 1,
	-(INT64_C(1) << 53) - 1,
	-(INT64_C(1) << 53),
	-3,
	-2,
	-1,
	0,
	1,
	2,
	3,
	7,
	1000,
	(INT64_C(1) << 32) - 1,
	(INT64_C(1) << 53) - 1,
	INT64_C(1) << 53,
	(INT64_C(1) << 53) + 1,
	INT64_C(1) << 62,
	INT64_MAX - 1,
	INT64_MAX,
};

static const char *const signs[] = {"+", "-", "*", "/", "%"}; /* from PFS_OP_ADD on */

/* By sign, left operand and right one, each the number of an end: what SQLite has. */
static struct answer {
	int type;
	int64_t integer;
	double real;
} answers[PFS_COUNT(signs)][PFS_COUNT(ends)][PFS_COUNT(ends)];

static void ask_sqlite(void)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	for (size_t i = 0; i < PFS_COUNT(signs) * PFS_COUNT(ends) * PFS_COUNT(ends); i++) {
		size_t left = i % PFS_COUNT(ends), right = i / PFS_COUNT(ends) % PFS_COUNT(ends);
		size_t sign = i / PFS_COUNT(ends) / PFS_COUNT(ends);
		sqlite3_stmt *row;
		char sql[32];

		(void)snprintf(sql, sizeof(sql), "SELECT ?1 %s ?2", signs[sign]);
		assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
		assert_int_equal(sqlite3_bind_int64(row, 1, ends[left]), SQLITE_OK);
		assert_int_equal(sqlite3_bind_int64(row, 2, ends[right]), SQLITE_OK);
		assert_int_equal(sqlite3_step(row), SQLITE_ROW);
		answers[sign][left][right] = (struct answer){
			.type = sqlite3_column_type(row, 0),
			.integer = sqlite3_column_int64(row, 0),
			.real = sqlite3_column_double(row, 0),
		};
		(void)sqlite3_finalize(row);
	}
	(void)sqlite3_close(db);
}

static struct pfs_step operand(uint16_t column, const int64_t *constant)
{
	struct pfs_step step = {.op = constant ? PFS_OP_CONSTANT : PFS_OP_COLUMN};

	if (constant)
		step.constant = (struct pfs_constant){.type = PFS_IS_INTEGER, .integer = *constant};
	else
		step.ref.column = column;
	return step;
}

/* One operand is the ends from..to, row by row, and the other one the end `constant`, a constant if
 * it is_constant, or else a column that has nothing else. */
static void check_sign(struct pfs_run *run, size_t sign, size_t from, size_t to, size_t constant,
		       bool is_left, bool is_constant)
{
	int64_t same[PFS_COUNT(ends)];
	const struct pfs_table_column columns[] = {
		{.kind = PFS_KIND_INTEGER, .width = 8, .is_signed = true, .data = &ends[from]},
		{.kind = PFS_KIND_INTEGER, .width = 8, .is_signed = true, .data = same},
	};
	const struct pfs_table table = {
		.n_rows = (uint32_t)(to - from), .n_columns = 2, .columns = columns};
	const struct pfs_source source = {.table = &table};
	const struct pfs_step column = operand(0, NULL),
			      other = operand(1, is_constant ? &ends[constant] : NULL);
	const struct pfs_step steps[] = {is_left ? other : column,
					 is_left ? column : other,
					 {.op = (enum pfs_op)(PFS_OP_ADD + sign)}};
	const struct pfs_program program = {.steps = steps, .n = PFS_COUNT(steps)};
	struct pfs_tuples *tuples;

	for (size_t i = 0; i < PFS_COUNT(same); i++)
		same[i] = ends[constant];
	assert_int_equal(pfs_project(run, &tuples, &source, &program, 1), 0);
	assert_int_equal(tuples->n, to - from);
	for (size_t i = 0; i < tuples->n; i++) {
		const struct answer *wanted = is_left ? &answers[sign][constant][from + i]
						      : &answers[sign][from + i][constant];
		const struct pfs_vector *v = &tuples->computed[0];

		assert_int_equal(pfs_vector_is_null(v, i), wanted->type == SQLITE_NULL);
		if (wanted->type == SQLITE_NULL)
			continue;
		assert_int_equal(is_real(v, i), wanted->type == SQLITE_FLOAT);
		if (wanted->type == SQLITE_FLOAT)
			assert_true(v->reals[i] == wanted->real);
		else
			assert_true(v->integers[i] == wanted->integer);
	}
	pfs_tuples_free(run, tuples);
}

/* Whether a span's rows are computed at once with a constant depends on the least and the greatest
 * of them: so each stretch of the ends is a span. */
static void constants_are_sqlites(void **state)
{
	struct pfs_run run = {.on = PFS_ENGINE_HOST};

	(void)state;
	ask_sqlite();
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 1), 0);
	for (size_t i = 0; i < PFS_COUNT(signs) * PFS_COUNT(ends) * 4; i++) {
		size_t sign = i / 4 / PFS_COUNT(ends), constant = i / 4 % PFS_COUNT(ends);

		for (size_t from = 0; from < PFS_COUNT(ends); from++) {
			for (size_t to = from + 1; to <= PFS_COUNT(ends); to++)
				check_sign(&run, sign, from, to, constant, i & 1, i & 2);
		}
	}
	pfs_operators_close(run.operators);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_computed),
		cmocka_unit_test(ends_are_refused),
		cmocka_unit_test(constants_are_sqlites),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
