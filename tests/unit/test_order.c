/* SPDX-License-Identifier: MIT */
/* Comparing numbers and bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/order.h"

static void bytes_come_as_unsigned_numbers_and_beginnings_first(void **state)
{
	static const char *const sorted[] = {"", "\x01", "a", "a/", "aa", "b", "\x80", "\xff"};
	size_t n = sizeof(sorted) / sizeof(*sorted);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < n; k++) {
			int order = pfs_compare_bytes(sorted[i], strlen(sorted[i]), sorted[k],
						      strlen(sorted[k]));

			assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
		}
	}
	assert_int_equal(pfs_compare_bytes("a\0b", 3, "a\0b", 3), 0);
	assert_true(pfs_compare_bytes("a\0b", 3, "a\0c", 3) < 0);
}

static void nothing_may_be_null(void **state)
{
	(void)state;
	assert_int_equal(pfs_compare_bytes(NULL, 0, NULL, 0), 0);
	assert_true(pfs_compare_bytes(NULL, 0, "a", 1) < 0);
	assert_true(pfs_compare_bytes("a", 1, NULL, 0) > 0);
}

static void numbers_do_not_wrap(void **state)
{
	const uint32_t u32[] = {0, UINT32_MAX};
	const uint64_t u64[] = {0, UINT64_MAX};
	const int64_t i64[] = {INT64_MIN, INT64_MAX};
	const double real[] = {-1e300, 1e-300};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < 2; k++) {
			int order = (i > k) - (i < k);

			assert_int_equal(pfs_compare_u32(&u32[i], &u32[k]), order);
			assert_int_equal(pfs_compare_u64(&u64[i], &u64[k]), order);
			assert_int_equal(pfs_compare_i64(&i64[i], &i64[k]), order);
			assert_int_equal(pfs_compare_double(&real[i], &real[k]), order);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_come_as_unsigned_numbers_and_beginnings_first),
		cmocka_unit_test(nothing_may_be_null),
		cmocka_unit_test(numbers_do_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
