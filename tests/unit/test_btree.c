/* SPDX-License-Identifier: MIT */
/* The B+-tree against a sorted array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/btree.h"
#include "base/btree_node.h"
#include "base/checked.h"
#include "base/search.h"
#include "tests/ref/random.h"

static const uint64_t seed = 0x9e3779b97f4a7c15u;

static int compare(const void *a, const void *b)
{
	const struct pfs_btree_entry *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->slot > y->slot) - (x->slot < y->slot);
}

/* What the tree must hold: sorted, unique. */
struct model {
	struct pfs_btree_entry *entries;
	size_t count;
};

static size_t model_rank(const struct model *model, struct pfs_btree_entry entry)
{
	return PFS_SEARCH(i, 0, model->count, compare(&model->entries[i], &entry) < 0);
}

static bool model_holds(const struct model *model, size_t i, struct pfs_btree_entry entry)
{
	return i < model->count && !compare(&model->entries[i], &entry);
}

static void assert_from(const struct pfs_btree *tree, const struct model *model,
			struct pfs_btree_entry from, size_t limit)
{
	struct pfs_btree_cursor cursor;
	struct pfs_btree_entry entry;
	size_t i = model_rank(model, from);

	pfs_btree_seek(tree, &cursor, from.key, from.slot);
	for (; i < model->count && limit; i++, limit--) {
		assert_true(pfs_btree_next(tree, &cursor, &entry));
		assert_int_equal(entry.key, model->entries[i].key);
		assert_int_equal(entry.slot, model->entries[i].slot);
	}
	if (limit)
		assert_false(pfs_btree_next(tree, &cursor, &entry));
}

static void assert_same(const struct pfs_btree *tree, const struct model *model)
{
	assert_int_equal(pfs_btree_verify(tree), 0);
	assert_int_equal(pfs_btree_count(tree), model->count);
	assert_from(tree, model, (struct pfs_btree_entry){0, 0}, SIZE_MAX);
}

static void change(struct pfs_btree *tree, struct model *model, struct pfs_btree_entry entry,
		   bool insert)
{
	size_t i = model_rank(model, entry);
	bool held = model_holds(model, i, entry);
	struct pfs_btree_entry *at = &model->entries[i];

	if (insert) {
		assert_int_equal(pfs_btree_insert(tree, entry.key, entry.slot), held ? -EEXIST : 0);
		if (held)
			return;
		memmove(at + 1, at, (model->count++ - i) * sizeof(*at));
		*at = entry;
	} else {
		assert_int_equal(pfs_btree_remove(tree, entry.key, entry.slot), held);
		if (held)
			memmove(at, at + 1, (--model->count - i) * sizeof(*at));
	}
}

/* In any order, which the model does not keep up with: that would take far longer than the tree
 * does. */
static void remove_all(struct pfs_btree *tree, struct model *model, uint64_t *state)
{
	for (; model->count; model->count--) {
		struct pfs_btree_entry *last = &model->entries[model->count - 1];
		struct pfs_btree_entry *any = &model->entries[random_next(state) % model->count];

		assert_true(pfs_btree_remove(tree, any->key, any->slot));
		*any = *last;
		if (model->count % 5000 == 0)
			assert_int_equal(pfs_btree_verify(tree), 0);
	}
	assert_same(tree, model);
}

static void random_changes(uint64_t keys, uint64_t slots, size_t n)
{
	uint64_t state = seed;
	struct pfs_btree *tree;
	struct model model = {calloc(n + 1, sizeof(struct pfs_btree_entry)), 0};

	assert_non_null(model.entries);
	assert_int_equal(pfs_btree_create(&tree), 0);
	assert_same(tree, &model);
	for (size_t i = 0; i < n; i++) {
		struct pfs_btree_entry entry = {random_next(&state) % keys,
						(uint32_t)(random_next(&state) % slots)};
		/* phases that mostly grow and phases that mostly shrink */
		bool insert = random_next(&state) % 10 < ((i / (n / 8)) % 2 ? 2u : 8u);

		if (!insert && model.count && random_next(&state) % 2)
			entry = model.entries[random_next(&state) % model.count];
		change(tree, &model, entry, insert);
		if (i % 3001 == 0)
			assert_same(tree, &model);
		if (i % 13 == 0)
			assert_from(tree, &model, entry, 5);
	}
	remove_all(tree, &model, &state);
	pfs_btree_destroy(tree);
	free(model.entries);
}

static void test_random(void **state)
{
	unsigned n = getenv("PFS_TEST_SMALL") ? 3000 : 30000;

	(void)state;
	print_message("seed %#llx\n", (unsigned long long)seed);
	random_changes(UINT64_MAX, UINT32_MAX, n);
	random_changes(3, 30000, n); /* many slots to a key */
	random_changes(5000, 4, n);
	random_changes(1, 40000, n);
}

static void test_ascending_fills(void **state)
{
	struct pfs_btree *tree;
	size_t n = 200000;

	(void)state;
	assert_int_equal(pfs_btree_create(&tree), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(pfs_btree_insert(tree, i / 3, (uint32_t)i), 0);
	assert_int_equal(pfs_btree_verify(tree), 0);
	assert_true(pfs_btree_memory(tree) < n * 15);
	for (size_t i = n; i-- > 0;)
		assert_true(pfs_btree_remove(tree, i / 3, (uint32_t)i));
	assert_int_equal(pfs_btree_verify(tree), 0);
	for (size_t i = n; i-- > 0;)
		assert_int_equal(pfs_btree_insert(tree, i, 7), 0);
	assert_int_equal(pfs_btree_verify(tree), 0);
	pfs_btree_destroy(tree);
}

#define CHANGES_MOST 5000u /* of a loaded tree: each moves half the model */

static void load(size_t n, struct pfs_pool *pool)
{
	struct pfs_btree *tree;
	struct model model = {calloc(2 * n + 64, sizeof(struct pfs_btree_entry)), n};
	uint64_t *keys = calloc(n + 1, sizeof(*keys));
	uint32_t *slots = calloc(n + 1, sizeof(*slots));
	uint64_t state = seed + n;

	assert_non_null(model.entries);
	assert_non_null(keys);
	assert_non_null(slots);
	for (size_t i = 0; i < n; i++) {
		keys[i] = i / 2 * 2;
		slots[i] = (uint32_t)i;
		model.entries[i] = (struct pfs_btree_entry){keys[i], slots[i]};
	}
	assert_int_equal(pfs_btree_create(&tree), 0);
	assert_int_equal(pfs_btree_load(tree, pool, keys, slots, n), 0);
	assert_same(tree, &model);
	if (n > 1000)
		assert_true(pfs_btree_memory(tree) <= n * 20);
	if (n)
		assert_int_equal(pfs_btree_load(tree, pool, keys, slots, n), -EINVAL);
	for (size_t i = 0; i < PFS_MIN(n + 32, CHANGES_MOST); i++) {
		struct pfs_btree_entry entry = {random_next(&state) % (n + 2),
						(uint32_t)(random_next(&state) % (n + 2))};

		change(tree, &model, entry, random_next(&state) % 4 != 0);
	}
	assert_same(tree, &model);
	remove_all(tree, &model, &state);
	pfs_btree_destroy(tree);
	free(model.entries);
	free(keys);
	free(slots);
}

static void test_load(void **state)
{
	static const size_t sizes[] = {0,    1,	   2,	 57,	58,    59,    61,   62,   63,
				       64,   116,  117,	 3421,	3422,  3423,  3480, 3481, 3600,
				       3967, 3968, 3969, 20000, 50001};

	struct pfs_pool *pool;

	(void)state;
	assert_int_equal(pfs_pool_open(&pool, 3, 0), 0);
	for (size_t i = 0; i < PFS_COUNT(sizes); i++) {
		load(sizes[i], NULL);
		load(sizes[i], pool);
	}
	pfs_pool_close(pool);
}

/* Whoever finds it, and wherever: nothing is loaded. */
static void test_load_refuses_together(void **state)
{
	enum { N = 100000 };
	uint64_t *keys = calloc(N, sizeof(*keys));
	uint32_t *slots = calloc(N, sizeof(*slots));
	struct pfs_btree *tree;
	struct pfs_pool *pool;

	(void)state;
	assert_true(keys && slots);
	for (uint32_t i = 0; i < N; i++)
		keys[i] = i / 2;
	for (uint32_t i = 0; i < N; i++)
		slots[i] = i;
	assert_int_equal(pfs_pool_open(&pool, 3, 0), 0);
	assert_int_equal(pfs_btree_create(&tree), 0);
	for (uint32_t at = 1; at < N; at += N / 50 - 1) {
		uint64_t key = keys[at];

		keys[at] = keys[at - 1] - (at > 2);
		slots[at] = slots[at - 1];
		assert_int_equal(pfs_btree_load(tree, pool, keys, slots, N), -EINVAL);
		assert_int_equal(pfs_btree_count(tree), 0);
		assert_int_equal(pfs_btree_verify(tree), 0);
		keys[at] = key;
		slots[at] = at;
	}
	assert_int_equal(pfs_btree_load(tree, pool, keys, slots, N), 0);
	assert_int_equal(pfs_btree_verify(tree), 0);
	pfs_btree_destroy(tree);
	pfs_pool_close(pool);
	free(keys);
	free(slots);
}

static void test_load_refuses(void **state)
{
	static const uint64_t descending[] = {1, 3, 2}, equal[] = {1, 1, 1};
	static const uint32_t slots[] = {1, 2, 2};
	struct pfs_btree *tree;

	(void)state;
	assert_int_equal(pfs_btree_create(&tree), 0);
	assert_int_equal(pfs_btree_load(tree, NULL, descending, slots, 3), -EINVAL);
	assert_int_equal(pfs_btree_load(tree, NULL, equal, slots, 3), -EINVAL);
	assert_int_equal(pfs_btree_count(tree), 0);
	assert_int_equal(pfs_btree_load(tree, NULL, equal, slots, 2), 0);
	assert_int_equal(pfs_btree_count(tree), 2);
	pfs_btree_destroy(tree);
	pfs_btree_destroy(NULL);
}

/* A full node's last child splits, in the middle of the tree: no poor node is left there. */
static void test_split_beside_full(void **state)
{
	enum {
		FILLED = 62,
		N = FILLED * 63 * 3,
		STEP = 1000
	}; /* nodes that ascending inserts fill */
	uint64_t last = (uint64_t)(FILLED * FILLED - 1) * STEP; /* of the first node's last leaf */
	struct pfs_btree *tree;

	(void)state;
	assert_int_equal(pfs_btree_create(&tree), 0);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(pfs_btree_insert(tree, (uint64_t)i * STEP, i), 0);
	for (uint32_t i = 1; i < STEP; i++) {
		assert_int_equal(pfs_btree_insert(tree, last + i, i), 0);
		assert_int_equal(pfs_btree_verify(tree), 0);
	}
	pfs_btree_destroy(tree);
}

#define ONE_EACH 500u

/* One entry a key, whose slots come and go, so that separators stay which have a key and a slot
 * that is there no longer. */
static void one_entry_a_key(uint32_t page)
{
	static uint32_t slots[ONE_EACH]; /* PFS_BTREE_NONE: the key is not there */
	uint64_t random = seed + page;
	struct pfs_btree *tree;
	size_t n = 0;

	memset(slots, 0xff, sizeof(slots));
	assert_int_equal(pfs_btree_create_of(&tree, page), 0);
	for (unsigned i = 0; i < 60000; i++) {
		uint32_t key = random_below(&random, ONE_EACH), slot = random_below(&random, 99);
		bool is_there = slots[key] != PFS_BTREE_NONE, grows = i / 6000 % 2 == 0;
		uint32_t there = PFS_BTREE_NONE;

		if (random_below(&random, 10) < (grows ? 3 : 7)) {
			assert_int_equal(pfs_btree_remove_key(tree, key), is_there);
			slots[key] = PFS_BTREE_NONE;
			n -= is_there;
		} else {
			assert_int_equal(pfs_btree_insert_key(tree, &there, key, slot),
					 is_there ? -EEXIST : 0);
			assert_int_equal(there, slots[key]);
			slots[key] = is_there ? slots[key] : slot;
			n += !is_there;
		}
		assert_int_equal(pfs_btree_count(tree), n);
		if (i % 50 == 0)
			assert_int_equal(pfs_btree_verify(tree), 0);
	}
	pfs_btree_destroy(tree);
}

static void test_one_entry_a_key(void **state)
{
	(void)state;
	one_entry_a_key(8);
	one_entry_a_key(PFS_BTREE_PAGE);
}

/* Nodes of every number of keys, asked for what is at, before and after each of them, and for the
 * least and the greatest key that there can be. */
static void test_search_of_a_node(void **state)
{
	enum { MOST = 300 };
	static uint64_t keys[MOST];

	(void)state;
	for (uint32_t i = 0; i < MOST; i++)
		keys[i] = i * 3 + 1;
	for (uint32_t n = 0; n < MOST; n++) {
		for (uint64_t key = 0; key <= n * 3 + 1; key++)
			assert_int_equal(pfs_btree_below(keys, n, key),
					 PFS_MIN((key + 1) / 3, n));
		assert_int_equal(pfs_btree_below(keys, n, UINT64_MAX), n);
		keys[n] = UINT64_MAX;
		assert_int_equal(pfs_btree_below(keys, n + 1, UINT64_MAX), n);
		keys[n] = n * 3 + 1;
	}
}

#define N_READ	20000
#define N_FOUND 1003
#define PIECE	37

/* A batch answers as seeks do. */
static void assert_found(const struct pfs_btree *tree, const uint64_t *keys, uint32_t slot)
{
	static struct pfs_btree_entry found[N_FOUND];
	struct pfs_btree_cursor cursor;
	struct pfs_btree_entry entry;

	pfs_btree_find(tree, found, keys, slot, N_FOUND);
	for (size_t i = 0; i < N_FOUND; i++) {
		pfs_btree_seek(tree, &cursor, keys[i], slot);
		if (!pfs_btree_next(tree, &cursor, &entry))
			entry = (struct pfs_btree_entry){0, PFS_BTREE_NONE};
		assert_int_equal(found[i].key, entry.key);
		assert_int_equal(found[i].slot, entry.slot);
	}
}

/* Reading in pieces gives what next does. */
static void assert_read(const struct pfs_btree *tree, uint64_t first, uint64_t last)
{
	static uint64_t keys[N_READ + PIECE];
	static uint32_t slots[N_READ + PIECE];
	struct pfs_btree_cursor cursor, pieces;
	struct pfs_btree_entry entry;
	size_t n = 0, more = PIECE;

	pfs_btree_seek(tree, &pieces, first, 0);
	cursor = pieces;
	for (; more == PIECE && n <= N_READ; n += more)
		more = pfs_btree_read(tree, &pieces, &keys[n], &slots[n], PIECE, last);
	assert_true(more < PIECE);
	for (size_t i = 0; i < n; i++) {
		assert_true(pfs_btree_next(tree, &cursor, &entry));
		assert_int_equal(keys[i], entry.key);
		assert_int_equal(slots[i], entry.slot);
		assert_true(entry.key <= last);
	}
	if (pfs_btree_next(tree, &cursor, &entry))
		assert_true(entry.key > last);
}

static void test_batches(void **state)
{
	static uint64_t keys[N_FOUND];
	uint64_t random = seed;
	struct pfs_btree *tree;

	(void)state;
	assert_int_equal(pfs_btree_create(&tree), 0);
	for (uint32_t n = 0; n < N_READ; n = n * 3 + 1) {
		for (uint32_t i = (uint32_t)pfs_btree_count(tree); i < n; i++)
			assert_int_equal(pfs_btree_insert(tree, random_next(&random) % 9000 * 3, i),
					 0);
		for (size_t i = 0; i < N_FOUND; i++)
			keys[i] = i ? random_next(&random) % 28000 : UINT64_MAX;
		for (uint32_t slot = 0; slot < N_READ; slot += N_READ / 2 - 1)
			assert_found(tree, keys, slot);
		assert_read(tree, 0, UINT64_MAX);
		for (size_t i = 1; i < 20; i++)
			assert_read(tree, keys[i], keys[i + 20]);
	}
	pfs_btree_destroy(tree);
}

/* Of a tree that no core's cache has, which is searched in another way. */
static void test_a_large_batch(void **state)
{
	enum { LARGE = 150000 };
	static uint64_t keys[LARGE], asked[N_FOUND];
	static uint32_t slots[LARGE];
	uint64_t random = seed;
	struct pfs_btree *tree;

	(void)state;
	for (uint32_t i = 0; i < LARGE; i++) {
		keys[i] = i / 2 * 2;
		slots[i] = i;
	}
	assert_int_equal(pfs_btree_create(&tree), 0);
	assert_int_equal(pfs_btree_load(tree, NULL, keys, slots, LARGE), 0);
	assert_true(pfs_btree_count(tree) > PFS_BTREE_NEAR);
	for (size_t i = 0; i < N_FOUND; i++)
		asked[i] = i ? random_next(&random) % (LARGE + LARGE / 10) : UINT64_MAX;
	for (uint32_t slot = 0; slot < LARGE; slot += LARGE / 2 - 1)
		assert_found(tree, asked, slot);
	pfs_btree_destroy(tree);
}

static void test_reserve(void **state)
{
	struct pfs_btree *tree;
	size_t bytes;

	(void)state;
	assert_int_equal(pfs_btree_create(&tree), 0);
	assert_int_equal(pfs_btree_reserve(tree, 5000), 0);
	bytes = pfs_btree_memory(tree);
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(pfs_btree_insert(tree, i * 7919u % 5003u, i), 0);
	assert_int_equal(pfs_btree_memory(tree), bytes);
	assert_int_equal(pfs_btree_reserve(tree, SIZE_MAX / 8), -ENOMEM);
	assert_int_equal(pfs_btree_verify(tree), 0);
	pfs_btree_destroy(tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),	     cmocka_unit_test(test_ascending_fills),
		cmocka_unit_test(test_load),	     cmocka_unit_test(test_load_refuses),
		cmocka_unit_test(test_load_refuses_together),
		cmocka_unit_test(test_reserve),	     cmocka_unit_test(test_batches),
		cmocka_unit_test(test_split_beside_full),
		cmocka_unit_test(test_search_of_a_node),
		cmocka_unit_test(test_one_entry_a_key),
		cmocka_unit_test(test_a_large_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
