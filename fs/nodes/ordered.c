/* SPDX-License-Identifier: MIT */
/* Which way nodes come in order: sorted, or on a walk, where that passes by fewer than a selection
 * would look at. */
#include "fs/nodes/ordered_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/order.h"
#include "fs/image/totals.h"
#include "fs/nodes/index_paths.h"
#include "fs/tree/tree_impl.h"

#define FIRST	    16u	  /* sorted at least before more are asked for */
#define CHUNK_MIN   256u  /* passed by on a walk before the predicates are tested */
#define CHUNK_MAX   8192u
#define WORTH	    32u	  /* a step of a walk takes as long as looking at so many nodes */

struct pfs_ordered {
	struct pfs_tree *tree;
	struct pfs_ordered_question question;
	struct pfs_order order[PFS_ORDERS_MAX];
	const char *how;
	/* a walk, its predicates aside those that it follows; */
	struct pfs_index_walk *index;
	struct pfs_path_walk *path;
	struct pfs_path_index_walk *paths;
	struct pfs_path_range range; /* of it */
	struct pfs_text_match text;   /* that this is of */
	struct pfs_predicate *predicates;
	size_t n_predicates;
	uint32_t *chunk; /* what it found, still to be given out */
	size_t chunk_n, chunk_done, chunk_size;
	/* or the nodes, sorted by paths; */
	struct pfs_slots slots;
	bool are_in_order; /* as selected */
	/* or being sorted */
	struct pfs_slot_sorting sorting;
	size_t done; /* of the two */
};

/* ---- walks ---- */

/* Estimates how many nodes the walk would pass by until `limit` are found. */
static double steps(const struct pfs_ordered *ordered)
{
	const struct pfs_ordered_question *question = &ordered->question;
	double nodes = ordered->tree->image.nodes, share = 1;
	const char *how;

	if (ordered->n_predicates)
		share = (double)pfs_scan_estimate(ordered->tree, &how, ordered->predicates,
						  ordered->n_predicates) /
			nodes;
	if (question->within)
		share *= (double)question->within->n / nodes;
	return share > 0 ? (double)question->limit / share : nodes;
}

static bool is_filtered(const struct pfs_ordered *ordered)
{
	return ordered->n_predicates || ordered->question.within;
}

static int copy_predicates(struct pfs_ordered *ordered)
{
	size_t n = ordered->question.n;

	ordered->predicates = malloc((n + 1) * sizeof(*ordered->predicates));
	if (!ordered->predicates)
		return -ENOMEM;
	if (n)
		memcpy(ordered->predicates, ordered->question.predicates,
		       n * sizeof(*ordered->predicates));
	ordered->n_predicates = n;
	return 0;
}

static void drop_predicate(struct pfs_ordered *ordered, size_t i)
{
	ordered->predicates[i] = ordered->predicates[--ordered->n_predicates];
}

/* Ranges of what it is ordered by become the walk's. */
static void take_numbers(struct pfs_ordered *ordered, struct pfs_index_range *range)
{
	*range = (struct pfs_index_range){
		.field = ordered->order[0].field, .low = INT64_MIN, .high = INT64_MAX};
	for (size_t i = ordered->n_predicates; i-- > 0;) {
		const struct pfs_predicate *p = &ordered->predicates[i];

		if (p->test != PFS_TEST_RANGE || p->negated || p->field != range->field)
			continue;
		range->low = PFS_MAX(range->low, p->low);
		range->high = PFS_MIN(range->high, p->high);
		drop_predicate(ordered, i);
	}
}

/* One of names, too; *text is to be finished after the range. */
static int take_names(struct pfs_ordered *ordered, struct pfs_index_range *range,
		      struct pfs_text_match *text)
{
	bool exact;

	for (size_t i = 0; i < ordered->n_predicates; i++) {
		const struct pfs_predicate *p = &ordered->predicates[i];

		if (p->field != PFS_FIELD_NAME || p->negated || p->test < PFS_TEST_EQUAL ||
		    p->test > PFS_TEST_PREFIX)
			continue;
		pfs_text_match_finish(text);
		PFS_TRY(pfs_scan_match_init(text, p));
		if (!pfs_index_range_of_names(range, &exact, text))
			continue;
		if (exact)
			drop_predicate(ordered, i);
		return 0;
	}
	*range = (struct pfs_index_range){.field = PFS_FIELD_NAME};
	return 0;
}

/* Leaves ordered->index NULL if there is none, or it is not worth it. */
static int open_index(struct pfs_ordered *ordered, const struct pfs_index_range *range)
{
	double nodes = ordered->tree->image.nodes;
	int error;

	if (range->low > range->high || (is_filtered(ordered) && steps(ordered) > nodes / WORTH))
		return 0;
	error = pfs_index_walk_open(&ordered->index, ordered->tree, range,
				    ordered->order[0].descending);
	if (error == -ENOENT)
		pfs_scan_missed(ordered->tree, range->field);
	ordered->how = pfs_fields[range->field].index_name;
	return error == -ENOENT ? 0 : error;
}

static int try_index(struct pfs_ordered *ordered)
{
	enum pfs_field field = ordered->order[0].field;
	struct pfs_index_range range;
	struct pfs_text_match text = {0};
	int error = 0;

	if (ordered->question.n_order > 1 || !pfs_fields[field].is_indexed)
		return 0;
	if (field == PFS_FIELD_NAME)
		error = take_names(ordered, &range, &text);
	else
		take_numbers(ordered, &range);
	error = error ? error : open_index(ordered, &range);
	pfs_text_match_finish(&text);
	return error;
}

/* The subtree that all lies in. */
static uint32_t take_top(struct pfs_ordered *ordered)
{
	uint32_t top = ordered->tree->image.root;

	for (size_t i = ordered->n_predicates; i-- > 0;) {
		const struct pfs_predicate *p = &ordered->predicates[i];

		if (p->test != PFS_TEST_UNDER || p->negated)
			continue;
		top = pfs_scan_slot_of(ordered->tree, (uint64_t)p->low);
		drop_predicate(ordered, i);
		break;
	}
	return top;
}

static int try_path(struct pfs_ordered *ordered)
{
	uint32_t top;

	if (!pfs_field_is_path(ordered->order[0].field))
		return 0;
	top = take_top(ordered);
	if (top == PFS_NO_SLOT ||
	    steps(ordered) > (double)ordered->tree->image.nodes / WORTH)
		return 0;
	ordered->how = "names from the top down";
	PFS_TRY(pfs_scan_prepare_spans(ordered->tree, ordered->question.watch));
	return pfs_path_walk_open(&ordered->path, ordered->tree, top, &ordered->order[0],
				  ordered->question.watch);
}

/* The first range of paths; *taken: the predicate that says no more than it and is none any more,
 * or has no text. */
static int take_paths(struct pfs_ordered *ordered, bool *is_range, struct pfs_predicate *taken)
{
	bool exact;

	*is_range = false;
	*taken = (struct pfs_predicate){.test = PFS_TEST_NONE};
	for (size_t i = 0; i < ordered->n_predicates && !*is_range; i++) {
		const struct pfs_predicate *p = &ordered->predicates[i];

		if (p->field != PFS_FIELD_PATH || p->negated || p->test < PFS_TEST_EQUAL ||
		    p->test > PFS_TEST_PREFIX)
			continue;
		pfs_text_match_finish(&ordered->text);
		PFS_TRY(pfs_scan_match_init(&ordered->text, p));
		*is_range = pfs_path_range_of(&ordered->range, &exact, &ordered->text);
		if (*is_range && exact) {
			*taken = *p;
			drop_predicate(ordered, i);
		}
	}
	return 0;
}

/* Returns true if the range of the path index has few paths, or few are wanted. */
static bool is_range_worth(struct pfs_ordered *ordered, bool is_range)
{
	double most = (double)ordered->tree->image.nodes / WORTH;
	size_t n = (size_t)most + FIRST;
	uint32_t *slots PFS_FREE = is_range ? malloc(n * sizeof(*slots)) : NULL;
	int error = -E2BIG;

	if (slots)
		error = pfs_path_index_list(slots, &n, ordered->tree, &ordered->range);
	return !error || (error == -E2BIG && steps(ordered) <= most);
}

static int try_path_index(struct pfs_ordered *ordered)
{
	struct pfs_predicate taken;
	bool is_range;
	int error = -ENOENT;

	if (ordered->order[0].field != PFS_FIELD_PATH)
		return 0;
	PFS_TRY(take_paths(ordered, &is_range, &taken));
	for (size_t i = 0; i < ordered->n_predicates && !is_range; i++)
		if (ordered->predicates[i].test == PFS_TEST_UNDER)
			return 0; /* the walk from its top is as good */
	if (!is_range && !ordered->order[0].descending && !pfs_path_index_is_lent(ordered->tree)) {
		PFS_TRY(pfs_scan_prepare_spans(ordered->tree, ordered->question.watch));
		if (pfs_path_walk_is_cheap(ordered->tree, ordered->tree->image.root))
			return 0;
	}
	if (is_range_worth(ordered, is_range))
		error = pfs_path_index_walk_open(&ordered->paths, ordered->tree, &ordered->range,
						 ordered->order[0].descending);
	ordered->how = "path index";
	if (error && taken.test != PFS_TEST_NONE)
		ordered->predicates[ordered->n_predicates++] = taken;
	return error == -ENOENT ? 0 : error;
}

static int step(struct pfs_ordered *ordered, uint32_t *slots, size_t *n)
{
	if (ordered->paths)
		return pfs_path_index_walk_next(ordered->paths, slots, n);
	if (ordered->path)
		return pfs_path_walk_next(ordered->path, slots, n);
	*n = pfs_index_walk_next(ordered->index, slots, *n);
	return 0;
}

static bool has(const struct pfs_slots *slots, uint32_t slot)
{
	return slots->n && bsearch(&slot, slots->slot, slots->n, sizeof(slot), pfs_compare_u32);
}

/* Drops from the chunk the nodes that fail the predicates or are not in `within`. */
static int filter(struct pfs_ordered *ordered)
{
	const struct pfs_slots *within = ordered->question.within;
	uint32_t *sorted PFS_FREE = malloc((ordered->chunk_n + 1) * sizeof(*sorted));
	struct pfs_slots all = {.slot = sorted}, found;
	size_t n = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < ordered->chunk_n; i++)
		if (!within || has(within, ordered->chunk[i]))
			sorted[all.n++] = ordered->chunk[i];
	qsort(sorted, all.n, sizeof(*sorted), pfs_compare_u32);
	PFS_TRY(pfs_scan_select(ordered->tree, &found, ordered->predicates, ordered->n_predicates,
				&all, ordered->question.watch));
	for (size_t i = 0; i < ordered->chunk_n; i++)
		if (has(&found, ordered->chunk[i]))
			ordered->chunk[n++] = ordered->chunk[i];
	ordered->chunk_n = n;
	pfs_slots_finish(&found);
	return 0;
}

/* Walks on until something is found; chunk_n 0: nothing more. */
static int fill_chunk(struct pfs_ordered *ordered)
{
	bool more = true;

	if (!ordered->chunk)
		ordered->chunk = malloc(CHUNK_MAX * sizeof(*ordered->chunk));
	if (!ordered->chunk)
		return -ENOMEM;
	ordered->chunk_done = ordered->chunk_n = 0;
	while (ordered->chunk_n == 0 && more) {
		ordered->chunk_n = ordered->chunk_size;
		ordered->chunk_size = PFS_MIN(ordered->chunk_size * 2, CHUNK_MAX);
		PFS_TRY(step(ordered, ordered->chunk, &ordered->chunk_n));
		PFS_TRY(pfs_scan_look(ordered->question.watch));
		more = ordered->chunk_n > 0;
		if (more)
			PFS_TRY(filter(ordered));
	}
	return 0;
}

static int walk_on(struct pfs_ordered *ordered, uint32_t *slots, size_t *n)
{
	size_t room = *n;

	if (!is_filtered(ordered))
		return step(ordered, slots, n);
	if (ordered->chunk_done == ordered->chunk_n)
		PFS_TRY(fill_chunk(ordered));
	*n = PFS_MIN(room, ordered->chunk_n - ordered->chunk_done);
	if (*n)
		memcpy(slots, ordered->chunk + ordered->chunk_done, *n * sizeof(*slots));
	ordered->chunk_done += *n;
	return 0;
}

/* ---- sorted ---- */

/* The slots, which ascend. */
static int sort_paths(struct pfs_ordered *ordered)
{
	struct pfs_slots *slots = &ordered->slots;

	if (ordered->order[0].field == PFS_FIELD_PATH) {
		PFS_TRY(pfs_scan_sort_paths(ordered->tree, slots, ordered->question.watch));
	} else {
		PFS_TRY(pfs_scan_sort_preorder(ordered->tree, slots, ordered->question.watch));
		PFS_TRY(pfs_slots_ascend(slots, &ordered->are_in_order, ordered->question.watch));
	}
	if (ordered->are_in_order)
		ordered->how = "in order as found";
	return 0;
}

static int select_all(struct pfs_ordered *ordered)
{
	const struct pfs_ordered_question *question = &ordered->question;
	struct pfs_slots slots;
	int error;

	for (size_t i = 0; i < question->n_order; i++)
		if (pfs_field_is_total(ordered->order[i].field))
			PFS_TRY(pfs_scan_prepare_totals(ordered->tree, question->watch));
	PFS_TRY(pfs_scan_select(ordered->tree, &slots, question->predicates, question->n,
				question->within, question->watch));
	ordered->how = "sorted";
	if (pfs_field_is_path(ordered->order[0].field)) {
		ordered->slots = slots;
		return sort_paths(ordered);
	}
	error = pfs_slot_sorting_init(&ordered->sorting, ordered->tree, &slots, ordered->order,
				 question->n_order, question->watch);
	pfs_slots_finish(&slots);
	return error;
}

static int take_sorted(struct pfs_ordered *ordered, uint32_t *slots, size_t *n)
{
	struct pfs_slot_sorting *sorting = &ordered->sorting;
	uint64_t limit = ordered->question.limit;

	if (ordered->done == sorting->sorted)
		PFS_TRY(pfs_slot_sorting_sort(sorting, (size_t)PFS_MAX(limit, FIRST)));
	*n = PFS_MIN(*n, sorting->sorted - ordered->done);
	for (size_t i = 0; i < *n; i++)
		slots[i] = sorting->items[ordered->done + i].value;
	ordered->done += *n;
	return 0;
}

/* Takes slots that are sorted by paths, from their end if that is to be first. */
static void take_slots(struct pfs_ordered *ordered, uint32_t *slots, size_t n)
{
	const struct pfs_slots *all = &ordered->slots;

	if (n && !ordered->order[0].descending)
		memcpy(slots, all->slot + ordered->done, n * sizeof(*slots));
	else
		for (size_t i = 0; i < n; i++)
			slots[i] = all->slot[all->n - 1 - ordered->done - i];
	ordered->done += n;
}

/* ---- all of it ---- */

int pfs_ordered_open(struct pfs_ordered **out, struct pfs_tree *tree,
		     const struct pfs_ordered_question *question)
{
	struct pfs_ordered *ordered = calloc(1, sizeof(*ordered));
	int error;

	*out = NULL;
	if (!ordered)
		return -ENOMEM;
	ordered->tree = tree;
	ordered->question = *question;
	ordered->chunk_size = CHUNK_MIN;
	memcpy(ordered->order, question->order, question->n_order * sizeof(*question->order));
	ordered->question.order = ordered->order;
	error = copy_predicates(ordered);
	if (!error)
		error = try_index(ordered);
	if (!error && !ordered->index)
		error = try_path_index(ordered);
	if (!error && !ordered->index && !ordered->paths)
		error = try_path(ordered);
	if (!error && !pfs_ordered_walks(ordered))
		error = select_all(ordered);
	if (error)
		pfs_ordered_close(ordered);
	else
		*out = ordered;
	return error;
}

void pfs_ordered_close(struct pfs_ordered *ordered)
{
	if (!ordered)
		return;
	pfs_index_walk_close(ordered->index);
	pfs_path_walk_close(ordered->path);
	pfs_path_index_walk_close(ordered->paths);
	pfs_text_match_finish(&ordered->text);
	pfs_slot_sorting_finish(&ordered->sorting);
	pfs_slots_finish(&ordered->slots);
	free(ordered->predicates);
	free(ordered->chunk);
	free(ordered);
}

int pfs_ordered_next(struct pfs_ordered *ordered, uint32_t *slots, size_t *n)
{
	if (pfs_ordered_walks(ordered))
		return walk_on(ordered, slots, n);
	if (ordered->sorting.items)
		return take_sorted(ordered, slots, n);
	*n = PFS_MIN(*n, ordered->slots.n - ordered->done);
	take_slots(ordered, slots, *n);
	return 0;
}

size_t pfs_ordered_memory(const struct pfs_ordered *ordered)
{
	return ordered->slots.n * sizeof(*ordered->slots.slot) +
	       ordered->sorting.n * sizeof(*ordered->sorting.items);
}

const char *pfs_ordered_how(const struct pfs_ordered *ordered)
{
	return ordered->how;
}

bool pfs_ordered_walks(const struct pfs_ordered *ordered)
{
	return ordered->index || ordered->path || ordered->paths;
}

bool pfs_ordered_sorts(const struct pfs_ordered *ordered)
{
	return !ordered->are_in_order;
}

size_t pfs_ordered_selected(const struct pfs_ordered *ordered)
{
	return ordered->slots.n + ordered->sorting.n;
}
