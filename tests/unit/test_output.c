/* SPDX-License-Identifier: MIT */
/* An output file takes its name once its content is on the disk, and takes none from others; what
 * one leaves that is killed meanwhile goes with the next. */
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/store_util.h"
#include "tools/cmd.h"
#include "tools/output.h"

static char calls[32]; /* a letter for each call of the following */
static int sync_error; /* with which fsync fails */
static bool is_killed; /* by its rename */
static int n_taken;    /* names that others have taken meanwhile */

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __wrap_fsync(int fd);
int __wrap_linkat(int from_folder, const char *from, int to_folder, const char *to, int flags);
int __real_linkat(int from_folder, const char *from, int to_folder, const char *to, int flags);
int __wrap_unlink(const char *path);
int __wrap_rename(const char *from, const char *to);
char *__wrap_realpath(const char *path, char *real);
char *__real_realpath(const char *path, char *real);
int __real_rename(const char *from, const char *to);

static void note(const char *call)
{
	(void)strncat(calls, call, sizeof(calls) - strlen(calls) - 1);
}

int __wrap_fsync(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 3); /* all that was written */
	note("s");
	errno = sync_error;
	return sync_error ? -1 : 0;
}

int __wrap_linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
	note("l");
	if (n_taken) {
		n_taken--;
		errno = EEXIST;
		return -1;
	}
	return __real_linkat(from_folder, from, to_folder, to, flags);
}

int __wrap_unlink(const char *path PFS_UNUSED)
{
	note("u");
	return 0;
}

int __wrap_rename(const char *from, const char *to)
{
	note("r");
	if (is_killed)
		(void)raise(SIGKILL);
	return __real_rename(from, to);
}

char *__wrap_realpath(const char *path, char *real)
{
	if (!*path)
		assert_non_null(memchr(real, 0, PATH_MAX)); /* nothing is written to it */
	return __real_realpath(path, real);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* Writes the file, and returns the calls that were made. */
static const char *write_file(int wanted)
{
	struct pfs_output out;

	*calls = 0;
	assert_int_equal(pfs_output_open(&out, "test", "out"), PFS_EXIT_OK);
	if (!*out.replaced)
		skip(); /* this filesystem has no files without a name */
	assert_int_equal(fputs("new", out.file), 1);
	assert_int_equal(pfs_output_close(&out, PFS_EXIT_OK, 0), wanted);
	return calls;
}

static off_t size_of_file(void)
{
	struct stat st;

	return stat("out", &st) == 0 ? st.st_size : -1;
}

static void is_on_the_disk_first(void **state PFS_UNUSED)
{
	assert_string_equal(write_file(PFS_EXIT_OK), "slr");
	assert_int_equal(size_of_file(), 3);
}

static void a_failure_leaves_what_was_there(void **state PFS_UNUSED)
{
	assert_int_equal(truncate("out", 100), 0);
	sync_error = EIO;
	assert_string_equal(write_file(PFS_EXIT_FAILURE), "s");
	sync_error = 0;
	assert_int_equal(size_of_file(), 100);
}

static void takes_nobody_elses_name(void **state PFS_UNUSED)
{
	n_taken = 2;
	assert_string_equal(write_file(PFS_EXIT_OK), "slllr");
	assert_int_equal(n_taken, 0);
	assert_int_equal(size_of_file(), 3);
}

/* Counts the files beside the output, and copies the name of one to `name` if it is not NULL. */
static int n_beside(char name[NAME_MAX + 1])
{
	DIR *dir = opendir(".");
	struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL)
		if (strncmp(entry->d_name, ".primefs-output-", 16) == 0) {
			n++;
			if (name)
				(void)memcpy(name, entry->d_name, strlen(entry->d_name) + 1);
		}
	(void)closedir(dir);
	return n;
}

static void kill_writer(void)
{
	struct pfs_output out;
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		is_killed = true;
		if (pfs_output_open(&out, "test", "out") == PFS_EXIT_OK &&
		    fputs("new", out.file) >= 0)
			(void)!pfs_output_close(&out, PFS_EXIT_OK, 0);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFSIGNALED(status))
		skip(); /* this filesystem has no files without a name */
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void removes_what_a_killed_one_left(void **state PFS_UNUSED)
{
	kill_writer();
	assert_int_equal(n_beside(NULL), 1);
	kill_writer();
	assert_int_equal(n_beside(NULL), 1);
	assert_string_equal(write_file(PFS_EXIT_OK), "slr");
	assert_int_equal(n_beside(NULL), 0);
}

/* Checks that the next output leaves the file, and removes it. */
static void stays(const char *name)
{
	assert_string_equal(write_file(PFS_EXIT_OK), "slr");
	assert_int_equal(n_beside(NULL), 1);
	assert_int_equal(unlinkat(AT_FDCWD, name, 0), 0);
}

static void removes_nothing_else(void **state PFS_UNUSED)
{
	char name[NAME_MAX + 1];
	int fd;

	kill_writer();
	assert_int_equal(n_beside(name), 1);
	fd = open(name, O_WRONLY | O_CLOEXEC); /* as one that is not killed has it */
	assert_true(fd >= 0);
	assert_string_equal(write_file(PFS_EXIT_OK), "slr");
	assert_int_equal(n_beside(NULL), 1);
	assert_int_equal(close(fd), 0);
	assert_int_equal(__real_linkat(AT_FDCWD, name, AT_FDCWD, "other", 0), 0);
	stays(name);
	assert_int_equal(__real_rename("other", ".primefs-output-0123456789abcde"), 0);
	stays(".primefs-output-0123456789abcde");
	assert_int_equal(symlink("out", name), 0);
	stays(name);
	assert_int_equal(mkfifo(name, 0600), 0);
	stays(name);
	assert_int_equal(size_of_file(), 3);
	if (geteuid())
		return;
	kill_writer();
	assert_int_equal(n_beside(name), 1);
	assert_int_equal(chown(name, 65534, 65534), 0);
	stays(name);
}

/* Leaves a stack without a single 0 to whoever is called next. */
static __attribute__((noinline)) void use_stack(void)
{
	char bytes[4 * PATH_MAX];

	(void)memset(bytes, 'x', sizeof(bytes));
	assert_int_equal(*(volatile char *)(bytes + PATH_MAX), 'x');
}

static void an_empty_name_has_no_path(void **state PFS_UNUSED)
{
	struct pfs_output out;

	use_stack();
	assert_false(pfs_cmd_is_beside_store(""));
	assert_int_equal(pfs_output_open(&out, "test", ""), PFS_EXIT_FAILURE);
}

static int enter_folder(void **state)
{
	return make_folder(state) ? -1 : chdir(test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_on_the_disk_first),
		cmocka_unit_test(a_failure_leaves_what_was_there),
		cmocka_unit_test(takes_nobody_elses_name),
		cmocka_unit_test(removes_what_a_killed_one_left),
		cmocka_unit_test(removes_nothing_else),
		cmocka_unit_test(an_empty_name_has_no_path),
	};

	return cmocka_run_group_tests(tests, enter_folder, remove_folder);
}
