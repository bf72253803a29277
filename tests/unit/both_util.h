/* SPDX-License-Identifier: MIT */
/* tests/unit/both_util.h - tests of the operators, each on the host and on a device, without which
 * it is skipped, visibly. */
#ifndef PFS_TESTS_UNIT_BOTH_UTIL_H
#define PFS_TESTS_UNIT_BOTH_UTIL_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "gpu/relation.h"

static inline struct pfs_operators *operators_or_skip(enum pfs_engine_kind kind, unsigned threads)
{
	struct pfs_operators *operators = NULL;

	int error = pfs_operators_open(&operators, kind, threads);

	if (error) {
		assert_int_not_equal(kind, PFS_ENGINE_HOST);
		assert_int_equal(error, -ENODEV);
		print_message("no CUDA device: skipped\n");
		skip();
	}
	return operators;
}

/* Makes the two tests that BOTH names: run(..., kind). */
#define ON_BOTH(name, run, ...)                                                                    \
	static void name##_host(void **state PFS_UNUSED)                                           \
	{                                                                                          \
		run(__VA_ARGS__, PFS_ENGINE_HOST);                                                 \
	}                                                                                          \
	static void name##_cuda(void **state PFS_UNUSED)                                           \
	{                                                                                          \
		run(__VA_ARGS__, PFS_ENGINE_CUDA);                                                 \
	}

#define BOTH(name) cmocka_unit_test(name##_host), cmocka_unit_test(name##_cuda)

#endif
