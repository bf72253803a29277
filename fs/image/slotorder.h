/* SPDX-License-Identifier: MIT */
/* fs/image/slotorder.h - whether ascending slots of the whole tree are its pre-order, children in byte order,
 * but for a few strays.
 *
 * Import and optimize lay slots out so.  Readers find it out when they first need it, and note it; what gets a
 * place or a name strays from then on.  When there are too many strays, or a directory moves with what lies in it,
 * nothing is known again.
 * Locks: tree->lock, for writing where names come and go; a mutex of its own, taken last, lets one of several
 * readers note it. */
#ifndef PFS_FS_IMAGE_SLOTORDER_H
#define PFS_FS_IMAGE_SLOTORDER_H

#include "fs/tree/tree.h"

PFS_MUST_CHECK int pfs_slotorder_create(struct pfs_tree *tree);
void pfs_slotorder_destroy(struct pfs_tree *tree);

#define PFS_STRAYS_MAX 4096u
enum pfs_slot_order { PFS_ORDER_UNKNOWN, PFS_ORDER_ASCENDING, PFS_ORDER_OTHER };
enum pfs_slot_order pfs_slotorder(struct pfs_tree *tree);

/* ASCENDING: how many strays there are from `slot` on, and these, ascending; valid as long as the tree is
 * held. */
size_t pfs_slotorder_strays(struct pfs_tree *tree, const uint32_t **strays, uint32_t slot);

/* Who looks does so in pieces, between which the tree may change: from the beginning on it is remembered what strays,
 * and more than that ends what has begun. */
unsigned pfs_slotorder_begin(struct pfs_tree *tree);
/* Drops from n slots what is not live any more and what has strayed since somebody began; how many stay. */
size_t pfs_slotorder_keep(struct pfs_tree *tree, uint32_t *slots, size_t n);
/* Notes what was found since `begun`, if that still holds: the order, and n ascending strays, copied, PFS_STRAYS_MAX or
 * fewer. UNKNOWN: nothing was. */
void pfs_slotorder_end(struct pfs_tree *tree, unsigned begun, enum pfs_slot_order order,
		       const uint32_t *strays, size_t n);

#endif
