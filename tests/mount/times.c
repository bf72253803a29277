/* SPDX-License-Identifier: MIT */
/* Where atime, mtime and ctime change, and where they do not. */
#include <limits.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "tests/mount/probe.h"

enum { MTIME = 1, CTIME = 2, BOTH = MTIME | CTIME };

static struct stat before[4];
static const char *watched[4];
static unsigned n_watched;

/* Remembers the times of these paths (ended by NULL) and waits for the clock to move. */
static void watch(const char *first, const char *second, const char *third)
{
	const char *paths[] = {first, second, third};

	n_watched = 0;
	for (size_t i = 0; i < ARRAY_SIZE(paths) && paths[i]; i++) {
		watched[n_watched] = paths[i];
		before[n_watched++] = probe_stat(paths[i]);
	}
	probe_tick();
}

/* The n-th watched path, maybe under another name now, had exactly these times changed. */
#define CHANGED(n, path, what) changed(__LINE__, n, path, what)
static void changed(int line, unsigned n, const char *path, int wanted)
{
	struct stat now = probe_stat(path);
	int what = (probe_equal(now.st_mtim, before[n].st_mtim) ? 0 : MTIME) |
		   (probe_equal(now.st_ctim, before[n].st_ctim) ? 0 : CTIME);

	if (what != wanted)
		probe_fail(__FILE__, line, "%s: mtime %s, ctime %s", path,
			   what & MTIME ? "changed" : "same", what & CTIME ? "changed" : "same");
	if ((what & MTIME) && !probe_later(now.st_mtim, before[n].st_mtim))
		probe_fail(__FILE__, line, "%s: mtime went back", path);
	if ((what & CTIME) && !probe_later(now.st_ctim, before[n].st_ctim))
		probe_fail(__FILE__, line, "%s: ctime went back", path);
}

static void making_names(void)
{
	(void)OK(mkdir("d", 0755));
	watch("d", ".", NULL);
	probe_text("d/f", "");
	CHANGED(0, "d", BOTH);
	CHANGED(1, ".", 0);
	watch("d", "d/f", NULL);
	(void)OK(mkdir("d/e", 0755));
	CHANGED(0, "d", BOTH);
	CHANGED(1, "d/f", 0);
	watch("d", NULL, NULL);
	(void)OK(symlink("x", "d/l"));
	CHANGED(0, "d", BOTH);
	watch("d", NULL, NULL);
	(void)OK(mkfifo("d/p", 0644));
	CHANGED(0, "d", BOTH);
	SAME(probe_equal(probe_stat("d/p").st_ctim, probe_stat("d/p").st_mtim), true);
}

static void removing_names(void)
{
	struct stat st;
	int fd, dir;

	(void)OK(mkdir("d", 0755));
	(void)OK(mkdir("d/e", 0755));
	probe_text("d/f", "");
	fd = (int)OK(open("d/f", O_RDONLY));
	dir = (int)OK(open("d/e", O_RDONLY));
	watch("d", "d/f", ".");
	(void)OK(unlink("d/f"));
	CHANGED(0, "d", BOTH);
	CHANGED(2, ".", 0);
	(void)OK(fstat(fd, &st));
	TRUE(probe_later(st.st_ctim, before[1].st_ctim));
	TRUE(probe_equal(st.st_mtim, before[1].st_mtim));
	watch("d", "d/e", NULL);
	(void)OK(rmdir("d/e"));
	CHANGED(0, "d", BOTH);
	(void)OK(fstat(dir, &st));
	TRUE(probe_later(st.st_ctim, before[1].st_ctim));
}

static void renaming(void)
{
	(void)OK(mkdir("a", 0755));
	(void)OK(mkdir("b", 0755));
	probe_text("a/f", "x");
	watch("a", "b", "a/f");
	(void)OK(rename("a/f", "b/g"));
	CHANGED(0, "a", BOTH);
	CHANGED(1, "b", BOTH);
	CHANGED(2, "b/g", CTIME);
	(void)OK(mkdir("a/d", 0755));
	watch("a", "b", "a/d");
	(void)OK(rename("a/d", "b/d"));
	CHANGED(0, "a", BOTH);
	CHANGED(1, "b", BOTH);
	watch("a", "b", "b/g");
	(void)OK(rename("b/g", "b/h"));
	CHANGED(0, "a", 0);
	CHANGED(1, "b", BOTH);
	CHANGED(2, "b/h", CTIME);
	watch("b", "b/h", NULL);
	(void)OK(rename("b/h", "b/h"));
	CHANGED(0, "b", 0);
	CHANGED(1, "b/h", 0);
	(void)OK(mkdir("b/i", 0755));
	watch("b", "b/h", "b/i");
	(void)OK((int)syscall(SYS_renameat2, AT_FDCWD, "b/h", AT_FDCWD, "b/i", RENAME_EXCHANGE));
	CHANGED(0, "b", BOTH);
	CHANGED(1, "b/i", CTIME);
	CHANGED(2, "b/h", CTIME);
}

/* The node that a rename replaces gets a new ctime if something still holds it. */
static void being_replaced(void)
{
	struct stat st;
	int fd;

	probe_text("a", "a");
	probe_text("b", "b");
	fd = (int)OK(open("b", O_RDONLY));
	watch("b", NULL, NULL);
	(void)OK(rename("a", "b"));
	(void)OK(fstat(fd, &st));
	SAME(st.st_nlink, 0);
	TRUE(probe_later(st.st_ctim, before[0].st_ctim));
	TRUE(probe_equal(st.st_mtim, before[0].st_mtim));
}

static void writing(void)
{
	int fd;

	probe_text("f", "content");
	fd = (int)OK(open("f", O_RDWR));
	watch("f", ".", NULL);
	SAME(write(fd, "x", 1), 1);
	CHANGED(0, "f", BOTH);
	CHANGED(1, ".", 0);
	watch("f", NULL, NULL);
	SAME(write(fd, "x", 0), 0);
	CHANGED(0, "f", 0);
	watch("f", NULL, NULL);
	(void)OK(ftruncate(fd, 3));
	CHANGED(0, "f", BOTH);
	watch("f", NULL, NULL);
	(void)OK(ftruncate(fd, 3)); /* the same size: still a truncation */
	CHANGED(0, "f", BOTH);
	watch("f", NULL, NULL);
	(void)OK(truncate("f", 100));
	CHANGED(0, "f", BOTH);
	watch("f", NULL, NULL);
	(void)OK(close((int)OK(open("f", O_WRONLY | O_TRUNC))));
	CHANGED(0, "f", BOTH);
	watch("f", NULL, NULL);
	(void)OK(close((int)OK(open("f", O_WRONLY | O_TRUNC)))); /* empty already */
	CHANGED(0, "f", BOTH);
	watch("f", NULL, NULL);
	(void)OK(close((int)OK(open("f", O_RDWR))));
	CHANGED(0, "f", 0);
	watch("f", NULL, NULL);
	(void)OK(fallocate(fd, 0, 0, 5000));
	CHANGED(0, "f", BOTH);
	watch("f", NULL, NULL);
	(void)OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
	CHANGED(0, "f", BOTH);
	(void)OK(close(fd));
}

static void changing_attributes(void)
{
	probe_text("f", "content");
	(void)OK(symlink("f", "l"));
	watch("f", ".", NULL);
	(void)OK(chmod("f", 0600));
	CHANGED(0, "f", CTIME);
	CHANGED(1, ".", 0);
	watch("f", NULL, NULL);
	(void)OK(chmod("f", 0600));
	CHANGED(0, "f", CTIME);
	watch("f", NULL, NULL);
	(void)OK(chown("f", (uid_t)-1, getegid()));
	CHANGED(0, "f", CTIME);
	watch("l", "f", NULL);
	(void)OK(lchown("l", geteuid(), getegid()));
	CHANGED(0, "l", CTIME);
	CHANGED(1, "f", 0);
}

static void changing_xattrs(void)
{
	probe_text("f", "content");
	if (setxattr("f", "user.a", "1", 1, 0) != 0 && errno == EOPNOTSUPP)
		probe_skip("no user xattrs here");
	watch("f", ".", NULL);
	(void)OK(setxattr("f", "user.a", "2", 1, 0));
	CHANGED(0, "f", CTIME);
	CHANGED(1, ".", 0);
	watch("f", NULL, NULL);
	(void)OK(removexattr("f", "user.a"));
	CHANGED(0, "f", CTIME);
	watch("f", NULL, NULL);
	FAILS(removexattr("f", "user.a"), ENODATA);
	CHANGED(0, "f", 0);
}

static void failing_changes_nothing(void)
{
	(void)OK(mkdir("d", 0755));
	(void)OK(mkdir("d/e", 0755));
	probe_text("d/e/f", "x");
	probe_text("d/f", "x");
	watch("d", "d/e", "d/f");
	FAILS(mkdir("d/e", 0755), EEXIST);
	FAILS(open("d/f", O_CREAT | O_EXCL | O_RDWR, 0644), EEXIST);
	FAILS(symlink("x", "d/f"), EEXIST);
	FAILS(rmdir("d/e"), ENOTEMPTY);
	FAILS(rmdir("d/f"), ENOTDIR);
	FAILS(unlink("d/e"), EISDIR);
	FAILS(unlink("d/none"), ENOENT);
	FAILS(rename("d/e", "d/f"), ENOTDIR);
	FAILS(rename("d/f", "d/e"), EISDIR);
	FAILS(rename("d", "d/e/x"), EINVAL);
	FAILS((int)syscall(SYS_renameat2, AT_FDCWD, "d/f", AT_FDCWD, "d/e", RENAME_NOREPLACE),
	      EEXIST);
	FAILS(truncate("d/f", -1), EINVAL);
	FAILS(truncate("d/e", 0), EISDIR);
	CHANGED(0, "d", 0);
	CHANGED(1, "d/e", 0);
	CHANGED(2, "d/f", 0);
}

/* Calls that the file system, not the kernel's permission check, sees fail. */
static void failing_as_another_user(void *arg)
{
	(void)arg;
	FAILS(chmod("d/f", 0777), EPERM);
	FAILS(chown("d/f", 4321, 4321), EPERM);
	FAILS(unlink("d/f"), EACCES);
	FAILS(open("d/f", O_WRONLY | O_TRUNC), EACCES);
	FAILS(utimensat(AT_FDCWD, "d/f", NULL, 0), EACCES);
	FAILS(truncate("d/f", 0), EACCES);
}

static void refused_changes_nothing(void)
{
	probe_needs_root();
	(void)OK(mkdir("d", 0755));
	probe_text("d/f", "x");
	watch("d", "d/f", NULL);
	probe_as(4321, 4321, failing_as_another_user, NULL);
	CHANGED(0, "d", 0);
	CHANGED(1, "d/f", 0);
}

static void sets_times(void)
{
	struct timespec times[2] = {{.tv_sec = 1000000001, .tv_nsec = 123456789},
				    {.tv_sec = 1000000002, .tv_nsec = 987654321}};
	struct stat st;

	probe_text("f", "x");
	watch("f", NULL, NULL);
	(void)OK(utimensat(AT_FDCWD, "f", times, 0));
	st = probe_stat("f");
	TRUE(probe_equal(st.st_atim, times[0]));
	TRUE(probe_equal(st.st_mtim, times[1]));
	TRUE(probe_later(st.st_ctim, before[0].st_ctim));

	times[0].tv_nsec = UTIME_OMIT;
	times[1] = (struct timespec){.tv_sec = 7};
	(void)OK(utimensat(AT_FDCWD, "f", times, 0));
	st = probe_stat("f");
	SAME(st.st_atim.tv_sec, 1000000001);
	SAME(st.st_atim.tv_nsec, 123456789);
	SAME(st.st_mtim.tv_sec, 7);

	times[0] = (struct timespec){.tv_nsec = UTIME_NOW};
	times[1] = (struct timespec){.tv_nsec = UTIME_OMIT};
	(void)OK(utimensat(AT_FDCWD, "f", times, 0));
	st = probe_stat("f");
	TRUE(st.st_atim.tv_sec > 1600000000);
	SAME(st.st_mtim.tv_sec, 7);

	watch("f", NULL, NULL);
	times[0].tv_nsec = UTIME_OMIT;
	(void)OK(utimensat(AT_FDCWD, "f", times, 0)); /* nothing to do: not even ctime */
	CHANGED(0, "f", 0);
	watch("f", NULL, NULL);
	(void)OK(utimensat(AT_FDCWD, "f", NULL, 0));
	CHANGED(0, "f", BOTH);
	times[0] = times[1] = (struct timespec){.tv_nsec = 1000000000};
	FAILS(utimensat(AT_FDCWD, "f", times, 0), EINVAL);
}

static void sets_times_of_links_and_directories(void)
{
	const struct timespec times[2] = {{.tv_sec = 5, .tv_nsec = 6}, {.tv_sec = 7, .tv_nsec = 8}};
	struct stat st;

	probe_text("f", "x");
	(void)OK(symlink("f", "l"));
	(void)OK(mkdir("d", 0755));
	(void)OK(mkfifo("p", 0644));
	(void)OK(utimensat(AT_FDCWD, "l", times, AT_SYMLINK_NOFOLLOW));
	TRUE(probe_stat("f").st_mtim.tv_sec > 1600000000);
	(void)OK(utimensat(AT_FDCWD, "d", times, 0));
	(void)OK(utimensat(AT_FDCWD, "p", times, 0));
	st = probe_stat("l");
	TRUE(probe_equal(st.st_atim, times[0]) && probe_equal(st.st_mtim, times[1]));
	st = probe_stat("d");
	TRUE(probe_equal(st.st_atim, times[0]) && probe_equal(st.st_mtim, times[1]));
	st = probe_stat("p");
	TRUE(probe_equal(st.st_atim, times[0]) && probe_equal(st.st_mtim, times[1]));
}

/* Signed 64-bit seconds; what the kernel's own file systems clamp is not asked of them. */
static void sets_early_and_late_times(void)
{
	static const int64_t seconds[] = {
		-1, -1000000000, -2147483647LL, 0, 2147483648LL, 4294967296LL, 15000000000LL,
	};
	struct timespec times[2];
	struct stat st;

	probe_text("f", "x");
	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
		times[0] = (struct timespec){.tv_sec = seconds[i], .tv_nsec = 999999999};
		times[1] = (struct timespec){.tv_sec = seconds[i], .tv_nsec = 1};
		(void)OK(utimensat(AT_FDCWD, "f", times, 0));
		st = probe_stat("f");
		SAME(st.st_atim.tv_sec, seconds[i]);
		SAME(st.st_atim.tv_nsec, 999999999);
		SAME(st.st_mtim.tv_sec, seconds[i]);
		SAME(st.st_mtim.tv_nsec, 1);
	}
}

static void relatime(void)
{
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}};
	struct stat st;
	char byte;
	int fd;

	probe_text("f", "x");
	(void)OK(utimensat(AT_FDCWD, "f", old, 0));
	probe_tick();
	fd = (int)OK(open("f", O_RDONLY | O_DIRECT));
	if (read(fd, &byte, 1) < 0) /* O_DIRECT here wants alignment */
		probe_skip("O_DIRECT wants alignment");
	(void)OK(close(fd));
	st = probe_stat("f");
	TRUE(st.st_atim.tv_sec > 1600000000); /* was older than mtime */
	SAME(st.st_mtim.tv_sec, 2000);
	watch("f", NULL, NULL);
	fd = (int)OK(open("f", O_RDONLY | O_DIRECT));
	SAME(read(fd, &byte, 1), 1);
	(void)OK(close(fd));
	TRUE(probe_equal(probe_stat("f").st_atim,
			 before[0].st_atim)); /* newer than both, and of today */
}

static void reading_unnoticed(void)
{
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}};
	char byte;
	int fd;

	probe_text("f", "x");
	(void)OK(utimensat(AT_FDCWD, "f", old, 0));
	fd = (int)OK(open("f", O_RDONLY | O_NOATIME));
	(void)OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	SAME(read(fd, &byte, 1), 1);
	(void)OK(close(fd));
	SAME(probe_stat("f").st_atim.tv_sec, 1000);
}

/* A new node's times are one moment, which is also when its directory changed. */
static void has_one_moment(const char *path, struct stat dir_before)
{
	struct stat st = probe_stat(path);

	TRUE(probe_equal(st.st_atim, st.st_mtim));
	TRUE(probe_equal(st.st_mtim, st.st_ctim));
	TRUE(probe_later(st.st_mtim, dir_before.st_mtim));
	TRUE(!probe_later(st.st_mtim, probe_stat("d").st_mtim));
	probe_tick();
}

static void new_nodes_have_one_moment(void)
{
	struct stat dir;

	(void)OK(mkdir("d", 0755));
	dir = probe_stat("d");
	probe_tick();
	probe_text("d/f", "");
	has_one_moment("d/f", dir);
	dir = probe_stat("d");
	(void)OK(mkdir("d/d", 0755));
	has_one_moment("d/d", dir);
	dir = probe_stat("d");
	(void)OK(symlink("x", "d/l"));
	has_one_moment("d/l", dir);
	dir = probe_stat("d");
	(void)OK(mkfifo("d/p", 0644));
	has_one_moment("d/p", dir);
}

static void opening_changes_nothing(void)
{
	(void)OK(mkdir("d", 0755));
	probe_text("d/f", "content");
	watch("d", "d/f", NULL);
	(void)OK(close((int)OK(open("d/f", O_RDWR | O_CREAT, 0600))));
	(void)OK(close((int)OK(open("d/f", O_WRONLY | O_APPEND))));
	HOLDS("d/f", "content", 7);
	(void)OK(access("d/f", W_OK));
	FAILS(open("d/f", O_RDONLY | O_DIRECTORY), ENOTDIR);
	CHANGED(0, "d", 0);
	CHANGED(1, "d/f", 0);
}

static void copying_ranges(void)
{
	int in, out;

	probe_text("in", "content");
	probe_text("out", "");
	in = (int)OK(open("in", O_RDONLY));
	out = (int)OK(open("out", O_WRONLY));
	watch("in", "out", ".");
	if (copy_file_range(in, NULL, out, NULL, 7, 0) < 0 &&
	    (errno == EOPNOTSUPP || errno == EXDEV))
		probe_skip("copy_file_range is refused");
	CHANGED(0, "in", 0);
	CHANGED(1, "out", BOTH);
	CHANGED(2, ".", 0);
}

/* A directory that moves changes its own ctime, not its mtime, and nothing below it. */
static void moving_directories(void)
{
	(void)OK(mkdir("a", 0755));
	(void)OK(mkdir("b", 0755));
	(void)OK(mkdir("a/d", 0755));
	probe_text("a/d/f", "x");
	watch("a/d", "a/d/f", NULL);
	(void)OK(rename("a/d", "b/e"));
	CHANGED(0, "b/e", CTIME);
	CHANGED(1, "b/e/f", 0);
}

static const struct timespec given_times[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}};

static void set_as_writer(void *arg)
{
	const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
	const struct timespec one[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
	const struct timespec none[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};

	(void)arg;
	(void)OK(utimensat(AT_FDCWD, "open", now, 0));
	(void)OK(utimensat(AT_FDCWD, "open", NULL, 0));
	FAILS(utimensat(AT_FDCWD, "open", given_times, 0), EPERM);
	FAILS(utimensat(AT_FDCWD, "open", one, 0), EPERM);
	FAILS(utimensat(AT_FDCWD, "closed", now, 0), EACCES);
	FAILS(utimensat(AT_FDCWD, "closed", given_times, 0), EPERM);
	(void)OK(utimensat(AT_FDCWD, "closed", none, 0));
}

static void set_as_owner(void *arg)
{
	(void)arg;
	(void)OK(utimensat(AT_FDCWD, "closed", given_times, 0));
	(void)OK(utimensat(AT_FDCWD, "closed", NULL, 0));
}

/* Who may write may say "now"; only the owner names a time. */
static void who_may_set_times(void)
{
	probe_needs_root();
	probe_text("open", "x");
	(void)OK(chmod("open", 0666));
	probe_text("closed", "x");
	(void)OK(chown("closed", 4321, 4321));
	(void)OK(chmod("closed", 0444));
	watch("closed", NULL, NULL);
	probe_as(4322, 4322, set_as_writer, NULL);
	CHANGED(0, "closed", 0);
	probe_as(4321, 4321, set_as_owner, NULL);
}

/* All that 64 bits can say, with nanoseconds, more than 292 years away from 1970 too.  (The kernel
 * takes the nanoseconds off the very first and last second.) */
static void sets_every_time(void)
{
	static const int64_t seconds[] = {
		INT64_MIN + 1, INT64_MIN / 1000000000 - 1, -62135596800, -9223372037, -4294967297,
		9223372037,    1LL << 34,		   1LL << 40,	INT64_MAX / 1000000000 + 1,
		INT64_MAX - 1,
	};
	struct timespec times[2];
	struct stat st;

	probe_text("f", "x");
	(void)OK(mkdir("d", 0755));
	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
		const char *path = i % 2 ? "f" : "d";

		times[0] = (struct timespec){.tv_sec = seconds[i], .tv_nsec = 999999999};
		times[1] = (struct timespec){.tv_sec = seconds[ARRAY_SIZE(seconds) - 1 - i],
					     .tv_nsec = 1};
		(void)OK(utimensat(AT_FDCWD, path, times, 0));
		st = probe_stat(path);
		if (st.st_atim.tv_sec != times[0].tv_sec && !probe_mounted())
			probe_skip("clamped here");
		SAME(st.st_atim.tv_sec, times[0].tv_sec);
		SAME(st.st_atim.tv_nsec, times[0].tv_nsec);
		SAME(st.st_mtim.tv_sec, times[1].tv_sec);
		SAME(st.st_mtim.tv_nsec, times[1].tv_nsec);
	}
}

static const struct probe probes[] = {
	PROBE(making_names),
	PROBE(removing_names),
	PROBE(renaming),
	PROBE(being_replaced),
	PROBE(writing),
	PROBE(changing_attributes),
	PROBE(changing_xattrs),
	PROBE(failing_changes_nothing),
	PROBE(refused_changes_nothing),
	PROBE(sets_times),
	PROBE(sets_times_of_links_and_directories),
	PROBE(sets_early_and_late_times),
	PROBE(relatime),
	PROBE(reading_unnoticed),
	PROBE(new_nodes_have_one_moment),
	PROBE(opening_changes_nothing),
	PROBE(copying_ranges),
	PROBE(moving_directories),
	PROBE(who_may_set_times),
	PROBE(sets_every_time),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
