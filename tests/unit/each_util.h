/* SPDX-License-Identifier: MIT */
/* tests/unit/each_util.h - tests of indexes, each on the host, on a device, and on the stand-in of
 * one, whose indexes are sorted arrays.  A test that includes it has pfs_cuda_operators_open
 * wrapped (tests/wrap.mk). */
#ifndef PFS_TESTS_UNIT_EACH_UTIL_H
#define PFS_TESTS_UNIT_EACH_UTIL_H

#include "both_util.h"
#include "tests/ref/stand_in_operators.h"

enum index_place { ON_HOST, ON_CUDA, ON_STAND_IN };

static bool wants_stand_in;

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for what it wraps */
int __real_pfs_cuda_operators_open(struct pfs_operator_backend **out);
int __wrap_pfs_cuda_operators_open(struct pfs_operator_backend **out);

int __wrap_pfs_cuda_operators_open(struct pfs_operator_backend **out)
{
	return wants_stand_in ? stand_in_operators_open(out) : __real_pfs_cuda_operators_open(out);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* What a test at that place runs with. */
static inline struct pfs_run run_at(enum index_place place, unsigned threads)
{
	struct pfs_run run = {.on = place == ON_HOST ? PFS_ENGINE_HOST : PFS_ENGINE_CUDA};

	wants_stand_in = place == ON_STAND_IN;
	stand_in_operators = (struct stand_in_operators){.failure = 0};
	run.operators = operators_or_skip(run.on, threads);
	return run;
}

/* Makes the three tests that EACH names: run(..., place). */
#define ON_EACH(name, run, ...)                                                                    \
	static void name##_host(void **state PFS_UNUSED)                                           \
	{                                                                                          \
		run(__VA_ARGS__, ON_HOST);                                                         \
	}                                                                                          \
	static void name##_cuda(void **state PFS_UNUSED)                                           \
	{                                                                                          \
		run(__VA_ARGS__, ON_CUDA);                                                         \
	}                                                                                          \
	static void name##_stand_in(void **state PFS_UNUSED)                                       \
	{                                                                                          \
		run(__VA_ARGS__, ON_STAND_IN);                                                     \
	}

#define EACH(name)                                                                                 \
	cmocka_unit_test(name##_host), cmocka_unit_test(name##_cuda),                              \
		cmocka_unit_test(name##_stand_in)

#endif
