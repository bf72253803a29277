/* SPDX-License-Identifier: MIT */
/* fs/image/span.h - subtrees as ranges of slots.
 *
 * Import and optimize lay slots out in pre-order, so that a subtree is the slots from its
 * directory's on. One pass over the parents, a piece in a hold, finds the slots of every directory
 * as they are laid out then. The few nodes that do not lie among the slots of their parent are
 * *strays*. After the pass each node that is made, or gets another place, is a stray; if it is a
 * directory, the slots below it stay its own. So a subtree is the slots of its directory without
 * those of strays among them, and likewise the slots of each stray whose parent is in the subtree.
 * The number of ranges follows from the number of strays concerned, and finding them takes as long
 * as writing them down. An image file has what the pass found. Removing a node costs nothing: a
 * range may have slots without a node.
 *
 * If strays are more than PFS_SPAN_STRAYS, and more than an eighth of the slots, nothing is known
 * until the store is opened anew; codes answer then.
 *
 * Memory: 4 bytes and a bit a slot, 20 bytes a stray.
 * Locks: tree->lock, for writing where names come and go; a mutex of its own, taken last, lets one
 * of several readers make a piece of the pass. */
#ifndef PFS_FS_IMAGE_SPAN_H
#define PFS_FS_IMAGE_SPAN_H

#include "fs/tree/tree.h"

#define PFS_SPAN_STRAYS 65536u
#define PFS_SPAN_RANGES 65536u /* ranges that a subtree may have */

struct pfs_slot_range {
	uint32_t from, to; /* without `to` */
};

PFS_MUST_CHECK int pfs_spans_create(struct pfs_tree *tree); /* -ENOMEM */
void pfs_spans_destroy(struct pfs_tree *tree);

#define PFS_SPAN_PIECE (UINT32_C(1) << 17) /* slots: half a millisecond, or more if they are read from a file first */
void pfs_spans_set_piece(uint32_t slots);  /* another one, for tests */

/* Makes the pass, unless it has been made. `look` (NULL: none) is called between two pieces; it may
 * let go of the tree, which may then change. If it returns non-zero, the call ends and returns
 * that; the next call goes on from there. Until the pass is made nothing is known. If there are few
 * slots, or the tree is frozen, the functions below make it when they are first called. */
PFS_MUST_CHECK int pfs_spans_prepare(struct pfs_tree *tree, int (*look)(void *arg), void *arg);

/* Gets the subtree as n ranges, which ascend and do not touch: every slot in them that has a node
 * belongs to the subtree, and no other slot does.  The caller frees *ranges.  -ENODATA: they are
 * not known, or more than PFS_SPAN_RANGES; -ENOMEM. */
PFS_MUST_CHECK int pfs_span_ranges(struct pfs_tree *tree, struct pfs_slot_range **ranges, size_t *n,
				   uint32_t directory);

/* Returns the slot past the last one of the directory's subtree, if the subtree is one range that
 * begins at the directory and has no strays in it or below it; else, or if that is not known, 0. */
uint32_t pfs_span_end(struct pfs_tree *tree, uint32_t directory);

/* note_sorted notes that the children of a directory, whose pfs_span_end is known, ascend by the
 * bytes of their names.  is_sorted returns true if that was noted and no name has come below the
 * directory since. */
bool pfs_span_is_sorted(struct pfs_tree *tree, uint32_t directory);
void pfs_span_note_sorted(struct pfs_tree *tree, uint32_t directory);

/* ---- for the image's file; no other thread sees the tree, except in pfs_spans_give_up ---- */

#define PFS_SPANS_UNKNOWN UINT32_MAX
/* Makes the pass, unless it has been made, and returns how many strays there are;
 * PFS_SPANS_UNKNOWN: nothing is known, or more than PFS_SPAN_STRAYS.  Else next_stray finds the
 * first from `slot` on, and end_of returns the slot past those of a directory, strays' among them,
 * at least one past its own. After give_up, which lent ends may lead to when they are filled, they
 * return false and 0. */
uint32_t pfs_spans_find(struct pfs_tree *tree);
bool pfs_spans_next_stray(const struct pfs_tree *tree, uint32_t *stray, uint32_t slot);
uint32_t pfs_spans_end_of(const struct pfs_tree *tree, uint32_t directory);

/* pfs_spans_lend replaces the pass over slots below `end`: the caller fills *ends when it is first
 * touched, by slot with what pfs_spans_end_of returns, 0 if the slot is no directory. *ends stays
 * until pfs_spans_drop, or until the spans are destroyed. pfs_spans_add_stray then adds strays with
 * their parents. Later changes are followed. pfs_spans_give_up: *ends cannot be filled; nothing is
 * known from then on. -ENOMEM. */
PFS_MUST_CHECK int pfs_spans_lend(struct pfs_tree *tree, uint32_t end, void **ends);
PFS_MUST_CHECK int pfs_spans_add_stray(struct pfs_tree *tree, uint32_t slot, uint32_t parent);
void pfs_spans_give_up(struct pfs_tree *tree);
void pfs_spans_drop(struct pfs_tree *tree); /* the pass is made when it is needed */

/* Returns true if each node lies within the slots of its parent as the layout has them, and in none
 * of another directory's below that, or is a stray that is known of; also where nothing is known.
 */
bool pfs_spans_are_sound(struct pfs_tree *tree);

#endif
