/* SPDX-License-Identifier: MIT */
/* meta/format.h - the version of a store's format, and the columns of its table `node` that are plain
 * numbers (docs/FORMAT.md).
 *
 * A plain number goes by this list alone, from schema.sql up to the table `nodes`: the store's statements,
 * struct pfs_node_record, the image's arrays, snapshots, image files and optimize have what the list has.
 * What needs more than being kept (primes, parents, slots, modes, flags, times, names, targets) is written
 * where it is used. */
#ifndef PFS_META_FORMAT_H
#define PFS_META_FORMAT_H

#include <stdint.h>

/* schema.sql is of this version, and so is schema_history.sql. Each older version has a schema_v<n>.sql, and a
 * schema_history_v<n>.sql if its stores may keep history. */
#define PFS_STORE_SCHEMA 3
#define PFS_OLDER_SCHEMAS(X) X(1) X(2)
#define PFS_OLDER_HISTORIES(X)

/* NUMBER(ID, name, type, since): a number from 0 to the most that the type holds, or INT64_MAX.
 * `since` is the version of the format that brought the column; in rows of older stores it is NULL,
 * which reads as 0. */
#define PFS_NODE_NUMBERS(NUMBER)                                                                   \
	NUMBER(UID, uid, uint32_t, 1)                                                              \
	NUMBER(GID, gid, uint32_t, 1)                                                              \
	NUMBER(SIZE, size, int64_t, 1)	   /* st_size */                                           \
	NUMBER(BLOCKS, blocks, int64_t, 1) /* st_blocks: units of 512 bytes */

/* Makes a string of the macro's value. */
#define PFS_STRING_OF(x)  PFS_STRING_OF_(x)
#define PFS_STRING_OF_(x) #x

#endif
