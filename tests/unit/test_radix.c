/* SPDX-License-Identifier: MIT */
/* Sorting by numbers, as a plain sort has it, and equals in their order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/radix.h"
#include "tests/ref/random.h"

static uint64_t random_state = 20261121;

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void check_numbers(const struct pfs_keyed *items, size_t n)
{
	uint32_t *numbers = calloc(n + 1, sizeof(*numbers));
	uint32_t *expected = calloc(n + 1, sizeof(*expected));

	for (size_t i = 0; i < n; i++)
		numbers[i] = expected[i] = (uint32_t)(items[i].key ^ items[i].key >> 32);
	qsort(expected, n, sizeof(*expected), by_number);
	assert_int_equal(pfs_radix_sort_u32(numbers, n), 0);
	assert_memory_equal(numbers, expected, n * sizeof(*numbers));
	free(numbers);
	free(expected);
}

static void test_radix(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 15, 17, 47, 48, 49, 200, 511, 512, 513, 5000};

	(void)state;
	for (size_t s = 0; s < PFS_COUNT(sizes); s++) {
		for (unsigned bits = 1; bits <= 64; bits += 7) {
			size_t n = sizes[s];
			struct pfs_keyed *items = calloc(n + 1, sizeof(*items));

			for (size_t i = 0; i < n; i++) {
				items[i].key =
					random_next(&random_state) >>
					(64 - bits)
						<< (random_below(&random_state, 2) ? 0 : 64 - bits);
				items[i].value = (uint32_t)i;
			}
			check_numbers(items, n);
			assert_int_equal(pfs_radix_sort(items, n), 0);
			for (size_t i = 1; i < n; i++)
				assert_true(items[i - 1].key < items[i].key ||
					    (items[i - 1].key == items[i].key &&
					     items[i - 1].value < items[i].value));
			free(items);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_radix)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
