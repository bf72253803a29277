/* SPDX-License-Identifier: MIT */
/* fs/image/totals.h - totals of each directory's subtree: nodes, bytes, blocks, the newest mtime.
 *
 * Only directories keep any (28 bytes each, and 16 for every 64 slots); what is no directory
 * answers from its row. They come with the image file; where there is none they are made when they
 * are first asked for, by one pass over the image (a few steps a node), of which a piece is made in
 * a hold. Every change behind the pass brings those above it up to date; what changes before it
 * does not count yet. Without a pass a change costs one comparison.
 *
 * A change costs a step for each directory above it. The newest mtime climbs no further than it
 * changes. When its bearer leaves or gets an older one, the next has to be looked for among the
 * directory's children, and so on above as long as that changes something: 64 of them at most, or a
 * heap of the newest (newest_child.h), which costs a look at all children once in 4,096 such
 * changes of a directory. Writing, making, removing and renaming never need that, since they stamp
 * the directory itself: only setting times back does, and times in the future.
 *
 * Locks: tree->lock, for writing where something changes. The table's own mutex, taken last, lets
 * one of several readers make a piece. Memory that runs out during a change
 * costs the totals, not the change: they are made anew when next asked for. */
#ifndef PFS_FS_IMAGE_TOTALS_H
#define PFS_FS_IMAGE_TOTALS_H

#include "fs/tree/tree.h"

PFS_MUST_CHECK int pfs_totals_create(struct pfs_tree *tree);
void pfs_totals_destroy(struct pfs_tree *tree);

/* Makes the totals if there are none; they stay until the lock (for reading or writing) is given
 * back. look (NULL: none) is called from time to time meanwhile; a result that is not 0 ends this
 * and is returned. It may let go of the lock and take it again; whoever asks next goes on from
 * there. -ENOMEM. */
PFS_MUST_CHECK int pfs_totals_prepare(struct pfs_tree *tree, int (*look)(void *arg), void *arg);

void pfs_totals_set_piece(uint32_t slots); /* another size of pieces, for tests */

/* Returns true once totals have been made; from then on they follow each change. */
bool pfs_totals_are_made(const struct pfs_tree *tree);

/* Gets the totals of a slot in use, after prepare under the same lock, in constant time. */
void pfs_totals_at(const struct pfs_tree *tree, struct pfs_totals *out, uint32_t slot);

/* Returns the node's own totals, without what lies below it. */
struct pfs_totals pfs_totals_own(const struct pfs_tree *tree, uint32_t slot);

/* ---- for the image's file; nobody else sees the tree ---- */

/* Makes totals of a tree of slots below `end` with n directories out of memory that the caller
 * fills, whenever somebody touches it, as dirtable.h has it: *blocks with struct
 * pfs_dirtable_block, *entries with the entries of all directories, in the order of slots. It stays
 * until the totals are dropped or destroyed. From now on they follow each change.  -ENOMEM. */
PFS_MUST_CHECK int pfs_totals_lend(struct pfs_tree *tree, uint32_t end, uint32_t n, void **blocks,
				   void **entries);
void pfs_totals_drop(struct pfs_tree *tree); /* they are made anew when they are asked for */
struct pfs_dirtable;
const struct pfs_dirtable *
pfs_totals_table(const struct pfs_tree *tree); /* returns it, made or not */

uint64_t pfs_totals_memory(const struct pfs_tree *tree); /* bytes */

#endif
