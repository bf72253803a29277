/* SPDX-License-Identifier: MIT */
/* fs/image/path.h - what follows from a node's ancestors: whether it lies under another, its depth,
 * its path, the length of its code.
 *
 * Locks: any lock on the tree. */
#ifndef PFS_FS_IMAGE_PATH_H
#define PFS_FS_IMAGE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"

struct pfs_image;

/* Returns true if `slot` is `top` or lies under it, by one test of divisibility. Neither is
 * unlinked. */
bool pfs_image_is_under(const struct pfs_tree *tree, uint32_t slot, uint32_t top);

/* Returns how many directories lie above the node, which is not unlinked. Climbs only to the first
 * directory whose depth is known, and notes the depths that it has met; readers may do so at
 * once. */
uint32_t pfs_image_depth(const struct pfs_image *image, uint32_t slot);

/* Returns the length in bytes of the node's path below the directory with the prime `top` (or below
 * the root, if `top` is not above the node). The path begins with a slash; for the directory itself
 * it has 0 bytes. Unless out is NULL, writes the path so that it ends just before `out`. */
size_t pfs_path_write(const struct pfs_image *image, char *out, uint64_t top, uint32_t slot);

/* Gets the length of the node's code in bits. -ENOMEM. */
PFS_MUST_CHECK int pfs_image_code_bits(const struct pfs_tree *tree, uint32_t *bits, uint32_t slot);

#endif
