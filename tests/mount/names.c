/* SPDX-License-Identifier: MIT */
/* Making, finding and removing names of every kind. */
#include <limits.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "tests/mount/probe.h"

static char *name_of(size_t len)
{
	static char name[PATH_MAX * 2];

	memset(name, 'n', len);
	name[len] = '\0';
	return name;
}

static void makes_directories(void)
{
	struct stat st, here;

	here = probe_stat(".");
	(void)OK(mkdir("d", 0751));
	st = probe_stat("d");
	SAME(st.st_mode, S_IFDIR | 0751);
	SAME(st.st_nlink, 2);
	SAME(st.st_uid, geteuid());
	SAME(probe_stat(".").st_nlink, here.st_nlink + 1);
	FAILS(mkdir("d", 0755), EEXIST);
	FAILS(mkdir("d/", 0755), EEXIST);
	(void)OK(mkdir("d/e/", 0755));
	SAME(probe_stat("d").st_nlink, 3);
	FAILS(mkdir("none/e", 0755), ENOENT);
	probe_text("f", "");
	FAILS(mkdir("f/e", 0755), ENOTDIR);
	FAILS(mkdir("f", 0755), EEXIST);
	(void)OK(symlink("nowhere", "l"));
	FAILS(mkdir("l", 0755), EEXIST);
	FAILS(mkdir(".", 0755), EEXIST);
	FAILS(mkdir("..", 0755), EEXIST);
}

static void removes_directories(void)
{
	nlink_t links = probe_stat(".").st_nlink;

	(void)OK(mkdir("d", 0755));
	(void)OK(mkdir("d/e", 0755));
	FAILS(rmdir("d"), ENOTEMPTY);
	FAILS(unlink("d"), EISDIR);
	FAILS(rmdir("d/e/."), EINVAL);
	FAILS(rmdir("d/e/.."), ENOTEMPTY);
	(void)OK(rmdir("d/e"));
	(void)OK(rmdir("d/"));
	TRUE(!probe_exists("d"));
	SAME(probe_stat(".").st_nlink, links);
	FAILS(rmdir("d"), ENOENT);
	probe_text("f", "");
	FAILS(rmdir("f"), ENOTDIR);
	(void)OK(symlink("f", "l"));
	FAILS(rmdir("l"), ENOTDIR);
	(void)OK(mkdir("dot", 0755));
	probe_text("dot/.hidden", "");
	FAILS(rmdir("dot"), ENOTEMPTY);
}

static void removed_directory_is_dead(void)
{
	struct stat st;
	int fd;

	(void)OK(mkdir("d", 0755));
	fd = (int)OK(open("d", O_RDONLY | O_DIRECTORY));
	(void)OK(rmdir("d"));
	(void)OK(fstat(fd, &st));
	SAME(st.st_nlink, 0);
	FAILS(openat(fd, "x", O_CREAT | O_RDWR, 0644), ENOENT);
	FAILS(mkdirat(fd, "x", 0755), ENOENT);
	FAILS(symlinkat("t", fd, "x"), ENOENT);
	FAILS(openat(fd, "x", O_RDONLY), ENOENT);
	(void)OK(mkdir("d", 0755)); /* the name is free again, for another node */
	TRUE(probe_stat("d").st_ino != st.st_ino);
	(void)OK(close(fd));
}

static void creates_files(void)
{
	struct stat st;
	int fd = (int)OK(open("f", O_CREAT | O_EXCL | O_RDWR, 04640));

	(void)OK(fstat(fd, &st));
	SAME(st.st_mode, S_IFREG | 04640);
	SAME(st.st_nlink, 1);
	SAME(st.st_size, 0);
	SAME(st.st_blocks, 0);
	SAME(st.st_uid, geteuid());
	SAME(st.st_ino, probe_stat("f").st_ino);
	FAILS(open("f", O_CREAT | O_EXCL | O_RDWR, 0644), EEXIST);
	(void)OK(close((int)OK(open("f", O_CREAT | O_RDWR, 0777))));
	SAME(probe_stat("f").st_mode, S_IFREG | 04640);
	FAILS(open("f/", O_RDONLY), ENOTDIR);
	FAILS(open("f/x", O_RDONLY), ENOTDIR);
	FAILS(open("f/x", O_CREAT | O_RDWR, 0644), ENOTDIR);
	FAILS(open("none/x", O_CREAT | O_RDWR, 0644), ENOENT);
	FAILS(open("none", O_RDONLY), ENOENT);
	(void)OK(mkdir("d", 0755));
	FAILS(open("d", O_WRONLY), EISDIR);
	FAILS(open("d", O_CREAT | O_RDWR, 0644), EISDIR);
	FAILS(open("f", O_RDONLY | O_DIRECTORY), ENOTDIR);
	(void)OK(symlink("nowhere", "l"));
	FAILS(open("l", O_CREAT | O_EXCL | O_RDWR, 0644), EEXIST);
	FAILS(open("l", O_RDONLY | O_NOFOLLOW), ELOOP);
	(void)OK(close((int)OK(open("l", O_CREAT | O_RDWR, 0644)))); /* through the link */
	TRUE(probe_exists("nowhere"));
}

static void umask_applies(void)
{
	(void)umask(027);
	(void)OK(close((int)OK(open("f", O_CREAT | O_RDWR, 0666))));
	(void)OK(mkdir("d", 0777));
	(void)OK(mkfifo("p", 0666));
	(void)OK(symlink("f", "l"));
	SAME(probe_stat("f").st_mode, S_IFREG | 0640);
	SAME(probe_stat("d").st_mode, S_IFDIR | 0750);
	SAME(probe_stat("p").st_mode, S_IFIFO | 0640);
	SAME(probe_stat("l").st_mode, S_IFLNK | 0777);
}

static void makes_special_files(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "s"};
	int sock = (int)OK(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	struct stat st;

	(void)OK(mkfifo("p", 0600));
	SAME(probe_stat("p").st_mode, S_IFIFO | 0600);
	(void)OK(mknod("r", S_IFREG | 0604, 0));
	SAME(probe_stat("r").st_mode, S_IFREG | 0604);
	(void)OK(bind(sock, (struct sockaddr *)&address, sizeof(address)));
	TRUE(S_ISSOCK(probe_stat("s").st_mode));
	(void)OK(mknod("s2", S_IFSOCK | 0644, 0));
	TRUE(S_ISSOCK(probe_stat("s2").st_mode));
	FAILS(mknod("p", S_IFIFO | 0600, 0), EEXIST);
	if (geteuid() != 0)
		probe_skip("devices need root");
	(void)OK(mknod("c", S_IFCHR | 0620, makedev(1, 3)));
	(void)OK(mknod("b", S_IFBLK | 0660, makedev(4095, 1048575)));
	st = probe_stat("c");
	SAME(st.st_mode, S_IFCHR | 0620);
	SAME(major(st.st_rdev), 1);
	SAME(minor(st.st_rdev), 3);
	st = probe_stat("b");
	SAME(st.st_mode, S_IFBLK | 0660);
	SAME(major(st.st_rdev), 4095);
	SAME(minor(st.st_rdev), 1048575);
	SAME(probe_stat("r").st_rdev, 0);
}

static void fifo_carries_bytes(void)
{
	char data[4];
	int in, out;

	(void)OK(mkfifo("p", 0600));
	out = (int)OK(open("p", O_RDWR | O_NONBLOCK));
	in = (int)OK(open("p", O_RDONLY | O_NONBLOCK));
	SAME(write(out, "abc", 3), 3);
	SAME(read(in, data, sizeof(data)), 3);
	(void)OK(close(in));
	(void)OK(close(out));
}

static void symlinks_hold_their_target(void)
{
	static char target[PATH_MAX], found[PATH_MAX + 8];

	(void)OK(symlink("a/\xff\xfe b", "short"));
	SAME(readlink("short", found, sizeof(found)), 6);
	SAME(probe_stat("short").st_size, 6);
	SAME(memcmp(found, "a/\xff\xfe b", 6), 0);
	SAME(readlink("short", found, 2), 2);
	memset(target, 't', sizeof(target) - 1);
	(void)OK(symlink(target, "long")); /* 4,095 bytes */
	SAME(readlink("long", found, sizeof(found)), 4095);
	SAME(memcmp(found, target, 4095), 0);
	SAME(probe_stat("long").st_size, 4095);
	FAILS(symlink("", "empty"), ENOENT);
	FAILS(symlink("x", "long"), EEXIST);
	FAILS(symlink("x", "none/l"), ENOENT);
	probe_text("f", "");
	FAILS(readlink("f", found, sizeof(found)), EINVAL);
	(void)OK(symlink("loop", "loop"));
	FAILS(open("loop", O_RDONLY), ELOOP);
	FAILS(open("long", O_RDONLY), ENAMETOOLONG);
}

static void names_are_bytes(void)
{
	char name[4] = {0};
	int byte;

	for (byte = 1; byte < 256; byte++) {
		if (byte == '/')
			continue;
		name[0] = (char)byte;
		name[1] = 'x';
		probe_write(name, name, 1);
	}
	for (byte = 1; byte < 256; byte++) {
		if (byte == '/')
			continue;
		name[0] = (char)byte;
		HOLDS(name, name, 1);
		(void)OK(unlink(name));
	}
	(void)OK(close((int)OK(open("Case", O_CREAT | O_EXCL | O_RDWR, 0644))));
	(void)OK(close((int)OK(open("case", O_CREAT | O_EXCL | O_RDWR, 0644))));
	/* e with acute, composed and decomposed: two names */
	(void)OK(close((int)OK(open("\xc3\xa9", O_CREAT | O_EXCL | O_RDWR, 0644))));
	(void)OK(close((int)OK(open("e\xcc\x81", O_CREAT | O_EXCL | O_RDWR, 0644))));
}

static void names_have_a_limit(void)
{
	struct stat st;

	probe_text(name_of(255), "x");
	HOLDS(name_of(255), "x", 1);
	(void)OK(rename(name_of(255), "f"));
	FAILS(lstat(name_of(256), &st), ENAMETOOLONG);
	FAILS(lstat(name_of(1000), &st), ENAMETOOLONG);
	FAILS(open(name_of(256), O_RDONLY), ENAMETOOLONG);
	FAILS(open(name_of(256), O_CREAT | O_RDWR, 0644), ENAMETOOLONG);
	FAILS(mkdir(name_of(256), 0755), ENAMETOOLONG);
	FAILS(mkfifo(name_of(256), 0644), ENAMETOOLONG);
	FAILS(symlink("x", name_of(256)), ENAMETOOLONG);
	FAILS(rename("f", name_of(256)), ENAMETOOLONG);
	FAILS(unlink(name_of(256)), ENAMETOOLONG);
	FAILS(rmdir(name_of(256)), ENAMETOOLONG);
	FAILS(lstat(name_of(PATH_MAX), &st), ENAMETOOLONG);
	(void)OK(mkdir(name_of(255), 0755));
	(void)OK(rmdir(name_of(255)));
	TRUE(probe_exists("f"));
}

static void deep_trees_work(void)
{
	enum { DEPTH = 300 };
	char buffer[64];
	int i;

	for (i = 0; i < DEPTH; i++) {
		(void)OK(mkdir("deeper", 0755));
		(void)OK(chdir("deeper"));
	}
	probe_text("bottom", "here");
	HOLDS("bottom", "here", 4);
	(void)OK(unlink("bottom"));
	for (i = 0; i < DEPTH; i++) {
		(void)OK(chdir(".."));
		(void)snprintf(buffer, sizeof(buffer), "deeper");
		(void)OK(rmdir(buffer));
	}
}

static void unlinks(void)
{
	probe_text("f", "x");
	(void)OK(unlink("f"));
	TRUE(!probe_exists("f"));
	FAILS(unlink("f"), ENOENT);
	FAILS(unlink("f/x"), ENOENT);
	probe_text("f", "x");
	FAILS(unlink("f/x"), ENOTDIR);
	FAILS(unlink("f/"), ENOTDIR);
	(void)OK(symlink("f", "l"));
	(void)OK(unlink("l"));
	TRUE(probe_exists("f"));
	(void)OK(mkfifo("p", 0600));
	(void)OK(unlink("p"));
}

static void unlinked_while_open(void)
{
	struct stat st;
	char data[8] = {0};
	int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));
	ino_t ino = probe_stat("f").st_ino;

	SAME(write(fd, "hello", 5), 5);
	(void)OK(unlink("f"));
	TRUE(!probe_exists("f"));
	(void)OK(fstat(fd, &st));
	SAME(st.st_nlink, 0);
	SAME(st.st_size, 5);
	SAME(pread(fd, data, sizeof(data), 0), 5);
	SAME(memcmp(data, "hello", 5), 0);
	SAME(pwrite(fd, "J", 1, 0), 1);
	SAME(pwrite(fd, "!", 1, 100000), 1);
	SAME(pread(fd, data, 1, 0), 1);
	SAME(data[0], 'J');
	(void)OK(ftruncate(fd, 3));
	(void)OK(fchmod(fd, 0600));
	(void)OK(fsync(fd));
	(void)OK(fstat(fd, &st));
	SAME(st.st_size, 3);
	SAME(st.st_mode, S_IFREG | 0600);
	probe_text("f", "another");
	TRUE(probe_stat("f").st_ino != ino);
	SAME(pread(fd, data, sizeof(data), 0), 3);
	SAME(memcmp(data, "Jel", 3), 0);
	HOLDS("f", "another", 7);
	(void)OK(close(fd));
}

static void replaced_while_open(void)
{
	char data[8] = {0};
	int fd;

	probe_text("old", "old");
	probe_text("new", "new");
	fd = (int)OK(open("old", O_RDWR));
	(void)OK(rename("new", "old"));
	SAME(pread(fd, data, sizeof(data), 0), 3);
	SAME(memcmp(data, "old", 3), 0);
	SAME(pwrite(fd, "O", 1, 0), 1);
	HOLDS("old", "new", 3);
	(void)OK(close(fd));
}

static const struct probe probes[] = {
	PROBE(makes_directories),	 PROBE(removes_directories),
	PROBE(removed_directory_is_dead), PROBE(creates_files),
	PROBE(umask_applies),		 PROBE(makes_special_files),
	PROBE(fifo_carries_bytes),	 PROBE(symlinks_hold_their_target),
	PROBE(names_are_bytes),		 PROBE(names_have_a_limit),
	PROBE(deep_trees_work),		 PROBE(unlinks),
	PROBE(unlinked_while_open),	 PROBE(replaced_while_open),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
