/* SPDX-License-Identifier: MIT */
/* Random changes against a simple model; closing, crashing and opening again in between.
 *
 * The test keeps the number of every state since the last sync: whatever a crash leaves must be one
 * of them, that is, no operation half done and none before the sync lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/ref/temp_store.h"
#include "tests/ref/tree_model.h"

#define STEPS 2500

static uint64_t seed = 20260801;
static struct temp_store temp;
static struct pfs_tree *tree;
static struct pfs_tree_options options;

static uint64_t states[STEPS + 2]; /* since the last sync */
static size_t n_states;

static void note_state(void)
{
	states[n_states++] = tree_model_state();
}

static void synced(void)
{
	n_states = 0;
	note_state();
}

static void reopen(void)
{
	temp_tree_close(tree);
	assert_int_equal(temp_store_findings(&temp), 0);
	tree = temp_tree_open_with(&temp, &options);
	tree_model_reopened(tree);
	synced();
	assert_int_equal(tree_model_state_of(tree), states[0]);
}

static void crash(bool sync_first)
{
	struct temp_store copy;
	struct pfs_tree *after;
	uint64_t state;
	bool known = false;

	if (sync_first) {
		assert_int_equal(pfs_tree_sync(tree), 0);
		synced();
	}
	temp_store_copy(&temp, &copy);
	after = temp_tree_open(&copy);
	state = tree_model_state_of(after);
	for (size_t i = 0; i < n_states; i++)
		known = known || states[i] == state;
	assert_true(known);
	temp_tree_close(after);
	assert_int_equal(temp_store_findings(&copy), 0);
	temp_store_remove(&copy);
}

static void run(unsigned commit_ms)
{
	options.commit_ms = commit_ms;
	print_message("seed %llu\n", (unsigned long long)seed);
	temp_store_create(&temp);
	tree = temp_tree_open_with(&temp, &options);
	tree_model_start(tree, seed);
	synced();
	for (int i = 0; i < STEPS; i++) {
		uint32_t choice = tree_model_random(1000);

		if (choice < 2)
			reopen();
		else if (choice < 10)
			crash(choice % 2);
		else
			tree_model_step();
		note_state();
		if (i % 50 == 0)
			assert_int_equal(tree_model_state_of(tree), tree_model_state());
	}
	reopen();
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

static void test_rare_commits(void **state)
{
	(void)state;
	run(1000);
}

static void test_frequent_commits(void **state)
{
	(void)state;
	seed++;
	run(1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rare_commits),
		cmocka_unit_test(test_frequent_commits),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
