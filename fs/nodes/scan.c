/* SPDX-License-Identifier: MIT */
/* Sets of nodes by predicates: the slots to be looked at are taken through the tests block by
 * block, and what is left of them is listed. */
#include "fs/nodes/scan_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/span.h"
#include "fs/image/totals.h"
#include "fs/tree/tree_impl.h"

#define PIECE_WORDS  ((size_t)4 * PFS_SCAN_BLOCK_WORDS) /* that a thread takes at once; */
#define COSTLY_WORDS 16u /* where each slot may take long; */
#define COSTLY_RUN   128u /* so many pieces in one hold, or less where they do take long */
#define LISTED_ALONE (64u << 10) /* slots that are listed sooner than threads are woken */
#define CHILDREN_FEW 1024u /* of a directory, which are listed by its entries */

/* ---- a range of slots ---- */

struct scan {
	const struct pfs_selection *selection;
	uint32_t first; /* slot of the first bit: a multiple of 64 */
	size_t words, piece_words;
	uint64_t *bits;	 /* of what was found */
	uint64_t *count; /* by piece: how many; then, how many before it */
	size_t n_pieces;
	size_t from;	 /* costly: the first piece of the run; */
	uint16_t *slots; /* and by piece, how many slots have been looked at */
	_Atomic uint64_t work;
	uint32_t *out;
	atomic_int error;
};

/* A path is as long as its node lies deep, and a pattern may go back again and again. */
static bool is_costly(const struct pfs_selection *selection)
{
	for (size_t i = 0; i < selection->n_order; i++) {
		const struct pfs_scan_test *test = selection->order[i];

		if (test->how == PFS_HOW_TEXT ||
		    (test->how == PFS_HOW_NAME && test->text.rest == PFS_REST_PATTERN))
			return true;
	}
	return false;
}

/* All ones where slots are to be looked at. */
static void set_range(const struct scan *scan, uint64_t *bits, size_t word, size_t words)
{
	const struct pfs_selection *selection = scan->selection;
	size_t last = word + words - 1;

	memset(bits, 0xff, words * sizeof(*bits));
	if (word == 0)
		bits[0] &= ~UINT64_C(0) << (selection->from - scan->first);
	if (last == scan->words - 1 && selection->to % 64)
		bits[words - 1] &= ~(~UINT64_C(0) << selection->to % 64);
}

static int scan_block(struct pfs_scan_worker *worker, struct scan *scan, size_t word, size_t words,
		      uint64_t *count)
{
	uint64_t *bits = scan->bits + word;

	if (scan->selection->watch && *scan->selection->watch->stop)
		return -EINTR;
	set_range(scan, bits, word, words);
	PFS_TRY(pfs_scan_filter_all(worker, bits, scan->first + (uint32_t)(word * 64), words));
	for (size_t w = 0; w < words; w++)
		*count += (unsigned)__builtin_popcountll(bits[w]);
	return 0;
}

/* The rest of a piece, or some of it. */
static int scan_costly_piece(struct pfs_scan_worker *worker, struct scan *scan, size_t piece)
{
	uint64_t bits[COSTLY_WORDS];
	size_t word = piece * COSTLY_WORDS, words = PFS_MIN(scan->words - word, COSTLY_WORDS);
	uint32_t first = scan->first + (uint32_t)(word * 64);
	unsigned done = scan->slots[piece];

	if (scan->selection->watch && *scan->selection->watch->stop)
		return -EINTR;
	if (done == words * 64)
		return 0;
	set_range(scan, bits, word, words);
	for (size_t w = 0; w < words && done > w * 64; w++)
		bits[w] &= done >= w * 64 + 64 ? 0 : ~UINT64_C(0) << done % 64;
	worker->next = UINT32_MAX;
	PFS_TRY(pfs_scan_filter_all(worker, bits, first, words));
	scan->slots[piece] = (uint16_t)PFS_MIN(worker->next - first, words * 64);
	for (size_t w = 0; w < words; w++) {
		scan->count[piece] += (unsigned)__builtin_popcountll(bits[w]);
		scan->bits[word + w] |= bits[w];
	}
	return 0;
}

static void scan_costly_pieces(void *context, size_t from, size_t to)
{
	struct scan *scan = context;
	struct pfs_scan_worker worker = pfs_scan_worker_of(scan->selection, &scan->work);
	int error = atomic_load_explicit(&scan->error, memory_order_relaxed);

	for (size_t piece = from; piece < to && !error; piece++)
		error = scan_costly_piece(&worker, scan, scan->from + piece);
	if (error)
		atomic_store(&scan->error, error);
	pfs_scan_worker_finish(&worker);
}

/* Runs end where enough was done; the next one goes on with what they left. */
static int scan_costly(struct scan *scan)
{
	struct pfs_tree *tree = scan->selection->tree;

	while (scan->from < scan->n_pieces) {
		size_t n = PFS_MIN(scan->n_pieces - scan->from, COSTLY_RUN);

		atomic_store(&scan->work, 0);
		pfs_scan_run(tree, n, 1, scan_costly_pieces, scan);
		PFS_TRY(atomic_load(&scan->error));
		PFS_TRY(pfs_scan_look(scan->selection->watch));
		while (scan->from < scan->n_pieces &&
		       scan->slots[scan->from] ==
			       PFS_MIN(scan->words - scan->from * COSTLY_WORDS, COSTLY_WORDS) * 64)
			scan->from++;
	}
	return 0;
}

static void scan_pieces(void *context, size_t from, size_t to)
{
	struct scan *scan = context;
	struct pfs_scan_worker worker = pfs_scan_worker_of(scan->selection, NULL);
	int error = atomic_load_explicit(&scan->error, memory_order_relaxed);

	for (size_t piece = from; piece < to && !error; piece++) {
		size_t word = piece * scan->piece_words;
		size_t end = PFS_MIN(word + scan->piece_words, scan->words);
		uint64_t count = 0;

		for (; word < end && !error; word += PFS_SCAN_BLOCK_WORDS)
			error = scan_block(&worker, scan, word,
					   PFS_MIN(end - word, PFS_SCAN_BLOCK_WORDS), &count);
		scan->count[piece] = count;
	}
	if (error)
		atomic_store(&scan->error, error);
	pfs_scan_worker_finish(&worker);
}

static void list_pieces(void *context, size_t from, size_t to)
{
	struct scan *scan = context;

	for (size_t piece = from; piece < to; piece++) {
		uint32_t *out = scan->out + scan->count[piece];
		size_t word = piece * scan->piece_words;
		size_t end = PFS_MIN(word + scan->piece_words, scan->words);

		for (; word < end; word++) {
			uint32_t slot = scan->first + (uint32_t)(word * 64);

			for (uint64_t left = scan->bits[word]; left; left &= left - 1)
				*out++ = slot + (uint32_t)__builtin_ctzll(left);
		}
	}
}

static int list_found(struct scan *scan, struct pfs_slots *out, uint64_t n)
{
	size_t grain = n < LISTED_ALONE ? scan->n_pieces : 1;
	int error;

	if (n == 0)
		return 0;
	out->slot = malloc(n * sizeof(*out->slot));
	if (!out->slot)
		return -ENOMEM;
	out->n = n;
	scan->out = out->slot;
	error = pfs_scan_run_watched(scan->selection->tree, scan->n_pieces, grain, list_pieces, scan,
				     scan->selection->watch);
	if (error)
		pfs_slots_finish(out);
	return error;
}

static int scan_range(const struct pfs_selection *selection, struct pfs_slots *out)
{
	struct scan scan = {.selection = selection, .first = selection->from / 64 * 64};
	uint64_t *bits PFS_FREE = NULL, *count PFS_FREE = NULL;
	uint16_t *slots PFS_FREE = NULL;
	bool costly = is_costly(selection);
	uint64_t total = 0;

	if (selection->from == selection->to)
		return 0;
	scan.words = pfs_div_round_up(selection->to - scan.first, 64);
	scan.piece_words = costly ? COSTLY_WORDS : PIECE_WORDS;
	scan.n_pieces = pfs_div_round_up(scan.words, scan.piece_words);
	scan.count = count = calloc(scan.n_pieces, sizeof(*count));
	scan.bits = bits = calloc(scan.words, sizeof(*bits));
	scan.slots = slots = costly ? calloc(scan.n_pieces, sizeof(*slots)) : NULL;
	if (!count || !bits || (costly && !slots))
		return -ENOMEM;
	PFS_TRY(costly ? scan_costly(&scan)
		       : pfs_scan_run_watched(selection->tree, scan.n_pieces, 1, scan_pieces, &scan,
					      selection->watch));
	if (atomic_load(&scan.error))
		return atomic_load(&scan.error);
	for (size_t piece = 0; piece < scan.n_pieces; piece++) {
		uint64_t n = count[piece];

		count[piece] = total;
		total += n;
	}
	return list_found(&scan, out, total);
}

/* ---- listed slots ---- */

/* The list's slots from `at` on that lie in one block, as bits; the number of them. */
static size_t take_block(const struct pfs_selection *selection, size_t at, uint64_t *bits,
			 uint32_t *first, size_t *words)
{
	const uint32_t *list = selection->list;
	size_t n = 0;

	*first = list[at] / 64 * 64;
	memset(bits, 0, PFS_SCAN_BLOCK_WORDS * sizeof(*bits));
	while (at + n < selection->n_list && list[at + n] - *first < PFS_SCAN_BLOCK) {
		uint32_t i = list[at + n++] - *first;

		bits[i / 64] |= UINT64_C(1) << i % 64;
		*words = i / 64 + 1;
	}
	return n;
}

/* They are live, having come from an index, and there is nothing to test. */
static int copy_list(const struct pfs_selection *selection, struct pfs_slots *out)
{
	size_t n = selection->n_list;

	if (!n)
		return 0;
	out->slot = malloc(n * sizeof(*out->slot));
	if (!out->slot)
		return -ENOMEM;
	memcpy(out->slot, selection->list, n * sizeof(*out->slot));
	out->n = n;
	return 0;
}

static int scan_list(const struct pfs_selection *selection, struct pfs_slots *out)
{
	_Atomic uint64_t work = 0;
	struct pfs_scan_worker worker = pfs_scan_worker_of(selection, &work);
	uint64_t bits[PFS_SCAN_BLOCK_WORDS];
	uint32_t *slots = malloc((selection->n_list + 1) * sizeof(*slots));
	int error = !slots ? -ENOMEM : 0;
	size_t words = 0, n = 0;
	uint32_t first;

	for (size_t at = 0; at < selection->n_list && !error;) {
		at += take_block(selection, at, bits, &first, &words);
		worker.next = UINT32_MAX;
		error = pfs_scan_filter_all(&worker, bits, first, words);
		for (; worker.next < UINT32_MAX && selection->list[at - 1] >= worker.next; at--)
			;
		error = error ? error : pfs_scan_look(selection->watch);
		atomic_store(&work, 0);
		for (size_t w = 0; w < words && !error; w++) {
			for (uint64_t left = bits[w]; left; left &= left - 1, n++)
				slots[n] = first + (uint32_t)(w * 64) +
					   (uint32_t)__builtin_ctzll(left);
		}
	}
	pfs_scan_worker_finish(&worker);
	if (error)
		free(slots);
	else
		*out = (struct pfs_slots){.slot = slots, .n = n};
	return error;
}

/* ---- selections ---- */

static int select_begun(struct pfs_selection *selection, struct pfs_slots *out,
			const struct pfs_slots *within)
{
	PFS_TRY(pfs_selection_begin(selection, within));
	PFS_TRY(pfs_selection_order(selection, false));
	if (selection->own_list && !selection->n_order)
		return copy_list(selection, out);
	if (selection->list)
		return scan_list(selection, out);
	PFS_TRY(scan_range(selection, out));
	pfs_selection_note(selection, out->n);
	return 0;
}

/* Whether a node is asked for by its number and nothing else; joins do that a thousand times. */
static bool is_number(const struct pfs_predicate *predicate)
{
	return predicate->test == PFS_TEST_RANGE && predicate->field == PFS_FIELD_INO &&
	       predicate->low == predicate->high && !predicate->negated;
}

static int select_number(struct pfs_tree *tree, struct pfs_slots *out, uint64_t ino)
{
	uint32_t slot = pfs_scan_slot_of(tree, ino);

	if (slot == PFS_NO_SLOT)
		return 0;
	out->slot = malloc(sizeof(*out->slot));
	if (!out->slot)
		return -ENOMEM;
	*out->slot = slot;
	out->n = 1;
	return 0;
}

/* Whether the children of a node are asked for and nothing else, as each step of a recursive statement does. */
static bool is_parent(const struct pfs_predicate *predicate)
{
	return predicate->test == PFS_TEST_RANGE && predicate->field == PFS_FIELD_PARENT &&
	       predicate->low == predicate->high && !predicate->negated;
}

/* -E2BIG: they are many, and a scan of their range is faster. */
static int select_children(struct pfs_tree *tree, struct pfs_slots *out, uint64_t ino)
{
	uint32_t slot = pfs_scan_slot_of(tree, ino);

	if (slot == PFS_NO_SLOT || !S_ISDIR(tree->image.mode[slot]))
		return 0;
	return pfs_scan_children(tree, out, slot, CHILDREN_FEW);
}

int pfs_scan_select(struct pfs_tree *tree, struct pfs_slots *out,
		    const struct pfs_predicate *predicates, size_t n,
		    const struct pfs_slots *within, const struct pfs_scan_watch *watch)
{
	struct pfs_selection selection;
	int error;

	*out = (struct pfs_slots){0};
	if (n == 1 && !within && is_number(predicates))
		return select_number(tree, out, (uint64_t)predicates->low);
	if (n == 1 && !within && is_parent(predicates)) {
		error = select_children(tree, out, (uint64_t)predicates->low);
		if (error != -E2BIG)
			return error;
	}
	error = pfs_selection_init(&selection, tree, predicates, n, watch);
	if (!error)
		error = select_begun(&selection, out, within);
	pfs_selection_finish(&selection);
	return error;
}

bool pfs_scan_is_short(struct pfs_tree *tree, const struct pfs_predicate *predicates, size_t n)
{
	struct pfs_selection selection = {0};
	bool is_short = !pfs_selection_init(&selection, tree, predicates, n, NULL) &&
			!pfs_selection_begin(&selection, NULL) && selection.list;

	pfs_selection_finish(&selection);
	return is_short;
}

void pfs_scan_weigh(struct pfs_tree *tree, struct pfs_scan_weighed *out, const struct pfs_predicate *predicates,
		    size_t n)
{
	struct pfs_selection selection = {0};
	bool has_total = false;

	*out = (struct pfs_scan_weighed){.index = NULL};
	for (size_t i = 0; i < n; i++) /* totals are not made for a guess */
		has_total |= pfs_field_is_total(predicates[i].field);
	if (has_total || pfs_selection_init(&selection, tree, predicates, n, NULL) ||
	    pfs_selection_weigh(&selection, out))
		*out = (struct pfs_scan_weighed){.index = NULL};
	pfs_selection_finish(&selection);
}

uint64_t pfs_scan_estimate(struct pfs_tree *tree, const char **how,
			   const struct pfs_predicate *predicates, size_t n)
{
	struct pfs_predicate *ready PFS_FREE = calloc(n + 1, sizeof(*ready));
	struct pfs_selection selection = {0};
	uint64_t estimate = 0;
	size_t n_ready = 0;
	int error = ready ? 0 : -ENOMEM;

	*how = "nothing";
	/* totals are not made for a guess */
	for (size_t i = 0; i < n && !error; i++)
		if (!pfs_field_is_total(predicates[i].field) || pfs_totals_are_made(tree))
			ready[n_ready++] = predicates[i];
	if (!error)
		error = pfs_selection_init(&selection, tree, ready, n_ready, NULL);
	if (!error)
		error = pfs_selection_begin(&selection, NULL);
	if (!error)
		error = pfs_selection_order(&selection, true);
	if (!error) {
		estimate = (uint64_t)(selection.share * (double)pfs_selection_size(&selection));
		*how = selection.how;
	}
	pfs_selection_finish(&selection);
	return PFS_MIN(estimate, tree->image.nodes);
}
