/* SPDX-License-Identifier: MIT */
/* fs/nodes/codes.h - sets of nodes by their codes: the engine (gpu/engine.h) beside the image, and
 * how it follows that.
 *
 * Locks: a lock of its own, taken before tree->lock, by whoever brings the engine up to date. While
 * a question is answered either tree->lock is held, for reading, or a lease of the engine is, which
 * changes of the tree do not wait for: any number of threads ask at once. */
#ifndef PFS_FS_NODES_CODES_H
#define PFS_FS_NODES_CODES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"
#include "gpu/engine.h"

PFS_MUST_CHECK int pfs_codes_create(struct pfs_tree *tree);
void pfs_codes_destroy(struct pfs_tree *tree);

/* Begins a question: *engine knows the image as it is, and the image stays so until
 * pfs_codes_let_go, tree->lock being held for reading; the engine stays so until pfs_codes_end. The
 * thread may begin no other question in between. -ENODEV, -ENOMEM; -EAGAIN: the tree changes faster
 * than the engine follows it; nothing is held then. */
PFS_MUST_CHECK int pfs_codes_begin(struct pfs_tree *tree, struct pfs_engine **engine);
void pfs_codes_let_go(struct pfs_tree *tree);
void pfs_codes_end(struct pfs_tree *tree); /* after pfs_codes_let_go */

/* lock, while the tree is not held, lets nobody bring the engine up to date until unlock
 * (tests). */
void pfs_codes_lock(struct pfs_tree *tree);
void pfs_codes_unlock(struct pfs_tree *tree);
/* Reads the set as bits by slot, in words up to `end`, which the caller frees. -ENOMEM, and the
 * engine's errors. */
PFS_MUST_CHECK int pfs_codes_bits(uint64_t **out, const struct pfs_bitmap *set, uint32_t end);

/* As pfs_codes_begin, for a caller that holds tree->lock for reading already and goes on holding
 * it, which is all that it has to do; therefore it never waits. -EBUSY: somebody else brings the
 * engine up to date; the tree is frozen; the engine is AUTO, does not follow the tree yet, and this
 * is one of the first 16 questions; or it is too far behind (pfs_codes_prepare_wanted then catches
 * up). */
PFS_MUST_CHECK int pfs_codes_try(struct pfs_tree *tree, struct pfs_engine **engine);
/* Brings the engine up to date if pfs_codes_try found it too far behind, and nobody else does. The
 * tree is not held. */
void pfs_codes_prepare_wanted(struct pfs_tree *tree);
/* Describes the engine; see pfs_tree_engine. */
PFS_MUST_CHECK int pfs_codes_describe(struct pfs_tree *tree, struct pfs_engine_info *info);
/* As pfs_codes_describe; see pfs_tree_engine_now. */
PFS_MUST_CHECK int pfs_codes_describe_now(struct pfs_tree *tree, struct pfs_engine_info *info);
/* Returns true if the engine is on a device, or is to be (--engine=cuda). Otherwise use the
 * subtree's ranges of slots: starting a device takes longer. */
bool pfs_codes_use_device(struct pfs_tree *tree);

#endif
