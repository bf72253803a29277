/* SPDX-License-Identifier: MIT */
/* The index of names at once: entries are counted out by parent, for which threads share the slots,
 * and sorted by hash within a parent, for which they share the parents. */
#include "fs/image/load.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/btree.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/tree/tree_impl.h"

/* An entry: hash << 32 | slot. */
#define ENTRY(hash, slot) ((uint64_t)(hash) << 32 | (slot))

#define INSERTION_MAX	   32u /* entries: insertion sort */
#define DIGIT_BITS 8u
#define DIGITS	   (1u << DIGIT_BITS)
#define GRAIN		   ((size_t)1 << 13) /* slots or parents that a thread takes at once */

int pfs_load_damaged(const struct pfs_tree *tree, uint64_t prime, const char *what)
{
	pfs_info("%s: damaged: node %" PRIu64 " %s; run primefs check", pfs_store_path(tree->store),
		 prime, what);
	return -EUCLEAN;
}

/* ---- sorting one directory ---- */

static void sort_few(uint64_t *entries, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		uint64_t entry = entries[i];
		size_t k = i;

		for (; k > 0 && entries[k - 1] > entry; k--)
			entries[k] = entries[k - 1];
		entries[k] = entry;
	}
}

/* One pass of a radix sort over the digit from bit `shift` on; keeps the order of equals. */
static void sort_digit(uint64_t *to, const uint64_t *from, size_t n, unsigned shift)
{
	size_t starts[DIGITS] = {0}, sum = 0;

	for (size_t i = 0; i < n; i++)
		starts[from[i] >> shift & (DIGITS - 1)]++;
	for (size_t digit = 0; digit < DIGITS; digit++) {
		size_t count = starts[digit];

		starts[digit] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[starts[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

/* Sorts by the hashes' digits, and then the few that have one hash. */
static void sort_many(uint64_t *entries, uint64_t *room, size_t n)
{
	for (unsigned shift = 32; shift < 64; shift += 2 * DIGIT_BITS) {
		sort_digit(room, entries, n, shift);
		sort_digit(entries, room, n, shift + DIGIT_BITS);
	}
	sort_few(entries, n);
}

/* ---- directories ---- */

struct work {
	const struct pfs_tree *tree;
	const uint32_t *hashes;
	uint64_t *entries; /* by parent; becomes the sorted keys */
	uint32_t *slots;   /* out */
	uint32_t *ends;	   /* by parent: where its entries end */
	_Atomic int error;
};

static bool same_name(const struct pfs_image *image, uint32_t a, uint32_t b)
{
	size_t a_len, b_len;
	const char *a_name = pfs_names_get(image->names, image->name[a], &a_len);
	const char *b_name = pfs_names_get(image->names, image->name[b], &b_len);

	return a_len == b_len && !memcmp(a_name, b_name, a_len);
}

/* The entries of one directory, sorted: no two may have one name. */
static int check_duplicates(const struct pfs_tree *tree, const uint64_t *entries, size_t n)
{
	const struct pfs_image *image = &tree->image;

	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k-- > 0 && entries[k] >> 32 == entries[i] >> 32;)
			if (same_name(image, (uint32_t)entries[k], (uint32_t)entries[i]))
				return pfs_load_damaged(tree, image->prime[(uint32_t)entries[i]],
							"has the name of a sibling");
	return 0;
}

static int sort_directory(struct work *work, uint64_t **room, size_t *capacity, uint32_t parent)
{
	size_t first = parent ? work->ends[parent - 1] : 0;
	size_t n = work->ends[parent] - first;
	uint64_t *entries = work->entries + first;

	if (n <= INSERTION_MAX) {
		sort_few(entries, n);
	} else {
		PFS_TRY(pfs_grow(room, capacity, n, sizeof(**room)));
		sort_many(entries, *room, n);
	}
	PFS_TRY(check_duplicates(work->tree, entries, n));
	for (size_t i = 0; i < n; i++) {
		work->slots[first + i] = (uint32_t)entries[i];
		entries[i] = pfs_image_key(parent, (uint32_t)(entries[i] >> 32));
	}
	return 0;
}

static void sort_parents(void *context, size_t from, size_t to)
{
	struct work *work = context;
	uint64_t *room = NULL;
	size_t capacity = 0;
	int error = 0;

	for (size_t parent = from; parent < to && !error; parent++)
		error = sort_directory(work, &room, &capacity, (uint32_t)parent);
	if (error)
		atomic_store(&work->error, error);
	free(room);
}

/* ---- all of it ---- */

static bool has_parent(const struct pfs_image *image, size_t slot)
{
	return image->prime[slot] && slot != image->root;
}

/* Returns where the slots end that follow `slot` and have its parent: siblings lie together, and
 * threads that count for one parent meet once a run. */
static size_t end_of_run(const struct pfs_image *image, size_t slot, size_t to)
{
	const uint32_t parent = image->parent[slot];

	do
		slot++;
	while (slot < to && image->parent[slot] == parent && has_parent(image, slot));
	return slot;
}

static void count_children(void *context, size_t from, size_t to)
{
	const struct work *work = context;
	const struct pfs_image *image = &work->tree->image;

	for (size_t slot = from, end; slot < to; slot = end) {
		end = slot + 1;
		if (!has_parent(image, slot))
			continue;
		end = end_of_run(image, slot, to);
		(void)__atomic_fetch_add(&work->ends[image->parent[slot]], (uint32_t)(end - slot),
					 __ATOMIC_RELAXED);
	}
}

/* Puts entries behind those of their parents that are there. */
static void place_entries(void *context, size_t from, size_t to)
{
	const struct work *work = context;
	const struct pfs_image *image = &work->tree->image;

	for (size_t slot = from, end; slot < to; slot = end) {
		uint32_t place;

		end = slot + 1;
		if (!has_parent(image, slot))
			continue;
		end = end_of_run(image, slot, to);
		place = __atomic_fetch_add(&work->ends[image->parent[slot]], (uint32_t)(end - slot),
					   __ATOMIC_RELAXED);
		for (size_t i = slot; i < end; i++)
			work->entries[place++] = ENTRY(work->hashes[i], i);
	}
}

/* Puts the entries in order of parents, without an order among siblings; ends[parent] = where the
 * parent's entries end. */
static void count_out(struct work *work, struct pfs_pool *pool)
{
	const uint32_t end = work->tree->image.end;
	uint32_t sum = 0;

	pfs_pool_run(pool, end, GRAIN, count_children, work);
	for (uint32_t parent = 0; parent < end; parent++) {
		uint32_t count = work->ends[parent];

		work->ends[parent] = sum;
		sum += count;
	}
	pfs_pool_run(pool, end, GRAIN, place_entries, work);
}

int pfs_load_index(const struct pfs_load_index *index)
{
	const struct pfs_image *image = &index->tree->image;
	size_t n = image->nodes - 1; /* all but the root */
	uint64_t *entries PFS_FREE = malloc((n + 1) * sizeof(*entries));
	uint32_t *slots PFS_FREE = malloc((n + 1) * sizeof(*slots));
	uint32_t *ends PFS_FREE = calloc((size_t)image->end + 1, sizeof(*ends));
	struct work work = {.tree = index->tree,
			    .hashes = index->hashes,
			    .entries = entries,
			    .slots = slots,
			    .ends = ends};
	int error;

	if (!entries || !slots || !ends)
		return -ENOMEM;
	count_out(&work, index->pool);
	pfs_pool_run(index->pool, image->end, GRAIN, sort_parents, &work);
	error = atomic_load(&work.error);
	if (error)
		return error;
	return pfs_btree_load(index->index, index->pool, entries, slots, n);
}
