/* SPDX-License-Identifier: MIT */
/* tools/gnu/find_ls.h - find's -ls: a line for a node as GNU's find(1) prints it, whose columns
 * widen for good when something does not fit. */
#ifndef PFS_TOOLS_GNU_FIND_LS_H
#define PFS_TOOLS_GNU_FIND_LS_H

#include "tools/gnu/find_expr.h"

/* One thread: widths are the process's. */
void pfs_find_put_ls(struct pfs_stdout *out, const struct pfs_found *found);

#endif
