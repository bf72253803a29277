/* SPDX-License-Identifier: MIT */
/* fs/content/filesystem.h - which filesystem was mounted at a directory of a source: an attribute
 * of the directory's node (PFS_FILESYSTEM), which only this program sets and sees.
 *
 * A filesystem is known by a number that it has on its disk, so that it keeps it when the machine
 * restarts, or is another one.  Those that have none (tmpfs, network filesystems, those that FUSE
 * serves) are not told from each other by it.
 *
 * Threads: any number.  Locks: none held by the caller. */
#ifndef PFS_FS_CONTENT_FILESYSTEM_H
#define PFS_FS_CONTENT_FILESYSTEM_H

#include "fs/tree/tree.h"

#define PFS_FILESYSTEM		 "primefs.filesystem" /* the attribute, without "user." */
#define PFS_FILESYSTEM_TEXT_SIZE 17

/* Returns the number of the filesystem that the descriptor, which is not O_PATH, is of; 0: it has
 * none. */
uint64_t pfs_filesystem_of(int fd);

/* Writes the attribute's text. */
void pfs_filesystem_print(char out[PFS_FILESYSTEM_TEXT_SIZE], uint64_t filesystem);

/* Gets the number that the node has; 0: none. -ESTALE, and what reading attributes returns. */
PFS_MUST_CHECK int pfs_filesystem_get(struct pfs_tree *tree, uint64_t *filesystem, uint64_t ino);
/* Sets it, if it has another one. -ESTALE, and what changing attributes returns. */
PFS_MUST_CHECK int pfs_filesystem_set(struct pfs_tree *tree, uint64_t ino, uint64_t filesystem);

#endif
