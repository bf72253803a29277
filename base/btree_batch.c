/* SPDX-License-Identifier: MIT */
/* Many entries at once: searches that go on side by side, and ranges that are read leaf by leaf. */
#include "base/btree.h"

#include <string.h>

#include "base/btree_node.h"
#include "base/checked.h"
#include "base/fetch.h"

#define SIDE_BY_SIDE 32u /* more cache lines than a core waits for at once */
#define STEPS	     2u	 /* steps of one search in a leaf, before the next search has its turn */

/* Fetches what a search of a node reads first: its count, and the key in the middle if it is as
 * full as most. */
PFS_FETCHES void fetch_node(const void *node, const uint64_t *keys, uint32_t capacity)
{
	__builtin_prefetch(node);
	__builtin_prefetch(&keys[pfs_btree_fill(capacity) / 2 - 1]);
}

/* leaf_max: that of the node; 0 says that it is an inner one. */
PFS_FETCHES void fetch(const void *node, uint32_t leaf_max)
{
	if (leaf_max)
		fetch_node(node, ((const struct pfs_leaf *)node)->keys, leaf_max);
	else
		fetch_node(node, ((const struct pfs_inner *)node)->keys, INNER_MAX);
}

/* Returns entry i of a leaf; of a leaf that has no such entry, the first one of the next. */
static inline struct pfs_btree_entry entry_at(const struct pfs_btree *tree,
					      const struct pfs_leaf *leaf, uint32_t i)
{
	if (i == leaf->count) {
		leaf = leaf->next;
		i = 0;
	}
	return leaf ? (struct pfs_btree_entry){leaf->keys[i], pfs_btree_slots(tree, leaf)[i]}
		    : (struct pfs_btree_entry){0, PFS_BTREE_NONE};
}

/* ---- searches in a tree that is near ---- */

/* Level by level: a core begins the next search while it waits for what one reads. */
static void find_near(const struct pfs_btree *tree, struct pfs_btree_entry *out,
		      const uint64_t *keys, pfs_btree_value slot, size_t n)
{
	const void *node[SIDE_BY_SIDE];

	for (size_t i = 0; i < n; i++)
		node[i] = tree->root;
	for (unsigned level = 0; level < tree->height; level++) {
		uint32_t leaf_max = level + 1 == tree->height ? tree->leaf_max : 0;

		for (size_t i = 0; i < n; i++) {
			const struct pfs_inner *inner = node[i];

			node[i] = inner->children[pfs_btree_child(inner, keys[i], slot)];
			fetch(node[i], leaf_max);
		}
	}
	for (size_t i = 0; i < n; i++) {
		const struct pfs_leaf *leaf = node[i];

		out[i] = entry_at(tree, leaf,
				  pfs_btree_rank(leaf->keys, pfs_btree_slots(tree, leaf),
						 leaf->count, keys[i], slot));
	}
}

/* ---- searches in a tree that is far ---- */

/* Searches side by side. Each step of one looks at a line that was fetched while the others took
 * theirs. */
struct searches {
	const struct pfs_btree *tree;
	const uint64_t *wanted;
	pfs_btree_value slot;
	size_t n;
	const void *node[SIDE_BY_SIDE]; /* all are of one level */
	uint32_t rank[SIDE_BY_SIDE]; /* in the node, or of the first key that is left to search, */
	uint32_t left[SIDE_BY_SIDE]; /* and how many of them are */
};

/* Goes one level down. leaf_max is that of the nodes there; 0 says that they are inner ones. */
static void descend(struct searches *searches, uint32_t leaf_max)
{
	for (size_t i = 0; i < searches->n; i++) {
		const struct pfs_inner *inner = searches->node[i];

		searches->rank[i] = pfs_btree_child(inner, searches->wanted[i], searches->slot);
		__builtin_prefetch(&inner->children[searches->rank[i]]);
	}
	for (size_t i = 0; i < searches->n; i++) {
		const struct pfs_inner *inner = searches->node[i];

		searches->node[i] = inner->children[searches->rank[i]];
		fetch(searches->node[i], leaf_max);
	}
}

/* Takes the first steps of the searches in leaves, by turns: after them what is left is about a
 * line. */
static void begin_in_leaves(struct searches *searches)
{
	for (size_t i = 0; i < searches->n; i++) {
		searches->rank[i] = 0;
		searches->left[i] = ((const struct pfs_leaf *)searches->node[i])->count;
	}
	for (unsigned step = 0; step < STEPS; step++) {
		for (size_t i = 0; i < searches->n; i++) {
			const struct pfs_leaf *leaf = searches->node[i];
			const uint64_t *at = leaf->keys + searches->rank[i];

			if (searches->left[i] < 2)
				continue;
			at = pfs_btree_halve(at, &searches->left[i], searches->wanted[i]);
			searches->rank[i] = (uint32_t)(at - leaf->keys);
			__builtin_prefetch(&at[searches->left[i] / 2]);
		}
	}
}

static void end_in_leaves(struct searches *searches)
{
	for (size_t i = 0; i < searches->n; i++) {
		const struct pfs_leaf *leaf = searches->node[i];
		const pfs_btree_value *slots = pfs_btree_slots(searches->tree, leaf);
		uint64_t key = searches->wanted[i];
		uint32_t rank = searches->rank[i];

		rank += pfs_btree_below(&leaf->keys[rank], searches->left[i], key);
		rank = pfs_btree_below_slot(leaf->keys, slots, leaf->count, rank, key,
					    searches->slot);
		searches->rank[i] = rank;
		__builtin_prefetch(&slots[rank]);
	}
}

static void find_far(const struct pfs_btree *tree, struct pfs_btree_entry *out,
		     const uint64_t *keys, pfs_btree_value slot, size_t n)
{
	struct searches searches;

	searches.tree = tree;
	searches.wanted = keys;
	searches.slot = slot;
	searches.n = n;
	for (size_t i = 0; i < n; i++)
		searches.node[i] = tree->root;
	for (unsigned level = 0; level < tree->height; level++)
		descend(&searches, level + 1 == tree->height ? tree->leaf_max : 0);
	begin_in_leaves(&searches);
	end_in_leaves(&searches);
	for (size_t i = 0; i < n; i++)
		out[i] = entry_at(tree, searches.node[i], searches.rank[i]);
}

void pfs_btree_find(const struct pfs_btree *tree, struct pfs_btree_entry *out, const uint64_t *keys,
		    pfs_btree_value slot, size_t n)
{
	bool is_near = tree->count <= PFS_BTREE_NEAR;

	for (size_t i = 0; i < n; i += SIDE_BY_SIDE)
		(is_near ? find_near : find_far)(tree, &out[i], &keys[i], slot,
						 PFS_MIN(n - i, SIDE_BY_SIDE));
}

/* ---- ranges ---- */

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
			end = pfs_btree_rank(leaf->keys, pfs_btree_slots(tree, leaf), end, last + 1,
					     0);
		if (end <= from)
			break;
		end = (uint32_t)PFS_MIN(end, from + (capacity - done));
		memcpy(&keys[done], &leaf->keys[from], (end - from) * sizeof(*keys));
		memcpy(&slots[done], pfs_btree_slots(tree, leaf) + from,
		       (end - from) * sizeof(*slots));
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
