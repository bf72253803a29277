/* SPDX-License-Identifier: MIT */
/* Calls that fail below the store: the caller gets the errno, the group can be written again once
 * the fault is over, and nothing committed is lost.  PFS_LONG=1: at every call, every errno. */
#include "tests/unit/store_model.h"

#include "base/log.h"
#include "tests/vfs/faultvfs.h"

#define GROUPS 6

static uint64_t digests[GROUPS + 1];

static struct pfs_store *open_faulty(unsigned flags)
{
	struct pfs_store *store;

	assert_int_equal(pfs_store_open(&store, test_path,
					&(struct pfs_store_options){.flags = flags,
								    .vfs = FAULT_VFS_NAME,
								    .log_bytes = 1}),
			 0);
	return store;
}

static int write_group(struct pfs_store *store, uint64_t g)
{
	int error = pfs_store_begin(store);

	if (error)
		return error;
	error = model_group(store, g);
	if (error) {
		assert_int_equal(pfs_store_commit(store, NULL),
				 error); /* cannot be committed now */
		return error;
	}
	return pfs_store_commit(store, NULL);
}

static void learn_digests(void **state PFS_UNUSED)
{
	struct pfs_store *store;
	uint64_t g, seen = 0;

	assert_int_equal(fault_register(false), 0);
	pfs_log_open((enum pfs_log_level)0, false); /* the faults are meant */
	store = open_faulty(PFS_STORE_CREATE);
	for (g = 1; g <= GROUPS; g++) {
		assert_int_equal(write_group(store, g), 0);
		assert_int_equal(model_look(store, &seen, &digests[g]), 0);
	}
	assert_int_equal(pfs_store_close(store), 0);
}

static void assert_holds(struct pfs_store *store, uint64_t group)
{
	uint64_t seen = 0, digest = 0;

	assert_int_equal(model_look(store, &seen, &digest), 0);
	assert_int_equal(seen, group);
	assert_true(group == 0 || digest == digests[group]);
}

/* What a call may answer when `error` was injected. */
static void assert_errno(int result, int error)
{
	if (result == 0 || result == -error)
		return;
	/* where no space is needed SQLite has its own opinion of such an errno */
	if ((error == ENOSPC || error == EDQUOT) && result == -EIO)
		return;
	print_message("injected %s, got %s\n", strerror(error), strerror(-result));
	assert_int_equal(result, -error);
}

/* All groups under the plan, each again until it is written; true if anything failed. */
static bool run_with(const struct fault_plan *plan)
{
	struct pfs_store *store;
	bool hit = false;
	uint64_t g;

	(void)unlink(test_path);
	store = open_faulty(PFS_STORE_CREATE);
	fault_set(plan);
	for (g = 1; g <= GROUPS; g++) {
		int error = write_group(store, g);

		assert_errno(error, plan->error);
		if (error) {
			uint64_t seen = 0, digest = 0;
			int looked;

			looked = model_look(store, &seen, &digest); /* may meet the fault too */
			assert_errno(looked, plan->error);
			assert_true(fault_failures() > 0 || hit);
			hit = true;
			fault_set(NULL);
			assert_holds(store, g - 1);
			g--;
			continue;
		}
		assert_errno(pfs_store_checkpoint(store, g % 2), plan->error);
	}
	hit = hit || fault_failures() > 0;
	fault_set(NULL);
	assert_holds(store, GROUPS);
	assert_int_equal(count_findings(store), 0);
	assert_int_equal(pfs_store_close(store), 0);
	store = open_faulty(0);
	assert_holds(store, GROUPS);
	assert_int_equal(count_findings(store), 0);
	assert_int_equal(pfs_store_close(store), 0);
	return hit;
}

/* Calls that a run without faults makes. */
static uint64_t count_calls(unsigned calls)
{
	const struct fault_plan none = {.calls = calls, .count = 0, .error = EIO};
	struct pfs_store *store;
	uint64_t g, made;

	(void)unlink(test_path);
	store = open_faulty(PFS_STORE_CREATE);
	fault_set(&none);
	for (g = 1; g <= GROUPS; g++) {
		assert_int_equal(write_group(store, g), 0);
		assert_int_equal(pfs_store_checkpoint(store, g % 2), 0);
	}
	made = fault_calls();
	fault_set(NULL);
	assert_int_equal(pfs_store_close(store), 0);
	return made;
}

/* Faults at about `points` places among the calls (long mode: at each), once and for ever. */
static void sweep(unsigned calls, int error, uint64_t points)
{
	uint64_t made = count_calls(calls), step = long_mode() ? 1 : made / points + 1, n;
	unsigned hit = 0;

	assert_true(made > 0);
	for (n = 0; n < made; n += step) {
		struct fault_plan plan = {.calls = calls, .first = n, .count = 1, .error = error};

		hit += run_with(&plan);
		plan.count = FAULT_FOR_EVER;
		hit += run_with(&plan);
	}
	assert_true(hit >= points);
	print_message("%llu calls, %u runs with faults\n", (unsigned long long)made, hit);
}

static void input_and_output_fail(void **state PFS_UNUSED)
{
	sweep(FAULT_ANY, EIO, 25);
}

static void writing_finds_no_space(void **state PFS_UNUSED)
{
	sweep(FAULT_BIT(FAULT_WRITE), ENOSPC, 10);
	sweep(FAULT_BIT(FAULT_WRITE), EDQUOT, 3);
}

static void syncing_fails(void **state PFS_UNUSED)
{
	sweep(FAULT_BIT(FAULT_SYNC), EIO, 10);
	sweep(FAULT_BIT(FAULT_SYNC), ENOSPC, 3);
}

static void memory_runs_out(void **state PFS_UNUSED)
{
	sweep(FAULT_BIT(FAULT_MEMORY), ENOMEM, 25);
	sweep(FAULT_ANY, ENOMEM, 10);
}

/* ---- opening, closing, checking ---- */

static void ignore_finding(void *arg PFS_UNUSED, const char *finding)
{
	assert_null(strchr(finding, '\n'));
}

/* Opens, looks and closes under the plan; true if anything failed. */
static bool visit_with(const struct fault_plan *plan, unsigned flags)
{
	const struct pfs_store_options options = {.flags = flags, .vfs = FAULT_VFS_NAME};
	uint64_t seen = 0, digest = 0;
	struct pfs_store *store;
	bool hit;

	fault_set(plan);
	if (pfs_store_open(&store, test_path, &options)) {
		assert_null(store);
		assert_true(fault_failures() > 0);
	} else {
		assert_errno(model_look(store, &seen, &digest), plan->error);
		assert_errno(pfs_store_check(store, ignore_finding, NULL), plan->error);
		(void)pfs_store_close(store);
	}
	hit = fault_failures() > 0;
	fault_set(NULL);
	store = open_faulty(0);
	assert_holds(store, GROUPS);
	assert_int_equal(pfs_store_close(store), 0);
	return hit;
}

/* A fault at a time, until a visit meets none. */
static void visit_everywhere(unsigned calls, int error, unsigned flags)
{
	uint64_t step = long_mode() ? 1 : calls == FAULT_BIT(FAULT_MEMORY) ? 211 : 29;
	struct fault_plan plan = {.calls = calls, .count = 1, .error = error};
	unsigned hit = 0;

	while (visit_with(&plan, flags)) {
		plan.first += step;
		hit++;
	}
	assert_true(hit > 1);
	print_message("%u runs with faults\n", hit);
}

static void opening_and_closing_fail(void **state PFS_UNUSED)
{
	struct pfs_store *store;
	uint64_t g;

	(void)unlink(test_path);
	store = open_faulty(PFS_STORE_CREATE);
	for (g = 1; g <= GROUPS; g++)
		assert_int_equal(write_group(store, g), 0);
	assert_int_equal(pfs_store_close(store), 0);
	visit_everywhere(FAULT_ANY, EIO, 0);
	visit_everywhere(FAULT_ANY, ENOSPC, 0);
	visit_everywhere(FAULT_ANY, EIO, PFS_STORE_READ_ONLY);
	visit_everywhere(FAULT_BIT(FAULT_MEMORY), ENOMEM, 0);
	visit_everywhere(FAULT_BIT(FAULT_MEMORY), ENOMEM, PFS_STORE_READ_ONLY);
}

static void a_store_is_made_or_not(void **state PFS_UNUSED)
{
	const struct pfs_store_options options = {.flags = PFS_STORE_CREATE, .vfs = FAULT_VFS_NAME};
	struct fault_plan plan = {.calls = FAULT_ANY, .count = 1, .error = ENOSPC};
	struct pfs_store *store;
	bool hit = true;
	int error;

	for (; hit; plan.first++) {
		(void)unlink(test_path);
		fault_set(&plan);
		error = pfs_store_open(&store, test_path, &options);
		hit = fault_failures() > 0;
		fault_set(NULL);
		if (error)
			assert_int_equal(access(test_path, F_OK), -1);
		else
			assert_int_equal(pfs_store_close(store), 0);
	}
	assert_true(plan.first > 10);
}

/* ---- the words of a plan ---- */

static void plans_are_parsed(void **state PFS_UNUSED)
{
	struct fault_plan plan;

	assert_int_equal(fault_parse(&plan, "write,sync:12:*:ENOSPC\n"), 0);
	assert_int_equal(plan.calls, FAULT_BIT(FAULT_WRITE) | FAULT_BIT(FAULT_SYNC));
	assert_true(plan.first == 12 && plan.count == FAULT_FOR_EVER && plan.error == ENOSPC);
	assert_int_equal(fault_parse(&plan, "any:0:3:EIO"), 0);
	assert_true(plan.calls == FAULT_ANY && plan.count == 3);
	assert_int_equal(fault_parse(&plan, "\n"), 0);
	assert_true(plan.calls == 0);
	assert_int_equal(fault_parse(&plan, "write:1:1:EWHAT"), -EINVAL);
	assert_int_equal(fault_parse(&plan, "wite:1:1:EIO"), -EINVAL);
	assert_int_equal(fault_parse(&plan, "write"), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(learn_digests),
		cmocka_unit_test(input_and_output_fail),
		cmocka_unit_test(writing_finds_no_space),
		cmocka_unit_test(syncing_fails),
		cmocka_unit_test(memory_runs_out),
		cmocka_unit_test(opening_and_closing_fail),
		cmocka_unit_test(a_store_is_made_or_not),
		cmocka_unit_test(plans_are_parsed),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
