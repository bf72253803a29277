/* SPDX-License-Identifier: MIT */
/* meta/siderows.h - the rows of a side table that one change has written or removed, packed one
 * behind the other.
 *
 * Threads: any number read at once while none adds. */
#ifndef PFS_META_SIDEROWS_H
#define PFS_META_SIDEROWS_H

#include <stdbool.h>
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

/* Where a reader of packed rows is. */
struct pfs_side_cursor {
	const uint8_t *at; /* behind the row */
	size_t n_left;	   /* rows behind it */
	int64_t row;	   /* its number */
	bool is_removed;
	size_t n; /* its cells, 0 if it is removed; texts and blobs of them belong to the rows */
	struct pfs_cell *cells; /* the caller's, PFS_TABLE_COLUMNS_MAX */
};

/* begin goes before the first row; next to the next row, and returns false if there is none. Of a
 * row that is removed no cell is touched. */
void pfs_side_cursor_begin(struct pfs_side_cursor *cursor, const struct pfs_side_rows *rows,
			   struct pfs_cell *cells);
bool pfs_side_cursor_next(struct pfs_side_cursor *cursor);

/* Calls fn for each row, in the order in which they were added, until it returns non-zero, which is
 * returned; cells is NULL for a row that was removed. Texts and blobs of cells belong to `rows`. */
PFS_MUST_CHECK int pfs_side_rows_each(const struct pfs_side_rows *rows,
				      int (*fn)(void *arg, int64_t row,
						const struct pfs_cell *cells, size_t n),
				      void *arg);

void pfs_side_rows_finish(struct pfs_side_rows *rows);

/* struct pfs_side_rows rows PFS_SIDE_ROWS = {...}; finishes them at the end of the block. */
#define PFS_SIDE_ROWS __attribute__((cleanup(pfs_side_rows_finish)))

#endif
