/* SPDX-License-Identifier: MIT */
/* Many entries at once: searches side by side, and ranges read leaf by leaf. */
#include "base/btree.h"

#include <string.h>

#include "base/btree_node.h"
#include "base/checked.h"
#include "base/fetch.h"

#define SIDE_BY_SIDE 16u /* about as many lines as a core waits for at once */
#define LINE	     64u

/* The halves and quarters of a node's keys are what its search reads first. */
PFS_FETCHES void prefetch_keys(const void *node, const uint64_t *keys, uint32_t capacity)
{
	__builtin_prefetch(node); /* its count */
	for (uint32_t i = 0; i < capacity; i += LINE / sizeof(*keys) * 2)
		__builtin_prefetch(&keys[i]);
}

PFS_FETCHES void prefetch(const void *node, uint32_t leaf_max)
{
	if (leaf_max)
		prefetch_keys(node, ((const struct pfs_leaf *)node)->keys, leaf_max);
	else
		prefetch_keys(node, ((const struct pfs_inner *)node)->keys, INNER_MAX);
}

static void find_some(const struct pfs_btree *tree, struct pfs_btree_entry *out,
		      const uint64_t *keys, pfs_btree_value slot, size_t n)
{
	const void *node[SIDE_BY_SIDE];
	uint32_t at[SIDE_BY_SIDE];

	for (size_t i = 0; i < n; i++)
		node[i] = tree->root;
	for (unsigned level = 0; level < tree->height; level++) {
		for (size_t i = 0; i < n; i++) {
			const struct pfs_inner *inner = node[i];

			node[i] = inner->children[pfs_btree_child(inner, keys[i], slot)];
			prefetch(node[i], level + 1 == tree->height ? tree->leaf_max : 0);
		}
	}
	for (size_t i = 0; i < n; i++) {
		const struct pfs_leaf *leaf = node[i];

		at[i] = pfs_btree_rank(leaf->keys, pfs_btree_slots(tree, leaf), leaf->count, keys[i], slot);
		if (at[i] == leaf->count) {
			node[i] = leaf = leaf->next;
			at[i] = 0;
		}
		if (leaf)
			__builtin_prefetch(&pfs_btree_slots(tree, leaf)[at[i]]);
	}
	for (size_t i = 0; i < n; i++) {
		const struct pfs_leaf *leaf = node[i];

		out[i] = (struct pfs_btree_entry){0, PFS_BTREE_NONE};
		if (leaf)
			out[i] = (struct pfs_btree_entry){leaf->keys[at[i]], pfs_btree_slots(tree, leaf)[at[i]]};
	}
}

void pfs_btree_find(const struct pfs_btree *tree, struct pfs_btree_entry *out, const uint64_t *keys,
		    pfs_btree_value slot, size_t n)
{
	for (size_t i = 0; i < n; i += SIDE_BY_SIDE)
		find_some(tree, &out[i], &keys[i], slot, PFS_MIN(n - i, SIDE_BY_SIDE));
}

size_t pfs_btree_read(const struct pfs_btree *tree, struct pfs_btree_cursor *cursor,
		      uint64_t *keys, pfs_btree_value *slots, size_t capacity, uint64_t last)
{
	const struct pfs_leaf *leaf = cursor->leaf;
	uint32_t from = cursor->position, end;
	size_t done = 0;

	while (done < capacity) {
		if (from >= leaf->count) {
			if (!leaf->next)
				break;
			leaf = leaf->next;
			from = 0;
			continue;
		}
		end = leaf->count;
		if (leaf->keys[end - 1] > last) /* then last + 1 does not wrap */
			end = pfs_btree_rank(leaf->keys, pfs_btree_slots(tree, leaf), end, last + 1, 0);
		if (end <= from)
			break;
		end = (uint32_t)PFS_MIN(end, from + (capacity - done));
		memcpy(&keys[done], &leaf->keys[from], (end - from) * sizeof(*keys));
		memcpy(&slots[done], pfs_btree_slots(tree, leaf) + from, (end - from) * sizeof(*slots));
		done += end - from;
		from = end;
		cursor->leaf = leaf;
		cursor->position = from;
	}
	return done;
}

size_t pfs_btree_read_back(const struct pfs_btree *tree, struct pfs_btree_cursor *cursor,
			   uint64_t *keys, pfs_btree_value *slots, size_t capacity)
{
	const struct pfs_leaf *leaf = cursor->leaf;
	uint32_t to = cursor->position;
	size_t done = 0;

	while (done < capacity) {
		if (to == 0) {
			if (!leaf->previous)
				break;
			leaf = leaf->previous;
			to = leaf->count;
			continue;
		}
		to--;
		keys[done] = leaf->keys[to];
		slots[done++] = pfs_btree_slots(tree, leaf)[to];
	}
	cursor->leaf = leaf;
	cursor->position = to;
	return done;
}
