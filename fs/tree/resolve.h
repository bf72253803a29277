/* SPDX-License-Identifier: MIT */
/* fs/tree/resolve.h - many paths at once: their inode numbers.
 *
 * Paths are walked component by component through the index of names, groups of them side by side, so
 * that one waits for memory while others are at work; on all cores.  What a directory's path leads
 * to is remembered for the paths behind it. */
#ifndef PFS_FS_TREE_RESOLVE_H
#define PFS_FS_TREE_RESOLVE_H

#include "fs/nodes/visible.h"

struct pfs_path_text {
	const char *bytes; /* not terminated; may hold NULs, which no name has */
	size_t len;
};

/* As whom paths are resolved, and from where. */
struct pfs_resolve_from {
	uint64_t ino; /* the directory that relative paths begin at; 0: the root */
	const struct pfs_viewer *viewer; /* NULL: sees everything */
	bool (*gone)(void *arg); /* asked from time to time: true if nobody waits any more; NULL: never asked */
	void *arg;
};

/* Sets inos[i] to the node at paths[i], as stat(2) of it on the mounted tree by that viewer would
 * find it, no symlink being followed at any place; 0: there is none, the path is empty, or the way
 * leads over what the viewer does not see. ".." of the root is the root. Takes tree->lock for
 * reading, a few milliseconds at a time: some paths may see what is changed meanwhile, and others
 * not. -ENOMEM; -EINTR: nobody waits; -EAGAIN: more directories change than what the viewer sees can
 * follow. */
PFS_MUST_CHECK int pfs_tree_resolve_many(struct pfs_tree *tree, uint64_t *inos,
					 const struct pfs_path_text *paths, size_t n,
					 const struct pfs_resolve_from *from);

/* As pfs_tree_resolve_many, between pfs_scan_lock and pfs_scan_unlock, for so few paths that these
 * may be held. Gets slots, or PFS_NO_SLOT. top: the slot that relative paths begin at, of a node
 * with a name that is seen, or PFS_NO_SLOT. */
#define PFS_RESOLVE_HELD 4096u
void pfs_resolve_held(struct pfs_tree *tree, const struct pfs_visible *visible, uint32_t top,
		      uint32_t *slots, const struct pfs_path_text *paths, size_t n);

/* ---- lists of paths ---- */

/* Gets the next path of a text of paths that end with the delimiter, the last one perhaps without
 * it. Returns false at the end. *at is 0 at first. */
bool pfs_path_next(struct pfs_path_text *out, const char *text, size_t size, size_t *at,
		   char delimiter);

#endif
