/* SPDX-License-Identifier: MIT */
/* What counts as a number: exactly what prints back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/number.h"

static void test_integers(void **state)
{
	static const char *const yes[] = {"0", "7", "-7", "10", "9223372036854775807",
					  "-9223372036854775808"};
	static const char *const no[] = {"", "-", "-0", "007", "+7", " 7", "7 ", "7.0", "1e3",
					 "9223372036854775808", "-9223372036854775809", "x"};
	char printed[PFS_NUMBER_SIZE];
	int64_t value;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		assert_true(pfs_is_integer(&value, yes[i], strlen(yes[i])));
		assert_int_equal(pfs_print_integer(printed, value), strlen(yes[i]));
		assert_string_equal(printed, yes[i]);
	}
	for (i = 0; i < 2000; i++) { /* of every length */
		char expected[PFS_NUMBER_SIZE];

		value = (int64_t)(UINT64_C(0x9e3779b97f4a7c15) * i >> i % 64);
		(void)snprintf(expected, sizeof(expected), "%lld", (long long)value);
		assert_int_equal(pfs_print_integer(printed, value), strlen(expected));
		assert_string_equal(printed, expected);
		(void)snprintf(expected, sizeof(expected), "%llu", (unsigned long long)value);
		assert_int_equal(pfs_print_unsigned(printed, (uint64_t)value), strlen(expected));
		assert_string_equal(printed, expected);
	}
	for (i = 0; i < 30000; i++) {
		char expected[PFS_NUMBER_SIZE];

		value = (int64_t)i;
		(void)snprintf(expected, sizeof(expected), "%lld", (long long)value);
		assert_int_equal(pfs_print_integer(printed, value), strlen(expected));
		assert_string_equal(printed, expected);
	}
	for (i = 0, value = 1; i < 18; i++, value *= 10) {
		for (int64_t near = value - 2; near < value + 3; near++) {
			char expected[PFS_NUMBER_SIZE];

			(void)snprintf(expected, sizeof(expected), "%lld", (long long)near);
			assert_int_equal(pfs_print_integer(printed, near), strlen(expected));
			assert_string_equal(printed, expected);
		}
	}
	for (i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		assert_false(pfs_is_integer(&value, no[i], strlen(no[i])));
	assert_false(pfs_is_integer(&value, "1\0002", 3));
}

static void test_reals(void **state)
{
	static const char *const yes[] = {"0.0", "2.5", "3.0", "55.751244", "0.1", "1e+300",
					  "1e-07", "-2.2250738585072014e-308", "inf", "-inf",
					  "0.30000000000000004"};
	static const char *const no[] = {
		"",	"3",	    "2.50", ".5",   "1e300", "0x1p3", " 2.5",
		"2.5 ", "infinity", "nan",  "-nan", "-0.0",  "2,5",   "1.7976931348623157e+309"};
	char printed[PFS_NUMBER_SIZE];
	double value;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		assert_true(pfs_is_real(&value, yes[i], strlen(yes[i])));
		assert_int_equal(pfs_print_real(printed, value), strlen(yes[i]));
		assert_string_equal(printed, yes[i]);
	}
	for (i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		assert_false(pfs_is_real(&value, no[i], strlen(no[i])));
	assert_false(pfs_is_real(&value, "2.5\0", 4));
}

static void test_random_reals_survive(void **state)
{
	uint64_t seed = 20240607, i;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (i = 0; i < 200000; i++) {
		char printed[PFS_NUMBER_SIZE];
		double value, again;
		size_t len;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		(void)memcpy(&value, &seed, sizeof(value));
		len = pfs_print_real(printed, value);
		assert_true(len < sizeof(printed));
		if (value != value)
			continue;
		assert_true(pfs_is_real(&again, printed, len));
		assert_true(value == again);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_reals),
		cmocka_unit_test(test_random_reals_survive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
