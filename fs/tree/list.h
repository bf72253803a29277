/* SPDX-License-Identifier: MIT */
/* fs/tree/list.h - the paths of a range of slots as text: all cores write pieces of it while those
 * before are given away. */
#ifndef PFS_FS_TREE_LIST_H
#define PFS_FS_TREE_LIST_H

#include "fs/tree/internal.h"

/* The absolute paths of the nodes in slots from..to, in the order of slots, as pfs_tree_list gives them,
 * in the caller's thread; flags: enum pfs_list_flag.  A few megabytes are written ahead.  tree->lock is
 * held for reading.  -ENOMEM. */
PFS_MUST_CHECK int pfs_list_range(struct pfs_tree *tree, uint32_t from, uint32_t to, unsigned flags,
				  int (*fn)(void *arg, const char *bytes, size_t size), void *arg);

#endif
