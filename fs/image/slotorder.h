/* SPDX-License-Identifier: MIT */
/* fs/image/slotorder.h - knows whether ascending slots are the whole tree's pre-order, children in
 * the order of their names' bytes, but for a few strays.
 *
 * Import and optimize lay slots out so. The image file says it; else a reader finds it out when it
 * first needs it, and notes it. A node that gets a place or a name after that is a stray. When
 * there are too many strays, or a directory moves that is not empty, the order is unknown again.
 * Locks: tree->lock, for writing where names come and go; a mutex of its own, taken last, lets one
 * of several readers note it. */
#ifndef PFS_FS_IMAGE_SLOTORDER_H
#define PFS_FS_IMAGE_SLOTORDER_H

#include "fs/tree/tree.h"

PFS_MUST_CHECK int pfs_slotorder_create(struct pfs_tree *tree);
void pfs_slotorder_destroy(struct pfs_tree *tree);

#define PFS_STRAYS_MAX 4096u
enum pfs_slot_order { PFS_ORDER_UNKNOWN, PFS_ORDER_ASCENDING, PFS_ORDER_OTHER };
enum pfs_slot_order pfs_slotorder(struct pfs_tree *tree); /* returns what is known */

/* Gets the strays from `slot` on, ascending, and returns how many there are.  The order is
 * ASCENDING; *strays is valid as long as the tree is held. */
size_t pfs_slotorder_strays(struct pfs_tree *tree, const uint32_t **strays, uint32_t slot);

/* A reader finds out the order in pieces, between which the tree may change. begin returns a number
 * for `end`; nodes that become strays from then on are remembered. */
unsigned pfs_slotorder_begin(struct pfs_tree *tree);
/* Drops from n slots those that are not live any more and those that have strayed since begin;
 * returns how many are left. */
size_t pfs_slotorder_keep(struct pfs_tree *tree, uint32_t *slots, size_t n);
/* Notes what was found since begin returned `begun`, if it is still true: the order, and n
 * ascending strays, at most PFS_STRAYS_MAX, which are copied.  UNKNOWN: nothing was found. */
void pfs_slotorder_end(struct pfs_tree *tree, unsigned begun, enum pfs_slot_order order,
		       const uint32_t *strays, size_t n);

/* ---- for the image's file; no other thread sees the tree ---- */

#define PFS_STRAYS_UNKNOWN UINT32_MAX
/* Sets what is known: n ascending strays, copied, or PFS_STRAYS_UNKNOWN. What changes afterwards is
 * followed. */
void pfs_slotorder_load(struct pfs_tree *tree, const uint32_t *strays, uint32_t n);
/* Returns the number of strays, and sets *strays to where they are. If the order is not known, it
 * looks at all slots, and returns 0 if they ascend exactly, else PFS_STRAYS_UNKNOWN. If the order
 * is known to be another one, it returns PFS_STRAYS_UNKNOWN. */
uint32_t pfs_slotorder_find(const struct pfs_tree *tree, const uint32_t **strays);

#endif
