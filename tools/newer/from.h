/* SPDX-License-Identifier: MIT */
/* tools/newer/from.h - brings the nodes that came with a table, a list or an archive up to date with a newer one,
 * which has been imported into a store of its own.
 *
 * A node is the one of the same id, or of the same path where there are no ids, and keeps its prime, unless it was a
 * file and has others below it now: then it is another, with its attributes.  Everything is compared first
 * (pfs_from_compare, which changes nothing) and then made so (pfs_from_apply).  New directories and all moves are
 * one group; what is in files and attributes comes later.  Whatever is interrupted is gone on with by doing it again.
 *
 * What the newer one does not say stays: attributes that are no columns of it, nodes without an id where there are ids.
 *
 * Threads: one; nobody else changes either tree. */
#ifndef PFS_TOOLS_NEWER_FROM_H
#define PFS_TOOLS_NEWER_FROM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"

enum pfs_from_what {
	PFS_FROM_ADDED,
	PFS_FROM_REMOVED,
	PFS_FROM_MERGED, /* removed, and all that was in it and is still there came into one other node */
	PFS_FROM_MOVED,
	PFS_FROM_RENAMED, /* within its directory */
	PFS_FROM_CHANGED, /* a value, or content */
	PFS_FROM_KEPT,	  /* it has something of the store's own, or something of that has its name */
	PFS_FROM_WHATS
};

struct pfs_from_event {
	enum pfs_from_what what;
	uint64_t ino;	    /* 0: of what was added, before it is made */
	const char *key;    /* its id, or its path */
	const char *path;   /* absolute, in the store: where it is then; of what is removed: was */
	const char *from;   /* where it was; of what was merged: into which node; or NULL */
	const char *column; /* of what was changed: which value; else NULL */
	const char *before, *after; /* the values, NUL-terminated, or NULL: it has none */
};

struct pfs_from_options {
	struct pfs_tree *tree, *newer;
	uint64_t root;	    /* the directory of `tree` that is compared with the root of `newer` */
	const char *id;	    /* the attribute that has the id, without "user."; NULL: by path */
	bool primes;	    /* by the inode number instead: the trees are of a store and its copy */
	bool rows;	    /* by path: only rows of tables are removed, and directories that they leave empty */
	bool archive;	    /* content, mode, owner and times are compared, too */
};

struct pfs_from_lists; /* two trees compared */

/* Compares the trees. *out is NULL on failure. -EBADMSG: two nodes have the same id, which is in
 * `why`; -ENOMEM; what reading returns. */
PFS_MUST_CHECK int pfs_from_compare(struct pfs_from_lists **out, const struct pfs_from_options *options, char *why,
				    size_t why_size);
void pfs_from_close(struct pfs_from_lists *from); /* NULL is allowed */

/* Makes what was compared so, and commits it. What changing the tree returns. */
PFS_MUST_CHECK int pfs_from_apply(struct pfs_from_lists *from);

/* Calls fn for each difference, in pre-order, what is gone first, until fn returns other than 0, which is returned. */
PFS_MUST_CHECK int pfs_from_tell(const struct pfs_from_lists *from,
				 int (*fn)(void *arg, const struct pfs_from_event *event), void *arg);
uint64_t pfs_from_count(const struct pfs_from_lists *from, enum pfs_from_what what);

#endif
