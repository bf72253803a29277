/* SPDX-License-Identifier: MIT */
/* tools/refresh/sourceevents.h - events of the kernel: something in a directory may have changed.
 *
 * An event says only the number of a directory, which pfs_sourceevents_add gave it; that directory
 * has to be compared. With fanotify the filesystems of the roots are watched whole, and adding a
 * directory only finds its number. With inotify each directory takes a watch, of which a user has a
 * limited number.
 *
 * Threads: one reads; any number add and remove meanwhile; none calls anything during close. */
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

/* roots: descriptors of the folders, which may be O_PATH and stay the caller's. -EPERM: this
 * process may not; -EOPNOTSUPP: these filesystems, or this kernel, cannot; -EMFILE, -ENOMEM. */
PFS_MUST_CHECK int pfs_sourceevents_open(struct pfs_sourceevents **out,
					 enum pfs_sourceevents_kind kind, const int *roots,
					 size_t n_roots);
void pfs_sourceevents_close(struct pfs_sourceevents *events); /* NULL is allowed */

/* Reports events of the open directory fd from now on, under *number, which is never 0, and the
 * same each time the same directory is added. -ENOSPC: the user has no more watches; or the error
 * of adding a watch. */
PFS_MUST_CHECK int pfs_sourceevents_add(struct pfs_sourceevents *events, uint64_t *number, int fd);

/* Reports no more events of the directory of that number. */
void pfs_sourceevents_remove(struct pfs_sourceevents *events, uint64_t number);

/* Returns how many directories should be added at most: three quarters of what inotify lets a user
 * have, so that others of the user's programs get theirs; SIZE_MAX for fanotify. */
size_t pfs_sourceevents_limit(enum pfs_sourceevents_kind kind);

enum pfs_sourceevent {
	PFS_SOURCEEVENT_STALE, /* the directory, or something in it, may have changed */
	PFS_SOURCEEVENT_GONE,  /* the directory is no more; its number may be used for another */
	PFS_SOURCEEVENT_LOST,  /* events were lost: anything may have changed */
};

/* Returns a descriptor that is readable when there are events. */
int pfs_sourceevents_fd(const struct pfs_sourceevents *events);

/* Calls fn for each event that has come; does not wait. Events that this process has caused are
 * left out if the kernel tells (fanotify). An error is that of reading: no more events will
 * come. */
PFS_MUST_CHECK int pfs_sourceevents_read(struct pfs_sourceevents *events,
					 void (*fn)(void *arg, enum pfs_sourceevent event,
						    uint64_t number),
					 void *arg);

#endif
