/* SPDX-License-Identifier: MIT */
/* tools/walk.h - rows of a subtree brought into the order in which GNU's find and du meet nodes:
 * that of readdir, but for wide directories. */
#ifndef PFS_TOOLS_WALK_H
#define PFS_TOOLS_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "tools/ask.h"

struct pfs_walk_key {
	uint64_t ino, parent;
	uint64_t order; /* among its siblings: the column readdir, or what else sorts them */
};

/* n entries of `size` bytes each, which begin with a key; the owner's. */
struct pfs_walk {
	void *entries;
	size_t n, size;
};

/* Siblings together, in their order, families by their parents' numbers. */
void pfs_walk_sort(const struct pfs_walk *walk);

/* The same, with the keys' orders of readdir made those of the walk below the place first: asks for
 * what the widest directories hold.  An exit status, having said what was wrong. */
PFS_MUST_CHECK int pfs_walk_sort_as_fts(const struct pfs_walk *walk, const struct pfs_place *place);

/* Sorted: the first child of a directory, or n.  Its siblings follow it. */
size_t pfs_walk_first_child(const struct pfs_walk *walk, uint64_t parent);

#endif
