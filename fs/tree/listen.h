/* SPDX-License-Identifier: MIT */
/* fs/tree/listen.h - telling the tree's listener (tree.h).  Whoever tells keeps it for so long:
 * pfs_tree_listen returns when no call of the former one is under way, so that it can be freed then.
 *
 * Locks: one of its own, taken by who tells, who holds neither tree->lock nor the content lock; the
 * listener's functions tell nobody themselves. */
#ifndef PFS_FS_TREE_LISTEN_H
#define PFS_FS_TREE_LISTEN_H

#include "fs/tree/tree.h"

void pfs_listener_create(struct pfs_tree *tree);
void pfs_listener_destroy(struct pfs_tree *tree);

/* Returns the listener, whose functions are all NULL if there is none; it stays until put. */
const struct pfs_tree_listener *pfs_listener_get(struct pfs_tree *tree);
void pfs_listener_put(struct pfs_tree *tree);

/* Call the function of that name, if there is one. */
void pfs_tell_changed(struct pfs_tree *tree, uint64_t ino, const char *name);
void pfs_tell_stale(struct pfs_tree *tree, uint64_t ino);
void pfs_tell_rights_change(struct pfs_tree *tree, uint64_t ino);

#endif
