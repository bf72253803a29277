/* SPDX-License-Identifier: MIT */
#include "base/btree.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/btree_node.h"
#include "base/fetch.h"

#define LINE 64u /* bytes of a processor's cache line */

/* The way from the root to a leaf. */
struct path {
	struct pfs_inner *node[LEVELS_MAX];
	uint32_t child[LEVELS_MAX];
};

/* ---- search ---- */

/* Fetches memory of which a search reads a few lines one after the other, and a change most. */
PFS_FETCHES void fetch(const void *memory, size_t size)
{
	for (size_t i = 0; i < size; i += LINE)
		__builtin_prefetch((const char *)memory + i);
}

/* Fetches a node that has so many levels above it. */
PFS_FETCHES void fetch_node(const struct pfs_btree *tree, const void *node, unsigned levels)
{
	if (levels == tree->height)
		fetch(node, tree->leaves.node_size);
	else
		fetch(((const struct pfs_inner *)node)->keys, INNER_MAX * sizeof(uint64_t));
}

static struct pfs_leaf *descend(const struct pfs_btree *tree, struct path *path, uint64_t key,
			    pfs_btree_value slot)
{
	bool is_far = tree->count > PFS_BTREE_NEAR;
	void *node = tree->root;

	for (unsigned level = 0; level < tree->height; level++) {
		struct pfs_inner *inner = node;
		uint32_t i = pfs_btree_child(inner, key, slot);

		path->node[level] = inner;
		path->child[level] = i;
		node = inner->children[i];
		if (is_far)
			fetch_node(tree, node, level + 1);
	}
	return node;
}

static bool holds(const struct pfs_btree *tree, const struct pfs_leaf *leaf, uint32_t i,
		  uint64_t key, pfs_btree_value slot)
{
	return i < leaf->count && leaf->keys[i] == key && pfs_btree_slots(tree, leaf)[i] == slot;
}

/* ---- insertion ---- */

static void leaf_open(const struct pfs_btree *tree, struct pfs_leaf *leaf, uint32_t i, uint64_t key,
		      pfs_btree_value slot)
{
	pfs_btree_value *slots = pfs_btree_slots(tree, leaf);

	memmove(&leaf->keys[i + 1], &leaf->keys[i], (leaf->count - i) * sizeof(leaf->keys[0]));
	memmove(&slots[i + 1], &slots[i], (leaf->count - i) * sizeof(*slots));
	leaf->keys[i] = key;
	slots[i] = slot;
	leaf->count++;
}

/* Moves the entries from `from` on to the empty node `right`. */
static void leaf_split(const struct pfs_btree *tree, struct pfs_leaf *leaf, struct pfs_leaf *right,
		       uint32_t from)
{
	right->count = leaf->count - from;
	memcpy(right->keys, &leaf->keys[from], right->count * sizeof(right->keys[0]));
	memcpy(pfs_btree_slots(tree, right), pfs_btree_slots(tree, leaf) + from,
	       right->count * sizeof(pfs_btree_value));
	leaf->count = from;
	right->previous = leaf;
	right->next = leaf->next;
	if (right->next)
		right->next->previous = right;
	leaf->next = right;
}

/* Puts separator i and the child on its right into a node that has room. */
static void inner_open(struct pfs_inner *node, uint32_t i, uint64_t key, pfs_btree_value slot,
		       void *child)
{
	uint32_t tail = node->count - i;

	memmove(&node->keys[i + 1], &node->keys[i], tail * sizeof(node->keys[0]));
	memmove(&node->slots[i + 1], &node->slots[i], tail * sizeof(node->slots[0]));
	memmove(&node->children[i + 2], &node->children[i + 1], tail * sizeof(node->children[0]));
	node->keys[i] = key;
	node->slots[i] = slot;
	node->children[i + 1] = child;
	node->count++;
}

/* Splits a full node, moving up separator `middle`; *key, *slot = that separator. */
static void inner_split(struct pfs_inner *node, struct pfs_inner *right, uint32_t middle,
			uint64_t *key, pfs_btree_value *slot)
{
	right->count = node->count - middle - 1;
	memcpy(right->keys, &node->keys[middle + 1], right->count * sizeof(right->keys[0]));
	memcpy(right->slots, &node->slots[middle + 1], right->count * sizeof(right->slots[0]));
	memcpy(right->children, &node->children[middle + 1],
	       (right->count + 1) * sizeof(right->children[0]));
	*key = node->keys[middle];
	*slot = node->slots[middle];
	node->count = middle;
}

/* Hands (key, slot) and the new node on its right up the path, splitting what is full. */
static void insert_up(struct pfs_btree *tree, const struct path *path, uint64_t key,
		      pfs_btree_value slot, void *right)
{
	/* of the tree: nodes in the middle must not be left nearly empty */
	bool at_right_edge = !((const struct pfs_leaf *)right)->next;
	struct pfs_inner *root;

	for (unsigned level = tree->height; level-- > 0;) {
		struct pfs_inner *node = path->node[level];
		uint32_t i = path->child[level];
		struct pfs_inner *split;
		uint32_t middle;
		uint64_t up_key;
		pfs_btree_value up_slot;

		if (node->count < INNER_MAX) {
			inner_open(node, i, key, slot, right);
			return;
		}
		split = pfs_node_pool_take(&tree->inners);
		/* at the right edge the new node starts with one child and gets the next */
		middle = at_right_edge ? node->count - 1 : node->count / 2;
		inner_split(node, split, middle, &up_key, &up_slot);
		if (i <= middle)
			inner_open(node, i, key, slot, right);
		else
			inner_open(split, i - middle - 1, key, slot, right);
		key = up_key;
		slot = up_slot;
		right = split;
	}
	root = pfs_node_pool_take(&tree->inners);
	root->count = 1;
	root->keys[0] = key;
	root->slots[0] = slot;
	root->children[0] = tree->root;
	root->children[1] = right;
	tree->root = root;
	tree->height++;
}

int pfs_btree_reserve(struct pfs_btree *tree, size_t n)
{
	size_t leaves, inners, most;
	int error;

	/* Each insert can split a leaf and every node above it, and may add a level. */
	if (__builtin_mul_overflow(n, (size_t)tree->height + 2, &inners) ||
	    __builtin_add_overflow(n, tree->count, &most))
		return -ENOMEM;
	if (n <= tree->leaves.n_free && inners <= tree->inners.n_free)
		return 0;
	/* But all nodes except the last of each level are at least a quarter full. */
	most = most / tree->leaf_min + 2;
	leaves = PFS_MIN(n, most);
	inners = PFS_MIN(inners, most / INNER_MIN * 2 + tree->height + 2);
	error = pfs_node_pool_reserve(&tree->leaves, leaves);
	return error ? error : pfs_node_pool_reserve(&tree->inners, inners);
}

/* Makes the entry number i of the leaf at the end of the path. */
static int insert_at(struct pfs_btree *tree, const struct path *path, struct pfs_leaf *leaf,
		     uint32_t i, struct pfs_btree_entry entry)
{
	struct pfs_leaf *right;
	uint32_t from;

	if (leaf->count < tree->leaf_max) {
		leaf_open(tree, leaf, i, entry.key, entry.slot);
		tree->count++;
		return 0;
	}
	PFS_TRY(pfs_btree_reserve(tree, 1));
	right = pfs_node_pool_take(&tree->leaves);
	from = !leaf->next && i == leaf->count ? leaf->count : leaf->count / 2;
	leaf_split(tree, leaf, right, from);
	if (i < from || (i == from && from != tree->leaf_max))
		leaf_open(tree, leaf, i, entry.key, entry.slot);
	else
		leaf_open(tree, right, i - from, entry.key, entry.slot);
	tree->count++;
	insert_up(tree, path, right->keys[0], pfs_btree_slots(tree, right)[0], right);
	return 0;
}

/* Descends to the leaf of an entry, and sets *i to its place there. */
static struct pfs_leaf *descend_to(struct pfs_btree *tree, struct path *path, uint32_t *i,
				   uint64_t key, pfs_btree_value slot)
{
	struct pfs_leaf *leaf = descend(tree, path, key, slot);

	*i = pfs_btree_rank(leaf->keys, pfs_btree_slots(tree, leaf), leaf->count, key, slot);
	return leaf;
}

int pfs_btree_insert(struct pfs_btree *tree, uint64_t key, pfs_btree_value slot)
{
	struct path path;
	uint32_t i;
	struct pfs_leaf *leaf = descend_to(tree, &path, &i, key, slot);

	if (holds(tree, leaf, i, key, slot))
		return -EEXIST;
	return insert_at(tree, &path, leaf, i, (struct pfs_btree_entry){key, slot});
}

/* Returns true if the entry before the leaf's place i, or the one there, has the key, and then sets
 * *slot to its slot. Either may be in a leaf beside. */
static bool has_beside(const struct pfs_btree *tree, const struct pfs_leaf *leaf, uint32_t i,
		       uint64_t key, pfs_btree_value *slot)
{
	const struct pfs_leaf *before = i ? leaf : leaf->previous;
	const struct pfs_leaf *after = i < leaf->count ? leaf : leaf->next;
	uint32_t last = i ? i - 1 : before ? before->count - 1 : 0;
	uint32_t first = i < leaf->count ? i : 0;

	if (before && before->keys[last] == key) {
		*slot = pfs_btree_slots(tree, before)[last];
		return true;
	}
	if (!after || after->keys[first] != key)
		return false;
	*slot = pfs_btree_slots(tree, after)[first];
	return true;
}

int pfs_btree_insert_key(struct pfs_btree *tree, pfs_btree_value *there, uint64_t key,
			 pfs_btree_value slot)
{
	struct path path;
	uint32_t i;
	struct pfs_leaf *leaf = descend_to(tree, &path, &i, key, slot);

	if (has_beside(tree, leaf, i, key, there))
		return -EEXIST;
	return insert_at(tree, &path, leaf, i, (struct pfs_btree_entry){key, slot});
}

/* ---- removal ---- */

static void inner_close(struct pfs_inner *node, uint32_t i)
{
	uint32_t tail = node->count - i - 1;

	memmove(&node->keys[i], &node->keys[i + 1], tail * sizeof(node->keys[0]));
	memmove(&node->slots[i], &node->slots[i + 1], tail * sizeof(node->slots[0]));
	memmove(&node->children[i + 1], &node->children[i + 2], tail * sizeof(node->children[0]));
	node->count--;
}

/* Evens out two neighbours by moving entries from the fuller one. */
static void leaf_balance(const struct pfs_btree *tree, struct pfs_leaf *left,
			 struct pfs_leaf *right)
{
	pfs_btree_value *left_slots = pfs_btree_slots(tree, left),
			*right_slots = pfs_btree_slots(tree, right);
	uint32_t want = (left->count + right->count) / 2;
	uint32_t n;

	if (left->count < want) {
		n = want - left->count;
		memcpy(&left->keys[left->count], right->keys, n * sizeof(left->keys[0]));
		memcpy(&left_slots[left->count], right_slots, n * sizeof(*left_slots));
		right->count -= n;
		memmove(right->keys, &right->keys[n], right->count * sizeof(right->keys[0]));
		memmove(right_slots, &right_slots[n], right->count * sizeof(*right_slots));
	} else {
		n = left->count - want;
		memmove(&right->keys[n], right->keys, right->count * sizeof(right->keys[0]));
		memmove(&right_slots[n], right_slots, right->count * sizeof(*right_slots));
		memcpy(right->keys, &left->keys[want], n * sizeof(left->keys[0]));
		memcpy(right_slots, &left_slots[want], n * sizeof(*left_slots));
		right->count += n;
	}
	left->count = want;
}

static void leaf_merge(struct pfs_btree *tree, struct pfs_leaf *left, struct pfs_leaf *right)
{
	memcpy(&left->keys[left->count], right->keys, right->count * sizeof(left->keys[0]));
	memcpy(pfs_btree_slots(tree, left) + left->count, pfs_btree_slots(tree, right),
	       right->count * sizeof(pfs_btree_value));
	left->count += right->count;
	left->next = right->next;
	if (left->next)
		left->next->previous = left;
	pfs_node_pool_give(&tree->leaves, right);
}

/* Mends the two children around separator i of the parent, one of which has too few entries.
 * Returns true if it merged them, which removed the separator. */
static bool mend_leaves(struct pfs_btree *tree, struct pfs_inner *parent, uint32_t i)
{
	struct pfs_leaf *left = parent->children[i];
	struct pfs_leaf *right = parent->children[i + 1];

	if (left->count + right->count <= tree->leaf_max) {
		leaf_merge(tree, left, right);
		inner_close(parent, i);
		return true;
	}
	leaf_balance(tree, left, right);
	parent->keys[i] = right->keys[0];
	parent->slots[i] = pfs_btree_slots(tree, right)[0];
	return false;
}

/* Moves one child from the left node to the right one over the separator, or back. Inner nodes
 * seldom have too few, so moving several at once is not worth its code. */
static void inner_rotate_right(struct pfs_inner *parent, uint32_t i, struct pfs_inner *left,
			       struct pfs_inner *right)
{
	memmove(&right->children[1], right->children, (right->count + 1) * sizeof(void *));
	memmove(&right->keys[1], right->keys, right->count * sizeof(right->keys[0]));
	memmove(&right->slots[1], right->slots, right->count * sizeof(right->slots[0]));
	right->children[0] = left->children[left->count];
	right->keys[0] = parent->keys[i];
	right->slots[0] = parent->slots[i];
	right->count++;
	left->count--;
	parent->keys[i] = left->keys[left->count];
	parent->slots[i] = left->slots[left->count];
}

static void inner_rotate_left(struct pfs_inner *parent, uint32_t i, struct pfs_inner *left,
			      struct pfs_inner *right)
{
	left->keys[left->count] = parent->keys[i];
	left->slots[left->count] = parent->slots[i];
	left->count++;
	left->children[left->count] = right->children[0];
	parent->keys[i] = right->keys[0];
	parent->slots[i] = right->slots[0];
	right->count--;
	memmove(right->children, &right->children[1], (right->count + 1) * sizeof(void *));
	memmove(right->keys, &right->keys[1], right->count * sizeof(right->keys[0]));
	memmove(right->slots, &right->slots[1], right->count * sizeof(right->slots[0]));
}

static bool mend_inners(struct pfs_btree *tree, struct pfs_inner *parent, uint32_t i)
{
	struct pfs_inner *left = parent->children[i];
	struct pfs_inner *right = parent->children[i + 1];

	if (left->count + right->count + 1 > INNER_MAX) {
		if (left->count > right->count)
			inner_rotate_right(parent, i, left, right);
		else
			inner_rotate_left(parent, i, left, right);
		return false;
	}
	left->keys[left->count] = parent->keys[i];
	left->slots[left->count] = parent->slots[i];
	left->count++;
	memcpy(&left->keys[left->count], right->keys, right->count * sizeof(left->keys[0]));
	memcpy(&left->slots[left->count], right->slots, right->count * sizeof(left->slots[0]));
	memcpy(&left->children[left->count], right->children, (right->count + 1) * sizeof(void *));
	left->count += right->count;
	pfs_node_pool_give(&tree->inners, right);
	inner_close(parent, i);
	return true;
}

/* Goes up the path while nodes have too few entries. A root without separators is replaced by its
 * child. */
static void mend_up(struct pfs_btree *tree, const struct path *path)
{
	bool poor = true;

	for (unsigned level = tree->height; poor && level-- > 0;) {
		struct pfs_inner *parent = path->node[level];
		uint32_t i = path->child[level];

		/* an only child, as in a tree that could not be read completely */
		if (!parent->count)
			break;
		i -= i == parent->count; /* the separator left of the last child */
		if (level + 1 == tree->height)
			poor = mend_leaves(tree, parent, i);
		else
			poor = mend_inners(tree, parent, i);
		poor = poor && parent->count < INNER_MIN;
	}
	while (tree->height) {
		struct pfs_inner *root = tree->root;

		if (root->count)
			break;
		tree->root = root->children[0];
		tree->height--;
		pfs_node_pool_give(&tree->inners, root);
	}
}

/* Removes entry i of the leaf at the end of the path. */
static void remove_at(struct pfs_btree *tree, const struct path *path, struct pfs_leaf *leaf,
		      uint32_t i)
{
	pfs_btree_value *slots = pfs_btree_slots(tree, leaf);
	uint32_t tail = leaf->count - i - 1;

	memmove(&leaf->keys[i], &leaf->keys[i + 1], tail * sizeof(leaf->keys[0]));
	memmove(slots + i, slots + i + 1, tail * sizeof(*slots));
	leaf->count--;
	tree->count--;
	/* The last leaf may have few entries, but not none. */
	if (leaf->count < tree->leaf_min && (leaf->next || !leaf->count))
		mend_up(tree, path);
}

bool pfs_btree_remove(struct pfs_btree *tree, uint64_t key, pfs_btree_value slot)
{
	struct path path;
	uint32_t i;
	struct pfs_leaf *leaf = descend_to(tree, &path, &i, key, slot);

	if (!holds(tree, leaf, i, key, slot))
		return false;
	remove_at(tree, &path, leaf, i);
	return true;
}

bool pfs_btree_remove_key(struct pfs_btree *tree, uint64_t key)
{
	struct path path;
	struct pfs_leaf *leaf = descend(tree, &path, key, 0);
	uint32_t i = pfs_btree_below(leaf->keys, leaf->count, key);

	if (i < leaf->count && leaf->keys[i] == key) {
		remove_at(tree, &path, leaf, i);
		return true;
	}
	/* A separator may be the key with a slot that went: then the entry is on its right. */
	leaf = i == leaf->count ? leaf->next : NULL;
	return leaf && leaf->count && leaf->keys[0] == key &&
	       pfs_btree_remove(tree, key, pfs_btree_slots(tree, leaf)[0]);
}

/* ---- the rest ---- */

int pfs_btree_create_of(struct pfs_btree **out, uint32_t page)
{
	struct pfs_btree *tree = calloc(1, sizeof(*tree));

	*out = NULL;
	if (!tree)
		return -ENOMEM;
	tree->leaf_max = page;
	tree->leaf_min = page / 4;
	tree->leaves.node_size = pfs_div_round_up(pfs_btree_leaf_size(page), 8) * 8;
	tree->inners.node_size = sizeof(struct pfs_inner);
	if (pfs_node_pool_reserve(&tree->leaves, 1)) {
		free(tree);
		return -ENOMEM;
	}
	tree->first = pfs_node_pool_take(&tree->leaves);
	tree->first->count = 0;
	tree->first->previous = tree->first->next = NULL;
	tree->root = tree->first;
	*out = tree;
	return 0;
}

int pfs_btree_create(struct pfs_btree **out)
{
	return pfs_btree_create_of(out, LEAF_MAX);
}

void pfs_btree_destroy(struct pfs_btree *tree)
{
	if (!tree)
		return;
	pfs_node_pool_release(&tree->leaves);
	pfs_node_pool_release(&tree->inners);
	free(tree);
}

size_t pfs_btree_count(const struct pfs_btree *tree)
{
	return tree->count;
}

size_t pfs_btree_memory(const struct pfs_btree *tree)
{
	return sizeof(*tree) + tree->leaves.bytes + tree->inners.bytes;
}

void pfs_btree_seek(const struct pfs_btree *tree, struct pfs_btree_cursor *cursor, uint64_t key,
		    pfs_btree_value slot)
{
	struct path path;
	const struct pfs_leaf *leaf = descend(tree, &path, key, slot);

	cursor->leaf = leaf;
	cursor->position =
		pfs_btree_rank(leaf->keys, pfs_btree_slots(tree, leaf), leaf->count, key, slot);
}

bool pfs_btree_next(const struct pfs_btree *tree, struct pfs_btree_cursor *cursor,
		    struct pfs_btree_entry *out)
{
	const struct pfs_leaf *leaf = cursor->leaf;

	if (cursor->position >= leaf->count) {
		leaf = leaf->next;
		if (!leaf)
			return false;
		cursor->leaf = leaf;
		cursor->position = 0;
	}
	out->key = leaf->keys[cursor->position];
	out->slot = pfs_btree_slots(tree, leaf)[cursor->position];
	cursor->position++;
	return true;
}
