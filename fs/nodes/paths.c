/* SPDX-License-Identifier: MIT */
#include "fs/nodes/paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/radix.h"
#include "fs/image/device_lookup.h"
#include "fs/image/hold.h"
#include "fs/image/names.h"
#include "fs/image/old_places.h"
#include "fs/image/slotorder.h"
#include "fs/image/span.h"
#include "fs/nodes/codes.h"
#include "fs/nodes/list.h"
#include "fs/nodes/scan_impl.h"
#include "fs/tree/frozen.h"
#include "fs/tree/tree_impl.h"
#include "meta/account.h"

#define NAMES_HELD ((size_t)4 << 20) /* bytes of names that a device is sent in one hold, at most */
#define ASKED_PART 8u /* from that part of the nodes on it is worth it to know the order of all */

struct pfs_paths {
	struct pfs_tree *tree;
	struct pfs_old_places *past;
	unsigned flags;
	uint32_t from, to;
	uint64_t *set; /* bits by slot: only these; NULL: all */
	int (*find)(void *arg, uint64_t **bits); /* the set, where it is one; NULL: a subtree */
	void *find_arg;
	uint64_t n_set; /* nodes of the set, where they are sorted as slots */
	bool on_device;
	struct pfs_slots slots; /* n 0: all from..to, but for the strays */
	/* Those that are not where pre-order would have them, ascending; and those of them that are live, in
	 * pre-order, with the slot before which each comes: theirs are rows more. */
	struct pfs_slots strays, placed;
	uint32_t *before;
};

/* Whether the subtree is the slots *from to *to, whose order is pre-order. */
static bool is_range(struct pfs_tree *tree, uint32_t top, uint32_t *from, uint32_t *to)
{
	const struct pfs_image *image = &tree->image;

	*from = top == image->root ? 0 : top;
	*to = top == image->root ? image->end : top + 1;
	if (top != image->root && S_ISDIR(image->mode[top]))
		*to = pfs_span_end(tree, top);
	return *to && pfs_scan_ascends(tree, *from, *to);
}

/* How many slots the subtree has, about: those without a node are among them. */
static uint64_t count_slots(struct pfs_tree *tree, uint32_t top)
{
	struct pfs_slot_range *ranges PFS_FREE = NULL;
	uint64_t count = 0;
	size_t n = 0;

	if (top == tree->image.root || pfs_span_ranges(tree, &ranges, &n, top))
		return tree->image.end;
	for (size_t i = 0; i < n; i++)
		count += ranges[i].to - ranges[i].from;
	return count;
}

/* The slots from..to, or if `slots` has any, these, whose order is pre-order.  -EFBIG: they are not, and more than
 * `most`. */
static int order(struct pfs_paths *paths, struct pfs_tree *tree, uint64_t ino, uint64_t most)
{
	const struct pfs_predicate under = {.test = PFS_TEST_UNDER, .low = (int64_t)ino};
	uint32_t top = pfs_scan_slot_of(tree, ino);

	if (top == PFS_NO_SLOT)
		return -ENOENT;
	if (is_range(tree, top, &paths->from, &paths->to))
		return 0;
	paths->from = paths->to = 0;
	if (count_slots(tree, top) > most)
		return -EFBIG;
	PFS_TRY(pfs_scan_select(tree, &paths->slots, &under, 1, NULL, NULL));
	return pfs_scan_sort_preorder(tree, &paths->slots, NULL);
}

/* ---- strays ---- */

static bool is_stray(const struct pfs_slots *strays, uint32_t slot)
{
	size_t low = pfs_lower_bound_u32(strays->slot, strays->n, slot);

	return low < strays->n && strays->slot[low] == slot;
}

/* Bits of the nodes that are listed, if they are live. */
static const uint64_t *bits_of(const struct pfs_paths *paths)
{
	return paths->set ? paths->set : paths->tree->image.live;
}

/* The first slot from there on that is live, or of the set, and no stray, or `to`. */
static uint32_t next_in_order(const struct pfs_paths *paths, uint32_t slot)
{
	const uint64_t *bits = bits_of(paths);

	while (slot < paths->to) {
		uint64_t live = bits[slot / 64] >> slot % 64;

		if (!live) {
			slot = slot / 64 * 64 + 64;
			continue;
		}
		slot += (uint32_t)__builtin_ctzll(live);
		if (slot < paths->to && !is_stray(&paths->strays, slot))
			return slot;
		slot++;
	}
	return paths->to;
}

/* The first slot from `low` on, of those in order, that comes behind the stray. */
static uint32_t find_behind(const struct pfs_paths *paths, uint32_t stray, uint32_t low)
{
	uint32_t high = paths->to;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2, slot = next_in_order(paths, middle);

		if (slot < high && pfs_scan_path_is_before(&paths->tree->image, PFS_FIELD_PREORDER, slot, stray))
			low = slot + 1;
		else
			high = middle;
	}
	return next_in_order(paths, low);
}

static int copy_strays(struct pfs_paths *paths)
{
	const uint32_t *strays;
	size_t n = pfs_slotorder_strays(paths->tree, &strays, 0);

	paths->strays.slot = malloc((n + 1) * sizeof(*strays));
	paths->placed.slot = malloc((n + 1) * sizeof(*strays));
	paths->before = malloc((n + 1) * sizeof(*paths->before));
	if (!paths->strays.slot || !paths->placed.slot || !paths->before)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		paths->strays.slot[paths->strays.n++] = strays[i];
		if (bits_of(paths)[strays[i] / 64] >> strays[i] % 64 & 1)
			paths->placed.slot[paths->placed.n++] = strays[i];
	}
	return 0;
}

/* Of the whole tree, or the set, which is in pre-order but for strays: finds the places of these. */
static int place_strays(struct pfs_paths *paths)
{
	uint32_t at = 0;

	paths->to = paths->tree->image.end;
	PFS_TRY(copy_strays(paths));
	PFS_TRY(pfs_scan_sort_preorder(paths->tree, &paths->placed, NULL));
	for (size_t i = 0; i < paths->placed.n; i++)
		paths->before[i] = at = find_behind(paths, paths->placed.slot[i], at);
	return 0;
}

/* Whether the slot's own row has it. */
static bool is_placed_by_slot(const struct pfs_paths *paths, uint32_t slot)
{
	return (!paths->set || paths->set[slot / 64] >> slot % 64 & 1) && !is_stray(&paths->strays, slot);
}

/* The slots of some rows that lie in pre-order, *n of them: without strays where they are. */
static int list_placed(const struct pfs_paths *paths, uint32_t **out, size_t *n, uint64_t row,
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

/* What the order follows from is found out in many short holds. */
static int prepare(struct pfs_tree *tree, uint64_t ino)
{
	static const _Atomic bool never;
	const struct pfs_scan_watch watch = {&never, pfs_hold_pause, tree};
	uint32_t top;

	if (ino == PFS_ROOT_PRIME && pfs_slotorder(tree) == PFS_ORDER_ASCENDING)
		return 0;
	PFS_TRY(pfs_spans_prepare(tree, pfs_hold_pause, tree));
	top = pfs_scan_slot_of(tree, ino);
	if (top != PFS_NO_SLOT && count_slots(tree, top) > tree->image.nodes / ASKED_PART)
		PFS_TRY(pfs_scan_learn_order(tree, &watch));
	return 0;
}

/* ---- sets ---- */

static int find_set(struct pfs_paths *paths, uint32_t end, uint64_t *n)
{
	free(PFS_TAKE(paths->set));
	PFS_TRY(paths->find(paths->find_arg, &paths->set));
	*n = 0;
	for (size_t word = 0; word < pfs_div_round_up(end, 64); word++)
		*n += (uint64_t)__builtin_popcountll(paths->set[word]);
	return 0;
}

/* The set as slots in pre-order, in place of bits. */
static int sort_set(struct pfs_paths *paths, struct pfs_tree *tree, uint64_t n)
{
	uint64_t *set PFS_FREE = PFS_TAKE(paths->set);

	paths->from = paths->to = 0;
	paths->slots.slot = malloc((size_t)(n + 1) * sizeof(*paths->slots.slot));
	if (!paths->slots.slot)
		return -ENOMEM;
	for (size_t word = 0; paths->slots.n < n; word++)
		for (uint64_t left = set[word]; left; left &= left - 1)
			paths->slots.slot[paths->slots.n++] =
				(uint32_t)(word * 64 + (unsigned)__builtin_ctzll(left));
	return pfs_scan_sort_preorder(tree, &paths->slots, NULL);
}

static int find_set_order(struct pfs_paths *paths)
{
	static const _Atomic bool never;
	struct pfs_tree *tree = paths->tree;
	const struct pfs_scan_watch watch = {&never, pfs_hold_pause, tree};
	uint64_t n;

	PFS_TRY(find_set(paths, tree->image.end, &n));
	if (n > PFS_PATHS_HELD && pfs_slotorder(tree) == PFS_ORDER_UNKNOWN) {
		(void)pfs_hold_pause(tree); /* the set is found again */
		PFS_TRY(pfs_scan_learn_order(tree, &watch));
		PFS_TRY(find_set(paths, tree->image.end, &n));
	}
	if (n <= PFS_PATHS_HELD)
		return sort_set(paths, tree, n);
	return pfs_slotorder(tree) == PFS_ORDER_ASCENDING ? place_strays(paths) : -EFBIG;
}

/* ---- opening ---- */

static int find_order(struct pfs_paths *paths, uint64_t ino)
{
	struct pfs_tree *tree = paths->tree;

	if (paths->find)
		return find_set_order(paths);
	PFS_TRY(prepare(tree, ino));
	if (ino == PFS_ROOT_PRIME && !pfs_scan_ascends(tree, 0, tree->image.end) &&
	    pfs_slotorder(tree) == PFS_ORDER_ASCENDING)
		return place_strays(paths);
	return order(paths, tree, ino, PFS_PATHS_HELD);
}

static int open_past(struct pfs_paths *paths)
{
	return pfs_old_places_open(&paths->past, paths->tree);
}

/* What belongs to the moment at which the frozen tree is taken. */
static int begun(void *arg)
{
	struct pfs_paths *paths = arg;

	if (paths->find)
		PFS_TRY(find_set(paths, paths->tree->image.end, &paths->n_set));
	return open_past(paths);
}

static int sort_frozen(struct pfs_paths *paths, uint64_t ino, struct pfs_account *account)
{
	const struct pfs_frozen_wish wish = {
		.most = pfs_account_left(account), .begun = begun, .arg = paths};
	struct pfs_tree *frozen;
	int error;

	PFS_TRY(pfs_frozen_open(&frozen, paths->tree, &wish));
	error = pfs_account_charge(account, (int64_t)pfs_frozen_size(frozen));
	pfs_hold_read(frozen, __func__);
	if (!error)
		error = paths->find ? sort_set(paths, frozen, paths->n_set) : order(paths, frozen, ino, UINT64_MAX);
	pfs_hold_end(frozen);
	if (!error && pfs_frozen_is_lost(frozen))
		error = -ENOMEM;
	pfs_account_discharge(account, pfs_frozen_size(frozen));
	pfs_frozen_close(frozen);
	return error;
}

/* Many are sorted as they were when it began, which is what the past remembers. */
static int sort_many(struct pfs_paths *paths, uint64_t ino)
{
	struct pfs_account *account;
	int error;

	PFS_TRY(pfs_account_open(&account, 0, NULL, NULL));
	error = sort_frozen(paths, ino, account);
	pfs_account_close(account);
	return error;
}

static int open_paths(struct pfs_paths **out, const struct pfs_paths *begun_as, uint64_t ino)
{
	struct pfs_paths *paths = malloc(sizeof(*paths));
	struct pfs_tree *tree = begun_as->tree;
	int error;

	*out = NULL;
	if (!paths)
		return -ENOMEM;
	*paths = *begun_as;
	paths->on_device = pfs_tree_engine_kind(tree) == PFS_ENGINE_CUDA;
	pfs_hold_read(tree, __func__);
	error = find_order(paths, ino);
	if (!error)
		error = open_past(paths);
	pfs_hold_end(tree);
	if (error == -EFBIG)
		error = sort_many(paths, ino);
	if (error)
		pfs_paths_close(paths);
	else
		*out = paths;
	return error;
}

int pfs_paths_open(struct pfs_paths **out, struct pfs_tree *tree, uint64_t ino, unsigned flags)
{
	return open_paths(out, &(struct pfs_paths){.tree = tree, .flags = flags}, ino);
}

int pfs_paths_open_set(struct pfs_paths **out, struct pfs_tree *tree, int (*find)(void *arg, uint64_t **bits),
		       void *arg, unsigned flags)
{
	return open_paths(out, &(struct pfs_paths){.tree = tree, .flags = flags, .find = find, .find_arg = arg},
			  PFS_ROOT_PRIME);
}

void pfs_paths_close(struct pfs_paths *paths)
{
	if (!paths)
		return;
	free(paths->set);
	pfs_old_places_close(paths->past);
	pfs_slots_finish(&paths->slots);
	pfs_slots_finish(&paths->strays);
	pfs_slots_finish(&paths->placed);
	free(paths->before);
	free(paths);
}

/* What stands in rows row..end. */
static int slots_of(const struct pfs_paths *paths, struct pfs_slots *out, uint64_t row, uint64_t end)
{
	if (!paths->slots.n)
		return list_placed(paths, &out->slot, &out->n, row, end);
	out->n = (size_t)(end - row);
	out->slot = malloc(out->n * sizeof(*out->slot));
	if (!out->slot)
		return -ENOMEM;
	memcpy(out->slot, paths->slots.slot + row, out->n * sizeof(*out->slot));
	return 0;
}

/* By kernels, if a device has the image as it is now, and that is as it was; sets *error. False: no, but more of
 * the names may be there now. */
static bool list_by_device(const struct pfs_paths *paths, const uint32_t *slots, size_t n,
			   const struct pfs_list_sink *sink, int *error)
{
	struct pfs_tree *tree = paths->tree;
	struct pfs_names_view view;
	const struct pfs_listing listing = {
		.view = &view,
		.slots = slots,
		.n = n,
		.flags = (sink->flags & PFS_LIST_INO ? PFS_LISTING_PRIMES : 0) |
			 (sink->flags & PFS_LIST_ZERO ? PFS_LISTING_ZERO : 0),
		.fn = sink->fn,
		.arg = sink->arg,
	};
	struct pfs_engine_info info;
	struct pfs_engine *engine;
	bool is_ready;

	if (!paths->on_device || !pfs_old_places_is_present(paths->past) || pfs_codes_try(tree, &engine))
		return false;
	pfs_names_view(tree->image.names, &view);
	view.place = tree->image.name;
	view.n_slots = tree->image.end;
	pfs_engine_describe(engine, &info);
	is_ready = !info.degraded && !pfs_engine_send_names(engine, &view, NAMES_HELD);
	if (is_ready)
		*error = pfs_engine_list(engine, &listing);
	return is_ready;
}

/* In one hold: as many of *n slots as it takes to be a long one, which is *n then. */
static int list_held(const struct pfs_paths *paths, const uint32_t *slots, size_t *n, const struct pfs_list_sink *sink)
{
	uint64_t began = pfs_now_ns();
	bool by_device;
	int error = 0;

	PFS_TRY(pfs_old_places_check(paths->past));
	by_device = list_by_device(paths, slots, *n, sink, &error);
	if (!by_device)
		error = pfs_list_slots(paths->tree, slots, n, sink);
	pfs_device_lookup_count(paths->tree, PFS_QUESTION_TEXT, by_device, pfs_now_ns() - began);
	return error;
}

static int list(const struct pfs_paths *paths, const struct pfs_slots *slots, const struct pfs_list_sink *sink)
{
	size_t done = 0, n;
	int error;

	do {
		n = slots->n - done;
		pfs_hold_read(paths->tree, "pfs_paths_next");
		error = list_held(paths, slots->slot + done, &n, sink);
		pfs_hold_end(paths->tree);
		done += n;
	} while (!error && done < slots->n);
	return error;
}

static uint64_t rows_of(const struct pfs_paths *paths)
{
	return paths->slots.n ? paths->slots.n : paths->to - paths->from + paths->placed.n;
}

int pfs_paths_next(struct pfs_paths *paths, uint64_t *row,
		   int (*fn)(void *arg, const char *bytes, size_t size), void *arg)
{
	const struct pfs_list_sink sink = {paths->past, paths->flags, fn, arg};
	uint64_t n = rows_of(paths), end = PFS_MIN(n, *row + PFS_PATHS_HELD);
	struct pfs_slots slots = {0};
	int error;

	if (*row >= n)
		return 0;
	error = slots_of(paths, &slots, *row, end);
	error = error ? error : list(paths, &slots, &sink);
	pfs_slots_finish(&slots);
	if (error)
		return error;
	*row = end;
	return 1;
}

static int measure_held(const struct pfs_paths *paths, uint64_t *size, const uint32_t *slots, size_t n)
{
	int error;

	pfs_hold_read(paths->tree, "pfs_paths_measure");
	error = pfs_old_places_check(paths->past);
	if (!error)
		error = pfs_list_measure(paths->tree, size, slots, n, paths->past);
	pfs_hold_end(paths->tree);
	return error;
}

int pfs_paths_measure(struct pfs_paths *paths, uint64_t *row, uint64_t *size, uint64_t n)
{
	uint64_t rows = rows_of(paths), end, held = 0;
	struct pfs_slots slots = {0};
	int error;

	if (*row >= rows)
		return 0;
	end = *row + PFS_MIN(n, rows - *row);
	error = slots_of(paths, &slots, *row, end);
	*size = 0;
	for (size_t at = 0; !error && at < slots.n; at += PFS_PATHS_HELD, *size += held)
		error = measure_held(paths, &held, slots.slot + at, PFS_MIN(slots.n - at, PFS_PATHS_HELD));
	pfs_slots_finish(&slots);
	if (error)
		return error;
	*row = end;
	return 1;
}
