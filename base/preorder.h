/* SPDX-License-Identifier: MIT */
/* base/preorder.h - puts some nodes of a tree into component-wise pre-order: each directory before
 * what lies in it, siblings by their names' bytes. A directory's entry is added before those of
 * what lies in it; siblings in any order.
 * Threads: an order is one thread's. */
#ifndef PFS_BASE_PREORDER_H
#define PFS_BASE_PREORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_preorder_entry {
	uint64_t key; /* the name's first bytes, as a number that compares as they do */
	uint32_t slot;
	uint32_t next, first; /* number of the next sibling, of the first child; 0: none */
	bool wanted;
};

/* An entry's number is its index + 1. Set `compare` before the first entry; call
 * pfs_preorder_finish at the end, also after a failure. */
struct pfs_preorder {
	struct pfs_preorder_entry *entries;
	size_t n, capacity;
	/* Compares the names of two slots whose keys are equal: below 0, 0 or above. */
	int (*compare)(const void *arg, uint32_t a, uint32_t b);
	const void *arg;
	/* Called from time to time while entries are listed; a result that is not 0 ends the
	 * listing. NULL: none. */
	int (*look)(void *arg);
	void *look_arg;
	unsigned steps; /* since `look` was called */
};

uint64_t pfs_preorder_key(const void *name, size_t len);

/* Adds an entry and sets *number to its number. `above` is the number of its directory's entry; 0
 * for the root, which is added first. -ENOMEM. */
PFS_MUST_CHECK int pfs_preorder_add(struct pfs_preorder *order, uint32_t *number, uint32_t above,
				    uint32_t slot, uint64_t key);
void pfs_preorder_want(struct pfs_preorder *order, uint32_t number);

/* Writes the slots of the wanted entries, in order. The order cannot be listed again. Returns 0, or
 * what `look` returned. */
PFS_MUST_CHECK int pfs_preorder_list(struct pfs_preorder *order, uint32_t *slots);
void pfs_preorder_finish(struct pfs_preorder *order);

#endif
