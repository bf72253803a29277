/* SPDX-License-Identifier: MIT */
/* fs/image/image_copy.h - a copy of the image as it was at one moment: what a snapshot has, taken
 * out of the live image without its lock, so that code reads it as it reads any image.
 *
 * Its columns, and which slots are live, are its own. Names are the live image's, which keeps their
 * bytes as long as the snapshot is open. Nodes are found by their primes in the live image's table.
 * The index of names is made when it is first asked for. There are no states and no references;
 * rare values are looked up in the live image.
 *
 * Threads: any number of readers. pfs_image_copy_slot and pfs_image_copy_rare take the live tree's
 * lock for a moment, so their caller does not hold it. */
#ifndef PFS_FS_IMAGE_IMAGE_COPY_H
#define PFS_FS_IMAGE_IMAGE_COPY_H

#include "fs/image/image.h"
#include "fs/image/rare_values.h"

/* Makes an image with nothing in it yet. It will have these columns (bits) of the live tree's, and
 * PARENT, NAME, MODE, PRIME and LIVE in any case. No lock is held. -ENOMEM; to be closed all the
 * same. */
PFS_MUST_CHECK int pfs_image_copy_open(struct pfs_tree *tree, struct pfs_tree *live,
				       unsigned columns);
/* Decides that it is to be what the live image is now; the live tree is held for reading. *number
 * is the snapshot's. -ENOMEM. */
PFS_MUST_CHECK int pfs_image_copy_begin(struct pfs_tree *tree, uint64_t *number);
/* Copies the columns; the live tree is not held. poll (NULL: none) is called between pieces; if it
 * returns non-zero, this is -EINTR. -ENOMEM, also if the snapshot was given up. */
PFS_MUST_CHECK int pfs_image_copy_fill(struct pfs_tree *tree, int (*poll)(void *arg), void *arg);
void pfs_image_copy_close(struct pfs_tree *tree);

/* Return the bytes that an image of so many slots takes, and those that this one does. */
uint64_t pfs_image_copy_size(unsigned columns, uint32_t slots);
uint64_t pfs_image_copy_bytes(const struct pfs_tree *tree);

/* Returns true if what was read since may be wrong, because memory was short: the statement has to
 * end. */
bool pfs_image_copy_is_lost(const struct pfs_tree *tree);

/* Returns which of these columns differ between the copy and the live image at the slot; all, if
 * the slot is newer. Only columns that the copy has are compared, and never LIVE. The live tree is
 * held. */
unsigned pfs_image_copy_changed(const struct pfs_tree *tree, uint32_t slot, unsigned columns);

/* ---- for image.c ---- */

uint32_t pfs_image_copy_slot(const struct pfs_tree *tree, uint64_t ino);
struct pfs_btree *pfs_image_copy_index(const struct pfs_tree *tree);
bool pfs_image_copy_rare(const struct pfs_image *image, struct pfs_rare_values *out, uint32_t slot);

#endif
