/* SPDX-License-Identifier: MIT */
/* base/btree_node.h - how a B+-tree lies in memory, for btree.c, btree_bulk.c and btree_batch.c.
 *
 * A node's keys and slots stand in two arrays, so that the search of a node reads keys only; slots
 * decide among equal keys.  An inner node with n separators has n + 1 children, and separator i is
 * not greater than any entry below child i + 1 and greater than any below child i.
 *
 * Splits at the right edge leave the left node full, so that ascending inserts fill nodes; that is
 * why nodes of the right edge may hold less than the minimum, and no others. */
#ifndef PFS_BASE_BTREE_NODE_H
#define PFS_BASE_BTREE_NODE_H

#include "base/btree.h"
#include "base/node_pool.h"

#define LEAF_MAX   62u /* 768 bytes, or 1,016; of a tree of pages of its own: tree->leaf_max */
#define INNER_MAX  62u /* separators: 1,256 bytes, or 1,504 */
#define INNER_MIN  (INNER_MAX / 4)
#define LEVELS_MAX 16u

struct pfs_leaf {
	struct pfs_leaf *previous, *next;
	uint32_t count;
	uint64_t keys[]; /* leaf_max, and the slots behind them */
};

struct pfs_inner {
	uint32_t count;
	pfs_btree_value slots[INNER_MAX];
	uint64_t keys[INNER_MAX];
	void *children[INNER_MAX + 1];
};

struct pfs_btree {
	void *root; /* a leaf when height is 0 */
	unsigned height;
	uint32_t leaf_max, leaf_min; /* entries; the last leaf may have less */
	size_t count;
	struct pfs_leaf *first;
	struct pfs_node_pool leaves, inners;
};

static inline size_t pfs_btree_leaf_size(uint32_t leaf_max)
{
	return sizeof(struct pfs_leaf) + leaf_max * (sizeof(uint64_t) + sizeof(pfs_btree_value));
}

static inline pfs_btree_value *pfs_btree_slots(const struct pfs_btree *tree, const struct pfs_leaf *leaf)
{
	return (pfs_btree_value *)(leaf->keys + tree->leaf_max);
}

/* Returns how many entries a load puts into a leaf: some room is left for inserts. */
static inline uint32_t pfs_btree_fill(uint32_t leaf_max)
{
	return leaf_max - leaf_max / 15;
}

/* A search among a node's keys: the first that is not less is one of the n from base on, or the one behind them. */
struct pfs_btree_search {
	const uint64_t *base;
	uint32_t n;
};

/* Does one step of a search whose n is over 1. */
static inline void pfs_btree_halve(struct pfs_btree_search *search, uint64_t key)
{
	uint32_t half = search->n / 2;

	/* Not a condition, of which gcc makes a jump that is mispredicted every other time. */
	search->base += half & -(size_t)(search->base[half - 1] < key);
	search->n -= half;
}

/* Does what is left of a search, and returns what pfs_btree_rank does. */
static inline uint32_t pfs_btree_end(struct pfs_btree_search search, const uint64_t *keys,
				     const pfs_btree_value *slots, uint32_t count, uint64_t key, pfs_btree_value slot)
{
	uint32_t i;

	while (search.n > 1)
		pfs_btree_halve(&search, key);
	i = (uint32_t)(search.base - keys) + (search.n && *search.base < key);
	while (slot && i < count && keys[i] == key && slots[i] < slot) /* for 0 slots are not read: they lie elsewhere */
		i++;
	return i;
}

/* Returns how many of a node's pairs are less than (key, slot). With slot 0 that is the number of
 * keys below `key`. */
static inline uint32_t pfs_btree_rank(const uint64_t *keys, const pfs_btree_value *slots, uint32_t count,
				      uint64_t key, pfs_btree_value slot)
{
	return pfs_btree_end((struct pfs_btree_search){keys, count}, keys, slots, count, key, slot);
}

/* Returns the child in which (key, slot) is or would be, i being its rank: a separator equal to the pair starts the child
 * on its right. */
static inline uint32_t pfs_btree_child_of(const struct pfs_inner *node, uint32_t i, uint64_t key, pfs_btree_value slot)
{
	return i + (i < node->count && node->keys[i] == key && node->slots[i] == slot);
}

/* Returns the number of the child in which (key, slot) is or would be. */
static inline uint32_t pfs_btree_child(const struct pfs_inner *node, uint64_t key, pfs_btree_value slot)
{
	return pfs_btree_child_of(node, pfs_btree_rank(node->keys, node->slots, node->count, key, slot), key, slot);
}

#endif
