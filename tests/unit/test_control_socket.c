/* SPDX-License-Identifier: MIT */
/* The control socket as a file: who may ask, whose place it takes, and paths longer than an
 * address. */
#include "control_util.h"

/* In a child of its own, as `user`. */
static int ask_as(uid_t user)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		struct answer answer = ANSWER;
		int verb_status = -1, error;

		if (setuid(user) != 0)
			_exit(100);
		error = ask(&answer, &verb_status, "echo", NULL);
		_exit(error ? -error : 200 + verb_status);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WEXITSTATUS(status);
}

static void test_who_may(void **state)
{
	struct stat attr;
	int lock;

	(void)state;
	assert_int_equal(stat(d.socket, &attr), 0);
	assert_true(S_ISSOCK(attr.st_mode));
	assert_int_equal(attr.st_mode & 07777, 0600);
	if (geteuid() != 0) {
		print_message("not root: other users' part skipped\n");
		return;
	}
	assert_int_equal(chmod(d.folder, 0755), 0);
	assert_int_equal(chmod(d.store, 0644), 0);
	assert_int_equal(ask_as(0), 201);
	assert_int_equal(ask_as(65534), ENOENT); /* nobody has the store: no daemon's socket */
	lock = open(d.store, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	assert_int_equal(ask_as(65534), EACCES);
	assert_int_equal(chmod(d.socket, 0666), 0); /* then the daemon itself refuses */
	assert_int_equal(ask_as(65534), 203);
	/* A user's socket beside somebody else's store is not believed. */
	pfs_control_close(d.control);
	assert_int_equal(chmod(d.folder, 0777), 0);
	assert_int_equal(seteuid(65534), 0);
	open_with(0);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(ask_as(0), EACCES);
	(void)close(lock);
	assert_int_equal(ask_as(0), ENOENT);
	assert_int_equal(chown(d.store, 65534, 65534), 0);
	assert_int_equal(ask_as(0), 201);
}

static void test_the_file(void **state)
{
	struct pfs_control *other;
	struct answer answer = ANSWER;
	int status, fd;

	(void)state;
	/* Another reader listens: leave him his socket. */
	assert_int_equal(try_open(&other, false, 0), -EADDRINUSE);
	assert_null(other);
	assert_int_equal(ask(&answer, &status, "echo", NULL), 0);
	free(answer.bytes);
	/* Whose place was taken leaves the other's alone. */
	assert_int_equal(try_open(&other, true, 0), 0);
	pfs_control_close(d.control);
	d.control = other;
	answer = (struct answer)ANSWER;
	assert_int_equal(ask(&answer, &status, "echo", NULL), 0);
	free(answer.bytes);
	pfs_control_close(d.control);
	assert_int_equal(ask(&answer, &status, "echo", NULL), -ENOENT);
	/* What a dead daemon left: nobody listens, and it is replaced. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	for (int alone = 0; alone < 2; alone++) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};

		(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", d.socket);
		(void)close(fd);
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
		assert_int_equal(ask(&answer, &status, "echo", NULL), -ENOENT);
		assert_int_equal(try_open(&d.control, alone, 0), 0);
		answer = (struct answer)ANSWER;
		assert_int_equal(ask(&answer, &status, "echo", NULL), 0);
		free(answer.bytes);
		if (!alone)
			pfs_control_close(d.control);
	}
	(void)close(fd);
}

/* Addresses of sockets have 107 bytes, paths of stores 4,095. */
static void test_long_path(void **state)
{
	char name[NAME_MAX + 1], wide[2 * NAME_MAX];
	const char *const words[] = {"echo"};
	struct pfs_control *control;
	struct pfs_control_options options = {.store = wide, .verbs = verbs, .alone = true};
	int fd;

	(void)state;
	for (size_t len = 245; len <= 255; len += 5) {
		struct answer answer = ANSWER;
		int status = -1;

		memset(name, 'n', len);
		name[len] = '\0';
		(void)snprintf(wide, sizeof(wide), "%s/%s", d.folder, name);
		fd = open(wide, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		(void)close(fd);
		if (len <= 250) {
			assert_int_equal(pfs_control_open(&control, &options), 0);
			assert_int_equal(pfs_control_ask(&status, &answer.reply, wide, words, 1),
					 0);
			assert_string_equal(answer.bytes, "[echo]");
			pfs_control_close(control);
			free(answer.bytes);
		} else {
			options.alone = false;
			assert_int_equal(pfs_control_open(&control, &options), -ENAMETOOLONG);
			options.alone = true;
			assert_int_equal(pfs_control_open(&control, &options), 0);
			assert_true(*pfs_control_name(control)); /* which a mountpoint would tell */
			assert_int_equal(pfs_control_ask(&status, &answer.reply, wide, words, 1),
					 -ENOENT);
			pfs_control_close(control);
		}
		assert_int_equal(unlink(wide), 0);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_who_may),
		TEST(test_the_file),
		TEST(test_long_path),
	};
	sigset_t all;

	(void)sigemptyset(&all);
	(void)sigaddset(&all, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &all, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
