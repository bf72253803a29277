/* SPDX-License-Identifier: MIT */
/* The whole tree at once: bulk load and verification. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/btree_node.h"

#define LOAD_FILL 58u /* entries of a leaf, separators of an inner node: room for some inserts */

/* A finished node of the level below and its first entry. */
struct child {
	void *node;
	uint64_t key;
	uint32_t slot;
};

/* n things over as few groups of at most max as possible, evenly: the first of group i. */
static size_t share(size_t n, size_t groups, size_t i)
{
	return n / groups * i + PFS_MIN(i, n % groups);
}

static void load_leaves(struct pfs_btree *tree, struct child *children, size_t n_leaves,
			const uint64_t *keys, const uint32_t *slots, size_t n)
{
	struct pfs_leaf *previous = NULL;

	pfs_node_pool_give(&tree->leaves, tree->root); /* the empty leaf */
	for (size_t i = 0; i < n_leaves; i++) {
		size_t from = share(n, n_leaves, i);
		struct pfs_leaf *leaf = pfs_node_pool_take(&tree->leaves);

		leaf->count = (uint32_t)(share(n, n_leaves, i + 1) - from);
		memcpy(leaf->keys, &keys[from], leaf->count * sizeof(keys[0]));
		memcpy(leaf->slots, &slots[from], leaf->count * sizeof(slots[0]));
		leaf->previous = previous;
		leaf->next = NULL;
		if (previous)
			previous->next = leaf;
		else
			tree->first = leaf;
		previous = leaf;
		children[i] = (struct child){leaf, leaf->keys[0], leaf->slots[0]};
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

static bool ascending(const uint64_t *keys, const uint32_t *slots, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (keys[i - 1] > keys[i] || (keys[i - 1] == keys[i] && slots[i - 1] >= slots[i]))
			return false;
	return true;
}

int pfs_btree_load(struct pfs_btree *tree, const uint64_t *keys, const uint32_t *slots, size_t n)
{
	struct child *children;
	size_t n_leaves, n_inners = 0, width;
	int rc;

	if (tree->count || !ascending(keys, slots, n))
		return -EINVAL;
	if (!n)
		return 0;
	n_leaves = (size_t)pfs_div_round_up(n, LOAD_FILL);
	for (width = n_leaves; width > 1; n_inners += width)
		width = (size_t)pfs_div_round_up(width, LOAD_FILL + 1);
	children = calloc(n_leaves, sizeof(*children));
	if (!children)
		return -ENOMEM;
	rc = pfs_node_pool_reserve(&tree->leaves, n_leaves);
	if (!rc)
		rc = pfs_node_pool_reserve(&tree->inners, n_inners);
	if (!rc) {
		load_leaves(tree, children, n_leaves, keys, slots, n);
		for (width = n_leaves; width > 1; tree->height++)
			width = load_level(tree, children, width);
		tree->root = children[0].node;
		tree->count = n;
	}
	free(children);
	return rc;
}

/* ---- invariants ---- */

/* What a walk through the nodes in order has seen. */
struct verification {
	const struct pfs_btree *tree;
	const struct pfs_leaf *previous; /* leaf */
	uint64_t key; /* the entry before */
	uint32_t slot;
	uint64_t least_key; /* the separator before: nothing less may follow */
	uint32_t least_slot;
	size_t count, leaves, inners;
};

static bool less(uint64_t key, uint32_t slot, uint64_t than_key, uint32_t than_slot)
{
	return key < than_key || (key == than_key && slot < than_slot);
}

static int verify_leaf(struct verification *seen, const struct pfs_leaf *leaf)
{
	bool last = !leaf->next;

	if (leaf->count > LEAF_MAX || leaf->previous != seen->previous ||
	    (seen->previous ? seen->previous->next : seen->tree->first) != leaf)
		return -EUCLEAN;
	if (leaf->count < (last ? (seen->tree->height ? 1u : 0u) : LEAF_MIN))
		return -EUCLEAN;
	for (uint32_t i = 0; i < leaf->count; i++) {
		if (seen->count && !less(seen->key, seen->slot, leaf->keys[i], leaf->slots[i]))
			return -EUCLEAN;
		if (less(leaf->keys[i], leaf->slots[i], seen->least_key, seen->least_slot))
			return -EUCLEAN;
		seen->key = leaf->keys[i];
		seen->slot = leaf->slots[i];
		seen->count++;
	}
	seen->previous = leaf;
	seen->leaves++;
	return 0;
}

/* right: the node is on the tree's right edge.  Recursion is as deep as the tree is high. */
static int verify_subtree(struct verification *seen, const void *node, unsigned height, bool right)
{
	const struct pfs_inner *inner = node;
	int rc;

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
		rc = verify_subtree(seen, inner->children[i], height - 1,
				    right && i == inner->count);
		if (rc)
			return rc;
	}
	return 0;
}

int pfs_btree_verify(const struct pfs_btree *tree)
{
	struct verification seen = {.tree = tree};
	int rc;

	if (tree->height >= LEVELS_MAX)
		return -EUCLEAN;
	rc = verify_subtree(&seen, tree->root, tree->height, true);
	if (rc)
		return rc;
	if (seen.count != tree->count || !seen.previous || seen.previous->next ||
	    seen.leaves != tree->leaves.n_used || seen.inners != tree->inners.n_used)
		return -EUCLEAN;
	return 0;
}
