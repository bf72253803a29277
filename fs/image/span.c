/* SPDX-License-Identifier: MIT */
#include "fs/image/span.h"

#include <stdlib.h>
#include <string.h>

#include "base/btree.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/reserve.h"
#include "fs/image/image.h"
#include "fs/image/span_layout.h"
#include "fs/tree/tree_impl.h"

#define CHECKED 16u /* directories that a check looks at */

struct pfs_spans {
	pthread_mutex_t lock; /* of making the layout, with tree->lock for reading */
	/* That is being made, with the mutex, or is whole. */
	_Atomic(struct pfs_span_layout *) layout;
	/* The same when it is whole, else NULL; only who has the write lock takes it away. */
	_Atomic(struct pfs_span_layout *) whole;
	atomic_bool hopeless;	 /* too many strays, or an image file whose ends are damaged */
	uint32_t parent; /* of the slot that is changing, as it was; PFS_NO_SLOT: it had no place,
			    or is the root */
	struct pfs_reserve lent; /* ends that an image file fills; stays until the end */
};

static _Atomic uint32_t piece = PFS_SPAN_PIECE;

void pfs_spans_set_piece(uint32_t slots)
{
	atomic_store(&piece, slots);
}

static void drop(struct pfs_spans *spans)
{
	atomic_store(&spans->whole, NULL);
	pfs_span_layout_free(atomic_exchange(&spans->layout, NULL));
}

void pfs_spans_destroy(struct pfs_tree *tree)
{
	if (!tree->spans)
		return;
	drop(tree->spans);
	pfs_reserve_close(&tree->spans->lent);
	(void)pthread_mutex_destroy(&tree->spans->lock);
	free(tree->spans);
	tree->spans = NULL;
}

/* NULL: it is not known. */
static struct pfs_span_layout *layout_whole(const struct pfs_spans *spans)
{
	return atomic_load(&spans->hopeless) ? NULL : atomic_load(&spans->whole);
}

/* The pass goes on by a piece. -ENODATA: there is nothing left to see, or nobody will know. */
static int go_on(struct pfs_tree *tree)
{
	struct pfs_spans *spans = tree->spans;
	struct pfs_span_layout *layout;
	int error = 0;
	PFS_LOCKED(&spans->lock);

	layout = atomic_load(&spans->layout);
	if (atomic_load(&spans->hopeless) || (layout && layout->is_whole))
		return -ENODATA;
	if (!layout)
		PFS_TRY(pfs_span_layout_begin(&tree->image, &layout));
	atomic_store(&spans->layout, layout);
	error = pfs_span_layout_pass(&tree->image, layout, atomic_load(&piece));
	if (error == -E2BIG)
		atomic_store(&spans->hopeless, true);
	if (error)
		drop(spans);
	else if (layout->is_whole)
		atomic_store(&spans->whole, layout);
	return error;
}

int pfs_spans_prepare(struct pfs_tree *tree, int (*look)(void *arg), void *arg)
{
	int error = 0;

	if (layout_whole(tree->spans))
		return 0;
	while (!error) {
		error = go_on(tree);
		if (!error && look)
			PFS_TRY(look(arg));
	}
	return 0;
}

/* Few slots, and those of a tree that nobody waits for, are laid out when they are first asked
 * for. */
static struct pfs_span_layout *layout_of(struct pfs_tree *tree)
{
	struct pfs_span_layout *layout = layout_whole(tree->spans);

	if (layout || (tree->image.end > atomic_load(&piece) && !tree->image.copy))
		return layout;
	return pfs_spans_prepare(tree, NULL, NULL) ? NULL : layout_whole(tree->spans);
}

/* ---- subtrees ---- */

struct found {
	const struct pfs_span_layout *layout;
	struct pfs_slot_range *ranges;
	size_t n, capacity;
	uint32_t *tops; /* whose slots are to be found */
	size_t n_tops, tops_capacity;
};

/* The strays whose parents are in the range. */
static int add_attached(struct found *found, struct pfs_slot_range range)
{
	const struct pfs_btree *attached = found->layout->attached;
	struct pfs_btree_cursor cursor;
	struct pfs_btree_entry entry;

	pfs_btree_seek(attached, &cursor, pfs_span_attached_key(range.from, 0), 0);
	while (pfs_btree_next(attached, &cursor, &entry) &&
	       entry.key < pfs_span_attached_key(range.to, 0)) {
		PFS_TRY(pfs_grow(&found->tops, &found->tops_capacity, found->n_tops + 1,
				 sizeof(*found->tops)));
		found->tops[found->n_tops++] = entry.slot;
	}
	return 0;
}

static int add_range(struct found *found, uint32_t from, uint32_t to)
{
	const struct pfs_slot_range range = {from, to};

	if (from == to)
		return 0;
	if (found->n == PFS_SPAN_RANGES)
		return -ENODATA;
	PFS_TRY(pfs_grow(&found->ranges, &found->capacity, found->n + 1, sizeof(*found->ranges)));
	found->ranges[found->n++] = range;
	return add_attached(found, range);
}

/* The node's slots, without those of strays among them. */
static int add_top(struct found *found, uint32_t top)
{
	const struct pfs_span_layout *layout = found->layout;
	uint32_t from = top, to = pfs_span_layout_end(layout, top), stray, after = top + 1;

	for (; pfs_span_layout_next(layout, &stray, after, to); after = from) {
		PFS_TRY(add_range(found, from, stray));
		from = pfs_span_layout_end(layout, stray);
	}
	return add_range(found, from, to);
}

static int by_slot(const void *a, const void *b)
{
	const struct pfs_slot_range *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

static void join_neighbours(struct found *found)
{
	size_t n = 0;

	if (found->n)
		qsort(found->ranges, found->n, sizeof(*found->ranges), by_slot);
	for (size_t i = 0; i < found->n; i++) {
		if (n && found->ranges[n - 1].to == found->ranges[i].from)
			found->ranges[n - 1].to = found->ranges[i].to;
		else
			found->ranges[n++] = found->ranges[i];
	}
	found->n = n;
}

int pfs_span_ranges(struct pfs_tree *tree, struct pfs_slot_range **ranges, size_t *n,
		    uint32_t directory)
{
	struct found found = {.layout = layout_of(tree)};
	int error;

	if (!found.layout)
		return -ENODATA;
	error = add_top(&found, directory);
	while (!error && found.n_tops > 0)
		error = add_top(&found, found.tops[--found.n_tops]);
	free(found.tops);
	if (!error && !layout_whole(tree->spans)) /* an end that was just read is damaged */
		error = -ENODATA;
	if (error) {
		free(found.ranges);
		return error;
	}
	join_neighbours(&found);
	*ranges = found.ranges;
	*n = found.n;
	return 0;
}

/* ---- those that nothing has happened to ---- */

uint32_t pfs_span_end(struct pfs_tree *tree, uint32_t directory)
{
	const struct pfs_span_layout *layout = layout_of(tree);
	uint32_t end = layout ? pfs_span_layout_end(layout, directory) : 0, stray;

	if (end && pfs_btree_count(layout->attached) &&
	    (pfs_span_layout_next(layout, &stray, directory + 1, end) ||
	     pfs_span_layout_attached(layout, directory, end)))
		return 0;
	return layout_whole(tree->spans) ? end : 0;
}

bool pfs_span_is_sorted(struct pfs_tree *tree, uint32_t directory)
{
	const struct pfs_span_layout *layout = layout_of(tree);

	return layout && directory < layout->n &&
	       __atomic_load_n(&layout->end[directory], __ATOMIC_RELAXED) & PFS_SPAN_SORTED &&
	       pfs_span_end(tree, directory);
}

void pfs_span_note_sorted(struct pfs_tree *tree, uint32_t directory)
{
	struct pfs_span_layout *layout = layout_whole(tree->spans);

	if (layout && directory < layout->n && layout->end[directory])
		(void)__atomic_fetch_or(&layout->end[directory], PFS_SPAN_SORTED, __ATOMIC_RELAXED);
}

/* ---- changes ---- */

static void changing(struct pfs_tree *tree, uint32_t slot, unsigned columns PFS_UNUSED)
{
	tree->spans->parent = tree->image.parent[slot];
}

static void changed(struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	struct pfs_span_layout *layout = atomic_load(&tree->spans->layout);
	uint32_t parent = tree->image.parent[slot], before = tree->spans->parent;
	int error = 0;

	if (!layout)
		return;
	if (columns & PFS_COLUMN_PRIME) { /* it had no place any more */
		if (slot < layout->seen)
			layout->end[slot] = 0; /* whoever has it next begins anew */
		return;
	}
	if (parent == before && pfs_span_layout_is_stray(layout, slot))
		return; /* it has another name there */
	if (before != PFS_NO_SLOT)
		(void)pfs_btree_remove(layout->attached, pfs_span_attached_key(before, slot), slot);
	if (slot >= layout->seen && slot < layout->n)
		return;
	if (pfs_image_is_live(&tree->image, slot))
		error = pfs_span_layout_stray(layout, slot, parent);
	else
		pfs_span_layout_gone(layout, slot);
	if (error == -E2BIG)
		atomic_store(&tree->spans->hopeless, true);
	if (error)
		drop(tree->spans);
}

/* ---- an image file's ---- */

uint32_t pfs_spans_find(struct pfs_tree *tree)
{
	const struct pfs_span_layout *layout =
		pfs_spans_prepare(tree, NULL, NULL) ? NULL : layout_whole(tree->spans);

	if (!layout || pfs_btree_count(layout->attached) > PFS_SPAN_STRAYS)
		return PFS_SPANS_UNKNOWN;
	return (uint32_t)pfs_btree_count(layout->attached);
}

bool pfs_spans_next_stray(const struct pfs_tree *tree, uint32_t *stray, uint32_t slot)
{
	const struct pfs_span_layout *layout = layout_whole(tree->spans);

	if (!layout || pfs_span_layout_next(layout, stray, slot, UINT32_MAX))
		return layout;
	for (slot = PFS_MAX(slot, layout->n); slot < tree->image.end; slot++)
		if (pfs_image_is_live(&tree->image, slot)) {
			*stray = slot;
			return true;
		}
	return false;
}

uint32_t pfs_spans_end_of(const struct pfs_tree *tree, uint32_t directory)
{
	const struct pfs_span_layout *layout = layout_whole(tree->spans);
	uint32_t end = layout ? pfs_span_layout_end(layout, directory) : 0;

	return layout_whole(tree->spans) ? end : 0; /* what was just read may be damaged */
}

int pfs_spans_lend(struct pfs_tree *tree, uint32_t end, void **ends)
{
	struct pfs_spans *spans = tree->spans;
	const size_t size = ((size_t)end + 1) * sizeof(uint32_t);
	struct pfs_span_layout *layout;

	pfs_spans_drop(tree);
	PFS_TRY(pfs_reserve_whole(&spans->lent, size));
	PFS_TRY(pfs_span_layout_create(&layout, end));
	*ends = layout->end = spans->lent.base;
	layout->seen = end;
	layout->is_whole = true;
	atomic_store(&spans->layout, layout);
	atomic_store(&spans->whole, layout);
	return 0;
}

int pfs_spans_add_stray(struct pfs_tree *tree, uint32_t slot, uint32_t parent)
{
	return pfs_span_layout_stray(layout_whole(tree->spans), slot, parent);
}

void pfs_spans_give_up(struct pfs_tree *tree)
{
	atomic_store(&tree->spans->hopeless, true);
}

void pfs_spans_drop(struct pfs_tree *tree)
{
	drop(tree->spans);
	pfs_reserve_close(&tree->spans->lent);
	atomic_store(&tree->spans->hopeless, false);
}

bool pfs_spans_are_sound(struct pfs_tree *tree)
{
	const struct pfs_span_layout *layout = layout_whole(tree->spans);

	return !layout || pfs_span_layout_is_sound(&tree->image, layout) ||
	       !layout_whole(tree->spans);
}

/* ---- life ---- */

/* Finds out on the way up whether the slot lies in the subtree, and notes by slot 1 if it does, 2
 * if not. */
static void climb(const struct pfs_image *image, uint8_t *known, uint32_t slot)
{
	uint32_t at = slot;
	uint8_t found;

	while (at != PFS_NO_SLOT && !known[at])
		at = image->parent[at];
	found = at == PFS_NO_SLOT ? 2 : known[at];
	for (at = slot; at != PFS_NO_SLOT && !known[at]; at = image->parent[at])
		known[at] = found;
}

static bool check_directory(struct pfs_tree *tree, uint8_t *known, uint32_t directory)
{
	const struct pfs_image *image = &tree->image;
	struct pfs_slot_range *ranges PFS_FREE = NULL;
	size_t n = 0, at = 0;

	if (pfs_span_ranges(tree, &ranges, &n, directory))
		return true;
	memset(known, 0, image->end);
	known[directory] = 1;
	for (uint32_t slot = 0; slot < image->end; slot++) {
		if (!pfs_image_is_live(image, slot))
			continue;
		climb(image, known, slot);
		while (at < n && ranges[at].to <= slot)
			at++;
		if ((at < n && ranges[at].from <= slot) != (known[slot] == 1))
			return false;
	}
	return true;
}

/* Some directories' ranges have the nodes that climb to them; an image file may be made up. */
static bool check(struct pfs_tree *tree)
{
	const struct pfs_image *image = &tree->image;
	uint8_t *known PFS_FREE = malloc((size_t)image->end + 1);
	const struct pfs_span_layout *layout = layout_whole(tree->spans);
	uint32_t step = image->directories / CHECKED + 1, n = 0;

	if (!known || !layout || !layout->memory.base)
		return true;
	for (uint32_t slot = 0; slot < image->end; slot++)
		if (pfs_image_is_live(image, slot) && S_ISDIR(image->mode[slot]) &&
		    n++ % step == 0 && !check_directory(tree, known, slot))
			return false;
	return true;
}

static const struct pfs_watcher watcher = {
	.name = "ranges of slots",
	.columns = PFS_COLUMN_PRIME | PFS_COLUMNS_PLACE,
	.changing = changing,
	.changed = changed,
	.check = check,
};

int pfs_spans_create(struct pfs_tree *tree)
{
	tree->spans = calloc(1, sizeof(*tree->spans));
	if (!tree->spans)
		return -ENOMEM;
	(void)pthread_mutex_init(&tree->spans->lock, NULL);
	pfs_watch(tree, &watcher);
	return 0;
}
