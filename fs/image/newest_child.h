/* SPDX-License-Identifier: MIT */
/* fs/image/newest_child.h - for the totals: remembers the newest children of a few wide
 * directories.
 *
 * Clients that set times back one file after the other (archives being unpacked, copies that keep
 * times) take away the newest child of a directory again and again, and finding the next would look
 * at all children each time. Instead the newest few thousand are kept in a heap: no child outside
 * it is newer than the heap's floor, and one that has changed or left meanwhile is thrown away when
 * it comes to the top. All children are looked at again only when the heap has run empty.
 *
 * Locks: tree->lock, held for writing. Memory: at most 4 MiB. */
#ifndef PFS_FS_IMAGE_NEWEST_CHILD_H
#define PFS_FS_IMAGE_NEWEST_CHILD_H

#include "fs/tree/tree.h"

struct pfs_newest;

PFS_MUST_CHECK int pfs_newest_create(struct pfs_newest **out);
void pfs_newest_destroy(struct pfs_newest *newest); /* NULL is allowed */

/* Notes that a child's newest mtime (that of all it holds) has become this, or that the child has
 * come with it. */
void pfs_newest_note(struct pfs_newest *newest, const struct pfs_tree *tree, uint32_t directory,
		     uint32_t child, int64_t mtime);

/* Returns the newest mtime among the directory's children, none of which is newer than `most`;
 * INT64_MIN if it has none. */
int64_t pfs_newest_look(struct pfs_newest *newest, const struct pfs_tree *tree, uint32_t directory,
			int64_t most);

/* Forgets a directory that is gone. */
void pfs_newest_drop(struct pfs_newest *newest, uint32_t directory);
void pfs_newest_clear(struct pfs_newest *newest);

#endif
