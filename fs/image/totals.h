/* SPDX-License-Identifier: MIT */
/* fs/image/totals.h - totals of each directory's subtree: nodes, bytes, blocks, the newest mtime.
 *
 * Only directories keep any (28 bytes each, and 16 for every 64 slots); what is no directory
 * answers from its row. They come with the image file; where there is none they are made when they
 * are first asked for, by one pass over the image (a few steps a node), of which a piece is made in
 * a hold. A change of a node that the pass has seen brings the totals above it up to date; one of a
 * node that it has not seen does nothing yet. Without a pass a change costs one comparison.
 *
 * A change costs a step for each directory above it. The newest mtime is passed up only as long as
 * that changes something. When the newest node leaves or gets an older mtime, the next newest is
 * looked for among the directory's children, and likewise in the directories above as long as that
 * changes something: among 64 children at most, or in a heap of the newest (newest_child.h), which
 * costs a look at all children once in 4,096 such changes of a directory. Writing, making, removing
 * and renaming never need that, since they stamp the directory itself; only setting times back, or
 * into the future, does.
 *
 * Locks: tree->lock, for writing where something changes. The table's own mutex, taken last, lets
 * one of several readers make a piece. Memory that runs out during a change
 * costs the totals, not the change: they are made anew when next asked for. */
#ifndef PFS_FS_IMAGE_TOTALS_H
#define PFS_FS_IMAGE_TOTALS_H

#include "base/checked.h"
#include "fs/tree/tree.h"

PFS_MUST_CHECK int pfs_totals_create(struct pfs_tree *tree);
void pfs_totals_destroy(struct pfs_tree *tree);

/* Makes the totals if there are none; they stay until the lock (for reading or writing) is given
 * back. look (NULL: none) is called from time to time meanwhile, and may let go of the lock and
 * take it again. If it returns non-zero, the call ends and returns that; the next call goes on from
 * there. -ENOMEM. */
PFS_MUST_CHECK int pfs_totals_prepare(struct pfs_tree *tree, int (*look)(void *arg), void *arg);

void pfs_totals_set_piece(uint32_t slots); /* another size of pieces, for tests */

/* Returns true once totals have been made; from then on they follow each change. */
bool pfs_totals_are_made(const struct pfs_tree *tree);

/* Gets the totals of a slot in use, after prepare under the same lock, in constant time. */
void pfs_totals_at(const struct pfs_tree *tree, struct pfs_totals *out, uint32_t slot);

/* Returns the node's own totals, without what lies below it. */
struct pfs_totals pfs_totals_own(const struct pfs_tree *tree, uint32_t slot);
/* Adds the totals of other nodes to `to`. */
static inline void pfs_totals_add(struct pfs_totals *to, const struct pfs_totals *other)
{
	to->count += other->count;
	to->size += other->size;
	to->blocks += other->blocks;
	to->mtime = PFS_MAX(to->mtime, other->mtime);
}

/* ---- for the image's file; no other thread sees the tree ---- */

/* Makes totals of a tree of slots below `end` with n directories, in memory that the caller fills
 * when it is first touched (dirtable.h): *blocks with struct pfs_dirtable_block, *entries with the
 * entries of all directories, in the order of slots. The memory stays until the totals are dropped
 * or destroyed. From now on they follow each change. -ENOMEM. */
PFS_MUST_CHECK int pfs_totals_lend(struct pfs_tree *tree, uint32_t end, uint32_t n, void **blocks,
				   void **entries);
void pfs_totals_drop(struct pfs_tree *tree); /* they are made anew when they are asked for */
struct pfs_dirtable;
const struct pfs_dirtable *
pfs_totals_table(const struct pfs_tree *tree); /* returns it, made or not */

uint64_t pfs_totals_memory(const struct pfs_tree *tree); /* bytes */

#endif
