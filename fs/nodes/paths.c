/* SPDX-License-Identifier: MIT */
#include "fs/nodes/paths_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "fs/image/device_lookup.h"
#include "fs/image/hold.h"
#include "fs/image/names.h"
#include "fs/image/slotorder.h"
#include "fs/image/span.h"
#include "fs/nodes/codes.h"
#include "fs/tree/frozen.h"
#include "fs/tree/tree_impl.h"
#include "meta/account.h"

#define NAMES_HELD ((size_t)4 << 20) /* bytes of names that a device is sent in one hold, at most */
#define ASKED_PART 8u /* from that part of the nodes on it is worth it to know the order of all */

/* Returns true if the subtree is the slots *from to *to, and these are in pre-order. */
static bool is_range(struct pfs_tree *tree, uint32_t top, uint32_t *from, uint32_t *to)
{
	const struct pfs_image *image = &tree->image;

	*from = top == image->root ? 0 : top;
	*to = top == image->root ? image->end : top + 1;
	if (top != image->root && S_ISDIR(image->mode[top]))
		*to = pfs_span_end(tree, top);
	return *to && pfs_scan_ascends(tree, *from, *to);
}

/* Returns about how many slots the subtree has: those without a node are among them. */
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

/* The slots from..to, or if `slots` has any, these, whose order is pre-order.  -EFBIG: they are
 * not, and more than `most`. */
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

/* ---- opening ---- */

/* The slots in pre-order, as they were in the frozen tree. */
static int order_frozen(struct pfs_paths *paths, struct pfs_tree *frozen, uint64_t ino,
			struct pfs_account *account)
{
	int error = pfs_account_charge(account, (int64_t)pfs_frozen_size(frozen));

	if (!error) {
		pfs_hold_read(frozen, __func__);
		error = paths->source ? pfs_scan_sort_preorder(frozen, &paths->slots, NULL)
				      : order(paths, frozen, ino, UINT64_MAX);
		pfs_hold_end(frozen);
	}
	pfs_account_discharge(account, pfs_frozen_size(frozen));
	return error ? error : pfs_frozen_is_lost(frozen) ? -ENOMEM : 0;
}

/* First of all, since an engine keeps to the moment, and others from bringing it up to date, until
 * it has answered. */
static int list_source(struct pfs_paths *paths)
{
	uint64_t n;

	if (!paths->source)
		return 0;
	PFS_TRY(pfs_paths_find_set(paths, &n));
	return pfs_paths_list_set(paths, n);
}

static int sort_frozen(struct pfs_paths *paths, uint64_t ino, struct pfs_account *account)
{
	const struct pfs_frozen_wish wish = {
		.most = pfs_account_left(account), .hold = pfs_paths_hold, .arg = paths};
	struct pfs_tree *frozen;
	int error;

	PFS_TRY(pfs_frozen_begin(&frozen, paths->tree, &wish));
	error = list_source(paths);
	if (!error)
		error = pfs_frozen_fill(frozen, paths->tree, &wish);
	if (!error)
		error = order_frozen(paths, frozen, ino, account);
	pfs_frozen_close(frozen);
	return error;
}

/* Many are sorted as they were when it began, which is what the past remembers. */
static int sort_many(struct pfs_paths *paths, uint64_t ino)
{
	struct pfs_account *account;
	int error;

	pfs_slots_finish(&paths->slots);
	PFS_TRY(pfs_account_open(&account, 0, NULL, NULL));
	error = sort_frozen(paths, ino, account);
	pfs_account_close(account);
	return error;
}

static int open_set(struct pfs_paths *paths)
{
	int error = pfs_paths_order_set(paths);

	return error == -EFBIG ? sort_many(paths, PFS_ROOT_PRIME) : error;
}

/* All nodes of a tree whose slots do not ascend in pre-order, or only but for strays. */
struct all {
	struct pfs_tree *tree;
	uint64_t *live;
};

static int hold_all(void *arg)
{
	struct all *all = arg;
	size_t size;

	free(PFS_TAKE(all->live));
	pfs_hold_read(all->tree, "pfs_paths_open");
	size = pfs_div_round_up(all->tree->image.end, 64) * sizeof(*all->live);
	all->live = malloc(size);
	if (all->live) {
		memcpy(all->live, all->tree->image.live, size);
		return 0;
	}
	pfs_hold_end(all->tree);
	return -ENOMEM;
}

static int find_all(void *arg, const struct pfs_old_places *past PFS_UNUSED, uint64_t **bits)
{
	struct all *all = arg;

	*bits = PFS_TAKE(all->live);
	return 0;
}

static int open_all(struct pfs_paths *paths)
{
	struct all all = {.tree = paths->tree};
	const struct pfs_paths_source source = {hold_all, find_all, &all};
	int error;

	paths->source = &source;
	error = open_set(paths);
	paths->source = NULL;
	free(all.live);
	return error;
}

static int open_subtree(struct pfs_paths *paths, uint64_t ino)
{
	struct pfs_tree *tree = paths->tree;
	int error;

	pfs_hold_read(tree, "pfs_paths_open");
	error = prepare(tree, ino);
	if (!error)
		error = order(paths, tree, ino, PFS_PATHS_HELD);
	if (!error)
		error = pfs_old_places_open(&paths->past, tree);
	pfs_hold_end(tree);
	if (error == -EFBIG)
		return ino == PFS_ROOT_PRIME ? open_all(paths) : sort_many(paths, ino);
	return error;
}

static int open_paths(struct pfs_paths **out, const struct pfs_paths *begun_as, uint64_t ino)
{
	struct pfs_paths *paths = malloc(sizeof(*paths));
	int error;

	*out = NULL;
	if (!paths)
		return -ENOMEM;
	*paths = *begun_as;
	paths->on_device = pfs_tree_engine_kind(paths->tree) == PFS_ENGINE_CUDA;
	error = paths->source ? open_set(paths) : open_subtree(paths, ino);
	paths->source = NULL;
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

int pfs_paths_open_set(struct pfs_paths **out, struct pfs_tree *tree,
		       const struct pfs_paths_source *source, unsigned flags)
{
	return open_paths(out, &(struct pfs_paths){.tree = tree, .flags = flags, .source = source},
			  PFS_ROOT_PRIME);
}

void pfs_paths_close(struct pfs_paths *paths)
{
	if (!paths)
		return;
	pfs_paths_forget(paths);
	pfs_slots_finish(&paths->slots);
	free(paths);
}

/* What stands in rows row..end. */
static int slots_of(const struct pfs_paths *paths, struct pfs_slots *out, uint64_t row,
		    uint64_t end)
{
	if (!paths->slots.n)
		return pfs_paths_placed(paths, &out->slot, &out->n, row, end);
	out->n = (size_t)(end - row);
	out->slot = malloc(out->n * sizeof(*out->slot));
	if (!out->slot)
		return -ENOMEM;
	memcpy(out->slot, paths->slots.slot + row, out->n * sizeof(*out->slot));
	return 0;
}

/* By kernels, if a device has the image as it is now, and that is as it was; sets *error. False:
 * no, but more of the names may be there now. */
static bool list_by_device(const struct pfs_paths *paths, const uint32_t *slots, size_t n,
			   const struct pfs_list_sink *sink, int *error)
{
	struct pfs_tree *tree = paths->tree;
	struct pfs_names_view view;
	const struct pfs_listing listing = {
		.view = &view,
		.slots = slots,
		.n = n - (n && pfs_device_lookup_is_falsified(tree, PFS_QUESTION_TEXT)),
		.flags = (sink->flags & PFS_LIST_INO ? PFS_LISTING_PRIMES : 0) |
			 (sink->flags & PFS_LIST_ZERO ? PFS_LISTING_ZERO : 0),
		.fn = sink->fn,
		.arg = sink->arg,
	};
	struct pfs_engine_info info;
	struct pfs_engine *engine;
	bool is_ready;

	if (!paths->on_device || !pfs_old_places_is_present(paths->past) ||
	    pfs_codes_try(tree, &engine))
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

/* Lists in one hold as many of *n slots as make it a long one, and sets *n to their number. */
static int list_held(const struct pfs_paths *paths, const uint32_t *slots, size_t *n,
		     const struct pfs_list_sink *sink)
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

int pfs_paths_list(const struct pfs_paths *paths, const struct pfs_slots *slots,
		   const struct pfs_list_sink *sink)
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
	error = error ? error : pfs_paths_list(paths, &slots, &sink);
	pfs_slots_finish(&slots);
	if (error)
		return error;
	*row = end;
	return 1;
}

static int measure_held(const struct pfs_paths *paths, uint64_t *size, const uint32_t *slots,
			size_t n)
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
		error = measure_held(paths, &held, slots.slot + at,
				     PFS_MIN(slots.n - at, PFS_PATHS_HELD));
	pfs_slots_finish(&slots);
	if (error)
		return error;
	*row = end;
	return 1;
}
