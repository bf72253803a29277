/* SPDX-License-Identifier: MIT */
/* Ordered indexes on the host: B-trees (base/btree.h), which all threads of a batch search. */
#include "gpu/host/families.h"

#include <stdlib.h>

#include "base/btree.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/radix.h"
#include "gpu/host/operators.h"
#include "gpu/index_value.h"

#define GRAIN 2048u /* questions that a thread answers at once, between two polls */
#define GROUP 64u   /* keys of a batch of changes that are found side by side */

#define SAMPLE	   16384u /* how many keys are searched to measure a page size */
#define ROUNDS	   3u
#define GROWTH	   4u /* pages are measured again when there are so many times the entries */
#define MEASURE_AT 65536u /* entries; fewer fit in the cache with any page size */

struct pfs_index_tree {
	struct pfs_btree *btree;
	enum pfs_index_kind kind;
	uint32_t page; /* the page size of btree, in entries */
	bool is_measured;
	uint32_t n_measured;
	size_t n_then; /* how many entries it had when its page size was last measured */
};

static const uint32_t pages[] = {PFS_INDEX_PAGE, 30, 126, 254};

static void close_tree(struct pfs_operator_backend *b, const struct pfs_run *run,
			  struct pfs_index_tree *tree)
{
	(void)b, (void)run;
	pfs_btree_destroy(tree->btree);
	free(tree);
}

/* ---- questions ---- */

struct find {
	const struct pfs_btree *btree;
	const struct pfs_index_query *query;
};

static int find_some(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct find *find = context;
	const struct pfs_index_query *query = find->query;
	pfs_index_value *values = query->values;
	pfs_index_value slot = query->question == PFS_INDEX_GREATER ? PFS_VALUE_NONE : 0;
	bool is_equal = query->question == PFS_INDEX_EQUAL;
	struct pfs_btree_entry found[64];

	(void)worker;
	for (uint64_t i = from; i < to; i += PFS_COUNT(found)) {
		size_t n = PFS_MIN(to - i, PFS_COUNT(found));

		pfs_btree_find(find->btree, found, &query->keys[i], slot, n);
		for (size_t k = 0; k < n; k++) {
			bool other = is_equal && found[k].key != query->keys[i + k];

			/* Arithmetic, as nobody can predict which keys there are. */
			values[i + k] = found[k].slot | -(pfs_index_value)other;
			if (query->found_keys)
				query->found_keys[i + k] = found[k].key;
		}
	}
	return 0;
}

static int find(struct pfs_operator_backend *b, const struct pfs_run *run,
			const struct pfs_index_tree *tree, const struct pfs_index_query *query)
{
	struct find find = {tree->btree, query};

	return pfs_host_for(pfs_host_operators_of(b), run, query->n, GRAIN, find_some, &find);
}

static int range(struct pfs_operator_backend *b, const struct pfs_run *run,
			 const struct pfs_index_tree *tree, struct pfs_index_list *out,
			 uint64_t first, uint64_t last)
{
	const struct pfs_btree *btree = tree->btree;
	struct pfs_btree_cursor cursor;
	struct pfs_index_list piece = {0};
	size_t n = 0, done = 0;
	int error;

	(void)b;
	if (first == 0 && last == UINT64_MAX) {
		n = pfs_btree_count(btree);
	} else {
		PFS_TRY(pfs_index_list_make(run, &piece, GRAIN, PFS_VALUES_WIDE));
		pfs_btree_seek(btree, &cursor, first, 0);
		for (size_t more = GRAIN; more == GRAIN; n += more)
			more = pfs_btree_read(btree, &cursor, piece.keys, PFS_LIST_VALUES(&piece),
					      GRAIN, last);
		pfs_index_list_free(run, &piece);
	}
	PFS_TRY(pfs_index_list_make(run, out, n, PFS_VALUES_WIDE));
	pfs_btree_seek(btree, &cursor, first, 0);
	for (error = 0; !error && done < n; error = error ? error : pfs_run_poll(run))
		done += pfs_btree_read(btree, &cursor, out->keys + done,
				       PFS_LIST_VALUES(out) + done,
				       PFS_MIN(n - done, (size_t)GRAIN * 64), last);
	if (error)
		pfs_index_list_free(run, out);
	return error;
}

static int read_on(struct pfs_operator_backend *b, const struct pfs_run *run,
			const struct pfs_index_tree *tree, struct pfs_index_cursor *cursor,
			struct pfs_index_list *out, enum pfs_index_direction direction)
{
	const struct pfs_btree *btree = tree->btree;
	bool is_up = direction == PFS_INDEX_UP;
	size_t wanted = out->n, done = 0, more, piece;
	struct pfs_btree_cursor at;

	(void)b;
	pfs_btree_seek(btree, &at, cursor->key,
		       (pfs_index_value)PFS_MIN(cursor->value, (uint64_t)PFS_VALUE_NONE));
	do {
		uint64_t *keys = out->keys + done;
		pfs_index_value *values = PFS_LIST_VALUES(out) + done;

		PFS_TRY(pfs_run_poll(run));
		piece = PFS_MIN(wanted - done, (size_t)GRAIN * 64);
		more = is_up ? pfs_btree_read(btree, &at, keys, values, piece, UINT64_MAX)
			     : pfs_btree_read_back(btree, &at, keys, values, piece);
		done += more;
	} while (more == piece && done < wanted);
	out->n = done;
	if (done) /* value + 1 fits, as no value is NONE */
		*cursor = (struct pfs_index_cursor){out->keys[done - 1],
							PFS_LIST_VALUES(out)[done - 1] + is_up};
	return 0;
}

/* ---- pages ---- */

/* Entries in order of their keys. */
struct pairs {
	const uint64_t *keys;
	const pfs_index_value *values;
	size_t n;
};

/* Builds a B-tree with this page size from the entries. */
static int plant(struct pfs_host_operators *host, struct pfs_btree **out, uint32_t page,
		 const struct pairs *pairs)
{
	int error;

	PFS_TRY(pfs_btree_create_of(out, page));
	error = pfs_btree_load(*out, pfs_host_pool(host), pairs->keys, pairs->values, pairs->n);
	if (!error)
		return 0;
	pfs_btree_destroy(*out);
	*out = NULL;
	return error;
}

/* Returns the nanoseconds that searching the sample takes, the least of several rounds. One thread
 * is enough to find which page is best. */
static uint64_t time_searches(const struct pfs_btree *btree, const uint64_t *sample)
{
	struct pfs_btree_entry found[GROUP];
	uint64_t best = UINT64_MAX;

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t began = pfs_now_ns();

		for (size_t i = 0; i < SAMPLE; i += GROUP)
			pfs_btree_find(btree, found, &sample[i], 0, GROUP);
		best = PFS_MIN(best, pfs_now_ns() - began);
	}
	return best;
}

/* Picks keys at random from all entries. */
static void take_sample(uint64_t *sample, const struct pairs *pairs)
{
	uint64_t at = 1;

	for (size_t i = 0; i < SAMPLE; i++) {
		at = at * UINT64_C(6364136223846793005) + 1442695040888963407;
		sample[i] = pairs->keys[(at >> 32) % pairs->n];
	}
}

/* Builds a B-tree with each page size, and replaces tree->btree, if any, by the fastest one. On an
 * error nothing has changed. */
static int measure(struct pfs_host_operators *host, const struct pfs_run *run,
		   struct pfs_index_tree *tree, const struct pairs *pairs)
{
	uint64_t *sample PFS_FREE = malloc(SAMPLE * sizeof(*sample));
	uint64_t best = UINT64_MAX, ns;
	struct pfs_btree *btree = NULL, *other;
	uint32_t page = 0;
	int error = sample ? 0 : -ENOMEM;

	if (!error)
		take_sample(sample, pairs);
	for (size_t i = 0; i < PFS_COUNT(pages) && !error; i++) {
		error = pfs_run_poll(run);
		error = error ? error : plant(host, &other, pages[i], pairs);
		if (error)
			break;
		ns = time_searches(other, sample);
		if (ns >= best) {
			pfs_btree_destroy(other);
			continue;
		}
		best = ns;
		page = pages[i];
		pfs_btree_destroy(btree);
		btree = other;
	}
	if (error) {
		pfs_btree_destroy(btree);
		return error;
	}
	pfs_btree_destroy(tree->btree);
	tree->btree = btree;
	tree->page = page;
	tree->n_measured++;
	tree->n_then = pairs->n;
	return 0;
}

static int build(struct pfs_operator_backend *b, const struct pfs_run *run,
		 struct pfs_index_tree **out, const struct pfs_index_shape *shape,
		 const uint64_t *keys, const void *values, size_t n)
{
	struct pfs_index_tree *tree = calloc(1, sizeof(*tree));
	const struct pairs pairs = {keys, values, n};
	int error;

	*out = NULL;
	if (!tree)
		return -ENOMEM;
	tree->kind = shape->kind;
	tree->is_measured = shape->page == PFS_INDEX_MEASURED;
	tree->page = shape->page && !tree->is_measured ? shape->page : PFS_INDEX_PAGE;
	tree->n_then = MEASURE_AT / GROWTH;
	error = tree->is_measured && n >= MEASURE_AT
			? measure(pfs_host_operators_of(b), run, tree, &pairs)
			: plant(pfs_host_operators_of(b), &tree->btree, tree->page, &pairs);
	if (error)
		close_tree(b, run, tree);
	else
		*out = tree;
	return error;
}

/* Measures pages anew if insertions have made the tree GROWTH times as large. If that fails, it is
 * tried again after as much growth. */
static void adapt(struct pfs_operator_backend *b, const struct pfs_run *run,
		  struct pfs_index_tree *tree)
{
	size_t n = pfs_btree_count(tree->btree);
	struct pfs_index_list all;
	struct pairs pairs;

	if (!tree->is_measured || n / GROWTH < tree->n_then)
		return;
	tree->n_then = n;
	if (range(b, run, tree, &all, 0, UINT64_MAX))
		return;
	pairs = (struct pairs){all.keys, PFS_LIST_VALUES(&all), all.n};
	(void)measure(pfs_host_operators_of(b), run, tree, &pairs);
	pfs_index_list_free(run, &all);
}

/* ---- changes ---- */

/* Returns the value of the key in a unique index, or PFS_VALUE_NONE if it has none. */
static pfs_index_value value_of(const struct pfs_btree *btree, uint64_t key)
{
	struct pfs_btree_entry found;

	pfs_btree_find(btree, &found, &key, 0, 1);
	return found.slot != PFS_BTREE_NONE && found.key == key ? found.slot : PFS_VALUE_NONE;
}

/* Returns true if it adds an entry, rather than changing one or none. old: the key's value in a
 * unique index, or PFS_VALUE_NONE. Room has been reserved, so that no insertion fails. */
static bool insert_one(struct pfs_index_tree *tree, uint64_t key, pfs_index_value value,
		       pfs_index_value old, enum pfs_index_policy policy)
{
	if (old != PFS_VALUE_NONE && (policy == PFS_INDEX_REFUSE || old == value))
		return false;
	if (old != PFS_VALUE_NONE)
		(void)pfs_btree_remove(tree->btree, key, old);
	return pfs_btree_insert(tree->btree, key, value) == 0 && old == PFS_VALUE_NONE;
}

/* A batch sorted by key, so that neighbours in the tree are changed one after the other. Equal keys
 * keep their order. */
struct sorted {
	struct pfs_keyed *items; /* value: index in the batch */
	uint64_t keys[GROUP];	 /* of the group that is searched */
	struct pfs_btree_entry found[GROUP];
};

static int sort_batch(struct sorted *sorted, const struct pfs_run *run,
		      const struct pfs_index_change *change)
{
	int error;

	if (change->n > UINT32_MAX)
		return -E2BIG;
	PFS_TRY(pfs_run_poll(run)); /* not later, since a batch is applied as a whole */
	PFS_TRY(pfs_run_alloc_raw(run, &sorted->items, change->n, sizeof(*sorted->items)));
	for (size_t i = 0; i < change->n; i++)
		sorted->items[i] = (struct pfs_keyed){change->keys[i], (uint32_t)i};
	error = pfs_radix_sort(sorted->items, change->n);
	if (error)
		pfs_run_free(run, sorted->items, change->n, sizeof(*sorted->items));
	return error;
}

static void find_group(struct sorted *sorted, const struct pfs_btree *btree, size_t from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sorted->keys[i] = sorted->items[from + i].key;
	pfs_btree_find(btree, sorted->found, sorted->keys, 0, n);
}

/* Returns the value that a unique index has for the group's key i, or PFS_VALUE_NONE. It was found
 * before the group was changed; if the key comes again, the tree is asked again. */
static pfs_index_value old_value(const struct pfs_btree *btree, const struct sorted *sorted,
				 size_t i)
{
	const struct pfs_btree_entry *found = &sorted->found[i];

	if (i && sorted->keys[i - 1] == sorted->keys[i])
		return value_of(btree, sorted->keys[i]);
	return found->slot != PFS_BTREE_NONE && found->key == sorted->keys[i] ? found->slot
									       : PFS_VALUE_NONE;
}

static int insert_batch(struct pfs_operator_backend *b, const struct pfs_run *run,
			struct pfs_index_tree *tree, uint64_t *n_added,
			const struct pfs_index_change *change)
{
	const pfs_index_value *values = change->values;
	struct sorted sorted;

	PFS_TRY(pfs_btree_reserve(tree->btree, change->n));
	PFS_TRY(sort_batch(&sorted, run, change));
	*n_added = 0;
	for (size_t from = 0; from < change->n; from += GROUP) {
		size_t n = PFS_MIN(change->n - from, GROUP);

		find_group(&sorted, tree->btree, from, n);
		for (size_t i = 0; i < n; i++) {
			pfs_index_value old = tree->kind == PFS_INDEX_UNIQUE
						      ? old_value(tree->btree, &sorted, i)
						      : PFS_VALUE_NONE;

			*n_added += insert_one(tree, sorted.keys[i],
					       values[sorted.items[from + i].value], old,
					       change->policy);
		}
	}
	pfs_run_free(run, sorted.items, change->n, sizeof(*sorted.items));
	adapt(b, run, tree);
	return 0;
}

static int remove_batch(struct pfs_operator_backend *b, const struct pfs_run *run,
			struct pfs_index_tree *tree, uint64_t *n_removed,
			const struct pfs_index_change *change)
{
	const pfs_index_value *values = change->values;
	struct sorted sorted;

	(void)b;
	PFS_TRY(sort_batch(&sorted, run, change));
	*n_removed = 0;
	for (size_t from = 0; from < change->n; from += GROUP) {
		size_t n = PFS_MIN(change->n - from, GROUP);

		find_group(&sorted, tree->btree, from, n);
		for (size_t i = 0; i < n; i++) {
			pfs_index_value value = sorted.found[i].slot;

			if (values)
				value = values[sorted.items[from + i].value];
			else if (value == PFS_BTREE_NONE || sorted.found[i].key != sorted.keys[i])
				continue; /* there is no such key */
			/* a key that the group has twice is removed once */
			*n_removed += pfs_btree_remove(tree->btree, sorted.keys[i], value);
		}
	}
	pfs_run_free(run, sorted.items, change->n, sizeof(*sorted.items));
	return 0;
}

static void describe(const struct pfs_index_tree *tree, struct pfs_index_info *info)
{
	info->n = pfs_btree_count(tree->btree);
	info->bytes = pfs_btree_memory(tree->btree);
	info->page = tree->page;
	info->measured = tree->n_measured;
}

static int verify(struct pfs_operator_backend *b, const struct pfs_run *run,
			  const struct pfs_index_tree *tree)
{
	(void)b, (void)run;
	return pfs_btree_verify(tree->btree);
}

const struct pfs_index_family pfs_host_index_family = {
	.build = build,
	.close = close_tree,
	.find = find,
	.range = range,
	.read = read_on,
	.insert = insert_batch,
	.remove = remove_batch,
	.describe = describe,
	.verify = verify,
};
