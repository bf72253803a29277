/* SPDX-License-Identifier: MIT */
/* fs/nodes/visible_open.h - for visible.c: the directories whose entries a viewer can reach, as a
 * bit a slot.
 *
 * They are found by one pass, in pieces if others are to have the tree in between, and then follow
 * what directories have changed (struct pfs_image, recent_access), so that a change costs no other
 * pass.
 *
 * Locks: tree->lock for reading. A struct is one thread's as long as it changes. */
#ifndef PFS_FS_NODES_VISIBLE_OPEN_H
#define PFS_FS_NODES_VISIBLE_OPEN_H

#include <sys/stat.h>

#include "fs/image/image.h"
#include "fs/nodes/visible.h"

static inline bool pfs_slot_bit(const uint64_t *bits, uint32_t slot)
{
	return bits[slot / 64] >> slot % 64 & 1;
}

static inline void pfs_slot_bit_set(uint64_t *bits, uint32_t slot)
{
	bits[slot / 64] |= UINT64_C(1) << slot % 64;
}

static inline bool pfs_visible_directory(const struct pfs_image *image, uint32_t slot)
{
	return S_ISDIR(image->mode[slot]) && pfs_image_is_live(image, slot);
}

struct pfs_open {
	uint64_t *bits; /* by slot; owned */
	uint32_t end; /* slots that bits has, at least */
	uint64_t access; /* the image's, at which they are right */
};

/* Returns true if the node itself lets the viewer do all of `what`: R_OK, W_OK, X_OK. */
bool pfs_viewer_may(const struct pfs_image *image, const struct pfs_viewer *viewer, uint32_t slot,
		    unsigned what);

/* Finds them. lets_others: in many short holds, which end and begin here. -EAGAIN: more changed
 * meanwhile than is remembered, or than may be followed in one hold; -ENOMEM. pfs_open_finish is
 * called in any case. */
PFS_MUST_CHECK int pfs_open_find(struct pfs_open *open, struct pfs_tree *tree,
				 const struct pfs_viewer *viewer, bool lets_others);
/* Makes *open what `before`, of the same viewer, is by now. As pfs_open_find. */
PFS_MUST_CHECK int pfs_open_copy(struct pfs_open *open, const struct pfs_tree *tree,
				 const struct pfs_viewer *viewer, const struct pfs_open *before);
void pfs_open_finish(struct pfs_open *open);
/* Returns true if they are found in one hold, at once. */
bool pfs_open_is_little(const struct pfs_tree *tree);

/* For tests: looks at so many slots in a hold, and follows at most so many entries. 0: as many as
 * ever. */
void pfs_open_set_piece(uint32_t slots, uint32_t entries);

#endif
