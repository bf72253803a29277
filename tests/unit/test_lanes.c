/* SPDX-License-Identifier: MIT */
/* The loops of the relational operators: every version that this processor runs gives what one
 * value at a time gives, at every length around a word's and a vector's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "gpu/host/lanes.h"
#include "tests/ref/random.h"

#define N 300u

static uint64_t seed = 5;
static int64_t values[N], others[N];
static double reals[N];
static uint32_t at[N];

static void fill(void)
{
	for (unsigned i = 0; i < N; i++) {
		values[i] = random_below(&seed, 3) ? (int64_t)random_below(&seed, 5) - 2
						   : (int64_t)random_next(&seed);
		others[i] = random_below(&seed, 2) ? values[i] : (int64_t)random_below(&seed, 5);
		reals[i] = (double)random_below(&seed, 9) / 2 - 2;
		at[i] = random_below(&seed, N);
	}
}

static bool holds(enum pfs_order_op op, int order)
{
	return op == PFS_LANES_EQ ? order == 0 : op == PFS_LANES_LT ? order < 0 : order > 0;
}

static void check_words(const uint64_t *words, const bool *expected, uint32_t n)
{
	for (uint32_t i = 0; i < (n + 63) / 64 * 64; i++)
		assert_int_equal(words[i / 64] >> i % 64 & 1, i < n && expected[i]);
}

static void check_compare(const struct pfs_lanes *lanes, uint32_t n, enum pfs_order_op op)
{
	int64_t constant = values[random_below(&seed, N)];
	double real = reals[random_below(&seed, N)];
	uint64_t words[N / 64 + 1];
	bool expected[N] = {false};

	for (uint32_t i = 0; i < n; i++)
		expected[i] = holds(op, (values[i] > constant) - (values[i] < constant));
	lanes->compare(words, values, n, op, constant);
	check_words(words, expected, n);
	for (uint32_t i = 0; i < n; i++)
		expected[i] = holds(op, (values[i] > others[i]) - (values[i] < others[i]));
	lanes->compare_both(words, values, others, n, op);
	check_words(words, expected, n);
	for (uint32_t i = 0; i < n; i++)
		expected[i] = holds(op, (reals[i] > real) - (reals[i] < real));
	lanes->compare_real(words, reals, n, op, real);
	check_words(words, expected, n);
}

static void check_sums(const struct pfs_lanes *lanes, uint32_t n)
{
	uint64_t sum, high, low, expected = 0;
	int64_t least, greatest, min = INT64_MAX, max = INT64_MIN;
	double size = 0;

	for (uint32_t i = 0; i < n; i++) {
		expected += (uint64_t)values[i];
		size += (double)(values[i] < 0 ? ~values[i] : values[i]);
		min = PFS_MIN(min, values[i]);
		max = PFS_MAX(max, values[i]);
	}
	lanes->sum(&sum, &high, &low, values, n);
	assert_true(sum == expected);
	assert_true((double)high * 4294967296.0 + (double)low >= size * 0.999999);
	assert_true((double)high * 4294967296.0 + (double)low <= size * 1.000001);
	if (n == 0)
		return;
	lanes->extremes(&least, &greatest, values, n);
	assert_true(least == min && greatest == max);
}

static void check_arithmetic(const struct pfs_lanes *lanes, uint32_t n)
{
	unsigned shift = random_below(&seed, 64);
	int64_t out[N], before[N], low = INT64_MAX, high = INT64_MIN;
	int64_t by = values[random_below(&seed, N)];

	memcpy(out, values, sizeof(out));
	lanes->add(out, n, by);
	for (uint32_t i = 0; i < n; i++)
		assert_true((uint64_t)out[i] == (uint64_t)values[i] + (uint64_t)by);
	memcpy(out, values, sizeof(out));
	lanes->multiply(out, n, by);
	for (uint32_t i = 0; i < n; i++)
		assert_true((uint64_t)out[i] == (uint64_t)values[i] * (uint64_t)by);
	by = n % 2 ? (int64_t)((UINT64_C(1) << 62) >> shift) : by >> shift;
	by = by > 0 ? by : 1;
	for (uint32_t i = 0; i < n; i++) { /* quotients at, and just below, an integer, too */
		uint64_t value = (uint64_t)values[i] >> (n % 3 ? shift : 0);

		value = i % 2 ? value : value / (uint64_t)by * (uint64_t)by - (i & 2) / 2;
		out[i] = n % 4 ? (int64_t)(value & INT64_MAX) : (int64_t)value;
		low = PFS_MIN(low, out[i]);
		high = PFS_MAX(high, out[i]);
	}
	memcpy(before, out, sizeof(out));
	lanes->divide(out, n, by, low, high);
	for (uint32_t i = 0; i < n; i++)
		assert_true(out[i] == before[i] / by);
}

static void check_read(const struct pfs_lanes *lanes, uint32_t n, const struct pfs_table_column *c)
{
	uint32_t first = random_below(&seed, N - n + 1), out_32[N];
	int64_t out[N];

	for (unsigned listed = 0; listed < 2; listed++) {
		lanes->read_64(out, c, listed ? at : NULL, first, n);
		for (uint32_t i = 0; i < n; i++)
			assert_true(out[i] == pfs_cell_integer(c, listed ? at[i] : first + i));
		if (c->is_signed || c->base)
			continue;
		lanes->read_32(out_32, c, listed ? at : NULL, first, n);
		for (uint32_t i = 0; i < n; i++)
			assert_true(out_32[i] == (uint32_t)out[i]);
	}
	lanes->list_64(out, values, at, n);
	for (uint32_t i = 0; i < n; i++)
		assert_true(out[i] == values[at[i]]);
}

/* Bounds that values have, or that are beside them. */
static void check_between(const struct pfs_lanes *lanes, uint32_t n,
			  const struct pfs_table_column *c)
{
	uint32_t first = random_below(&seed, N - n + 1);
	int64_t a = pfs_cell_integer(c, random_below(&seed, N)),
		b = pfs_cell_integer(c, random_below(&seed, N));
	int64_t low = PFS_MIN(a, b), high = PFS_MAX(a, b);
	uint64_t words[N / 64 + 1];
	bool expected[N] = {false};

	for (unsigned listed = 0; listed < 2; listed++) {
		for (uint32_t i = 0; i < n; i++) {
			int64_t value = pfs_cell_integer(c, listed ? at[i] : first + i);

			expected[i] = value >= low && value <= high;
		}
		lanes->between(words, c, listed ? at : NULL, first, n, low, high);
		check_words(words, expected, n);
	}
}

static void check_columns(const struct pfs_lanes *lanes, uint32_t n)
{
	for (uint8_t width = 1; width <= 8; width *= 2) {
		struct pfs_table_column c = {
			.kind = PFS_KIND_INTEGER, .width = width, .data = values};

		check_read(lanes, n, &c);
		if (width < 8) /* a wide one fits int64_t */
			check_between(lanes, n, &c);
		c.shift = 3;
		c.mask = 15;
		check_read(lanes, n, &c);
		check_between(lanes, n, &c);
		c.shift = 0;
		c.mask = 0;
		c.base = -77;
		check_read(lanes, n, &c);
		c.is_signed = true;
		check_read(lanes, n, &c);
		c.base = 0;
		check_between(lanes, n, &c);
	}
}

static void check_bits(const struct pfs_lanes *lanes)
{
	uint64_t words[4];
	uint32_t out[256], n, k = 0;

	for (unsigned i = 0; i < 4; i++)
		words[i] = random_below(&seed, 3) ? random_next(&seed) : UINT64_MAX;
	n = lanes->list_bits(out, words, 4, 1000);
	for (uint32_t i = 0; i < 256; i++) {
		if (words[i / 64] >> i % 64 & 1)
			assert_int_equal(out[k++], 1000 + i);
	}
	assert_int_equal(n, k);
}

static void agree(void **state)
{
	unsigned versions = 0;

	(void)state;
	for (const struct pfs_lanes *lanes; (lanes = pfs_lanes_version(versions)); versions++) {
		for (uint32_t n = 0; n <= N; n++) {
			fill();
			check_compare(lanes, n, (enum pfs_order_op)(n % 3));
			check_sums(lanes, n);
			check_arithmetic(lanes, n);
			check_columns(lanes, n);
			check_bits(lanes);
		}
	}
	assert_true(versions > 0);
	assert_ptr_equal(pfs_lanes(), pfs_lanes_version(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
