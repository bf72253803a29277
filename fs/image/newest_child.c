/* SPDX-License-Identifier: MIT */
#include "fs/image/newest_child.h"

#include <stdlib.h>

#include "base/btree.h"
#include "base/checked.h"
#include "fs/image/image.h"
#include "fs/image/totals.h"
#include "fs/tree/tree_impl.h"

#define CHILDREN_READ 64u   /* a directory of so many is read whenever it is asked */
#define LISTS	      32u   /* directories with a heap */
#define HEAP_MAX      8192u /* children in it */
#define HALF	      (HEAP_MAX / 2)
#define BUCKETS	      1024u

#define NOTHING INT64_MIN

struct item {
	int64_t mtime;
	uint32_t child;
};

struct list {
	uint32_t directory; /* PFS_NO_SLOT: not in use */
	int64_t floor;	    /* no child that is not in the heap is newer */
	struct item *heap;  /* the newest first */
	size_t n, capacity;
};

struct pfs_newest {
	struct list lists[LISTS];
	unsigned oldest;	 /* the list that the next directory without one takes */
	uint8_t listed[BUCKETS]; /* by directory, modulo: how many have a list */
};

int pfs_newest_create(struct pfs_newest **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (unsigned i = 0; i < LISTS; i++)
		(*out)->lists[i].directory = PFS_NO_SLOT;
	return 0;
}

static void end_list(struct pfs_newest *newest, struct list *list)
{
	if (list->directory == PFS_NO_SLOT)
		return;
	newest->listed[list->directory % BUCKETS]--;
	free(list->heap);
	*list = (struct list){.directory = PFS_NO_SLOT};
}

void pfs_newest_clear(struct pfs_newest *newest)
{
	for (unsigned i = 0; i < LISTS; i++)
		end_list(newest, &newest->lists[i]);
}

void pfs_newest_destroy(struct pfs_newest *newest)
{
	if (newest)
		pfs_newest_clear(newest);
	free(newest);
}

static struct list *find(struct pfs_newest *newest, uint32_t directory)
{
	if (newest->listed[directory % BUCKETS])
		for (unsigned i = 0; i < LISTS; i++)
			if (newest->lists[i].directory == directory)
				return &newest->lists[i];
	return NULL;
}

static struct list *begin_list(struct pfs_newest *newest, uint32_t directory)
{
	struct list *list = &newest->lists[newest->oldest++ % LISTS];

	end_list(newest, list);
	list->directory = directory;
	newest->listed[directory % BUCKETS]++;
	return list;
}

void pfs_newest_drop(struct pfs_newest *newest, uint32_t directory)
{
	struct list *list = find(newest, directory);

	if (list)
		end_list(newest, list);
}

/* ---- the heap ---- */

static void sink(struct list *list, size_t i)
{
	struct item item = list->heap[i];

	for (;;) {
		size_t below = 2 * i + 1;

		if (below + 1 < list->n && list->heap[below + 1].mtime > list->heap[below].mtime)
			below++;
		if (below >= list->n || list->heap[below].mtime <= item.mtime)
			break;
		list->heap[i] = list->heap[below];
		i = below;
	}
	list->heap[i] = item;
}

static void pop(struct list *list)
{
	list->heap[0] = list->heap[--list->n];
	if (list->n)
		sink(list, 0);
}

static void push(struct list *list, const struct item *item)
{
	size_t i = list->n++;

	for (; i && list->heap[(i - 1) / 2].mtime < item->mtime; i = (i - 1) / 2)
		list->heap[i] = list->heap[(i - 1) / 2];
	list->heap[i] = *item;
}

static int64_t newest_of(const struct pfs_tree *tree, uint32_t child)
{
	struct pfs_totals totals;

	pfs_totals_at(tree, &totals, child);
	return totals.mtime;
}

/* Still a child, and as new as it was. */
static bool stands(const struct pfs_tree *tree, uint32_t directory, const struct item *item)
{
	return tree->image.parent[item->child] == directory &&
	       newest_of(tree, item->child) == item->mtime;
}

static int by_age(const void *a, const void *b)
{
	int64_t x = ((const struct item *)a)->mtime, y = ((const struct item *)b)->mtime;

	return (x < y) - (x > y);
}

/* Leaves what still stands, and of that the newer half of a full heap. */
static void thin_out(struct list *list, const struct pfs_tree *tree)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++)
		if (stands(tree, list->directory, &list->heap[i]))
			list->heap[n++] = list->heap[i];
	list->n = n;
	qsort(list->heap, n, sizeof(*list->heap), by_age); /* so sorted it is a heap */
	if (n <= HALF)
		return;
	list->floor = PFS_MAX(list->floor, list->heap[HALF].mtime);
	list->n = HALF;
}

static void note(struct list *list, const struct pfs_tree *tree, uint32_t child, int64_t mtime)
{
	if (mtime > list->floor && list->n == HEAP_MAX)
		thin_out(list, tree);
	if (mtime <= list->floor)
		return;
	if (pfs_grow(&list->heap, &list->capacity, list->n + 1, sizeof(*list->heap))) {
		list->n = 0; /* knows nothing any more, and will look at all children */
		list->floor = INT64_MAX;
		return;
	}
	push(list, &(struct item){.mtime = mtime, .child = child});
}

void pfs_newest_note(struct pfs_newest *newest, const struct pfs_tree *tree, uint32_t directory,
		     uint32_t child, int64_t mtime)
{
	struct list *list = find(newest, directory);

	if (list)
		note(list, tree, child, mtime);
}

/* ---- looking ---- */

struct children {
	const struct pfs_tree *tree;
	uint32_t directory;
	struct pfs_btree_cursor cursor;
};

static struct children children_of(const struct pfs_tree *tree, uint32_t directory)
{
	struct children children = {.tree = tree, .directory = directory};

	pfs_btree_seek(tree->image.by_name, &children.cursor, pfs_image_key(directory, 0), 0);
	return children;
}

static bool next_child(struct children *children, struct item *item)
{
	struct pfs_btree_entry entry;

	if (!pfs_btree_next(children->tree->image.by_name, &children->cursor, &entry) ||
	    entry.key >> PFS_NAME_HASH_BITS != children->directory)
		return false;
	item->child = entry.slot;
	item->mtime = newest_of(children->tree, entry.slot);
	return true;
}

/* Fills an empty list and returns the newest.  Half a heap of children as new as any can be is
 * enough: these are kept then. */
static int64_t refill(struct list *list, const struct pfs_tree *tree, int64_t most)
{
	struct children children = children_of(tree, list->directory);
	int64_t newest = NOTHING;
	struct item item;
	size_t equal = 0, n = 0;

	list->floor = NOTHING;
	while (equal < HALF && next_child(&children, &item)) {
		newest = PFS_MAX(newest, item.mtime);
		equal += item.mtime == most;
		note(list, tree, item.child, item.mtime);
	}
	if (equal < HALF)
		return newest;
	for (size_t i = 0; i < list->n; i++)
		if (list->heap[i].mtime == most)
			list->heap[n++] = list->heap[i];
	list->n = n;
	list->floor = most;
	return most;
}

/* False: there are more than a few, and none of those is as new as any can be. */
static bool look_at_few(const struct pfs_tree *tree, int64_t *newest, uint32_t directory,
			int64_t most)
{
	struct children children = children_of(tree, directory);
	struct item item;

	*newest = NOTHING;
	for (unsigned i = 0; i < CHILDREN_READ; i++) {
		if (!next_child(&children, &item))
			return true;
		*newest = PFS_MAX(*newest, item.mtime);
		if (*newest == most)
			return true;
	}
	return false;
}

int64_t pfs_newest_look(struct pfs_newest *newest, const struct pfs_tree *tree, uint32_t directory,
			int64_t most)
{
	struct list *list = find(newest, directory);
	int64_t mtime;

	if (!list && look_at_few(tree, &mtime, directory, most))
		return mtime;
	if (!list)
		list = begin_list(newest, directory);
	while (list->n && !stands(tree, directory, &list->heap[0]))
		pop(list);
	return list->n ? list->heap[0].mtime : refill(list, tree, most);
}
