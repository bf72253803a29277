/* SPDX-License-Identifier: MIT */
/* tools/gnu/ls_names.h - `ls -R` where nothing but names is wanted, in the order of their bytes:
 * printed from the rows as they come, none of which is kept. */
#ifndef PFS_TOOLS_GNU_LS_NAMES_H
#define PFS_TOOLS_GNU_LS_NAMES_H

#include "tools/client/ask.h"
#include "tools/stdout.h"

/* A directory and all below it, a heading before each; hidden: also what begins with a dot; *blank:
 * a line is to be left before the next heading.  An exit status, having said what was wrong. */
PFS_MUST_CHECK int pfs_ls_names(struct pfs_stdout *out, const struct pfs_place *place, bool hidden,
				bool *blank);

#endif
