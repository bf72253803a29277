/* SPDX-License-Identifier: MIT */
/* fs/attr/xattr.h - attribute records that the store does not have yet.
 *
 * Locks: the content lock. */
#ifndef PFS_FS_ATTR_XATTR_H
#define PFS_FS_ATTR_XATTR_H

#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"

PFS_MUST_CHECK int pfs_attrs_create(struct pfs_tree *tree);
void pfs_attrs_destroy(struct pfs_tree *tree);
/* For attrcolumn.c: the columns; and fn for each node whose attributes the store does not have yet, the
 * content lock held. */
struct pfs_attr_columns *pfs_attrs_columns(const struct pfs_tree *tree);
struct pfs_value;
/* The node's set; NULL when it has none.  -ESTALE, and what the store says.  No lock. */
PFS_MUST_CHECK int pfs_attr_set_of(struct pfs_tree *tree, struct pfs_value **out, uint64_t ino);
PFS_MUST_CHECK int pfs_attrs_pending(struct pfs_tree *tree,
				     int (*fn)(void *arg, uint64_t prime, struct pfs_value *set),
				     void *arg);

#endif
