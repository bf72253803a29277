/* SPDX-License-Identifier: MIT */
/* fs/tree/sides.h - what the store keeps beside the hierarchy: side tables.
 *
 * They are changed one change at a time. Each is a group of its own, which the committer writes
 * between two of the image's, since the store has one writing thread. Reads see what is
 * committed. */
#ifndef PFS_FS_TREE_SIDES_H
#define PFS_FS_TREE_SIDES_H

#include "fs/tree/tree.h"
#include "meta/store.h"

/* Returns a number that is another one after every change of any side table. Any lock or none. */
uint64_t pfs_sides_version(const struct pfs_tree *tree);

/* Held by whoever changes tables, from looking at them to the end of commit. */
void pfs_sides_hold(struct pfs_tree *tree);
void pfs_sides_release(struct pfs_tree *tree);

/* Makes the committer begin a group, call write in it, and commit; durable on return.
 * pfs_sides_hold is held. bytes: about how much write will write. If write returns non-zero, the
 * group is undone, and that is returned; -EROFS, -ENOSPC, and what the store returns. */
PFS_MUST_CHECK int pfs_sides_commit(struct pfs_tree *tree, uint64_t bytes,
				    int (*write)(void *arg, struct pfs_store *store), void *arg);

/* Calls read and returns what it returns; no change is committed meanwhile. */
PFS_MUST_CHECK int pfs_sides_read(struct pfs_tree *tree,
				  int (*read)(void *arg, struct pfs_store *store), void *arg);

/* ---- for the tree ---- */

PFS_MUST_CHECK int pfs_sides_create(struct pfs_tree *tree);
void pfs_sides_destroy(struct pfs_tree *tree);

#endif
