/* SPDX-License-Identifier: MIT */
/* fs/tree/siderows.h - the rows of a side table that one change has written or removed, packed one
 * behind the other.
 *
 * Threads: any number read at once while none adds. */
#ifndef PFS_FS_TREE_SIDEROWS_H
#define PFS_FS_TREE_SIDEROWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "meta/store.h"

struct pfs_side_rows {
	uint32_t table; /* its number in the store */
	size_t n;	/* rows */
	uint8_t *bytes; /* the packed rows; freed by pfs_side_rows_finish */
	size_t size, capacity; /* bytes */
};

/* Adds a row that now has these cells, which are copied; cells NULL: the row was removed. -E2BIG:
 * the row is larger than PFS_TABLE_ROW_MAX; -ENOMEM. On an error nothing is added. */
PFS_MUST_CHECK int pfs_side_rows_add(struct pfs_side_rows *rows, int64_t row,
				     const struct pfs_cell *cells, size_t n);

/* Makes room for n more rows of so many cells each, whose texts and blobs are empty; of rows that
 * are removed n_cells is 0. -ENOMEM. */
PFS_MUST_CHECK int pfs_side_rows_reserve(struct pfs_side_rows *rows, uint64_t n, size_t n_cells);

/* Adds all rows of `more` behind those of `rows`. -ENOMEM: none is added. */
PFS_MUST_CHECK int pfs_side_rows_append(struct pfs_side_rows *rows,
					const struct pfs_side_rows *more);

/* Calls fn for each row, in the order in which they were added, until it returns non-zero, which is
 * returned; cells is NULL for a row that was removed. Texts and blobs of cells belong to `rows`. */
PFS_MUST_CHECK int pfs_side_rows_each(const struct pfs_side_rows *rows,
				      int (*fn)(void *arg, int64_t row,
						const struct pfs_cell *cells, size_t n),
				      void *arg);

void pfs_side_rows_finish(struct pfs_side_rows *rows);

#endif
