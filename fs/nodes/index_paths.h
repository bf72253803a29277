/* SPDX-License-Identifier: MIT */
/* fs/nodes/index_paths.h - the path index: nodes in the byte order of their paths, for ranges of paths and
 * ORDER BY path.
 *
 * A prefix tree (gpu/prefix.h) has a key for each entry of a directory, the directory's slot and the name, and
 * another one for what lies in a subdirectory, the name with a slash behind it: so /a, /a-b and /a/x come in this
 * order, and a directory that moves is two keys, whatever lies in it.
 *
 * It is made by a thread of its own, while the tree changes: when somebody wants it, or at the second question
 * that misses it.  What changes is noted with the key that it had, and applied before the next question; with too
 * many changes, or without memory, the index is given up, and made again for who misses it.
 *
 * Memory: some 90 bytes a node, a quarter of the machine's at most.
 * Threads: tree->lock; a mutex of its own, taken after it. */
#ifndef PFS_FS_NODES_INDEX_PATHS_H
#define PFS_FS_NODES_INDEX_PATHS_H

#include "fs/nodes/scan_impl.h"

PFS_MUST_CHECK int pfs_path_index_create(struct pfs_tree *tree);
void pfs_path_index_destroy(struct pfs_tree *tree);

/* Whether there is to be one, as there is once the tree is opened if its store has a name of one: none is made before, and the one there is is given up afterwards.  now: it is made
 * at once.  The tree is not held. */
void pfs_path_index_want(struct pfs_tree *tree, bool is_wanted, bool now);

/* Between two holds: makes the index now if it is wanted and not there, in this thread.  For tests.  -ENOENT: it is
 * not wanted; -ENOMEM; -EAGAIN: too much has changed meanwhile. */
PFS_MUST_CHECK int pfs_path_index_make(struct pfs_tree *tree);

/* Between two holds: applies changes, so that the next question need not do that while it holds the tree. */
void pfs_path_index_follow(struct pfs_tree *tree);

struct pfs_path_index_info {
	const char *state; /* "wanted", "being made", "ready" */
	uint64_t keys, bytes;
	uint64_t made, asked; /* how often since the tree was opened */
};
/* Any lock or none.  false: none is wanted. */
bool pfs_path_index_describe(struct pfs_tree *tree, struct pfs_path_index_info *info);

/* ---- questions: the tree is held ---- */

#define PFS_PATH_RANGE_ROOM 1024u

/* Paths: low <= path < high, by memcmp; NULL: open. */
struct pfs_path_range {
	const char *low, *high;
	size_t low_len, high_len;
	char room[PFS_PATH_RANGE_ROOM]; /* for high: not to be moved */
};

/* The paths that a test of paths can be true for; exact: that it is true for.  false: any.  The test's texts are
 * used. */
bool pfs_path_range_of(struct pfs_path_range *out, bool *exact, const struct pfs_scan_text *text);

/* A walk along the paths of a range, up or down, which stays the caller's; may go on in a later hold if the epoch is
 * the same.  -ENOENT: there is no index, or it does not follow yet; -ENOMEM. */
struct pfs_path_index_walk;
PFS_MUST_CHECK int pfs_path_index_walk_open(struct pfs_path_index_walk **out, struct pfs_tree *tree,
					    const struct pfs_path_range *range, bool descending);
void pfs_path_index_walk_close(struct pfs_path_index_walk *walk); /* NULL is allowed */
/* The next *n at most, then how many; 0: the end.  -ENOMEM; -EAGAIN: the tree has changed. */
PFS_MUST_CHECK int pfs_path_index_walk_next(struct pfs_path_index_walk *walk, uint32_t *slots,
					    size_t *n);

/* The slots of a range, ascending, *n of them; *n was the room for them.  -E2BIG: they do not leave any of it.  Other
 * errors as open's. */
PFS_MUST_CHECK int pfs_path_index_list(uint32_t *slots, size_t *n, struct pfs_tree *tree,
				       const struct pfs_path_range *range);

#endif
