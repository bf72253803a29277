/* SPDX-License-Identifier: MIT */
/* fs/attr/attrscan.h - for fs/attr/attrcolumn.h: a column of attributes, read from the store. */
#ifndef PFS_FS_ATTR_ATTRSCAN_H
#define PFS_FS_ATTR_ATTRSCAN_H

#include "fs/attr/attrfile.h"

/* Gets the column of that name. Each text is one of its own, which the caller frees; out->texts is
 * NULL. Values that are the same may be there several times. What changes meanwhile has to be noted
 * already. No lock is held; the tree is held for moments. -ENOMEM, and what the store returns. */
PFS_MUST_CHECK int pfs_attrscan_read(struct pfs_tree *tree, struct pfs_attrfile_column *out,
				     const char *name, size_t name_len);

#endif
