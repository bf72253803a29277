/* SPDX-License-Identifier: MIT */
/* Nodes sorted by their values: by a number first, which compares like what comes first of the
 * order, as far as 8 bytes can say; those with the same number by the values themselves; what is
 * equal in them by slots, up or down, as a walk along an index finds it: so that pages of LIMIT and
 * OFFSET fit together. */
#include "fs/nodes/ordered_impl.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/later.h"
#include "base/order.h"
#include "fs/image/image.h"
#include "fs/tree/tree_impl.h"

#define GRAIN 8192u /* nodes that one thread looks at */
#define WHOLE_SORT_MAX 64u /* items; so few are sorted at once, whatever is wanted of them */
#define RUN   16u   /* sorted by insertion, before they are merged */
#define CHUNK ((size_t)1 << 18) /* keys sorted without a look */
#define LOOK_EVERY 64u /* comparisons, each of which may climb as far as nodes lie deep */

/* ---- keys ---- */

struct text {
	const char *bytes; /* NULL: none */
	size_t len;
};

static struct text text_of(const struct pfs_image *image, enum pfs_field field, uint32_t slot)
{
	struct text text;

	text.bytes = pfs_scan_text(image, &text.len, field, slot);
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

static uint64_t key_of(const struct pfs_slot_sorting *sorting, uint32_t slot)
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
	struct pfs_slot_sorting *sorting = context;

	for (size_t i = from; i < to; i++)
		sorting->items[i].key = key_of(sorting, sorting->items[i].value);
}

struct filling {
	struct pfs_slot_sorting *sorting;
	const struct pfs_slots *slots;
};

/* Fills the items in pieces, too: to touch so much memory for the first time takes long. */
static int fill(void *context, unsigned worker PFS_UNUSED, uint64_t from, uint64_t to)
{
	const struct filling *filling = context;
	const struct pfs_slots *slots = filling->slots;
	struct pfs_slot_sorting *sorting = filling->sorting;

	for (size_t i = from; i < to; i++) /* what is equal stays so */
		sorting->items[i].value =
			slots->slot[sorting->order[0].descending ? slots->n - 1 - i : i];
	take_keys(sorting, from, to);
	return 0;
}

int pfs_slot_sorting_init(struct pfs_slot_sorting *sorting, struct pfs_tree *tree,
		     const struct pfs_slots *slots, const struct pfs_order *order, size_t n_order,
		     const struct pfs_scan_watch *watch)
{
	*sorting = (struct pfs_slot_sorting){
		.tree = tree, .watch = watch, .n_order = n_order, .n = slots->n};
	memcpy(sorting->order, order, n_order * sizeof(*order));
	sorting->items = malloc((slots->n + 1) * sizeof(*sorting->items));
	if (!sorting->items)
		return -ENOMEM;
	return pfs_scan_run_watched(tree, slots->n, GRAIN, fill, &(struct filling){sorting, slots},
				    watch);
}

void pfs_slot_sorting_finish(struct pfs_slot_sorting *sorting)
{
	pfs_free_later(sorting->items);
}

/* ---- comparing ---- */

static int compare_texts(struct text a, struct text b)
{
	if (!a.bytes || !b.bytes)
		return (a.bytes != NULL) - (b.bytes != NULL);
	return pfs_compare_bytes(a.bytes, a.len, b.bytes, b.len);
}

static int compare_by(const struct pfs_slot_sorting *sorting, enum pfs_field field, uint32_t a,
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

typedef int compare_fn(const struct pfs_slot_sorting *sorting, const struct pfs_keyed *a,
		       const struct pfs_keyed *b);

/* Compares items that have the same key. */
static int compare_values(const struct pfs_slot_sorting *sorting, const struct pfs_keyed *a,
			  const struct pfs_keyed *b)
{
	uint32_t x = a->value, y = b->value;

	for (size_t i = pfs_field_is_bytes(sorting->order[0].field) ? 0 : 1; i < sorting->n_order;
	     i++) {
		int order = compare_by(sorting, sorting->order[i].field, x, y);

		if (order)
			return sorting->order[i].descending ? -order : order;
	}
	return sorting->order[0].descending ? (x < y) - (x > y) : (x > y) - (x < y);
}

static int compare_items(const struct pfs_slot_sorting *sorting, const struct pfs_keyed *a,
			 const struct pfs_keyed *b)
{
	return a->key == b->key ? compare_values(sorting, a, b) : a->key < b->key ? -1 : 1;
}

static int compare_keys(const struct pfs_slot_sorting *sorting PFS_UNUSED,
			const struct pfs_keyed *a, const struct pfs_keyed *b)
{
	return (a->key > b->key) - (a->key < b->key);
}

/* A comparison more: now and then whoever waits is asked. */
static int look(struct pfs_slot_sorting *sorting)
{
	if (++sorting->compared < LOOK_EVERY)
		return 0;
	sorting->compared = 0;
	return pfs_scan_look(sorting->watch);
}

/* ---- sorting ---- */

static bool key_is_enough(const struct pfs_slot_sorting *sorting, uint64_t key)
{
	if (sorting->n_order > 1)
		return false;
	if (!pfs_field_is_bytes(sorting->order[0].field))
		return true;
	return !pfs_field_is_path(sorting->order[0].field) &&
	       says_all(sorting->order[0].descending ? ~key : key);
}

static int insert_run(struct pfs_slot_sorting *sorting, struct pfs_keyed *items, size_t n,
		      compare_fn *compare)
{
	for (size_t i = 1; i < n; i++) {
		struct pfs_keyed item = items[i];
		size_t k = i;

		for (; k > 0 && compare(sorting, &items[k - 1], &item) > 0; k--)
			items[k] = items[k - 1];
		items[k] = item;
		PFS_TRY(look(sorting));
	}
	return 0;
}

static int merge_two(struct pfs_slot_sorting *sorting, struct pfs_keyed *to,
		     const struct pfs_keyed *from, size_t middle, size_t n, compare_fn *compare)
{
	size_t a = 0, b = middle;

	for (size_t i = 0; i < n; i++) {
		bool first = b == n || (a < middle && compare(sorting, &from[a], &from[b]) <= 0);

		to[i] = first ? from[a++] : from[b++];
		PFS_TRY(look(sorting));
	}
	return 0;
}

/* Copies items in pieces, and looks between them whether to go on. */
static int copy_items(struct pfs_slot_sorting *sorting, struct pfs_keyed *to,
		      const struct pfs_keyed *from, size_t n)
{
	for (size_t at = 0; at < n; at += CHUNK) {
		memcpy(to + at, from + at, PFS_MIN(CHUNK, n - at) * sizeof(*to));
		PFS_TRY(pfs_scan_look(sorting->watch));
	}
	return 0;
}

/* Runs of `width` become one; what is equal stays in its order. */
static int merge_runs(struct pfs_slot_sorting *sorting, struct pfs_keyed *items, size_t n,
		      size_t width, compare_fn *compare)
{
	struct pfs_keyed *other, *from = items, *to;
	int error = 0;

	if (width >= n)
		return 0;
	to = other = malloc(n * sizeof(*other));
	if (!other)
		return -ENOMEM;
	for (; width < n && !error; width *= 2) {
		struct pfs_keyed *merged = to;

		for (size_t at = 0; at < n && !error; at += 2 * width)
			error = merge_two(sorting, to + at, from + at, PFS_MIN(width, n - at),
					  PFS_MIN(2 * width, n - at), compare);
		to = from;
		from = merged;
	}
	if (from != items && !error)
		error = copy_items(sorting, items, from, n);
	pfs_free_later(other);
	return error;
}

static int sort_by(struct pfs_slot_sorting *sorting, struct pfs_keyed *items, size_t n,
		   compare_fn *compare)
{
	for (size_t at = 0; at < n; at += RUN)
		PFS_TRY(insert_run(sorting, items + at, PFS_MIN(RUN, n - at), compare));
	return merge_runs(sorting, items, n, RUN, compare);
}

static int sort_keys(struct pfs_slot_sorting *sorting, struct pfs_keyed *items, size_t n)
{
	for (size_t at = 0; at < n; at += CHUNK) {
		PFS_TRY(pfs_radix_sort(items + at, PFS_MIN(CHUNK, n - at)));
		PFS_TRY(pfs_scan_look(sorting->watch));
	}
	return merge_runs(sorting, items, n, CHUNK, compare_keys);
}

/* Which of the order is by paths; it is the last that matters: no two are equal.  0: none but
 * perhaps the first. */
static size_t path_place(const struct pfs_slot_sorting *sorting)
{
	for (size_t i = 1; i < sorting->n_order; i++)
		if (pfs_field_is_path(sorting->order[i].field))
			return i;
	return 0;
}

/* Compares by what stands before the path in ORDER BY. */
static int compare_before_path(const struct pfs_slot_sorting *sorting, const struct pfs_keyed *a,
			       const struct pfs_keyed *b)
{
	for (size_t i = 0; i < sorting->n_order && !pfs_field_is_path(sorting->order[i].field);
	     i++) {
		int order = compare_by(sorting, sorting->order[i].field, a->value, b->value);

		if (order)
			return sorting->order[i].descending ? -order : order;
	}
	return 0;
}

/* Items with one key, in the order of slots, where paths decide at `place`: all paths are sorted at
 * once, since to compare two of them takes as many steps as they lie deep. */
static int sort_by_path(struct pfs_slot_sorting *sorting, struct pfs_keyed *items, size_t n,
			size_t place)
{
	const struct pfs_order *path = &sorting->order[place];
	struct pfs_slots slots = {.slot = malloc(n * sizeof(*slots.slot)), .n = n};
	bool falls = sorting->order[0].descending;
	int error = slots.slot ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !error; i++) {
		if (i % CHUNK == 0)
			error = pfs_scan_look(sorting->watch);
		slots.slot[i] = items[falls ? n - 1 - i : i].value;
	}
	if (!error)
		error = path->field == PFS_FIELD_PATH
				? pfs_scan_sort_paths(sorting->tree, &slots, sorting->watch)
				: pfs_scan_sort_preorder(sorting->tree, &slots, sorting->watch);
	for (size_t i = 0; i < n && !error; i++) {
		if (i % CHUNK == 0)
			error = pfs_scan_look(sorting->watch);
		items[i].value = slots.slot[path->descending ? n - 1 - i : i];
	}
	pfs_slots_finish(&slots);
	if (error || (place == 1 && !pfs_field_is_bytes(sorting->order[0].field)))
		return error; /* the key has said the rest */
	return sort_by(sorting, items, n, compare_before_path);
}

/* Finds where the items end that have the first one's key. */
static int find_end(struct pfs_slot_sorting *sorting, size_t *to, const struct pfs_keyed *items,
		    size_t from, size_t n)
{
	for (*to = from + 1; *to < n && items[*to].key == items[from].key; ++*to)
		if (*to % CHUNK == 0)
			PFS_TRY(pfs_scan_look(sorting->watch));
	return 0;
}

/* The first `wanted` at least; *sorted: how many they are. */
static int sort_first(struct pfs_slot_sorting *sorting, struct pfs_keyed *items, size_t n,
		      size_t wanted, size_t *sorted)
{
	size_t place = path_place(sorting), from, to;

	PFS_TRY(sort_keys(sorting, items, n));
	for (from = 0; from < wanted; from = to) {
		PFS_TRY(find_end(sorting, &to, items, from, n));
		if (to - from > WHOLE_SORT_MAX && place)
			PFS_TRY(sort_by_path(sorting, items + from, to - from, place));
		else if (to - from > 1 && !key_is_enough(sorting, items[from].key))
			PFS_TRY(sort_by(sorting, items + from, to - from, compare_values));
	}
	*sorted = from;
	return 0;
}

static void swap(struct pfs_keyed *a, struct pfs_keyed *b)
{
	struct pfs_keyed kept = *a;

	*a = *b;
	*b = kept;
}

/* The middle one of three comes to be the first. */
static void choose_pivot(struct pfs_slot_sorting *sorting, struct pfs_keyed *items, size_t n)
{
	struct pfs_keyed *low = &items[1], *middle = &items[n / 2], *high = &items[n - 1];

	if (compare_items(sorting, low, middle) > 0)
		swap(low, middle);
	if (compare_items(sorting, middle, high) > 0)
		swap(middle, high);
	if (compare_items(sorting, low, middle) > 0)
		swap(low, middle);
	swap(items, middle);
}

/* Puts what comes before the first item before it: *low is where it then is, and one. */
static int part(struct pfs_slot_sorting *sorting, struct pfs_keyed *items, size_t n, size_t *low)
{
	size_t high = n - 1;

	*low = 1;
	for (;;) {
		for (; *low <= high && compare_items(sorting, &items[*low], items) < 0; ++*low)
			PFS_TRY(look(sorting));
		for (; *low <= high && compare_items(sorting, &items[high], items) > 0; high--)
			PFS_TRY(look(sorting));
		if (*low >= high)
			break;
		swap(&items[(*low)++], &items[high--]);
	}
	swap(items, &items[*low - 1]);
	return 0;
}

/* Moves the first `wanted` of the items to the front, in any order. */
static int select_first(struct pfs_slot_sorting *sorting, struct pfs_keyed *items, size_t n,
			size_t wanted)
{
	while (n > WHOLE_SORT_MAX && wanted > 0 && wanted < n) {
		size_t low;

		choose_pivot(sorting, items, n);
		PFS_TRY(part(sorting, items, n, &low));
		if (wanted < low) {
			n = low - 1;
		} else {
			items += low;
			n -= low;
			wanted -= low;
		}
	}
	return n <= WHOLE_SORT_MAX ? sort_by(sorting, items, n, compare_items) : 0;
}

/* Gives the items that are not sorted yet their slots as keys. */
static int take_slots_as_keys(void *context, unsigned worker PFS_UNUSED, uint64_t from, uint64_t to)
{
	struct pfs_slot_sorting *sorting = context;
	struct pfs_keyed *rest = sorting->items + sorting->sorted;

	for (size_t i = from; i < to; i++)
		rest[i].key =
			sorting->order[0].descending ? ~(uint64_t)rest[i].value : rest[i].value;
	return 0;
}

static int take_rest_of_keys(void *context, unsigned worker PFS_UNUSED, uint64_t from, uint64_t to)
{
	struct pfs_slot_sorting *sorting = context;

	take_keys(sorting, sorting->sorted + from, sorting->sorted + to);
	return 0;
}

/* Selecting the first has moved the rest about: puts it back, so that what is equal stays in
 * order. */
static int restore(struct pfs_slot_sorting *sorting)
{
	size_t n = sorting->n - sorting->sorted;

	PFS_TRY(pfs_scan_run_watched(sorting->tree, n, GRAIN, take_slots_as_keys, sorting,
				     sorting->watch));
	PFS_TRY(sort_keys(sorting, sorting->items + sorting->sorted, n));
	return pfs_scan_run_watched(sorting->tree, n, GRAIN, take_rest_of_keys, sorting,
				    sorting->watch);
}

int pfs_slot_sorting_sort(struct pfs_slot_sorting *sorting, size_t n)
{
	size_t left = sorting->n - sorting->sorted, more;

	if (left == 0)
		return 0;
	if (sorting->sorted == 0 && n < left / 8 && left > WHOLE_SORT_MAX && !path_place(sorting)) {
		PFS_TRY(select_first(sorting, sorting->items, left, n));
		PFS_TRY(sort_by(sorting, sorting->items, n, compare_items));
		sorting->sorted = n;
		return 0;
	}
	if (sorting->sorted)
		PFS_TRY(restore(sorting));
	more = sorting->sorted || !path_place(sorting) ? left : PFS_MIN(n, left);
	PFS_TRY(sort_first(sorting, sorting->items + sorting->sorted, left, more, &more));
	sorting->sorted += more;
	return 0;
}
