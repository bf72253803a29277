/* SPDX-License-Identifier: MIT */
/* Files that somebody else put beside a store: never used, never harmed, and named. */
#include "tests/unit/store_util.h"

#include <fcntl.h>
#include <sys/wait.h>

#define OTHER 65534

static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
static char side[128];
static char why[512];

static const char *side_of(const char *suffix)
{
	(void)snprintf(side, sizeof(side), "%s%s", test_path, suffix);
	return side;
}

/* A store that was killed in the middle of its work: its log and the log's index are there. */
static void leave_log(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)new_store(0);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(access(side_of("-shm"), F_OK), 0);
	assert_int_equal(access(side_of("-wal"), F_OK), 0);
}

static void close_store(void)
{
	struct pfs_store *store = open_as(0);

	assert_int_equal(count_findings(store), 0);
	assert_int_equal(pfs_store_close(store), 0);
}

static void put(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "planted", 7), 7);
	(void)close(fd);
}

/* Opening fails, for reading too if so said, the explanation names the file, and the file is as it
 * was. */
static void refused(const char *path, bool reading)
{
	struct pfs_store *store;
	struct stat before, after;
	int error;

	assert_int_equal(lstat(path, &before), 0);
	for (int i = 0; i <= reading; i++) {
		error = try_open_as(&store, i ? PFS_STORE_READ_ONLY : 0);
		if (error != -EPERM)
			fail_msg("%s: %d", path, error);
		assert_null(store);
		pfs_store_explain(why, sizeof(why), test_path, error);
		if (strncmp(why, path, strlen(path)) != 0)
			fail_msg("%d: %s", error, why);
		assert_null(strchr(why, '\n'));
	}
	assert_int_equal(lstat(path, &after), 0);
	assert_true(after.st_ino == before.st_ino && after.st_size == before.st_size &&
		    after.st_uid == before.st_uid &&
		    after.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
}

static void another_users_file(void **state PFS_UNUSED)
{
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < PFS_COUNT(suffixes); i++) {
		assert_int_equal(pfs_store_close(new_store(0)), 0);
		put(side_of(suffixes[i]));
		assert_int_equal(chown(side, OTHER, OTHER), 0);
		refused(side, i == 0);
		assert_int_equal(unlink(side), 0);
		close_store();
	}
}

static void a_second_name(void **state PFS_UNUSED)
{
	char first[128];

	(void)snprintf(first, sizeof(first), "%s/first", test_folder);
	for (size_t i = 0; i < PFS_COUNT(suffixes); i++) {
		assert_int_equal(pfs_store_close(new_store(0)), 0);
		put(first);
		assert_int_equal(link(first, side_of(suffixes[i])), 0);
		refused(side, i == 0);
		assert_int_equal(unlink(side), 0);
		assert_int_equal(unlink(first), 0);
		close_store();
	}
}

static void no_regular_file(void **state PFS_UNUSED)
{
	assert_int_equal(pfs_store_close(new_store(0)), 0);
	assert_int_equal(mkfifo(side_of("-wal"), 0644), 0);
	refused(side, false);
	assert_int_equal(unlink(side), 0);
	assert_int_equal(mkdir(side_of("-wal"), 0755), 0);
	refused(side, false);
	assert_int_equal(rmdir(side), 0);
	assert_int_equal(symlink("/etc/passwd", side_of("-wal")), 0);
	refused(side, true);
	assert_int_equal(unlink(side), 0);
	close_store();
}

/* The log of a store of another user's, which root opens: made by root, given to the owner. */
static void own_logs_are_used(void **state PFS_UNUSED)
{
	struct stat attr;

	leave_log();
	close_store();
	if (geteuid() != 0)
		return;
	leave_log();
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(chown(side_of(suffixes[i]), OTHER, OTHER), 0);
	assert_int_equal(chown(test_path, OTHER, OTHER), 0);
	close_store();
	assert_int_equal(stat(test_path, &attr), 0);
	assert_int_equal(attr.st_uid, OTHER);
	assert_int_equal(access(side_of("-wal"), F_OK), -1);
}

/* A store's own name may end so. */
static void a_store_with_such_a_name(void **state PFS_UNUSED)
{
	char plain[sizeof(test_path)];

	if (geteuid() != 0)
		skip();
	(void)snprintf(plain, sizeof(plain), "%s", test_path);
	assert_int_equal(chown(plain, OTHER, OTHER), 0);
	(void)snprintf(test_path, sizeof(test_path), "%.90s-wal", plain);
	assert_int_equal(pfs_store_close(new_store(0)), 0);
	assert_int_equal(chown(test_path, 1, 1), 0);
	close_store();
	assert_int_equal(unlink(test_path), 0);
	(void)snprintf(test_path, sizeof(test_path), "%s", plain);
	assert_int_equal(unlink(plain), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_users_file),
		cmocka_unit_test(a_second_name),
		cmocka_unit_test(no_regular_file),
		cmocka_unit_test(own_logs_are_used),
		cmocka_unit_test(a_store_with_such_a_name),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
