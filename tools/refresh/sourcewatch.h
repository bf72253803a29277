/* SPDX-License-Identifier: MIT */
/* tools/refresh/sourcewatch.h - a mounted store follows the folders that it was imported from.
 *
 * The kernel says which directories may have changed. A shallow refresh (tools/refresh/refresh.h)
 * compares these, and makes all changes. There are three means; each is used if the one before it
 * is not available or has failed: fanotify on the folders' filesystems, inotify, a refresh of
 * everything at intervals. If inotify cannot watch all directories, changes of the watched ones are
 * followed at once, and everything is refreshed at intervals, too. If events were lost, everything
 * is refreshed.
 *
 * Threads: one reads events and notes directories, another refreshes; only pfs_sourcewatch_stop
 * waits for them. Other refreshes of the same tree are given pfs_sourcewatch_watcher, so that
 * directories that they find are watched. An error ends neither the threads nor the daemon; it is
 * logged, once for each reason.
 *
 * Not followed: what is written through a memory map until the file is closed; times that change
 * alone on other names of a file. */
#ifndef PFS_TOOLS_REFRESH_SOURCEWATCH_H
#define PFS_TOOLS_REFRESH_SOURCEWATCH_H

#include "base/err.h"
#include "tools/refresh/refresh.h"

enum pfs_sourcewatch_means {
	PFS_SOURCEWATCH_FANOTIFY,
	PFS_SOURCEWATCH_INOTIFY,
	PFS_SOURCEWATCH_REFRESH, /* everything is refreshed every pause_ms */
};

struct pfs_sourcewatch_options {
	const char *store; /* the store's path */
	enum pfs_sourcewatch_means best; /* the first means to try; those before it are not used */
	size_t limit;	   /* directories inotify may watch; 0: 3/4 of the user's limit */
	/* between looks whether the folders are there, and refreshes of everything, if needed; 0:
	 * half a minute */
	unsigned pause_ms;
};

struct pfs_sourcewatch;

/* Makes a watch, which does nothing yet. tree and options->store must outlive it. -ENOMEM. */
PFS_MUST_CHECK int pfs_sourcewatch_open(struct pfs_sourcewatch **out, struct pfs_tree *tree,
					const struct pfs_sourcewatch_options *options);

/* Starts its threads, and begins with a refresh of everything. -EAGAIN: there is no thread to be
 * had. */
PFS_MUST_CHECK int pfs_sourcewatch_start(struct pfs_sourcewatch *watch);

/* Ends the threads: a refresh that is comparing ends at once, one that is making changes is waited
 * for. NULL is allowed, and so is a watch that was not started. */
void pfs_sourcewatch_stop(struct pfs_sourcewatch *watch);
void pfs_sourcewatch_close(struct pfs_sourcewatch *watch); /* after stop; NULL is allowed */

/* Has the watch look at once whether its folders are there: another refresh has missed something.
 * NULL is allowed. */
void pfs_sourcewatch_look(struct pfs_sourcewatch *watch);

/* Returns the watcher for the options of other refreshes of the tree; watch NULL: NULL. */
const struct pfs_refresh_watcher *pfs_sourcewatch_watcher(const struct pfs_sourcewatch *watch);

#endif
