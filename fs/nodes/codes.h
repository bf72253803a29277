/* SPDX-License-Identifier: MIT */
/* fs/nodes/codes.h - the engine beside the image: sets of nodes by their codes.
 *
 * Locks: a lock of its own, before tree->lock. */
#ifndef PFS_FS_NODES_CODES_H
#define PFS_FS_NODES_CODES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"
#include "gpu/engine.h"

PFS_MUST_CHECK int pfs_codes_create(struct pfs_tree *tree);
void pfs_codes_destroy(struct pfs_tree *tree);

/* Begins a question: *engine knows the image as it is, and the image stays so until end, tree->lock
 * being held for reading.  -ENODEV, -ENOMEM. */
PFS_MUST_CHECK int pfs_codes_begin(struct pfs_tree *tree, struct pfs_engine **engine);
void pfs_codes_end(struct pfs_tree *tree);

/* The same for who holds tree->lock for reading already and goes on holding it; therefore it never
 * waits: -EBUSY when another question is being answered, for the first few while the engine
 * is empty, unless it was chosen, and where there is too much to tell it; that is then `wanted`. */
PFS_MUST_CHECK int pfs_codes_try(struct pfs_tree *tree, struct pfs_engine **engine);
void pfs_codes_release(struct pfs_tree *tree);
/* Tells the engine what was wanted, if anything, and nobody else is at it.  The tree is not held. */
void pfs_codes_prepare_wanted(struct pfs_tree *tree);
/* As of pfs_tree_engine. */
PFS_MUST_CHECK int pfs_codes_describe(struct pfs_tree *tree, struct pfs_engine_info *info);
/* Whether a device answers, or was asked for. */
bool pfs_codes_use_device(struct pfs_tree *tree);

#endif
