/* SPDX-License-Identifier: MIT */
/* Memory that is freed later, or goes back to the system at once. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/later.h"

/* How many allocations have memory of their own from the system. */
static size_t count_mapped(void)
{
	return mallinfo2().hblks;
}

static void *allocate(size_t size)
{
	volatile char *memory = malloc(size);

	assert_non_null(memory);
	*memory = 1;
	return (void *)memory;
}

static void test_later(void **state)
{
	const size_t before = count_mapped();

	(void)state;
	pfs_later_begin();
	pfs_free_later(allocate(PFS_LARGE_MIN));
	if (count_mapped() == before)
		skip(); /* another allocator */
	pfs_later_end();
	assert_int_equal(count_mapped(), before);
}

/* Once one of a size is freed, glibc would take the next from a heap. */
static void test_large(void **state)
{
	const size_t before = count_mapped();

	(void)state;
	pfs_large_is_given_back();
	for (unsigned i = 0; i < 3; i++) {
		void *memory = allocate(2 * PFS_LARGE_MIN);
		const size_t now = count_mapped();

		free(memory);
		assert_int_equal(count_mapped(), before);
		if (i == 0 && now == before)
			skip(); /* another allocator */
		assert_int_equal(now, before + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
