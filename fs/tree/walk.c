/* SPDX-License-Identifier: MIT */
/* Pre-order walk of a subtree, children in byte order of names. The entries of a directory are
 * listed in one hold of the lock, or several where they are many, and visited without it; a node that is removed
 * meanwhile is left out. */
#include "fs/tree/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/tree/tree_impl.h"

#define LISTED_HELD 16384u /* entries of a directory that are listed in one hold */

struct child {
	uint64_t prime;
	uint32_t name; /* offset in the level's names: a length byte, then the bytes */
};

/* One directory that is being visited. */
struct level {
	struct child *children;
	unsigned char *names;
	size_t n, capacity, next;
	size_t names_len, names_capacity;
	size_t path_len; /* of the directory's own path */
};

struct walk {
	struct pfs_tree *tree;
	int (*fn)(void *arg, const struct pfs_walk_node *node);
	void *arg;
	struct level *levels;
	size_t depth, levels_capacity;
	char *path;
	size_t path_capacity;
};

static int by_name(const void *a, const void *b, void *names)
{
	const unsigned char *x = (const unsigned char *)names + ((const struct child *)a)->name;
	const unsigned char *y = (const unsigned char *)names + ((const struct child *)b)->name;
	int order = memcmp(x + 1, y + 1, PFS_MIN(x[0], y[0]));

	return order ? order : x[0] - y[0];
}

static int add_child(struct level *level, const struct pfs_image *image, uint32_t slot)
{
	size_t len;
	const char *name = pfs_names_get(image->names, image->name[slot], &len);

	PFS_TRY(pfs_grow(&level->children, &level->capacity, level->n + 1, sizeof(struct child)));
	PFS_TRY(pfs_grow(&level->names, &level->names_capacity, level->names_len + len + 1, 1));
	level->children[level->n++] = (struct child){
		.prime = image->prime[slot],
		.name = (uint32_t)level->names_len,
	};
	level->names[level->names_len] = (unsigned char)len;
	memcpy(level->names + level->names_len + 1, name, len);
	level->names_len += len + 1;
	return 0;
}

/* The entries from *next on; key 0: all. *more: the hold would have been long, and *next is where they go on. */
static int list_some(struct pfs_tree *tree, struct level *level, struct pfs_btree_entry *next, bool *more, uint64_t ino)
{
	struct pfs_children children;
	unsigned left = LISTED_HELD;
	uint64_t first;
	uint32_t slot;
	int error = 0;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot != PFS_NO_SLOT) {
		first = pfs_image_key(slot, 0);
		pfs_children_begin(&children, tree, slot, next->key ? (uint32_t)(next->key - first) : 0, next->slot);
		for (; left && !error && pfs_children_next(&children, next); left--)
			error = add_child(level, &tree->image, next->slot);
	}
	pfs_hold_end(tree);
	next->slot++;
	*more = !left;
	return error;
}

static int list(struct pfs_tree *tree, struct level *level, uint64_t ino)
{
	struct pfs_btree_entry next = {0};
	bool more = true;

	while (more)
		PFS_TRY(list_some(tree, level, &next, &more, ino));
	if (level->n)
		qsort_r(level->children, level->n, sizeof(struct child), by_name, level->names);
	return 0;
}

static int descend(struct walk *walk, uint64_t ino, size_t path_len)
{
	PFS_TRY(pfs_grow(&walk->levels, &walk->levels_capacity, walk->depth + 1,
			 sizeof(struct level)));
	walk->levels[walk->depth] = (struct level){.path_len = path_len};
	return list(walk->tree, &walk->levels[walk->depth++], ino);
}

static void ascend(struct walk *walk)
{
	struct level *level = &walk->levels[--walk->depth];

	free(level->children);
	free(level->names);
}

/* Calls fn for the node, and steps into it when it is a directory. */
static int visit(struct walk *walk, uint64_t ino, size_t path_len)
{
	struct pfs_walk_node node = {
		.path = walk->path,
		.path_len = path_len,
		.depth = (uint32_t)walk->depth,
	};
	uint32_t slot;

	pfs_hold_read(walk->tree, __func__);
	slot = pfs_image_slot(walk->tree, ino);
	if (slot != PFS_NO_SLOT)
		pfs_image_stat(walk->tree, &node.entry, slot);
	pfs_hold_end(walk->tree);
	if (slot == PFS_NO_SLOT)
		return walk->depth ? 0 : -ESTALE;
	PFS_TRY(walk->fn(walk->arg, &node));
	return S_ISDIR(node.entry.attr.st_mode) ? descend(walk, ino, path_len) : 0;
}

static int visit_child(struct walk *walk, struct level *level)
{
	const struct child *child = &level->children[level->next++];
	const unsigned char *name = level->names + child->name;
	size_t len = level->path_len;

	PFS_TRY(pfs_grow(&walk->path, &walk->path_capacity, len + name[0] + 2, 1));
	if (len)
		walk->path[len++] = '/';
	memcpy(walk->path + len, name + 1, name[0]);
	len += name[0];
	walk->path[len] = 0;
	return visit(walk, child->prime, len);
}

int pfs_tree_walk(struct pfs_tree *tree, uint64_t ino,
		  int (*fn)(void *arg, const struct pfs_walk_node *node), void *arg)
{
	struct walk walk = {.tree = tree, .fn = fn, .arg = arg};
	int error = pfs_grow(&walk.path, &walk.path_capacity, 1, 1);

	if (!error) {
		walk.path[0] = 0;
		error = visit(&walk, ino, 0);
	}
	while (!error && walk.depth) {
		struct level *level = &walk.levels[walk.depth - 1];

		if (level->next == level->n)
			ascend(&walk);
		else
			error = visit_child(&walk, level);
	}
	while (walk.depth)
		ascend(&walk);
	free(walk.levels);
	free(walk.path);
	return error;
}
