/* SPDX-License-Identifier: MIT */
/* Power failures under random changes of a tree: whatever they leave is a state that the model
 * had. */
#include "tests/ref/tree_model.h"
#include "tests/unit/crash_util.h"

#define STEPS 400

static struct history history;

static void record(struct temp_store *temp, uint64_t seed)
{
	struct pfs_tree_options options = {.commit_ms = 2};
	struct pfs_tree *tree;

	temp_store_create(temp);
	tree = temp_tree_open_with(temp, &options);
	tree_model_start(tree, seed);
	history_note(&history, 0, tree_model_state());
	for (uint64_t i = 1; i <= STEPS; i++) {
		tree_model_step();
		history_note(&history, i, tree_model_state());
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
}

static bool judge(struct pfs_tree *left, uint64_t synced)
{
	return history_has(&history, tree_model_state_of(left), synced);
}

static void test_crashes(void **state)
{
	(void)state;
	crash_everywhere(record, judge, model_seed(20260801), long_mode() ? 5000 : 150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_crashes)};

	if (fault_register(true))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
