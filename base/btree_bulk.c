/* SPDX-License-Identifier: MIT */
/* The whole tree at once: loading and verifying it. */
#include "base/btree.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/btree_node.h"

#define GRAIN	  256u /* leaves that a thread fills at once */
/* separators of an inner node, which leaves room for some inserts */
#define LOAD_FILL PFS_BTREE_LEAF_COUNT

_Static_assert(PFS_BTREE_PAGE == LEAF_MAX, "PFS_BTREE_PAGE");
_Static_assert(sizeof(struct pfs_leaf) + LEAF_MAX * (sizeof(uint64_t) + sizeof(pfs_btree_value)) ==
		       PFS_BTREE_LEAF_SIZE,
	       "PFS_BTREE_LEAF_SIZE");
_Static_assert(PFS_BTREE_INNER_COUNT == LOAD_FILL + 1 &&
		       sizeof(struct pfs_inner) <= PFS_BTREE_INNER_SIZE,
	       "PFS_BTREE_INNER_SIZE");

/* A finished node of the level below and its first entry. */
struct child {
	void *node;
	uint64_t key;
	pfs_btree_value slot;
};

/* Spreads n things evenly over some groups, and returns the first one of group i. */
static size_t share(size_t n, size_t groups, size_t i)
{
	return n / groups * i + PFS_MIN(i, n % groups);
}

/* Leaves that follow each other and are filled by several threads. */
struct leaves {
	const struct pfs_btree *tree;
	struct child *children;
	size_t n_leaves, n;
	const uint64_t *keys;
	const pfs_btree_value *slots;
	_Atomic bool unsorted;
};

static bool ascending(const uint64_t *keys, const pfs_btree_value *slots, size_t from, size_t end)
{
	for (size_t i = from ? from : 1; i < end; i++)
		if (keys[i - 1] > keys[i] || (keys[i - 1] == keys[i] && slots[i - 1] >= slots[i]))
			return false;
	return true;
}

static void fill_leaves(void *context, size_t from, size_t to)
{
	struct leaves *leaves = context;
	struct child *children = leaves->children;

	for (size_t i = from; i < to; i++) {
		size_t first = share(leaves->n, leaves->n_leaves, i);
		size_t end = share(leaves->n, leaves->n_leaves, i + 1);
		struct pfs_leaf *leaf = children[i].node;

		leaf->count = (uint32_t)(end - first);
		memcpy(leaf->keys, &leaves->keys[first], leaf->count * sizeof(leaf->keys[0]));
		memcpy(pfs_btree_slots(leaves->tree, leaf), &leaves->slots[first],
		       leaf->count * sizeof(pfs_btree_value));
		leaf->previous = i ? children[i - 1].node : NULL;
		leaf->next = i + 1 < leaves->n_leaves ? children[i + 1].node : NULL;
		children[i].key = leaf->keys[0];
		children[i].slot = leaves->slots[first];
		if (!ascending(leaves->keys, leaves->slots, first, end))
			atomic_store(&leaves->unsorted, true);
	}
}

/* Replaces the n children by their parents; how many those are. */
static size_t load_level(struct pfs_btree *tree, struct child *children, size_t n)
{
	size_t groups = (size_t)pfs_div_round_up(n, LOAD_FILL + 1);

	for (size_t i = 0; i < groups; i++) {
		size_t from = share(n, groups, i), end = share(n, groups, i + 1);
		struct pfs_inner *node = pfs_node_pool_take(&tree->inners);

		node->count = (uint32_t)(end - from - 1);
		node->children[0] = children[from].node;
		for (uint32_t k = 0; k < node->count; k++) {
			const struct child *child = &children[from + k + 1];

			node->keys[k] = child->key;
			node->slots[k] = child->slot;
			node->children[k + 1] = child->node;
		}
		children[i] = (struct child){node, children[from].key, children[from].slot};
	}
	return groups;
}

/* Makes what is above these nodes of an empty tree, which are above so many levels. */
static void plant(struct pfs_btree *tree, struct child *children, size_t n_children,
		  unsigned height, size_t n)
{
	pfs_node_pool_give(&tree->leaves, tree->root); /* the empty leaf */
	tree->height = height;
	for (size_t width = n_children; width > 1; tree->height++)
		width = load_level(tree, children, width);
	tree->root = children[0].node;
	tree->count = n;
}

/* Builds a tree that is empty and has taken memory for the nodes. */
static int build(struct pfs_btree *tree, struct pfs_pool *pool, struct leaves *leaves)
{
	for (size_t i = 0; i < leaves->n_leaves; i++)
		leaves->children[i].node = pfs_node_pool_take(&tree->leaves);
	pfs_pool_run(pool, leaves->n_leaves, GRAIN, fill_leaves, leaves);
	if (atomic_load(&leaves->unsorted)) {
		for (size_t i = 0; i < leaves->n_leaves; i++)
			pfs_node_pool_give(&tree->leaves, leaves->children[i].node);
		return -EINVAL;
	}
	tree->first = leaves->children[0].node;
	plant(tree, leaves->children, leaves->n_leaves, 0, leaves->n);
	return 0;
}

static size_t inners_above(size_t n_leaves)
{
	size_t n = 0;

	for (size_t width = n_leaves; width > 1; n += width)
		width = (size_t)pfs_div_round_up(width, LOAD_FILL + 1);
	return n;
}

int pfs_btree_load(struct pfs_btree *tree, struct pfs_pool *pool, const uint64_t *keys,
		   const pfs_btree_value *slots, size_t n)
{
	struct leaves leaves = {.tree = tree, .n = n, .keys = keys, .slots = slots};
	int error;

	if (tree->count)
		return -EINVAL;
	if (!n)
		return 0;
	leaves.n_leaves = (size_t)pfs_div_round_up(n, pfs_btree_fill(tree->leaf_max));
	leaves.children = calloc(leaves.n_leaves, sizeof(*leaves.children));
	if (!leaves.children)
		return -ENOMEM;
	error = pfs_node_pool_reserve(&tree->leaves, leaves.n_leaves);
	if (!error)
		error = pfs_node_pool_reserve(&tree->inners, inners_above(leaves.n_leaves));
	if (!error)
		error = build(tree, pool, &leaves);
	free(leaves.children);
	return error;
}

/* ---- leaves that are made later ---- */

size_t pfs_btree_count_inners(size_t n_leaves)
{
	return (size_t)pfs_div_round_up(n_leaves, PFS_BTREE_INNER_COUNT);
}

size_t pfs_btree_first_leaf(size_t n_leaves, size_t i)
{
	return share(n_leaves, pfs_btree_count_inners(n_leaves), i);
}

size_t pfs_btree_inner_of(size_t n_leaves, size_t leaf)
{
	size_t groups = pfs_btree_count_inners(n_leaves), size = n_leaves / groups,
	       larger = n_leaves % groups;
	size_t in_larger = larger * (size + 1);

	return leaf < in_larger ? leaf / (size + 1) : larger + (leaf - in_larger) / size;
}

static bool firsts_ascend(const struct pfs_btree_entry *firsts, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (firsts[i - 1].key > firsts[i].key ||
		    (firsts[i - 1].key == firsts[i].key && firsts[i - 1].slot >= firsts[i].slot))
			return false;
	return true;
}

int pfs_btree_load_lazily(struct pfs_btree *tree, void *leaves, void *inners,
			  const struct pfs_btree_entry *firsts, size_t n)
{
	size_t n_leaves = (size_t)pfs_div_round_up(n, LOAD_FILL),
	       n_inners = pfs_btree_count_inners(n_leaves);
	struct child *children PFS_FREE = calloc(n_inners + 1, sizeof(*children));

	if (!n)
		return tree->count ? -EINVAL : 0;
	if (tree->count || !firsts_ascend(firsts, n_inners))
		return -EINVAL;
	if (!children)
		return -ENOMEM;
	for (size_t i = 0; i < n_inners; i++)
		children[i] = (struct child){(char *)inners + i * PFS_BTREE_INNER_SIZE,
					     firsts[i].key, firsts[i].slot};
	if (n_leaves == 1)
		children[0].node = leaves;
	PFS_TRY(pfs_node_pool_reserve(&tree->inners, inners_above(n_inners)));
	tree->first = leaves;
	plant(tree, children, n_inners, n_leaves > 1, n);
	tree->leaves.n_used += n_leaves;
	tree->leaves.bytes += n_leaves * PFS_BTREE_LEAF_SIZE;
	if (n_leaves > 1) {
		tree->inners.n_used += n_inners;
		tree->inners.bytes += n_inners * PFS_BTREE_INNER_SIZE;
	}
	return 0;
}

void pfs_btree_make_leaf(void *to, void *leaves, size_t i, size_t n_leaves,
			 const struct pfs_btree_entry *entries, unsigned count)
{
	char *self = (char *)leaves + i * PFS_BTREE_LEAF_SIZE;
	const struct pfs_btree tree = {.leaf_max = LEAF_MAX};
	struct pfs_leaf *leaf = to;

	leaf->count = count;
	leaf->previous = i ? (struct pfs_leaf *)(self - PFS_BTREE_LEAF_SIZE) : NULL;
	leaf->next = i + 1 < n_leaves ? (struct pfs_leaf *)(self + PFS_BTREE_LEAF_SIZE) : NULL;
	for (unsigned k = 0; k < count; k++) {
		leaf->keys[k] = entries[k].key;
		pfs_btree_slots(&tree, leaf)[k] = entries[k].slot;
	}
}

void pfs_btree_make_inner(void *to, void *leaves, size_t leaf, const struct pfs_btree_entry *firsts,
			  unsigned count)
{
	struct pfs_inner *node = to;

	node->count = count - 1;
	for (unsigned i = 0; i < count; i++) {
		node->children[i] = (char *)leaves + (leaf + i) * PFS_BTREE_LEAF_SIZE;
		if (!i)
			continue;
		node->keys[i - 1] = firsts[i].key;
		node->slots[i - 1] = firsts[i].slot;
	}
}

/* ---- invariants ---- */

/* What a walk through the nodes in order has seen. */
struct verification {
	const struct pfs_btree *tree;
	const struct pfs_leaf *previous; /* leaf */
	uint64_t key; /* the entry before the present one */
	pfs_btree_value slot;
	uint64_t least_key; /* the separator before: no entry may be less */
	pfs_btree_value least_slot;
	size_t count, leaves, inners;
};

static bool less(uint64_t key, pfs_btree_value slot, uint64_t than_key, pfs_btree_value than_slot)
{
	return key < than_key || (key == than_key && slot < than_slot);
}

static int verify_leaf(struct verification *seen, const struct pfs_leaf *leaf)
{
	const pfs_btree_value *slots = pfs_btree_slots(seen->tree, leaf);
	bool last = !leaf->next;

	if (leaf->count > seen->tree->leaf_max || leaf->previous != seen->previous ||
	    (seen->previous ? seen->previous->next : seen->tree->first) != leaf)
		return -EUCLEAN;
	if (leaf->count < (last ? (seen->tree->height ? 1u : 0u) : seen->tree->leaf_min))
		return -EUCLEAN;
	for (uint32_t i = 0; i < leaf->count; i++) {
		if (seen->count && !less(seen->key, seen->slot, leaf->keys[i], slots[i]))
			return -EUCLEAN;
		if (less(leaf->keys[i], slots[i], seen->least_key, seen->least_slot))
			return -EUCLEAN;
		seen->key = leaf->keys[i];
		seen->slot = slots[i];
		seen->count++;
	}
	seen->previous = leaf;
	seen->leaves++;
	return 0;
}

/* right: the node is at the tree's right edge. The recursion is as deep as the tree is high. */
static int verify_subtree(struct verification *seen, const void *node, unsigned height, bool right)
{
	const struct pfs_inner *inner = node;
	int error;

	if (!height)
		return verify_leaf(seen, node);
	if (!inner->count || inner->count > INNER_MAX || (inner->count < INNER_MIN && !right))
		return -EUCLEAN;
	seen->inners++;
	for (uint32_t i = 0; i <= inner->count; i++) {
		if (i && !less(seen->key, seen->slot, inner->keys[i - 1], inner->slots[i - 1]))
			return -EUCLEAN;
		seen->least_key = i ? inner->keys[i - 1] : seen->least_key;
		seen->least_slot = i ? inner->slots[i - 1] : seen->least_slot;
		error = verify_subtree(seen, inner->children[i], height - 1,
				       right && i == inner->count);
		if (error)
			return error;
	}
	return 0;
}

int pfs_btree_verify(const struct pfs_btree *tree)
{
	struct verification seen = {.tree = tree};
	int error;

	if (tree->height >= LEVELS_MAX)
		return -EUCLEAN;
	error = verify_subtree(&seen, tree->root, tree->height, true);
	if (error)
		return error;
	if (seen.count != tree->count || !seen.previous || seen.previous->next ||
	    seen.leaves != tree->leaves.n_used || seen.inners != tree->inners.n_used)
		return -EUCLEAN;
	return 0;
}
