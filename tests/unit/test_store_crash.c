/* SPDX-License-Identifier: MIT */
/* Crashes, played back from a recording of every write and sync: whatever the disk is left with,
 * the store opens, is sound, and holds some whole group, none older than the last one acknowledged.
 * PFS_LONG=1: every point of the recording, many times. */
#include "tests/unit/store_model.h"

#include "tests/vfs/faultvfs.h"

#define GROUPS	 60
#define SESSIONS 3 /* the store is closed and opened again between them */

static uint64_t digests[GROUPS + 1];
static char crash_folder[120], crash_path[140];

static void write_sessions(void)
{
	struct pfs_store *store;
	uint64_t g = 0, seen = 0;
	int session;

	(void)unlink(test_path);
	for (session = 0; session < SESSIONS; session++) {
		const struct pfs_store_options options = {.flags = session ? 0 : PFS_STORE_CREATE,
							  .vfs = FAULT_VFS_NAME,
							  .log_bytes = 1};

		assert_int_equal(pfs_store_open(&store, test_path, &options), 0);
		for (; g < (uint64_t)GROUPS * (session + 1) / SESSIONS; g++) {
			assert_int_equal(pfs_store_begin(store), 0);
			assert_int_equal(model_group(store, g + 1), 0);
			assert_int_equal(pfs_store_commit(store, NULL), 0);
			fault_mark(g + 1);
			assert_int_equal(model_look(store, &seen, &digests[g + 1]), 0);
			assert_int_equal(seen, g + 1);
			if (g % 7 == 6)
				assert_int_equal(pfs_store_checkpoint(store, g % 2), 0);
		}
		assert_int_equal(count_findings(store), 0);
		assert_int_equal(pfs_store_close(store), 0);
	}
}

static void empty_crash_folder(void)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
	size_t i;

	for (i = 0; i < PFS_COUNT(suffixes); i++) {
		char path[160];

		(void)snprintf(path, sizeof(path), "%s%s", crash_path, suffixes[i]);
		(void)unlink(path);
	}
}

static void crash_at(size_t length, enum fault_crash kind, uint64_t seed)
{
	uint64_t acknowledged = fault_last_mark(length), group = 0, digest = 0;
	struct pfs_store *store;
	int error;

	empty_crash_folder();
	assert_int_equal(fault_replay(crash_folder, length, kind, seed), 0);
	error = pfs_store_open(&store, crash_path,
			       &(struct pfs_store_options){.vfs = FAULT_VFS_NAME});
	if (error == -EMEDIUMTYPE && acknowledged == 0)
		return; /* it was still being made */
	if (error)
		print_message("crash after %zu entries, kind %d, seed %llu\n", length, (int)kind,
			      (unsigned long long)seed);
	assert_int_equal(error, 0);
	error = model_look(store, &group, &digest);
	if (error || group < acknowledged || group > acknowledged + 1 ||
	    (group && digest != digests[group]))
		print_message("crash after %zu entries, kind %d, seed %llu: group %llu of %llu\n",
			      length, (int)kind, (unsigned long long)seed,
			      (unsigned long long)group, (unsigned long long)acknowledged);
	assert_int_equal(error, 0);
	assert_in_range(group, acknowledged, acknowledged + 1);
	if (group)
		assert_true(digest == digests[group]);
	assert_int_equal(count_findings(store), 0);
	/* and it goes on from there */
	if (group && group < GROUPS) {
		assert_int_equal(pfs_store_begin(store), 0);
		assert_int_equal(model_group(store, group + 1), 0);
		assert_int_equal(pfs_store_commit(store, NULL), 0);
		assert_int_equal(model_look(store, &group, &digest), 0);
		assert_true(digest == digests[group]);
	}
	assert_int_equal(pfs_store_close(store), 0);
}

static void every_crash_leaves_a_whole_group(void **state PFS_UNUSED)
{
	const size_t crashes = long_mode() ? 5000 : 120;
	uint64_t seed = model_seed(20261121);
	size_t length, i;

	(void)snprintf(crash_folder, sizeof(crash_folder), "%s/crash", test_folder);
	(void)snprintf(crash_path, sizeof(crash_path), "%s/a.pfs", crash_folder);
	assert_int_equal(mkdir(crash_folder, 0700), 0);
	assert_int_equal(fault_register(false), 0);
	fault_record();
	write_sessions();
	fault_stop();
	length = fault_length();
	print_message("%zu entries recorded\n", length);
	assert_true(fault_last_mark(length) == GROUPS);
	assert_true(length > GROUPS * 3);
	for (i = 0; i < crashes; i++) {
		uint64_t r = model_random(model_random(seed) + i);

		crash_at((size_t)(r >> 8) % (length + 1), (enum fault_crash)(r % 3), r);
	}
}

/* The recorder itself: without a sync nothing must be certain, or the test above proves nothing. */
static void unsynced_writes_can_be_lost(void **state PFS_UNUSED)
{
	struct pfs_store *store;
	uint64_t group = 0, digest = 0;
	int lost = 0;
	size_t length, i;

	fault_record();
	(void)unlink(test_path);
	assert_int_equal(pfs_store_open(&store, test_path,
					&(struct pfs_store_options){.flags = PFS_STORE_CREATE,
								    .vfs = FAULT_VFS_NAME}),
			 0);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(model_group(store, 1), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	fault_stop();
	length = fault_length() - 1; /* without the last entry, the commit's sync */
	for (i = 0; i < 20; i++) {
		struct pfs_store *crashed;

		empty_crash_folder();
		assert_int_equal(fault_replay(crash_folder, length, FAULT_TORN, i), 0);
		assert_int_equal(pfs_store_open(&crashed, crash_path,
						&(struct pfs_store_options){.vfs = FAULT_VFS_NAME}),
				 0);
		assert_int_equal(model_look(crashed, &group, &digest), 0);
		lost += group == 0;
		assert_int_equal(pfs_store_close(crashed), 0);
	}
	assert_true(lost > 0);
	assert_int_equal(pfs_store_close(store), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_crash_leaves_a_whole_group),
		cmocka_unit_test(unsynced_writes_can_be_lost),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
