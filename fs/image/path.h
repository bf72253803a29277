/* SPDX-License-Identifier: MIT */
/* fs/image/path.h - what follows from a node's ancestors: containment, depth, the length of a code.
 *
 * Locks: any lock on the tree. */
#ifndef PFS_FS_IMAGE_PATH_H
#define PFS_FS_IMAGE_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"

struct pfs_image;

/* Whether `slot` is `top` or lies under it: one divisibility test.  Any lock on the tree; neither
 * is unlinked. */
bool pfs_image_is_under(const struct pfs_tree *tree, uint32_t slot, uint32_t top);

/* How many directories lie above the node.  Climbs only as far as to the first one whose depth is known, and
 * notes what it has met; readers may do so at once.  Any lock on the tree; it is not unlinked. */
uint32_t pfs_image_depth(const struct pfs_image *image, uint32_t slot);

/* The length of the node's code in bits.  Under the lock.  -ENOMEM. */
PFS_MUST_CHECK int pfs_image_code_bits(const struct pfs_tree *tree, uint32_t *bits, uint32_t slot);

#endif
