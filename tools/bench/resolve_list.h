/* SPDX-License-Identifier: MIT */
/* tools/bench/resolve_list.h - for primefs-bench resolve: the paths of a tree, each with what it
 * leads to, and the time that a kernel takes for them. */
#ifndef PFS_TOOLS_BENCH_RESOLVE_LIST_H
#define PFS_TOOLS_BENCH_RESOLVE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fs/tree/resolve.h"
#include "gpu/resident.h"
#include "tools/bench/bench.h"

/* Bytes of a path that has about 60. */
#define PFS_RESOLVE_SHORT_LEAST 56u
#define PFS_RESOLVE_SHORT_MOST	64u

struct pfs_resolve_list {
	char *text; /* number, tab, path, NUL: of each node */
	size_t size, capacity;
	struct pfs_path_text *paths; /* in pre-order, */
	struct pfs_path_text *mixed; /* and in a random one, */
	uint64_t *wanted, *mixed_wanted;
	size_t n;
};

/* Lists a tree of at most `room` nodes; the list is zero, and is to be freed whatever this
 * returns. */
PFS_MUST_CHECK int pfs_resolve_list_make(struct pfs_resolve_list *list, struct pfs_tree *tree,
					 size_t room);
void pfs_resolve_list_free(struct pfs_resolve_list *list);
/* Says in the name of the verb that a number is another one; returns -EUCLEAN. */
int pfs_resolve_differs(const char *verb);

/* Paths that a kernel has before its clock starts. */
struct pfs_resolve_at_once {
	struct pfs_resident_paths paths;
	uint32_t *wanted; /* the slots that they lead to */
};

/* Packs those of the mixed paths that have `least` to `most` bytes, some million at most, again and
 * again if there are few: the start of a kernel would count. To be freed whatever this returns. The
 * tree is the one that will be asked. */
PFS_MUST_CHECK int pfs_resolve_at_once_make(struct pfs_resolve_at_once *asked,
					    struct pfs_tree *tree,
					    const struct pfs_resolve_list *list, size_t least,
					    size_t most);
void pfs_resolve_at_once_free(struct pfs_resolve_at_once *asked);
/* Measures a kernel that has all of its paths, and keeps the slots: millions a second. Nothing is
 * measured if there are none. */
PFS_MUST_CHECK int pfs_resolve_at_once_time(struct pfs_figures *figures,
					    const struct pfs_resolve_at_once *asked,
					    const char *verb, struct pfs_tree *tree);

#endif
