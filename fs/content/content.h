/* SPDX-License-Identifier: MIT */
/* fs/content/content.h - chunks that the store does not have yet: their lock, the committer's
 * protocol, and what operations on nodes ask of content.
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
void pfs_content_lock(struct pfs_tree *tree);
void pfs_content_unlock(struct pfs_tree *tree);

/* Called by the committer. cut: with the content lock and tree->lock: what is dirty becomes the
 * group being written.  write: between begin and commit of the store, without locks, may be repeated
 * after a failed group.  done: the group is committed; takes the content lock itself.
 * Chunks and source records go this way; whatever is dirty counts in pfs_journal_pending. */
void pfs_content_cut(struct pfs_tree *tree);
PFS_MUST_CHECK int pfs_content_write(struct pfs_tree *tree);
void pfs_content_done(struct pfs_tree *tree);

/* Truncation, for setattr.  prepare, without locks: waits, and loads what the new end cuts through.
 * On success it returns with the content lock HELD, so that nothing changes before set: take
 * tree->lock, look at the node again, call set (or not), unlock both.  -EFBIG, -ENODATA, -ESTALE,
 * -EINVAL (no regular file), and what reserve and the store say.
 * set, with both locks: cannot fail; updates size and blocks, touches the row. */
PFS_MUST_CHECK int pfs_content_prepare_size(struct pfs_tree *tree, uint64_t ino, int64_t size);
void pfs_content_set_size(struct pfs_tree *tree, uint32_t slot, int64_t size);

/* Before the last name of a node goes, without locks: loads what the store forgets together with
 * the record (attributes, source), so that the node stays whole while it is referenced.  Costs
 * nothing for nodes without. */
PFS_MUST_CHECK int pfs_content_keep(struct pfs_tree *tree, uint64_t ino);

/* Forget everything about a node that is gone (both locks held). */
void pfs_content_drop(struct pfs_tree *tree, uint64_t ino);

#endif
