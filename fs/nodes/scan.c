/* SPDX-License-Identifier: MIT */
/* Sets of nodes by predicates: from the slots to be looked at the operators select by those of the
 * tests that they can make, and what they find is taken through the others. */
#include "fs/nodes/scan_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/span.h"
#include "fs/image/totals.h"
#include "fs/tree/tree_impl.h"

#define LISTED_AT_ONCE ((size_t)1 << 17) /* slots, between two looks */
#define PART	     32u /* times pfs_scan_piece, of which those are listed that are left */
#define CHILDREN_FEW 1024u /* of a directory, which are listed by its entries */

/* ---- by the operators ---- */

/* Lists a set, in the list's memory if it has some, which is enough. */
static int list_rows(const struct pfs_selection *selection, struct pfs_slots *out,
		     const struct pfs_run *run, const struct pfs_rows *rows)
{
	uint64_t n, next = 0;
	size_t here = 1;

	PFS_TRY(pfs_rows_count(run, &n, rows));
	if (!n)
		return 0;
	if (!out->slot)
		out->slot = malloc(n * sizeof(*out->slot));
	if (!out->slot)
		return -ENOMEM;
	while (out->n < n && here) {
		here = pfs_rows_next(rows, &next, out->slot + out->n,
				     PFS_MIN(n - out->n, LISTED_AT_ONCE));
		out->n += here;
		PFS_TRY(pfs_scan_look(selection->watch));
	}
	return 0;
}

/* Where what a program selects goes. */
struct selected {
	struct pfs_slots *slots;
	uint64_t *bits; /* not NULL: of all slots, of which those of the selection's range are set,
			   not `slots` */
};

static int take_rows(const struct pfs_selection *selection, const struct selected *out,
		     const struct pfs_run *run, struct pfs_rows *rows)
{
	size_t first = selection->from / 64;

	if (!out->bits)
		return list_rows(selection, out->slots, run, rows);
	PFS_TRY(pfs_rows_here(run, rows));
	pfs_rows_words(rows, out->bits + first, first, pfs_div_round_up(selection->to, 64) - first);
	return 0;
}

/* Selects by the program; `within`: from these rows, NULL: from the selection's. */
static int run_program(const struct pfs_selection *selection, const struct selected *out,
		       const struct pfs_scan_program *p, struct pfs_rows *within)
{
	struct pfs_scan_pauses pauses;
	const struct pfs_run run = pfs_scan_run_of(selection->tree, &pauses, selection->watch);
	const struct pfs_source source = {.table = &p->table,
					  .rows = within,
					  .from = within ? 0 : selection->from,
					  .to = within ? 0 : selection->to};
	struct pfs_rows *rows;
	int error;

	PFS_TRY(pfs_select(&run, &rows, &source, p->n_steps ? &p->program : NULL));
	error = take_rows(selection, out, &run, rows);
	pfs_rows_free(&run, rows);
	return error;
}

/* ---- a range of slots ---- */

/* What is in the image file only is not read into memory to see that names are others. */
struct leaving_out {
	const struct pfs_selection *selection;
	const struct pfs_scan_test *test;
	uint64_t *bits;
	size_t first; /* word */
};

#define LEFT_OUT_AT_ONCE 64u /* words */

static int leave_out(void *context, unsigned worker PFS_UNUSED, uint64_t from, uint64_t to)
{
	const struct leaving_out *leaving = context;
	size_t word = leaving->first + from;

	pfs_scan_leave_out_names(leaving->selection->tree, &leaving->test->text,
				 leaving->bits + word, (uint32_t)(word * 64), to - from);
	return 0;
}

/* Returns true if looking for the test's text in all names at once is worth it: where some of the
 * sample passed it, there are some everywhere. */
static bool leaves_out(const struct pfs_selection *selection, const struct pfs_scan_test *test)
{
	return selection->image->file && test->how == PFS_HOW_NAME && !test->negated &&
	       !test->passed;
}

/* Sets the bits of the range to the slots that the first tests leave, `before` of them; names are
 * read of no others, and leave out some. */
static int leave_out_names(const struct pfs_selection *selection, uint64_t *bits, size_t before)
{
	struct leaving_out leaving = {
		.selection = selection,
		.bits = bits,
		.first = selection->from / 64 / LEFT_OUT_AT_ONCE * LEFT_OUT_AT_ONCE,
	};
	size_t words = pfs_div_round_up(selection->to, 64) - leaving.first;
	struct pfs_scan_program p;
	int error = pfs_scan_program_init(&p, selection, selection->order, before);

	if (!error)
		error = run_program(selection, &(struct selected){.bits = bits}, &p, NULL);
	pfs_scan_program_finish(&p);
	for (size_t i = before; i < selection->n_order && !error; i++) {
		leaving.test = selection->order[i];
		if (leaves_out(selection, leaving.test))
			error = pfs_scan_run_watched(selection->tree, words, LEFT_OUT_AT_ONCE,
						     leave_out, &leaving, selection->watch);
	}
	return error;
}

static int select_range(const struct pfs_selection *selection, struct pfs_slots *out,
			const struct pfs_scan_program *p)
{
	const struct selected listed = {.slots = out};
	uint64_t *bits PFS_FREE = NULL;
	struct pfs_rows rows = {.form = PFS_ROWS_BITS,
				.n_rows = selection->image->end,
				.from = selection->from / 64 * 64,
				.to = selection->to};
	size_t before = 0;

	if (selection->from == selection->to)
		return 0;
	while (before < selection->n_order && !leaves_out(selection, selection->order[before]))
		before++;
	if (before == selection->n_order)
		return run_program(selection, &listed, p, NULL);
	rows.bits = bits = calloc(pfs_div_round_up(rows.n_rows, 64), sizeof(*bits));
	if (!bits)
		return -ENOMEM;
	PFS_TRY(leave_out_names(selection, bits, before));
	return run_program(selection, &listed, p, &rows);
}

/* ---- listed slots ---- */

int pfs_selection_keep(const struct pfs_selection *selection, struct pfs_scan_test *const *tests,
		       size_t n_tests, struct pfs_slots *slots, bool sample, size_t *n_seen)
{
	struct pfs_scan_program p;
	struct pfs_rows rows = {
		.form = PFS_ROWS_LIST, .n_rows = selection->image->end, .list = slots->slot};
	int error = pfs_scan_program_init(&p, selection, tests, n_tests);
	size_t n = slots->n, n_left;

	rows.n_list = (uint32_t)n;
	if (!error && p.n_steps && n) {
		slots->n = 0;
		error = run_program(selection, &(struct selected){.slots = slots}, &p, &rows);
	}
	*n_seen = n_left = slots->n;
	if (!error && p.n_rest)
		error = pfs_scan_rest(selection, tests, n_tests, slots, sample, n_seen);
	*n_seen = n_left ? n * *n_seen / n_left : n; /* what the program has left out counts, too */
	pfs_scan_program_finish(&p);
	return error;
}

/* Copies the slots of the list that are live. */
static int copy_list(const struct pfs_selection *selection, struct pfs_slots *out, bool all_live)
{
	size_t n = selection->n_list;

	if (!n)
		return 0;
	out->slot = malloc(n * sizeof(*out->slot));
	if (!out->slot)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (i && i % LISTED_AT_ONCE == 0)
			PFS_TRY(pfs_scan_look(selection->watch));
		if (all_live || pfs_image_is_live(selection->image, selection->list[i]))
			out->slot[out->n++] = selection->list[i];
	}
	return 0;
}

/* Gives memory for up to `room` slots back if most of it is not used. */
static void give_back(struct pfs_slots *slots, size_t room)
{
	uint32_t *fewer;

	if (slots->n >= room / 2)
		return;
	fewer = realloc(slots->slot, (slots->n + 1) * sizeof(*fewer));
	if (fewer)
		slots->slot = fewer;
}

static int scan_list(const struct pfs_selection *selection, struct pfs_slots *out)
{
	size_t n_seen;

	PFS_TRY(copy_list(selection, out, selection->all_live));
	PFS_TRY(pfs_selection_keep(selection, selection->order, selection->n_order, out, false,
				   &n_seen));
	give_back(out, selection->n_list);
	return 0;
}

/* There is nothing to test: what has a node is listed. */
static int list_range(const struct pfs_selection *selection, struct pfs_slots *out)
{
	out->slot = malloc(((size_t)selection->to - selection->from + 1) * sizeof(*out->slot));
	if (!out->slot)
		return -ENOMEM;
	for (uint32_t slot = selection->from; slot < selection->to; slot++)
		if (pfs_image_is_live(selection->image, slot))
			out->slot[out->n++] = slot;
	return pfs_scan_look(selection->watch);
}

static int add_slots(struct pfs_slots *out, const struct pfs_slots *more)
{
	uint32_t *slots;

	if (!more->n)
		return 0;
	slots = realloc(out->slot, (out->n + more->n) * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	memcpy(slots + out->n, more->slot, more->n * sizeof(*slots));
	*out = (struct pfs_slots){slots, out->n + more->n};
	return 0;
}

/* Tests that look at slots one by one want a list of them, which may be all: one part's at a
 * time. */
static int scan_parts(const struct pfs_selection *selection, struct pfs_slots *out,
		      const struct pfs_scan_program *p)
{
	struct pfs_selection part = *selection;
	const uint32_t most = PART * pfs_scan_piece();
	int error = 0;

	for (uint32_t from = selection->from; from < selection->to && !error; from = part.to) {
		struct pfs_slots found = {0};
		size_t n_seen;

		part.from = from;
		part.to = from + PFS_MIN(selection->to - from, most - from % most);
		error = select_range(&part, &found, p);
		if (!error)
			error = pfs_scan_rest(&part, part.order, part.n_order, &found, false,
					      &n_seen);
		if (!error)
			error = add_slots(out, &found);
		pfs_slots_finish(&found);
	}
	return error;
}

static int scan_range(const struct pfs_selection *selection, struct pfs_slots *out)
{
	struct pfs_scan_program p;
	int error = pfs_scan_program_init(&p, selection, selection->order, selection->n_order);

	if (!error)
		error = p.n_rest ? scan_parts(selection, out, &p)
				 : select_range(selection, out, &p);
	pfs_scan_program_finish(&p);
	return error;
}

/* ---- selections ---- */

static int select_begun(struct pfs_selection *selection, struct pfs_slots *out,
			const struct pfs_slots *within)
{
	PFS_TRY(pfs_selection_begin(selection, within));
	PFS_TRY(pfs_selection_order(selection, false));
	if (selection->own_list &&
	    !selection->n_order) /* they are live, having come from an index */
		return copy_list(selection, out, true);
	if (selection->list)
		return scan_list(selection, out);
	if (!selection->n_order && pfs_selection_size(selection) <= PFS_SCAN_SMALL)
		return list_range(selection, out);
	PFS_TRY(scan_range(selection, out));
	pfs_selection_note(selection, out->n);
	return 0;
}

/* Returns true if a node is asked for by its number and nothing else; joins do that a thousand
 * times. */
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

/* Returns true if the children of a node are asked for and nothing else, as each step of a
 * recursive statement does. */
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
	if (error)
		pfs_slots_finish(out);
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

void pfs_scan_weigh(struct pfs_tree *tree, struct pfs_scan_weighed *out,
		    const struct pfs_predicate *predicates, size_t n)
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
