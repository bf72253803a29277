/* SPDX-License-Identifier: MIT */
/* base/btree.h - an ordered index in memory from 64-bit keys to 32-bit slots: a B+-tree with linked
 * leaves (docs/design/papers.md, S5). Compiled with PFS_WIDE_VALUES, slots have 64 bits
 * (base/btree_value.h).
 *
 * An entry is a pair of a key and a slot. Entries are ordered by key, then by slot; no two are
 * equal. Threads: any number of readers, or one writer; the caller locks. Memory: at most 20 bytes
 * an entry after a bulk load. */
#ifndef PFS_BASE_BTREE_H
#define PFS_BASE_BTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/btree_value.h"
#include "base/err.h"
#include "base/pool.h"

struct pfs_btree;

struct pfs_btree_entry {
	uint64_t key;
	pfs_btree_value slot;
};

/* Returns true if entry a comes before b. */
static inline bool pfs_btree_is_less(struct pfs_btree_entry a, struct pfs_btree_entry b)
{
	return a.key < b.key || (a.key == b.key && a.slot < b.slot);
}

/* A position between two entries. A change of the tree invalidates it: seek again by key and slot.
 */
struct pfs_btree_cursor {
	const void *leaf;
	uint32_t position;
};

/* Makes an empty tree, which the caller destroys. *out is NULL on failure. -ENOMEM. */
PFS_MUST_CHECK int pfs_btree_create(struct pfs_btree **out);
/* Makes an empty tree whose leaves have at most `page` entries, which is at least
 * 8. Such a tree cannot be loaded lazily. -ENOMEM. */
#define PFS_BTREE_PAGE 62u /* entries of a leaf of other trees */
PFS_MUST_CHECK int pfs_btree_create_of(struct pfs_btree **out, uint32_t page);
void pfs_btree_destroy(struct pfs_btree *tree);

/* Fills an empty tree with n entries, which strictly ascend and are given as two arrays that stay
 * the caller's. The pool's threads help, unless it is NULL. -EINVAL: the tree is not empty, or the
 * entries do not ascend; -ENOMEM. */
PFS_MUST_CHECK int pfs_btree_load(struct pfs_btree *tree, struct pfs_pool *pool,
				  const uint64_t *keys, const pfs_btree_value *slots, size_t n);

/* As pfs_btree_load, but the leaves and the inner nodes right above them are in the caller's
 * memory, at `leaves` (n_leaves of PFS_BTREE_LEAF_SIZE bytes) and `inners`
 * (pfs_btree_count_inners(n_leaves) of PFS_BTREE_INNER_SIZE), which must stay until the tree is
 * destroyed. The caller makes each of them (pfs_btree_make_leaf, pfs_btree_make_inner) at the
 * latest when somebody reads it (base/lazy.h). Each leaf but the last has PFS_BTREE_LEAF_COUNT of
 * the n entries; firsts[i] is the first entry below inner node i, strictly ascending. -EINVAL,
 * -ENOMEM. */
#define PFS_BTREE_LEAF_COUNT 58u
#define PFS_BTREE_LEAF_SIZE  (24u + 62u * (sizeof(uint64_t) + sizeof(pfs_btree_value))) /* bytes: 768, or 1,016 */
#define PFS_BTREE_INNER_COUNT 59u /* leaves below an inner node, at most */
#define PFS_BTREE_INNER_SIZE  (1024u + 64u * sizeof(pfs_btree_value)) /* bytes: 1,280, or 1,536 */
PFS_MUST_CHECK int pfs_btree_load_lazily(struct pfs_btree *tree, void *leaves, void *inners,
					 const struct pfs_btree_entry *firsts, size_t n);
/* Return how many of these inner nodes there are; which leaf is the first below number i (n_leaves,
 * if i is the number of inner nodes); and below which of them a leaf is. */
size_t pfs_btree_count_inners(size_t n_leaves);
size_t pfs_btree_first_leaf(size_t n_leaves, size_t i);
size_t pfs_btree_inner_of(size_t n_leaves, size_t leaf);
/* Writes leaf number i of these n_leaves to `to`; `leaves` is the address of the first. */
void pfs_btree_make_leaf(void *to, void *leaves, size_t i, size_t n_leaves,
			 const struct pfs_btree_entry *entries, unsigned count);
/* Writes the inner node above `count` leaves, from number `leaf` on, to `to`; firsts are the
 * leaves' first entries. */
void pfs_btree_make_inner(void *to, void *leaves, size_t leaf, const struct pfs_btree_entry *firsts,
			  unsigned count);

/* Adds an entry. -EEXIST: it is there already; -ENOMEM: the tree is unchanged. */
PFS_MUST_CHECK int pfs_btree_insert(struct pfs_btree *tree, uint64_t key, pfs_btree_value slot);

/* The same for a tree with at most one entry a key, in one descent. -EEXIST: the key has one, and
 * *there is its slot. */
PFS_MUST_CHECK int pfs_btree_insert_key(struct pfs_btree *tree, pfs_btree_value *there,
					uint64_t key, pfs_btree_value slot);

/* Takes memory, so that none of the next n inserts returns -ENOMEM. -ENOMEM. */
PFS_MUST_CHECK int pfs_btree_reserve(struct pfs_btree *tree, size_t n);

/* Removes an entry; returns false if it is not there. */
bool pfs_btree_remove(struct pfs_btree *tree, uint64_t key, pfs_btree_value slot);
/* Removes the first entry of the key; returns false if it has none. */
bool pfs_btree_remove_key(struct pfs_btree *tree, uint64_t key);

size_t pfs_btree_count(const struct pfs_btree *tree);
size_t pfs_btree_memory(const struct pfs_btree *tree); /* bytes allocated */
/* Entries of a tree, at most, of which a core's cache has most: a search waits for none of them, and
 * many changes are quicker as they come than after they have been sorted. */
#define PFS_BTREE_NEAR ((size_t)1 << 16)

/* Puts the cursor before the first entry >= (key, slot). */
void pfs_btree_seek(const struct pfs_btree *tree, struct pfs_btree_cursor *cursor, uint64_t key,
		    pfs_btree_value slot);

/* Reads the entry behind the cursor and moves the cursor behind it; returns false at the end. */
bool pfs_btree_next(const struct pfs_btree *tree, struct pfs_btree_cursor *cursor,
		    struct pfs_btree_entry *out);

/* Sets out[i] to the first entry that is not less than (keys[i], slot), for n keys; its slot is
 * PFS_BTREE_NONE if there is no such entry. The n descents go side by side, so that they wait for
 * memory at the same time. */
void pfs_btree_find(const struct pfs_btree *tree, struct pfs_btree_entry *out, const uint64_t *keys,
		    pfs_btree_value slot, size_t n);

/* Reads the next entries whose keys are at most `last`, up to `capacity` of them, into two arrays
 * of the caller's, and moves the cursor behind them. Returns how many; fewer than capacity if there
 * are no more. */
size_t pfs_btree_read(const struct pfs_btree *tree, struct pfs_btree_cursor *cursor, uint64_t *keys,
		      pfs_btree_value *slots, size_t capacity, uint64_t last);

/* Reads the entries before the cursor, the nearest first, and moves the cursor before them. Returns
 * how many; fewer than capacity at the beginning of the tree. */
size_t pfs_btree_read_back(const struct pfs_btree *tree, struct pfs_btree_cursor *cursor,
			   uint64_t *keys, pfs_btree_value *slots, size_t capacity);

/* Checks order, fill, links and count (tests). -EUCLEAN: one of them is wrong. */
PFS_MUST_CHECK int pfs_btree_verify(const struct pfs_btree *tree);

#endif
