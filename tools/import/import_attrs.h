/* SPDX-License-Identifier: MIT */
/* tools/import/import_attrs.h - extended attributes that wait until their nodes have primes, in
 * groups that whoever adds them numbers. */
#ifndef PFS_TOOLS_IMPORT_IMPORT_ATTRS_H
#define PFS_TOOLS_IMPORT_IMPORT_ATTRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "meta/store.h"

struct pfs_attr_list {
	struct pfs_attr_item {
		uint64_t offset; /* of name and value in bytes */
		uint32_t group;
		uint32_t value_len;
		uint8_t name_len;
	} * items;
	size_t n, capacity;
	char *bytes;
	size_t n_bytes, bytes_capacity;
	bool sorted;
};

/* Adds user.NAME, text; the last value of a name counts.  -EINVAL: there can be no such attribute.
 */
PFS_MUST_CHECK int pfs_attr_list_add(struct pfs_attr_list *list, uint32_t group, const void *name,
				     size_t name_len, const void *value, size_t value_len);

/* Puts a group's attributes into the store as those of a node, more than one if need be.  Nothing
 * is added any more. */
PFS_MUST_CHECK int pfs_attr_list_put(struct pfs_attr_list *list, struct pfs_store *store,
				     uint32_t group, uint64_t prime);
void pfs_attr_list_free(struct pfs_attr_list *list);

#endif
