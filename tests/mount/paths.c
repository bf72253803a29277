/* SPDX-License-Identifier: MIT */
/* How paths are followed: slashes, dots, symlinks, lengths, and answers that must not stick. */
#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

#include "tests/mount/probe.h"

static int count_names(void)
{
	DIR *dir = opendir(".");
	int count = 0;

	TRUE(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count - 2;
}

/* Whatever the call and however long: never "no such file". */
static void too_long_for_every_call(void)
{
	static const size_t lengths[] = {256, 257, 1023, 1024, 1025, 4000};
	static char name[4001];
	char target[16];
	struct stat st;
	struct statfs fs;

	probe_text("f", "x");
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		memset(name, 'n', lengths[i]);
		name[lengths[i]] = '\0';
		FAILS(stat(name, &st), ENAMETOOLONG);
		FAILS(statfs(name, &fs), ENAMETOOLONG);
		FAILS(access(name, F_OK), ENAMETOOLONG);
		FAILS(open(name, O_RDONLY), ENAMETOOLONG);
		FAILS(open(name, O_RDWR | O_CREAT, 0644), ENAMETOOLONG);
		FAILS(open(name, O_RDWR | O_CREAT | O_EXCL, 0644), ENAMETOOLONG);
		FAILS(mkdir(name, 0755), ENAMETOOLONG);
		FAILS(mknod(name, S_IFREG | 0644, 0), ENAMETOOLONG);
		FAILS(symlink("f", name), ENAMETOOLONG);
		FAILS(readlink(name, target, sizeof(target)), ENAMETOOLONG);
		FAILS(link("f", name), ENAMETOOLONG);
		FAILS(rename("f", name), ENAMETOOLONG);
		FAILS(rename(name, "f"), ENAMETOOLONG);
		FAILS(unlink(name), ENAMETOOLONG);
		FAILS(rmdir(name), ENAMETOOLONG);
		FAILS(chmod(name, 0644), ENAMETOOLONG);
		FAILS(chown(name, (uid_t)-1, (gid_t)-1), ENAMETOOLONG);
		FAILS(truncate(name, 0), ENAMETOOLONG);
		FAILS(utimensat(AT_FDCWD, name, NULL, 0), ENAMETOOLONG);
		FAILS(getxattr(name, "user.a", NULL, 0), ENAMETOOLONG);
		FAILS(chdir(name), ENAMETOOLONG);
	}
	HOLDS("f", "x", 1);
	SAME(count_names(), 1);
}

static void too_long_in_the_middle(void)
{
	char path[300], name[257];
	struct stat st;

	memset(name, 'n', 256);
	name[256] = '\0';
	(void)snprintf(path, sizeof(path), "./%s", name);
	FAILS(stat(path, &st), ENAMETOOLONG);
	(void)snprintf(path, sizeof(path), "./%s/x", name);
	FAILS(stat(path, &st), ENAMETOOLONG);
	FAILS(open(path, O_CREAT | O_RDWR, 0644), ENAMETOOLONG);
}

/* A path has 4,095 bytes at most. */
static void long_paths(void)
{
	static char path[PATH_MAX + 1];
	struct stat st;

	for (size_t i = 0; i < PATH_MAX - 2; i++)
		path[i] = i % 2 ? '/' : '.';
	memcpy(path + PATH_MAX - 2, "f", 2);
	probe_text(path, "far");
	HOLDS("f", "far", 3);
	memcpy(path + PATH_MAX - 2, "/f", 3);
	FAILS(stat(path, &st), ENAMETOOLONG);
	FAILS(open(path, O_CREAT | O_RDWR, 0644), ENAMETOOLONG);
}

static void slashes_at_the_end(void)
{
	struct stat st;
	char target[16];

	probe_text("file", "x");
	(void)OK(mkdir("dir///", 0755));
	(void)OK(symlink("dir", "dirlink"));
	(void)OK(symlink("file", "filelink"));
	(void)OK(stat("dir/", &st));
	(void)OK(lstat("dirlink/", &st));
	TRUE(S_ISDIR(st.st_mode));
	FAILS(readlink("dirlink/", target, sizeof(target)), EINVAL);
	FAILS(rmdir("dirlink/"), ENOTDIR);
	FAILS(stat("file/", &st), ENOTDIR);
	FAILS(stat("file/.", &st), ENOTDIR);
	FAILS(stat("filelink/", &st), ENOTDIR);
	FAILS(open("new/", O_CREAT | O_RDWR, 0644), EISDIR);
	FAILS(symlink("x", "new/"), ENOENT);
	FAILS(mknod("new/", S_IFREG | 0644, 0), ENOENT);
	FAILS(rename("file", "new/"), ENOTDIR);
	FAILS(rename("file", "dir/"), ENOTDIR);
	(void)OK(rename("dir/", "other/"));
	(void)OK(rmdir("other/"));
	SAME(count_names(), 3);
}

static void dots(void)
{
	struct stat st;
	ino_t ino;

	(void)OK(mkdir("a", 0755));
	(void)OK(mkdir("a/b", 0755));
	ino = probe_stat("a").st_ino;
	SAME(probe_stat("a/.").st_ino, ino);
	SAME(probe_stat("a/b/..").st_ino, ino);
	SAME(probe_stat("a/b/../b/./..").st_ino, ino);
	FAILS(stat("a/none/..", &st), ENOENT);
	FAILS(mkdir("a/..", 0755), EEXIST);
	FAILS(open("a/..", O_CREAT | O_RDWR, 0644), EISDIR);
	FAILS(symlink("x", "a/."), EEXIST);
	FAILS(unlink("a/."), EISDIR);
	FAILS(unlink("a/b/.."), EISDIR);
	FAILS(rename("a/b", "."), EBUSY);
	FAILS(rename("a/b", "a/.."), EBUSY);
	FAILS(stat("", &st), ENOENT);
	FAILS(mkdir("", 0755), ENOENT);
	FAILS(open("", O_CREAT | O_RDWR, 0644), ENOENT);
}

static void symlink_chains(void)
{
	enum { MOST = 40 }; /* that Linux follows */
	char name[16], next[16];
	struct stat st;

	probe_text("0", "end");
	for (int i = 1; i <= MOST + 1; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		(void)snprintf(next, sizeof(next), "%d", i - 1);
		(void)OK(symlink(next, name));
	}
	HOLDS("40", "end", 3);
	FAILS(stat("41", &st), ELOOP);
	(void)OK(symlink("pong", "ping"));
	(void)OK(symlink("ping", "pong"));
	FAILS(stat("ping", &st), ELOOP);
	FAILS(stat("ping/x", &st), ELOOP);
	FAILS(open("ping", O_CREAT | O_RDWR, 0644), ELOOP);
	FAILS(mkdir("ping/x", 0755), ELOOP);
	(void)OK(mkdir("d", 0755));
	(void)OK(symlink("../0", "d/up"));
	(void)OK(symlink("d/up", "down"));
	HOLDS("down", "end", 3);
	(void)OK(rename("d/up", "up")); /* the target is relative to where the link lies */
	FAILS(stat("up", &st), ENOENT);
}

/* Not there, there, gone, there as something else: no answer outlives its truth. */
static void answers_do_not_stick(void)
{
	struct stat st;

	for (int i = 0; i < 100; i++) {
		FAILS(stat("name", &st), ENOENT);
		probe_text("name", "x");
		(void)OK(stat("name", &st));
		(void)OK(rename("name", "moved"));
		FAILS(stat("name", &st), ENOENT);
		(void)OK(symlink("moved", "name"));
		HOLDS("name", "x", 1);
		(void)OK(unlink("name"));
		(void)OK(unlink("moved"));
		FAILS(stat("moved", &st), ENOENT);
		(void)OK(mkdir("name", 0755));
		(void)OK(stat("name", &st));
		TRUE(S_ISDIR(st.st_mode));
		(void)OK(rmdir("name"));
	}
}

/* Two directories that swap names: what lies below is found under the new path, at once. */
static void paths_through_a_moved_directory(void)
{
	struct stat st;

	(void)OK(mkdir("a", 0755));
	(void)OK(mkdir("b", 0755));
	probe_text("a/f", "in a");
	probe_text("b/f", "in b");
	for (int i = 0; i < 20; i++) {
		HOLDS("a/f", i % 2 ? "in b" : "in a", 4);
		(void)OK(rename("a", "c"));
		FAILS(stat("a/f", &st), ENOENT);
		(void)OK(rename("b", "a"));
		(void)OK(rename("c", "b"));
	}
}

/* Who works in a directory goes with it. */
static void working_in_a_moved_directory(void)
{
	char path[PATH_MAX];
	size_t len;

	(void)OK(mkdir("from", 0755));
	(void)OK(mkdir("to", 0755));
	(void)OK(mkdir("from/d", 0755));
	(void)OK(chdir("from/d"));
	(void)OK(rename("../../from/d", "../../to/e"));
	SAME(probe_stat("..").st_ino, probe_stat("../../to").st_ino);
	probe_text("f", "here");
	HOLDS("../../to/e/f", "here", 4);
	TRUE(getcwd(path, sizeof(path)));
	len = strlen(path);
	TRUE(len > 5 && strcmp(path + len - 5, "/to/e") == 0);
	(void)OK(unlink("f"));
	(void)OK(rmdir("../e"));
	FAILS(open("f", O_CREAT | O_RDWR, 0644), ENOENT);
	TRUE(!getcwd(path, sizeof(path)) && errno == ENOENT);
}

/* A mount point is in use: it can be neither removed nor renamed nor replaced. */
static void mount_points_are_busy(void)
{
	probe_needs_root();
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		probe_skip("no mount namespace of its own");
	(void)OK(mkdir("point", 0755));
	(void)OK(mkdir("other", 0755));
	(void)OK(mount("probe", "point", "tmpfs", 0, NULL));
	FAILS(rmdir("point"), EBUSY);
	FAILS(rename("point", "new"), EBUSY);
	FAILS(rename("other", "point"), EBUSY);
	FAILS(rename("other", "point/other"), EXDEV);
	(void)OK(umount("point"));
	(void)OK(rename("other", "point"));
	(void)OK(rmdir("point"));
}

/* The name of what answers queries belongs to no ordinary entry. */
static void query_is_reserved(void)
{
	if (!probe_mounted())
		probe_skip("an ordinary name elsewhere");
	probe_text("f", "x");
	(void)OK(mkdir("d", 0755));
	FAILS(mkdir(".query", 0755), EEXIST);
	FAILS(mkdir("d/.query", 0755), EEXIST);
	FAILS(open(".query", O_CREAT | O_EXCL | O_RDWR, 0644), EEXIST);
	FAILS(mkfifo(".query", 0644), EEXIST);
	FAILS(symlink("x", ".query"), EEXIST);
	TRUE(rename("f", ".query") == -1 && errno != ENOENT);
	TRUE(rename("d", ".query") == -1 && errno != ENOENT);
	(void)OK(mkdir(".querying", 0755));
	(void)OK(mkdir(".quer", 0755));
	SAME(count_names(), 4);
}

static void hard_links_are_refused(void)
{
	if (!probe_mounted())
		probe_skip("allowed elsewhere");
	probe_text("f", "x");
	(void)OK(mkdir("d", 0755));
	FAILS(link("f", "g"), EPERM);
	FAILS(link("d", "e"), EPERM);
	FAILS(link("f", "d"), EEXIST);
	FAILS(link("none", "g"), ENOENT);
	SAME(probe_stat("f").st_nlink, 1);
	SAME(count_names(), 2);
}

/* A file without a name works, or is refused in the way that programs know. */
static void unnamed_files(void)
{
	struct stat st;
	int fd = open(".", O_TMPFILE | O_RDWR, 0600);

	if (fd < 0) {
		TRUE(errno == EOPNOTSUPP || errno == EISDIR);
	} else {
		SAME(write(fd, "x", 1), 1);
		(void)OK(fstat(fd, &st));
		SAME(st.st_nlink, 0);
		(void)OK(close(fd));
	}
	SAME(count_names(), 0);
}

static const struct probe probes[] = {
	PROBE(too_long_for_every_call),
	PROBE(too_long_in_the_middle),
	PROBE(long_paths),
	PROBE(slashes_at_the_end),
	PROBE(dots),
	PROBE(symlink_chains),
	PROBE(answers_do_not_stick),
	PROBE(paths_through_a_moved_directory),
	PROBE(working_in_a_moved_directory),
	PROBE(mount_points_are_busy),
	PROBE(query_is_reserved),
	PROBE(hard_links_are_refused),
	PROBE(unnamed_files),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
