/* SPDX-License-Identifier: MIT */
/* rename(2) with every rule. */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/mount/probe.h"

/* glibc's wrapper pretends where the kernel refuses. */
static int rename_with(const char *from, const char *to, unsigned flags)
{
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

static void moves_files(void)
{
	ino_t ino;

	probe_text("a", "content");
	ino = probe_stat("a").st_ino;
	(void)OK(mkdir("d", 0755));
	(void)OK(rename("a", "b"));
	TRUE(!probe_exists("a"));
	SAME(probe_stat("b").st_ino, ino);
	(void)OK(rename("b", "d/c"));
	TRUE(!probe_exists("b"));
	HOLDS("d/c", "content", 7);
	SAME(probe_stat("d/c").st_ino, ino);
	(void)OK(rename("d/c", "d/c"));
	HOLDS("d/c", "content", 7);
	FAILS(rename("none", "x"), ENOENT);
	FAILS(rename("d/c", "none/x"), ENOENT);
	FAILS(rename("d/c", "d/c/x"), ENOTDIR);
	FAILS(rename("d/c", ""), ENOENT);
	FAILS(rename("d/c", "x/"), ENOTDIR);
	FAILS(rename("d/c/", "x"), ENOTDIR);
	(void)OK(symlink("nowhere", "l"));
	(void)OK(rename("l", "m"));
	TRUE(S_ISLNK(probe_stat("m").st_mode));
}

static void replaces_files(void)
{
	ino_t ino;

	probe_text("a", "aa");
	probe_text("b", "b");
	ino = probe_stat("a").st_ino;
	(void)OK(rename("a", "b"));
	TRUE(!probe_exists("a"));
	HOLDS("b", "aa", 2);
	SAME(probe_stat("b").st_ino, ino);
	(void)OK(symlink("x", "l"));
	(void)OK(rename("b", "l"));
	HOLDS("l", "aa", 2);
	(void)OK(mkfifo("p", 0600));
	(void)OK(rename("l", "p"));
	HOLDS("p", "aa", 2);
	(void)OK(mkdir("d", 0755));
	FAILS(rename("p", "d"), EISDIR);
	FAILS(rename("d", "p"), ENOTDIR);
	HOLDS("p", "aa", 2);
}

static void moves_directories(void)
{
	nlink_t links = probe_stat(".").st_nlink;
	ino_t ino;

	(void)OK(mkdir("a", 0755));
	(void)OK(mkdir("a/b", 0755));
	(void)OK(mkdir("other", 0755));
	probe_text("a/b/f", "deep");
	ino = probe_stat("a/b").st_ino;
	(void)OK(rename("a/b", "other/c"));
	HOLDS("other/c/f", "deep", 4);
	SAME(probe_stat("other/c").st_ino, ino);
	SAME(probe_stat("a").st_nlink, 2);
	SAME(probe_stat("other").st_nlink, 3);
	SAME(probe_stat("other/c/..").st_ino, probe_stat("other").st_ino);
	(void)OK(rename("other", "a/other"));
	HOLDS("a/other/c/f", "deep", 4);
	SAME(probe_stat(".").st_nlink, links + 1);
	(void)OK(rename("a/", "z"));
	HOLDS("z/other/c/f", "deep", 4);
	FAILS(rename("z/.", "y"), EBUSY);
	FAILS(rename("z/other/..", "y"), EBUSY);
}

static void replaces_empty_directories_only(void)
{
	nlink_t links = probe_stat(".").st_nlink;
	ino_t ino;

	(void)OK(mkdir("a", 0755));
	probe_text("a/f", "x");
	(void)OK(mkdir("b", 0755));
	ino = probe_stat("a").st_ino;
	(void)OK(rename("a", "b"));
	SAME(probe_stat("b").st_ino, ino);
	HOLDS("b/f", "x", 1);
	SAME(probe_stat(".").st_nlink, links + 1);
	(void)OK(mkdir("c", 0755));
	FAILS(rename("c", "b"), ENOTEMPTY);
	TRUE(probe_exists("c"));
	HOLDS("b/f", "x", 1);
}

static void not_into_own_subtree(void)
{
	(void)OK(mkdir("a", 0755));
	(void)OK(mkdir("a/b", 0755));
	(void)OK(mkdir("a/b/c", 0755));
	FAILS(rename("a", "a/b/c/d"), EINVAL);
	FAILS(rename("a", "a/b"), EINVAL);
	FAILS(rename("a", "a/x"), EINVAL);
	FAILS(rename("a/b", "a"), ENOTEMPTY); /* an ancestor is never empty */
	FAILS(rename_with("a", "a/b/c", RENAME_EXCHANGE), EINVAL);
	FAILS(rename_with("a/b/c", "a", RENAME_EXCHANGE), EINVAL);
	(void)OK(rename("a", "ab")); /* a prefix of the name is no ancestor */
	(void)OK(mkdir("a", 0755));
	(void)OK(rename("a", "ab/a"));
}

static void noreplace(void)
{
	probe_text("a", "a");
	probe_text("b", "b");
	FAILS(rename_with("a", "b", RENAME_NOREPLACE), EEXIST);
	HOLDS("a", "a", 1);
	HOLDS("b", "b", 1);
	FAILS(rename_with("a", "a", RENAME_NOREPLACE), EEXIST);
	(void)OK(mkdir("d", 0755));
	FAILS(rename_with("a", "d", RENAME_NOREPLACE), EEXIST);
	(void)OK(rename_with("a", "c", RENAME_NOREPLACE));
	HOLDS("c", "a", 1);
	TRUE(!probe_exists("a"));
	FAILS(rename_with("b", "c", RENAME_NOREPLACE | RENAME_EXCHANGE), EINVAL);
	FAILS(rename_with("b", "c", 1u << 20), EINVAL);
}

static void exchange(void)
{
	ino_t file, directory;
	nlink_t links;

	probe_text("f", "file");
	(void)OK(mkdir("x", 0755));
	(void)OK(mkdir("x/d", 0755));
	probe_text("x/d/g", "below");
	file = probe_stat("f").st_ino;
	directory = probe_stat("x/d").st_ino;
	links = probe_stat(".").st_nlink;
	(void)OK(rename_with("f", "x/d", RENAME_EXCHANGE));
	SAME(probe_stat("f").st_ino, directory);
	SAME(probe_stat("x/d").st_ino, file);
	HOLDS("x/d", "file", 4);
	HOLDS("f/g", "below", 5);
	SAME(probe_stat(".").st_nlink, links + 1);
	SAME(probe_stat("x").st_nlink, 2);
	SAME(probe_stat("f/..").st_ino, probe_stat(".").st_ino);
	FAILS(rename_with("f", "none", RENAME_EXCHANGE), ENOENT);
	FAILS(rename_with("none", "f", RENAME_EXCHANGE), ENOENT);
	(void)OK(rename_with("f", "f", RENAME_EXCHANGE));
	SAME(probe_stat("f").st_ino, directory);
	probe_text("1", "one");
	probe_text("2", "two");
	(void)OK(rename_with("1", "2", RENAME_EXCHANGE));
	HOLDS("1", "two", 3);
	HOLDS("2", "one", 3);
	(void)OK(mkdir("p", 0755));
	(void)OK(mkdir("p/in", 0755));
	(void)OK(mkdir("q", 0755));
	(void)OK(rename_with("p", "q", RENAME_EXCHANGE));
	TRUE(probe_exists("q/in"));
	TRUE(!probe_exists("p/in"));
}

static void whiteout_is_refused_or_works(void)
{
	probe_text("a", "a");
	if (rename_with("a", "b", RENAME_WHITEOUT) == -1)
		TRUE(errno == EINVAL || errno == EPERM);
	else
		HOLDS("b", "a", 1);
}

/* A name that is replaced by rename is never absent to somebody who looks. */
static void replacement_is_atomic(void)
{
	enum { ROUNDS = 2000 };
	pid_t child;
	int i, fd;

	probe_text("target", "x");
	child = (pid_t)OK(fork());
	if (child == 0) {
		for (;;) {
			probe_text("new", "x");
			(void)OK(rename("new", "target"));
		}
	}
	for (i = 0; i < ROUNDS; i++) {
		fd = (int)OK(open("target", O_RDONLY));
		(void)OK(close(fd));
	}
	(void)OK(kill(child, SIGKILL));
	(void)OK(waitpid(child, NULL, 0));
}

/* Also from far below, and whatever lies between. */
static void not_into_own_subtree_at_any_depth(void)
{
	enum { DEPTH = 100 };
	char path[3 * DEPTH + 8] = "d0";
	size_t len = 2;

	(void)OK(mkdir(path, 0755));
	for (int i = 1; i < DEPTH; i++, len += 2) {
		(void)snprintf(path + len, sizeof(path) - len, "/d");
		(void)OK(mkdir(path, 0755));
		FAILS(rename("d0", path), EINVAL);
		FAILS(rename_with("d0", path, RENAME_EXCHANGE), EINVAL);
		FAILS(rename_with(path, "d0", RENAME_EXCHANGE), EINVAL);
		FAILS(rename_with("d0", path, RENAME_NOREPLACE), EEXIST);
		FAILS(rename(path, "d0"), ENOTEMPTY);
	}
	(void)snprintf(path + len, sizeof(path) - len, "/new");
	FAILS(rename("d0", path), EINVAL);
	(void)OK(rename("d0/d/d", "out")); /* no longer below it */
	(void)OK(rename("d0", "out/d0"));
	FAILS(rename("out", "out/d0/d/x"), EINVAL);
}

static void exchange_between_directories(void)
{
	struct stat a, b;

	(void)OK(mkdir("p", 0755));
	(void)OK(mkdir("q", 0755));
	(void)OK(mkdir("p/a", 0755));
	(void)OK(mkdir("p/a/below", 0755));
	(void)OK(mkdir("q/b", 0755));
	probe_text("q/b/f", "f");
	a = probe_stat("p/a");
	b = probe_stat("q/b");
	(void)OK(rename_with("p/a", "q/b", RENAME_EXCHANGE));
	SAME(probe_stat("q/b").st_ino, a.st_ino);
	SAME(probe_stat("p/a").st_ino, b.st_ino);
	SAME(probe_stat("p").st_nlink, 3);
	SAME(probe_stat("q").st_nlink, 3);
	SAME(probe_stat("q/b/..").st_ino, probe_stat("q").st_ino);
	SAME(probe_stat("p/a/..").st_ino, probe_stat("p").st_ino);
	HOLDS("p/a/f", "f", 1);
	TRUE(probe_exists("q/b/below"));
	(void)OK(symlink("nowhere", "p/l"));
	(void)OK(rename_with("p/l", "q/b", RENAME_EXCHANGE));
	SAME(probe_stat("p").st_nlink, 4);
	SAME(probe_stat("q").st_nlink, 2);
	TRUE(S_ISLNK(probe_stat("q/b").st_mode));
	TRUE(probe_exists("p/l/below"));
	(void)OK(unlink("q/b"));
	(void)OK(rmdir("q"));
}

/* An empty directory that is replaced while somebody works in it is dead, not the new one. */
static void replaces_directories_in_use(void)
{
	struct stat st;
	int fd;

	(void)OK(mkdir("a", 0755));
	probe_text("a/f", "x");
	(void)OK(mkdir("b", 0755));
	fd = (int)OK(open("b", O_RDONLY | O_DIRECTORY));
	(void)OK(rename("a", "b"));
	(void)OK(fstat(fd, &st));
	SAME(st.st_nlink, 0);
	TRUE(st.st_ino != probe_stat("b").st_ino);
	FAILS(faccessat(fd, "f", F_OK, 0), ENOENT);
	FAILS(openat(fd, "g", O_CREAT | O_RDWR, 0644), ENOENT);
	FAILS(renameat(AT_FDCWD, "b/f", fd, "f"), ENOENT);
	HOLDS("b/f", "x", 1);
}

/* Of two whole files that replace each other a reader sees one, never a mixture or nothing. */
static void readers_see_one_or_the_other(void)
{
	enum { SIZE = 200000, ROUNDS = 300 };
	static char content[SIZE];
	pid_t child;

	probe_text("target", "");
	memset(content, 'a', SIZE);
	probe_write("target", content, SIZE);
	child = (pid_t)OK(fork());
	if (child == 0) {
		for (char letter = 'b';; letter = letter == 'z' ? 'a' : (char)(letter + 1)) {
			memset(content, letter, SIZE);
			probe_write("new", content, SIZE);
			(void)OK(rename("new", "target"));
		}
	}
	for (int i = 0; i < ROUNDS; i++) {
		int fd = (int)OK(open("target", O_RDONLY));
		size_t size = 0;
		ssize_t n;

		while ((n = OK(read(fd, content + size, SIZE - size))) > 0)
			size += (size_t)n;
		SAME(size, SIZE);
		for (size_t at = 1; at < SIZE; at++)
			if (content[at] != content[0])
				probe_fail(__FILE__, __LINE__, "'%c' and '%c' in one file",
					   content[0], content[at]);
		(void)OK(close(fd));
	}
	(void)OK(kill(child, SIGKILL));
	(void)OK(waitpid(child, NULL, 0));
}

/* Names that are exchanged over and over: both exist whenever somebody looks. */
static void exchange_is_atomic(void)
{
	enum { ROUNDS = 3000 };
	struct stat st;
	pid_t child;

	probe_text("f", "x");
	(void)OK(mkdir("d", 0755));
	child = (pid_t)OK(fork());
	if (child == 0)
		for (;;)
			(void)OK(rename_with("f", "d", RENAME_EXCHANGE));
	for (int i = 0; i < ROUNDS; i++)
		(void)OK(lstat(i % 2 ? "f" : "d", &st));
	(void)OK(kill(child, SIGKILL));
	(void)OK(waitpid(child, NULL, 0));
	TRUE(S_ISDIR(probe_stat("f").st_mode) != S_ISDIR(probe_stat("d").st_mode));
}

static const struct probe probes[] = {
	PROBE(moves_files),	     PROBE(replaces_files),
	PROBE(moves_directories),    PROBE(replaces_empty_directories_only),
	PROBE(not_into_own_subtree), PROBE(noreplace),
	PROBE(exchange),	     PROBE(whiteout_is_refused_or_works),
	PROBE(replacement_is_atomic),
	PROBE(not_into_own_subtree_at_any_depth),
	PROBE(exchange_between_directories),
	PROBE(replaces_directories_in_use),
	PROBE(readers_see_one_or_the_other),
	PROBE(exchange_is_atomic),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
