/* SPDX-License-Identifier: MIT */
/* fs/tree/siderows.h - rows of a side table that one change has put or removed, packed one after the other.
 *
 * Threads: whoever has it may read it side by side with others; adding is one's own. */
#ifndef PFS_FS_TREE_SIDEROWS_H
#define PFS_FS_TREE_SIDEROWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "meta/store.h"

struct pfs_side_rows {
	uint32_t table; /* the store's number */
	size_t n;	/* rows */
	uint8_t *bytes; /* its own */
	size_t size, capacity;
};

/* The row has these cells from now on; NULL: it is gone.  They are copied.  -E2BIG: a row of more than
 * PFS_TABLE_ROW_MAX; -ENOMEM.  Nothing is added then. */
PFS_MUST_CHECK int pfs_side_rows_add(struct pfs_side_rows *rows, int64_t row, const struct pfs_cell *cells,
				     size_t n);

/* Adds those of another, behind its own.  -ENOMEM: none is added. */
PFS_MUST_CHECK int pfs_side_rows_append(struct pfs_side_rows *rows, const struct pfs_side_rows *more);

/* Calls fn for each in the order in which they were added, until it returns non-zero, which is returned.  Texts and
 * blobs stay the rows'. */
PFS_MUST_CHECK int pfs_side_rows_each(const struct pfs_side_rows *rows,
				      int (*fn)(void *arg, int64_t row, const struct pfs_cell *cells, size_t n),
				      void *arg);

void pfs_side_rows_finish(struct pfs_side_rows *rows);

#endif
