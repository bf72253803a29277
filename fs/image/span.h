/* SPDX-License-Identifier: MIT */
/* fs/image/span.h - subtrees that are ranges of slots, as import and optimize lay them out.
 *
 * Found for all directories at once when first asked for, by one pass over the parents; from then on
 * what changes under a directory takes its range away, and those of the directories above.  4 bytes
 * a slot.  Locks: tree->lock, for writing where names come and go; a mutex of its own, taken last,
 * lets one of several readers make the ranges. */
#ifndef PFS_FS_IMAGE_SPAN_H
#define PFS_FS_IMAGE_SPAN_H

#include "fs/tree/tree.h"

PFS_MUST_CHECK int pfs_spans_create(struct pfs_tree *tree);
void pfs_spans_destroy(struct pfs_tree *tree);

/* The slot past the last of the directory's subtree, which begins at the directory itself; 0: it is
 * no range, or there is no memory to know. */
uint32_t pfs_span_end(struct pfs_tree *tree, uint32_t directory);

/* Whether the children of a directory that is a range are known to ascend by the bytes of their names;
 * they do, it was found: as long as it stays a range, no name comes or goes under it. */
bool pfs_span_is_sorted(struct pfs_tree *tree, uint32_t directory);
void pfs_span_note_sorted(struct pfs_tree *tree, uint32_t directory);

/* Whether ascending slots of the whole tree, a few strays aside, are its pre-order, children in byte
 * order: as it was found and noted.  Who gets a place or a name strays from then on; when many do, or a
 * directory moves with what lies in it, nothing is known again. */
#define PFS_STRAYS_MAX 4096u
enum pfs_slot_order { PFS_ORDER_UNKNOWN, PFS_ORDER_ASCENDING, PFS_ORDER_OTHER };
enum pfs_slot_order pfs_spans_order(struct pfs_tree *tree);
/* ASCENDING: how many strays there are from `slot` on, and these, ascending; valid as long as the tree is
 * held. */
size_t pfs_spans_strays(struct pfs_tree *tree, const uint32_t **strays, uint32_t slot);
/* Of an unknown order.  n ascending strays are copied, PFS_STRAYS_MAX or fewer. */
void pfs_spans_note_order(struct pfs_tree *tree, enum pfs_slot_order order, const uint32_t *strays,
			  size_t n);

#endif
