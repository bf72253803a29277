/* SPDX-License-Identifier: MIT */
/* fs/nodes/index_paths.h - the path index: nodes in the byte order of their paths, for ranges of
 * paths and ORDER BY path.
 *
 * A prefix tree (gpu/prefix.h) has a key for each entry of a directory, made of the directory's
 * slot and the name, and another key for what lies in a subdirectory, with a slash behind the name.
 * So /a, /a-b and /a/x come in this order, and a directory that moves is two keys, whatever lies in
 * it.
 *
 * A thread of its own makes it, while the tree changes: when somebody wants it, or at the second
 * question that misses it. What changes is noted with the key that it had, and applied before the
 * next question. With too many changes, or without memory, the index is given up, and made again
 * for who misses it.
 *
 * A frozen tree (fs/tree/frozen.h) reads the live tree's index, a few hundred keys while nobody
 * changes it. Keys of nodes whose place has changed since are passed over, and those that such a
 * node has in the frozen tree are merged in from a prefix tree of the frozen tree's own. Because a
 * key names its directory by the slot, a directory that has moved is such a node and what lies
 * below it is not: its keys are as they were. Between two such pieces a walk keeps no place in the
 * live index but the last key, behind which it seeks again; so it does not matter to it what is
 * put in or taken out, or whether the index is given up. If places of more than a 16th of the nodes
 * have changed when a question begins, or memory is short for these keys, the frozen tree has no
 * index.
 *
 * Memory: some 65 bytes a key and the name, a quarter of the machine's at most: an index that would
 * take more is not made, or given up; for a frozen tree as much for each node whose place has
 * changed since, and a bit a slot, which count for all statements together. Locks: tree->lock; a mutex of its own, taken after it. */
#ifndef PFS_FS_NODES_INDEX_PATHS_H
#define PFS_FS_NODES_INDEX_PATHS_H

#include "fs/nodes/scan_impl.h"

PFS_MUST_CHECK int pfs_path_index_create(struct pfs_tree *tree);
void pfs_path_index_destroy(struct pfs_tree *tree);

/* Says whether there is to be a path index. When the tree is opened there is if its store has the
 * name of one. None is made before it is wanted, and one that is not wanted any more is given up.
 * now: it is made at once. The tree is not held. */
void pfs_path_index_want(struct pfs_tree *tree, bool is_wanted, bool now);

/* Makes the index, in this thread, if it is wanted and not there (tests). The tree is not held.
 * -ENOENT: it is not wanted; -ENOMEM, also if it would be too large; -EAGAIN: too much has
 * changed meanwhile. */
PFS_MUST_CHECK int pfs_path_index_make(struct pfs_tree *tree);

/* Applies changes, so that the next question need not do that while it holds the tree. The tree is
 * not held. */
void pfs_path_index_follow(struct pfs_tree *tree);

struct pfs_path_index_info {
	const char *state; /* "wanted", "being made", "ready" */
	uint64_t keys, bytes;
	uint64_t made, asked; /* how often since the tree was opened */
};
/* Describes the index; returns false if none is wanted. Any lock or none. */
bool pfs_path_index_describe(struct pfs_tree *tree, struct pfs_path_index_info *info);

/* Lets a frozen tree use the live one's index, if one is wanted, though it be made later. The live
 * tree is held for reading. -ENOMEM. */
PFS_MUST_CHECK int pfs_path_index_freeze(struct pfs_tree *frozen, struct pfs_tree *live);
void pfs_path_index_thaw(struct pfs_tree *frozen);
/* Returns true if a walk that had begun could not go on, since memory was short for what the frozen
 * tree has of the index. */
bool pfs_path_index_is_lost(const struct pfs_tree *frozen);

/* ---- questions: the tree is held; if that is a frozen tree, the live one is not ---- */

#define PFS_PATH_RANGE_ROOM 1024u

/* A range of paths: low <= path < high, by memcmp; NULL: open. */
struct pfs_path_range {
	const char *low, *high;
	size_t low_len, high_len;
	char room[PFS_PATH_RANGE_ROOM]; /* for high: not to be moved */
};

/* Gets the range of paths that a test of paths can be true for; exact: that it is true for. Returns
 * false if that can be any path. The test's texts are used, and must last. */
bool pfs_path_range_of(struct pfs_path_range *out, bool *exact, const struct pfs_text_match *text);

/* Opens a walk along the paths of a range, which stays the caller's, up or down. It may go on in a
 * later hold if the epoch is the same, as a frozen tree's always is. -ENOENT: there is no index, it
 * does not follow yet, or memory is short for what a frozen tree has of it; -ENOMEM. */
struct pfs_path_index_walk;
PFS_MUST_CHECK int pfs_path_index_walk_open(struct pfs_path_index_walk **out, struct pfs_tree *tree,
					    const struct pfs_path_range *range, bool descending);
void pfs_path_index_walk_close(struct pfs_path_index_walk *walk); /* NULL is allowed */
/* Writes the next slots, *n at most, and sets *n to how many; 0 at the end. -ENOMEM; -EAGAIN: the
 * tree has changed. */
PFS_MUST_CHECK int pfs_path_index_walk_next(struct pfs_path_index_walk *walk, uint32_t *slots,
					    size_t *n);

/* Gets the slots of a range, ascending; *n is the room for them, and then how many. -E2BIG: they do
 * not fit. Other errors as of open. */
PFS_MUST_CHECK int pfs_path_index_list(uint32_t *slots, size_t *n, struct pfs_tree *tree,
				       const struct pfs_path_range *range);

/* Returns true if the tree is a frozen one and has the index. What a frozen tree would have to
 * derive first, its index of names and its ranges of slots, costs more than the index then. */
bool pfs_path_index_is_lent(struct pfs_tree *tree);
/* Finds the node whose path has exactly these bytes; *slot: PFS_NO_SLOT if there is none. -ENOENT:
 * the index is not lent; other errors as of open. */
PFS_MUST_CHECK int pfs_path_index_find(struct pfs_tree *tree, uint32_t *slot, const char *path,
				       size_t len);

#endif
