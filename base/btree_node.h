/* SPDX-License-Identifier: MIT */
/* base/btree_node.h - the memory layout of a B+-tree, for btree.c, btree_bulk.c and btree_batch.c.
 *
 * A node has its keys in one array and its slots in another, so that a search reads only keys;
 * slots decide among equal keys. An inner node with n separators has n + 1 children. Separator i is
 * greater than every entry below child i, and not greater than any entry below child i + 1.
 *
 * A split at the right edge of the tree leaves the left node full, so that ascending inserts fill
 * nodes. So a node at the right edge may have fewer entries than the minimum; no other may. */
#ifndef PFS_BASE_BTREE_NODE_H
#define PFS_BASE_BTREE_NODE_H

#include "base/btree.h"
#include "base/node_pool.h"

#define LEAF_MAX   62u /* 768 bytes, or 1,016; a tree of pfs_btree_create_of has its own maximum */
#define INNER_MAX  62u /* separators: 1,256 bytes, or 1,504 */
#define INNER_MIN  (INNER_MAX / 4)
#define LEVELS_MAX 16u

struct pfs_leaf {
	struct pfs_leaf *previous, *next;
	uint32_t count;
	uint64_t keys[]; /* tree->leaf_max keys, and as many slots behind them */
};

struct pfs_inner {
	uint32_t count;
	pfs_btree_value slots[INNER_MAX];
	uint64_t keys[INNER_MAX];
	void *children[INNER_MAX + 1];
};

struct pfs_btree {
	void *root; /* a leaf if height is 0, else an inner node */
	unsigned height;
	uint32_t leaf_max, leaf_min; /* entries of a leaf; the last leaf may have fewer */
	size_t count;
	struct pfs_leaf *first;
	struct pfs_node_pool leaves, inners;
};

static inline size_t pfs_btree_leaf_size(uint32_t leaf_max)
{
	return sizeof(struct pfs_leaf) + leaf_max * (sizeof(uint64_t) + sizeof(pfs_btree_value));
}

static inline pfs_btree_value *pfs_btree_slots(const struct pfs_btree *tree,
					       const struct pfs_leaf *leaf)
{
	return (pfs_btree_value *)(leaf->keys + tree->leaf_max);
}

/* Returns how many entries a load puts into a leaf; it leaves some room for inserts. */
static inline uint32_t pfs_btree_fill(uint32_t leaf_max)
{
	return leaf_max - leaf_max / 15;
}

/* A binary search among a node's keys. The first key that is not less than the one searched for is
 * among the n from `base` on, or right behind them. */
struct pfs_btree_search {
	const uint64_t *base;
	uint32_t n;
};

/* Does one step of a search whose n is greater than 1. */
static inline void pfs_btree_halve(struct pfs_btree_search *search, uint64_t key)
{
	uint32_t half = search->n / 2;

	/* Arithmetic, since gcc makes a jump of `if`, which is mispredicted every other time. */
	search->base += half & -(size_t)(search->base[half - 1] < key);
	search->n -= half;
}

/* Finishes a search, and returns what pfs_btree_rank returns. */
static inline uint32_t pfs_btree_end(struct pfs_btree_search search, const uint64_t *keys,
				     const pfs_btree_value *slots, uint32_t count, uint64_t key,
				     pfs_btree_value slot)
{
	uint32_t i;

	while (search.n > 1)
		pfs_btree_halve(&search, key);
	i = (uint32_t)(search.base - keys) + (search.n && *search.base < key);
	/* For slot 0 no slots are read: they are in other cache lines. */
	while (slot && i < count && keys[i] == key && slots[i] < slot)
		i++;
	return i;
}

/* Returns how many of a node's entries are less than (key, slot). With slot 0 that is the number of
 * keys below `key`. */
static inline uint32_t pfs_btree_rank(const uint64_t *keys, const pfs_btree_value *slots,
				      uint32_t count, uint64_t key, pfs_btree_value slot)
{
	return pfs_btree_end((struct pfs_btree_search){keys, count}, keys, slots, count, key, slot);
}

/* Returns the number of the child in which (key, slot) is or would be. i is the rank of (key,
 * slot); an entry that equals a separator is in the child on the separator's right. */
static inline uint32_t pfs_btree_child_of(const struct pfs_inner *node, uint32_t i, uint64_t key,
					  pfs_btree_value slot)
{
	return i + (i < node->count && node->keys[i] == key && node->slots[i] == slot);
}

/* Returns the number of the child in which (key, slot) is or would be, from its rank. */
static inline uint32_t pfs_btree_child(const struct pfs_inner *node, uint64_t key,
				       pfs_btree_value slot)
{
	return pfs_btree_child_of(
		node, pfs_btree_rank(node->keys, node->slots, node->count, key, slot), key, slot);
}

#endif
