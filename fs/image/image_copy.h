/* SPDX-License-Identifier: MIT */
/* fs/image/image_copy.h - a copy of the image as it was at one moment: what a snapshot has, taken out of the live image
 * without its lock, for code that reads an image to read it as any other.
 *
 * Its columns and which slots are live are its own; names are the live image's, which keeps their bytes as
 * long as the snapshot is open. Nodes are found by their primes in the live image's table, and the index of
 * names is made when it is first asked for. It has no states and no references; rare
 * values are looked up in the live image.
 *
 * Threads: any number of readers. The live tree's lock is taken for a moment by pfs_image_copy_slot and
 * pfs_image_copy_rare, so whoever calls them does not hold it. */
#ifndef PFS_FS_IMAGE_IMAGE_COPY_H
#define PFS_FS_IMAGE_IMAGE_COPY_H

#include "fs/image/image.h"
#include "fs/image/rare_values.h"

/* An image with nothing in it yet, that will have these columns (bits) of the live tree's, and PARENT, NAME, MODE,
 * PRIME and LIVE in any case. No lock. -ENOMEM; close it all the same. */
PFS_MUST_CHECK int pfs_image_copy_open(struct pfs_tree *tree, struct pfs_tree *live, unsigned columns);
/* It becomes what the live image is now, whose lock is held for reading. *number is the snapshot's. -ENOMEM. */
PFS_MUST_CHECK int pfs_image_copy_begin(struct pfs_tree *tree, uint64_t *number);
/* Copies the columns. The live tree is not held. poll (NULL: none) is asked between pieces; not 0 ends it with
 * -EINTR. -ENOMEM (also: the snapshot was given up). */
PFS_MUST_CHECK int pfs_image_copy_fill(struct pfs_tree *tree, int (*poll)(void *arg), void *arg);
void pfs_image_copy_close(struct pfs_tree *tree);

/* Bytes that an image of so many slots takes; that this one does. */
uint64_t pfs_image_copy_size(unsigned columns, uint32_t slots);
uint64_t pfs_image_copy_bytes(const struct pfs_tree *tree);

/* True: what was read since may be wrong, since memory was short; the statement has to end. */
bool pfs_image_copy_is_lost(const struct pfs_tree *tree);

/* ---- for image.c ---- */

uint32_t pfs_image_copy_slot(const struct pfs_tree *tree, uint64_t ino);
struct pfs_btree *pfs_image_copy_index(const struct pfs_tree *tree);
bool pfs_image_copy_rare(const struct pfs_image *image, struct pfs_rare_values *out, uint32_t slot);

#endif
