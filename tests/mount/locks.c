/* SPDX-License-Identifier: MIT */
/* POSIX, open-file-description and flock locks between processes. */
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "tests/mount/probe.h"

static struct flock range(short type, off_t start, off_t len)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
}

/* What a child gets when it tries to lock without waiting: 0 or an errno. */
static int try_in_child(int command, short type, off_t start, off_t len)
{
	int status;

	if (OK(fork()) == 0) {
		int fd = (int)OK(open("f", O_RDWR));
		struct flock lock = range(type, start, len);

		_exit(fcntl(fd, command, &lock) == 0 ? 0 : errno == EACCES ? EAGAIN : errno);
	}
	(void)OK(wait(&status));
	TRUE(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void posix_locks_exclude(void)
{
	struct flock lock = range(F_WRLCK, 0, 100);
	int fd, other;

	probe_text("f", "x");
	fd = (int)OK(open("f", O_RDWR));
	(void)OK(fcntl(fd, F_SETLK, &lock));
	SAME(try_in_child(F_SETLK, F_WRLCK, 50, 10), EAGAIN);
	SAME(try_in_child(F_SETLK, F_RDLCK, 99, 1), EAGAIN);
	SAME(try_in_child(F_SETLK, F_WRLCK, 100, 10), 0);
	lock = range(F_UNLCK, 40, 20);
	(void)OK(fcntl(fd, F_SETLK, &lock));
	SAME(try_in_child(F_SETLK, F_WRLCK, 45, 5), 0);
	SAME(try_in_child(F_SETLK, F_WRLCK, 39, 1), EAGAIN);
	lock = range(F_RDLCK, 0, 0);
	(void)OK(fcntl(fd, F_SETLK, &lock));
	SAME(try_in_child(F_SETLK, F_RDLCK, 0, 10), 0);
	SAME(try_in_child(F_SETLK, F_WRLCK, 1000000, 10), EAGAIN);
	other = (int)OK(open("f", O_RDWR));
	(void)OK(close(other)); /* closing any descriptor drops the process's locks */
	SAME(try_in_child(F_SETLK, F_WRLCK, 0, 0), 0);
}

static void posix_locks_tell_their_holder(void)
{
	struct flock lock = range(F_WRLCK, 10, 20);
	int fd, status;

	probe_text("f", "x");
	fd = (int)OK(open("f", O_RDWR));
	(void)OK(fcntl(fd, F_SETLK, &lock));
	if (OK(fork()) == 0) {
		struct flock asked = range(F_RDLCK, 0, 0);

		fd = (int)OK(open("f", O_RDWR));
		(void)OK(fcntl(fd, F_GETLK, &asked));
		SAME(asked.l_type, F_WRLCK);
		SAME(asked.l_start, 10);
		SAME(asked.l_len, 20);
		SAME(asked.l_pid, getppid());
		_exit(0);
	}
	(void)OK(wait(&status));
	SAME(status, 0);
}

static void waiting_for_a_posix_lock(void)
{
	struct flock lock = range(F_WRLCK, 0, 0);
	int fd, status, ready[2];
	char byte;

	probe_text("f", "x");
	fd = (int)OK(open("f", O_RDWR));
	(void)OK(fcntl(fd, F_SETLK, &lock));
	(void)OK(pipe(ready));
	if (OK(fork()) == 0) {
		fd = (int)OK(open("f", O_RDWR));
		SAME(write(ready[1], "r", 1), 1);
		(void)OK(fcntl(fd, F_SETLKW, &lock));
		SAME(pread(fd, &byte, 1, 0), 1);
		_exit(byte == 'y' ? 0 : 1);
	}
	SAME(read(ready[0], &byte, 1), 1);
	probe_tick();
	SAME(pwrite(fd, "y", 1, 0), 1);
	lock.l_type = F_UNLCK;
	(void)OK(fcntl(fd, F_SETLK, &lock));
	(void)OK(wait(&status));
	SAME(status, 0);
}

/* Somebody who waits can be interrupted, and the lock of somebody who dies is free. */
static void waiting_can_be_given_up(void)
{
	struct flock lock = range(F_WRLCK, 0, 0);
	int fd, ready[2];
	char byte;
	pid_t child;

	probe_text("f", "x");
	fd = (int)OK(open("f", O_RDWR));
	(void)OK(fcntl(fd, F_SETLK, &lock));
	(void)OK(pipe(ready));
	child = (pid_t)OK(fork());
	if (child == 0) {
		fd = (int)OK(open("f", O_RDWR));
		SAME(write(ready[1], "r", 1), 1);
		(void)fcntl(fd, F_SETLKW, &lock);
		_exit(0);
	}
	SAME(read(ready[0], &byte, 1), 1);
	probe_tick();
	(void)OK(kill(child, SIGKILL));
	(void)OK(waitpid(child, NULL, 0));
	lock.l_type = F_UNLCK;
	(void)OK(fcntl(fd, F_SETLK, &lock));
	SAME(try_in_child(F_SETLK, F_WRLCK, 0, 0), 0);
	SAME(try_in_child(F_SETLK, F_WRLCK, 0, 0), 0);
}

static void descriptions_hold_locks(void)
{
	struct flock lock = range(F_WRLCK, 0, 10);
	int a, b, copy;

	probe_text("f", "x");
	a = (int)OK(open("f", O_RDWR));
	b = (int)OK(open("f", O_RDWR));
	(void)OK(fcntl(a, F_OFD_SETLK, &lock));
	FAILS(fcntl(b, F_OFD_SETLK, &lock), EAGAIN);
	copy = (int)OK(dup(a));
	(void)OK(close(a));
	FAILS(fcntl(b, F_OFD_SETLK, &lock), EAGAIN);
	(void)OK(close(copy));
	(void)OK(fcntl(b, F_OFD_SETLK, &lock));
}

static void flocks_exclude(void)
{
	int a, b, c;

	probe_text("f", "x");
	a = (int)OK(open("f", O_RDWR));
	b = (int)OK(open("f", O_RDONLY));
	c = (int)OK(open("f", O_RDONLY));
	(void)OK(flock(a, LOCK_EX));
	FAILS(flock(b, LOCK_SH | LOCK_NB), EWOULDBLOCK);
	(void)OK(flock(a, LOCK_UN));
	(void)OK(flock(b, LOCK_SH | LOCK_NB));
	(void)OK(flock(c, LOCK_SH | LOCK_NB));
	FAILS(flock(a, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	(void)OK(close(b));
	(void)OK(close(c));
	(void)OK(flock(a, LOCK_EX | LOCK_NB));
	(void)OK(unlink("f"));
	(void)OK(flock(a, LOCK_UN));
}

static void flocks_end_with_their_process(void)
{
	int fd, ready[2];
	pid_t child;
	char byte;

	probe_text("f", "x");
	fd = (int)OK(open("f", O_RDWR));
	(void)OK(pipe(ready));
	child = (pid_t)OK(fork());
	if (child == 0) {
		int own = (int)OK(open("f", O_RDWR));

		(void)OK(flock(own, LOCK_EX));
		SAME(write(ready[1], "r", 1), 1);
		for (;;)
			(void)pause();
	}
	SAME(read(ready[0], &byte, 1), 1);
	FAILS(flock(fd, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	(void)OK(kill(child, SIGKILL));
	(void)OK(waitpid(child, NULL, 0));
	(void)OK(flock(fd, LOCK_EX));
}

/* Nobody's process: a lock of an open file description is told with pid -1. */
static void descriptions_tell_their_locks(void)
{
	struct flock lock = range(F_WRLCK, 5, 10), asked;
	int a, b;

	probe_text("f", "x");
	a = (int)OK(open("f", O_RDWR));
	b = (int)OK(open("f", O_RDWR));
	(void)OK(fcntl(a, F_OFD_SETLK, &lock));
	asked = range(F_WRLCK, 0, 0);
	(void)OK(fcntl(b, F_OFD_GETLK, &asked));
	SAME(asked.l_type, F_WRLCK);
	SAME(asked.l_start, 5);
	SAME(asked.l_len, 10);
	if (!probe_mounted()) /* FUSE has no word for "of no process" */
		SAME(asked.l_pid, -1);
	asked = range(F_RDLCK, 20, 1);
	(void)OK(fcntl(b, F_OFD_GETLK, &asked));
	SAME(asked.l_type, F_UNLCK);
	SAME(try_in_child(F_SETLK, F_RDLCK, 5, 1), EAGAIN); /* the two kinds exclude each other */
	(void)OK(close(a));
	SAME(try_in_child(F_SETLK, F_WRLCK, 0, 0), 0);
}

static void locks_need_the_right_descriptor(void)
{
	struct flock lock = range(F_WRLCK, 0, 1);
	int fd;

	probe_text("f", "x");
	fd = (int)OK(open("f", O_RDONLY));
	FAILS(fcntl(fd, F_SETLK, &lock), EBADF);
	lock.l_type = F_RDLCK;
	(void)OK(fcntl(fd, F_SETLK, &lock));
	(void)OK(close(fd));
	fd = (int)OK(open("f", O_WRONLY));
	FAILS(fcntl(fd, F_SETLK, &lock), EBADF);
	lock = range(F_WRLCK, -1, 1);
	FAILS(fcntl(fd, F_SETLK, &lock), EINVAL);
}

static void upgrading_and_downgrading(void)
{
	struct flock lock = range(F_RDLCK, 0, 10);
	int fd;

	probe_text("f", "x");
	fd = (int)OK(open("f", O_RDWR));
	(void)OK(fcntl(fd, F_SETLK, &lock));
	SAME(try_in_child(F_SETLK, F_RDLCK, 0, 10), 0);
	lock = range(F_WRLCK, 3, 2);
	(void)OK(fcntl(fd, F_SETLK, &lock));
	SAME(try_in_child(F_SETLK, F_RDLCK, 0, 3), 0);
	SAME(try_in_child(F_SETLK, F_RDLCK, 4, 1), EAGAIN);
	SAME(try_in_child(F_SETLK, F_RDLCK, 5, 5), 0);
	lock = range(F_RDLCK, 0, 10);
	(void)OK(fcntl(fd, F_SETLK, &lock));
	SAME(try_in_child(F_SETLK, F_RDLCK, 0, 10), 0);
	SAME(try_in_child(F_SETLK, F_WRLCK, 9, 1), EAGAIN);
	(void)OK(unlink("f"));
	lock.l_type = F_UNLCK;
	(void)OK(fcntl(fd, F_SETLK, &lock));
}

static void alarmed(int signal)
{
	(void)signal;
}

static void a_signal_ends_waiting(void)
{
	const struct sigaction action = {.sa_handler = alarmed};
	struct flock lock = range(F_WRLCK, 0, 0);
	int fd, status;

	probe_text("f", "x");
	fd = (int)OK(open("f", O_RDWR));
	(void)OK(fcntl(fd, F_SETLK, &lock));
	if (OK(fork()) == 0) {
		(void)OK(sigaction(SIGALRM, &action, NULL));
		fd = (int)OK(open("f", O_RDWR));
		(void)alarm(1);
		FAILS(fcntl(fd, F_SETLKW, &lock), EINTR);
		_exit(0);
	}
	(void)OK(wait(&status));
	SAME(status, 0);
	lock.l_type = F_UNLCK;
	(void)OK(fcntl(fd, F_SETLK, &lock));
	SAME(try_in_child(F_SETLK, F_WRLCK, 0, 0), 0);
}

/* A process that its locks outlive would keep others out for ever. */
static void posix_locks_end_with_their_process(void)
{
	struct flock lock = range(F_WRLCK, 0, 0);
	int status;

	probe_text("f", "x");
	if (OK(fork()) == 0) {
		int fd = (int)OK(open("f", O_RDWR));

		(void)OK(fcntl(fd, F_SETLK, &lock));
		(void)raise(SIGKILL);
	}
	(void)OK(wait(&status));
	TRUE(WIFSIGNALED(status));
	(void)OK(fcntl((int)OK(open("f", O_RDWR)), F_SETLKW, &lock));
}

static const struct probe probes[] = {
	PROBE(posix_locks_exclude),	 PROBE(posix_locks_tell_their_holder),
	PROBE(waiting_for_a_posix_lock), PROBE(waiting_can_be_given_up),
	PROBE(descriptions_hold_locks),	 PROBE(flocks_exclude),
	PROBE(flocks_end_with_their_process),
	PROBE(descriptions_tell_their_locks),
	PROBE(locks_need_the_right_descriptor),
	PROBE(upgrading_and_downgrading),
	PROBE(a_signal_ends_waiting),
	PROBE(posix_locks_end_with_their_process),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
