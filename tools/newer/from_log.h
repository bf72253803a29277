/* SPDX-License-Identifier: MIT */
/* tools/newer/from_log.h - what a refresh from a newer file has changed, as rows of the side table
 * `refreshes`. */
#ifndef PFS_TOOLS_NEWER_FROM_LOG_H
#define PFS_TOOLS_NEWER_FROM_LOG_H

#include "tools/newer/from.h"

/* Makes the table, unless it is there. What writing says, and a line in why: there is one with
 * other columns, say. */
PFS_MUST_CHECK int pfs_from_log_prepare(struct pfs_tree *tree, char *why, size_t why_size);

/* Adds rows to the table. Values longer than 1,000 bytes are cut. What writing says, and a line
 * in why. */
PFS_MUST_CHECK int pfs_from_log(struct pfs_tree *tree, const struct pfs_from_lists *from,
				const char *source, char *why, size_t why_size);

#endif
