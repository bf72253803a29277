/* SPDX-License-Identifier: MIT */
/* fs/image/newest.h - for the totals: the newest children of a few wide directories, remembered.
 *
 * Where clients set times back one file after the other (archives being unpacked, copies that keep
 * times), the newest child of a directory goes again and again, and finding the next would look at
 * all of them each time.  Instead the newest few thousand are kept in a heap: no child outside it is
 * newer than the heap's floor, and one that has changed or left meanwhile is thrown away when it
 * comes to the top.  All children are looked at again only when the heap has run empty.
 *
 * Threads: tree->lock held for writing.  Memory: at most 4 MiB. */
#ifndef PFS_FS_IMAGE_NEWEST_H
#define PFS_FS_IMAGE_NEWEST_H

#include "fs/tree/tree.h"

struct pfs_newest;

PFS_MUST_CHECK int pfs_newest_create(struct pfs_newest **out);
void pfs_newest_destroy(struct pfs_newest *newest); /* NULL is allowed */

/* A child's newest mtime (that of all it holds) has become this, or it has come with it. */
void pfs_newest_note(struct pfs_newest *newest, const struct pfs_tree *tree, uint32_t directory,
		     uint32_t child, int64_t mtime);

/* The newest mtime among the directory's children, INT64_MIN if it has none; none is newer than
 * `most`. */
int64_t pfs_newest_look(struct pfs_newest *newest, const struct pfs_tree *tree, uint32_t directory,
			int64_t most);

/* The directory is gone; nothing that was noted is of use any more. */
void pfs_newest_drop(struct pfs_newest *newest, uint32_t directory);
void pfs_newest_clear(struct pfs_newest *newest);

#endif
