/* SPDX-License-Identifier: MIT */
/* fs/nodes/paths.h - the paths of a subtree as text that is made piece by piece, each piece in a
 * short hold of the tree, and all as they were when it was opened, whatever changes meanwhile
 * (fs/image/old_places.h).
 *
 * Threads: one at a time. Locks: the caller does not hold the tree. */
#ifndef PFS_FS_NODES_PATHS_H
#define PFS_FS_NODES_PATHS_H

#include "fs/nodes/scan.h"

struct pfs_paths;
struct pfs_old_places;

/* Opens the text of the nodes under ino, itself included, in component-wise pre-order; flags are of
 * enum pfs_list_flag. Where slots are not in that order already, a few strays aside, they are
 * sorted: many of them over a frozen tree. -ENOENT: no node has the number, or it has no name;
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_paths_open(struct pfs_paths **out, struct pfs_tree *tree, uint64_t ino,
				  unsigned flags);

/* A set of nodes as it was at one moment. */
struct pfs_paths_source {
	/* Takes tree->lock for reading, as pfs_hold_read; the moment is this hold, which the caller
	 * of it ends. It may be called for a later moment in place of the first. If it does not
	 * return 0, nothing is held. */
	int (*hold)(void *arg);
	/* Gets the set as bits by slot, up to the image's end at the moment, which the caller
	 * frees. The tree is not held, and may have changed; `past` knows how it was. */
	int (*find)(void *arg, const struct pfs_old_places *past, uint64_t **bits);
	void *arg;
};

/* As pfs_paths_open for a set. Returns also what the source returns. */
PFS_MUST_CHECK int pfs_paths_open_set(struct pfs_paths **out, struct pfs_tree *tree,
				      const struct pfs_paths_source *source, unsigned flags);
void pfs_paths_close(struct pfs_paths *paths); /* NULL is allowed */

/* Gives some of the text from *row on (0 is the beginning) to fn, in pieces, in this thread and
 * while the tree is held, in several holds if one would be long; then *row is where the next
 * begins. Rows that a call gave may be asked for again. Returns 1; 0 if there are no more; what fn
 * returns; -ENOMEM, also where more has changed since it was opened than is remembered. */
#define PFS_PATHS_HELD 16384u /* rows in one hold, at most */
PFS_MUST_CHECK int pfs_paths_next(struct pfs_paths *paths, uint64_t *row,
				  int (*fn)(void *arg, const char *bytes, size_t size), void *arg);

/* Sets *size to how many bytes the text of the next n rows has, without making it, and moves *row
 * behind them. Returns as pfs_paths_next. */
PFS_MUST_CHECK int pfs_paths_measure(struct pfs_paths *paths, uint64_t *row, uint64_t *size,
				     uint64_t n);

#endif
