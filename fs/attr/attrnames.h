/* SPDX-License-Identifier: MIT */
/* fs/attr/attrnames.h - for the files of fs/attr: the list of names that attributes have or have
 * had, which everybody else reads by pfs_attr_names (attrcolumn.h).
 *
 * Locks: the content lock; n may be read without it, since it only grows. */
#ifndef PFS_FS_ATTR_ATTRNAMES_H
#define PFS_FS_ATTR_ATTRNAMES_H

#include <stdbool.h>

#include "fs/tree/tree.h"
#include "meta/store.h"

struct pfs_attr_name {
	char *bytes;
	size_t len;
	enum pfs_attr_type type;
};

/* A list that is all zeros is empty. */
struct pfs_attr_name_list {
	struct pfs_attr_name *names; /* the oldest first */
	uint32_t *sorted;	     /* their numbers, in byte order */
	size_t capacity, sorted_capacity;
	_Atomic uint64_t n;
};

/* Adds a name; one that is there keeps its type, unless that is TEXT. -ENOMEM. */
PFS_MUST_CHECK int pfs_attr_name_add(struct pfs_attr_name_list *list, const char *bytes, size_t len,
				     enum pfs_attr_type type);
/* Adds all names of the store and its registers. What the store returns; -ENOMEM. */
PFS_MUST_CHECK int pfs_attr_names_load(struct pfs_attr_name_list *list, struct pfs_tree *tree);
void pfs_attr_name_list_finish(struct pfs_attr_name_list *list);

#endif
