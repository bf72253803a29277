/* SPDX-License-Identifier: MIT */
/* The store fails at any moment: operations then fail with an errno that says so and are not done,
 * or are done; when the fault is over the tree goes on, and in the end everything is in the store.
 * PFS_LONG=1: at more moments.  PFS_SEED=N: another run. */
#include "tests/ref/tree_model.h"
#include "tests/unit/fault_util.h"

#define STEPS 60

static uint64_t seed;
static uint64_t states[STEPS + 1];

/* Changes while the plan is at work; the number of the last state that was synced. */
static uint64_t change(struct pfs_tree *tree, const struct fault_plan *plan)
{
	uint64_t synced = 0;

	for (uint64_t i = 1; i <= STEPS; i++) {
		tree_model_step();
		states[i] = tree_model_state();
		if (i % 6 == 0) {
			int error = pfs_tree_sync(tree);

			assert_fault(error, plan, "a change of the tree");
			if (!error)
				synced = i;
		}
	}
	return synced;
}

static bool is_known(uint64_t state, uint64_t from)
{
	for (uint64_t i = from; i <= STEPS; i++)
		if (states[i] == state)
			return true;
	return false;
}

static bool run_with(const struct fault_plan *plan, bool recover)
{
	const struct pfs_tree_options options = {
		.commit_ms = 3, .retry_ms = 2, .vfs = FAULT_VFS_NAME};
	struct temp_store temp;
	struct pfs_tree *tree;
	uint64_t synced;
	bool hit;

	temp_store_create(&temp);
	tree = temp_tree_open_with(&temp, &options);
	tree_model_start(tree, seed);
	tree_model_allow_faults(true);
	states[0] = tree_model_state();
	fault_set(plan);
	synced = change(tree, plan);
	hit = fault_failures() > 0;
	if (recover) {
		fault_set(NULL);
		wait_for_recovery(tree);
		assert_int_equal(tree_model_state_of(tree), tree_model_state());
		synced = STEPS;
		temp_tree_close(tree);
	} else {
		assert_fault(pfs_tree_close(tree), plan, "a change of the tree");
		hit = fault_failures() > 0;
		fault_set(NULL);
	}
	tree = temp_tree_open(&temp);
	assert_true(is_known(tree_model_state_of(tree), synced));
	temp_tree_close(tree);
	assert_int_equal(temp_store_findings(&temp), 0);
	temp_store_remove(&temp);
	return hit;
}

static uint64_t count_calls(unsigned calls)
{
	const struct fault_plan none = {.calls = calls, .error = EIO};
	struct temp_store temp;
	struct pfs_tree *tree;
	uint64_t n;

	temp_store_create(&temp);
	tree = temp_tree_open_with(&temp, &(struct pfs_tree_options){.commit_ms = 3});
	tree_model_start(tree, seed);
	fault_set(&none);
	(void)change(tree, &none);
	n = fault_calls();
	fault_set(NULL);
	temp_tree_close(tree);
	temp_store_remove(&temp);
	return n;
}

static const struct faulty_run faulty_run = {count_calls, run_with};

static void test_input_output(void **state)
{
	(void)state;
	sweep(&faulty_run, FAULT_ANY, EIO, 12);
	sweep(&faulty_run, FAULT_BIT(FAULT_SYNC), EIO, 4);
}

static void test_no_space(void **state)
{
	(void)state;
	sweep(&faulty_run, FAULT_BIT(FAULT_WRITE), ENOSPC, 8);
}

static void test_no_memory(void **state)
{
	(void)state;
	sweep(&faulty_run, FAULT_BIT(FAULT_MEMORY), ENOMEM, 10);
}

/* Opening: fails or not, leaves nothing behind. */
static void test_opening(void **state)
{
	static const unsigned kinds[] = {FAULT_ANY, FAULT_BIT(FAULT_MEMORY)};
	struct temp_store temp;
	struct pfs_tree *tree;

	(void)state;
	temp_store_create(&temp);
	tree = temp_tree_open(&temp);
	tree_model_start(tree, seed);
	for (int i = 0; i < STEPS; i++)
		tree_model_step();
	temp_tree_close(tree);
	for (unsigned kind = 0; kind < 2; kind++)
		for (uint64_t first = 0; first < 60; first++) {
			struct fault_plan plan = {.calls = kinds[kind],
						  .first = first * (kind ? 7 : 1),
						  .count = 1,
						  .error = kind ? ENOMEM : EIO};
			int status;

			fault_set(&plan);
			status = pfs_tree_open(&tree, temp.path,
					       &(struct pfs_tree_options){.vfs = FAULT_VFS_NAME});
			fault_set(NULL);
			if (status)
				assert_null(tree);
			else
				assert_int_equal(tree_model_state_of(tree), tree_model_state());
			assert_int_equal(pfs_tree_close(tree), 0);
		}
	temp_store_remove(&temp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_input_output),
		cmocka_unit_test(test_no_space),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_opening),
	};

	seed = model_seed(20260801);
	if (fault_register(true))
		return 1;
	pfs_log_open((enum pfs_log_level)0, false); /* the faults are meant */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
