/* SPDX-License-Identifier: MIT */
/* Tests of what is no column: paths and other texts, ancestors, what has to be computed. Slots are
 * looked at one by one, as many in one hold of the tree as it has time for. */
#include "fs/nodes/scan_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/pattern.h"
#include "fs/image/path.h"

#define PIECE	 1024u /* slots that a thread takes at once */
#define RUN	 128u  /* so many pieces in one hold, or less where they take long */
#define LOOKS	 256u  /* of patterns, at the most: 16 M steps, while the tree is held */
#define OWN_WORK UINT64_C(65536) /* is not told to the other workers */
#define OTHER_WORK 16u /* what a test of something else than a text counts as */

struct rest {
	const struct pfs_selection *selection;
	struct pfs_scan_test *const *tests;
	size_t n_tests;
	uint32_t *slots;
	size_t n, n_pieces;
	size_t first; /* the first piece of the run; */
	uint32_t *seen, *kept; /* and by piece, how many slots have been looked at, and are kept */
	_Atomic uint64_t work; /* done in this hold */
	atomic_int error;
};

struct worker {
	struct rest *rest;
	struct pfs_scan_worker paths;
	uint64_t own_work; /* not told yet */
};

/* ---- how much is done in one hold ---- */

static void tell_work(struct worker *worker)
{
	atomic_fetch_add_explicit(&worker->rest->work, worker->own_work, memory_order_relaxed);
	worker->own_work = 0;
}

static void note_work(struct worker *worker, uint64_t work)
{
	worker->own_work += work;
	if (worker->own_work >= OWN_WORK)
		tell_work(worker);
}

static bool is_enough(const struct worker *worker)
{
	return atomic_load_explicit(&worker->rest->work, memory_order_relaxed) >= PFS_SCAN_WORK;
}

/* ---- tests ---- */

/* Returns true if the test's node is met on the way up. What is learned on the way is noted, by
 * several threads at once. */
static bool climb(const struct pfs_image *image, const struct pfs_scan_test *test, uint32_t slot)
{
	uint8_t *known = test->climbed, found = 0;
	uint32_t at = slot;

	if (!known || slot == test->slot) {
		while (at != PFS_NO_SLOT && at != test->slot)
			at = image->parent[at];
		return at == test->slot && !(test->proper && slot == at);
	}
	for (at = image->parent[slot]; at != PFS_NO_SLOT; at = image->parent[at]) {
		if (at == test->slot)
			found = 1;
		else
			found = __atomic_load_n(&known[at], __ATOMIC_RELAXED);
		if (found)
			break;
	}
	found = found ? found : 2;
	for (slot = image->parent[slot]; slot != at; slot = image->parent[slot])
		__atomic_store_n(&known[slot], found, __ATOMIC_RELAXED);
	return found == 1;
}

static bool in_ranges(const struct pfs_scan_test *test, uint32_t slot)
{
	size_t low = 0, high = test->n_ranges;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (test->ranges[middle].to <= slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low < test->n_ranges && test->ranges[low].from <= slot &&
	       !(test->proper && slot == test->slot);
}

/* A node is shown where its directory's bit is set; the root always. */
static bool is_shown(const struct pfs_image *image, const uint64_t *bits, uint32_t slot)
{
	uint32_t parent = image->parent[slot];

	return parent == PFS_NO_SLOT || (bits[parent / 64] >> parent % 64 & 1);
}

static int count_look(void *arg)
{
	return ++*(unsigned *)arg > LOOKS;
}

/* -E2BIG: the pattern would take too many steps. */
static int match_holds(const struct pfs_text_match *match, bool *holds, const char *bytes,
		       size_t len)
{
	unsigned looks = 0;
	const struct pfs_pattern_look look = {count_look, &looks};

	*holds = pfs_text_match_holds_outside(match, (const uint8_t *)bytes, len);
	if (*holds && match->rest == PFS_REST_PATTERN &&
	    pfs_pattern_matches_until(holds, &look, pfs_text_match_kind(match), match->text, 0,
				      bytes, len))
		return -E2BIG;
	return 0;
}

/* Text that is not always there: false, negated or not, where it is none. */
static int text_holds(struct worker *worker, const struct pfs_scan_test *test, bool *holds,
		      uint32_t slot)
{
	const struct pfs_image *image = worker->rest->selection->image;
	const char *bytes;
	size_t len;

	if (test->field == PFS_FIELD_PATH)
		PFS_TRY(pfs_scan_path(&worker->paths, image, &bytes, &len, slot));
	else
		bytes = pfs_scan_text(image, &len, test->field, slot);
	if (test->is_none)
		*holds = !bytes;
	else
		*holds = test->negated;
	if (bytes && !test->is_none)
		PFS_TRY(match_holds(&test->text, holds, bytes, len));
	note_work(worker, pfs_scan_match_work(&test->text, bytes ? len : 0));
	return 0;
}

/* Negation aside. */
static int find(struct worker *worker, const struct pfs_scan_test *test, bool *holds, uint32_t slot)
{
	const struct pfs_selection *selection = worker->rest->selection;
	int64_t value;

	if (test->how == PFS_HOW_TEXT)
		return text_holds(worker, test, holds, slot);
	note_work(worker, OTHER_WORK);
	switch (test->how) {
	case PFS_HOW_CLIMB:
		*holds = climb(selection->image, test, slot);
		return 0;
	case PFS_HOW_RANGES:
		*holds = in_ranges(test, slot);
		return 0;
	case PFS_HOW_PARENT_BITS:
		*holds = is_shown(selection->image, test->bits, slot);
		return 0;
	case PFS_HOW_DEPTH:
		value = pfs_image_depth(selection->image, slot);
		/* a few steps up, each perhaps far away; directories' depths are kept */
		note_work(worker, 2 * OTHER_WORK * (uint64_t)PFS_MIN(value, 8));
		break;
	default:
		value = pfs_scan_integer(selection->tree, test->field, slot);
	}
	*holds = value >= test->low && value <= test->high;
	return 0;
}

static int all_hold(struct worker *worker, bool *all, uint32_t slot)
{
	const struct rest *rest = worker->rest;

	*all = true;
	for (size_t i = 0; i < rest->n_tests && *all; i++) {
		const struct pfs_scan_test *test = rest->tests[i];
		bool holds;

		if (!pfs_scan_test_is_rest(rest->selection, test))
			continue;
		PFS_TRY(find(worker, test, &holds, slot));
		*all = holds != test->negated &&
		       !(test->not_root && slot == rest->selection->image->root);
	}
	return 0;
}

/* ---- pieces ---- */

static size_t size_of(const struct rest *rest, size_t piece)
{
	return PFS_MIN(rest->n - piece * PIECE, (size_t)PIECE);
}

/* The rest of a piece, or some of it: the first bytes that are looked at in a hold always are. */
static int look_at_piece(struct worker *worker, size_t piece)
{
	struct rest *rest = worker->rest;
	const struct pfs_scan_watch *watch = rest->selection->watch;
	uint32_t *slots = rest->slots + piece * PIECE;

	if (watch && *watch->stop)
		return -EINTR;
	while (rest->seen[piece] < size_of(rest, piece) && !is_enough(worker)) {
		uint32_t slot = slots[rest->seen[piece]++];
		bool holds;

		PFS_TRY(all_hold(worker, &holds, slot));
		if (holds)
			slots[rest->kept[piece]++] = slot;
	}
	return 0;
}

static void look_at_pieces(void *context, size_t from, size_t to)
{
	struct rest *rest = context;
	struct worker worker = {.rest = rest};
	int error = atomic_load_explicit(&rest->error, memory_order_relaxed);

	for (size_t piece = from; piece < to && !error; piece++)
		error = look_at_piece(&worker, rest->first + piece);
	if (error)
		atomic_store(&rest->error, error);
	tell_work(&worker);
	pfs_trail_finish(&worker.paths.trail);
	free(worker.paths.path);
}

/* Runs end where enough was done; the next one goes on with what they left. */
static int look_at_all(struct rest *rest, bool once)
{
	struct pfs_tree *tree = rest->selection->tree;

	do {
		atomic_store(&rest->work, 0);
		pfs_scan_run(tree, PFS_MIN(rest->n_pieces - rest->first, (size_t)RUN), 1,
			     look_at_pieces, rest);
		PFS_TRY(atomic_load(&rest->error));
		PFS_TRY(pfs_scan_look(rest->selection->watch));
		while (rest->first < rest->n_pieces &&
		       rest->seen[rest->first] == size_of(rest, rest->first))
			rest->first++;
	} while (rest->first < rest->n_pieces && !once);
	return 0;
}

int pfs_scan_rest(const struct pfs_selection *selection, struct pfs_scan_test *const *tests,
		  size_t n_tests, struct pfs_slots *slots, bool sample, size_t *n_seen)
{
	struct rest rest = {.selection = selection,
			    .tests = tests,
			    .n_tests = n_tests,
			    .slots = slots->slot,
			    .n = slots->n,
			    .n_pieces = pfs_div_round_up(slots->n, PIECE)};
	uint32_t one[2] = {0}, *counts = one;
	int error;

	*n_seen = slots->n;
	if (!slots->n)
		return 0;
	if (rest.n_pieces > 1)
		counts = calloc(2 * rest.n_pieces, sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	rest.seen = counts;
	rest.kept = counts + rest.n_pieces;
	error = look_at_all(&rest, sample);
	slots->n = *n_seen = 0;
	for (size_t piece = 0; piece < rest.n_pieces && !error; piece++) {
		memmove(slots->slot + slots->n, slots->slot + piece * PIECE,
			rest.kept[piece] * sizeof(*slots->slot));
		slots->n += rest.kept[piece];
		*n_seen += rest.seen[piece];
	}
	if (counts != one)
		free(counts);
	return error;
}
