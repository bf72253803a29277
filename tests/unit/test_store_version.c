/* SPDX-License-Identifier: MIT */
/* Stores of versions 1 and 2 of the format: read as they are, brought up to today's by the first
 * opening for writing, in one transaction that neither a crash nor a full disk can take apart.
 * PFS_LONG=1: every crash many times. */
#include "tests/unit/store_model.h"

#include <sys/wait.h>

#include "meta/siderows.h"
#include "tests/ref/version1.h"
#include "tests/vfs/faultvfs.h"

#define GROUPS 10

static uint64_t digest_before;
static int old_version; /* of the stores that are made */

static int is_1(void **state PFS_UNUSED)
{
	old_version = 1;
	return 0;
}

static int is_2(void **state PFS_UNUSED)
{
	old_version = 2;
	return 0;
}

/* A store of the old version with everything that it can hold. */
static void make_old(const char *vfs)
{
	const struct pfs_store_options how = {.flags = PFS_STORE_CREATE};
	const struct pfs_cell cell = {.type = PFS_CELL_INTEGER, .integer = 7};
	static const char columns[] = "CREATE TABLE t (a ANY);\n";
	const struct pfs_table_record table = {.name = "t",
					       .name_len = 1,
					       .columns = columns,
					       .columns_len = sizeof(columns) - 1};
	struct pfs_store *store;
	struct pfs_side_rows rows PFS_SIDE_ROWS = {.table = 0};
	uint64_t group = 0;

	(void)unlink(test_path);
	assert_int_equal(pfs_store_open(&store, test_path, &how), 0);
	for (uint64_t g = 1; g <= GROUPS; g++) {
		assert_int_equal(pfs_store_begin(store), 0);
		assert_int_equal(model_group(store, g), 0);
		if (g == GROUPS) {
			assert_int_equal(pfs_store_put_table(store, &rows.table, &table, 1), 0);
			assert_int_equal(pfs_store_put_row(store, &rows, 1, &cell, 1), 0);
			assert_int_equal(pfs_store_write_rows(store, &rows), 0);
		}
		assert_int_equal(pfs_store_commit(store, NULL), 0);
	}
	assert_int_equal(model_look(store, &group, &digest_before), 0);
	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(old_version_make(test_path, old_version, vfs), 0);
	assert_int_equal(version_of(test_path), old_version);
}

static int count_row(void *arg, int64_t row PFS_UNUSED, const struct pfs_cell *cells PFS_UNUSED,
		     size_t n PFS_UNUSED)
{
	(*(int *)arg)++;
	return 0;
}

static int see_root(void *arg, const struct pfs_source_root *root)
{
	assert_string_equal(root->path, "/original");
	assert_true(!root->has_rights && !root->mark.handle_len && !root->mark.has_birth);
	(*(int *)arg)++;
	return 0;
}

static int no_link(void *arg PFS_UNUSED, uint64_t prime PFS_UNUSED, int64_t link PFS_UNUSED)
{
	return -1;
}

/* The store holds what make_old put there, and nothing of what version 1 lacks. */
static void assert_same(struct pfs_store *store)
{
	enum pfs_store_trust trust;
	struct pfs_source_dir dir;
	uint64_t group = 0, digest = 0;
	int rows = 0, roots = 0;

	assert_int_equal(model_look(store, &group, &digest), 0);
	assert_true(group == GROUPS && digest == digest_before);
	assert_int_equal(pfs_store_scan_rows(store, 1, NULL, count_row, &rows), 0);
	assert_int_equal(rows, 1);
	assert_int_equal(pfs_store_scan_source_roots(store, see_root, &roots), 0);
	assert_int_equal(roots, 1);
	assert_int_equal(pfs_store_get_source_dir(store, &dir, 1, "d", 1), -ENOENT);
	assert_int_equal(pfs_store_trust(store, &trust), 0);
	assert_int_equal(trust, PFS_TRUST_UNSTAMPED);
	assert_int_equal(pfs_store_scan_hard_links(store, no_link, NULL), 0);
	assert_int_equal(count_findings(store), 0);
}

static void an_old_store_is_read_as_it_is(void **state PFS_UNUSED)
{
	const unsigned flags[] = {PFS_STORE_READ_ONLY, PFS_STORE_READ_ONLY | PFS_STORE_ALONE,
				  PFS_STORE_READ_ONLY | PFS_STORE_UNLOCKED};
	struct stat before, after;
	struct pfs_store *store;

	make_old(NULL);
	assert_int_equal(stat(test_path, &before), 0);
	for (size_t i = 0; i < PFS_COUNT(flags); i++) {
		store = open_as(flags[i]);
		assert_int_equal(pfs_store_version(store), old_version);
		assert_same(store);
		assert_int_equal(pfs_store_close(store), 0);
	}
	assert_int_equal(stat(test_path, &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	assert_int_equal(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
	assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	assert_int_equal(version_of(test_path), old_version);
}

static struct pfs_birthmark mark_of(uint8_t byte)
{
	return (struct pfs_birthmark){.has_birth = true,
				      .birth = {.sec = 5, .nsec = byte},
				      .handle_len = 3,
				      .handle = {byte, 0, byte}};
}

static void assert_mark(const struct pfs_birthmark *mark, uint8_t byte)
{
	const struct pfs_birthmark wanted = mark_of(byte);

	assert_int_equal(mark->handle_len, 3);
	assert_memory_equal(mark->handle, wanted.handle, 3);
	assert_true(mark->has_birth && mark->birth.sec == 5 && mark->birth.nsec == byte);
}

static int see_marked_root(void *arg PFS_UNUSED, const struct pfs_source_root *root)
{
	assert_mark(&root->mark, 2);
	assert_true(root->has_rights && root->mode == 040700 && root->uid == 3 && root->gid == 4);
	return 0;
}

static int see_link(void *arg, uint64_t prime, int64_t link)
{
	assert_true(prime == MODEL_PRIME(MODEL_NODES) && link == 12);
	(*(int *)arg)++;
	return 0;
}

/* What is new can be written, replaced and read. */
static void assert_new_records(struct pfs_store *store)
{
	struct pfs_source_root root = {.id = 1,
				       .path = "/o",
				       .mark = mark_of(2),
				       .has_rights = true,
				       .mode = 040700,
				       .uid = 3,
				       .gid = 4};
	struct pfs_source_dir dir = {.root = 1,
				     .path = "a/b",
				     .path_len = 3,
				     .dev = 5,
				     .ino = 6,
				     .mark = mark_of(3),
				     .mode = 040755,
				     .uid = 7,
				     .gid = 8};
	struct pfs_node_record node = file_record(MODEL_PRIME(MODEL_NODES), MODEL_NODES + 1, "f");
	struct pfs_source_dir got;
	uint32_t id;
	int links = 0;

	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_put_source_root(store, &id, &root), 0);
	dir.uid = 1;
	assert_int_equal(pfs_store_put_source_dir(store, &dir), 0);
	dir.uid = 7;
	assert_int_equal(pfs_store_put_source_dir(store, &dir), 0);
	assert_int_equal(pfs_store_put_node(store, &node), 0);
	assert_int_equal(pfs_store_put_hard_link(store, node.prime, 11), 0);
	assert_int_equal(pfs_store_put_hard_link(store, node.prime, 12), 0);
	dir.mark.handle_len = PFS_HANDLE_MAX + 1;
	assert_int_equal(pfs_store_put_source_dir(store, &dir), -EINVAL);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_scan_source_roots(store, see_marked_root, NULL), 0);
	assert_int_equal(pfs_store_get_source_dir(store, &got, 1, "a/b", 3), 0);
	assert_mark(&got.mark, 3);
	assert_true(got.dev == 5 && got.ino == 6 && got.mode == 040755 && got.uid == 7);
	assert_int_equal(pfs_store_get_source_dir(store, &got, 2, "a/b", 3), -ENOENT);
	assert_int_equal(pfs_store_scan_hard_links(store, see_link, &links), 0);
	assert_int_equal(links, 1);
	assert_int_equal(count_findings(store), 0);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_remove_node(store, node.prime), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_scan_hard_links(store, no_link, NULL), 0);
	assert_int_equal(count_findings(store), 0);
}

static void the_first_opening_for_writing_raises_it(void **state PFS_UNUSED)
{
	struct pfs_store *store;

	make_old(NULL);
	store = open_as(0);
	assert_int_equal(pfs_store_version(store), PFS_STORE_SCHEMA);
	assert_same(store);
	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(version_of(test_path), PFS_STORE_SCHEMA);
	store = open_as(PFS_STORE_READ_ONLY);
	assert_same(store);
	assert_int_equal(pfs_store_close(store), 0);
	store = open_as(0);
	assert_new_records(store);
	assert_int_equal(pfs_store_close(store), 0);
}

/* ---- crashes ---- */

static char crash_folder[120], crash_path[140];

static void empty_crash_folder(void)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
	char path[160];

	for (size_t i = 0; i < PFS_COUNT(suffixes); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", crash_path, suffixes[i]);
		(void)unlink(path);
	}
}

/* Returns the version that a reader finds there. */
static int look_after_crash(size_t length, enum fault_crash kind, uint64_t seed)
{
	const struct pfs_store_options reading = {.flags = PFS_STORE_READ_ONLY};
	struct pfs_store *store;
	int version;

	empty_crash_folder();
	assert_int_equal(fault_replay(crash_folder, length, kind, seed), 0);
	assert_int_equal(pfs_store_open(&store, crash_path, &reading), 0);
	version = pfs_store_version(store);
	assert_same(store);
	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(pfs_store_open(&store, crash_path, &(struct pfs_store_options){0}), 0);
	assert_same(store);
	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(version_of(crash_path), PFS_STORE_SCHEMA);
	return version;
}

static void a_crash_leaves_one_version_or_the_other(void **state PFS_UNUSED)
{
	const uint64_t seeds = long_mode() ? 100 : 2;
	int found[PFS_STORE_SCHEMA + 1] = {0};
	struct pfs_store *store;
	size_t from, length;

	(void)snprintf(crash_folder, sizeof(crash_folder), "%s/crash", test_folder);
	(void)snprintf(crash_path, sizeof(crash_path), "%s/a.pfs", crash_folder);
	assert_true(!mkdir(crash_folder, 0700) || errno == EEXIST);
	assert_int_equal(fault_register(false), 0);
	fault_record();
	make_old(FAULT_VFS_NAME);
	fault_folder_synced();
	from = fault_length();
	assert_int_equal(pfs_store_open(&store, test_path,
					&(struct pfs_store_options){.vfs = FAULT_VFS_NAME}),
			 0);
	assert_int_equal(pfs_store_close(store), 0);
	fault_stop();
	length = fault_length();
	print_message("%zu entries recorded\n", length - from);
	assert_true(length > from + 4);
	for (size_t at = from; at <= length; at++)
		for (int kind = FAULT_KILLED; kind <= FAULT_TORN; kind++)
			for (uint64_t seed = 0; seed < (kind == FAULT_KILLED ? 1 : seeds); seed++)
				found[look_after_crash(at, (enum fault_crash)kind, seed)]++;
	assert_true(found[old_version] > 0 && found[PFS_STORE_SCHEMA] > 0);
}

/* For real: nothing of the process's reaches the file from some write on, not even a rollback. */
static void a_kill_leaves_one_version_or_the_other(void **state PFS_UNUSED)
{
	const struct pfs_store_options how = {.vfs = FAULT_VFS_NAME};
	struct pfs_store *store;
	int version = old_version, killed = 0, status;

	assert_int_equal(fault_register(false), 0);
	for (uint64_t writes = 0; version == old_version; writes++) {
		pid_t pid;

		make_old(NULL);
		pid = fork();
		if (pid == 0) {
			const struct fault_plan plan = {.calls = FAULT_BIT(FAULT_WRITE),
							.first = writes,
							.count = FAULT_FOR_EVER,
							.error = EIO};

			fault_set(&plan);
			if (pfs_store_open(&store, test_path, &how))
				(void)raise(SIGKILL);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		killed += WIFSIGNALED(status);
		store = open_as(PFS_STORE_READ_ONLY);
		version = pfs_store_version(store);
		assert_same(store);
		assert_int_equal(pfs_store_close(store), 0);
		store = open_as(0);
		assert_same(store);
		assert_int_equal(pfs_store_close(store), 0);
	}
	assert_true(killed > 2);
}

/* From each write on the disk is full: who opens the store is told so, or it is done, and nothing
 * is lost. */
static void a_full_disk_leaves_one_version_or_the_other(void **state PFS_UNUSED)
{
	const struct pfs_store_options how = {.vfs = FAULT_VFS_NAME};
	struct fault_plan plan = {.calls = FAULT_BIT(FAULT_WRITE) | FAULT_BIT(FAULT_TRUNCATE) |
					   FAULT_BIT(FAULT_SHM),
				  .count = FAULT_FOR_EVER,
				  .error = ENOSPC};
	int version = old_version, refused = 0;
	struct pfs_store *store;

	assert_int_equal(fault_register(false), 0);
	for (; version == old_version; plan.first++) {
		int error;

		make_old(NULL);
		fault_set(&plan);
		error = pfs_store_open(&store, test_path, &how);
		if (!error)
			error = pfs_store_close(store);
		fault_set(NULL);
		assert_true(!error || error == -ENOSPC || error == -EIO);
		refused += error != 0;
		store = open_as(PFS_STORE_READ_ONLY);
		version = pfs_store_version(store);
		assert_true(version == old_version || version == PFS_STORE_SCHEMA);
		assert_same(store);
		assert_int_equal(pfs_store_close(store), 0);
		store = open_as(0); /* there is room again */
		assert_same(store);
		assert_int_equal(pfs_store_close(store), 0);
		assert_int_equal(version_of(test_path), PFS_STORE_SCHEMA);
	}
	assert_true(refused > 2);
}

#define OF_EACH(test) cmocka_unit_test_setup(test, is_1), cmocka_unit_test_setup(test, is_2)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF_EACH(an_old_store_is_read_as_it_is),
		OF_EACH(the_first_opening_for_writing_raises_it),
		OF_EACH(a_crash_leaves_one_version_or_the_other),
		OF_EACH(a_kill_leaves_one_version_or_the_other),
		OF_EACH(a_full_disk_leaves_one_version_or_the_other),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
