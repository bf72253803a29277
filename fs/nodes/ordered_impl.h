/* SPDX-License-Identifier: MIT */
/* fs/nodes/ordered_impl.h - the ways of ordered.c:
 *
 * - All that is selected is sorted: by numbers that compare like the values, or paths
 * (scan_order.c), which mostly come in order.  Only the first few are, at first, where the rest may
 * never be asked for.
 * - A walk passes by nodes in their order, and the predicates are tested on the way: along a column
 *   index (index.h), or by names from the top down (ordered_path.c). */
#ifndef PFS_FS_NODES_ORDERED_IMPL_H
#define PFS_FS_NODES_ORDERED_IMPL_H

#include "base/radix.h"
#include "fs/nodes/index.h"
#include "fs/nodes/ordered.h"

/* ---- ordered_sort.c ---- */

struct pfs_slot_sorting {
	struct pfs_tree *tree;
	const struct pfs_scan_watch *watch;
	unsigned compared; /* since the last look */
	struct pfs_order order[PFS_ORDERS_MAX];
	size_t n_order;
	struct pfs_keyed *items;
	size_t n, sorted; /* sorted: so many, which come before all others */
};

/* Takes what the slots are sorted by. -ENOMEM, and what looks return. */
PFS_MUST_CHECK int pfs_slot_sorting_init(struct pfs_slot_sorting *sorting, struct pfs_tree *tree,
				    const struct pfs_slots *slots, const struct pfs_order *order,
				    size_t n_order, const struct pfs_scan_watch *watch);
void pfs_slot_sorting_finish(struct pfs_slot_sorting *sorting);
/* Sorts the first n or, if these are sorted already, all. -ENOMEM, and what looks return. */
PFS_MUST_CHECK int pfs_slot_sorting_sort(struct pfs_slot_sorting *sorting, size_t n);

/* ---- ordered_path.c ---- */

struct pfs_path_walk;

/* Returns true if the slots under `top` seem to lie in the order of paths (its first 64 children
 * do). A walk then goes from slot to slot, cheaper than a path index. The spans have been
 * prepared. */
bool pfs_path_walk_is_cheap(struct pfs_tree *tree, uint32_t top);
/* Opens a walk over all nodes under `top`, itself included, by the bytes of PATH or PREORDER. watch
 * (NULL: nobody) is looked at while the children of a large directory are listed. -ENOMEM. */
PFS_MUST_CHECK int pfs_path_walk_open(struct pfs_path_walk **out, struct pfs_tree *tree,
				      uint32_t top, const struct pfs_order *order,
				      const struct pfs_scan_watch *watch);
void pfs_path_walk_close(struct pfs_path_walk *walk); /* NULL is allowed */
/* Writes the next nodes; *n is the room for them, and then how many; 0 at the end. -ENOMEM, and
 * what looks return. */
PFS_MUST_CHECK int pfs_path_walk_next(struct pfs_path_walk *walk, uint32_t *slots, size_t *n);

#endif
