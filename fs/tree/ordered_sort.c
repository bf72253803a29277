/* SPDX-License-Identifier: MIT */
/* Nodes sorted by their values: by a number first, which compares like what comes first of the order,
 * as far as 8 bytes can say; those with the same number by the values themselves; what is equal in
 * them by slots, up or down, as a walk along an index finds it: so that pages of LIMIT and OFFSET
 * fit together. */
#include "fs/tree/ordered_impl.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

#define GRAIN 8192u /* nodes that one thread looks at */
#define FEW   64u   /* are sorted as a whole */

/* ---- keys ---- */

struct text {
	const char *bytes; /* NULL: none */
	size_t len;
};

static struct text text_of(const struct pfs_image *image, enum pfs_field field, uint32_t slot)
{
	struct text text;

	if (field == PFS_FIELD_TARGET) {
		text.bytes = pfs_scan_target(image, &text.len, slot);
		return text;
	}
	text.bytes = pfs_names_get(image->names, image->name[slot], &text.len);
	if (field == PFS_FIELD_EXT)
		text.bytes = pfs_scan_extension(text.bytes, &text.len);
	return text;
}

/* 0 for none; else of 7 bytes, the last of which is 0 if that is all of the text. */
static uint64_t text_key(struct text text)
{
	uint64_t bytes = 0;

	if (!text.bytes)
		return 0;
	memcpy(&bytes, text.bytes, PFS_MIN(text.len, sizeof(bytes) - 1));
	return be64toh(bytes) >> 7 | 1;
}

static bool says_all(uint64_t key)
{
	return !(key >> 1 & 0xff);
}

static uint64_t key_of(const struct pfs_sorting *sorting, uint32_t slot)
{
	enum pfs_field field = sorting->order[0].field;
	uint64_t key;

	if (pfs_field_is_path(field))
		return 0;
	if (pfs_field_is_bytes(field))
		key = text_key(text_of(&sorting->tree->image, field, slot));
	else
		key = (uint64_t)pfs_scan_integer(sorting->tree, field, slot) ^ UINT64_C(1) << 63;
	return sorting->order[0].descending ? ~key : key;
}

static void take_keys(void *context, size_t from, size_t to)
{
	struct pfs_sorting *sorting = context;

	for (size_t i = from; i < to; i++)
		sorting->items[i].key = key_of(sorting, sorting->items[i].value);
}

int pfs_sorting_init(struct pfs_sorting *sorting, struct pfs_tree *tree,
		     const struct pfs_slots *slots, const struct pfs_order *order, size_t n_order)
{
	*sorting = (struct pfs_sorting){.tree = tree, .n_order = n_order, .n = slots->n};
	memcpy(sorting->order, order, n_order * sizeof(*order));
	sorting->items = malloc((slots->n + 1) * sizeof(*sorting->items));
	if (!sorting->items)
		return -ENOMEM;
	for (size_t i = 0; i < slots->n; i++) /* what is equal stays so */
		sorting->items[i].value =
			slots->slot[order->descending ? slots->n - 1 - i : i];
	pfs_scan_run(tree, slots->n, GRAIN, take_keys, sorting);
	return 0;
}

void pfs_sorting_finish(struct pfs_sorting *sorting)
{
	free(sorting->items);
}

/* ---- comparing ---- */

static int compare_texts(struct text a, struct text b)
{
	int order;

	if (!a.bytes || !b.bytes)
		return (a.bytes != NULL) - (b.bytes != NULL);
	order = memcmp(a.bytes, b.bytes, PFS_MIN(a.len, b.len));
	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_by(const struct pfs_sorting *sorting, enum pfs_field field, uint32_t a,
		      uint32_t b)
{
	const struct pfs_image *image = &sorting->tree->image;
	int64_t x, y;

	if (pfs_field_is_path(field))
		return a == b ? 0 : pfs_scan_path_is_before(image, field, a, b) ? -1 : 1;
	if (pfs_field_is_bytes(field))
		return compare_texts(text_of(image, field, a), text_of(image, field, b));
	x = pfs_scan_integer(sorting->tree, field, a);
	y = pfs_scan_integer(sorting->tree, field, b);
	return (x > y) - (x < y);
}

/* Of what has the same key. */
static int compare_values(const void *a, const void *b, void *context)
{
	const struct pfs_sorting *sorting = context;
	uint32_t x = ((const struct pfs_keyed *)a)->value, y = ((const struct pfs_keyed *)b)->value;

	for (size_t i = pfs_field_is_bytes(sorting->order[0].field) ? 0 : 1; i < sorting->n_order;
	     i++) {
		int order = compare_by(sorting, sorting->order[i].field, x, y);

		if (order)
			return sorting->order[i].descending ? -order : order;
	}
	return sorting->order[0].descending ? (x < y) - (x > y) : (x > y) - (x < y);
}

static int compare_items(const void *a, const void *b, void *context)
{
	uint64_t x = ((const struct pfs_keyed *)a)->key, y = ((const struct pfs_keyed *)b)->key;

	return x == y ? compare_values(a, b, context) : x < y ? -1 : 1;
}

/* ---- sorting ---- */

static bool key_is_enough(const struct pfs_sorting *sorting, uint64_t key)
{
	if (sorting->n_order > 1)
		return false;
	if (!pfs_field_is_bytes(sorting->order[0].field))
		return true;
	return !pfs_field_is_path(sorting->order[0].field) &&
	       says_all(sorting->order[0].descending ? ~key : key);
}

static int sort_all(struct pfs_sorting *sorting, struct pfs_keyed *items, size_t n)
{
	PFS_TRY(pfs_radix_sort(items, n));
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && items[to].key == items[from].key; to++)
			;
		if (to - from > 1 && !key_is_enough(sorting, items[from].key))
			qsort_r(items + from, to - from, sizeof(*items), compare_values, sorting);
	}
	return 0;
}

static void swap(struct pfs_keyed *a, struct pfs_keyed *b)
{
	struct pfs_keyed kept = *a;

	*a = *b;
	*b = kept;
}

/* The middle one of three comes to be the first. */
static void choose_pivot(struct pfs_sorting *sorting, struct pfs_keyed *items, size_t n)
{
	struct pfs_keyed *low = &items[1], *middle = &items[n / 2], *high = &items[n - 1];

	if (compare_items(low, middle, sorting) > 0)
		swap(low, middle);
	if (compare_items(middle, high, sorting) > 0)
		swap(middle, high);
	if (compare_items(low, middle, sorting) > 0)
		swap(low, middle);
	swap(items, middle);
}

/* Moves the first `wanted` of the items to the front, in any order. */
static void select_first(struct pfs_sorting *sorting, struct pfs_keyed *items, size_t n,
			 size_t wanted)
{
	while (n > FEW && wanted > 0 && wanted < n) {
		size_t low = 1, high = n - 1;

		choose_pivot(sorting, items, n);
		for (;;) {
			while (low <= high && compare_items(&items[low], items, sorting) < 0)
				low++;
			while (low <= high && compare_items(&items[high], items, sorting) > 0)
				high--;
			if (low >= high)
				break;
			swap(&items[low++], &items[high--]);
		}
		swap(items, &items[low - 1]); /* it is in its place */
		if (wanted < low) {
			n = low - 1;
		} else {
			items += low;
			n -= low;
			wanted -= low;
		}
	}
	if (n <= FEW)
		qsort_r(items, n, sizeof(*items), compare_items, sorting);
}

/* Selecting the first has moved the rest about: puts it back, so that what is equal stays in order. */
static int restore(struct pfs_sorting *sorting)
{
	struct pfs_keyed *rest = sorting->items + sorting->sorted;
	size_t n = sorting->n - sorting->sorted;

	for (size_t i = 0; i < n; i++)
		rest[i].key = sorting->order[0].descending ? ~(uint64_t)rest[i].value
							    : rest[i].value;
	PFS_TRY(pfs_radix_sort(rest, n));
	take_keys(sorting, sorting->sorted, sorting->n);
	return 0;
}

int pfs_sorting_sort(struct pfs_sorting *sorting, size_t n)
{
	size_t left = sorting->n - sorting->sorted;

	if (left == 0)
		return 0;
	if (sorting->sorted == 0 && n < left / 8 && left > FEW) {
		select_first(sorting, sorting->items, left, n);
		qsort_r(sorting->items, n, sizeof(*sorting->items), compare_items, sorting);
		sorting->sorted = n;
		return 0;
	}
	if (sorting->sorted)
		PFS_TRY(restore(sorting));
	PFS_TRY(sort_all(sorting, sorting->items + sorting->sorted, left));
	sorting->sorted = sorting->n;
	return 0;
}
