/* SPDX-License-Identifier: MIT */
#include "tests/ref/compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/cleanup.h"

void pair_init(struct pair *p, struct pfs_engine *engine, uint64_t seed)
{
	*p = (struct pair){
		.engine = engine,
		.random = seed * 2 + 1,
		.next_directory = 3,
		.next_file = UINT64_C(4294967311),
		.generation = seed << 32,
	};
	ref_init(&p->ref);
}

void pair_finish(struct pair *p)
{
	ref_finish(&p->ref);
	free(p->heap);
	free(p->place);
	free(p->named);
}

uint64_t pair_random(struct pair *p, uint64_t below)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return (p->random >> 11) % below;
}

uint64_t pair_prime(struct pair *p, bool directory)
{
	uint64_t *next = directory ? &p->next_directory : &p->next_file, prime;
	mpz_t x;

	mpz_init_set_ui(x, (unsigned long)(*next - 1));
	mpz_nextprime(x, x);
	prime = mpz_get_ui(x);
	mpz_clear(x);
	*next = prime + 1;
	return prime;
}

bool pair_is_directory(const struct pair *p, uint32_t slot)
{
	return p->ref.nodes[slot].prime < UINT64_C(1) << 32;
}

uint32_t pair_random_node(struct pair *p, bool directory)
{
	size_t from = p->ref.n ? pair_random(p, p->ref.n) : 0;

	for (size_t i = 0; i < p->ref.n; i++) {
		uint32_t slot = (uint32_t)((from + i) % p->ref.n);

		if (p->ref.nodes[slot].live && (!directory || pair_is_directory(p, slot)))
			return slot;
	}
	return REF_NONE;
}

void pair_load(struct pair *p)
{
	uint32_t *parent PFS_FREE = calloc(p->ref.n + 1, sizeof(*parent));
	uint64_t *prime PFS_FREE = calloc(p->ref.n + 1, sizeof(*prime));

	assert_true(parent && prime);
	for (size_t i = 0; i < p->ref.n; i++) {
		parent[i] = p->ref.nodes[i].parent;
		prime[i] = p->ref.nodes[i].live ? p->ref.nodes[i].prime : 0;
	}
	assert_int_equal(pfs_engine_load(p->engine, parent, prime, p->ref.n), 0);
}

void pair_add(struct pair *p, uint32_t slot, uint32_t parent, bool directory)
{
	struct pfs_delta delta = {.op = PFS_DELTA_ADD,
				  .slot = slot,
				  .parent = parent,
				  .prime = pair_prime(p, directory)};

	ref_add(&p->ref, slot, parent, delta.prime);
	assert_int_equal(pfs_engine_apply(p->engine, NULL, &delta, 1), 0);
}

void pair_remove(struct pair *p, uint32_t slot)
{
	struct pfs_delta *deltas PFS_FREE = calloc(p->ref.n, sizeof(*deltas));
	struct pfs_cursor cursor = {0};
	struct pfs_bitmap *set;
	size_t n = 0;

	assert_non_null(deltas);
	assert_int_equal(pfs_engine_subtree(p->engine, &set, slot), 0);
	while (pfs_cursor_next(&cursor, set, &deltas[n].slot) == 1)
		deltas[n++].op = PFS_DELTA_REMOVE;
	pfs_cursor_finish(&cursor);
	pfs_bitmap_free(set);
	assert_int_equal(pfs_engine_apply(p->engine, NULL, deltas, n), 0);
	assert_int_equal(n, ref_remove(&p->ref, slot));
}

void pair_move(struct pair *p, uint32_t slot, uint32_t parent)
{
	struct pfs_delta delta = {.op = PFS_DELTA_MOVE, .slot = slot, .parent = parent};
	int expected = ref_move(&p->ref, slot, parent) ? 0 : -EINVAL;

	assert_int_equal(pfs_engine_apply(p->engine, NULL, &delta, 1), expected);
}

/* ---- comparing ---- */

/* Both ways to read a set out: words and cursor. */
void check_set(const struct pair *p, struct pfs_bitmap *set, const bool *expected)
{
	size_t n = p->ref.n, n_words = n / 32 + 3, size = 0;
	uint32_t *words PFS_FREE = calloc(n_words, sizeof(*words));
	struct pfs_cursor cursor = {0};
	uint32_t slot;
	uint64_t count;

	assert_non_null(words);
	assert_int_equal(pfs_bitmap_read(set, words, 0, n_words), 0);
	for (size_t i = 0; i < n_words * 32; i++) {
		bool wanted = i < n && expected[i];

		if ((words[i / 32] >> i % 32 & 1) != wanted)
			fail_msg("slot %zu of %zu: %s in the set", i, n,
				 wanted ? "not" : "wrongly");
		if (!wanted)
			continue;
		assert_int_equal(pfs_cursor_next(&cursor, set, &slot), 1);
		assert_int_equal(slot, i);
		size++;
	}
	assert_int_equal(pfs_cursor_next(&cursor, set, &slot), 0);
	pfs_cursor_finish(&cursor);
	assert_int_equal(pfs_bitmap_count(set, &count), 0);
	assert_int_equal(count, size);
	pfs_bitmap_free(set);
}

static void check_sets_of(struct pair *p, uint32_t slot)
{
	bool *expected PFS_FREE = calloc(p->ref.n + 1, sizeof(*expected));
	struct pfs_bitmap *set;

	assert_non_null(expected);
	for (int ranges = 0; ranges < 2; ranges++) {
		pfs_engine_use_ranges(p->engine, ranges);
		ref_subtree(&p->ref, expected, slot);
		assert_int_equal(pfs_engine_subtree(p->engine, &set, slot), 0);
		check_set(p, set, expected);
	}
	ref_parents(&p->ref, expected, slot);
	assert_int_equal(pfs_engine_parents(p->engine, &set, slot), 0);
	check_set(p, set, expected);
}

void check_node(struct pair *p, uint32_t slot)
{
	char *expected = mpz_get_str(NULL, 10, p->ref.nodes[slot].code), *code = NULL;
	uint32_t found;

	check_sets_of(p, slot);
	assert_int_equal(pfs_engine_parent(p->engine, &found, slot), 0);
	assert_int_equal(found, ref_parent(&p->ref, slot));
	assert_int_equal(found, p->ref.nodes[slot].parent);
	assert_int_equal(pfs_engine_code(p->engine, &code, slot), 0);
	assert_string_equal(code, expected);
	assert_int_equal(pfs_engine_node(p->engine, &found, code), 0);
	assert_int_equal(found, slot);
	free(code);
	free(expected);
}

void check_two(struct pair *p, uint32_t a, uint32_t b)
{
	bool *first PFS_FREE = calloc(p->ref.n + 1, sizeof(*first));
	bool *second PFS_FREE = calloc(p->ref.n + 1, sizeof(*second));
	uint32_t both[2] = {a, b}, found, expected = ref_common_ancestor(&p->ref, both, 2);
	struct pfs_bitmap *set, *others;

	assert_true(first && second);
	ref_parents(&p->ref, first, a);
	ref_parents(&p->ref, second, b);
	for (size_t i = 0; i < p->ref.n; i++)
		first[i] = first[i] && second[i];
	assert_int_equal(pfs_engine_parents(p->engine, &set, a), 0);
	assert_int_equal(pfs_engine_parents(p->engine, &others, b), 0);
	assert_int_equal(pfs_bitmap_combine(set, others, PFS_BITMAP_AND), 0);
	pfs_bitmap_free(others);
	check_set(p, set, first);
	assert_int_equal(pfs_engine_common_ancestor(p->engine, &found, both, 2), 0);
	assert_int_equal(found, expected);
}

static void check_batches(struct pair *p)
{
	size_t n = p->ref.n, n_asked = 0;
	bool *expected PFS_FREE = calloc(n + 1, sizeof(*expected));
	struct pfs_bitmap *sets[PFS_SUBTREES_MAX];
	uint32_t asked[PFS_SUBTREES_MAX];

	assert_non_null(expected);
	for (n_asked = 0; n_asked < pair_random(p, PFS_SUBTREES_MAX) + 1; n_asked++)
		asked[n_asked] = pair_random_node(p, pair_random(p, 4) != 0);
	pfs_engine_use_ranges(p->engine, pair_random(p, 2));
	assert_int_equal(pfs_engine_subtrees(p->engine, sets, asked, n_asked), 0);
	for (size_t k = 0; k < n_asked; k++) {
		ref_subtree(&p->ref, expected, asked[k]);
		check_set(p, sets[k], expected);
	}
}

/* ---- listings ---- */

struct line {
	char *path;
	uint64_t prime;
	uint32_t slot;
};

static int compare_lines(const void *a, const void *b)
{
	return ref_compare_paths(((const struct line *)a)->path, ((const struct line *)b)->path);
}

/* Writes the names that are new; now and then all of them, which is a new generation. */
static void refresh_names(struct pair *p, struct pfs_names_view *view)
{
	const size_t n = p->ref.n;

	p->place = realloc(p->place, (n + 1) * sizeof(*p->place));
	p->named = realloc(p->named, (n + 1) * sizeof(*p->named));
	assert_true(p->place && p->named);
	if (pair_random(p, 5) == 0) {
		p->heap_size = p->n_named = 0;
		p->generation++;
	}
	for (size_t i = 0; i < n; i++) {
		const char *name = p->ref.nodes[i].name;
		size_t length = strlen(name);

		if (!p->ref.nodes[i].live ||
		    (i < p->n_named && p->named[i] == p->ref.nodes[i].prime))
			continue;
		assert_int_equal(pfs_grow(&p->heap, &p->heap_capacity, p->heap_size + 64, 1), 0);
		p->place[i] = (uint32_t)(p->heap_size / 4);
		p->named[i] = p->ref.nodes[i].prime;
		p->heap[p->heap_size] = (uint8_t)length;
		memcpy(p->heap + p->heap_size + 1, name, length);
		p->heap_size += (length + 1 + 3) / 4 * 4;
	}
	for (size_t i = p->n_named; i < n; i++)
		if (!p->ref.nodes[i].live)
			p->named[i] = p->place[i] = 0;
	p->n_named = n;
	*view = (struct pfs_names_view){.heap = p->heap,
					.heap_size = p->heap_size,
					.place = p->place,
					.n_slots = n,
					.place_shift = 2,
					.generation = p->generation};
}

struct expecting {
	const struct line *lines;
	size_t n, at;
	unsigned flags;
};

static int expect_lines(void *arg, const char *bytes, size_t size)
{
	struct expecting *e = arg;
	char expected[64];

	for (const char *end = bytes + size; bytes < end; e->at++) {
		const struct line *line = &e->lines[e->at];
		size_t length;

		assert_true(e->at < e->n);
		length = strlen(line->path);
		if (e->flags & PFS_LISTING_PRIMES) {
			int digits = snprintf(expected, sizeof(expected), "%llu\t",
					      (unsigned long long)line->prime);

			assert_memory_equal(bytes, expected, (size_t)digits);
			bytes += digits;
		}
		assert_true(bytes + length < end);
		assert_memory_equal(bytes, line->path, length);
		assert_int_equal(bytes[length], e->flags & PFS_LISTING_ZERO ? 0 : '\n');
		bytes += length + 1;
	}
	return 0;
}

static void check_listing(struct pair *p, const struct pfs_names_view *view,
			  const struct line *lines, size_t n, unsigned flags)
{
	struct expecting expecting = {lines, n, 0, flags};
	uint32_t *slots PFS_FREE = malloc((n + 1) * sizeof(*slots));
	const struct pfs_listing listing = {view, slots, n, flags, expect_lines, &expecting};

	assert_non_null(slots);
	for (size_t i = 0; i < n; i++)
		slots[i] = lines[i].slot;
	assert_int_equal(pfs_engine_list(p->engine, &listing), 0);
	assert_int_equal(expecting.at, n);
}

static void check_listings(struct pair *p)
{
	uint32_t root = pair_random_node(p, true);
	struct line *lines PFS_FREE = calloc(p->ref.n + 1, sizeof(*lines));
	bool *expected PFS_FREE = calloc(p->ref.n + 1, sizeof(*expected));
	struct pfs_names_view view;
	size_t n = 0;

	assert_true(lines && expected);
	refresh_names(p, &view);
	ref_subtree(&p->ref, expected, root);
	for (uint32_t i = 0; i < p->ref.n; i++)
		if (expected[i])
			lines[n++] = (struct line){.path = ref_path(&p->ref, i),
						   .slot = i,
						   .prime = p->ref.nodes[i].prime};
	check_listing(p, &view, lines, n, 0);
	check_listing(p, &view, lines, n, PFS_LISTING_PRIMES | PFS_LISTING_ZERO);
	qsort(lines, n, sizeof(*lines), compare_lines);
	check_listing(p, &view, lines, n, 0);
	for (size_t i = 0; i < n; i++)
		free(lines[i].path);
}

void check_whole(struct pair *p)
{
	uint64_t wrong = 1;

	assert_int_equal(pfs_engine_check(p->engine, &wrong), 0);
	assert_int_equal(wrong, 0);
	check_batches(p);
	check_listings(p);
}
