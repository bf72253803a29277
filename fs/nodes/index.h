/* SPDX-License-Identifier: MIT */
/* fs/nodes/index.h - the column index: nodes in the order of a column's numbers or of their names,
 * for ranges that leave few nodes, ORDER BY with LIMIT, min() and max().
 *
 * An index is made at the second question that it would have helped: a question asked once pays
 * nothing for it. It is an array of slots as sorted when it was made, which nothing moves. Whoever
 * asks it next has it follow the image's feed: what has changed is noted, as a bit a slot and in a
 * list; it is passed over in the array and taken from the list instead, which is sorted when it is
 * asked for. Who fell behind the feed counts the slots of changed blocks as changed. With more than
 * a few thousand changes the indexes are given up, and made again when two more questions want one.
 * So a change costs them nothing.
 *
 * Memory: 4.5 bytes a node and column, 32 while it is made.
 * Locks: tree->lock; a mutex of its own, taken last, for finding and making indexes. */
#ifndef PFS_FS_NODES_INDEX_H
#define PFS_FS_NODES_INDEX_H

#include "fs/nodes/scan_impl.h"
#include "meta/store.h"

PFS_MUST_CHECK int pfs_indexes_create(struct pfs_tree *tree);
void pfs_indexes_destroy(struct pfs_tree *tree);
/* Has the indexes follow the feed, in as many holds as it takes. The tree is not held. */
void pfs_indexes_follow(struct pfs_tree *tree);
/* Lets a frozen tree (fs/tree/frozen.h), which has none yet, use the indexes that the live one has:
 * what has changed since they were made is copied, in a fraction of a millisecond, if they have
 * followed but for a few thousand changes. The live tree is held for reading. -ENOMEM. */
PFS_MUST_CHECK int pfs_indexes_freeze(struct pfs_tree *frozen, struct pfs_tree *live);

/* A range of a column's values. */
struct pfs_index_range {
	enum pfs_field field;
	int64_t low, high; /* numbers: low <= value <= high */
	const char *low_text, *high_text; /* NAME: low <= name < high, by memcmp; NULL: open */
	size_t low_len, high_len;
	uint8_t room[PFS_NAME_MAX + 1]; /* for high_text: not to be moved */
};

/* Gets the range of names that a test of names can be true for; exact: that it is true for. Returns
 * false if the test says nothing of where they lie. The test's texts are used, and must last. */
bool pfs_index_range_of_names(struct pfs_index_range *out, bool *exact,
			      const struct pfs_text_match *text);

/* Opens a walk along the values of the range, from low to high or, descending, from high to low. It
 * may go on in a later hold if the epoch is the same. -ENOENT: there is no index; -ENOMEM. */
struct pfs_index_walk;
PFS_MUST_CHECK int pfs_index_walk_open(struct pfs_index_walk **out, struct pfs_tree *tree,
				       const struct pfs_index_range *range, bool descending);
void pfs_index_walk_close(struct pfs_index_walk *walk); /* NULL is allowed */
size_t pfs_index_walk_left(const struct pfs_index_walk *walk); /* at most */
/* Writes the next slots, `room` at most, and returns how many; 0 at the end. */
size_t pfs_index_walk_next(struct pfs_index_walk *walk, uint32_t *slots, size_t room);

#endif
