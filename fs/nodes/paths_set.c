/* SPDX-License-Identifier: MIT */
/* The nodes of a set in pre-order, as they were at one moment, found in many short holds. Where
 * slots have the order of the tree but for strays, many nodes are listed by slot, and the strays
 * are put in their places. Few are sorted by their paths, if there are strays among them or slots
 * have another order. */
#include "fs/nodes/paths_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/radix.h"
#include "fs/image/hold.h"
#include "fs/image/slotorder.h"
#include "fs/nodes/scan_impl.h"
#include "fs/tree/tree_impl.h"

#define PLACED_HELD 128u /* strays that are placed in one hold, */
#define PLACED_NS   UINT64_C(2000000) /* and after so long no more, */
#define LOOKED_AT   4u /* which is looked at after so many */
#define SORTED_MAX ((size_t)64 << 20) /* bytes of paths that are sorted as text */

/* ---- the moment ---- */

void pfs_paths_forget(struct pfs_paths *paths)
{
	pfs_old_places_close(PFS_TAKE(paths->past));
	free(PFS_TAKE(paths->set));
	pfs_slots_finish(&paths->strays);
	pfs_slots_finish(&paths->placed);
	free(PFS_TAKE(paths->before));
}

/* Notes whether slots are in pre-order, and which are not. */
static int note_order(struct pfs_paths *paths)
{
	const uint32_t *strays;
	size_t n;

	paths->to = paths->tree->image.end;
	paths->is_ordered = pfs_slotorder(paths->tree) == PFS_ORDER_ASCENDING;
	n = paths->is_ordered ? pfs_slotorder_strays(paths->tree, &strays, 0) : 0;
	if (!n)
		return 0;
	paths->strays.slot = malloc(n * sizeof(*strays));
	if (!paths->strays.slot)
		return -ENOMEM;
	memcpy(paths->strays.slot, strays, n * sizeof(*strays));
	paths->strays.n = n;
	return 0;
}

int pfs_paths_hold(void *arg)
{
	struct pfs_paths *paths = arg;
	int error = 0;

	pfs_paths_forget(paths);
	if (paths->source)
		PFS_TRY(paths->source->hold(paths->source->arg));
	else
		pfs_hold_read(paths->tree, "pfs_paths_open");
	if (paths->source)
		error = note_order(paths);
	if (!error)
		error = pfs_old_places_open(&paths->past, paths->tree);
	if (error)
		pfs_hold_end(paths->tree);
	return error;
}

int pfs_paths_find_set(struct pfs_paths *paths, uint64_t *n)
{
	const uint32_t end = paths->to;

	PFS_TRY(paths->source->find(paths->source->arg, paths->past, &paths->set));
	paths->from = paths->to = 0;
	*n = 0;
	for (uint32_t slot = 0; slot < end; slot += 64) {
		if (!paths->set[slot / 64])
			continue;
		if (!*n)
			paths->from = slot;
		paths->to = PFS_MIN(slot + 64, end);
		*n += (uint64_t)__builtin_popcountll(paths->set[slot / 64]);
	}
	return 0;
}

int pfs_paths_list_set(struct pfs_paths *paths, uint64_t n)
{
	uint64_t *set PFS_FREE = PFS_TAKE(paths->set);
	struct pfs_slots *slots = &paths->slots;

	slots->slot = malloc((size_t)(n + 1) * sizeof(*slots->slot));
	if (!slots->slot)
		return -ENOMEM;
	for (uint32_t first = paths->from; first < paths->to; first += 64)
		for (uint64_t left = set[first / 64]; left; left &= left - 1)
			slots->slot[slots->n++] = first + (uint32_t)__builtin_ctzll(left);
	paths->from = paths->to = 0;
	return 0;
}

/* ---- few, by their paths ---- */

struct text {
	char *bytes; /* each path with a NUL */
	size_t size, capacity;
};

struct sorted {
	const char *path;
	uint32_t slot;
};

static int add_text(void *arg, const char *bytes, size_t size)
{
	struct text *text = arg;

	if (size > SORTED_MAX - text->size)
		return -EFBIG;
	PFS_TRY(pfs_grow(&text->bytes, &text->capacity, text->size + size, 1));
	memcpy(text->bytes + text->size, bytes, size);
	text->size += size;
	return 0;
}

/* Component-wise: the end of a path comes first, then a slash, then what names have. */
static int by_path(const void *a, const void *b)
{
	const unsigned char *x = (const unsigned char *)((const struct sorted *)a)->path;
	const unsigned char *y = (const unsigned char *)((const struct sorted *)b)->path;

	while (*x && *x == *y) {
		x++;
		y++;
	}
	if (*x == *y)
		return 0;
	if (!*x || !*y)
		return *x ? 1 : -1;
	return *x == '/' ? -1 : *y == '/' ? 1 : *x - *y;
}

static int sort_text(const struct text *text, struct pfs_slots *slots)
{
	struct sorted *sorted PFS_FREE = malloc(slots->n * sizeof(*sorted));
	const char *path = text->bytes, *end = path + text->size;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < slots->n; i++, path += strlen(path) + 1) {
		if (path == end)
			return -EUCLEAN;
		sorted[i] = (struct sorted){path, slots->slot[i]};
	}
	qsort(sorted, slots->n, sizeof(*sorted), by_path);
	for (size_t i = 0; i < slots->n; i++)
		slots->slot[i] = sorted[i].slot;
	return 0;
}

/* -EFBIG: the paths are too long. */
static int sort_by_paths(const struct pfs_paths *paths, struct pfs_slots *slots)
{
	struct text text = {.size = 0};
	const struct pfs_list_sink sink = {paths->past, PFS_LIST_ZERO, add_text, &text};
	int error;

	if (slots->n < 2)
		return 0;
	error = pfs_paths_list(paths, slots, &sink);
	if (!error)
		error = sort_text(&text, slots);
	free(text.bytes);
	return error;
}

/* ---- many, by slot, with strays ---- */

static bool is_in(const struct pfs_paths *paths, uint32_t slot)
{
	return paths->set[slot / 64] >> slot % 64 & 1;
}

static bool is_stray(const struct pfs_slots *strays, uint32_t slot)
{
	size_t low = pfs_lower_bound_u32(strays->slot, strays->n, slot);

	return low < strays->n && strays->slot[low] == slot;
}

/* The first slot from there on that is in the set and no stray, or `end`, or behind it. */
static uint32_t next_in_order(const struct pfs_paths *paths, uint32_t slot, uint32_t end)
{
	while (slot < end) {
		uint64_t bits = paths->set[slot / 64] >> slot % 64;

		if (!bits) {
			slot = slot / 64 * 64 + 64;
			continue;
		}
		slot += (uint32_t)__builtin_ctzll(bits);
		if (!is_stray(&paths->strays, slot))
			return slot;
		slot++;
	}
	return PFS_MAX(slot, end);
}

/* The first slot from `low` on, of those in order, that came behind the stray. */
static uint32_t find_behind(const struct pfs_paths *paths, uint32_t stray, uint32_t low)
{
	uint32_t high = paths->to;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2, slot = next_in_order(paths, middle, high);

		if (slot < high && pfs_old_places_is_before(paths->past, slot, stray))
			low = slot + 1;
		else
			high = middle;
	}
	return PFS_MIN(next_in_order(paths, low, paths->to), paths->to);
}

/* Places nodes from *done on, as many as are found in one hold. */
static int place_some(struct pfs_paths *paths, size_t *done)
{
	const size_t end = PFS_MIN(*done + PLACED_HELD, paths->placed.n);
	const uint64_t until_ns = pfs_now_ns() + PLACED_NS;
	uint32_t at = paths->from + (*done ? paths->before[*done - 1] : 0);
	int error;

	pfs_hold_read(paths->tree, __func__);
	error = pfs_old_places_check(paths->past);
	while (!error && *done < end) {
		at = find_behind(paths, paths->placed.slot[*done], at);
		paths->before[(*done)++] = at - paths->from;
		if (*done % LOOKED_AT == 0 && pfs_now_ns() > until_ns)
			break;
	}
	pfs_hold_end(paths->tree);
	return error;
}

static int place_strays(struct pfs_paths *paths)
{
	const struct pfs_slots *strays = &paths->strays;
	struct pfs_slots *placed = &paths->placed;

	placed->slot = calloc(strays->n + 1, sizeof(*placed->slot));
	paths->before = calloc(strays->n + 1, sizeof(*paths->before));
	if (!placed->slot || !paths->before)
		return -ENOMEM;
	for (size_t i = 0; i < strays->n; i++)
		if (is_in(paths, strays->slot[i]))
			placed->slot[placed->n++] = strays->slot[i];
	/* from..to ends with what is no stray: searches look at what lies between, which may be as
	 * large as the image */
	paths->from = PFS_MIN(next_in_order(paths, paths->from, paths->to), paths->to);
	while (paths->to > paths->from &&
	       (!is_in(paths, paths->to - 1) || is_stray(strays, paths->to - 1)))
		paths->to--;
	PFS_TRY(sort_by_paths(paths, placed));
	for (size_t done = 0; done < placed->n;)
		PFS_TRY(place_some(paths, &done));
	return 0;
}

/* Returns true if the slot is listed where its number puts it. */
static bool is_placed_by_slot(const struct pfs_paths *paths, uint32_t slot)
{
	return !paths->set || (is_in(paths, slot) && !is_stray(&paths->strays, slot));
}

int pfs_paths_placed(const struct pfs_paths *paths, uint32_t **out, size_t *n, uint64_t row,
		     uint64_t end)
{
	uint32_t *slots = malloc((size_t)(end - row) * sizeof(*slots));
	size_t k = 0;

	*out = slots;
	*n = 0;
	if (!slots)
		return -ENOMEM;
	while (k < paths->placed.n && paths->before[k] + k < row)
		k++;
	for (; row < end; row++) {
		if (k < paths->placed.n && paths->before[k] + k == row)
			slots[(*n)++] = paths->placed.slot[k++];
		else if (is_placed_by_slot(paths, paths->from + (uint32_t)(row - k)))
			slots[(*n)++] = paths->from + (uint32_t)(row - k);
	}
	return 0;
}

/* ---- */

static int learn_order(struct pfs_tree *tree)
{
	static const _Atomic bool never;
	const struct pfs_scan_watch watch = {&never, pfs_hold_pause, tree};
	int error;

	pfs_hold_read(tree, __func__);
	error = pfs_scan_learn_order(tree, &watch);
	pfs_hold_end(tree);
	return error;
}

static int find_at_moment(struct pfs_paths *paths, uint64_t *n)
{
	PFS_TRY(pfs_paths_hold(paths));
	pfs_hold_end(paths->tree);
	return pfs_paths_find_set(paths, n);
}

static bool is_without_strays(const struct pfs_paths *paths)
{
	for (size_t i = 0; i < paths->strays.n; i++)
		if (is_in(paths, paths->strays.slot[i]))
			return false;
	return paths->is_ordered;
}

int pfs_paths_order_set(struct pfs_paths *paths)
{
	bool is_sorted;
	uint64_t n;

	PFS_TRY(find_at_moment(paths, &n));
	if (n > PFS_PATHS_HELD && !paths->is_ordered) {
		PFS_TRY(learn_order(paths->tree));
		if (pfs_slotorder(paths->tree) != PFS_ORDER_ASCENDING)
			return -EFBIG;
		PFS_TRY(find_at_moment(paths, &n));
	}
	if (n > PFS_PATHS_HELD)
		return paths->is_ordered ? place_strays(paths) : -EFBIG;
	is_sorted = is_without_strays(paths);
	PFS_TRY(pfs_paths_list_set(paths, n));
	return is_sorted ? 0 : sort_by_paths(paths, &paths->slots);
}
