/* SPDX-License-Identifier: MIT */
/* tools/open.h - opens a store's tree for a command. */
#ifndef PFS_TOOLS_OPEN_H
#define PFS_TOOLS_OPEN_H

#include "fs/tree/tree.h"
#include "tools/cmd.h"

#define PFS_OPEN_WAIT_MS 10000u /* for a daemon that is about to finish */

/* PFS_EXIT_OK and a tree to be closed, or the status to exit with, the error having been printed. */
int pfs_open_tree(struct pfs_tree **out, const char *verb, const char *store,
		  const struct pfs_tree_options *options);

#endif
