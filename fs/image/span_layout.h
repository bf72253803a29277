/* SPDX-License-Identifier: MIT */
/* fs/image/span_layout.h - inside of span.c: what the pass finds, the slots of nodes as they were
 * laid out, and the strays.
 *
 * Locks: the pass has the spans' mutex and tree->lock for reading. Adding a stray takes tree->lock
 * for writing. Questions need it for reading, and a layout that is whole. */
#ifndef PFS_FS_IMAGE_SPAN_LAYOUT_H
#define PFS_FS_IMAGE_SPAN_LAYOUT_H

#include "base/btree.h"
#include "base/reserve.h"
#include "fs/image/image.h"

#define PFS_SPAN_SORTED                                                                            \
	UINT32_C(0x40000000) /* added to an end: children are known to ascend by name */

/* Directories whose slots may still grow, each within those of the one before. */
struct pfs_span_open {
	uint32_t *slot;
	size_t n, capacity;
};

/* The slots of nodes as they were laid out. A directory's slots reach to the end that the pass
 * found; any other node has its own slot alone. Two nodes' slots lie in each other, or apart. */
struct pfs_span_layout {
	/* A bit a slot; not for slots from n on: each node there is a stray. stray_words, behind
	 * them, has a bit for each of those words that is not 0. */
	uint64_t *strays, *stray_words;
	struct pfs_btree *attached; /* pfs_span_attached_key of each stray -> the stray's slot */
	size_t strays_max;
	/* True once the pass has seen all slots. It sees a slot as it is when it comes there; a
	 * later change of that slot is told to the layout as it is to one that is whole. */
	bool is_whole;
	struct pfs_span_open open;
	uint32_t seen, last; /* slots; the last of them that was live */
	uint32_t n;	     /* slots that the pass sees */
	uint32_t *end;	     /* by slot; 0: no directory */
	/* That of `end`, unless it was lent (pfs_spans_lend). Its pages are cleared as the pass
	 * comes to them: calloc may clear all of it at once, in one hold of the tree. */
	struct pfs_reserve memory;
};

/* Has both slots, so that keys alone tell where a stray is among the many of one parent. */
static inline uint64_t pfs_span_attached_key(uint32_t parent, uint32_t slot)
{
	return (uint64_t)parent << 32 | slot;
}

/* Makes a layout of n slots, of which nothing is known and which have no ends. -ENOMEM. */
PFS_MUST_CHECK int pfs_span_layout_create(struct pfs_span_layout **out, uint32_t n);
/* Makes a layout with ends for the image's slots, which a pass fills. -ENOMEM. */
PFS_MUST_CHECK int pfs_span_layout_begin(const struct pfs_image *image,
					 struct pfs_span_layout **out);
void pfs_span_layout_free(struct pfs_span_layout *layout);

/* Has the pass see n_slots more, and sets is_whole after the last. -E2BIG: there are too many
 * strays; -ENOMEM. After either the layout is of no use any more. */
PFS_MUST_CHECK int pfs_span_layout_pass(const struct pfs_image *image,
					struct pfs_span_layout *layout, uint32_t n_slots);
/* pfs_span_layout_stray adds a stray; parent PFS_NO_SLOT: it has none. pfs_span_layout_gone removes
 * one whose parent is no longer attached. Errors as for pfs_span_layout_pass. */
PFS_MUST_CHECK int pfs_span_layout_stray(struct pfs_span_layout *layout, uint32_t slot,
					 uint32_t parent);
void pfs_span_layout_gone(struct pfs_span_layout *layout, uint32_t slot);
/* Returns true if the slot, which has a node, is a stray's. */
bool pfs_span_layout_is_stray(const struct pfs_span_layout *layout, uint32_t slot);

/* Finds the first stray from `slot` on, and before `to`, among the n slots. */
bool pfs_span_layout_next(const struct pfs_span_layout *layout, uint32_t *stray, uint32_t slot,
			  uint32_t to);
/* Returns true if the parent of a stray is in from..to, without `to`. */
bool pfs_span_layout_attached(const struct pfs_span_layout *layout, uint32_t from, uint32_t to);
/* Returns the slot past those of the node, strays' among them. */
uint32_t pfs_span_layout_end(const struct pfs_span_layout *layout, uint32_t slot);
/* Returns true if each node lies where pfs_spans_are_sound (span.h) says. */
bool pfs_span_layout_is_sound(const struct pfs_image *image, const struct pfs_span_layout *layout);

#endif
