/* SPDX-License-Identifier: MIT */
/* fs/attr/xattr.h - attribute records that the store does not have yet. The operations on
 * attributes stand in fs/tree/tree.h.
 *
 * Locks: the content lock protects them; each function says what its caller holds. */
#ifndef PFS_FS_ATTR_XATTR_H
#define PFS_FS_ATTR_XATTR_H

#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"

/* Make and free the sets of a tree's nodes, for tree.c: before the tree is shared, and when nobody
 * uses it any more. -ENOMEM. */
PFS_MUST_CHECK int pfs_attrs_create(struct pfs_tree *tree);
void pfs_attrs_destroy(struct pfs_tree *tree);
/* Returns the columns of attributes, for attrcolumn.c. */
struct pfs_attr_columns *pfs_attrs_columns(const struct pfs_tree *tree);
struct pfs_value;
/* Gets the node's set, which the caller drops; NULL if it has none. No lock is held. -ESTALE, and
 * what the store returns. */
PFS_MUST_CHECK int pfs_attr_set_of(struct pfs_tree *tree, struct pfs_value **out, uint64_t ino);
/* Sets an attribute that this program sets by itself, or removes it (text NULL). Any node may have
 * it. If its name is one that users cannot set, nothing of the node changes that anybody else sees,
 * its ctime included. No lock is held. Errors as of pfs_tree_setxattr. */
struct pfs_attr;
PFS_MUST_CHECK int pfs_attr_change_ours(struct pfs_tree *tree, uint64_t ino,
					const struct pfs_attr *attr);
PFS_MUST_CHECK int pfs_attrs_pending(struct pfs_tree *tree,
				     int (*fn)(void *arg, uint64_t prime, struct pfs_value *set),
				     void *arg);

#endif
