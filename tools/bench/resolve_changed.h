/* SPDX-License-Identifier: MIT */
/* tools/bench/resolve_changed.h - for primefs-bench resolve: how fast a kernel finds paths in a
 * tree that has changed since its table of whole paths was made (gpu/path_table.h), and how long
 * the tree is held to make it. */
#ifndef PFS_TOOLS_BENCH_RESOLVE_CHANGED_H
#define PFS_TOOLS_BENCH_RESOLVE_CHANGED_H

#include "tools/bench/resolve_list.h"

enum { PFS_CHANGED_FIGURES = 6 };

struct pfs_resolve_changed {
	char labels[PFS_CHANGED_FIGURES][96];
	struct pfs_figures figures[PFS_CHANGED_FIGURES];
};

/* Opens the store of that list and changes its tree. */
PFS_MUST_CHECK int pfs_resolve_changed_run(struct pfs_resolve_changed *changed, const char *verb,
					   const char *store, const struct pfs_resolve_list *list);
void pfs_resolve_changed_print(struct pfs_resolve_changed *changed);

#endif
