/* SPDX-License-Identifier: MIT */
/* A prefix tree's copy as a sorted array of its keys, for gpu/prefix.h in place of a device's.  Of
 * a compact tree it answers as a device does, which walks such a tree without looking at the key: a
 * key that is not there leads to another one, and the host has to compare. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/search.h"
#include "gpu/prefix_impl.h"
#include "tests/ref/stand_in_operators.h"

struct pfs_prefix_copy {
	uint32_t *items;
	size_t n, capacity;
	uint64_t changes; /* the tree's when it was copied */
};

static int compare(const struct pfs_prefix_tree *tree, uint32_t item,
		   const struct pfs_prefix_text *key)
{
	struct pfs_prefix_text other = pfs_prefix_key_of(tree, item);
	uint32_t len = PFS_MIN(other.len, key->len);
	int order = len ? memcmp(other.bytes, key->bytes, len) : 0;

	return order ? order : (other.len > key->len) - (other.len < key->len);
}

static void drop(struct pfs_operator_backend *b PFS_UNUSED, struct pfs_prefix_copy *copy)
{
	free(copy->items);
	free(copy);
}

/* Takes the keys from the list of payloads, in which they lie in their order. */
static int bring_up_to_date(struct pfs_prefix *index)
{
	const struct pfs_prefix_tree *tree = &index->tree;
	struct pfs_prefix_copy *copy = index->copy;

	if (copy && copy->changes == tree->changes)
		return 0;
	if (!copy)
		copy = index->copy = calloc(1, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	copy->n = 0;
	for (uint32_t place = pfs_prefix_payload_at(tree, 0)->next; place;
	     place = pfs_prefix_payload_at(tree, place)->next) {
		uint32_t item = pfs_prefix_payload_at(tree, place)->item;

		PFS_TRY(pfs_grow(&copy->items, &copy->capacity, copy->n + 1, sizeof(*copy->items)));
		if (copy->n == 0 || copy->items[copy->n - 1] != item)
			copy->items[copy->n++] = item;
	}
	copy->changes = tree->changes;
	return 0;
}

static int find(struct pfs_operator_backend *b PFS_UNUSED, const struct pfs_run *run PFS_UNUSED,
		struct pfs_prefix *index, uint32_t *items, bool *unsure,
		const struct pfs_prefix_texts *keys)
{
	const struct pfs_prefix_tree *tree = &index->tree;
	const struct pfs_prefix_copy *copy;

	PFS_TRY(stand_in_operators_call());
	PFS_TRY(bring_up_to_date(index));
	copy = index->copy;
	*unsure = tree->view.is_compact;
	for (size_t i = 0; i < keys->n; i++) {
		const struct pfs_prefix_text *key = &keys->texts[i];
		size_t at = PFS_SEARCH(k, 0, copy->n, compare(tree, copy->items[k], key) < 0);
		bool is_there = at < copy->n && compare(tree, copy->items[at], key) == 0;

		items[i] = 0;
		if (is_there || (*unsure && copy->n))
			items[i] = copy->items[PFS_MIN(at, copy->n - 1)] | PFS_PREFIX_ITEM;
	}
	return 0;
}

static int find_name(struct pfs_operator_backend *b PFS_UNUSED,
		     const struct pfs_run *run PFS_UNUSED, uint32_t *found, const char *names,
		     size_t n, const char *name)
{
	PFS_TRY(stand_in_operators_call());
	for (size_t i = 0; i < n; i++)
		if (strcmp(names + i * (PFS_PREFIX_NAME_MAX + 1), name) == 0)
			*found = (uint32_t)i;
	return 0;
}

const struct pfs_prefix_family stand_in_prefix_family = {
	.find = find, .drop = drop, .find_name = find_name};
