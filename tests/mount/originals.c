/* SPDX-License-Identifier: MIT */
/* The file $PFS_LINKED is linked to $PFS_ORIGINAL, which is changed here in many ways; each must
 * show, and nobody may open it by rights that it had before.  Beside it there is one more, named
 * -grows, that holds "text ".  PFS_LONG=1 does more. */
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/mount/probe.h"

enum { NOBODY = 65534, STATTERS = 4 };

static const char *original, *path;

static void pause_us(long us)
{
	const struct timespec time = {us / 1000000, us % 1000000 * 1000};

	(void)nanosleep(&time, NULL);
}

/* Another file in the original's place. */
static void replace(const char *text, mode_t mode)
{
	char other[4096];
	int fd;

	(void)snprintf(other, sizeof(other), "%s.new", original);
	fd = (int)OK(open(other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	SAME(OK(write(fd, text, strlen(text))), strlen(text));
	(void)OK(fchmod(fd, mode));
	(void)OK(close(fd));
	(void)OK(rename(other, original));
}

static void rewrite(const char *text)
{
	int fd = (int)OK(open(original, O_WRONLY | O_CLOEXEC));

	SAME(OK(write(fd, text, strlen(text))), strlen(text));
	(void)OK(close(fd));
}

/* ---- who may open it ---- */

/* Answers each byte from `asked` with what an ordinary user gets: '-' when access is denied. */
_Noreturn static void open_as_asked(int asked, int answer)
{
	char byte;

	(void)OK(setgroups(0, NULL));
	(void)OK(setresgid(NOBODY, NOBODY, NOBODY));
	(void)OK(setresuid(NOBODY, NOBODY, NOBODY));
	while (read(asked, &byte, 1) == 1) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		byte = '-';
		if (fd >= 0 && read(fd, &byte, 1) != 1)
			byte = '?';
		else if (fd < 0 && errno != EACCES)
			byte = '!';
		if (fd >= 0)
			(void)close(fd);
		if (write(answer, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

struct opener {
	pid_t pid;
	int ask, answer;
};

static struct opener start_opener(void)
{
	struct opener opener;
	int asked[2], answer[2];

	(void)OK(pipe2(asked, O_CLOEXEC));
	(void)OK(pipe2(answer, O_CLOEXEC));
	opener.pid = (pid_t)OK(fork());
	if (!opener.pid) {
		(void)close(asked[1]);
		open_as_asked(asked[0], answer[1]);
	}
	(void)close(asked[0]);
	(void)close(answer[1]);
	opener.ask = asked[1];
	opener.answer = answer[0];
	return opener;
}

static char ask(const struct opener *opener)
{
	char byte = 0;

	SAME(OK(write(opener->ask, &byte, 1)), 1);
	SAME(OK(read(opener->answer, &byte, 1)), 1);
	return byte;
}

static void end_opener(const struct opener *opener)
{
	(void)close(opener->ask);
	SAME(OK(waitpid(opener->pid, NULL, 0)), opener->pid);
}

/* Notices of one change come when the next one is being looked at. */
static void decided_on_new_rights(void)
{
	int rounds = probe_long() ? 1000 : 40, i;
	struct opener opener;
	int held;

	probe_needs_root();
	held = (int)OK(open(path, O_RDONLY | O_CLOEXEC)); /* so that the kernel is told */
	opener = start_opener();
	for (i = 0; i < rounds; i++) {
		replace(i % 2 ? "1" : "0", i % 2 ? 0600 : 0644);
		SAME(ask(&opener), i % 2 ? '-' : '0');
		pause_us(98500 + i % 7 * 500);
	}
	end_opener(&opener);
	(void)close(held);
}

/* Many ask for attributes all the time, so that the kernel ignores some of the replies.  It may
 * then refuse somebody for a moment, but not let in whom the new rights keep out. */
static void not_granted_on_old_rights(void)
{
	int rounds = probe_long() ? 20000 : 2000, refused = 0, i;
	pid_t statters[STATTERS];
	struct opener opener;
	struct stat st;

	probe_needs_root();
	opener = start_opener();
	for (i = 0; i < STATTERS; i++) {
		statters[i] = (pid_t)OK(fork());
		if (!statters[i])
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!statters[i])
			(void)stat(path, &st);
	}
	for (i = 0; i < rounds; i++) {
		char answer;

		replace(i % 2 ? "1" : "0", i % 2 ? 0600 : 0644);
		answer = ask(&opener);
		if (i % 2)
			SAME(answer, '-');
		else if (answer == '-')
			refused++;
		else
			SAME(answer, '0');
	}
	for (i = 0; i < STATTERS; i++) {
		(void)kill(statters[i], SIGKILL);
		(void)waitpid(statters[i], NULL, 0);
	}
	end_opener(&opener);
	TRUE(refused < rounds / 4);
}

/* Who is let in by a group, or by capabilities, is when the rights have just changed, too. */
static void others_are_let_in(void)
{
	const gid_t groups[] = {4711};
	int fd, i;

	probe_needs_root();
	for (i = 0; i < 20; i++) {
		replace("x", i % 2 ? 0640 : 0600);
		(void)OK(chown(original, i % 2 ? 0 : 1234, i % 2 ? 4711 : 0));
		fd = (int)OK(open(path, O_RDWR | O_CLOEXEC)); /* root */
		(void)close(fd);
		if (i % 2 == 0)
			continue;
		(void)OK(setgroups(1, groups));
		(void)OK(seteuid(NOBODY));
		fd = (int)OK(open(path, O_RDONLY | O_CLOEXEC));
		(void)close(fd);
		FAILS(open(path, O_WRONLY), EACCES);
		(void)OK(seteuid(0));
	}
}

/* ---- what is read ---- */

static bool reads(int fd, char wanted)
{
	char byte = 0;

	return pread(fd, &byte, 1, 0) == 1 && byte == wanted;
}

/* An original of the same size as before shows through a descriptor that is already open, and
 * through a mapping, once somebody asked for attributes. */
static void open_descriptors_see_it(void)
{
	int fd, i, tries;
	const volatile char *map;
	struct stat st;

	replace("a", 0644);
	fd = (int)OK(open(path, O_RDONLY | O_CLOEXEC));
	map = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
	TRUE(map != MAP_FAILED);
	for (i = 0; i < 6; i++) {
		char wanted = (char)('b' + i), text[] = {wanted, '\0'};

		if (i % 2)
			replace(text, i % 3 ? 0600 : 0644);
		else
			rewrite(text);
		(void)OK(stat(path, &st));
		for (tries = 0; !reads(fd, wanted) || *map != wanted; tries++) {
			TRUE(tries < 2000);
			pause_us(10000);
		}
	}
	(void)close(fd);
}

/* What is appended through the mount comes after what the original has grown by. */
static void appending_to_what_grew(void)
{
	char other[4096], linked[4096];
	int fd, append;

	(void)snprintf(other, sizeof(other), "%s-grows", original);
	(void)snprintf(linked, sizeof(linked), "%s-grows", path);
	fd = (int)OK(open(linked, O_RDWR | O_APPEND | O_CLOEXEC));
	append = (int)OK(open(other, O_WRONLY | O_APPEND | O_CLOEXEC));
	SAME(OK(write(append, "grown ", 6)), 6);
	SAME(OK(write(fd, "one ", 4)), 4);
	SAME(OK(write(fd, "two", 3)), 3);
	HOLDS(linked, "text grown one two", 18);
	HOLDS(other, "text grown ", 11);
	SAME(probe_stat(linked).st_size, 18);
	SAME(OK(write(append, "more", 4)), 4);
	SAME(OK(write(fd, "!", 1)), 1);
	HOLDS(linked, "text grown one two!", 19);
	(void)close(append);
	(void)close(fd);
}

int main(int argc, char **argv)
{
	static const struct probe probes[] = {
		PROBE(decided_on_new_rights),
		PROBE(not_granted_on_old_rights),
		PROBE(others_are_let_in),
		PROBE(open_descriptors_see_it),
		PROBE(appending_to_what_grew),
	};

	original = getenv("PFS_ORIGINAL");
	path = getenv("PFS_LINKED");
	if (!original || !path)
		return 2;
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
