/* SPDX-License-Identifier: MIT */
/* fs/query/gather.h - the values of columns of nodes for some slots at a time; inside of fs/query.
 *
 * One thread's at a time; any number of them of one query. */
#ifndef PFS_FS_QUERY_GATHER_H
#define PFS_FS_QUERY_GATHER_H

#include "fs/query/internal.h"

struct pfs_gathered;

PFS_MUST_CHECK int pfs_gathered_open(struct pfs_gathered **out, struct pfs_query *query); /* -ENOMEM */
/* Another one, of the n columns listed alone, whatever locks are held.  -ENOMEM. */
PFS_MUST_CHECK int pfs_gathered_copy(struct pfs_gathered **out, const struct pfs_gathered *of,
				   const int *columns, size_t n);
void pfs_gathered_close(struct pfs_gathered *gather); /* NULL is allowed */

/* Wants nothing, and keeps but little memory, which is nobody's, until it goes on for another query of
 * the same connection. */
void pfs_gathered_rest(struct pfs_gathered *gather);
void pfs_gathered_go_on(struct pfs_gathered *gather, struct pfs_query *query);

/* From now on the column is one that rows gathers.  -EAGAIN and -ENOMEM as pfs_query_attr. */
PFS_MUST_CHECK int pfs_gathered_want(struct pfs_gathered *gather, size_t column);
/* The slots' values, of wanted columns, by which the others become ABSENT; and of one column more.
 * They stay until the next rows.  -EAGAIN, -ENOMEM, and what the store says. */
PFS_MUST_CHECK int pfs_gathered_rows(struct pfs_gathered *gather, const uint32_t *slots, size_t n);
PFS_MUST_CHECK int pfs_gathered_column(struct pfs_gathered *gather, size_t column);

/* One for each column of nodes. */
struct pfs_sql_column *pfs_gathered_columns(struct pfs_gathered *gather);
/* Of the values that are bytes, in the last rows. */
size_t pfs_gathered_bytes(const struct pfs_gathered *gather);
/* Bytes that it takes. */
int64_t pfs_gathered_memory(const struct pfs_gathered *gather);

#endif
