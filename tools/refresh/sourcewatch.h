/* SPDX-License-Identifier: MIT */
/* tools/refresh/sourcewatch.h - a mounted store follows the folders that it was imported from.
 *
 * The kernel says which directories may have changed; these are compared by a shallow refresh
 * (tools/refresh/refresh.h), which alone changes anything.  Means, each tried when the one before it cannot be had or
 * has failed: fanotify on the folders' filesystems, inotify, a refresh of everything every so often.  Where inotify
 * comes to its limit, what is watched is followed at once and everything is refreshed every so often as well.  Events
 * that were lost are followed by a refresh of everything.
 *
 * Threads: one hears events and only notes directories, one refreshes; neither is ever waited for but by stop.  Whoever
 * refreshes the same tree otherwise hands in pfs_sourcewatch_watcher, so that directories that come up are watched.
 * Nothing that goes wrong ends either thread or the daemon: it is logged, once for each reason.
 *
 * Not followed: what is written through a memory map until the file is closed; times that change alone on other names
 * of a file. */
#ifndef PFS_TOOLS_REFRESH_SOURCEWATCH_H
#define PFS_TOOLS_REFRESH_SOURCEWATCH_H

#include "base/err.h"
#include "tools/refresh/refresh.h"

enum pfs_sourcewatch_means {
	PFS_SOURCEWATCH_FANOTIFY,
	PFS_SOURCEWATCH_INOTIFY,
	PFS_SOURCEWATCH_REFRESH, /* of everything, every pause_ms */
};

struct pfs_sourcewatch_options {
	const char *store; /* its path */
	enum pfs_sourcewatch_means best; /* means that are not tried are those before it */
	size_t limit;	   /* directories that inotify may watch; 0: three quarters of what the user may */
	unsigned pause_ms; /* between refreshes of everything, where these are needed; 0: half a minute */
};

struct pfs_sourcewatch;

/* Makes one, which does nothing yet; tree and options->store stay until close. -ENOMEM. */
PFS_MUST_CHECK int pfs_sourcewatch_open(struct pfs_sourcewatch **out, struct pfs_tree *tree,
					const struct pfs_sourcewatch_options *options);

/* Starts its threads, and begins with a refresh of everything. -EAGAIN: there is no thread to be
 * had. */
PFS_MUST_CHECK int pfs_sourcewatch_start(struct pfs_sourcewatch *watch);

/* Ends a refresh that is comparing, waits for one that is making changes.  NULL, and what was not started, is
 * allowed. */
void pfs_sourcewatch_stop(struct pfs_sourcewatch *watch);
void pfs_sourcewatch_close(struct pfs_sourcewatch *watch); /* after stop; NULL is allowed */

/* Returns the watcher for the options of other refreshes of the tree; watch NULL: NULL. */
const struct pfs_refresh_watcher *pfs_sourcewatch_watcher(const struct pfs_sourcewatch *watch);

#endif
