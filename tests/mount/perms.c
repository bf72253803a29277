/* SPDX-License-Identifier: MIT */
/* Owners, modes and who may do what.  All cases need root, to become somebody else. */
#include <grp.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "tests/mount/probe.h"

enum { ALICE = 4321, BOB = 4322, TEAM = 4400 };

static void make_file(void *name)
{
	probe_text(name, "x");
}

static void owner_is_the_caller(void)
{
	static char name[] = "mine";

	probe_needs_root();
	(void)OK(chmod(".", 0777));
	probe_as(ALICE, TEAM, make_file, name);
	SAME(probe_stat("mine").st_uid, ALICE);
	SAME(probe_stat("mine").st_gid, TEAM);
}

static void make_below_setgid(void *arg)
{
	(void)arg;
	(void)OK(mkdir("s/d", 0755));
	probe_text("s/f", "x");
	(void)OK(symlink("f", "s/l"));
	(void)OK(mkfifo("s/p", 0644));
	(void)OK(close((int)OK(open("s/exe", O_CREAT | O_RDWR, 02755))));
}

static void setgid_directories_hand_down(void)
{
	probe_needs_root();
	(void)OK(mkdir("s", 0777));
	(void)OK(chown("s", 0, TEAM));
	(void)OK(chmod("s", 02777));
	probe_as(ALICE, ALICE, make_below_setgid, NULL);
	SAME(probe_stat("s/d").st_gid, TEAM);
	SAME(probe_stat("s/d").st_mode, S_IFDIR | 02755);
	SAME(probe_stat("s/f").st_gid, TEAM);
	SAME(probe_stat("s/f").st_mode, S_IFREG | 0644);
	SAME(probe_stat("s/l").st_gid, TEAM);
	SAME(probe_stat("s/p").st_gid, TEAM);
	SAME(probe_stat("s/exe").st_mode,
	     S_IFREG | 0755); /* not of that group: no setgid program */
	SAME(probe_stat("s/f").st_uid, ALICE);
}

static void modes_are_enforced(void *arg)
{
	struct stat st;

	(void)arg;
	FAILS(open("secret", O_RDONLY), EACCES);
	FAILS(open("secret", O_WRONLY), EACCES);
	FAILS(open("readable", O_WRONLY), EACCES);
	(void)OK(close((int)OK(open("readable", O_RDONLY))));
	FAILS(open("closed/f", O_RDONLY), EACCES);
	FAILS(lstat("closed/f", &st), EACCES);
	FAILS(open("closed", O_RDONLY | O_DIRECTORY), EACCES);
	(void)OK(lstat("searchable/f", &st));
	FAILS(open("searchable", O_RDONLY | O_DIRECTORY), EACCES);
	FAILS(open("readonly/new", O_CREAT | O_RDWR, 0644), EACCES);
	FAILS(mkdir("readonly/new", 0755), EACCES);
	FAILS(symlink("x", "readonly/new"), EACCES);
	FAILS(unlink("readonly/f"), EACCES);
	FAILS(rename("readonly/f", "readonly/g"), EACCES);
	FAILS(rename("readonly/f", "open/g"), EACCES);
	FAILS(access("readable", X_OK), EACCES);
	(void)OK(access("readable", R_OK));
	FAILS(execl("./readable", "readable", NULL), EACCES);
	probe_text("open/mine", "x");
	(void)OK(unlink("open/mine"));
	FAILS(chmod("readable", 0777), EPERM);
	FAILS(chown("readable", BOB, BOB), EPERM);
	FAILS(utimensat(AT_FDCWD, "readable", NULL, 0), EACCES);
	FAILS(truncate("readable", 0), EACCES);
	FAILS(setxattr("readable", "user.x", "x", 1, 0), EACCES);
}

static void access_is_decided_by_mode(void)
{
	probe_needs_root();
	probe_text("secret", "x");
	(void)OK(chmod("secret", 0600));
	probe_text("readable", "x");
	(void)OK(mkdir("closed", 0700));
	(void)OK(mkdir("searchable", 0711));
	(void)OK(mkdir("readonly", 0755));
	(void)OK(mkdir("open", 0777));
	probe_text("closed/f", "x");
	probe_text("searchable/f", "x");
	probe_text("readonly/f", "x");
	probe_as(BOB, BOB, modes_are_enforced, NULL);
	(void)OK(chmod("secret", 0604)); /* takes effect at once */
	(void)OK(chmod("closed", 0755));
	(void)OK(chown("readonly", BOB, BOB));
}

static void sees_changes_at_once(void *arg)
{
	(void)arg;
	(void)OK(chdir("d"));
	FAILS(open("f", O_RDONLY), EACCES);
}

static void can_read(void *arg)
{
	(void)arg;
	(void)OK(close((int)OK(open("d/f", O_RDONLY))));
}

static void mode_changes_take_effect(void)
{
	probe_needs_root();
	(void)OK(mkdir("d", 0755));
	probe_text("d/f", "x");
	probe_as(BOB, BOB, can_read, NULL);
	(void)OK(chmod("d/f", 0600));
	probe_as(BOB, BOB, sees_changes_at_once, NULL);
	(void)OK(chown("d/f", BOB, BOB));
	probe_as(BOB, BOB, can_read, NULL);
}

static void sticky_as_alice(void *arg)
{
	(void)arg;
	probe_text("t/alice", "x");
	(void)OK(mkdir("t/alices", 0777));
	(void)OK(mkdir("own", 0777));
}

static void sticky_as_bob(void *arg)
{
	(void)arg;
	probe_text("t/bob", "x");
	FAILS(unlink("t/alice"), EPERM);
	FAILS(rename("t/alice", "t/x"), EPERM);
	FAILS(rename("t/bob", "t/alice"), EPERM);
	FAILS(rmdir("t/alices"), EPERM);
	FAILS(rename("t/alices", "own/x"), EPERM);
	(void)OK(rename("t/bob", "t/bob2"));
	(void)OK(unlink("t/bob2"));
}

static void remove_file(void *name)
{
	(void)OK(unlink(name));
}

static void sticky_directories_protect(void)
{
	static char name[] = "t/alice";

	probe_needs_root();
	(void)OK(chmod(".", 0777));
	(void)OK(mkdir("t", 0777));
	(void)OK(chmod("t", 01777));
	SAME(probe_stat("t").st_mode, S_IFDIR | 01777);
	probe_as(ALICE, ALICE, sticky_as_alice, NULL);
	probe_as(BOB, BOB, sticky_as_bob, NULL);
	HOLDS("t/alice", "x", 1);
	(void)OK(chown("t", BOB, BOB)); /* the directory's owner may */
	probe_as(BOB, BOB, remove_file, name);
	TRUE(!probe_exists("t/alice"));
}

/* A fresh file with suid and sgid, executable by its group. */
static void make_program(const char *name, uid_t owner, mode_t mode)
{
	probe_text(name, "program");
	(void)OK(chown(name, owner, owner));
	(void)OK(chmod(name, mode));
	SAME(probe_stat(name).st_mode & 07777, mode);
}

static void append_byte(void *name)
{
	int fd = (int)OK(open(name, O_WRONLY | O_APPEND));

	SAME(write(fd, "x", 1), 1);
	(void)OK(close(fd));
}

static void cut_short(void *name)
{
	(void)OK(truncate(name, 2));
}

static void reopen_truncated(void *name)
{
	(void)OK(close((int)OK(open(name, O_WRONLY | O_TRUNC))));
}

static void give_to_own_group(void *name)
{
	(void)OK(chown(name, (uid_t)-1, getegid()));
}

static void preallocate(void *name)
{
	int fd = (int)OK(open(name, O_WRONLY));

	(void)OK(fallocate(fd, 0, 0, 4096));
	(void)OK(close(fd));
}

static void changing_content_clears_suid(void)
{
	static struct {
		char name[16];
		void (*run)(void *name);
	} ways[] = {
		{"write", append_byte},		{"truncate", cut_short},
		{"open", reopen_truncated},	{"chown", give_to_own_group},
		{"fallocate", preallocate},
	};
	char *name;

	probe_needs_root();
	(void)OK(chmod(".", 0777));
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		name = ways[i].name;
		make_program(name, ALICE, 06775);
		probe_as(ALICE, ALICE, ways[i].run, name);
		if ((probe_stat(name).st_mode & 07777) != 0775)
			probe_fail(__FILE__, __LINE__, "%s leaves mode %o", name,
				   probe_stat(name).st_mode & 07777);
	}
}

/* Root's writes keep the bits; its chown clears them all the same, but not sgid without
 * execution. */
static void root_and_suid(void)
{
	static char name[] = "f";

	probe_needs_root();
	make_program(name, ALICE, 06775);
	append_byte(name);
	SAME(probe_stat(name).st_mode & 07777, 06775);
	preallocate(name);
	SAME(probe_stat(name).st_mode & 07777, 06775);
	cut_short(name);
	SAME(probe_stat(name).st_mode & 07777, 06775);
	reopen_truncated(name);
	SAME(probe_stat(name).st_mode & 07777, 06775);
	(void)OK(chown(name, BOB, BOB));
	SAME(probe_stat(name).st_mode & 07777, 0775);
	(void)OK(chmod(name, 06775));
	(void)OK(chown(name, (uid_t)-1, (gid_t)-1));
	SAME(probe_stat(name).st_mode & 07777, 0775);
	(void)OK(chmod(name, 02664));
	(void)OK(chown(name, ALICE, ALICE));
	SAME(probe_stat(name).st_mode & 07777, 02664);
	(void)OK(mkdir("d", 0755));
	(void)OK(chmod("d", 06755));
	(void)OK(chown("d", ALICE, ALICE)); /* directories keep theirs */
	SAME(probe_stat("d").st_mode & 07777, 06755);
}

static void chmod_foreign_group(void *arg)
{
	(void)arg;
	(void)OK(chmod("f", 02755));
}

static void chmod_drops_sgid_of_foreign_group(void)
{
	probe_needs_root();
	probe_text("f", "x");
	(void)OK(chown("f", ALICE, TEAM));
	probe_as(ALICE, ALICE, chmod_foreign_group, NULL); /* not in TEAM */
	SAME(probe_stat("f").st_mode & 07777, 0755);
	probe_as(ALICE, TEAM, chmod_foreign_group, NULL);
	SAME(probe_stat("f").st_mode & 07777, 02755);
}

static void owner_changes(void *arg)
{
	(void)arg;
	(void)OK(chmod("f", 0604));
	(void)OK(chown("f", ALICE, TEAM)); /* own file, own group */
	FAILS(chown("f", BOB, (gid_t)-1), EPERM);
	FAILS(chown("f", (uid_t)-1, BOB), EPERM);
	(void)OK(utimensat(AT_FDCWD, "f", NULL, 0));
}

static void owners_may(void)
{
	probe_needs_root();
	probe_text("f", "x");
	(void)OK(chown("f", ALICE, ALICE));
	probe_as(ALICE, TEAM, owner_changes, NULL);
	SAME(probe_stat("f").st_mode, S_IFREG | 0604);
	SAME(probe_stat("f").st_gid, TEAM);
	(void)OK(chown("f", 70000, 2147483647));
	SAME(probe_stat("f").st_uid, 70000);
	SAME(probe_stat("f").st_gid, 2147483647);
	(void)OK(chown("f", (uid_t)-1, (gid_t)-1));
	SAME(probe_stat("f").st_uid, 70000);
	(void)OK(symlink("f", "l"));
	(void)OK(lchown("l", 5, 6));
	SAME(probe_stat("l").st_uid, 5);
	SAME(probe_stat("f").st_uid, 70000);
}

/* A file that may not be read once open still can be. */
static void open_descriptors_keep_their_rights(void *arg)
{
	char byte;
	int fd = (int)OK(open("f", O_CREAT | O_EXCL | O_RDWR, 0));

	(void)arg;
	SAME(write(fd, "x", 1), 1);
	SAME(pread(fd, &byte, 1, 0), 1);
	FAILS(open("f", O_RDONLY), EACCES);
	(void)OK(ftruncate(fd, 100));
	(void)OK(close(fd));
}

static void rights_are_the_descriptors(void)
{
	probe_needs_root();
	(void)OK(chmod(".", 0777));
	probe_as(ALICE, ALICE, open_descriptors_keep_their_rights, NULL);
	SAME(probe_stat("f").st_size, 100);
}

static void zero_a_range(void *name)
{
	int fd = (int)OK(open(name, O_WRONLY));

	(void)OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2));
	(void)OK(close(fd));
}

static void copy_into(void *name)
{
	int in = (int)OK(open("source", O_RDONLY)), out = (int)OK(open(name, O_WRONLY));

	(void)copy_file_range(in, NULL, out, NULL, 5, 0);
	(void)pwrite(out, "x", 1, 0); /* where copying is refused */
	(void)OK(close(out));
}

static void change_nothing(void *name)
{
	FAILS(open(name, O_RDONLY | O_DIRECTORY), ENOTDIR);
	FAILS(truncate(name, -1), EINVAL);
	FAILS(chown(name, 1, 1), EPERM);
	(void)OK(close((int)OK(open(name, O_RDWR))));
}

/* Other ways to change content; and what fails leaves the bits alone. */
static void more_ways_to_lose_suid(void)
{
	static char name[] = "f";

	probe_needs_root();
	probe_text("source", "source");
	make_program(name, ALICE, 06775);
	probe_as(ALICE, ALICE, change_nothing, name);
	SAME(probe_stat(name).st_mode & 07777, 06775);
	probe_as(ALICE, ALICE, zero_a_range, name);
	SAME(probe_stat(name).st_mode & 07777, 0775);
	make_program(name, ALICE, 06775);
	probe_as(ALICE, ALICE, copy_into, name);
	SAME(probe_stat(name).st_mode & 07777, 0775);
	make_program(name, ALICE, 04644); /* suid goes without execution too */
	probe_as(ALICE, ALICE, append_byte, name);
	SAME(probe_stat(name).st_mode & 07777, 0644);
}

/* Becomes Alice, who is also in TEAM. */
static void with_team(void (*fn)(void))
{
	const gid_t groups[] = {TEAM, 4401};
	int status;

	if (OK(fork()) == 0) {
		(void)OK(setgroups(2, groups));
		(void)OK(setresgid(ALICE, ALICE, ALICE));
		(void)OK(setresuid(ALICE, ALICE, ALICE));
		fn();
		_exit(0);
	}
	(void)OK(wait(&status));
	SAME(status, 0);
}

static void as_member(void)
{
	(void)OK(close((int)OK(open("shared", O_RDWR))));
	FAILS(open("own", O_RDWR),
	      EACCES); /* the owner's rights come first, though the group has more */
	(void)OK(close((int)OK(open("dir/new", O_CREAT | O_RDWR, 02755))));
	(void)OK(chown("mine", (uid_t)-1, TEAM));
	(void)OK(chmod("mine", 02755));
	FAILS(chown("mine", (uid_t)-1, 4402), EPERM);
}

static void supplementary_groups_count(void)
{
	probe_needs_root();
	probe_text("shared", "x");
	(void)OK(chown("shared", BOB, TEAM));
	(void)OK(chmod("shared", 0660));
	probe_text("own", "x");
	(void)OK(chown("own", ALICE, TEAM));
	(void)OK(chmod("own", 0077));
	(void)OK(mkdir("dir", 0770));
	(void)OK(chown("dir", BOB, TEAM));
	(void)OK(chmod("dir", 02770));
	probe_text("mine", "x");
	(void)OK(chown("mine", ALICE, ALICE));
	with_team(as_member);
	SAME(probe_stat("mine").st_gid, TEAM);
	SAME(probe_stat("mine").st_mode & 07777, 02755);
	SAME(probe_stat("dir/new").st_gid, TEAM);
	SAME(probe_stat("dir/new").st_mode & 07777, 02755); /* a member may make such a program */
}

static void move_as_bob(void *arg)
{
	(void)arg;
	FAILS(rename("a/closed", "b/closed"), EACCES); /* its ".." would change */
	(void)OK(rename("a/closed", "a/still"));
	(void)OK(rename("a/open", "b/open"));
	FAILS(rename("b/open", "root/x"), EACCES);
}

static void moving_a_directory_writes_to_it(void)
{
	probe_needs_root();
	(void)OK(mkdir("a", 0777));
	(void)OK(mkdir("b", 0777));
	(void)OK(mkdir("root", 0755));
	(void)OK(mkdir("a/closed", 0755));
	(void)OK(mkdir("a/open", 0777));
	probe_as(BOB, BOB, move_as_bob, NULL);
	TRUE(probe_exists("a/still") && probe_exists("b/open"));
}

static void run_as_bob(void *arg)
{
	int status;

	(void)arg;
	if (OK(fork()) == 0) {
		(void)execl("./program", "program", NULL);
		_exit(errno);
	}
	(void)OK(wait(&status));
	SAME(WEXITSTATUS(status), 7);
	FAILS(execl("./unexecutable", "unexecutable", NULL), EACCES);
	FAILS(open("program", O_RDONLY | O_NOATIME), EPERM);
}

static void programs_run(void)
{
	static const char script[] = "#!/bin/sh\nexit 7\n";

	probe_needs_root();
	probe_text("program", script);
	(void)OK(chmod("program", 0755));
	probe_text("unexecutable", script);
	probe_as(BOB, BOB, run_as_bob, NULL);
}

static void make_with_odd_modes(void *arg)
{
	(void)arg;
	(void)OK(mkdir("d", 07777));
	(void)OK(mkdir("d/sticky", 01777));
	(void)OK(close((int)OK(open("f", O_CREAT | O_RDWR, 07777))));
	(void)OK(mknod("p", S_IFIFO | 06777, 0));
	FAILS(mknod("c", S_IFCHR | 0666, 0x103), EPERM);
	(void)OK(chmod("f", 01644));
}

static void modes_at_birth(void)
{
	probe_needs_root();
	(void)OK(chmod(".", 0777));
	probe_as(ALICE, ALICE, make_with_odd_modes, NULL);
	SAME(probe_stat("d").st_mode, S_IFDIR | 01777); /* mkdir gives neither suid nor sgid */
	SAME(probe_stat("d/sticky").st_mode, S_IFDIR | 01777);
	SAME(probe_stat("f").st_mode, S_IFREG | 01644);
	SAME(probe_stat("p").st_mode, S_IFIFO | 06777);
}

static const struct probe probes[] = {
	PROBE(owner_is_the_caller),
	PROBE(setgid_directories_hand_down),
	PROBE(access_is_decided_by_mode),
	PROBE(mode_changes_take_effect),
	PROBE(sticky_directories_protect),
	PROBE(changing_content_clears_suid),
	PROBE(root_and_suid),
	PROBE(chmod_drops_sgid_of_foreign_group),
	PROBE(owners_may),
	PROBE(rights_are_the_descriptors),
	PROBE(more_ways_to_lose_suid),
	PROBE(supplementary_groups_count),
	PROBE(moving_a_directory_writes_to_it),
	PROBE(programs_run),
	PROBE(modes_at_birth),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
