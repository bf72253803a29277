/* SPDX-License-Identifier: MIT */
/* Along a column index: what it had when it was made, but for what has changed, and that from a
 * list. */
#include "fs/nodes/index_impl.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/search.h"

struct pfs_index_walk {
	struct pfs_tree *tree;
	struct pfs_index_tracked *tracked;
	const struct pfs_index_column *column;
	struct pfs_index_fresh *fresh;
	enum pfs_field field;
	bool descending;
	/* What is left of both: the next one is at `from`, or, descending, before `to`. */
	size_t from, to, fresh_from, fresh_to;
};

/* All changed nodes that are there, by their values and slots.  -ENOMEM. */
static int list_changed(struct pfs_index_fresh *fresh, struct pfs_tree *tree,
			const struct pfs_index_tracked *tracked, enum pfs_field field)
{
	fresh->n = 0;
	for (size_t i = 0; i < tracked->n_changed; i++) {
		uint32_t slot = tracked->changed[i];

		if (slot < tree->image.end && pfs_image_is_live(&tree->image, slot))
			fresh->items[fresh->n++] = (struct pfs_keyed){.key = slot, .value = slot};
	}
	PFS_TRY(pfs_radix_sort(fresh->items, fresh->n));
	for (size_t i = 0; i < fresh->n; i++)
		fresh->items[i].key = pfs_index_key(tree, field, fresh->items[i].value);
	PFS_TRY(pfs_radix_sort(fresh->items, fresh->n));
	if (field != PFS_FIELD_NAME)
		return 0;
	PFS_TRY(pfs_index_sort_names(tree, fresh->items, fresh->n, true));
	for (size_t i = 0; i < fresh->n; i++)
		fresh->items[i].key = pfs_index_key(tree, field, fresh->items[i].value);
	return 0;
}

/* The list as it was made last, if it still holds. */
static int get_fresh(struct pfs_index_fresh **out, struct pfs_tree *tree,
		     struct pfs_index_tracked *tracked, enum pfs_field field)
{
	struct pfs_index_fresh *fresh = tracked->fresh[field];

	if (!fresh || fresh->cursor != tracked->last) {
		fresh = malloc(sizeof(*fresh) + tracked->n_changed * sizeof(*fresh->items));
		if (!fresh)
			return -ENOMEM;
		atomic_init(&fresh->users, 1);
		fresh->cursor = tracked->last;
		if (list_changed(fresh, tree, tracked, field)) {
			free(fresh);
			return -ENOMEM;
		}
		pfs_index_unref_fresh(tracked->fresh[field]);
		tracked->fresh[field] = fresh;
	}
	atomic_fetch_add(&fresh->users, 1);
	*out = fresh;
	return 0;
}

/* ---- bounds ---- */

/* A place between values: below are those of a lower key, or of the same and a name before
 * `text`. */
struct bound {
	uint64_t key;
	const char *text; /* NULL: a number's */
	size_t len;
};

static bool is_below(const struct pfs_index_walk *walk, uint64_t key, uint32_t slot,
		     const struct bound *bound)
{
	if (key != bound->key || !bound->text)
		return key < bound->key;
	return pfs_index_compare_name(&walk->tree->image, slot, bound->text, bound->len) < 0;
}

/* The first sample that is not below the key, or, over: above it. */
static size_t find_sample(const struct pfs_index_column *column, uint64_t key, bool over)
{
	size_t n = column->n ? (column->n - 1) / PFS_INDEX_STEP + 1 : 0;

	return PFS_SEARCH(i, 0, n, column->sample[i] < key || (over && column->sample[i] == key));
}

/* Where in the column the first value is that is not below: by the samples, then by the slots
 * between two; changed ones count as the next that is not. */
static size_t lower_bound(const struct pfs_index_walk *walk, const struct bound *bound)
{
	const struct pfs_index_column *column = walk->column;
	size_t low = find_sample(column, bound->key, false), high = low;

	if (bound->text)
		high = find_sample(column, bound->key, true);
	low = low ? (low - 1) * PFS_INDEX_STEP + 1 : 0;
	high = PFS_MIN(high * PFS_INDEX_STEP, column->n);
	while (low < high) {
		size_t middle = low + (high - low) / 2, at = middle;
		uint32_t slot = 0;

		while (at < high && pfs_index_is_stale(walk->tracked, slot = column->slot[at]))
			at++;
		if (at < high && is_below(walk, pfs_index_key(walk->tree, walk->field, slot), slot,
					  bound))
			low = at + 1;
		else
			high = middle;
	}
	return low;
}

static size_t fresh_bound(const struct pfs_index_walk *walk, const struct bound *bound)
{
	const struct pfs_index_fresh *fresh = walk->fresh;

	return PFS_SEARCH(i, 0, fresh->n,
			  is_below(walk, fresh->items[i].key, fresh->items[i].value, bound));
}

static struct bound name_bound(const char *text, size_t len)
{
	return (struct bound){
		.key = pfs_index_text_key(text, len), .text = text, .len = len};
}

static void set_bounds(struct pfs_index_walk *walk, const struct pfs_index_range *range)
{
	bool names = walk->field == PFS_FIELD_NAME;
	bool open = names ? !range->high_text : range->high == INT64_MAX;
	struct bound low = {0}, high = {0};

	if (names && range->low_text)
		low = name_bound(range->low_text, range->low_len);
	if (names && !open)
		high = name_bound(range->high_text, range->high_len);
	if (!names) {
		low.key = pfs_index_number_key(range->low);
		high.key = open ? 0 : pfs_index_number_key(range->high + 1);
	}
	walk->from = lower_bound(walk, &low);
	walk->to = open ? walk->column->n : lower_bound(walk, &high);
	walk->fresh_from = fresh_bound(walk, &low);
	walk->fresh_to = open ? walk->fresh->n : fresh_bound(walk, &high);
}

int pfs_index_walk_open(struct pfs_index_walk **out, struct pfs_tree *tree,
			const struct pfs_index_range *range, bool descending)
{
	struct pfs_indexes *indexes = tree->indexes;
	struct pfs_index_walk *walk;
	int error = -ENOENT;

	*out = NULL;
	if (!atomic_load(&indexes->now))
		return -ENOENT;
	walk = calloc(1, sizeof(*walk));
	if (!walk)
		return -ENOMEM;
	walk->tree = tree;
	walk->field = range->field;
	walk->descending = descending;
	{
		struct pfs_index_tracked *tracked;
		bool more;
		PFS_LOCKED(&indexes->lock);

		tracked = pfs_index_at_epoch(tree, &more);
		if (tracked)
			walk->column = tracked->columns[range->field];
		if (walk->column)
			error = get_fresh(&walk->fresh, tree, tracked, range->field);
		if (!error) {
			walk->tracked = tracked;
			atomic_fetch_add(&tracked->users, 1);
		}
	}
	if (error) {
		free(walk);
		return error;
	}
	set_bounds(walk, range);
	*out = walk;
	return 0;
}

void pfs_index_walk_close(struct pfs_index_walk *walk)
{
	if (!walk)
		return;
	pfs_index_unref_fresh(walk->fresh);
	pfs_index_unref(walk->tracked);
	free(walk);
}

size_t pfs_index_walk_left(const struct pfs_index_walk *walk)
{
	return walk->to - PFS_MIN(walk->from, walk->to) + walk->fresh_to -
	       PFS_MIN(walk->fresh_from, walk->fresh_to);
}

/* Skips stale and dead slots at the front of the walk; false if nothing is left of the column. */
static bool settle(struct pfs_index_walk *walk)
{
	const struct pfs_index_column *column = walk->column;

	while (walk->from < walk->to) {
		uint32_t slot = column->slot[walk->descending ? walk->to - 1 : walk->from];

		if (!pfs_index_is_stale(walk->tracked, slot) &&
		    pfs_image_is_live(&walk->tree->image, slot))
			return true;
		if (walk->descending)
			walk->to--;
		else
			walk->from++;
	}
	return false;
}

/* Returns true if a changed node comes before the slot, by value and then by slot. */
static bool is_before(const struct pfs_index_walk *walk, const struct pfs_keyed *fresh,
		      uint32_t slot)
{
	uint64_t key = pfs_index_key(walk->tree, walk->field, slot);
	const char *name;
	size_t len;
	int order;

	if (fresh->key != key)
		return fresh->key < key;
	if (walk->field != PFS_FIELD_NAME)
		return fresh->value < slot;
	name = pfs_names_get(walk->tree->image.names, walk->tree->image.name[slot], &len);
	order = pfs_index_compare_name(&walk->tree->image, fresh->value, name, len);
	return order < 0 || (order == 0 && fresh->value < slot);
}

/* Returns true if the next node of the walk is one of the changed ones. */
static bool fresh_is_next(const struct pfs_index_walk *walk, bool any)
{
	bool down = walk->descending;

	if (walk->fresh_from >= walk->fresh_to || !any)
		return walk->fresh_from < walk->fresh_to;
	return is_before(walk, &walk->fresh->items[down ? walk->fresh_to - 1 : walk->fresh_from],
			 walk->column->slot[down ? walk->to - 1 : walk->from]) != down;
}

size_t pfs_index_walk_next(struct pfs_index_walk *walk, uint32_t *slots, size_t room)
{
	size_t n = 0;

	while (n < room) {
		bool any = settle(walk), fresh = fresh_is_next(walk, any);

		if (!any && !fresh)
			break;
		if (fresh)
			slots[n++] = walk->fresh
					     ->items[walk->descending ? --walk->fresh_to
								      : walk->fresh_from++]
					     .value;
		else
			slots[n++] = walk->column->slot[walk->descending ? --walk->to
									  : walk->from++];
	}
	return n;
}
