/* SPDX-License-Identifier: MIT */
/* meta/format.h - the version of the store's format, and a list of those columns of its table
 * `node` that are plain numbers (docs/FORMAT.md).
 *
 * The store's statements, struct pfs_node_record, the image's arrays, snapshots, image files and
 * optimize take plain numbers from this list. Other columns (primes, parents, slots, modes, flags,
 * times, names, targets) have a meaning for the code, which names each of them. */
#ifndef PFS_META_FORMAT_H
#define PFS_META_FORMAT_H

#include <stdint.h>

/* schema.sql and schema_history.sql are of this version. Each older version has a schema_v<n>.sql,
 * and a schema_history_v<n>.sql if its stores may keep history. */
#define PFS_STORE_SCHEMA 3
#define PFS_OLDER_SCHEMAS(X) X(1) X(2)
#define PFS_OLDER_HISTORIES(X)

/* NUMBER(ID, name, type, since): a number from 0 to the greatest value of the type, but at most
 * INT64_MAX. `since` is the first version of the format with this column; rows of older stores have
 * NULL, which is read as 0. */
#define PFS_NODE_NUMBERS(NUMBER)                                                                   \
	NUMBER(UID, uid, uint32_t, 1)                                                              \
	NUMBER(GID, gid, uint32_t, 1)                                                              \
	NUMBER(SIZE, size, int64_t, 1)	   /* st_size */                                           \
	NUMBER(BLOCKS, blocks, int64_t, 1) /* st_blocks: units of 512 bytes */

/* Makes a string of the macro's value. */
#define PFS_STRING_OF(x)  PFS_STRING_OF_(x)
#define PFS_STRING_OF_(x) #x

#endif
