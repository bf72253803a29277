/* SPDX-License-Identifier: MIT */
/* fs/image/span.h - subtrees as ranges of slots.
 *
 * Import and optimize lay slots out in pre-order, so that a subtree is the slots from its directory's on.  One pass over
 * the parents, a piece in a hold, finds every directory's slots as they are laid out then; the few nodes
 * that lie elsewhere than their parents' are *strays*.  Behind the pass a node that comes, or gets another place, is a
 * stray; a directory takes the slots below it along.  So a subtree is its directory's slots without those
 * of strays among them, and the same of each stray whose parent is one of its nodes: as many ranges as strays are
 * concerned, found in the time that it takes to write them down.  What goes away costs nothing: a range may have slots
 * without a node.
 *
 * Where strays are more than PFS_SPAN_STRAYS, and an eighth of the slots, nothing is known any more until the store is
 * opened anew; the codes decide then.
 *
 * Memory: 4 bytes a slot, 40 a stray.
 * Locks: tree->lock, for writing where names come and go; a mutex of its own, taken last, lets one of
 * several readers make a piece of the pass. */
#ifndef PFS_FS_IMAGE_SPAN_H
#define PFS_FS_IMAGE_SPAN_H

#include "fs/tree/tree.h"

#define PFS_SPAN_STRAYS 65536u
#define PFS_SPAN_RANGES 65536u /* that a subtree may have */

struct pfs_slot_range {
	uint32_t from, to; /* without `to` */
};

PFS_MUST_CHECK int pfs_spans_create(struct pfs_tree *tree);
void pfs_spans_destroy(struct pfs_tree *tree);

#define PFS_SPAN_PIECE (UINT32_C(1) << 19) /* slots, which take a millisecond or two */
void pfs_spans_set_piece(uint32_t slots);  /* another one, for tests */

/* The pass, if it has not been made: between its pieces look (NULL: nobody waits) may let go of the tree, which may
 * change then, and what it returns, if not 0, ends this; whoever asks next goes on from there.  Nothing is known before
 * the pass is made, but that few slots, or those of a frozen tree, are passed when they are asked about. */
PFS_MUST_CHECK int pfs_spans_prepare(struct pfs_tree *tree, int (*look)(void *arg), void *arg);

/* The subtree as ranges, which ascend and do not touch; all slots in them that have a node belong to it, and no others.
 * *ranges is to be freed.  -ENODATA: it is not known, or they are too many; -ENOMEM. */
PFS_MUST_CHECK int pfs_span_ranges(struct pfs_tree *tree, struct pfs_slot_range **ranges, size_t *n,
				   uint32_t directory);

/* The slot past the last of the directory's subtree, which begins at the directory itself and in which everything lies as
 * it was laid out: no stray is in it or below it.  0: it is no such range, or that is not known. */
uint32_t pfs_span_end(struct pfs_tree *tree, uint32_t directory);

/* Whether the children of a directory of which pfs_span_end is known ascend by the bytes of their names, as was found
 * and noted: they do as long as no name comes under it. */
bool pfs_span_is_sorted(struct pfs_tree *tree, uint32_t directory);
void pfs_span_note_sorted(struct pfs_tree *tree, uint32_t directory);

#endif
