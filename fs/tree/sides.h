/* SPDX-License-Identifier: MIT */
/* fs/tree/sides.h - what the store keeps beside the hierarchy: side tables.
 *
 * One change of them at a time; each is a group of its own, which the committer writes between two of
 * the image's (the store has one writing thread).  Reads see what is committed. */
#ifndef PFS_FS_TREE_SIDES_H
#define PFS_FS_TREE_SIDES_H

#include "fs/tree/tree.h"
#include "meta/store.h"

/* Of all side tables together: another number after every change.  Any lock or none. */
uint64_t pfs_sides_version(const struct pfs_tree *tree);

/* Whoever changes tables, from looking at them to the end of commit. */
void pfs_sides_hold(struct pfs_tree *tree);
void pfs_sides_release(struct pfs_tree *tree);

/* Has the committer begin a group, call write in it, and commit; durable on return.  Held.
 * bytes: about how much write will write.  What write returns undoes the group and is returned;
 * -EROFS, -ENOSPC, and what the store says. */
PFS_MUST_CHECK int pfs_sides_commit(struct pfs_tree *tree, uint64_t bytes,
				    int (*write)(void *arg, struct pfs_store *store), void *arg);

/* Calls read, which returns what this returns; no change is committed meanwhile. */
PFS_MUST_CHECK int pfs_sides_read(struct pfs_tree *tree,
				  int (*read)(void *arg, struct pfs_store *store), void *arg);

/* ---- for the tree ---- */

PFS_MUST_CHECK int pfs_sides_create(struct pfs_tree *tree);
void pfs_sides_destroy(struct pfs_tree *tree);

#endif
