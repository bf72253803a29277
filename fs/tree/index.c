/* SPDX-License-Identifier: MIT */
#include "fs/tree/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/radix.h"

#define FIELDS	     (PFS_FIELD_CTIME + 1)
#define QUESTIONS    2u	  /* that an index is made for */
#define STEP	     16u  /* of its slots one has its value kept beside it */
#define CHANGED_MIN  4096u
#define CHANGED_PART 128u /* of the nodes: so many may have changed besides */
#define PIECE	     (1u << 16) /* slots read in one hold of the tree */

struct column {
	size_t n;
	uint32_t *slot;
	int64_t *sample; /* values of slot[0], slot[STEP], ..., then */
};

/* What has changed, by value, as of a version. */
struct fresh {
	atomic_uint users;
	uint64_t version;
	size_t n;
	struct pfs_keyed items[];
};

/* Indexes and what has changed since the first of them was begun. */
struct tracked {
	atomic_uint users;
	/* Written with tree->lock for writing. */
	uint64_t version; /* of what has changed */
	uint64_t *stale;  /* by slot: is in `changed` */
	size_t words;
	uint32_t *changed;
	size_t n_changed, capacity, most;
	/* Protected by the indexes' lock. */
	struct column *columns[FIELDS];
	struct fresh *fresh[FIELDS];
};

struct pfs_indexes {
	pthread_mutex_t lock;
	pthread_mutex_t making; /* one at a time; taken before tree->lock */
	/* NULL: none.  Made with tree->lock for reading and `lock`, taken away with that for writing. */
	_Atomic(struct tracked *) now;
	atomic_uint missed[FIELDS];
	atomic_bool due; /* one is to be made */
};

/* ---- fields ---- */

static const char *const names[FIELDS] = {
	[PFS_FIELD_INO] = "index of ino",	[PFS_FIELD_UID] = "index of uid",
	[PFS_FIELD_GID] = "index of gid",	[PFS_FIELD_SIZE] = "index of size",
	[PFS_FIELD_BLOCKS] = "index of blocks", [PFS_FIELD_MTIME] = "index of mtime",
	[PFS_FIELD_ATIME] = "index of atime",	[PFS_FIELD_CTIME] = "index of ctime",
};

bool pfs_index_can(enum pfs_field field)
{
	return field < FIELDS && names[field];
}

const char *pfs_index_name(enum pfs_field field)
{
	return names[field];
}

static uint64_t to_key(int64_t value)
{
	return (uint64_t)value ^ UINT64_C(1) << 63;
}

static int64_t to_value(uint64_t key)
{
	return (int64_t)(key ^ UINT64_C(1) << 63);
}

/* ---- life ---- */

int pfs_indexes_create(struct pfs_tree *tree)
{
	tree->indexes = calloc(1, sizeof(*tree->indexes));
	if (!tree->indexes)
		return -ENOMEM;
	(void)pthread_mutex_init(&tree->indexes->lock, NULL);
	(void)pthread_mutex_init(&tree->indexes->making, NULL);
	return 0;
}

static void free_column(struct column *column)
{
	if (!column)
		return;
	free(column->slot);
	free(column->sample);
	free(column);
}

static void unref_fresh(struct fresh *fresh)
{
	if (fresh && atomic_fetch_sub(&fresh->users, 1) == 1)
		free(fresh);
}

static void unref(struct tracked *tracked)
{
	if (!tracked || atomic_fetch_sub(&tracked->users, 1) != 1)
		return;
	for (size_t i = 0; i < FIELDS; i++) {
		free_column(tracked->columns[i]);
		unref_fresh(tracked->fresh[i]);
	}
	free(tracked->stale);
	free(tracked->changed);
	free(tracked);
}

void pfs_indexes_destroy(struct pfs_tree *tree)
{
	if (!tree->indexes)
		return;
	unref(atomic_load(&tree->indexes->now));
	(void)pthread_mutex_destroy(&tree->indexes->lock);
	(void)pthread_mutex_destroy(&tree->indexes->making);
	free(tree->indexes);
	tree->indexes = NULL;
}

/* ---- changes ---- */

static bool is_stale(const struct tracked *tracked, uint32_t slot)
{
	return slot / 64 < tracked->words && tracked->stale[slot / 64] >> slot % 64 & 1;
}

static int make_room(struct tracked *tracked, uint32_t slot)
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

void pfs_indexes_touched(struct pfs_tree *tree, uint32_t slot)
{
	struct tracked *tracked =
		tree->indexes ? atomic_load_explicit(&tree->indexes->now, memory_order_relaxed) : NULL;

	if (!tracked)
		return;
	tracked->version++;
	if (is_stale(tracked, slot))
		return;
	if (tracked->n_changed == tracked->most || make_room(tracked, slot)) {
		atomic_store(&tree->indexes->now, NULL);
		unref(tracked);
		return;
	}
	tracked->stale[slot / 64] |= UINT64_C(1) << slot % 64;
	tracked->changed[tracked->n_changed++] = slot;
}

/* ---- making one ---- */

static int make_tracked(struct pfs_tree *tree)
{
	struct tracked *tracked = calloc(1, sizeof(*tracked));

	if (!tracked)
		return -ENOMEM;
	atomic_init(&tracked->users, 1);
	tracked->words = tree->image.end / 64 + 1;
	tracked->most = CHANGED_MIN + tree->image.nodes / CHANGED_PART;
	tracked->stale = calloc(tracked->words, sizeof(*tracked->stale));
	if (!tracked->stale) {
		unref(tracked);
		return -ENOMEM;
	}
	atomic_store(&tree->indexes->now, tracked);
	return 0;
}

/* The indexes to add one to, and room for as many items as there are slots. */
static int begin(struct pfs_tree *tree, struct tracked **out, struct pfs_keyed **items, size_t *end)
{
	int error = 0;

	(void)pfs_scan_lock(tree);
	{
		PFS_LOCKED(&tree->indexes->lock);
		if (!atomic_load(&tree->indexes->now))
			error = make_tracked(tree);
		if (!error) {
			*out = atomic_load(&tree->indexes->now);
			atomic_fetch_add(&(*out)->users, 1);
		}
	}
	*end = tree->image.end;
	pfs_scan_unlock(tree);
	if (error)
		return error;
	*items = malloc((*end + 1) * sizeof(**items));
	return *items ? 0 : -ENOMEM;
}

/* Nodes that change between two holds are noted as changed, and what was read of them is passed over. */
static size_t gather(struct pfs_tree *tree, struct pfs_keyed *items, size_t end,
		     enum pfs_field field)
{
	size_t n = 0;

	for (size_t from = 0; from < end; from += PIECE) {
		size_t to = PFS_MIN(from + PIECE, end);

		(void)pfs_scan_lock(tree);
		for (uint32_t slot = (uint32_t)from; slot < to; slot++)
			if (pfs_scan_is_live(&tree->image, slot))
				items[n++] = (struct pfs_keyed){
					.key = to_key(pfs_scan_integer(tree, field, slot)),
					.value = slot,
				};
		pfs_scan_unlock(tree);
	}
	return n;
}

static struct column *make_column(const struct pfs_keyed *items, size_t n)
{
	struct column *column = calloc(1, sizeof(*column));

	if (!column)
		return NULL;
	column->n = n;
	column->slot = malloc((n + 1) * sizeof(*column->slot));
	column->sample = malloc((n / STEP + 1) * sizeof(*column->sample));
	if (!column->slot || !column->sample) {
		free_column(column);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		column->slot[i] = items[i].value;
		if (i % STEP == 0)
			column->sample[i / STEP] = to_value(items[i].key);
	}
	return column;
}

static void keep(struct pfs_tree *tree, struct tracked *tracked, struct column *column,
		 enum pfs_field field)
{
	(void)pfs_scan_lock(tree);
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
	struct tracked *tracked = NULL;
	struct pfs_keyed *items PFS_FREE = NULL;
	struct column *column = NULL;
	size_t n, end;

	if (!begin(tree, &tracked, &items, &end)) {
		n = gather(tree, items, end, field);
		if (!pfs_radix_sort(items, n))
			column = make_column(items, n);
	}
	if (column)
		keep(tree, tracked, column, field);
	unref(tracked);
}

void pfs_index_missed(struct pfs_tree *tree, enum pfs_field field)
{
	if (atomic_fetch_add(&tree->indexes->missed[field], 1) + 1 >= QUESTIONS)
		atomic_store(&tree->indexes->due, true);
}

void pfs_scan_prepare(struct pfs_tree *tree)
{
	struct pfs_indexes *indexes = tree->indexes;

	if (!atomic_load_explicit(&indexes->due, memory_order_relaxed) ||
	    pthread_mutex_trylock(&indexes->making))
		return;
	if (atomic_exchange(&indexes->due, false))
		for (enum pfs_field field = 0; field < FIELDS; field++)
			if (atomic_load(&indexes->missed[field]) >= QUESTIONS)
				make(tree, field);
	(void)pthread_mutex_unlock(&indexes->making);
}

/* ---- walking ---- */

struct pfs_index_walk {
	struct pfs_tree *tree;
	struct tracked *tracked;
	const struct column *column;
	struct fresh *fresh;
	enum pfs_field field;
	bool descending;
	/* What is left of both: the next one is at `from`, or, descending, before `to`. */
	size_t from, to, fresh_from, fresh_to;
};

static int64_t value_of(const struct pfs_tree *tree, enum pfs_field field, uint32_t slot)
{
	return pfs_scan_integer(tree, field, slot);
}

/* All changed nodes that are there, by their values and slots.  -ENOMEM. */
static int list_changed(struct fresh *fresh, const struct pfs_tree *tree,
			const struct tracked *tracked, enum pfs_field field)
{
	fresh->n = 0;
	for (size_t i = 0; i < tracked->n_changed; i++) {
		uint32_t slot = tracked->changed[i];

		if (slot < tree->image.end && pfs_scan_is_live(&tree->image, slot))
			fresh->items[fresh->n++] = (struct pfs_keyed){.key = slot, .value = slot};
	}
	PFS_TRY(pfs_radix_sort(fresh->items, fresh->n));
	for (size_t i = 0; i < fresh->n; i++)
		fresh->items[i].key = to_key(value_of(tree, field, fresh->items[i].value));
	return pfs_radix_sort(fresh->items, fresh->n);
}

/* The list as it was made last, if it still holds. */
static int get_fresh(struct fresh **out, const struct pfs_tree *tree, struct tracked *tracked,
		     enum pfs_field field)
{
	struct fresh *fresh = tracked->fresh[field];

	if (!fresh || fresh->version != tracked->version) {
		fresh = malloc(sizeof(*fresh) + tracked->n_changed * sizeof(*fresh->items));
		if (!fresh)
			return -ENOMEM;
		atomic_init(&fresh->users, 1);
		fresh->version = tracked->version;
		if (list_changed(fresh, tree, tracked, field)) {
			free(fresh);
			return -ENOMEM;
		}
		unref_fresh(tracked->fresh[field]);
		tracked->fresh[field] = fresh;
	}
	atomic_fetch_add(&fresh->users, 1);
	*out = fresh;
	return 0;
}

/* Where in the column the first value is that is not below `value`: by the samples, then one by one;
 * changed ones count as the next that is not. */
static size_t lower_bound(const struct pfs_index_walk *walk, int64_t value)
{
	const struct column *column = walk->column;
	size_t low = 0, high = column->n ? (column->n - 1) / STEP + 1 : 0;

	while (low < high) { /* the first sample that is not below */
		size_t middle = low + (high - low) / 2;

		if (column->sample[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return 0;
	high = PFS_MIN(low * STEP, column->n);
	for (low = (low - 1) * STEP + 1; low < high; low++) {
		uint32_t slot = column->slot[low];

		if (!is_stale(walk->tracked, slot) &&
		    value_of(walk->tree, walk->field, slot) >= value)
			break;
	}
	return low;
}

static size_t fresh_bound(const struct fresh *fresh, int64_t value)
{
	size_t low = 0, high = fresh->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (fresh->items[middle].key < to_key(value))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void set_bounds(struct pfs_index_walk *walk, int64_t low, int64_t high)
{
	bool open = high == INT64_MAX;

	walk->from = lower_bound(walk, low);
	walk->to = open ? walk->column->n : lower_bound(walk, high + 1);
	walk->fresh_from = fresh_bound(walk->fresh, low);
	walk->fresh_to = open ? walk->fresh->n : fresh_bound(walk->fresh, high + 1);
}

int pfs_index_walk_open(struct pfs_index_walk **out, struct pfs_tree *tree, enum pfs_field field,
			int64_t low, int64_t high, bool descending)
{
	struct pfs_indexes *indexes = tree->indexes;
	struct tracked *tracked = atomic_load(&indexes->now);
	struct pfs_index_walk *walk;
	int error = -ENOENT;

	*out = NULL;
	if (!tracked)
		return -ENOENT;
	walk = calloc(1, sizeof(*walk));
	if (!walk)
		return -ENOMEM;
	walk->tree = tree;
	walk->field = field;
	walk->descending = descending;
	{
		PFS_LOCKED(&indexes->lock);
		walk->column = tracked->columns[field];
		if (walk->column)
			error = get_fresh(&walk->fresh, tree, tracked, field);
		if (!error) {
			walk->tracked = tracked;
			atomic_fetch_add(&tracked->users, 1);
		}
	}
	if (error) {
		free(walk);
		return error;
	}
	set_bounds(walk, low, high);
	*out = walk;
	return 0;
}

void pfs_index_walk_close(struct pfs_index_walk *walk)
{
	if (!walk)
		return;
	unref_fresh(walk->fresh);
	unref(walk->tracked);
	free(walk);
}

size_t pfs_index_walk_left(const struct pfs_index_walk *walk)
{
	return walk->to - PFS_MIN(walk->from, walk->to) + walk->fresh_to -
	       PFS_MIN(walk->fresh_from, walk->fresh_to);
}

/* Drops what is passed over at the end that is walked from; false: nothing is left of the column. */
static bool settle(struct pfs_index_walk *walk)
{
	const struct column *column = walk->column;

	while (walk->from < walk->to) {
		uint32_t slot = column->slot[walk->descending ? walk->to - 1 : walk->from];

		if (!is_stale(walk->tracked, slot) && pfs_scan_is_live(&walk->tree->image, slot))
			return true;
		if (walk->descending)
			walk->to--;
		else
			walk->from++;
	}
	return false;
}

/* Whether the next one is one of the changed: by value, then slot. */
static bool fresh_is_next(const struct pfs_index_walk *walk, bool any)
{
	const struct pfs_keyed *fresh;
	bool is_less;
	uint32_t slot;
	uint64_t key;

	if (walk->fresh_from >= walk->fresh_to || !any)
		return walk->fresh_from < walk->fresh_to;
	slot = walk->column->slot[walk->descending ? walk->to - 1 : walk->from];
	key = to_key(value_of(walk->tree, walk->field, slot));
	fresh = &walk->fresh->items[walk->descending ? walk->fresh_to - 1 : walk->fresh_from];
	is_less = fresh->key < key || (fresh->key == key && fresh->value < slot);
	return is_less != walk->descending;
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
