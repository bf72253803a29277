/* SPDX-License-Identifier: MIT */
/* fs/query/tables.h - the side tables of a store, whole, as CSV: RFC 4180, a header line with the
 * columns' names, LF or CRLF read, CRLF written, an empty field without quotes is NULL.
 *
 * Names of tables and columns are UTF-8 without control characters, 1 to 250 bytes, compared as SQL
 * does: a to z and A to Z are the same.  A table's name has neither '/' nor '"', does not begin
 * with '.' or "sqlite_", and is neither `nodes` nor a function's that statements read as a table. A
 * store of an earlier version may have a table of such a reserved name, which is there to be
 * removed.
 *
 * Threads: any number of callers. */
#ifndef PFS_FS_QUERY_TABLES_H
#define PFS_FS_QUERY_TABLES_H

#include "fs/query/output/answer.h"

#define PFS_TABLE_NAME_MAX 250 /* bytes: ".csv" fits behind it */

/* Calls fn for the name of each table that statements can see, or that is reserved, in byte order,
 * until it returns non-zero, which is returned.  Tables are not opened for it: a name costs a few
 * microseconds, however many there are. */
PFS_MUST_CHECK int pfs_tables_names(struct pfs_queries *queries,
				    int (*fn)(void *arg, const char *name), void *arg);

/* Returns 0 if pfs_tables_names would name the table, without opening it; -ENOENT. */
PFS_MUST_CHECK int pfs_table_is_there(struct pfs_queries *queries, const char *name);

/* Returns 0 if a table can have that name; -EEXIST: it is reserved; -EINVAL, -ENAMETOOLONG. */
PFS_MUST_CHECK int pfs_table_check_name(const char *name);
bool pfs_table_is_text(const char *name,
		       size_t len); /* UTF-8 without control characters, not empty */

/* Writes the table as CSV, as it is at one moment. -ENOENT, or what the sink returns; -EINVAL: its
 * name is reserved. */
PFS_MUST_CHECK int pfs_table_export(struct pfs_queries *queries, const char *name,
				    const struct pfs_sink *sink, struct pfs_query_error *error);

/* Where the bytes of a table come from. read works as pread(2) does; all bytes are read twice.
 * (pfs_answer_read is such a function, with an answer as arg.) */
struct pfs_table_bytes {
	void *arg;
	ssize_t (*read)(void *arg, void *data, size_t size, uint64_t offset);
};

/* Makes the table, or replaces the one of that name, durably; after an error nothing has changed. A
 * column is integer or real if every value in it prints back byte for byte, else text. -EINVAL: the
 * bytes are no such CSV, and error->text names the line; -EEXIST, -EINVAL, -ENAMETOOLONG: errors of
 * pfs_table_check_name; -EFBIG, -EROFS, -ENOSPC, -ENOMEM, -EIO. */
PFS_MUST_CHECK int pfs_table_import(struct pfs_queries *queries, const char *name,
				    const struct pfs_table_bytes *bytes,
				    struct pfs_query_error *error);

/* Removes the table, durably. -ENOENT, -EROFS. */
PFS_MUST_CHECK int pfs_table_drop(struct pfs_queries *queries, const char *name,
				  struct pfs_query_error *error);

#endif
