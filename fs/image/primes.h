/* SPDX-License-Identifier: MIT */
/* fs/image/primes.h - the next prime of each kind for new nodes, out of ranges that the store
 * reserves.
 *
 * Locks: a mutex of its own. pfs_primes_next never waits for the store. */
#ifndef PFS_FS_IMAGE_PRIMES_H
#define PFS_FS_IMAGE_PRIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"
#include "meta/store.h"

PFS_MUST_CHECK int pfs_primes_create(struct pfs_tree *tree);
void pfs_primes_destroy(struct pfs_tree *tree);

/* Gets a prime that no node of this store ever had. -EAGAIN: the ranges at hand are used up: let
 * the committer fetch (pfs_primes_low), wait, try again. -ENOSPC: all of the kind are used. */
PFS_MUST_CHECK int pfs_primes_next(struct pfs_tree *tree, uint64_t *prime,
				   enum pfs_prime_kind kind);

/* Says that primes of that kind will be asked for: fetches from now on include it. */
void pfs_primes_want(struct pfs_tree *tree, enum pfs_prime_kind kind);

/* low returns true if the committer should fetch. fetch is called inside a group; fetched when that
 * group is committed, or lost. */
bool pfs_primes_low(struct pfs_tree *tree);
PFS_MUST_CHECK int pfs_primes_fetch(struct pfs_tree *tree);
void pfs_primes_fetched(struct pfs_tree *tree, bool committed);

#endif
