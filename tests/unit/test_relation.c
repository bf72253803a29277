/* SPDX-License-Identifier: MIT */
/* The relational operators of every engine over random tables, beside SQLite.  PFS_LONG=1: many
 * more; PFS_SEED=N: that one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "tests/ref/relation.h"

static const uint32_t sizes[] = {0, 1, 2, 63, 64, 100, 1023, 1024, 1025, 4095, 4096, 4097};

static unsigned rounds_of(uint32_t n)
{
	unsigned base = getenv("PFS_LONG") ? 400 : 12;

	return n < 200 ? base * 2 : base;
}

static void run_cases(void (*run_case)(struct ref_world *), enum pfs_engine_kind kind,
		      uint32_t most)
{
	const char *seed_text = getenv("PFS_SEED");
	uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0) : 20261122;
	struct pfs_operators *operators;
	struct ref_world w;
	int error = pfs_operators_open(&operators, kind, 3);

	if (error == -ENODEV) {
		print_message("no CUDA device: skipped\n");
		skip();
	}
	assert_int_equal(error, 0);
	print_message("seed %llu\n", (unsigned long long)seed);
	ref_open(&w, operators, kind, seed);
	for (size_t i = 0; i < PFS_COUNT(sizes); i++) {
		uint32_t n = PFS_MIN(sizes[i], most);

		for (unsigned round = 0; round < rounds_of(n); round++) {
			if (round % 6 == 0)
				ref_fill(&w, n, PFS_MIN(1 + ref_below(&w, 150), most));
			run_case(&w);
		}
	}
	ref_close(&w);
	pfs_operators_close(operators);
}

#define CASES(name, most)                                                                          \
	static void name##_host(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		run_cases(ref_case_##name, PFS_ENGINE_HOST, most);                                 \
	}                                                                                          \
	static void name##_cuda(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		run_cases(ref_case_##name, PFS_ENGINE_CUDA, most);                                 \
	}

CASES(select, UINT32_MAX)
CASES(compute, UINT32_MAX)
CASES(sort, UINT32_MAX)
CASES(group, UINT32_MAX)
CASES(join, 1025)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(select_host),	cmocka_unit_test(compute_host),
		cmocka_unit_test(sort_host),	cmocka_unit_test(group_host),
		cmocka_unit_test(join_host),	cmocka_unit_test(select_cuda),
		cmocka_unit_test(compute_cuda), cmocka_unit_test(sort_cuda),
		cmocka_unit_test(group_cuda),	cmocka_unit_test(join_cuda),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
