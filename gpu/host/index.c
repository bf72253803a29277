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
#define GROUP 64u   /* keys of the sample that are searched at once */

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

/* Makes change i of a batch; returns how many entries it adds or removes. Room for what an
 * insertion adds has been reserved. */
typedef unsigned change_one(struct pfs_index_tree *tree, const struct pfs_index_change *change,
			    size_t i);

static unsigned insert_one(struct pfs_index_tree *tree, const struct pfs_index_change *change,
			   size_t i)
{
	pfs_index_value value = ((const pfs_index_value *)change->values)[i], old;
	uint64_t key = change->keys[i];

	if (tree->kind == PFS_INDEX_DUPLICATES)
		return pfs_btree_insert(tree->btree, key, value) == 0;
	if (pfs_btree_insert_key(tree->btree, &old, key, value) == 0)
		return 1;
	if (change->policy == PFS_INDEX_REPLACE && old != value) {
		(void)pfs_btree_remove(tree->btree, key, old);
		(void)!pfs_btree_insert(tree->btree, key, value);
	}
	return 0;
}

static unsigned remove_one(struct pfs_index_tree *tree, const struct pfs_index_change *change,
			   size_t i)
{
	const pfs_index_value *values = change->values;

	return values ? pfs_btree_remove(tree->btree, change->keys[i], values[i])
		      : pfs_btree_remove_key(tree->btree, change->keys[i]);
}

/* Sorts a batch by key, so that neighbours in the tree are changed one after the other. Equal keys
 * keep their order. value: index in the batch. */
static int sort_batch(struct pfs_keyed **out, const struct pfs_run *run,
		      const struct pfs_index_change *change)
{
	struct pfs_keyed *sorted;
	int error;

	PFS_TRY(pfs_run_alloc_raw(run, &sorted, change->n, sizeof(*sorted)));
	for (size_t i = 0; i < change->n; i++)
		sorted[i] = (struct pfs_keyed){change->keys[i], (uint32_t)i};
	error = pfs_radix_sort(sorted, change->n);
	if (error)
		pfs_run_free(run, sorted, change->n, sizeof(*sorted));
	else
		*out = sorted;
	return error;
}

/* Makes a batch of changes: as they come, if one is alone or the tree is near. */
static int change_all(const struct pfs_run *run, struct pfs_index_tree *tree, uint64_t *n_changed,
		      const struct pfs_index_change *change, change_one *one)
{
	bool is_far = pfs_btree_count(tree->btree) + change->n > PFS_BTREE_NEAR;
	struct pfs_keyed *sorted = NULL;
	uint64_t n = 0;

	if (change->n > UINT32_MAX)
		return -E2BIG;
	PFS_TRY(pfs_run_poll(run)); /* not later, since a batch is applied as a whole */
	if (is_far && change->n > 1)
		PFS_TRY(sort_batch(&sorted, run, change));
	for (size_t i = 0; i < change->n; i++)
		n += one(tree, change, sorted ? sorted[i].value : i);
	pfs_run_free(run, sorted, change->n, sizeof(*sorted));
	*n_changed = n;
	return 0;
}

static int insert_batch(struct pfs_operator_backend *b, const struct pfs_run *run,
			struct pfs_index_tree *tree, uint64_t *n_added,
			const struct pfs_index_change *change)
{
	PFS_TRY(pfs_btree_reserve(tree->btree, change->n));
	PFS_TRY(change_all(run, tree, n_added, change, insert_one));
	adapt(b, run, tree);
	return 0;
}

static int remove_batch(struct pfs_operator_backend *b, const struct pfs_run *run,
			struct pfs_index_tree *tree, uint64_t *n_removed,
			const struct pfs_index_change *change)
{
	(void)b;
	return change_all(run, tree, n_removed, change, remove_one);
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
