/* SPDX-License-Identifier: MIT */
/* tools/refresh/refresh.h - brings the nodes that were imported from a folder up to date with it.
 *
 * A refresh first compares everything and changes nothing, so that it can tell nodes that have
 * moved from nodes that are gone. It reads a directory's listing only if the directory's times say
 * that it changed, or cannot say. Then it changes the store: moves and new directories are one
 * group of the journal, and then each directory is one, in which the directory's own times come
 * last. After an interruption the next refresh finds the directories that are left to do.
 *
 * Content, names and attributes that were changed in the store stay; mode, owner and times follow
 * the source if they have changed there. */
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
	PFS_REFRESH_REMOVED, /* with `keep`: marked as gone */
	PFS_REFRESH_MOVED,
	PFS_REFRESH_CHANGED,
	PFS_REFRESH_KEPT,   /* it was changed in the store, and stays so */
	PFS_REFRESH_UNREAD, /* its source could not be read, and it stays as it was */
	PFS_REFRESH_EVENTS
};

/* Functions that a refresh calls, so that directories of the source are watched from before they
 * are read. The thread that refreshes calls them, one refresh at a time. */
struct pfs_refresh_watcher {
	void *arg;
	/* Called before the directory fd is read. ino: its node; 0: it has none yet. Returns a
	 * number for the directory. Sets *was to the node that the directory had when it was read
	 * before, if that is known. */
	uint64_t (*enter)(void *arg, int fd, uint64_t ino, uint64_t *was);
	/* Returns true if the node's directory has been read before, and need not be watched
	 * anew. */
	bool (*knows)(void *arg, uint64_t ino);
	/* Called when the directory of that number has got its node. */
	void (*made)(void *arg, uint64_t number, uint64_t ino);
	/* Called once everything was compared: sets *changed if the source changed meanwhile. An
	 * entry that looks gone may then have moved to a directory that was read before; if it
	 * returns true, that is kept until the next refresh. */
	bool (*restless)(void *arg, bool *changed);
	/* Called when something in the directory of that number is left to the next refresh; 0: to
	 * the next one of everything. */
	void (*left)(void *arg, uint64_t number);
	/* Called for a file with several names that has changed; node: how its node was before. Its
	 * other names may be in directories about which the kernel reports nothing. */
	void (*linked)(void *arg, const struct stat *node);
};

/* the attribute that `keep` sets, without "user.": since when it is gone */
#define PFS_REFRESH_GONE "gone"

struct pfs_refresh_options {
	const char *store; /* the store's path: the store and its files are not compared */
	const uint64_t *inos; /* nodes to refresh with all below them; none: refresh everything */
	size_t n_inos;
	/* So many of the last of them are directories of which only the entries are refreshed, and
	 * what lies in directories that are new or have changed. */
	size_t n_flat;
	/* What is neither compared nor removed; NULL, or not given: what import left out. */
	const struct pfs_leaving_out *leaving_out;
	const struct pfs_refresh_watcher *watcher; /* or NULL */
	bool shallow;	   /* below the inos' directories only directories that changed are read */
	bool repeated;	   /* it is repeated soon: the store gets no stamp of it (compared.h) */
	bool quick;	   /* files are not compared if their directory is as it was */
	bool keep;	   /* nodes that are gone stay, with the attribute PFS_REFRESH_GONE */
	bool dry_run;	   /* nothing is changed */
	bool cross_mounts; /* other filesystems in the folder are read, too */
	bool unmounted;	   /* what lies where a filesystem was mounted counts, not what it had */
	/* Called once for each node that there is something to tell about. path and from are paths
	 * in the store. from: where a moved node was; why: the reason for KEPT or UNREAD. A result
	 * that is not 0 ends the refresh, which returns it. */
	int (*event)(void *arg, enum pfs_refresh_event event, const char *path, const char *from,
		     const char *why);
	/* Returns true if the client is gone: the refresh then returns -ECANCELED, and has changed
	 * nothing. */
	bool (*gone)(void *arg);
	void *arg;
};

struct pfs_refresh_report {
	uint64_t count[PFS_REFRESH_EVENTS];
	uint64_t looked_at; /* entries of the source */
	uint64_t listed;    /* directories whose listing was read */
};

/* Returns 0 if the tree has a source that can be refreshed from, else -EPERM or -ENODATA as
 * pfs_refresh. */
PFS_MUST_CHECK int pfs_refresh_possible(const struct pfs_tree *tree);

#define PFS_REFRESH_EXPLAINED 256 /* bytes that are enough for pfs_refresh_explain */

/* Writes what an error of pfs_refresh means, and what helps, without a name before it. */
void pfs_refresh_explain(char *out, size_t size, int error);

/* Refreshes the tree. A tree has one refresh at a time; others wait. A folder that is gone, is
 * another one or cannot be read is told as UNREAD, at the node that stands for it, and keeps its
 * nodes as they were, if another one of those that the refresh is about is there. -EPERM: originals
 * are not followed (pfs_tree_links_refused); -ENODATA: no node of the store, or of the inos, was
 * imported from a folder whose files are linked; -ESTALE, or why it cannot be read: none of the
 * folders is there, and the path of one is in `why`; -ENOSPC, of which `why` may say
 * which directory's changes need how much room; else what changing the tree returns. */
PFS_MUST_CHECK int pfs_refresh(struct pfs_tree *tree, const struct pfs_refresh_options *options,
			       struct pfs_refresh_report *report, char *why, size_t why_size);

#endif
