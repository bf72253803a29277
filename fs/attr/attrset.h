/* SPDX-License-Identifier: MIT */
/* fs/attr/attrset.h - all extended attributes of a node as one value that never changes: texts in
 * order of names, each with the type that the store keeps it as. A set without attributes is NULL.
 * Threads: any number of readers. */
#ifndef PFS_FS_ATTR_ATTRSET_H
#define PFS_FS_ATTR_ATTRSET_H

#include "fs/journal/records.h"
#include "fs/tree/tree.h"
#include "meta/store.h"

struct pfs_attr {
	const char *name; /* without "user."; not NUL-terminated */
	const void *text;
	uint32_t text_len;
	uint16_t name_len;
	enum pfs_attr_type type;
};

/* Gets the attribute at *at, which is 0 at first and moves on. Returns false at the end. */
bool pfs_attrset_next(const struct pfs_value *set, struct pfs_attr *attr, size_t *at);
bool pfs_attrset_find(const struct pfs_value *set, struct pfs_attr *attr, const char *name,
		      size_t name_len);

/* Sets *out to a new set, the caller's to drop: the old one without the attribute of attr's name
 * and, unless attr's text is NULL, with attr. -ENOMEM. */
PFS_MUST_CHECK int pfs_attrset_change(struct pfs_value **out, const struct pfs_value *set,
				      const struct pfs_attr *attr);

/* Read a node's set from the store, and replace it there. */
PFS_MUST_CHECK int pfs_attrset_load(struct pfs_tree *tree, struct pfs_value **out, uint64_t prime);
PFS_MUST_CHECK int pfs_attrset_store(struct pfs_tree *tree, uint64_t prime,
				     const struct pfs_value *set);

#endif
