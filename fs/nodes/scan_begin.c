/* SPDX-License-Identifier: MIT */
/* Where a selection begins: with the fewest slots that can be had without looking at all of them.
 */
#include "fs/nodes/scan_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/radix.h"
#include "fs/image/children.h"
#include "fs/image/span.h"
#include "fs/nodes/codes.h"
#include "fs/nodes/index.h"
#include "fs/nodes/index_paths.h"
#include "fs/tree/tree_impl.h"

#define SCATTERED	     64u   /* a subtree's slots are one of so many between: they are listed */
#define RARE	     1024u /* one of so many, and a few: they are listed from a column index ... */
#define RARE_NAMES   128u  /* ... which takes as long as looking at so many names */
#define RARE_PATHS   16u   /* the same of paths, which are made to be looked at */

/* ---- ranges and lists ---- */

static void look_at_nothing(struct pfs_selection *selection)
{
	selection->from = selection->to = 0;
}

static void narrow(struct pfs_selection *selection, int64_t low, int64_t high)
{
	int64_t from = PFS_MAX(low, (int64_t)selection->from);
	int64_t to = PFS_MIN(high, (int64_t)selection->to - 1) + 1;

	if (from >= to) {
		look_at_nothing(selection);
		return;
	}
	selection->from = (uint32_t)from;
	selection->to = (uint32_t)to;
}

static void take_ranges(struct pfs_selection *selection)
{
	for (size_t i = 0; i < selection->n_tests; i++) {
		struct pfs_scan_test *test = &selection->tests[i];

		if (test->how == PFS_HOW_SLOT && !test->negated) {
			narrow(selection, test->low, test->high);
			test->done = true;
			if (test->low == test->high)
				selection->how = "one node";
			else if (selection->to - selection->from < selection->image->end)
				selection->how = "range of slots";
		} else if (test->how == PFS_HOW_RANGES && !test->negated) {
			narrow(selection, test->ranges[0].from,
			       (int64_t)test->ranges[test->n_ranges - 1].to - 1);
			selection->how = "ranges of slots";
		} else if (test->how == PFS_HOW_NOTHING && !test->negated) {
			look_at_nothing(selection);
			test->done = true;
		} else if (test->how == PFS_HOW_NOTHING && !test->not_root) {
			test->done = true;
		}
	}
}

/* Looks at these slots only, and, of those listed before, at these.  own: they are the selection's
 * to free. */
static void take_list(struct pfs_selection *selection, uint32_t *own, const uint32_t *slots,
		      size_t n)
{
	size_t kept = 0;

	if (selection->list && own) {
		for (size_t i = 0; i < n; i++) {
			size_t at = pfs_lower_bound_u32(selection->list, selection->n_list, own[i]);

			if (at < selection->n_list && selection->list[at] == own[i])
				own[kept++] = own[i];
		}
		n = kept;
	}
	if (own) {
		free(selection->own_list);
		selection->own_list = own;
		slots = own;
	}
	kept = pfs_lower_bound_u32(slots, n, selection->from);
	n = pfs_lower_bound_u32(slots, n, selection->to);
	selection->list = &slots[kept];
	selection->n_list = n - kept;
}

static int take_copy(struct pfs_selection *selection, const uint32_t *slots, size_t n)
{
	uint32_t *own = malloc((n + 1) * sizeof(*own));

	if (!own)
		return -ENOMEM;
	if (n)
		memcpy(own, slots, n * sizeof(*own));
	take_list(selection, own, NULL, n);
	return 0;
}

static struct pfs_scan_test *find_test(struct pfs_selection *selection,
				       bool (*is)(const struct pfs_scan_test *test))
{
	for (size_t i = 0; i < selection->n_tests; i++) {
		struct pfs_scan_test *test = &selection->tests[i];

		if (!test->done && !test->negated && is(test))
			return test;
	}
	return NULL;
}

static bool is_ranges(const struct pfs_scan_test *test)
{
	return test->how == PFS_HOW_RANGES;
}

/* The slots of a subtree of several ranges, where they are few of those between. */
static int take_parts(struct pfs_selection *selection)
{
	struct pfs_scan_test *test = find_test(selection, is_ranges);
	size_t n = 0, most;
	uint32_t *own;

	if (!test || selection->list)
		return 0;
	most = pfs_selection_size(selection) / SCATTERED + 16;
	for (size_t i = 0; i < test->n_ranges && n <= most; i++)
		n += test->ranges[i].to - test->ranges[i].from;
	if (n > most)
		return 0;
	own = malloc((n + 1) * sizeof(*own));
	if (!own)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < test->n_ranges; i++)
		for (uint32_t slot = test->ranges[i].from; slot < test->ranges[i].to; slot++)
			if (pfs_image_is_live(selection->image, slot))
				own[n++] = slot;
	test->done = !test->proper;
	take_list(selection, own, NULL, n);
	return 0;
}

static int take_ancestors(struct pfs_selection *selection)
{
	for (size_t i = 0; i < selection->n_tests; i++) {
		struct pfs_scan_test *test = &selection->tests[i];

		if (test->how != PFS_HOW_LIST || test->negated)
			continue;
		PFS_TRY(take_copy(selection, test->list, test->n_list));
		test->done = true;
		selection->how = "ancestors";
	}
	return 0;
}

/* ---- the index of names ---- */

static bool is_child_of(const struct pfs_scan_test *test)
{
	return test->how == PFS_HOW_U32 && test->relation == PFS_TEST_CHILD_OF;
}

static bool is_climb(const struct pfs_scan_test *test)
{
	return test->how == PFS_HOW_CLIMB;
}

static bool is_exact_name(const struct pfs_scan_test *test)
{
	const struct pfs_text_match *text = &test->text;

	return test->how == PFS_HOW_NAME && text->rest == PFS_REST_NONE && !text->fold &&
	       text->max_len == text->prefix_len;
}

static int take_named_child(struct pfs_selection *selection, struct pfs_scan_test *child_of,
			    struct pfs_scan_test *name)
{
	uint32_t slot = pfs_image_child(selection->tree, child_of->slot,
					(const char *)name->text.prefix, name->text.prefix_len);

	child_of->done = name->done = true;
	selection->how = "name index";
	return take_copy(selection, &slot, slot != PFS_NO_SLOT);
}

struct slots {
	uint32_t *slot;
	size_t n, capacity, max;
};

/* Adds the directory's children; -E2BIG when there are more than max in all. */
static int add_children(const struct pfs_tree *tree, struct slots *slots, uint32_t directory)
{
	struct pfs_children children;
	struct pfs_btree_entry entry;

	pfs_children_begin(&children, tree, directory, 0, 0);
	while (pfs_children_next(&children, &entry)) {
		if (slots->n == slots->max)
			return -E2BIG;
		PFS_TRY(pfs_grow(&slots->slot, &slots->capacity, slots->n + 1,
				 sizeof(*slots->slot)));
		slots->slot[slots->n++] = entry.slot;
	}
	return 0;
}

static int add_subtree(const struct pfs_tree *tree, struct slots *slots, uint32_t top)
{
	PFS_TRY(pfs_grow(&slots->slot, &slots->capacity, 1, sizeof(*slots->slot)));
	slots->slot[slots->n++] = top;
	for (size_t i = 0; i < slots->n; i++) {
		uint32_t slot = slots->slot[i];

		if (S_ISDIR(tree->image.mode[slot]))
			PFS_TRY(add_children(tree, slots, slot));
	}
	return 0;
}

int pfs_scan_children(const struct pfs_tree *tree, struct pfs_slots *out, uint32_t directory,
		      size_t max)
{
	struct slots slots = {.max = max};
	int error = add_children(tree, &slots, directory);

	error = error ? error : pfs_radix_sort_u32(slots.slot, slots.n);
	if (error)
		free(slots.slot);
	else
		*out = (struct pfs_slots){.slot = slots.slot, .n = slots.n};
	return error;
}

/* The children, or all that is under the node, if these are few. */
static int take_few(struct pfs_selection *selection, struct pfs_scan_test *test)
{
	struct slots slots = {.max = pfs_selection_few(pfs_selection_size(selection))};
	int error;

	if (test->how == PFS_HOW_CLIMB)
		error = add_subtree(selection->tree, &slots, test->slot);
	else
		error = add_children(selection->tree, &slots, test->slot);
	if (error) {
		free(slots.slot);
		return error == -E2BIG ? 0 : error;
	}
	if (!slots.n)
		PFS_TRY(pfs_grow(&slots.slot, &slots.capacity, 1, sizeof(*slots.slot)));
	error = pfs_radix_sort_u32(slots.slot, slots.n);
	if (error) {
		free(slots.slot);
		return error;
	}
	test->done = !test->proper;
	selection->how = test->how == PFS_HOW_CLIMB ? "subtree by name index" : "children";
	take_list(selection, slots.slot, NULL, slots.n);
	return 0;
}

static int take_children(struct pfs_selection *selection)
{
	struct pfs_scan_test *child_of = find_test(selection, is_child_of);
	struct pfs_scan_test *name = find_test(selection, is_exact_name);
	uint32_t end;

	if (!child_of || selection->from == selection->to)
		return 0;
	if (name)
		return take_named_child(selection, child_of, name);
	PFS_TRY(take_few(selection, child_of));
	if (child_of->done)
		return 0;
	end = pfs_span_end(selection->tree, child_of->slot);
	if (end) /* they are in its range, if there are many */
		narrow(selection, (int64_t)child_of->slot + 1, (int64_t)end - 1);
	return 0;
}

/* ---- subtrees that are no ranges ---- */

static int read_bits(struct pfs_selection *selection, struct pfs_scan_test *test,
		     const struct pfs_bitmap *set)
{
	PFS_TRY(pfs_codes_bits(&test->own_bits, set, selection->image->end));
	test->bits = test->own_bits;
	test->how = PFS_HOW_BITS;
	return 0;
}

static void name_engine(struct pfs_selection *selection, struct pfs_engine *engine)
{
	struct pfs_engine_info info;

	pfs_engine_describe(engine, &info);
	selection->how = info.engine[0] == 'c' ? "codes on cuda" : "codes on host";
}

/* The set by its codes, from the engine, if that is there and up to date.  Else, and where anything
 * fails, each node is asked for its ancestors. */
static void ask_engine(struct pfs_selection *selection, struct pfs_scan_test *test)
{
	struct pfs_engine *engine;
	struct pfs_bitmap *set;

	if (pfs_codes_try(selection->tree, &engine))
		return;
	if (!pfs_engine_subtree(engine, &set, test->slot)) {
		if (!read_bits(selection, test, set))
			name_engine(selection, engine);
		pfs_bitmap_free(set);
	}
}

static int prepare_climb(struct pfs_selection *selection, struct pfs_scan_test *test)
{
	if (pfs_selection_size(selection) <= PFS_SCAN_SMALL)
		return 0;
	ask_engine(selection, test);
	if (test->how == PFS_HOW_CLIMB)
		test->climbed = calloc(selection->image->end, 1);
	return 0;
}

static int take_subtree(struct pfs_selection *selection)
{
	struct pfs_scan_test *climb = find_test(selection, is_climb);

	if (climb && pfs_selection_size(selection) > PFS_SCAN_SMALL)
		PFS_TRY(take_few(selection, climb));
	for (size_t i = 0; i < selection->n_tests; i++) {
		struct pfs_scan_test *test = &selection->tests[i];

		if (!test->done && test->how == PFS_HOW_CLIMB)
			PFS_TRY(prepare_climb(selection, test));
	}
	return 0;
}

/* ---- column indexes ---- */

/* exact: the test holds for all in the range. */
static bool has_range(const struct pfs_scan_test *test, struct pfs_index_range *range, bool *exact)
{
	if (test->done || test->negated || test->relation != PFS_TEST_RANGE ||
	    !pfs_fields[test->field].is_indexed)
		return false;
	if (test->how == PFS_HOW_NAME)
		return pfs_index_range_of_names(range, exact, &test->text);
	*exact = true;
	*range = (struct pfs_index_range){
		.field = test->field, .low = test->low, .high = test->high};
	return test->how == PFS_HOW_U32 || test->how == PFS_HOW_I64;
}

/* Lists the slots of the walk. */
static int take_walk(struct pfs_selection *selection, struct pfs_index_walk *walk)
{
	size_t room = pfs_index_walk_left(walk), n;
	uint32_t *own = malloc((room + 1) * sizeof(*own));
	int error;

	if (!own)
		return -ENOMEM;
	n = pfs_index_walk_next(walk, own, room);
	error = pfs_radix_sort_u32(own, n);
	if (error) {
		free(own);
		return error;
	}
	take_list(selection, own, NULL, n);
	return 0;
}

/* Returns how many slots are few enough to be listed. */
static size_t rare(const struct pfs_selection *selection, const struct pfs_scan_test *test)
{
	return pfs_selection_size(selection) / (test->how == PFS_HOW_NAME ? RARE_NAMES : RARE) + 8;
}

static int take_range(struct pfs_selection *selection, struct pfs_scan_test *test)
{
	struct pfs_index_range range;
	struct pfs_index_walk *walk;
	bool exact;
	int error;

	if (!has_range(test, &range, &exact))
		return 0;
	error = pfs_index_walk_open(&walk, selection->tree, &range, false);
	if (error)
		return error == -ENOENT ? 0 : error;
	if (pfs_index_walk_left(walk) <= rare(selection, test)) {
		error = take_walk(selection, walk);
		test->done = exact;
		selection->how = pfs_fields[test->field].index_name;
	}
	pfs_index_walk_close(walk);
	return error;
}

static int take_ranges_of_values(struct pfs_selection *selection)
{
	for (size_t i = 0; i < selection->n_tests; i++)
		PFS_TRY(take_range(selection, &selection->tests[i]));
	return 0;
}

void pfs_selection_note(const struct pfs_selection *selection, uint64_t found)
{
	size_t size = pfs_selection_size(selection);
	struct pfs_index_range range;
	bool exact;

	if (selection->list)
		return;
	for (size_t i = 0; i < selection->n_order; i++) {
		const struct pfs_scan_test *test = selection->order[i];
		double few = selection->n_order == 1 ? (double)found
						     : (double)test->share * (double)size;

		if (has_range(test, &range, &exact) && few <= (double)rare(selection, test))
			pfs_scan_missed(selection->tree, test->field);
	}
}

/* ---- the path index ---- */

static bool is_range_of_paths(const struct pfs_scan_test *test)
{
	struct pfs_path_range range;
	bool exact;

	return test->how == PFS_HOW_TEXT && test->field == PFS_FIELD_PATH && !test->is_none &&
	       pfs_path_range_of(&range, &exact, &test->text);
}

static int take_paths(struct pfs_selection *selection)
{
	struct pfs_scan_test *test = find_test(selection, is_range_of_paths);
	size_t n = pfs_selection_size(selection) / RARE_PATHS + 8;
	struct pfs_path_range range;
	uint32_t *own;
	bool exact;
	int error;

	if (!test || !pfs_path_range_of(&range, &exact, &test->text))
		return 0;
	own = malloc(n * sizeof(*own));
	error = own ? pfs_path_index_list(own, &n, selection->tree, &range) : -ENOMEM;
	if (error) {
		free(own);
		return error == -ENOENT || error == -E2BIG ? 0 : error;
	}
	test->done = exact;
	selection->how = "path index";
	take_list(selection, own, NULL, n);
	return 0;
}

/* ---- all of it ---- */

/* Begins with where nodes are, and not with their values. */
static int begin_by_place(struct pfs_selection *selection, const struct pfs_slots *within)
{
	take_ranges(selection);
	if (within) {
		take_list(selection, NULL, within->slot, within->n);
		selection->how = "given nodes";
	}
	PFS_TRY(take_paths(selection));
	PFS_TRY(take_parts(selection));
	PFS_TRY(take_ancestors(selection));
	return take_children(selection);
}

int pfs_selection_begin(struct pfs_selection *selection, const struct pfs_slots *within)
{
	PFS_TRY(begin_by_place(selection, within));
	PFS_TRY(take_ranges_of_values(selection));
	return take_subtree(selection);
}

/* ---- for the reader of a plan ---- */

/* A slot of the index costs as much as so many of the scan as `rare` says. */
static int weigh_range(const struct pfs_selection *selection, const struct pfs_scan_test *test,
		       struct pfs_scan_weighed *out)
{
	double rows = (double)test->share * (double)pfs_selection_size(selection);
	struct pfs_scan_weighed weighed = {.index = pfs_fields[test->field].index_name};
	struct pfs_index_range range;
	struct pfs_index_walk *walk;
	bool exact;
	int error;

	if (!has_range(test, &range, &exact))
		return 0;
	error = pfs_index_walk_open(&walk, selection->tree, &range, false);
	if (!error) {
		weighed.is_there = true;
		weighed.is_chosen = pfs_index_walk_left(walk) <= rare(selection, test);
		rows = (double)pfs_index_walk_left(walk);
		pfs_index_walk_close(walk);
	}
	weighed.index_ns =
		(uint64_t)(rows * test->cost * (test->how == PFS_HOW_NAME ? RARE_NAMES : RARE));
	weighed.scan_ns = out->scan_ns;
	if (!out->index || weighed.index_ns < out->index_ns)
		*out = weighed;
	return error == -ENOENT ? 0 : error;
}

int pfs_selection_weigh(struct pfs_selection *selection, struct pfs_scan_weighed *out)
{
	double left = 1, ns = 0;

	PFS_TRY(begin_by_place(selection, NULL));
	if (selection->list)
		return 0;
	PFS_TRY(pfs_selection_order(selection, true));
	for (size_t i = 0; i < selection->n_order; i++) {
		ns += left * selection->order[i]->cost;
		left *= selection->order[i]->share;
	}
	out->scan_ns = (uint64_t)(ns * (double)pfs_selection_size(selection));
	for (size_t i = 0; i < selection->n_order; i++)
		PFS_TRY(weigh_range(selection, selection->order[i], out));
	return 0;
}
