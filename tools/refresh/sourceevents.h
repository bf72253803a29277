/* SPDX-License-Identifier: MIT */
/* tools/refresh/sourceevents.h - the kernel's word that something in a directory may have changed.
 *
 * An event names a directory by the number that pfs_sourceevents_add gave it, and nothing else: whoever hears of it
 * compares that directory.  With fanotify the filesystems of the roots are watched whole, and adding a directory only
 * finds its number; with inotify each directory is a watch, of which a user has so many.
 *
 * Threads: one reads; any number add and remove meanwhile; whoever closes is alone. */
#ifndef PFS_TOOLS_REFRESH_SOURCEEVENTS_H
#define PFS_TOOLS_REFRESH_SOURCEEVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_sourceevents;

enum pfs_sourceevents_kind {
	PFS_SOURCEEVENTS_FANOTIFY,
	PFS_SOURCEEVENTS_INOTIFY,
};

/* roots: the folders' descriptors, O_PATH ones, too, which stay the caller's.
 * -EPERM: not permitted; -EOPNOTSUPP: not on these filesystems, or not by this kernel; -EMFILE, -ENOMEM. */
PFS_MUST_CHECK int pfs_sourceevents_open(struct pfs_sourceevents **out, enum pfs_sourceevents_kind kind,
					 const int *roots, size_t n_roots);
void pfs_sourceevents_close(struct pfs_sourceevents *events); /* NULL is allowed */

/* Events of the open directory are told from now on, under that number, which is never 0 and is the same for
 * the same directory.  -ENOSPC: the user has no more watches; what else adding one says. */
PFS_MUST_CHECK int pfs_sourceevents_add(struct pfs_sourceevents *events, uint64_t *number, int fd);

/* Says that no more events of that number are wanted. */
void pfs_sourceevents_remove(struct pfs_sourceevents *events, uint64_t number);

/* Returns how many directories should be added at most: three quarters of what inotify lets a user
 * have, so that others of the user's programs get theirs; SIZE_MAX for fanotify. */
size_t pfs_sourceevents_limit(enum pfs_sourceevents_kind kind);

enum pfs_sourceevent {
	PFS_SOURCEEVENT_STALE, /* something in the directory may have changed, or itself */
	PFS_SOURCEEVENT_GONE,  /* the directory of that number is no more: the number may be another's later */
	PFS_SOURCEEVENT_LOST,  /* events were lost: anything may have changed */
};

/* Returns a descriptor that is readable when there are events. */
int pfs_sourceevents_fd(const struct pfs_sourceevents *events);

/* Calls fn for each event that is there; those that this process has caused are left out where the kernel says so
 * (fanotify).  Does not wait.  What reading says: there will be no more events. */
PFS_MUST_CHECK int pfs_sourceevents_read(struct pfs_sourceevents *events,
					 void (*fn)(void *arg, enum pfs_sourceevent event, uint64_t number),
					 void *arg);

#endif
