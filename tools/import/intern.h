/* SPDX-License-Identifier: MIT */
/* tools/import/intern.h - byte strings numbered 0, 1, 2, ... in order of their first appearance. */
#ifndef PFS_TOOLS_IMPORT_INTERN_H
#define PFS_TOOLS_IMPORT_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_intern {
	char *bytes;
	size_t size, capacity;
	size_t *end; /* of string i in bytes; it begins where the one before ends */
	size_t n, end_capacity;
	uint32_t *table; /* number + 1, 0: empty */
	size_t table_size;
};

/* Sets *number to the string's number, and adds it if it is new. -ENOMEM; -EOVERFLOW: there would be
 * more than 2^32 - 2 strings. */
PFS_MUST_CHECK int pfs_intern_add(struct pfs_intern *intern, uint32_t *number, const void *bytes,
				  size_t len);

/* Returns the string of that number. */
const char *pfs_intern_get(const struct pfs_intern *intern, size_t *len, uint32_t number);
void pfs_intern_free(struct pfs_intern *intern);

#endif
