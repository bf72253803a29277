/* SPDX-License-Identifier: MIT */
/* History that is cut short by SIGKILL or a call that fails is what the last commit made it. */
#include "history_util.h"

#include <signal.h>
#include <sys/wait.h>

#include "tests/vfs/faultvfs.h"

/* ---- SIGKILL ---- */

static _Noreturn void write_until_killed(int to, uint64_t seed)
{
	uint64_t random = seed;
	struct pfs_store *store = open_as(0);

	for (;;) {
		struct state state;

		change_group(store, &random);
		state = look(store);
		if (write(to, &state, sizeof(state)) != sizeof(state))
			_exit(1);
	}
}

/* Remembers what the child said was committed. */
static void run_and_kill(uint64_t seed)
{
	int pipes[2], status;
	struct state state;
	pid_t child;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (!child) {
		(void)close(pipes[0]);
		write_until_killed(pipes[1], seed);
	}
	(void)close(pipes[1]);
	for (uint64_t n = 2 + seed % 5; n && read(pipes[0], &state, sizeof(state)) == sizeof(state);
	     n--)
		states[n_states++] = state;
	(void)usleep((useconds_t)(seed * 331 % 3000));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	while (n_states < STATES_MAX && read(pipes[0], &state, sizeof(state)) == sizeof(state))
		states[n_states++] = state;
	(void)close(pipes[0]);
	assert_true(WIFSIGNALED(status));
}

static void what_was_committed_is_known_after_a_kill(void **state PFS_UNUSED)
{
	const struct pfs_history_rule small = {.size = 6000};
	const char *few = getenv("PFS_TEST_SMALL");
	const uint64_t cycles = few && *few == '1' ? 4 : 12;
	struct pfs_store *store = begin_history(&small);

	assert_int_equal(pfs_store_close(store), 0);
	for (uint64_t i = 1; i <= cycles; i++) {
		n_states = 0;
		run_and_kill(i);
		store = open_as(0);
		assert_int_equal(count_findings(store), 0);
		for (size_t n = 0; n < n_states; n++)
			if (states[n].time >= read_history(store).since)
				assert_was(store, &states[n]);
		assert_int_equal(pfs_store_close(store), 0);
	}
}

/* ---- calls that fail ---- */

#define STEPS 10 /* history begins, groups, it ends */

static int write_group(struct pfs_store *store, uint64_t g)
{
	const struct pfs_attr_record attr = {
		.name = "x", .name_len = 1, .type = PFS_ATTR_INTEGER, .integer = (int64_t)g};
	struct pfs_node_record node = file_record(OTHERS + 1 + g % 3, (uint32_t)(1 + g % 3), "a");
	int error = pfs_store_begin(store);

	node.size = (int64_t)g;
	node.flags = PFS_NODE_ATTRS;
	if (!error)
		error = pfs_store_put_node(store, &node);
	if (!error)
		error = pfs_store_put_attr(store, node.prime, &attr);
	if (!error)
		error = pfs_store_remove_node(store, OTHERS + 1 + (g + 1) % 3);
	if (!error)
		error = pfs_history_prune(store);
	if (!error)
		return pfs_store_commit(store, NULL);
	pfs_store_rollback(store);
	return error;
}

static int run_step(struct pfs_store *store, uint64_t step)
{
	const struct pfs_history_rule small = {.size = 600};

	if (step == 0 || step == STEPS)
		return pfs_history_set(store, step ? &nothing : &small);
	return write_group(store, step);
}

static void assert_all_known(struct pfs_store *store)
{
	fault_spare(true);
	for (size_t i = 0; i < n_states; i++)
		if (states[i].time >= read_history(store).since)
			assert_was(store, &states[i]);
	assert_int_equal(count_findings(store), 0);
	fault_spare(false);
}

/* Each step again until it is done.  The calls that could fail. */
static uint64_t run_with(const struct fault_plan *plan)
{
	const struct pfs_store_options options = {
		.flags = PFS_STORE_CREATE, .vfs = FAULT_VFS_NAME, .log_bytes = 1};
	const struct pfs_node_record root = {
		.prime = PFS_ROOT_PRIME, .mode = S_IFDIR | 0755, .name = ""};
	struct pfs_store *store;
	uint64_t first, end, calls = 0;
	bool failed = false;

	(void)unlink(test_path);
	assert_int_equal(pfs_store_open(&store, test_path, &options), 0);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_put_node(store, &root), 0);
	assert_int_equal(pfs_store_reserve(store, &first, &end, PFS_PRIME_OTHER, 10), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	n_states = 0;
	fault_set(plan);
	for (uint64_t step = 0; step <= STEPS; step++) {
		if (run_step(store, step)) {
			failed = true;
			fault_set(NULL);
			assert_all_known(store);
			step--;
			continue;
		}
		fault_spare(true);
		if (step < STEPS)
			remember(store);
		fault_spare(false);
		if (step == STEPS - 1)
			assert_all_known(store);
	}
	calls = fault_calls();
	fault_set(NULL);
	assert_true(failed == (plan->count != 0));
	assert_int_equal(read_history(store).rule.size, 0);
	assert_int_equal(count_findings(store), 0);
	assert_int_equal(pfs_store_close(store), 0);
	return calls;
}

static void what_fails_is_done_again(void **state PFS_UNUSED)
{
	struct fault_plan plan = {.calls = FAULT_BIT(FAULT_WRITE) | FAULT_BIT(FAULT_SYNC),
				  .error = ENOSPC};
	uint64_t made, step;

	assert_int_equal(fault_register(false), 0);
	pfs_log_open((enum pfs_log_level)0, false); /* the faults are meant */
	made = run_with(&plan);
	assert_true(made > 30);
	step = made / (getenv("PFS_TEST_SMALL") ? 8 : 25) + 1;
	for (uint64_t first = 0; first < made; first += step) {
		plan.first = first;
		plan.count = first % 4 ? 1 : FAULT_FOR_EVER;
		(void)run_with(&plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_committed_is_known_after_a_kill),
		cmocka_unit_test(what_fails_is_done_again),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
