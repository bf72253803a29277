/* SPDX-License-Identifier: MIT */
/* Component-wise pre-order of a set of nodes: every directory before what lies in it, siblings by
 * the bytes of their names.  And the order of their paths' bytes, which differs where a name goes
 * on with less than a slash: /a, /a-b, /a/c.
 *
 * Slots mostly have that order already, or but for a few strays, which are sorted and put in their
 * places.  What has not been known to have it is cut into runs that do; few runs are merged, a long
 * stretch of one at a time.  Of many runs a tree is made, that of the nodes and those above them,
 * and its siblings are sorted. */
#include "fs/nodes/scan_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/later.h"
#include "base/order.h"
#include "base/search.h"
#include "fs/image/names.h"
#include "fs/image/path.h"
#include "fs/image/slotorder.h"
#include "fs/tree/tree_impl.h"

#define GRAIN	  8192u /* nodes that one thread looks at, a multiple of 64 */
#define RUN_NODES 32u	/* on average, at least, for runs to be merged */
#define LOOKED_AT (UINT32_C(1) << 15) /* slots, a multiple of 64: a millisecond or two of a processor */
#define MOVED	  16u /* times as many slots, where each takes a moment */
#define TAIL	  (2 * (size_t)PFS_STRAYS_MAX)

/* Orders the siblings a and b on the paths to two nodes.  a_more: the node lies below a, so compare
 * "a/". */
static int compare_ways(const struct pfs_image *image, uint32_t a, bool a_more, uint32_t b,
			bool b_more)
{
	size_t a_len, b_len, len;
	const char *x = pfs_names_get(image->names, image->name[a], &a_len);
	const char *y = pfs_names_get(image->names, image->name[b], &b_len);
	int order;

	len = PFS_MIN(a_len, b_len);
	order = memcmp(x, y, len);
	if (order || a_len == b_len)
		return order;
	if (a_len < b_len)
		return a_more && (unsigned char)y[len] < '/' ? 1 : -1;
	return b_more && (unsigned char)x[len] < '/' ? -1 : 1;
}

static _Atomic uint32_t looked_at = LOOKED_AT;

void pfs_scan_set_piece(uint32_t slots)
{
	atomic_store(&looked_at, slots);
}

uint32_t pfs_scan_piece(void)
{
	return PFS_MIN(atomic_load(&looked_at), LOOKED_AT);
}

/* ---- runs ---- */

struct runs {
	const struct pfs_image *image;
	const struct pfs_scan_watch *watch;
	bool by_bytes;
	const uint32_t *slots;
	uint64_t *starts; /* bit i: a run starts with slots[i] */
	atomic_size_t n;
};

/* Sets *after to true if the node comes after the one that the trail leads to, and leads the trail
 * to this one. */
static int follows(struct pfs_trail *trail, const struct runs *runs, uint32_t slot, bool *after)
{
	const struct pfs_image *image = runs->image;
	size_t level;

	PFS_TRY(pfs_trail_meet(trail, image, slot, &level));
	if (trail->n_missing == 0) /* it lies above */
		*after = false;
	else if (level + 1 == trail->n) /* it lies below */
		*after = true;
	else
		*after = compare_ways(image, trail->slot[level + 1],
				      runs->by_bytes && level + 2 < trail->n,
				      trail->missing[trail->n_missing - 1],
				      runs->by_bytes && trail->n_missing > 1) < 0;
	return pfs_trail_turn(trail, image, level, false);
}

static int find_runs(void *context, unsigned worker PFS_UNUSED, uint64_t from, uint64_t to)
{
	struct runs *runs = context;
	struct pfs_trail trail = {0};
	size_t n = 0;
	int error = 0;

	if (from > 0)
		error = pfs_trail_to(&trail, runs->image, runs->slots[from - 1], false);
	for (size_t i = from; i < to && !error; i++) {
		bool after = false;

		error = i ? follows(&trail, runs, runs->slots[i], &after)
			  : pfs_trail_to(&trail, runs->image, runs->slots[0], false);
		if (!after) {
			runs->starts[i / 64] |= UINT64_C(1) << i % 64;
			n++;
		}
	}
	atomic_fetch_add(&runs->n, n);
	pfs_trail_finish(&trail);
	return error;
}

/* Cuts the slots into runs: runs->n of them, and where they start (to be freed). */
static int cut(struct pfs_tree *tree, struct runs *runs, const struct pfs_slots *slots,
	       bool by_bytes, const struct pfs_scan_watch *watch)
{
	*runs = (struct runs){.image = &tree->image,
			      .watch = watch,
			      .by_bytes = by_bytes,
			      .slots = slots->slot};
	runs->starts = calloc(slots->n / 64 + 1, sizeof(*runs->starts));
	if (!runs->starts)
		return -ENOMEM;
	return pfs_scan_run_watched(tree, slots->n, GRAIN, find_runs, runs, watch);
}

/* ---- merging runs ---- */

/* Returns true if a comes before b: climbs to where the ways to them part, and compares there. */
static bool is_before(const struct pfs_image *image, bool by_bytes, uint32_t a, uint32_t b)
{
	uint32_t a_depth = pfs_image_depth(image, a), b_depth = pfs_image_depth(image, b);
	uint32_t a_end = a, b_end = b;

	for (uint32_t n = a_depth; n > b_depth; n--)
		a = image->parent[a];
	for (uint32_t n = b_depth; n > a_depth; n--)
		b = image->parent[b];
	if (a == b) /* one lies under the other */
		return a_depth < b_depth;
	while (image->parent[a] != image->parent[b]) {
		a = image->parent[a];
		b = image->parent[b];
	}
	return compare_ways(image, a, by_bytes && a != a_end, b, by_bytes && b != b_end) < 0;
}

bool pfs_scan_path_is_before(const struct pfs_image *image, enum pfs_field field, uint32_t a,
			     uint32_t b)
{
	return is_before(image, field == PFS_FIELD_PATH, a, b);
}

/* Returns how many of the n slots come before `slot`. If these are few, few are tried. */
static size_t count_before(const struct runs *runs, const uint32_t *slots, size_t n, uint32_t slot)
{
	const struct pfs_image *image = runs->image;
	bool by_bytes = runs->by_bytes;
	size_t low = 0, high = 1;

	while (high <= n && is_before(image, by_bytes, slots[high - 1], slot)) {
		low = high;
		high *= 2;
	}
	return PFS_SEARCH(i, low, PFS_MIN(high - 1, n), is_before(image, by_bytes, slots[i], slot));
}

static int move(uint32_t **to, uint32_t **from, size_t n, const struct pfs_scan_watch *watch)
{
	size_t most = (size_t)MOVED * pfs_scan_piece();

	while (n > 0) {
		size_t some = PFS_MIN(n, most);

		memcpy(*to, *from, some * sizeof(**to));
		*to += some;
		*from += some;
		n -= some;
		PFS_TRY(pfs_scan_look(watch));
	}
	return 0;
}

/* Two runs that follow each other, from..middle..end, to `to`. */
static int merge(const struct runs *runs, uint32_t *to, uint32_t *from, uint32_t *middle,
		 uint32_t *end)
{
	uint32_t *a = from, *b = middle;

	while (a < middle && b < end) {
		PFS_TRY(move(&to, &a, count_before(runs, a, (size_t)(middle - a), *b),
			     runs->watch));
		if (a < middle)
			PFS_TRY(move(&to, &b, count_before(runs, b, (size_t)(end - b), *a),
				     runs->watch));
	}
	PFS_TRY(move(&to, &a, (size_t)(middle - a), runs->watch));
	return move(&to, &b, (size_t)(end - b), runs->watch);
}

/* The starts of the runs, and the end. */
static size_t *list_starts(const struct runs *runs, size_t n_slots)
{
	size_t n_runs = atomic_load(&runs->n), n = 0;
	size_t *starts = malloc((n_runs + 1) * sizeof(*starts));

	for (size_t w = 0; w <= n_slots / 64 && starts; w++)
		for (uint64_t left = runs->starts[w]; left; left &= left - 1)
			starts[n++] = w * 64 + (size_t)__builtin_ctzll(left);
	if (starts)
		starts[n_runs] = n_slots;
	return starts;
}

static int merge_runs(const struct runs *runs, struct pfs_slots *slots)
{
	size_t *starts PFS_FREE_LATER = list_starts(runs, slots->n);
	uint32_t *other PFS_FREE_LATER = malloc(slots->n * sizeof(*other));

	if (!starts || !other)
		return -ENOMEM;
	for (size_t n = atomic_load(&runs->n); n > 1; n = (n + 1) / 2) {
		uint32_t *from = slots->slot;

		for (size_t i = 0; i < n; i += 2) {
			size_t middle = starts[i + 1], end = starts[PFS_MIN(i + 2, n)];

			PFS_TRY(merge(runs, other + starts[i], from + starts[i], from + middle,
				      from + end));
			starts[i / 2] = starts[i];
		}
		starts[(n + 1) / 2] = slots->n;
		slots->slot = other;
		other = from;
	}
	return 0;
}

/* ---- strays ---- */

/* A look whether slots are in pre-order, which is taken in pieces; the tree may change between them
 * (fs/image/slotorder.h). */
struct looking {
	struct pfs_tree *tree;
	uint32_t *slots; /* those kept: that have their order; of these the last TAIL or more, and
			    behind them a piece's */
	size_t kept;
	bool lacks; /* others were kept before them */
	size_t n_runs;
	size_t n_strays;
	uint32_t strays[PFS_STRAYS_MAX];
};

/* Takes as few out of a run, and of those kept before it, as need be for the rest to have their
 * order: of those that overlap, on the side that has fewer.  false: too many. */
static bool keep_run(struct looking *looking, const struct runs *runs, uint32_t *run, size_t n)
{
	uint32_t *slots = looking->slots, *strays = looking->strays + looking->n_strays;
	size_t kept = looking->kept, before = 0, after = 0;

	if (kept)
		before = count_before(runs, run, n, slots[kept - 1]);
	while (after < before && after < kept && after <= PFS_STRAYS_MAX &&
	       !is_before(runs->image, false, slots[kept - 1 - after], run[0]))
		after++;
	if (looking->n_strays + after > PFS_STRAYS_MAX || (after == kept && looking->lacks))
		return false;
	if (after < before) {
		kept -= after;
		memcpy(strays, slots + kept, after * sizeof(*strays));
		looking->n_strays += after;
		before = 0;
	} else {
		memcpy(strays, run, before * sizeof(*strays));
		looking->n_strays += before;
	}
	memmove(slots + kept, run + before, (n - before) * sizeof(*slots));
	looking->kept = kept + n - before;
	return true;
}

/* What was kept may have gone or strayed since; of it no more than may be needed stays. */
static void keep_tail(struct looking *looking)
{
	size_t n = PFS_MIN(looking->kept, TAIL);

	if (n < looking->kept) {
		looking->lacks = true;
		memmove(looking->slots, looking->slots + looking->kept - n,
			n * sizeof(*looking->slots));
	}
	looking->kept = pfs_slotorder_keep(looking->tree, looking->slots, n);
}

/* Live slots of from..to, from a multiple of 64, behind those kept. */
static size_t list_live(struct looking *looking, uint32_t from, uint32_t to)
{
	const struct pfs_image *image = &looking->tree->image;
	uint32_t *out = looking->slots + looking->kept;
	size_t n = 0;

	for (uint32_t first = from; first < to; first += 64)
		for (uint64_t left = image->live[first / 64]; left; left &= left - 1) {
			uint32_t slot = first + (uint32_t)__builtin_ctzll(left);

			if (slot < to)
				out[n++] = slot;
		}
	return n;
}

/* 1: the slots so far have the order; 0: they have not. */
static int look_at_piece(struct looking *looking, uint32_t from, uint32_t to)
{
	size_t *starts PFS_FREE = NULL;
	struct pfs_slots piece;
	struct runs runs;
	size_t n;
	int error;

	keep_tail(looking);
	piece = (struct pfs_slots){looking->slots + looking->kept, list_live(looking, from, to)};
	if (piece.n == 0)
		return 1;
	error = cut(looking->tree, &runs, &piece, false, NULL);
	if (!error)
		starts = list_starts(&runs, piece.n);
	free(runs.starts);
	if (error || !starts)
		return error ? error : -ENOMEM;
	n = atomic_load(&runs.n);
	looking->n_runs += n - 1;
	if (looking->n_runs > TAIL)
		return 0;
	for (size_t r = 0; r < n; r++)
		if (!keep_run(looking, &runs, piece.slot + starts[r], starts[r + 1] - starts[r]))
			return 0;
	return 1;
}

/* *found: what they have, as far as it was looked at. */
static int look_at_all(struct looking *looking, enum pfs_slot_order *found,
		       const struct pfs_scan_watch *watch)
{
	const struct pfs_image *image = &looking->tree->image;
	uint32_t step = pfs_scan_piece();
	int error = 1;

	for (uint32_t from = 0; from < image->end && error == 1; from += step) {
		error = look_at_piece(looking, from, PFS_MIN(image->end, from + step));
		if (error >= 0)
			PFS_TRY(pfs_scan_look(watch));
	}
	if (error < 0)
		return error;
	qsort(looking->strays, looking->n_strays, sizeof(*looking->strays), pfs_compare_u32);
	*found = error ? PFS_ORDER_ASCENDING : PFS_ORDER_OTHER;
	return 0;
}

int pfs_scan_learn_order(struct pfs_tree *tree, const struct pfs_scan_watch *watch)
{
	enum pfs_slot_order found = PFS_ORDER_UNKNOWN;
	struct looking *looking;
	unsigned begun;
	int error;

	if (pfs_slotorder(tree) != PFS_ORDER_UNKNOWN)
		return 0;
	looking = calloc(1, sizeof(*looking));
	if (!looking)
		return -ENOMEM;
	looking->tree = tree;
	looking->slots = malloc((TAIL + LOOKED_AT) * sizeof(*looking->slots));
	begun = pfs_slotorder_begin(tree);
	error = looking->slots ? look_at_all(looking, &found, watch) : -ENOMEM;
	pfs_slotorder_end(tree, begun, found, looking->strays, looking->n_strays);
	pfs_free_later(looking->slots);
	free(looking);
	return error;
}

/* *out: with strays. */
static int ascends(struct pfs_tree *tree, bool *out, size_t n, const struct pfs_scan_watch *watch)
{
	if (n > tree->image.nodes / 8 && pfs_slotorder(tree) == PFS_ORDER_UNKNOWN)
		PFS_TRY(pfs_scan_learn_order(tree, watch));
	*out = pfs_slotorder(tree) == PFS_ORDER_ASCENDING;
	return 0;
}

bool pfs_scan_ascends(struct pfs_tree *tree, uint32_t from, uint32_t to)
{
	const uint32_t *strays;

	return pfs_slotorder(tree) == PFS_ORDER_ASCENDING &&
	       (pfs_slotorder_strays(tree, &strays, from) == 0 || *strays >= to);
}

/* Sorts into pre-order by merging slot by slot, as runs are merged. */
static int sort_each(const struct runs *runs, uint32_t *slots, size_t n)
{
	uint32_t *other = malloc(n * sizeof(*other)), *from = slots, *to = other;
	int error = other ? 0 : -ENOMEM;

	for (size_t width = 1; width < n && !error; width *= 2) {
		uint32_t *merged = to;

		for (size_t at = 0; at < n && !error; at += 2 * width)
			error = merge(runs, to + at, from + at, from + PFS_MIN(at + width, n),
				      from + PFS_MIN(at + 2 * width, n));
		to = from;
		from = merged;
	}
	if (from != slots)
		memcpy(slots, from, n * sizeof(*slots));
	free(other);
	return error;
}

/* Moves strays to the end of ascending slots; the rest keeps its order.  *found: how many there
 * are. */
static int take_strays(struct pfs_tree *tree, size_t *found, uint32_t *to,
		       const struct pfs_slots *slots, const struct pfs_scan_watch *watch)
{
	const uint32_t *strays;
	size_t n = pfs_slotorder_strays(tree, &strays, slots->slot[0]), kept = 0;
	size_t most = (size_t)MOVED * pfs_scan_piece();
	uint32_t taken[PFS_STRAYS_MAX];

	*found = 0;
	for (size_t i = 0; i < slots->n; i++) {
		if (i % most == 0)
			PFS_TRY(pfs_scan_look(watch));
		while (n && *strays < slots->slot[i]) {
			strays++;
			n--;
		}
		if (n && *strays == slots->slot[i])
			taken[(*found)++] = slots->slot[i];
		else
			to[kept++] = slots->slot[i];
	}
	if (*found)
		memcpy(to + kept, taken, *found * sizeof(*to));
	return 0;
}

/* Sorts ascending slots of which all but strays have the order; *done: few of them are strays. */
static int place_strays(struct pfs_tree *tree, bool *done, struct pfs_slots *slots,
			const struct pfs_scan_watch *watch)
{
	const struct runs runs = {.image = &tree->image, .watch = watch};
	uint32_t *from PFS_FREE_LATER = NULL;
	const uint32_t *strays;
	size_t n;

	*done = true;
	if (pfs_slotorder_strays(tree, &strays, slots->slot[0]) == 0 ||
	    *strays > slots->slot[slots->n - 1])
		return 0;
	from = malloc(slots->n * sizeof(*from));
	if (!from)
		return -ENOMEM;
	PFS_TRY(take_strays(tree, &n, from, slots, watch));
	*done = n <= slots->n / RUN_NODES + 16;
	if (!*done || n == 0)
		return 0;
	PFS_TRY(sort_each(&runs, from + slots->n - n, n));
	return merge(&runs, slots->slot, from, from + slots->n - n, from + slots->n);
}

/* ---- all of it ---- */

int pfs_slots_ascend(const struct pfs_slots *slots, bool *out, const struct pfs_scan_watch *watch)
{
	size_t most = (size_t)MOVED * pfs_scan_piece();

	*out = true;
	for (size_t i = 1; i < slots->n && *out; i++) {
		if (i % most == 0)
			PFS_TRY(pfs_scan_look(watch));
		*out = slots->slot[i - 1] < slots->slot[i];
	}
	return 0;
}

int pfs_scan_sort_preorder(struct pfs_tree *tree, struct pfs_slots *slots,
			   const struct pfs_scan_watch *watch)
{
	struct runs runs = {0};
	bool done = false, do_ascend;
	int error;

	if (slots->n < 2)
		return 0;
	PFS_TRY(ascends(tree, &do_ascend, slots->n, watch));
	if (do_ascend)
		PFS_TRY(pfs_slots_ascend(slots, &do_ascend, watch));
	if (do_ascend)
		PFS_TRY(place_strays(tree, &done, slots, watch));
	if (done)
		return 0;
	error = cut(tree, &runs, slots, false, watch);
	if (!error && atomic_load(&runs.n) > slots->n / RUN_NODES + 16)
		error = pfs_scan_sort_as_tree(&tree->image, slots, watch);
	else if (!error && atomic_load(&runs.n) > 1)
		error = merge_runs(&runs, slots);
	free(runs.starts);
	return error;
}

int pfs_scan_sort_paths(struct pfs_tree *tree, struct pfs_slots *slots,
			const struct pfs_scan_watch *watch)
{
	struct runs runs = {0};
	int error;

	if (slots->n < 2)
		return 0;
	error = cut(tree, &runs, slots, true, watch);
	if (!error && atomic_load(&runs.n) > slots->n / RUN_NODES + 16) {
		free(runs.starts);
		runs.starts = NULL;
		error = pfs_scan_sort_as_tree(&tree->image, slots, watch); /* has fewer */
		if (!error)
			error = cut(tree, &runs, slots, true, watch);
	}
	if (!error && atomic_load(&runs.n) > 1)
		error = merge_runs(&runs, slots);
	free(runs.starts);
	return error;
}
