/* SPDX-License-Identifier: MIT */
/* meta/lock.h - the lock of a store: one writer or many readers, by flock(2) on the file itself.
 *
 * The descriptor stays open as long as the store is: closing any descriptor of the file would drop
 * the record locks that SQLite holds on it.
 * Threads: any number of callers, each with a lock of its own. */
#ifndef PFS_META_LOCK_H
#define PFS_META_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct pfs_lock {
	int fd; /* -1: not open */
	dev_t dev;
	ino_t ino;
	bool exclusive, registered;
};

#define PFS_LOCK_NONE ((struct pfs_lock){.fd = -1})

enum pfs_lock_mode {
	PFS_LOCK_NOT,	 /* takes no lock, and opens the file for reading */
	PFS_LOCK_SHARED, /* shares the lock with other readers */
	PFS_LOCK_ALONE,	 /* shares it with nobody */
	PFS_LOCK_CREATE, /* as ALONE, and makes the file; -EEXIST: there is one */
};

/* Opens the file at path and locks it; waits up to wait_ms milliseconds for the lock. -EBUSY:
 * another lock is in the way; -EMEDIUMTYPE: it is no regular file; -ENOLCK: the filesystem has no
 * locks; the errors of open(2). */
PFS_MUST_CHECK int pfs_lock_open(struct pfs_lock *lock, const char *path, enum pfs_lock_mode mode,
				 unsigned wait_ms);

/* Unlocks and closes the file; does nothing if it is not open. */
void pfs_lock_close(struct pfs_lock *lock);

#endif
