/* SPDX-License-Identifier: MIT */
#include "fs/image/children.h"

#include <string.h>

#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/tree/tree_impl.h"

#define CANDIDATES 8u  /* names of one hash that are asked for at once */
#define FEW	   16u /* entries that a listing begins with */
#define HASHES	   ((UINT64_C(1) << PFS_NAME_HASH_BITS) - 1)

static bool has_name(const struct pfs_tree *tree, uint32_t slot, const char *name, size_t len)
{
	size_t found_len;
	const char *found = pfs_names_get(tree->image.names, tree->image.name[slot], &found_len);

	return found_len == len && memcmp(found, name, len) == 0;
}

/* False: the device does not answer. */
static bool child_by_device(const struct pfs_tree *tree, uint32_t *slot, uint64_t key,
			    const char *name, size_t len)
{
	struct pfs_btree_entry some[CANDIDATES], from = {key, 0};
	unsigned n;

	*slot = PFS_NO_SLOT;
	do {
		if (!pfs_device_lookup_entries(tree, some, &n, PFS_QUESTION_LOOKUP, &from, key,
					       CANDIDATES))
			return false;
		for (unsigned i = 0; i < n; i++)
			if (has_name(tree, some[i].slot, name, len)) {
				*slot = some[i].slot;
				return true;
			}
		from.slot = n ? some[n - 1].slot + 1 : 0;
	} while (n == CANDIDATES);
	return true;
}

static uint32_t child_by_index(const struct pfs_tree *tree, uint64_t key, const char *name,
			       size_t len)
{
	const struct pfs_btree *index = pfs_image_index(tree);
	struct pfs_btree_cursor cursor;
	struct pfs_btree_entry entry;

	pfs_btree_seek(index, &cursor, key, 0);
	while (pfs_btree_next(index, &cursor, &entry) && entry.key == key)
		if (has_name(tree, entry.slot, name, len))
			return entry.slot;
	return PFS_NO_SLOT;
}

uint32_t pfs_image_child(const struct pfs_tree *tree, uint32_t parent, const char *name, size_t len)
{
	return pfs_image_child_of_hash(tree, parent, name, len, pfs_image_hash(tree, name, len));
}

uint32_t pfs_image_child_of_hash(const struct pfs_tree *tree, uint32_t parent, const char *name,
				 size_t len, uint32_t hash)
{
	uint64_t key = pfs_image_key(parent, hash), began;
	uint32_t slot;

	if (pfs_device_lookup_is_there(tree) && child_by_device(tree, &slot, key, name, len))
		return slot;
	began = pfs_device_lookup_host_begin(tree, PFS_QUESTION_LOOKUP);
	slot = child_by_index(tree, key, name, len);
	pfs_device_lookup_host_end(tree, PFS_QUESTION_LOOKUP, began);
	return slot;
}

bool pfs_image_at_path(const struct pfs_tree *tree, uint32_t *slot, const char *path, size_t last,
		       size_t len)
{
	const char *name = path + last + 1;
	const size_t name_len = len - last - 1;
	struct pfs_device_path asked = {.path = path, .len = len, .directory_len = last};
	struct pfs_btree_entry some[CANDIDATES];
	unsigned n;

	if (!pfs_device_lookup_is_there(tree))
		return false;
	asked.hash = pfs_image_hash(tree, name, name_len);
	if (!pfs_device_lookup_path(tree, some, &n, &asked, CANDIDATES))
		return false;
	*slot = PFS_NO_SLOT;
	for (unsigned i = 0; i < n && *slot == PFS_NO_SLOT; i++)
		if (has_name(tree, some[i].slot, name, name_len))
			*slot = some[i].slot;
	return *slot != PFS_NO_SLOT || n < CANDIDATES;
}

/* ---- listings ---- */

static bool ask_device(struct pfs_children *c, unsigned capacity)
{
	c->n = c->at = 0;
	if (!pfs_device_lookup_entries(c->tree, c->some, &c->n, PFS_QUESTION_LIST, &c->next,
				       c->last, capacity))
		return false;
	if (c->n)
		c->next =
			(struct pfs_btree_entry){c->some[c->n - 1].key, c->some[c->n - 1].slot + 1};
	if (c->n < capacity)
		c->next.key = c->last + 1; /* that was the end */
	return true;
}

static void ask_image(struct pfs_children *c)
{
	c->by_device = false;
	(void)pfs_device_lookup_host_begin(c->tree,
					   PFS_QUESTION_LIST); /* its reading is the caller's */
	pfs_btree_seek(pfs_image_index(c->tree), &c->cursor, c->next.key, c->next.slot);
}

void pfs_children_begin(struct pfs_children *c, const struct pfs_tree *tree, uint32_t directory,
			uint32_t hash, uint32_t slot)
{
	c->tree = tree;
	c->last = pfs_image_key(directory, (uint32_t)HASHES);
	c->next = (struct pfs_btree_entry){pfs_image_key(directory, hash), slot};
	c->by_device = ask_device(c, FEW);
	if (!c->by_device)
		ask_image(c);
}

bool pfs_children_next(struct pfs_children *c, struct pfs_btree_entry *entry)
{
	if (c->by_device && c->at == c->n) {
		if (c->next.key > c->last)
			return false;
		if (!ask_device(c, PFS_MAILBOX_ENTRIES))
			ask_image(c);
		else if (c->n == 0)
			return false;
	}
	if (c->by_device) {
		*entry = c->some[c->at++];
		return true;
	}
	return pfs_btree_next(pfs_image_index(c->tree), &c->cursor, entry) && entry->key <= c->last;
}

bool pfs_image_is_empty(const struct pfs_tree *tree, uint32_t slot)
{
	struct pfs_children children;
	struct pfs_btree_entry entry;

	pfs_children_begin(&children, tree, slot, 0, 0);
	return !pfs_children_next(&children, &entry);
}
