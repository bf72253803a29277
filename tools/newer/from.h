/* SPDX-License-Identifier: MIT */
/* tools/newer/from.h - brings the nodes that came with a table, a list or an archive up to date
 * with a newer one, which has been imported into a store of its own.
 *
 * A node of the newer tree is the store's node that has the same id or, where there are no ids, the
 * same path. That node keeps its prime, unless it was a file and has others below it now: then a
 * new node with the same attributes takes its place. First everything is compared
 * (pfs_from_compare, which changes nothing), then the store's tree is made so (pfs_from_apply). New
 * directories and all moves are in one group; contents of files and attributes follow in later
 * ones. If this is interrupted, comparing and applying once more completes it.
 *
 * What the newer one says nothing of stays as it is: attributes that are not among its columns, and
 * nodes without an id where there are ids.
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
	PFS_FROM_MERGED, /* it was removed, and all that was in it and still exists has moved to one
			    other node */
	PFS_FROM_MOVED,
	PFS_FROM_RENAMED, /* within its directory */
	PFS_FROM_CHANGED, /* a value, or content */
	PFS_FROM_KEPT, /* it stays, because it contains something of the store's own, or such a node
			  has its name */
	PFS_FROM_WHATS
};

struct pfs_from_event {
	enum pfs_from_what what;
	uint64_t ino;	    /* 0: the node is to be added, and is not made yet */
	const char *key;    /* the node's id, or its path */
	const char
		*path; /* absolute path in the store afterwards; if the node is removed, before */
	const char *from; /* former path; if it was merged, the path of the node that it came into;
			     or NULL */
	const char *column; /* the name of the value that has changed, or NULL */
	const char *before, *after; /* the values, NUL-terminated; NULL: there is none */
};

struct pfs_from_options {
	struct pfs_tree *tree, *newer;
	uint64_t root;	    /* the directory of `tree` that is compared with the root of `newer` */
	const char *id; /* name of the attribute that has the id, without "user."; NULL: nodes are
			   known by path */
	bool primes; /* nodes are known by inode number instead: the trees are a store and its
		      * copy */
	bool rows; /* if known by path, only rows of tables are removed, and directories left empty
		      by them */
	bool listed; /* the newer tree is of a list or an archive: rows of tables are the store's
		      * own and, unless it is an archive, what is neither an empty file nor a
		      * directory */
	bool archive;	    /* content, mode, owner and times are compared, too */
};

struct pfs_from_lists; /* two trees compared */

/* Compares the trees. *out is NULL on failure. -EBADMSG: two nodes have the same id, which is
 * written to `why`; -ENOMEM, and what reading the trees returns. */
PFS_MUST_CHECK int pfs_from_compare(struct pfs_from_lists **out,
				    const struct pfs_from_options *options, char *why,
				    size_t why_size);
void pfs_from_close(struct pfs_from_lists *from); /* NULL is allowed */

/* Makes the store's tree what the newer one is, and commits it. Returns what changing the tree
 * returns. */
PFS_MUST_CHECK int pfs_from_apply(struct pfs_from_lists *from);

/* Calls fn for each difference, in pre-order and beginning with nodes that are gone, until fn
 * returns other than 0, which is returned. */
PFS_MUST_CHECK int pfs_from_tell(const struct pfs_from_lists *from,
				 int (*fn)(void *arg, const struct pfs_from_event *event),
				 void *arg);
/* Returns how many differences of that kind there are. */
uint64_t pfs_from_count(const struct pfs_from_lists *from, enum pfs_from_what what);

#endif
