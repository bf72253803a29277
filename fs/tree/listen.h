/* SPDX-License-Identifier: MIT */
/* fs/tree/listen.h - calls of the tree's listener (tree.h).
 *
 * Locks: tree->listener_lock is held for reading during each call, and for writing while
 * pfs_tree_listen replaces the listener, so the former listener can be freed afterwards. A caller
 * holds neither tree->lock nor the content lock. A listener's functions must not call functions of
 * this header. */
#ifndef PFS_FS_TREE_LISTEN_H
#define PFS_FS_TREE_LISTEN_H

#include "fs/tree/tree.h"

void pfs_listener_create(struct pfs_tree *tree);
void pfs_listener_destroy(struct pfs_tree *tree);

/* Returns the listener, which stays until pfs_listener_put. If there is none, all its functions are
 * NULL. */
const struct pfs_tree_listener *pfs_listener_get(struct pfs_tree *tree);
void pfs_listener_put(struct pfs_tree *tree);

/* Call the listener's function changed, stale or rights_change, if it has one. */
void pfs_tell_changed(struct pfs_tree *tree, uint64_t ino, const char *name);
void pfs_tell_stale(struct pfs_tree *tree, uint64_t ino);
void pfs_tell_rights_change(struct pfs_tree *tree, uint64_t ino);

#endif
