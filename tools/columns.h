/* SPDX-License-Identifier: MIT */
/* tools/columns.h - names side by side, down one column after the other, as ls(1) lays them out. */
#ifndef PFS_TOOLS_COLUMNS_H
#define PFS_TOOLS_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_column_layout {
	size_t n, rows;
	size_t *width; /* of each column, what separates it from the next one included; owned */
};

/* Finds as many columns as fit into `line` characters for names of these widths, n > 0 of them:
 * name i stands in row i % rows of column i / rows. -ENOMEM. */
PFS_MUST_CHECK int pfs_column_layout_fit(struct pfs_column_layout *columns, const size_t *names,
					 size_t n, size_t line);
void pfs_column_layout_finish(struct pfs_column_layout *columns);

/* Returns how many characters a line of standard output has: the terminal's, else $COLUMNS, else
 * 80. */
size_t pfs_line_width(void);

#endif
