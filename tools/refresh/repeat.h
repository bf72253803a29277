/* SPDX-License-Identifier: MIT */
/* tools/refresh/repeat.h - refreshes of a mounted store, again and again, on a thread of their own. */
#ifndef PFS_TOOLS_REFRESH_REPEAT_H
#define PFS_TOOLS_REFRESH_REPEAT_H

#include "base/err.h"
#include "fs/tree/tree.h"

struct pfs_repeat;

/* The first refresh begins at once, each other `pause_ms` after the one before has ended.  What goes wrong is
 * logged, once for each reason.  tree and store stay until stop.  -EAGAIN: no thread; -ENOMEM. */
PFS_MUST_CHECK int pfs_repeat_start(struct pfs_repeat **out, struct pfs_tree *tree,
				    const char *store, unsigned pause_ms);

/* Ends a refresh that is comparing, waits for one that is making changes.  NULL is allowed. */
void pfs_repeat_stop(struct pfs_repeat *repeat);

#endif
