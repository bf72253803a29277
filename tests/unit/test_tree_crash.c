/* SPDX-License-Identifier: MIT */
/* Power failures, played back: everything that the store wrote while a tree was changed at random is
 * recorded, and then many prefixes of it, with what was not synced lost, reordered or torn.  Each must
 * open as a tree, in a state that the model had, not earlier than the last sync that returned.
 * PFS_LONG=1: more crashes.  PFS_SEED=N: another run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/ref/temp_store.h"
#include "tests/ref/tree_model.h"
#include "tests/unit/store_model.h"
#include "tests/vfs/faultvfs.h"

#define STEPS 400

static uint64_t states[STEPS + 1];

/* The store syncs its folder itself; the recording has to know.  The names are the linker's.
 * NOLINTBEGIN(bugprone-reserved-identifier) */
int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
	struct stat st;
	int result = __real_fsync(fd);

	if (!result && !fstat(fd, &st) && S_ISDIR(st.st_mode))
		fault_folder_synced();
	return result;
}
/* NOLINTEND(bugprone-reserved-identifier) */

static void record(struct temp_store *temp, uint64_t seed)
{
	struct pfs_tree_options options = {.commit_ms = 2};
	struct pfs_tree *tree;

	fault_record();
	temp_store_create(temp);
	tree = temp_tree_open_with(temp, &options);
	tree_model_start(tree, seed);
	states[0] = tree_model_state();
	for (uint64_t i = 1; i <= STEPS; i++) {
		tree_model_step();
		states[i] = tree_model_state();
		if (i % 7 == 0) {
			assert_int_equal(pfs_tree_sync(tree), 0);
			fault_mark(i);
		}
		if (i % 150 == 0) {
			temp_tree_close(tree);
			tree = temp_tree_open_with(temp, &options);
			tree_model_reopened(tree);
			fault_mark(i);
		}
	}
	temp_tree_close(tree);
	fault_mark(STEPS);
	fault_stop();
}

static bool is_known(uint64_t state, uint64_t from)
{
	for (uint64_t i = from; i <= STEPS; i++)
		if (states[i] == state)
			return true;
	return false;
}

static void crash_at(size_t length, enum fault_crash crash, uint64_t crash_seed)
{
	uint64_t synced = fault_last_mark(length), state = 0;
	struct temp_store temp;
	struct pfs_tree *tree;
	int rc;

	temp_store_folder(&temp);
	assert_int_equal(fault_replay(temp.folder, length, crash, crash_seed), 0);
	rc = pfs_tree_open(&tree, temp.path, &(struct pfs_tree_options){0});
	if (!rc) {
		state = tree_model_state_of(tree);
		assert_int_equal(pfs_tree_start(tree), 0);
		temp_tree_close(tree);
	}
	if (rc ? synced != 0 : !is_known(state, synced))
		fail_msg("crash after %zu entries, kind %d, seed %llu: opening says %d", length,
			 (int)crash, (unsigned long long)crash_seed, rc);
	if (!rc)
		assert_int_equal(temp_store_findings(&temp), 0);
	temp_store_remove(&temp);
}

static void test_crashes(void **state)
{
	uint64_t seed = model_seed(20260801), crashes = long_mode() ? 5000 : 150;
	struct temp_store temp;
	size_t length;

	(void)state;
	record(&temp, seed);
	length = fault_length();
	assert_true(length > STEPS);
	for (uint64_t i = 0; i < crashes; i++)
		crash_at(tree_model_random((uint32_t)length + 1),
			 (enum fault_crash)tree_model_random(3), seed + i);
	temp_store_remove(&temp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_crashes)};

	if (fault_register(true))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
