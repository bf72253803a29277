/* SPDX-License-Identifier: MIT */
/* tests/unit/crash_util.h - power failures played back.  While a test changes a tree, step by step,
 * all that the store writes is recorded (tests/vfs/faultvfs.h), and what state each step leaves.
 * Then many prefixes of the recording are made into stores, with what was not synced lost,
 * reordered or torn: each must open as a tree that is sound, in a state that there was, not earlier
 * than the last one that was synced.  PFS_LONG=1: more crashes.  PFS_SEED=N: another run. */
#ifndef PFS_TESTS_UNIT_CRASH_UTIL_H
#define PFS_TESTS_UNIT_CRASH_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/ref/temp_store.h"
#include "tests/unit/store_model.h"
#include "tests/vfs/faultvfs.h"

#define STEPS_MAX 400

/* The states after each step: 0 is the first.  A sum tells them apart. */
struct history {
	uint64_t state[STEPS_MAX + 1];
	uint64_t steps;
};

static inline void history_note(struct history *history, uint64_t step, uint64_t state)
{
	assert_in_range(step, 0, STEPS_MAX);
	history->state[step] = state;
	history->steps = step;
}

/* Whether there was such a state, from that step on. */
static inline bool history_has(const struct history *history, uint64_t state, uint64_t from)
{
	for (uint64_t i = from; i <= history->steps; i++)
		if (history->state[i] == state)
			return true;
	return false;
}

/* Looks at what a crash left; synced: the last fault_mark before it.  True: it may be so. */
typedef bool judge_fn(struct pfs_tree *left, uint64_t synced);

static inline void crash_at(size_t length, enum fault_crash crash, uint64_t crash_seed,
			    judge_fn *judge)
{
	uint64_t synced = fault_last_mark(length);
	struct temp_store temp;
	struct pfs_tree *left;
	bool right;
	int error;

	temp_store_folder(&temp);
	assert_int_equal(fault_replay(temp.folder, length, crash, crash_seed), 0);
	error = pfs_tree_open(&left, temp.path, &(struct pfs_tree_options){0});
	right = error ? synced == 0 : true; /* it was still being made */
	if (!error) {
		assert_int_equal(pfs_tree_start(left), 0);
		right = judge(left, synced);
		temp_tree_close(left);
	}
	if (!right)
		fail_msg("crash after %zu entries, kind %d, seed %llu: opening says %d", length,
			 (int)crash, (unsigned long long)crash_seed, error);
	if (!error)
		assert_int_equal(temp_store_findings(&temp), 0);
	temp_store_remove(&temp);
}

/* record: makes a store and changes it, with marks of what is durable. */
static inline void crash_everywhere(void (*record)(struct temp_store *temp, uint64_t seed),
				    judge_fn *judge, uint64_t seed, uint64_t crashes)
{
	struct temp_store temp;
	size_t length;

	fault_record();
	record(&temp, seed);
	fault_stop();
	length = fault_length();
	print_message("%zu entries recorded\n", length);
	for (uint64_t i = 0; i < crashes; i++) {
		uint64_t r = model_random(model_random(seed) + i);

		crash_at((size_t)(r >> 8) % (length + 1), (enum fault_crash)(r % 3), seed + i,
			 judge);
	}
	temp_store_remove(&temp);
}

#endif
