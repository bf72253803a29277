/* SPDX-License-Identifier: MIT */
#include "base/btree_group.h"

#include "base/btree_node.h"

#define LINE 64u

/* The lines of keys that a binary search may read, all at once: waiting for one after the other takes
 * longer than the bytes that are not needed. */
static void fetch(const void *node, const uint64_t *keys, size_t n)
{
	__builtin_prefetch(node);
	for (size_t at = 0; at < n; at += LINE / sizeof(*keys))
		__builtin_prefetch(keys + at);
}

/* How many keys are less. */
static uint32_t rank(const uint64_t *keys, uint32_t count, uint64_t key)
{
	const uint64_t *base = keys;
	uint32_t n = count;

	while (n > 1) {
		uint32_t half = n / 2;

		base += (base[half - 1] < key) ? half : 0; /* a conditional move */
		n -= half;
	}
	return (uint32_t)(base - keys) + (n && *base < key);
}

/* The child that the first entry of the key is in, or ends before: a separator (key, 0) starts the child
 * on its right. */
static void *step(const struct pfs_inner *node, uint64_t key)
{
	uint32_t i = rank(node->keys, node->count, key);

	return node->children[i + (i < node->count && node->keys[i] == key && !node->slots[i])];
}

void pfs_btree_seek_group(const struct pfs_btree *tree, struct pfs_btree_cursor *cursors,
			  const uint64_t *keys, size_t n)
{
	const void *nodes[PFS_BTREE_GROUP];

	for (size_t i = 0; i < n; i++)
		nodes[i] = tree->root;
	for (unsigned level = 0; level < tree->height; level++) {
		bool to_leaves = level + 1 == tree->height;

		for (size_t i = 0; i < n; i++) {
			const void *next = step(nodes[i], keys[i]);

			nodes[i] = next;
			if (to_leaves)
				fetch(next, ((const struct pfs_leaf *)next)->keys, LEAF_MAX);
			else
				fetch(next, ((const struct pfs_inner *)next)->keys, INNER_MAX);
		}
	}
	for (size_t i = 0; i < n; i++) {
		const struct pfs_leaf *leaf = nodes[i];

		cursors[i].leaf = leaf;
		cursors[i].position = rank(leaf->keys, leaf->count, keys[i]);
		__builtin_prefetch(&leaf->slots[cursors[i].position]);
		if (cursors[i].position == leaf->count && leaf->next)
			fetch(leaf->next, leaf->next->keys, 1);
	}
}
