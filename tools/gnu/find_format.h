/* SPDX-License-Identifier: MIT */
/* tools/gnu/find_format.h - find's -printf: a format, taken apart once and printed for each
 * node. */
#ifndef PFS_TOOLS_GNU_FIND_FORMAT_H
#define PFS_TOOLS_GNU_FIND_FORMAT_H

#include "tools/gnu/find_expr.h"

struct pfs_find_format;

/* *needs: what it prints, enum pfs_find_need.  -EINVAL, why filled in; -ENOMEM.  The text must
 * stay. */
PFS_MUST_CHECK int pfs_find_format_parse(struct pfs_find_format **out, unsigned *needs,
					 const char *text, char *why, size_t why_size);
void pfs_find_format_finish(struct pfs_find_format *format); /* NULL is allowed */

/* start: the operand below which the node was found; terminal: which out goes to. */
void pfs_find_format_put(struct pfs_stdout *out, const struct pfs_find_format *format,
			 const struct pfs_found *found, const char *start, bool terminal);

#endif
