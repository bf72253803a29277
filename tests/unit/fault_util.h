/* SPDX-License-Identifier: MIT */
/* tests/unit/fault_util.h - faults of the store at many moments of a run, for tests that say what a
 * run is.  PFS_LONG=1: at more moments. */
#ifndef PFS_TESTS_UNIT_FAULT_UTIL_H
#define PFS_TESTS_UNIT_FAULT_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "tests/ref/temp_store.h"
#include "tests/unit/store_model.h"
#include "tests/vfs/faultvfs.h"

/* What an operation may answer while the plan is at work. */
static inline void assert_fault(int status, const struct fault_plan *plan, const char *what)
{
	if (status != 0 && status != -plan->error && status != -EIO && status != -EROFS)
		fail_msg("%s: %s was injected, %s came back", what, strerror(plan->error),
			 strerror(-status));
}

/* The fault is over: so much that a sync says so. */
static inline void wait_for_recovery(struct pfs_tree *tree)
{
	for (int i = 0; i < 3000 && pfs_tree_sync(tree); i++)
		(void)usleep(2000);
	assert_int_equal(pfs_tree_sync(tree), 0);
}

struct faulty_run {
	/* Without faults: the calls of these kinds that it makes. */
	uint64_t (*count)(unsigned calls);
	/* recover: the fault ends before the tree is closed.  True when the fault was met. */
	bool (*run)(const struct fault_plan *plan, bool recover);
};

/* The fault at about so many moments, for one to three calls and for ever. */
static inline void sweep(const struct faulty_run *run, unsigned calls, int error, uint64_t points)
{
	uint64_t made = run->count(calls);
	unsigned hits = 0;

	points *= long_mode() ? 40 : 1;
	for (uint64_t i = 0; i < points; i++) {
		struct fault_plan plan = {.calls = calls,
					  .first = made * i / points,
					  .count = 1 + i % 3,
					  .error = error};

		hits += run->run(&plan, true);
		plan.count = FAULT_FOR_EVER;
		hits += run->run(&plan, i % 2);
	}
	print_message("%llu calls, %u runs with faults\n", (unsigned long long)made, hits);
	assert_true(hits >= points);
}

#endif
