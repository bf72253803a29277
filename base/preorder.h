/* SPDX-License-Identifier: MIT */
/* base/preorder.h - sorts some nodes of a tree into component-wise pre-order: each directory before
 * the nodes in it, siblings by the bytes of their names. A directory's entry is added before those
 * of the nodes in it; siblings are added in any order.
 * Threads: one thread uses an order. */
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
	bool wanted; /* the node is to be listed */
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

/* Returns the key of a name. */
uint64_t pfs_preorder_key(const void *name, size_t len);

/* Adds an entry and sets *number to its number. `above` is the number of its directory's entry, 0
 * for the root, which is added first. -ENOMEM. */
PFS_MUST_CHECK int pfs_preorder_add(struct pfs_preorder *order, uint32_t *number, uint32_t above,
				    uint32_t slot, uint64_t key);
/* Marks an entry as one to be listed. */
void pfs_preorder_want(struct pfs_preorder *order, uint32_t number);

/* Writes the slots of the wanted entries in pre-order to `slots`, which has room for them. It can
 * be called once. Returns 0, or what `look` returned. */
PFS_MUST_CHECK int pfs_preorder_list(struct pfs_preorder *order, uint32_t *slots);
void pfs_preorder_finish(struct pfs_preorder *order);

#endif
