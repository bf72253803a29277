/* SPDX-License-Identifier: MIT */
#include "fs/nodes/index_impl.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/later.h"
#include "fs/nodes/index_paths.h"

#define QUESTIONS    2u	  /* that an index is made for */
#define CHANGED_MIN  4096u
#define CHANGED_PART 128u /* of the nodes: so many may have changed besides, */
#define CHANGED_MAX  16384u /* and so many in all: who asks sorts them while the tree is held */
#define PIECE	     (1u << 16) /* slots read in one hold of the tree */

/* ---- life ---- */

static void free_column(struct pfs_index_column *column)
{
	if (!column)
		return;
	pfs_free_later(column->slot);
	pfs_free_later(column->sample);
	free(column);
}

void pfs_index_unref_fresh(struct pfs_index_fresh *fresh)
{
	if (fresh && atomic_fetch_sub(&fresh->users, 1) == 1)
		free(fresh);
}

void pfs_index_unref(struct pfs_index_tracked *tracked)
{
	if (!tracked || atomic_fetch_sub(&tracked->users, 1) != 1)
		return;
	for (size_t i = 0; i < PFS_FIELD_COUNT; i++) {
		if (!tracked->is_lent[i])
			free_column(tracked->columns[i]);
		pfs_index_unref_fresh(tracked->fresh[i]);
	}
	pfs_index_unref(tracked->of);
	pfs_free_later(tracked->stale);
	free(tracked->changed);
	free(tracked);
}

void pfs_indexes_destroy(struct pfs_tree *tree)
{
	if (!tree->indexes)
		return;
	pfs_index_unref(atomic_load(&tree->indexes->now));
	(void)pthread_mutex_destroy(&tree->indexes->lock);
	(void)pthread_mutex_destroy(&tree->indexes->making);
	free(tree->indexes);
	tree->indexes = NULL;
}

/* ---- changes ---- */

static int make_room(struct pfs_index_tracked *tracked, uint32_t slot)
{
	size_t words = tracked->words;

	PFS_TRY(pfs_grow(&tracked->changed, &tracked->capacity, tracked->n_changed + 1,
			 sizeof(*tracked->changed)));
	if (slot / 64 < words)
		return 0;
	PFS_TRY(pfs_grow(&tracked->stale, &words, slot / 64 + 1, sizeof(*tracked->stale)));
	memset(tracked->stale + tracked->words, 0, (words - tracked->words) * sizeof(uint64_t));
	tracked->words = words;
	return 0;
}

/* -E2BIG: too many have. */
static int note(struct pfs_index_tracked *tracked, uint32_t slot)
{
	if (pfs_index_is_stale(tracked, slot))
		return 0;
	if (tracked->n_changed == tracked->most)
		return -E2BIG;
	PFS_TRY(make_room(tracked, slot));
	tracked->stale[slot / 64] |= UINT64_C(1) << slot % 64;
	tracked->changed[tracked->n_changed++] = slot;
	return 0;
}

/* After it fell behind: which slots of the changed blocks have changed, nobody knows. */
static int note_blocks(const struct pfs_image *image, struct pfs_index_tracked *tracked)
{
	const struct pfs_feed_follower *follower = &tracked->follower;

	for (uint32_t first = 0; first < image->end; first += PFS_BLOCK_ROWS) {
		const uint32_t end = PFS_MIN(image->end, first + PFS_BLOCK_ROWS);

		if (!pfs_feed_has_changed(image, follower->columns, first / PFS_BLOCK_ROWS,
					  follower->cursor))
			continue;
		for (uint32_t slot = first; slot < end; slot++)
			PFS_TRY(note(tracked, slot));
	}
	tracked->follower.cursor = tracked->last = image->epoch;
	return 0;
}

/* Returns 0: that is all, 1: there are more; if it fails, they are to be given up. */
static int follow(const struct pfs_image *image, struct pfs_index_tracked *tracked,
		  uint32_t slots[PFS_FEED_LOOKED])
{
	size_t n = PFS_FEED_LOOKED;
	int more = pfs_feed_next(image, &tracked->follower, slots, &n);

	if (more == -EAGAIN)
		return note_blocks(image, tracked);
	for (size_t i = 0; i < n; i++)
		PFS_TRY(note(tracked, slots[i]));
	if (n)
		tracked->last = tracked->follower.cursor;
	return more;
}

struct pfs_index_tracked *pfs_index_at_epoch(struct pfs_tree *tree, bool *more)
{
	struct pfs_index_tracked *tracked = atomic_load(&tree->indexes->now);
	int left;

	*more = false;
	if (!tracked || tree->image.copy) /* whose image stays as it is */
		return tracked;
	left = follow(&tree->image, tracked, tree->indexes->slots);
	*more = left > 0;
	if (left < 0) {
		atomic_store(&tree->indexes->now, NULL);
		pfs_index_unref(tracked);
	}
	return left ? NULL : tracked;
}

void pfs_indexes_follow(struct pfs_tree *tree)
{
	bool more = !tree->image.copy;

	while (more && atomic_load(&tree->indexes->now)) {
		(void)pfs_scan_lock(tree, __func__);
		{
			PFS_LOCKED(&tree->indexes->lock);
			(void)pfs_index_at_epoch(tree, &more);
		}
		pfs_scan_unlock(tree);
	}
}

/* What has not changed is as it was sorted, and nothing is missing. */
static bool check_column(const struct pfs_tree *tree, const struct pfs_index_tracked *tracked,
			 enum pfs_field field)
{
	const struct pfs_index_column *column = tracked->columns[field];
	uint64_t before = 0;
	size_t n = 0;

	for (size_t i = 0; column && i < column->n; i++) {
		uint64_t key;

		if (pfs_index_is_stale(tracked, column->slot[i]))
			continue;
		key = pfs_index_key(tree, field, column->slot[i]);
		if (!pfs_image_is_live(&tree->image, column->slot[i]) || key < before)
			return false;
		before = key;
		n++;
	}
	for (size_t i = 0; column && i < tracked->n_changed; i++)
		n += pfs_image_is_live(&tree->image, tracked->changed[i]);
	return !column || n == tree->image.nodes;
}

static bool check(struct pfs_tree *tree)
{
	const struct pfs_index_tracked *tracked;
	PFS_LOCKED(&tree->indexes->lock);

	for (bool more = true; more;)
		tracked = pfs_index_at_epoch(tree, &more);
	for (enum pfs_field field = 0; tracked && field < PFS_FIELD_COUNT; field++)
		if (!check_column(tree, tracked, field))
			return false;
	return true;
}

static const struct pfs_watcher watcher = {.name = "column indexes", .check = check};

int pfs_indexes_create(struct pfs_tree *tree)
{
	tree->indexes = calloc(1, sizeof(*tree->indexes));
	if (!tree->indexes)
		return -ENOMEM;
	(void)pthread_mutex_init(&tree->indexes->lock, NULL);
	(void)pthread_mutex_init(&tree->indexes->making, NULL);
	pfs_watch(tree, &watcher);
	return 0;
}

/* ---- of a frozen tree ---- */

/* The live one's lock is held. */
static int copy_tracked(struct pfs_index_tracked *copy, struct pfs_index_tracked *of)
{
	copy->words = of->words;
	copy->most = of->most;
	copy->stale = malloc((of->words + 1) * sizeof(*copy->stale));
	copy->changed = malloc((of->n_changed + 1) * sizeof(*copy->changed));
	if (!copy->stale || !copy->changed)
		return -ENOMEM;
	memcpy(copy->stale, of->stale, of->words * sizeof(*copy->stale));
	if (of->n_changed)
		memcpy(copy->changed, of->changed, of->n_changed * sizeof(*copy->changed));
	copy->n_changed = of->n_changed;
	for (size_t i = 0; i < PFS_FIELD_COUNT; i++)
		copy->is_lent[i] = (copy->columns[i] = of->columns[i]) != NULL;
	copy->of = of;
	atomic_fetch_add(&of->users, 1);
	return 0;
}

int pfs_indexes_freeze(struct pfs_tree *frozen, struct pfs_tree *live)
{
	struct pfs_index_tracked *of, *copy;
	bool more;
	int error;
	PFS_LOCKED(&live->indexes->lock);

	of = pfs_index_at_epoch(live, &more);
	if (!of)
		return 0;
	copy = calloc(1, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	atomic_init(&copy->users, 1);
	error = copy_tracked(copy, of);
	if (error)
		pfs_index_unref(copy);
	else
		atomic_store(&frozen->indexes->now, copy);
	return error;
}

/* ---- making one ---- */

static int make_tracked(struct pfs_tree *tree)
{
	struct pfs_index_tracked *tracked = calloc(1, sizeof(*tracked));

	if (!tracked)
		return -ENOMEM;
	atomic_init(&tracked->users, 1);
	tracked->follower.cursor = tree->image.epoch;
	tracked->words = tree->image.end / 64 + 1;
	tracked->most = PFS_MIN(CHANGED_MIN + tree->image.nodes / CHANGED_PART, CHANGED_MAX);
	tracked->stale = calloc(tracked->words, sizeof(*tracked->stale));
	if (!tracked->stale) {
		pfs_index_unref(tracked);
		return -ENOMEM;
	}
	atomic_store(&tree->indexes->now, tracked);
	return 0;
}

/* Gets the indexes to add one to, which follow its columns from now on.  -EEXIST: they have it;
 * -ENOMEM. */
static int begin_tracked(struct pfs_tree *tree, struct pfs_index_tracked **out,
			 enum pfs_field field)
{
	struct pfs_indexes *indexes = tree->indexes;
	PFS_LOCKED(&indexes->lock);

	if (!atomic_load(&indexes->now))
		PFS_TRY(make_tracked(tree));
	if (atomic_load(&indexes->now)->columns[field])
		return -EEXIST;
	*out = atomic_load(&indexes->now);
	(*out)->follower.columns |= PFS_COLUMN_LIVE | pfs_fields[field].made_of;
	atomic_fetch_add(&(*out)->users, 1);
	return 0;
}

/* And room for as many items as there are slots. */
static int begin(struct pfs_tree *tree, struct pfs_index_tracked **out, struct pfs_keyed **items,
		 size_t *end, enum pfs_field field)
{
	int error;

	(void)pfs_scan_lock(tree, __func__);
	error = begin_tracked(tree, out, field);
	*end = tree->image.end;
	pfs_scan_unlock(tree);
	if (error)
		return error;
	*items = malloc((*end + 1) * sizeof(**items));
	return *items ? 0 : -ENOMEM;
}

/* Nodes that change between two holds are told by the feed, and what was read of them is passed
 * over. */
static size_t gather(struct pfs_tree *tree, struct pfs_keyed *items, size_t end,
		     enum pfs_field field)
{
	size_t n = 0;

	for (size_t from = 0; from < end; from += PIECE) {
		size_t to = PFS_MIN(from + PIECE, end);

		(void)pfs_scan_lock(tree, __func__);
		for (uint32_t slot = (uint32_t)from; slot < to; slot++)
			if (pfs_image_is_live(&tree->image, slot))
				items[n++] = (struct pfs_keyed){
					.key = pfs_index_key(tree, field, slot),
					.value = slot,
				};
		pfs_scan_unlock(tree);
	}
	return n;
}

static struct pfs_index_column *make_column(struct pfs_tree *tree, struct pfs_keyed *items,
					    size_t n, enum pfs_field field)
{
	struct pfs_index_column *column = calloc(1, sizeof(*column));
	int error = 0;

	if (!column)
		return NULL;
	column->n = n;
	column->slot = malloc((n + 1) * sizeof(*column->slot));
	column->sample = malloc((n / PFS_INDEX_STEP + 1) * sizeof(*column->sample));
	if (!column->slot || !column->sample)
		error = -ENOMEM;
	for (size_t i = 0; i < n && !error; i += PFS_INDEX_STEP)
		column->sample[i / PFS_INDEX_STEP] = items[i].key;
	if (!error && field == PFS_FIELD_NAME)
		error = pfs_index_sort_names(tree, items, n, false);
	for (size_t i = 0; i < n && !error; i++)
		column->slot[i] = items[i].value;
	if (error)
		free_column(PFS_TAKE(column));
	return column;
}

static void keep(struct pfs_tree *tree, struct pfs_index_tracked *tracked,
		 struct pfs_index_column *column, enum pfs_field field)
{
	(void)pfs_scan_lock(tree, __func__);
	{
		PFS_LOCKED(&tree->indexes->lock);
		if (atomic_load(&tree->indexes->now) == tracked && !tracked->columns[field]) {
			tracked->columns[field] = column;
			column = NULL;
		}
		atomic_store(&tree->indexes->missed[field], 0);
	}
	pfs_scan_unlock(tree);
	free_column(column); /* too much has changed meanwhile */
}

static void make(struct pfs_tree *tree, enum pfs_field field)
{
	struct pfs_index_tracked *tracked = NULL;
	struct pfs_keyed *items PFS_FREE = NULL;
	struct pfs_index_column *column = NULL;
	size_t n, end;

	if (!begin(tree, &tracked, &items, &end, field)) {
		n = gather(tree, items, end, field);
		if (!pfs_radix_sort(items, n))
			column = make_column(tree, items, n, field);
	}
	if (column)
		keep(tree, tracked, column, field);
	pfs_index_unref(tracked);
}

void pfs_scan_missed(struct pfs_tree *tree, enum pfs_field field)
{
	if (atomic_fetch_add(&tree->indexes->missed[field], 1) + 1 >= QUESTIONS)
		atomic_store(&tree->indexes->due, true);
}

void pfs_scan_prepare(struct pfs_tree *tree)
{
	struct pfs_indexes *indexes = tree->indexes;

	pfs_path_index_follow(tree);
	pfs_indexes_follow(tree);
	if (!atomic_load_explicit(&indexes->due, memory_order_relaxed) ||
	    pthread_mutex_trylock(&indexes->making))
		return;
	if (atomic_exchange(&indexes->due, false))
		for (enum pfs_field field = 0; field < PFS_FIELD_COUNT; field++)
			if (atomic_load(&indexes->missed[field]) >= QUESTIONS)
				make(tree, field);
	(void)pthread_mutex_unlock(&indexes->making);
}
