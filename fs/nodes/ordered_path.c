/* SPDX-License-Identifier: MIT */
/* Nodes by the bytes of their paths, without making any: in a directory a child comes where its
 * name does, and what lies in it where its name and a slash do.  The two are next to each other
 * unless there are siblings in between, as /a-b between /a and /a/c; in pre-order they always
 * are. */
#include "fs/nodes/ordered_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/image/span.h"
#include "fs/tree/tree_impl.h"

#define INSIDE UINT32_C(0x80000000) /* of an item: what lies in it */
#define LOOKED 64u /* children that show whether all come in order */
#define PIECE  64u /* children between two looks, each of which may lie in a block that is filled first */
#define FEW    1024u /* children that are sorted between two looks */

/* A directory being listed; child by child, from `next` to `end`, where that is their order. */
struct level {
	size_t first, n, done; /* of the walk's items */
	uint32_t next, end; /* end 0: all are listed */
	size_t held; /* of the walk's: how many others' there are */
};

struct pfs_path_walk {
	struct pfs_tree *tree;
	const struct pfs_scan_watch *watch;
	bool descending, preorder;
	struct level *levels;
	size_t n, capacity;
	uint32_t *items; /* of all levels, one after the other */
	size_t items_capacity;
	uint32_t *children, *held;
	size_t n_children, children_capacity, n_held, held_capacity;
};

static int compare_names(const struct pfs_image *image, uint32_t a, uint32_t b)
{
	return pfs_names_compare(image->names, image->name[a], image->name[b]);
}

/* ---- children by name ---- */

/* Called after each piece of the n things that are done with children. */
static int look(const struct pfs_path_walk *walk, size_t n)
{
	return n % PIECE ? 0 : pfs_scan_look(walk->watch);
}

static int add_child(struct pfs_path_walk *walk, uint32_t slot)
{
	PFS_TRY(pfs_grow(&walk->children, &walk->children_capacity, walk->n_children + 1,
			 sizeof(*walk->children)));
	walk->children[walk->n_children++] = slot;
	return look(walk, walk->n_children);
}

static int list_indexed(struct pfs_path_walk *walk, uint32_t directory)
{
	struct pfs_children children;
	struct pfs_btree_entry entry;

	pfs_children_begin(&children, walk->tree, directory, 0, 0);
	while (pfs_children_next(&children, &entry))
		PFS_TRY(add_child(walk, entry.slot));
	return 0;
}

/* The first child from `slot` on in a range, and where the next may be; PFS_NO_SLOT: there is none.
 * *after 0: the child is no range itself. */
static uint32_t child_in_range(struct pfs_tree *tree, uint32_t *after, uint32_t slot, uint32_t end)
{
	const struct pfs_image *image = &tree->image;

	while (slot < end && !pfs_image_is_live(image, slot))
		slot++;
	if (slot >= end)
		return PFS_NO_SLOT;
	*after = S_ISDIR(image->mode[slot]) ? pfs_span_end(tree, slot) : slot + 1;
	return slot;
}

bool pfs_path_walk_is_cheap(struct pfs_tree *tree, uint32_t top)
{
	uint32_t end = pfs_span_end(tree, top), after = top + 1, last = PFS_NO_SLOT, slot;

	if (!end || pfs_span_is_sorted(tree, top))
		return end != 0;
	for (unsigned i = 0; i < LOOKED && after; i++) {
		slot = child_in_range(tree, &after, after, end);
		if (slot == PFS_NO_SLOT)
			return true;
		if (last != PFS_NO_SLOT && compare_names(&tree->image, last, slot) >= 0)
			return false;
		last = slot;
	}
	return after != 0;
}

/* Adds the children of a directory whose subtree is a range, where each child begins where the one
 * before ends. *done stays false if one of them is no range itself. */
static int list_range(struct pfs_path_walk *walk, bool *done, uint32_t directory, uint32_t end)
{
	uint32_t slot, after = directory + 1;

	while ((slot = child_in_range(walk->tree, &after, after, end)) != PFS_NO_SLOT) {
		if (after == 0)
			return 0;
		PFS_TRY(add_child(walk, slot));
	}
	*done = true;
	return 0;
}

static int by_name(const void *a, const void *b, void *image)
{
	return compare_names(image, *(const uint32_t *)a, *(const uint32_t *)b);
}

static int sort_children(struct pfs_path_walk *walk, bool *ascends)
{
	struct pfs_image *image = &walk->tree->image;
	struct pfs_slots slots = {walk->children, walk->n_children};
	int error;

	/* Goes on to the last name even if they do not ascend: the sort below, which does not look,
	 * finds all names filled. */
	*ascends = true;
	for (size_t i = 1; i < slots.n; i++) {
		*ascends &= compare_names(image, slots.slot[i - 1], slots.slot[i]) < 0;
		PFS_TRY(look(walk, i));
	}
	if (*ascends)
		return 0;
	if (slots.n <= FEW) {
		qsort_r(slots.slot, slots.n, sizeof(*slots.slot), by_name, image);
		return 0;
	}
	error = pfs_scan_sort_preorder(walk->tree, &slots, walk->watch);
	walk->children = slots.slot; /* another array, perhaps */
	walk->children_capacity = slots.n;
	return error;
}

static int list_children(struct pfs_path_walk *walk, uint32_t directory)
{
	uint32_t end = pfs_span_end(walk->tree, directory);
	bool ascends, done = false;

	walk->n_children = 0;
	if (end)
		PFS_TRY(list_range(walk, &done, directory, end));
	if (!done) {
		walk->n_children = 0;
		PFS_TRY(list_indexed(walk, directory));
	}
	PFS_TRY(sort_children(walk, &ascends));
	if (ascends && done)
		pfs_span_note_sorted(walk->tree, directory);
	return 0;
}

/* ---- levels ---- */

/* Adds an item to the last level. */
static int add_item(struct pfs_path_walk *walk, struct level *level, uint32_t item)
{
	size_t at = level->first + level->n;

	PFS_TRY(pfs_grow(&walk->items, &walk->items_capacity, at + 1, sizeof(*walk->items)));
	walk->items[at] = item;
	level->n++;
	return 0;
}

/* Returns true if what lies in the directory comes before its sibling `child`. */
static bool inside_is_before(const struct pfs_image *image, uint32_t directory, uint32_t child)
{
	size_t len, child_len;
	const char *name = pfs_names_get(image->names, image->name[directory], &len);
	const char *other = pfs_names_get(image->names, image->name[child], &child_len);

	return child_len <= len || memcmp(name, other, len) != 0 || (unsigned char)other[len] > '/';
}

static int add_level(struct pfs_path_walk *walk, struct level **out)
{
	const struct level *above;

	PFS_TRY(pfs_grow(&walk->levels, &walk->capacity, walk->n + 1, sizeof(*walk->levels)));
	above = walk->n ? &walk->levels[walk->n - 1] : NULL;
	*out = &walk->levels[walk->n++];
	**out = (struct level){
		.first = above ? above->first + above->n : 0,
		.held = walk->n_held,
	};
	return 0;
}

/* What lies in the directories held back, as far as it comes before the child, if there is one. */
static int let_in(struct pfs_path_walk *walk, struct level *level, uint32_t child)
{
	const struct pfs_image *image = &walk->tree->image;

	while (walk->n_held > level->held) {
		uint32_t directory = walk->held[walk->n_held - 1];

		if (child != PFS_NO_SLOT && !walk->preorder &&
		    !inside_is_before(image, directory, child))
			break;
		walk->n_held--;
		PFS_TRY(add_item(walk, level, directory | INSIDE));
	}
	return 0;
}

/* Directories are held back until what lies in them comes, the last one first: its name begins with
 * those of the others. */
static int take_child(struct pfs_path_walk *walk, struct level *level, uint32_t child)
{
	PFS_TRY(let_in(walk, level, child));
	PFS_TRY(add_item(walk, level, child));
	if (!S_ISDIR(walk->tree->image.mode[child]))
		return 0;
	PFS_TRY(pfs_grow(&walk->held, &walk->held_capacity, walk->n_held + 1,
			 sizeof(*walk->held)));
	walk->held[walk->n_held++] = child;
	return 0;
}

static int enter(struct pfs_path_walk *walk, uint32_t directory)
{
	struct level *level;

	PFS_TRY(add_level(walk, &level));
	if (!walk->descending && pfs_span_is_sorted(walk->tree, directory)) {
		level->next = directory + 1;
		level->end = pfs_span_end(walk->tree, directory);
		return 0;
	}
	PFS_TRY(list_children(walk, directory));
	for (size_t i = 0; i < walk->n_children; i++) {
		PFS_TRY(take_child(walk, level, walk->children[i]));
		PFS_TRY(look(walk, i + 1));
	}
	return let_in(walk, level, PFS_NO_SLOT);
}

/* The next child of a level that is listed one by one. */
static int go_on(struct pfs_path_walk *walk, struct level *level)
{
	uint32_t child = child_in_range(walk->tree, &level->next, level->next, level->end);

	level->n = level->done = 0;
	if (child != PFS_NO_SLOT)
		return take_child(walk, level, child);
	level->end = 0;
	return let_in(walk, level, PFS_NO_SLOT);
}

int pfs_path_walk_open(struct pfs_path_walk **out, struct pfs_tree *tree, uint32_t top,
		       const struct pfs_order *order, const struct pfs_scan_watch *watch)
{
	struct pfs_path_walk *walk = calloc(1, sizeof(*walk));
	struct level *level;
	int error = walk ? 0 : -ENOMEM;

	*out = NULL;
	if (error)
		return error;
	walk->tree = tree;
	walk->watch = watch;
	walk->descending = order->descending;
	walk->preorder = order->field == PFS_FIELD_PREORDER;
	error = add_level(walk, &level); /* above the top, with it alone */
	if (!error)
		error = add_item(walk, level, top);
	if (!error && S_ISDIR(tree->image.mode[top]))
		error = add_item(walk, level, top | INSIDE);
	if (error)
		pfs_path_walk_close(walk);
	else
		*out = walk;
	return error;
}

void pfs_path_walk_close(struct pfs_path_walk *walk)
{
	if (!walk)
		return;
	free(walk->levels);
	free(walk->items);
	free(walk->children);
	free(walk->held);
	free(walk);
}

int pfs_path_walk_next(struct pfs_path_walk *walk, uint32_t *slots, size_t *n)
{
	size_t room = *n;

	*n = 0;
	while (*n < room && walk->n) {
		struct level *level = &walk->levels[walk->n - 1];
		uint32_t item;

		if (level->done == level->n && level->end) {
			PFS_TRY(go_on(walk, level));
			continue;
		}
		if (level->done == level->n) {
			walk->n--;
			continue;
		}
		item = walk->items[level->first + (walk->descending ? level->n - 1 - level->done
								    : level->done)];
		level->done++;
		if (item & INSIDE)
			PFS_TRY(enter(walk, item & ~INSIDE));
		else
			slots[(*n)++] = item;
	}
	return 0;
}
