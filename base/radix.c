/* SPDX-License-Identifier: MIT */
#include "base/radix.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/later.h"

#define DIGIT_BITS 11
#define DIGITS	   ((64 + DIGIT_BITS - 1) / DIGIT_BITS)
#define BUCKETS	   (1u << DIGIT_BITS)
#define INSERTION_MAX 48u /* up to so many items without values are sorted by insertion */
#define RUN	   16u	/* items with values are sorted by insertion in runs of so many, */
#define SOME	   512u /* and up to so many items are sorted by merging such runs */

static size_t digit_of(uint64_t key, unsigned digit)
{
	return key >> digit * DIGIT_BITS & (BUCKETS - 1);
}

static void insert_all(struct pfs_keyed *items, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct pfs_keyed item = items[i];
		size_t k = i;

		for (; k > 0 && items[k - 1].key > item.key; k--)
			items[k] = items[k - 1];
		items[k] = item;
	}
}

static void merge(struct pfs_keyed *to, const struct pfs_keyed *from, size_t middle, size_t n)
{
	size_t a = 0, b = middle;

	for (size_t i = 0; i < n; i++)
		to[i] = b == n || (a < middle && from[a].key <= from[b].key) ? from[a++]
									      : from[b++];
}

/* Sorts items that are too few for the tables that digits need. */
static void merge_all(struct pfs_keyed *items, size_t n)
{
	struct pfs_keyed other[SOME], *from = items, *to = other;

	for (size_t at = 0; at < n; at += RUN)
		insert_all(items + at, PFS_MIN(RUN, n - at));
	for (size_t width = RUN; width < n; width *= 2) {
		struct pfs_keyed *merged = to;

		for (size_t at = 0; at < n; at += 2 * width)
			merge(to + at, from + at, PFS_MIN(width, n - at),
			      PFS_MIN(2 * width, n - at));
		to = from;
		from = merged;
	}
	if (from != items)
		memcpy(items, from, n * sizeof(*items));
}

/* Moves the items from `from` to `to`, ordered by one digit. */
static void distribute(struct pfs_keyed *to, const struct pfs_keyed *from, size_t n, unsigned digit)
{
	size_t count[BUCKETS] = {0}, before = 0;

	for (size_t i = 0; i < n; i++)
		count[digit_of(from[i].key, digit)]++;
	for (size_t i = 0; i < BUCKETS; i++) {
		size_t here = count[i];

		count[i] = before;
		before += here;
	}
	for (size_t i = 0; i < n; i++)
		to[count[digit_of(from[i].key, digit)]++] = from[i];
}

void pfs_radix_sort_with(struct pfs_keyed *items, struct pfs_keyed *more, size_t n)
{
	struct pfs_keyed *from = items, *to = more;
	uint64_t differ = 0;

	if (n <= SOME) {
		merge_all(items, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		differ |= items[i].key ^ items[0].key;
	for (unsigned digit = 0; digit < DIGITS; digit++) {
		struct pfs_keyed *sorted = to;

		if (!digit_of(differ, digit))
			continue; /* all items have the same digit */
		distribute(to, from, n, digit);
		to = from;
		from = sorted;
	}
	if (from != items)
		memcpy(items, from, n * sizeof(*items));
}

int pfs_radix_sort(struct pfs_keyed *items, size_t n)
{
	struct pfs_keyed *more = n > SOME ? malloc(n * sizeof(*more)) : NULL;

	if (n > SOME && !more)
		return -ENOMEM;
	pfs_radix_sort_with(items, more, n);
	pfs_free_later(more);
	return 0;
}

/* ---- numbers alone ---- */

#define DIGITS_U32 ((32 + DIGIT_BITS - 1) / DIGIT_BITS)

static void insert_all_u32(uint32_t *items, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		uint32_t item = items[i];
		size_t k = i;

		for (; k > 0 && items[k - 1] > item; k--)
			items[k] = items[k - 1];
		items[k] = item;
	}
}

static void distribute_u32(uint32_t *to, const uint32_t *from, size_t n, unsigned digit)
{
	size_t count[BUCKETS] = {0}, before = 0;

	for (size_t i = 0; i < n; i++)
		count[digit_of(from[i], digit)]++;
	for (size_t i = 0; i < BUCKETS; i++) {
		size_t here = count[i];

		count[i] = before;
		before += here;
	}
	for (size_t i = 0; i < n; i++)
		to[count[digit_of(from[i], digit)]++] = from[i];
}

int pfs_radix_sort_u32(uint32_t *items, size_t n)
{
	uint32_t *other, *from = items, *to, differ = 0;

	if (n <= INSERTION_MAX) {
		insert_all_u32(items, n);
		return 0;
	}
	to = other = malloc(n * sizeof(*other));
	if (!other)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		differ |= items[i] ^ items[0];
	for (unsigned digit = 0; digit < DIGITS_U32; digit++) {
		uint32_t *sorted = to;

		if (!digit_of(differ, digit))
			continue;
		distribute_u32(to, from, n, digit);
		to = from;
		from = sorted;
	}
	if (from != items)
		memcpy(items, from, n * sizeof(*items));
	pfs_free_later(other);
	return 0;
}
