/* SPDX-License-Identifier: MIT */
/* fs/content/content.h - content of files: the module's life, and truncation. Chunks that the store
 * does not have yet are kept in memory (content_impl.h).
 *
 * Locks: the content lock, which comes before tree->lock; each function says what its caller
 * holds. */
#ifndef PFS_FS_CONTENT_CONTENT_H
#define PFS_FS_CONTENT_CONTENT_H

#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"
#include "meta/store.h"

/* The st_size of the largest file that chunk numbers and off_t allow. */
#define PFS_FILE_SIZE_MAX (INT64_MAX - PFS_CHUNK_SIZE)

/* Make and free the tree's content, for tree.c: before the tree is shared, and when nobody uses it
 * any more. -ENOMEM. */
PFS_MUST_CHECK int pfs_content_create(struct pfs_tree *tree);
void pfs_content_destroy(struct pfs_tree *tree);

/* Truncation, for setattr, in three steps. prepare_size is called without locks: it waits, and
 * loads the chunk that the new end cuts through. On success it returns with the content lock HELD,
 * so that nothing changes before set_size. The caller takes tree->lock, looks at the node again,
 * calls set_size or not, lets go of tree->lock, and calls end_size. set_size needs both locks and
 * cannot fail; it updates size and blocks and touches the row. prepare_size returns -EFBIG,
 * -ENODATA, -ESTALE; -EINVAL: it is no regular file; and what reserving and the store return. */
PFS_MUST_CHECK int pfs_content_prepare_size(struct pfs_tree *tree, uint64_t ino, int64_t size);
void pfs_content_set_size(struct pfs_tree *tree, uint32_t slot, int64_t size);
/* Gives the content lock back, and frees what pfs_content_prepare_size made ready. */
void pfs_content_end_size(struct pfs_tree *tree);

#endif
