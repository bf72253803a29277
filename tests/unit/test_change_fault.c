/* SPDX-License-Identifier: MIT */
/* The store fails while statements change sets of nodes and side tables: a statement then fails
 * with an errno that says so and nothing has changed, or all of it is done, and either the store
 * has it or the next sync fails.  When the fault is over everything goes on, and in the end the
 * store holds what the tree does.  PFS_LONG=1: at more moments.  PFS_SEED=N: another run. */
#include "tests/ref/change_model.h"
#include "tests/unit/crash_util.h"
#include "tests/unit/fault_util.h"

#define STEPS 50

static uint64_t seed;
static struct history history[CHANGE_PARTS];
/* The last change of tables failed, and all later writing, too: if the program ends now, whether
 * the log holds it depends on what the failed calls did all the same. */
static bool unsure;

/* Without faults, and without counting. */
static void look(struct change_state *state)
{
	fault_spare(true);
	change_model_look(state, NULL);
	fault_spare(false);
}

/* One change: what it does not speak of is as it was, and all is if it fails. */
static void step(uint64_t i, const struct fault_plan *plan)
{
	struct change_state now;
	enum change_part part;
	int error = change_model_step(&part);

	if (!change_model_may_refuse(error))
		assert_fault(error, plan, change_model_text());
	if (part == CHANGE_TABLES && !change_model_may_refuse(error))
		unsure = error != 0;
	look(&now);
	for (unsigned p = 0; p < CHANGE_PARTS; p++) {
		if ((error || p != part) && now.part[p] != history[p].state[i - 1])
			fail_msg("PFS_SEED=%llu, call %llu: %s: %d, but %s other than before",
				 (unsigned long long)seed, (unsigned long long)plan->first,
				 change_model_text(), error, p ? "tables are" : "nodes are");
		history_note(&history[p], i, now.part[p]);
	}
}

/* Changes while the plan is at work; the number of the last state that was synced. */
static uint64_t change(const struct fault_plan *plan)
{
	uint64_t synced = 0;

	for (uint64_t i = 1; i <= STEPS; i++) {
		step(i, plan);
		if (i % 6 == 0) {
			int error = pfs_tree_sync(change_model_tree());

			assert_fault(error, plan, change_model_text());
			if (!error)
				synced = i;
		}
	}
	return synced;
}

static void start(struct temp_store *temp, const struct fault_plan *plan)
{
	const struct pfs_tree_options options = {
		.commit_ms = 3, .retry_ms = 2, .vfs = FAULT_VFS_NAME};
	struct change_state first;

	temp_store_create(temp);
	change_model_start(temp, &options, seed);
	look(&first);
	for (unsigned p = 0; p < CHANGE_PARTS; p++)
		history_note(&history[p], 0, first.part[p]);
	fault_set(plan);
}

/* What the store has once it is closed. */
static void check_store(struct temp_store *temp, uint64_t synced)
{
	struct pfs_tree *tree = temp_tree_open(temp);
	struct change_state left;

	change_model_look(&left, tree);
	assert_true(history_has(&history[CHANGE_NODES], left.part[CHANGE_NODES], synced));
	assert_true(unsure || left.part[CHANGE_TABLES] == history[CHANGE_TABLES].state[STEPS]);
	temp_tree_close(tree);
	assert_int_equal(temp_store_findings(temp), 0);
	temp_store_remove(temp);
}

static bool run_with(const struct fault_plan *plan, bool recover)
{
	struct temp_store temp;
	struct change_state now;
	uint64_t synced;
	bool hit;

	start(&temp, plan);
	unsure = false;
	synced = change(plan);
	hit = fault_failures() > 0;
	if (recover) {
		fault_set(NULL);
		wait_for_recovery(change_model_tree());
		look(&now);
		for (unsigned p = 0; p < CHANGE_PARTS; p++)
			assert_true(now.part[p] == history[p].state[STEPS]);
		synced = STEPS;
		unsure = false;
		assert_int_equal(change_model_close(), 0);
	} else {
		assert_fault(change_model_close(), plan, change_model_text());
		hit = fault_failures() > 0;
		fault_set(NULL);
	}
	check_store(&temp, synced);
	return hit;
}

static uint64_t count_calls(unsigned calls)
{
	const struct fault_plan none = {.calls = calls, .error = EIO};
	struct temp_store temp;
	uint64_t n;

	start(&temp, &none);
	(void)change(&none);
	n = fault_calls();
	fault_set(NULL);
	assert_int_equal(change_model_close(), 0);
	temp_store_remove(&temp);
	return n;
}

static const struct faulty_run faulty_run = {count_calls, run_with};

static void test_input_output(void **state)
{
	(void)state;
	sweep(&faulty_run, FAULT_ANY, EIO, 8);
	sweep(&faulty_run, FAULT_BIT(FAULT_SYNC), EIO, 4);
}

static void test_no_space(void **state)
{
	(void)state;
	sweep(&faulty_run, FAULT_BIT(FAULT_WRITE), ENOSPC, 6);
}

static void test_no_memory(void **state)
{
	(void)state;
	sweep(&faulty_run, FAULT_BIT(FAULT_MEMORY), ENOMEM, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_input_output),
		cmocka_unit_test(test_no_space),
		cmocka_unit_test(test_no_memory),
	};

	seed = model_seed(20260915);
	if (fault_register(true))
		return 1;
	pfs_log_open((enum pfs_log_level)0, false); /* the faults are meant */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
