/* SPDX-License-Identifier: MIT */
/* An output file takes its name once its content is on the disk, and takes none from others. */
#include "tests/unit/store_util.h"
#include "tools/cmd.h"
#include "tools/output.h"

static char calls[32]; /* a letter for each call of the following */
static int sync_error; /* with which fsync fails */
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
		cmocka_unit_test(an_empty_name_has_no_path),
	};

	return cmocka_run_group_tests(tests, enter_folder, remove_folder);
}
