/* SPDX-License-Identifier: MIT */
/* fs/attr/attrvalue.h - single values of attributes, out of sets and compared. */
#ifndef PFS_FS_ATTR_ATTRVALUE_H
#define PFS_FS_ATTR_ATTRVALUE_H

#include "fs/attr/attrcolumn.h"
#include "fs/attr/attrset.h"

/* Sets *out to the value that the set (NULL: an empty one) has of the attribute, typed as the store
 * types it. Its text is the set's. */
void pfs_attr_value_in(struct pfs_attr_value *out, const struct pfs_value *set, const char *name,
		       size_t name_len);

/* Sets *differ to true if the set has another value of the attribute than the node had when the
 * tree was frozen. An attribute that cannot be read of the frozen tree does not differ. No lock of
 * the live tree is held. -ENOMEM. */
PFS_MUST_CHECK int pfs_attrs_frozen_differ(struct pfs_tree *frozen, struct pfs_tree *live,
					   bool *differ, uint64_t prime,
					   const struct pfs_value *set, const char *name,
					   size_t name_len);

#endif
