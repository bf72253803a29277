/* SPDX-License-Identifier: MIT */
/* fs/nodes/ordered.h - the nodes for which predicates hold, in the order of their values.
 *
 * Numbers are ordered as numbers, bytes by memcmp; a node without a value comes before all others;
 * what is equal in all that is ordered by comes in any order. How it is done stands in
 * ordered_impl.h.
 *
 * Locks: called between pfs_scan_lock and pfs_scan_unlock; the tree may be let go between two calls
 * as long as its epoch stays the same. */
#ifndef PFS_FS_NODES_ORDERED_H
#define PFS_FS_NODES_ORDERED_H

#include "fs/nodes/scan.h"

struct pfs_order {
	enum pfs_field field;
	bool descending;
};

#define PFS_ORDERS_MAX 8

struct pfs_ordered_question {
	const struct pfs_order *order; /* by the first, where that is equal by the next, ... */
	size_t n_order;		       /* 1 to PFS_ORDERS_MAX */
	const struct pfs_predicate *predicates; /* used until close */
	size_t n;
	const struct pfs_slots *within; /* as of pfs_scan_select; used until close */
	uint64_t limit; /* a guess of how many will be asked for */
	const struct pfs_scan_watch *watch; /* NULL: nobody; used until close */
};

struct pfs_ordered;

/* Opens a walk over the answer. Errors as of pfs_scan_select. */
PFS_MUST_CHECK int pfs_ordered_open(struct pfs_ordered **out, struct pfs_tree *tree,
				    const struct pfs_ordered_question *question);
void pfs_ordered_close(struct pfs_ordered *ordered); /* NULL is allowed */

/* Writes the next nodes; *n is the room for them, and then how many; 0: there are no more. -ENOMEM,
 * -EINTR. */
PFS_MUST_CHECK int pfs_ordered_next(struct pfs_ordered *ordered, uint32_t *slots, size_t *n);

size_t pfs_ordered_memory(const struct pfs_ordered *ordered); /* bytes */
/* Returns true if they are found one after the other, on a walk; if not, pfs_ordered_selected says
 * how many were selected and sorted. */
bool pfs_ordered_walks(const struct pfs_ordered *ordered);
/* Returns true if something was selected that did not have the order already. */
bool pfs_ordered_sorts(const struct pfs_ordered *ordered);
size_t pfs_ordered_selected(const struct pfs_ordered *ordered);
/* Returns how, as a phrase: "sorted", "in order as found", "index of size", "names from the top
 * down", "path index". */
const char *pfs_ordered_how(const struct pfs_ordered *ordered);

#endif
