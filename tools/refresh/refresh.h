/* SPDX-License-Identifier: MIT */
/* tools/refresh/refresh.h - brings the nodes that came with a folder up to date with it.
 *
 * Everything is compared first, and nothing changed until all is known: so what has moved is told from
 * what has gone.  A directory's listing is read only if its times say that it changed, or cannot say.
 * What was found is then made so: moves and new directories as one group, then directory by directory, each
 * as a group, whose times come last.  Whatever is interrupted finds the directories that are left to do.
 *
 * What was changed in the store (content, names, attributes) stays; mode, owner and times follow where the
 * source has changed them. */
#ifndef PFS_TOOLS_REFRESH_REFRESH_H
#define PFS_TOOLS_REFRESH_REFRESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"

struct pfs_leaving_out;

enum pfs_refresh_event {
	PFS_REFRESH_ADDED,
	PFS_REFRESH_REMOVED, /* or, with keep, marked */
	PFS_REFRESH_MOVED,
	PFS_REFRESH_CHANGED,
	PFS_REFRESH_KEPT,   /* the store has it otherwise, of its own */
	PFS_REFRESH_UNREAD, /* it could not be looked at, and stays as it was */
	PFS_REFRESH_EVENTS
};

/* Told what a refresh reads, so that it can be watched from before it is read.  Called by the thread that
 * refreshes, one refresh at a time. */
struct pfs_refresh_watcher {
	void *arg;
	/* The directory is about to be read.  ino: its node; 0: it will have one, perhaps.  Returns a number for it.
	 * *was: the node that it was when it was read before, if that is known. */
	uint64_t (*enter)(void *arg, int fd, uint64_t ino, uint64_t *was);
	/* Returns true if the node's directory has been read before, and need not be watched anew. */
	bool (*knows)(void *arg, uint64_t ino);
	/* The directory of that number has got its node. */
	void (*made)(void *arg, uint64_t number, uint64_t ino);
	/* Called once everything was compared: returns true if the source changed meanwhile. What
	 * looks gone may only have moved to a directory already looked at, and is kept until the
	 * next refresh. */
	bool (*restless)(void *arg);
	/* Something in the directory of that number is left to the next refresh. */
	void (*left)(void *arg, uint64_t number);
	/* A file with several names has changed since the node was so: other names may be in directories
	 * that nobody says anything about. */
	void (*linked)(void *arg, const struct stat *node);
};

#define PFS_REFRESH_GONE "user.gone" /* with keep: since when */

struct pfs_refresh_options {
	const char *store; /* its path: it, and files of its, are passed over */
	const uint64_t *inos; /* of nodes that are refreshed with all below; none: everything */
	size_t n_inos;
	const struct pfs_leaving_out *leaving_out; /* neither compared nor removed; NULL, or not given: what import was told */
	const struct pfs_refresh_watcher *watcher; /* or NULL */
	bool shallow;	   /* of what is below the inos' directories, only directories that changed, too */
	bool repeated;	   /* is done again soon: the store need not know when it was */
	bool quick;	   /* files are not looked at where their directory is as it was */
	bool keep;	   /* what is gone stays, with an attribute `gone` that says since when */
	bool dry_run;	   /* changes nothing */
	bool cross_mounts; /* goes into other filesystems */
	/* Told of each node once; path and from are the store's.  from: of what moved, where it was; why: of what
	 * is kept or unread.  Not 0: stop, and hand it up. */
	int (*event)(void *arg, enum pfs_refresh_event event, const char *path, const char *from,
		     const char *why);
	bool (*gone)(void *arg); /* nobody waits any more: -ECANCELED, nothing has changed */
	void *arg;
};

struct pfs_refresh_report {
	uint64_t count[PFS_REFRESH_EVENTS];
	uint64_t looked_at; /* entries of the source */
	uint64_t listed;    /* directories whose listing was read */
};

/* Refreshes. One refresh of a tree at a time: others wait. -EPERM: originals are not followed
 * (pfs_tree_links_refused); -ENODATA: nothing in the store came with a folder whose files are
 * linked; -ESTALE: the folder is gone, or is another one, whose path is in `why`; else what reading
 * the source and changing the tree return. */
PFS_MUST_CHECK int pfs_refresh(struct pfs_tree *tree, const struct pfs_refresh_options *options,
			       struct pfs_refresh_report *report, char *why, size_t why_size);

#endif
