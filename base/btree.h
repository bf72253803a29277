/* SPDX-License-Identifier: MIT */
/* base/btree.h - an ordered index in memory from 64-bit keys to 32-bit slots: a B+-tree with linked
 * leaves (S5).  Compiled with PFS_WIDE_VALUES, slots have 64 bits (base/btree_value.h).
 *
 * Entries are (key, slot) pairs; a pair is in the tree once. They are ordered by key, then by slot,
 * so that duplicates of a key come in slot order.
 * Threads: any number of readers, or one writer; the caller locks.
 * Memory: at most 20 bytes an entry after a bulk load. */
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

/* A place between entries; invalid after any change of the tree (seek again by key and slot). */
struct pfs_btree_cursor {
	const void *leaf;
	uint32_t position;
};

/* Makes an empty tree, the caller's to destroy. -ENOMEM; *out is NULL then. */
PFS_MUST_CHECK int pfs_btree_create(struct pfs_btree **out);
/* Makes an empty tree whose leaves have at most `page` entries, PFS_BTREE_PAGE_LEAST at least. It
 * cannot be loaded lazily. -ENOMEM. */
#define PFS_BTREE_PAGE_LEAST 8u
#define PFS_BTREE_PAGE	     62u /* of other trees */
PFS_MUST_CHECK int pfs_btree_create_of(struct pfs_btree **out, uint32_t page);
void pfs_btree_destroy(struct pfs_btree *tree);

/* Fills an empty tree from n pairs, which are sorted by (key, slot) and given as two arrays that
 * stay the caller's. The pool's threads help; if pool is NULL this thread does all. -EINVAL: the
 * tree is not empty, or the pairs are not strictly ascending; -ENOMEM. */
PFS_MUST_CHECK int pfs_btree_load(struct pfs_btree *tree, struct pfs_pool *pool,
				  const uint64_t *keys, const pfs_btree_value *slots, size_t n);

/* As pfs_btree_load, but the leaves lie in memory of the caller's, who makes each before anybody
 * looks at it: n_leaves of PFS_BTREE_LEAF_SIZE bytes, which stay there until the tree is destroyed.
 * All but the last have PFS_BTREE_LEAF_COUNT of the n pairs; firsts[i] is the first of leaf i,
 * strictly ascending. -EINVAL, -ENOMEM. */
#define PFS_BTREE_LEAF_COUNT 58u
#define PFS_BTREE_LEAF_SIZE  (24u + 62u * (sizeof(uint64_t) + sizeof(pfs_btree_value))) /* bytes: 768, or 1,016 */
PFS_MUST_CHECK int pfs_btree_load_lazily(struct pfs_btree *tree, void *leaves,
					 const struct pfs_btree_entry *firsts, size_t n);
/* Makes one of these leaves, number i of n_leaves that will be at `leaves`, at `to`. */
void pfs_btree_make_leaf(void *to, void *leaves, size_t i, size_t n_leaves,
			 const struct pfs_btree_entry *entries, unsigned count);

/* Adds a pair. -EEXIST: the pair is there already; -ENOMEM: the tree is unchanged. */
PFS_MUST_CHECK int pfs_btree_insert(struct pfs_btree *tree, uint64_t key, pfs_btree_value slot);

/* Takes memory so that the next n inserts cannot fail. -ENOMEM. */
PFS_MUST_CHECK int pfs_btree_reserve(struct pfs_btree *tree, size_t n);

/* Removes a pair; returns false if it is not there. */
bool pfs_btree_remove(struct pfs_btree *tree, uint64_t key, pfs_btree_value slot);

size_t pfs_btree_count(const struct pfs_btree *tree);
size_t pfs_btree_memory(const struct pfs_btree *tree); /* bytes allocated */

/* Puts the cursor before the first entry >= (key, slot). */
void pfs_btree_seek(const struct pfs_btree *tree, struct pfs_btree_cursor *cursor, uint64_t key,
		    pfs_btree_value slot);

/* Reads the entry after the cursor and steps over it; false at the end. */
bool pfs_btree_next(const struct pfs_btree *tree, struct pfs_btree_cursor *cursor,
		    struct pfs_btree_entry *out);

/* Does n seeks to (keys[i], slot), each followed by a next: out[i] is the first entry that is not
 * less, or has the slot PFS_BTREE_NONE if there is none. The descents go side by side, so that they
 * wait for memory together. */
void pfs_btree_find(const struct pfs_btree *tree, struct pfs_btree_entry *out, const uint64_t *keys,
		    pfs_btree_value slot, size_t n);

/* Reads the next entries whose keys are `last` at most, up to `capacity` of them, into two arrays
 * of the caller's, and steps over them. Returns how many; fewer than capacity at the end. */
size_t pfs_btree_read(const struct pfs_btree *tree, struct pfs_btree_cursor *cursor, uint64_t *keys,
		      pfs_btree_value *slots, size_t capacity, uint64_t last);

/* Does the same down: reads the entries before the cursor, the nearest first. Fewer than capacity at
 * the beginning. */
size_t pfs_btree_read_back(const struct pfs_btree *tree, struct pfs_btree_cursor *cursor, uint64_t *keys,
			   pfs_btree_value *slots, size_t capacity);

/* Checks order, fill, links and count (tests). -EUCLEAN: one of them is wrong. */
PFS_MUST_CHECK int pfs_btree_verify(const struct pfs_btree *tree);

#endif
