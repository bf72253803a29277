/* SPDX-License-Identifier: MIT */
/* fs/content/content.h - chunks that the store does not have yet, and what operations on nodes ask of
 * content.
 *
 * Locks: the content lock, before tree->lock; each function says what its caller holds. */
#ifndef PFS_FS_CONTENT_CONTENT_H
#define PFS_FS_CONTENT_CONTENT_H

#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"
#include "meta/store.h"

/* Beyond what a file can be: st_size of the largest file that chunk numbers and off_t allow. */
#define PFS_FILE_SIZE_MAX (INT64_MAX - PFS_CHUNK_SIZE)

PFS_MUST_CHECK int pfs_content_create(struct pfs_tree *tree);
void pfs_content_destroy(struct pfs_tree *tree);

/* Truncation, for setattr.  prepare, without locks: waits, and loads what the new end cuts through.
 * On success it returns with the content lock HELD, so that nothing changes before set: take
 * tree->lock, look at the node again, call set (or not), unlock that, end.  -EFBIG, -ENODATA, -ESTALE,
 * -EINVAL (no regular file), and what reserve and the store say.
 * set, with both locks: cannot fail; updates size and blocks, touches the row. */
PFS_MUST_CHECK int pfs_content_prepare_size(struct pfs_tree *tree, uint64_t ino, int64_t size);
void pfs_content_set_size(struct pfs_tree *tree, uint32_t slot, int64_t size);
/* Gives the content lock back, and with it what prepare made ready, if it was called. */
void pfs_content_end_size(struct pfs_tree *tree);

#endif
