/* SPDX-License-Identifier: MIT */
/* base/btree.h - ordered index in memory: 64-bit keys to 32-bit slots (S5).
 *
 * A B+-tree with linked leaves.  Entries are (key, slot) pairs, unique as pairs and ordered by key,
 * then slot, so that duplicates of a key come in slot order.
 * Threads: any number of readers, or one writer; the caller locks.
 * Memory: at most 20 bytes an entry after a bulk load. */
#ifndef PFS_BASE_BTREE_H
#define PFS_BASE_BTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/pool.h"

struct pfs_btree;

struct pfs_btree_entry {
	uint64_t key;
	uint32_t slot;
};

/* A place between entries; invalid after any change of the tree (seek again by key and slot). */
struct pfs_btree_cursor {
	const void *leaf;
	uint32_t position;
};

/* *out is NULL on failure: -ENOMEM. */
PFS_MUST_CHECK int pfs_btree_create(struct pfs_btree **out);
void pfs_btree_destroy(struct pfs_btree *tree);

/* Fills an empty tree from n pairs sorted by (key, slot), given as two arrays that stay the
 * caller's, with the threads of the pool; NULL: this one alone.  -EINVAL when the tree is not empty or the pairs are not strictly ascending; -ENOMEM. */
PFS_MUST_CHECK int pfs_btree_load(struct pfs_btree *tree, struct pfs_pool *pool,
				  const uint64_t *keys, const uint32_t *slots, size_t n);

/* -EEXIST when the pair is present; -ENOMEM, the tree unchanged. */
PFS_MUST_CHECK int pfs_btree_insert(struct pfs_btree *tree, uint64_t key, uint32_t slot);

/* Makes sure that the next n inserts cannot fail.  -ENOMEM. */
PFS_MUST_CHECK int pfs_btree_reserve(struct pfs_btree *tree, size_t n);

/* False when the pair is absent. */
bool pfs_btree_remove(struct pfs_btree *tree, uint64_t key, uint32_t slot);

size_t pfs_btree_count(const struct pfs_btree *tree);
size_t pfs_btree_memory(const struct pfs_btree *tree); /* bytes allocated */

/* Puts the cursor before the first entry >= (key, slot). */
void pfs_btree_seek(const struct pfs_btree *tree, struct pfs_btree_cursor *cursor, uint64_t key,
		    uint32_t slot);

/* Reads the entry after the cursor and steps over it; false at the end. */
bool pfs_btree_next(const struct pfs_btree *tree, struct pfs_btree_cursor *cursor,
		    struct pfs_btree_entry *out);

/* As n seeks to (keys[i], slot), each with a next: out[i] is the first entry not less, or has
 * PFS_BTREE_NONE for its slot where there is none.  The descents go side by side, so that they wait
 * for memory together. */
#define PFS_BTREE_NONE UINT32_MAX
void pfs_btree_find(const struct pfs_btree *tree, struct pfs_btree_entry *out, const uint64_t *keys,
		    uint32_t slot, size_t n);

/* The next entries after the cursor whose keys are `last` at most, `capacity` of them or fewer, as
 * two arrays of the caller's; steps over them.  How many: less than capacity at the end. */
size_t pfs_btree_read(const struct pfs_btree *tree, struct pfs_btree_cursor *cursor, uint64_t *keys,
		      uint32_t *slots, size_t capacity, uint64_t last);

/* Invariants (tests): order, fill, links, count.  -EUCLEAN. */
PFS_MUST_CHECK int pfs_btree_verify(const struct pfs_btree *tree);

#endif
