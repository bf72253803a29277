/* SPDX-License-Identifier: MIT */
/* fs/query/gather.h - fetches the values of columns of `nodes`, for some slots at a time; inside of
 * fs/query.
 *
 * Threads: one at a time uses a gatherer; a query may have any number of them. The tree is held,
 * except where a function says otherwise. */
#ifndef PFS_FS_QUERY_GATHER_H
#define PFS_FS_QUERY_GATHER_H

#include "fs/query/internal.h"

struct pfs_gathered;

PFS_MUST_CHECK int pfs_gathered_open(struct pfs_gathered **out,
				     struct pfs_query *query); /* -ENOMEM */
/* Makes another gatherer of the same query, which wants these n columns and no others. -ENOMEM. */
PFS_MUST_CHECK int pfs_gathered_copy(struct pfs_gathered **out, const struct pfs_gathered *of,
				   const int *columns, size_t n);
void pfs_gathered_close(struct pfs_gathered *gather); /* NULL is allowed */

/* rest forgets the wanted columns, and frees all but a little memory, which is on no account. go_on
 * makes the gatherer one of another query of the same connection. */
void pfs_gathered_rest(struct pfs_gathered *gather);
void pfs_gathered_go_on(struct pfs_gathered *gather, struct pfs_query *query);

/* Adds a column to those that pfs_gathered_rows fetches.  -EAGAIN and -ENOMEM as pfs_query_attr. */
PFS_MUST_CHECK int pfs_gathered_want(struct pfs_gathered *gather, size_t column);
/* pfs_gathered_rows fetches the slots' values in the wanted columns; all other columns become
 * ABSENT. pfs_gathered_column fetches one column more for the same slots. The values stay until the
 * next call of pfs_gathered_rows. -EAGAIN; -ENOMEM; the store's errors. */
PFS_MUST_CHECK int pfs_gathered_rows(struct pfs_gathered *gather, const uint32_t *slots, size_t n);
PFS_MUST_CHECK int pfs_gathered_column(struct pfs_gathered *gather, size_t column);

/* Returns the columns, one for each column of `nodes`, which the gatherer owns. */
struct pfs_sql_column *pfs_gathered_columns(struct pfs_gathered *gather);
/* Returns how many of the wanted columns are attributes. The tree need not be held. */
size_t pfs_gathered_attrs(const struct pfs_gathered *gather);
/* Returns how many bytes the texts and blobs of the last rows have. */
size_t pfs_gathered_bytes(const struct pfs_gathered *gather);
/* Returns how many bytes of memory the gatherer takes. */
int64_t pfs_gathered_memory(const struct pfs_gathered *gather);

#endif
