/* SPDX-License-Identifier: MIT */
/* Power failures under statements that change sets of nodes and side tables: each set is there,
 * whole, or is not.  Nodes, and tables, are at least as they were at the last sync. */
#include "tests/ref/change_model.h"
#include "tests/unit/crash_util.h"

#define STEPS 300

static struct history history[CHANGE_PARTS];

static void note(uint64_t step, uint64_t synced)
{
	struct change_state state;

	change_model_look(&state, NULL);
	for (unsigned part = 0; part < CHANGE_PARTS; part++)
		history_note(&history[part], step, state.part[part]);
	fault_mark(synced << 32 | step);
}

static void record(struct temp_store *temp, uint64_t seed)
{
	const struct pfs_tree_options options = {.commit_ms = 2};
	unsigned done = 0;

	temp_store_create(temp);
	change_model_start(temp, &options, seed);
	note(0, 0);
	for (uint64_t i = 1, synced = 0; i <= STEPS; i++) {
		enum change_part part;
		int error = change_model_step(&part);

		if (error && !change_model_may_refuse(error))
			fail_msg("%s: %d", change_model_text(), error);
		done += error == 0;
		if (i % 7 == 0) {
			assert_int_equal(pfs_tree_sync(change_model_tree()), 0);
			synced = i;
		}
		note(i, synced);
		if (i % 100 == 0) {
			assert_int_equal(change_model_close(), 0);
			change_model_reopen(temp, &options);
			synced = i;
			note(i, synced);
		}
	}
	assert_int_equal(change_model_close(), 0);
	fault_mark((uint64_t)STEPS << 32 | STEPS);
	print_message("%u of %u changes done\n", done, STEPS);
	assert_true(done > STEPS / 2);
}

static bool judge(struct pfs_tree *left, uint64_t mark)
{
	uint64_t synced = mark >> 32;
	struct change_state state;

	change_model_look(&state, left);
	if (mark == 0) /* the tree was being made */
		return true;
	for (unsigned part = 0; part < CHANGE_PARTS; part++) {
		if (!history_has(&history[part], state.part[part], synced))
			return false;
	}
	return true;
}

static void test_crashes(void **state)
{
	(void)state;
	crash_everywhere(record, judge, model_seed(20260915), long_mode() ? 5000 : 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_crashes)};

	if (fault_register(true))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
