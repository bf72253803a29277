/* SPDX-License-Identifier: MIT */
/* Harness of the probes, see probe.h. */
#include "tests/mount/probe.h"

#include <dirent.h>
#include <ftw.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

enum { EXIT_SKIPPED = 77, CASE_SECONDS = 60, LONG_CASE_SECONDS = 600 };

static const char *case_name;
static int top = -1; /* where fail and skip leave their sentence: the case's folder may be gone */

void probe_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)printf("NOT OK  %s: %s:%d: ", case_name, file, line);
	(void)vprintf(format, args);
	(void)putchar('\n');
	va_end(args);
	(void)fflush(stdout);
	_exit(1);
}

void probe_skip(const char *why)
{
	(void)printf("skip    %s: %s\n", case_name, why);
	(void)fflush(stdout);
	_exit(EXIT_SKIPPED);
}

long probe_ok(const char *file, int line, const char *call, long value)
{
	if (value == -1)
		probe_fail(file, line, "%s: %s", call, strerror(errno));
	return value;
}

void probe_fails(const char *file, int line, const char *call, long value, int wanted)
{
	if (value != -1)
		probe_fail(file, line, "%s succeeded, wanted '%s'", call, strerror(wanted));
	if (errno != wanted)
		probe_fail(file, line, "%s: '%s', wanted '%s'", call, strerror(errno),
			   strerror(wanted));
}

void probe_same(const char *file, int line, const char *a_text, const char *b_text, long long a,
		long long b)
{
	if (a != b)
		probe_fail(file, line, "%s is %lld (0%llo), %s is %lld (0%llo)", a_text, a,
			   (unsigned long long)a, b_text, b, (unsigned long long)b);
}

void probe_holds(const char *file, int line, const char *path, const void *data, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *found = malloc(size + 1);
	size_t n = 0, at;
	ssize_t got = 0;

	if (fd < 0 || !found)
		probe_fail(file, line, "open %s: %s", path, strerror(errno));
	while (n < size + 1 && (got = read(fd, found + n, size + 1 - n)) > 0)
		n += (size_t)got;
	if (got < 0)
		probe_fail(file, line, "read %s: %s", path, strerror(errno));
	for (at = 0; at < n && at < size && found[at] == ((const char *)data)[at]; at++)
		;
	if (n != size)
		probe_fail(file, line, "%s has %s%zu bytes, wanted %zu, the same up to %zu", path,
			   n > size ? "more than " : "", n > size ? size : n, size, at);
	if (at != size)
		probe_fail(file, line, "%s differs at byte %zu", path, at);
	free(found);
	(void)close(fd);
}

void probe_write(const char *path, const void *data, size_t size)
{
	int fd = (int)OK(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
	size_t n = 0;

	while (n < size)
		n += (size_t)OK(write(fd, (const char *)data + n, size - n));
	(void)OK(close(fd));
}

struct stat probe_stat(const char *path)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		probe_fail(__FILE__, __LINE__, "lstat %s: %s", path, strerror(errno));
	return st;
}

bool probe_exists(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0)
		return true;
	if (errno != ENOENT)
		probe_fail(__FILE__, __LINE__, "lstat %s: %s", path, strerror(errno));
	return false;
}

static bool is_one(const char *variable)
{
	const char *value = getenv(variable);

	return value && strcmp(value, "1") == 0;
}

bool probe_mounted(void)
{
	return is_one("PFS_MOUNT");
}

bool probe_long(void)
{
	return is_one("PFS_LONG");
}

void probe_needs_root(void)
{
	if (geteuid() != 0)
		probe_skip("needs root");
}

void probe_become(uid_t uid, gid_t gid)
{
	probe_needs_root();
	(void)OK(setgroups(0, NULL));
	(void)OK(setresgid(gid, gid, gid));
	(void)OK(setresuid(uid, uid, uid));
}

static int wait_for(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

void probe_as(uid_t uid, gid_t gid, void (*fn)(void *arg), void *arg)
{
	pid_t child;
	int status;

	probe_needs_root();
	(void)fflush(stdout);
	child = (pid_t)OK(fork());
	if (child == 0) {
		probe_become(uid, gid);
		fn(arg);
		(void)fflush(stdout);
		_exit(0);
	}
	status = wait_for(child);
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		_exit(WEXITSTATUS(status));
	if (!WIFEXITED(status))
		probe_fail(__FILE__, __LINE__, "child ended with status %d", status);
}

void probe_tick(void)
{
	/* It moves with the timer interrupt, which may be late on a busy host.  What was stamped
	 * until now can have a time in between, if it has been looked at. */
	const struct timespec pause = {.tv_nsec = 2000000};
	struct timespec start, now;

	(void)OK(clock_gettime(CLOCK_REALTIME, &start));
	do {
		(void)nanosleep(&pause, NULL);
		(void)OK(clock_gettime(CLOCK_REALTIME_COARSE, &now));
	} while (!probe_later(now, start));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)at;
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

static int open_up(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)at;
	if (type == FTW_D || type == FTW_DNR)
		(void)chmod(path, 0777);
	return 0;
}

/* Runs one case in a child; returns its exit status, or -1 when it was killed. */
static int run_case(const struct probe *probe)
{
	pid_t child;
	int status;

	if (fchdir(top) != 0 || mkdir(probe->name, 0777) != 0) {
		(void)printf("NOT OK  %s: mkdir: %s\n", probe->name, strerror(errno));
		return 1;
	}
	(void)fflush(stdout);
	child = fork();
	if (child == 0) {
		(void)alarm(probe_long() ? LONG_CASE_SECONDS : CASE_SECONDS);
		case_name = probe->name;
		if (chdir(probe->name) != 0)
			_exit(1);
		probe->run();
		(void)fflush(stdout);
		_exit(0);
	}
	status = child < 0 ? -1 : wait_for(child);
	if (!WIFEXITED(status))
		(void)printf("NOT OK  %s: killed by signal %d%s\n", probe->name, WTERMSIG(status),
			     WTERMSIG(status) == SIGALRM ? " (took too long)" : "");
	else if (WEXITSTATUS(status) == 0)
		(void)printf("ok      %s\n", probe->name);
	(void)nftw(probe->name, open_up, 20, FTW_PHYS);
	if (nftw(probe->name, remove_one, 20, FTW_PHYS | FTW_DEPTH) != 0)
		(void)printf("        %s: cannot clean up: %s\n", probe->name, strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_named(const char *name, char **names, int count)
{
	int i;

	for (i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* name stands in a list with commas. */
static bool is_listed(const char *name, const char *list)
{
	size_t len = strlen(name);
	const char *at;

	for (at = list; at && (at = strstr(at, name)); at += len)
		if ((at == list || at[-1] == ',') && (at[len] == ',' || !at[len]))
			return true;
	return false;
}

int probe_main(int argc, char **argv, const struct probe *probes, size_t count)
{
	static const char except_option[] = "--except=";
	const char *except = NULL;
	unsigned passed = 0, failed = 0, skipped = 0;
	size_t i;

	if (argc > 1 && strncmp(argv[1], except_option, sizeof(except_option) - 1) == 0) {
		except = argv[1] + sizeof(except_option) - 1;
		argv++;
		argc--;
	}
	if (argc < 2 || (top = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		(void)fprintf(stderr, "usage: %s [--except=CASE,...] FOLDER [CASE]...\n", argv[0]);
		return 2;
	}
	(void)umask(0);
	for (i = 0; i < count; i++) {
		if (argc > 2 && !is_named(probes[i].name, argv + 2, argc - 2))
			continue;
		if (is_listed(probes[i].name, except)) {
			(void)printf("skip    %s: excepted\n", probes[i].name);
			skipped++;
			continue;
		}
		switch (run_case(&probes[i])) {
		case 0:
			passed++;
			break;
		case EXIT_SKIPPED:
			skipped++;
			break;
		default:
			failed++;
		}
	}
	(void)printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
	return failed > 0;
}
