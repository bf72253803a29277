/* SPDX-License-Identifier: MIT */
/* fs/query/counts.h - SELECT count(*) FROM nodes, as a statement or in parentheses: SQLite would step
 * over every node, while the total of the topmost one's subtree is kept. */
#ifndef PFS_FS_QUERY_COUNTS_H
#define PFS_FS_QUERY_COUNTS_H

#include <stdint.h>

#include "fs/query/edits.h"

/* out->text NULL: there is none in it.  top: the ino that all nodes lie under.  -ENOMEM.  Finish out in
 * any case. */
PFS_MUST_CHECK int pfs_counts_replace(struct pfs_edits *out, const char *sql, size_t len,
				      uint64_t top);

#endif
