/* SPDX-License-Identifier: MIT */
/* fs/tree/resolve.h - finds the inode numbers of many paths at once.
 *
 * All cores, or the caller alone, walk paths component by component through the index of names.
 * Each walks a group of paths side by side, so that one path waits for memory while others go on.
 * The slots of directories' paths are remembered for the paths that follow (directories.h).
 *
 * With --engine=cuda a kernel walks the paths of somebody who sees every node, up to
 * PFS_RESIDENT_PATHS in a hold of the tree, over the device's copies of the index and the columns
 * (fs/image/device_lookup.h); the host does as long as the device has not all of them. */
#ifndef PFS_FS_TREE_RESOLVE_H
#define PFS_FS_TREE_RESOLVE_H

#include "fs/nodes/visible.h"

struct pfs_path_text {
	const char *bytes; /* not terminated; may hold NULs, which no name has */
	size_t len;
};

/* For which viewer paths are resolved, and from which directory. */
struct pfs_resolve_from {
	uint64_t ino; /* the directory at which relative paths begin; 0: the root */
	const struct pfs_viewer *viewer; /* NULL: everything is visible */
	/* true: other threads ask at the same time, so that the calling thread walks, or packs
	 * paths for a device, alone */
	bool alone;
	/* Called from time to time; returns true if nobody waits for the answer any more. NULL: not
	 * called. */
	bool (*gone)(void *arg);
	void *arg;
};

/* Sets inos[i] to the inode number that lstat(2) of paths[i] on the mounted tree would give the
 * viewer, if no symlink were followed anywhere; 0: there is no such node, the path is empty, or a
 * directory on it is not visible to the viewer. ".." of the root is the root. Takes tree->lock for
 * reading, for a few milliseconds at a time, so some paths may be resolved before and others after
 * a change, and so may pieces of a path that is longer than a hold resolves. -ENOMEM; -EINTR:
 * from->gone returned true; -EAGAIN: directories change too fast for finding what the viewer
 * sees. */
PFS_MUST_CHECK int pfs_tree_resolve_many(struct pfs_tree *tree, uint64_t *inos,
					 const struct pfs_path_text *paths, size_t n,
					 const struct pfs_resolve_from *from);

/* What one hold of the tree resolves: so many paths, of so many bytes together, or else a piece of
 * one path. */
#define PFS_RESOLVE_HELD       8192u
#define PFS_RESOLVE_HELD_BYTES ((size_t)1 << 18)

/* As pfs_tree_resolve_many, for as much as one hold resolves, while the caller holds pfs_scan_lock.
 * Sets slots[i], to PFS_NO_SLOT if there is no such node. top: the slot at which relative paths
 * begin, of a visible node with a name, or PFS_NO_SLOT. */
void pfs_resolve_held(struct pfs_tree *tree, const struct pfs_visible *visible, uint32_t top,
		      uint32_t *slots, const struct pfs_path_text *paths, size_t n);

/* Cuts a piece of at most PFS_RESOLVE_HELD_BYTES off the beginning of a path. What is left, unless
 * it is empty, is a path that begins at the piece's node. */
struct pfs_path_text pfs_path_piece(struct pfs_path_text *rest);

/* ---- lists of paths ---- */

/* Gets the next path of a text of paths, each ended by the delimiter, which the last one may lack.
 * Returns false at the end. *at is the offset of the next path; set it to 0 before the first call.
 */
bool pfs_path_next(struct pfs_path_text *out, const char *text, size_t size, size_t *at,
		   char delimiter);

#endif
