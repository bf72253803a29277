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

/* Halves the *n keys, more than one, among or right behind which the first is that is not less than
 * `key`, and returns where they begin then. */
static inline const uint64_t *pfs_btree_halve(const uint64_t *at, uint32_t *n, uint64_t key)
{
	uint32_t half = *n / 2;

	*n -= half;
	/* Arithmetic, since gcc makes a jump of `if`, which is mispredicted every other time. */
	return at + (half & -(size_t)(at[half - 1] < key));
}

/* The same for n keys, of which it leaves `most`, at least half. */
static inline const uint64_t *pfs_btree_keep(const uint64_t *at, uint32_t n, uint32_t most,
					     uint64_t key)
{
	return at + ((n - most) & -(size_t)(at[most - 1] < key));
}

/* The same for 4 * step keys, of which it leaves `step`. It compares three of them at once, which
 * waits less than halving twice. */
static inline const uint64_t *pfs_btree_quarter(const uint64_t *at, uint32_t step, uint64_t key)
{
	size_t n_less =
		(size_t)(at[step - 1] < key) + (at[2 * step - 1] < key) + (at[3 * step - 1] < key);

	return at + n_less * step;
}

/* Returns how many of a node's keys are less than `key`. Most nodes have 16 to 63 keys, and are
 * searched in steps of constant sizes. */
static inline uint32_t pfs_btree_below(const uint64_t *keys, uint32_t count, uint64_t key)
{
	const uint64_t *at = keys;
	uint32_t n = count;

	while (n >= 64)
		at = pfs_btree_halve(at, &n, key);
	if (n >= 32) {
		at = pfs_btree_keep(at, n, 32, key);
		at = pfs_btree_quarter(at, 8, key);
		at = pfs_btree_quarter(at, 2, key);
		return (uint32_t)(at - keys) + (at[0] < key) + (at[1] < key);
	}
	if (n >= 16) {
		at = pfs_btree_keep(at, n, 16, key);
		at = pfs_btree_quarter(at, 4, key);
		return (uint32_t)(at - keys) + (at[0] < key) + (at[1] < key) + (at[2] < key) +
		       (at[3] < key);
	}
	while (n > 1)
		at = pfs_btree_halve(at, &n, key);
	return (uint32_t)(at - keys) + (n && *at < key);
}

/* Returns how many of a node's entries are less than (key, slot); i of its keys are less than
 * `key`. */
static inline uint32_t pfs_btree_below_slot(const uint64_t *keys, const pfs_btree_value *slots,
					    uint32_t count, uint32_t i, uint64_t key,
					    pfs_btree_value slot)
{
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
	return pfs_btree_below_slot(keys, slots, count, pfs_btree_below(keys, count, key), key,
				    slot);
}

/* Returns the number of the child in which (key, slot) is or would be. An entry that equals a
 * separator is in the child on the separator's right. */
static inline uint32_t pfs_btree_child(const struct pfs_inner *node, uint64_t key,
				       pfs_btree_value slot)
{
	uint32_t i = pfs_btree_below(node->keys, node->count, key);

	while (i < node->count && node->keys[i] == key && node->slots[i] <= slot)
		i++;
	return i;
}

#endif
