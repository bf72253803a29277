/* SPDX-License-Identifier: MIT */
/* base/preorder.h - component-wise pre-order of some nodes of a tree: every directory before what
 * lies in it, siblings by their names' bytes.  Entries are made from the root's down, in any order of
 * siblings.  Threads: none share one. */
#ifndef PFS_BASE_PREORDER_H
#define PFS_BASE_PREORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_preorder_entry {
	uint64_t key; /* the name's first bytes, as a number that compares like them */
	uint32_t slot;
	uint32_t next, first; /* sibling after this one, first child; a number, 0: none */
	bool wanted;
};

/* An entry's number is its index + 1.  Start with the comparison; finish always. */
struct pfs_preorder {
	struct pfs_preorder_entry *entries;
	size_t n, capacity;
	/* Of two slots' names, whose keys are equal; below 0, 0 or above. */
	int (*compare)(const void *arg, uint32_t a, uint32_t b);
	const void *arg;
	/* Asked now and then while they are listed: not 0 ends that.  NULL: nobody is. */
	int (*look)(void *arg);
	void *look_arg;
	unsigned steps; /* since it was asked */
};

uint64_t pfs_preorder_key(const void *name, size_t len);

/* *number is the new entry's; `above` that of its directory, 0 for the root's, which comes first.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_preorder_add(struct pfs_preorder *order, uint32_t *number, uint32_t above,
				    uint32_t slot, uint64_t key);
void pfs_preorder_want(struct pfs_preorder *order, uint32_t number);

/* The wanted ones' slots, in order.  The chains are used up.  0, or what look returned. */
PFS_MUST_CHECK int pfs_preorder_list(struct pfs_preorder *order, uint32_t *slots);
void pfs_preorder_finish(struct pfs_preorder *order);

#endif
