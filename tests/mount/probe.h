/* SPDX-License-Identifier: MIT */
/* tests/mount/probe.h - harness of the probes: programs that make system calls in a folder and
 * say what differs from what POSIX and Linux promise.
 *
 *	static void truncates(void) { int fd = OK(open("f", O_RDWR | O_CREAT, 0644)); ... }
 *	static const struct probe probes[] = { PROBE(truncates), ... };
 *	int main(int argc, char **argv) { return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
 *}
 *
 * Usage: PROGRAM [--except=NAME,...] FOLDER [NAME]...  Each case runs in a process of its own whose
 *current folder is a fresh one, with umask 0; the first assertion that fails ends it.  The same
 *cases must pass on a filesystem of the kernel's own (ext4, tmpfs): tests/mount/reference.sh sees
 *to that. */
#ifndef PFS_TESTS_MOUNT_PROBE_H
#define PFS_TESTS_MOUNT_PROBE_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

struct probe {
	const char *name;
	void (*run)(void);
};
#define PROBE(function) {#function, function}

int probe_main(int argc, char **argv, const struct probe *probes, size_t count);

/* Ends the case. */
_Noreturn void probe_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
_Noreturn void probe_skip(const char *why);

/* The call's value, which must not be -1. */
#define OK(call) probe_ok(__FILE__, __LINE__, #call, (errno = 0, (long)(call)))
long probe_ok(const char *file, int line, const char *call, long value);

/* The call must return -1 with this errno. */
#define FAILS(call, wanted) probe_fails(__FILE__, __LINE__, #call, (errno = 0, (long)(call)), wanted)
void probe_fails(const char *file, int line, const char *call, long value, int wanted);

/* Two integers are equal. */
#define SAME(a, b) probe_same(__FILE__, __LINE__, #a, #b, (long long)(a), (long long)(b))
void probe_same(const char *file, int line, const char *a_text, const char *b_text, long long a,
		long long b);

#define TRUE(expression)                                                     \
	do {                                                                 \
		if (!(expression))                                           \
			probe_fail(__FILE__, __LINE__, "%s", "not " #expression); \
	} while (0)

/* The file holds exactly these bytes. */
#define HOLDS(path, data, size) probe_holds(__FILE__, __LINE__, path, data, size)
void probe_holds(const char *file, int line, const char *path, const void *data, size_t size);

/* Makes a regular file with this content (mode 0644). */
void probe_write(const char *path, const void *data, size_t size);
static inline void probe_text(const char *path, const char *text)
{
	probe_write(path, text, strlen(text));
}

struct stat probe_stat(const char *path); /* lstat */
bool probe_exists(const char *path);

/* PFS_MOUNT=1 says that this is primefs: what it does differently by design is asked only there. */
bool probe_mounted(void);

/* PFS_LONG=1 asks for what takes minutes. */
bool probe_long(void);

/* Becomes this user and group, without other groups or capabilities, for the rest of the case. */
void probe_become(uid_t uid, gid_t gid);
void probe_needs_root(void);

/* Runs fn as this user in a child and waits; the child's failure is the case's. */
void probe_as(uid_t uid, gid_t gid, void (*fn)(void *arg), void *arg);

/* Returns when the clock that the kernel stamps files with has moved on. */
void probe_tick(void);

/* a is later than b. */
static inline bool probe_later(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}
static inline bool probe_equal(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

#endif
