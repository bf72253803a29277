/* SPDX-License-Identifier: MIT */
/* Sets of rows: every form counted, walked and read in words, beside an array of booleans; memory
 * that is charged is given back; programs that are none are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpu/relation.h"
#include "tests/ref/random.h"

#define N_MAX 4097

static int64_t charged, limit = INT64_MAX;

static int charge(void *context, int64_t bytes)
{
	(void)context;
	if (bytes > 0 && charged + bytes > limit)
		return -ENOMEM;
	charged += bytes;
	return 0;
}

static const struct pfs_run run = {.charge = charge};

struct model {
	uint32_t n;
	bool has[N_MAX];
};

static void make(struct pfs_rows **out, struct model *m, uint32_t n, enum pfs_rows_form form,
		 uint64_t *seed)
{
	uint64_t bits[N_MAX / 64 + 1] = {0};
	uint32_t list[N_MAX], count = 0, from = random_below(seed, n + 1);
	uint32_t to = from + random_below(seed, n - from + 1), share = 1 + random_below(seed, 9);

	m->n = n;
	if (form == PFS_ROWS_BITS && random_below(seed, 2)) { /* all of it, or a window */
		from = 0;
		to = n;
	}
	from -= form == PFS_ROWS_BITS ? from % 64 : 0;
	for (uint32_t i = 0; i < n; i++) {
		m->has[i] = form == PFS_ROWS_RANGE ? i >= from && i < to
						   : random_below(seed, share) == 0;
		m->has[i] &= form != PFS_ROWS_BITS || (i >= from && i < to);
		bits[i / 64] |= (uint64_t)m->has[i] << i % 64;
		if (m->has[i])
			list[count++] = i;
	}
	if (form == PFS_ROWS_RANGE)
		assert_int_equal(pfs_rows_of_range(&run, out, n, from, to), 0);
	else if (form == PFS_ROWS_BITS)
		assert_int_equal(pfs_rows_of_bits(&run, out, n, bits + from / 64, from, to), 0);
	else
		assert_int_equal(pfs_rows_of_list(&run, out, n, list, count), 0);
}

static void check(const struct pfs_rows *rows, const struct model *m, uint64_t *seed)
{
	uint64_t count = 0, expected = 0, next = 0, words[70];
	uint32_t out[100], at = 0;
	size_t n;

	for (uint32_t i = 0; i < m->n; i++) {
		expected += m->has[i];
		assert_int_equal(pfs_rows_has(rows, i), m->has[i]);
	}
	assert_false(pfs_rows_has(rows, m->n));
	assert_int_equal(pfs_rows_count(&run, &count, rows), 0);
	assert_int_equal(count, expected);
	while ((n = pfs_rows_next(rows, &next, out, 1 + random_below(seed, 100)))) {
		for (size_t i = 0; i < n; i++, at++) {
			while (at < m->n && !m->has[at])
				at++;
			assert_int_equal(out[i], at);
		}
	}
	for (; at < m->n; at++)
		assert_false(m->has[at]);
	pfs_rows_words(rows, words, 0, 70); /* some of them past the end */
	for (uint32_t i = 0; i < 70 * 64; i++)
		assert_int_equal(words[i / 64] >> i % 64 & 1, i < m->n && m->has[i]);
}

static void are_read(void **state)
{
	static const uint32_t sizes[] = {0, 1, 63, 64, 65, 1023, 1024, 1025, 4095, 4096, 4097};
	uint64_t seed = 7;

	(void)state;
	for (unsigned i = 0; i < 11 * 3 * 9; i++) {
		static struct model m;
		struct pfs_rows *rows;

		make(&rows, &m, sizes[i / 27], (enum pfs_rows_form)(i % 3), &seed);
		check(rows, &m, &seed);
		pfs_rows_free(&run, rows);
		assert_int_equal(charged, 0);
	}
}

/* What does not fit leaves nothing charged. */
static void is_limited(void **state)
{
	static const uint64_t bits[N_MAX / 64 + 1];
	static const uint32_t list[100];
	struct pfs_rows *rows;

	(void)state;
	for (limit = 0; limit < 450; limit += 50) {
		assert_int_equal(pfs_rows_of_bits(&run, &rows, N_MAX, bits, 0, N_MAX), -ENOMEM);
		assert_null(rows);
		assert_int_equal(pfs_rows_of_list(&run, &rows, N_MAX, list, 100), -ENOMEM);
		assert_null(rows);
		assert_int_equal(charged, 0);
	}
	limit = INT64_MAX;
}

static void programs_are_checked(void **state)
{
	const struct pfs_table_column columns[] = {
		{.kind = PFS_KIND_INTEGER, .width = 8},
		{.kind = PFS_KIND_PLACE, .width = 4},
	};
	const struct pfs_table table = {.n_columns = 2, .columns = columns};
	struct pfs_step steps[PFS_PROGRAM_DEPTH + 1] = {
		{.op = PFS_OP_COLUMN},
		{.op = PFS_OP_CONSTANT, .constant = {.type = PFS_IS_INTEGER, .integer = 7}},
		{.op = PFS_OP_GT},
	};
	struct pfs_program program = {.steps = steps, .n = 3};
	enum pfs_kind kind;
	bool is_truth;

	(void)state;
	assert_int_equal(pfs_program_check(&kind, &is_truth, &program, &table, NULL), 0);
	assert_true(is_truth);
	program.n = 2;
	assert_int_equal(pfs_program_check(&kind, &is_truth, &program, &table, NULL), -EINVAL);
	program.n = 3;
	steps[2].op = PFS_OP_ADD;
	assert_int_equal(pfs_program_check(&kind, &is_truth, &program, &table, NULL), 0);
	assert_false(is_truth);
	assert_int_equal(kind, PFS_KIND_NUMBER);
	steps[0].ref.column = 1; /* a text is no number */
	assert_int_equal(pfs_program_check(&kind, &is_truth, &program, &table, NULL), -EOPNOTSUPP);
	steps[0].ref.column = 2;
	assert_int_equal(pfs_program_check(&kind, &is_truth, &program, &table, NULL), -EINVAL);
	for (unsigned i = 0; i <= PFS_PROGRAM_DEPTH; i++)
		steps[i] = (struct pfs_step){.op = PFS_OP_CONSTANT};
	program.n = PFS_PROGRAM_DEPTH + 1;
	assert_int_equal(pfs_program_check(&kind, &is_truth, &program, &table, NULL), -E2BIG);
}

static void comparisons_are_mirrored(void **state)
{
	(void)state;
	for (enum pfs_op op = PFS_OP_EQ; op <= PFS_OP_IS_NOT; op++)
		for (int order = -1; order <= 1; order++)
			assert_int_equal(pfs_op_holds(op, order),
					 pfs_op_holds(pfs_op_mirrored(op), -order));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(are_read),
		cmocka_unit_test(is_limited),
		cmocka_unit_test(programs_are_checked),
		cmocka_unit_test(comparisons_are_mirrored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
