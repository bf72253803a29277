/* SPDX-License-Identifier: MIT */
/* Pre-order walk of a subtree, children in byte order of names. The entries of a directory are
 * listed as they are at one moment, in several holds of the lock where they are many, and visited
 * without it; a node that is removed meanwhile is left out. */
#include "fs/tree/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/order.h"
#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/image/old_places.h"
#include "fs/tree/tree_impl.h"

#define LISTED_HELD 16384u /* entries of a directory that are listed in one hold */
#define LISTED_NS   UINT64_C(2000000) /* in which a hold ends */
#define LOOKED_AT   64u /* the clock is, after so many entries */

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

	return pfs_compare_bytes(x + 1, x[0], y + 1, y[0]);
}

static int add_child(struct level *level, const struct pfs_old_place *place)
{
	PFS_TRY(pfs_grow(&level->children, &level->capacity, level->n + 1, sizeof(struct child)));
	PFS_TRY(pfs_grow(&level->names, &level->names_capacity, level->names_len + place->len + 1,
			 1));
	level->children[level->n++] = (struct child){
		.prime = place->prime,
		.name = (uint32_t)level->names_len,
	};
	level->names[level->names_len] = (unsigned char)place->len;
	memcpy(level->names + level->names_len + 1, place->name, place->len);
	level->names_len += place->len + 1;
	return 0;
}

/* The entries of a directory: those of the first hold, or, if they are too many for one, as they
 * were when it ended. */
struct listing {
	struct pfs_tree *tree;
	struct level *level;
	struct pfs_old_places *past; /* of that moment; NULL: in the first hold */
	uint32_t slot;		     /* the directory's */
	struct pfs_btree_entry next; /* where its entries go on */
	uint32_t changed;	     /* where the slots that have changed since go on */
	bool has_entries, is_done;
	/* of this hold */
	unsigned left;
	uint64_t end_ns;
};

/* Returns true if the hold has been long: names may lie in blocks that are read from the image file
 * first. */
static bool is_long(struct listing *listing)
{
	if (!listing->left)
		return true;
	return --listing->left % LOOKED_AT == 0 && pfs_now_ns() > listing->end_ns;
}

/* Lists the entries whose places have not changed. */
static int list_entries(struct listing *listing)
{
	struct pfs_btree_entry *next = &listing->next;
	const struct pfs_image *image = &listing->tree->image;
	struct pfs_children children;

	pfs_children_begin(&children, listing->tree, listing->slot,
			   (uint32_t)(next->key - pfs_image_key(listing->slot, 0)), next->slot);
	while (!is_long(listing)) {
		struct pfs_old_place place;

		if (!pfs_children_next(&children, next)) {
			listing->has_entries = true;
			break;
		}
		if (!listing->past || !pfs_old_places_has_changed(listing->past, next->slot)) {
			place.prime = image->prime[next->slot];
			place.name =
				pfs_names_get(image->names, image->name[next->slot], &place.len);
			PFS_TRY(add_child(listing->level, &place));
		}
		next->slot++;
	}
	return 0;
}

/* Lists the entries whose places have changed, as they were. */
static int list_changed(struct listing *listing)
{
	while (!is_long(listing)) {
		struct pfs_old_place place;

		if (!listing->past || !pfs_old_places_next(listing->past, &listing->changed)) {
			listing->is_done = true;
			break;
		}
		pfs_old_places_find(listing->past, &place, listing->changed);
		if (place.is_live && place.parent == listing->slot &&
		    listing->changed != listing->tree->image.root)
			PFS_TRY(add_child(listing->level, &place));
		listing->changed++;
	}
	return 0;
}

static void find_directory(struct listing *listing, uint64_t ino)
{
	listing->slot = pfs_image_slot(listing->tree, ino);
	listing->is_done = listing->slot == PFS_NO_SLOT;
	listing->next.key = pfs_image_key(listing->slot, 0);
}

/* Lists entries in one hold. -ENOMEM, also if more has changed than may be remembered. */
static int list_some(struct listing *listing, uint64_t ino)
{
	int error = 0;

	pfs_hold_read(listing->tree, __func__);
	listing->left = LISTED_HELD;
	listing->end_ns = pfs_now_ns() + LISTED_NS;
	if (listing->past)
		error = pfs_old_places_check(listing->past);
	else
		find_directory(listing, ino);
	if (!error && !listing->is_done && !listing->has_entries)
		error = list_entries(listing);
	if (!error && listing->has_entries)
		error = list_changed(listing);
	if (!error && !listing->is_done && !listing->past)
		error = pfs_old_places_open(&listing->past, listing->tree);
	pfs_hold_end(listing->tree);
	return error;
}

/* What has changed after it was listed is there twice. */
static void sort(struct level *level)
{
	const size_t n = level->n;

	if (!n)
		return;
	qsort_r(level->children, n, sizeof(struct child), by_name, level->names);
	level->n = 1;
	for (size_t i = 1; i < n; i++)
		if (by_name(&level->children[level->n - 1], &level->children[i], level->names))
			level->children[level->n++] = level->children[i];
}

static int list(struct pfs_tree *tree, struct level *level, uint64_t ino)
{
	struct listing listing = {.tree = tree, .level = level};
	int error = 0;

	while (!error && !listing.is_done)
		error = list_some(&listing, ino);
	pfs_old_places_close(listing.past);
	sort(level);
	return error;
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
