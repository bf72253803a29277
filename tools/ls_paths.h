/* SPDX-License-Identifier: MIT */
/* tools/ls_paths.h - ls -R where only names are asked for: from .query/paths, which has them all in one
 * piece, instead of from rows. */
#ifndef PFS_TOOLS_LS_PATHS_H
#define PFS_TOOLS_LS_PATHS_H

#include <stdbool.h>

#include "base/err.h"
#include "tools/ask.h"

/* Prints a mounted directory with all that is under it, each directory with its heading, a blank line
 * before it if *blank, which is set.  *done is false if it cannot be done so: a name has a newline, or
 * the place is none of a mount.  An exit status, having said what was wrong. */
PFS_MUST_CHECK int pfs_ls_paths(bool *done, const struct pfs_place *place, bool hidden, bool reverse,
				bool *blank);

#endif
