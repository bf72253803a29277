/* SPDX-License-Identifier: MIT */
#include "meta/lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "meta/store.h"

#define RETRY_MS   20
#define STORES_MAX 64 /* stores that one process may have open */

/* The stores that this process has open. Opening a store a second time while it is written is
 * refused before the file is opened: closing another descriptor of it would drop SQLite's locks. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	dev_t dev;
	ino_t ino;
	unsigned readers;
	bool writer;
} registry[STORES_MAX]; /* protected by registry_lock; an entry without reader and writer is free */

/* Returns the store's place in the registry, or a free one; STORES_MAX: there is neither. */
static size_t registry_place(const struct pfs_lock *lock)
{
	size_t i, free_place = STORES_MAX;

	for (i = 0; i < STORES_MAX; i++) {
		if (!registry[i].readers && !registry[i].writer)
			free_place = PFS_MIN(free_place, i);
		else if (registry[i].dev == lock->dev && registry[i].ino == lock->ino)
			return i;
	}
	return free_place;
}

static int registry_check(const struct pfs_lock *lock)
{
	size_t i = registry_place(lock);

	if (i == STORES_MAX)
		return -ENFILE;
	return registry[i].writer || (lock->exclusive && registry[i].readers) ? -EBUSY : 0;
}

static void registry_add(const struct pfs_lock *lock)
{
	size_t i = registry_place(lock);

	registry[i].dev = lock->dev;
	registry[i].ino = lock->ino;
	registry[i].writer = lock->exclusive;
	registry[i].readers += !lock->exclusive;
}

static void registry_remove(const struct pfs_lock *lock)
{
	size_t i = registry_place(lock);

	if (lock->exclusive)
		registry[i].writer = false;
	else
		registry[i].readers--;
}

static int open_file(struct pfs_lock *lock, const char *path, enum pfs_lock_mode mode)
{
	int flags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK; /* opening a fifo must not wait */
	struct stat st;

	if (mode == PFS_LOCK_CREATE)
		flags |= O_RDWR | O_CREAT | O_EXCL;
	else
		flags |= mode == PFS_LOCK_ALONE ? O_RDWR : O_RDONLY;
	lock->fd = open(path, flags, 0600);
	if (lock->fd < 0)
		return errno == EISDIR || errno == ENXIO ? -EMEDIUMTYPE : -errno;
	if (fstat(lock->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EMEDIUMTYPE;
	lock->dev = st.st_dev;
	lock->ino = st.st_ino;
	return 0;
}

/* -EAGAIN: the file at path is no longer the one that was opened (publish, or an import's rename).
 */
static int lock_file(const struct pfs_lock *lock, const char *path, enum pfs_lock_mode mode)
{
	struct stat st;

	if (mode == PFS_LOCK_NOT)
		return 0;
	if (flock(lock->fd, (lock->exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB)) {
		if (errno == EWOULDBLOCK)
			return -EBUSY;
		/* This filesystem has no locks: readers do without, writers must not. */
		return lock->exclusive ? -ENOLCK : 0;
	}
	if (stat(path, &st))
		return -errno;
	return st.st_dev == lock->dev && st.st_ino == lock->ino ? 0 : -EAGAIN;
}

static int try_open(struct pfs_lock *lock, const char *path, enum pfs_lock_mode mode)
{
	PFS_LOCKED(&registry_lock);
	struct stat st;
	int error;

	*lock = PFS_LOCK_NONE;
	lock->exclusive = mode == PFS_LOCK_ALONE || mode == PFS_LOCK_CREATE;
	if (mode != PFS_LOCK_CREATE) {
		if (stat(path, &st))
			return -errno;
		lock->dev = st.st_dev;
		lock->ino = st.st_ino;
		error = registry_check(lock);
		if (error)
			return error;
	}
	error = open_file(lock, path, mode);
	if (!error)
		error = lock_file(lock, path, mode);
	if (!error)
		error = registry_check(lock);
	if (!error) {
		registry_add(lock);
		lock->registered = true;
	} else if (lock->fd >= 0) {
		(void)close(lock->fd);
		lock->fd = -1;
	}
	return error;
}

int pfs_lock_open(struct pfs_lock *lock, const char *path, enum pfs_lock_mode mode,
		  unsigned wait_ms)
{
	const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};
	uint64_t end = pfs_now_ms() + wait_ms;

	for (;;) {
		int error = try_open(lock, path, mode);

		if (error == -EAGAIN)
			continue;
		if (error != -EBUSY || pfs_now_ms() >= end)
			return error;
		(void)nanosleep(&pause, NULL);
	}
}

void pfs_lock_close(struct pfs_lock *lock)
{
	PFS_LOCKED(&registry_lock);

	if (lock->registered)
		registry_remove(lock);
	if (lock->fd >= 0)
		(void)close(lock->fd);
	*lock = PFS_LOCK_NONE;
}

/* Parses a line of /proc/locks: "1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF". With "-> "
 * before the kind the process waits for the lock. */
static bool line_holds(pid_t *pid, bool *same_device, const char *line, const struct stat *st)
{
	unsigned major_id, minor_id;
	unsigned long long ino;
	int holder;

	/* NOLINTNEXTLINE(cert-err34-c): the kernel writes these numbers */
	if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%llu", &holder, &major_id, &minor_id, &ino) !=
	    4)
		return false;
	if (ino != st->st_ino || holder <= 0)
		return false;
	*pid = holder;
	*same_device = major_id == major(st->st_dev) && minor_id == minor(st->st_dev);
	return true;
}

pid_t pfs_store_holder(const char *path)
{
	FILE *locks PFS_FCLOSE = NULL;
	struct stat st;
	char line[256];
	pid_t best = 0;

	if (stat(path, &st))
		return 0;
	locks = fopen("/proc/locks", "re");
	while (locks && fgets(line, sizeof(line), locks)) {
		bool same_device = false;
		pid_t pid;

		if (!line_holds(&pid, &same_device, line, &st))
			continue;
		if (same_device)
			return pid;
		best = pid; /* on btrfs and overlayfs stat(2) has another device than /proc/locks */
	}
	return best;
}
