/* SPDX-License-Identifier: MIT */
/* Predicates become tests: each by the columns, names or bits that it has to look at. */
#include "fs/nodes/scan_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/order.h"
#include "fs/content/hardlink.h"
#include "fs/image/children.h"
#include "fs/image/names.h"
#include "fs/image/device_lookup.h"
#include "fs/image/totals.h"
#include "fs/nodes/index_paths.h"
#include "fs/tree/tree_impl.h"

#pragma GCC diagnostic error "-Wswitch" /* a source that a switch without default lacks */

/* ---- integers ---- */

static void set_nothing(struct pfs_scan_test *test)
{
	test->how = PFS_HOW_NOTHING;
}

/* low <= the column <= high, as far as the column's type goes. */
static void set_u32(struct pfs_scan_test *test, const uint32_t *column, int64_t low, int64_t high)
{
	test->how = PFS_HOW_U32;
	test->column = column;
	test->low = PFS_MAX(low, 0);
	test->high = PFS_MIN(high, (int64_t)UINT32_MAX);
	if (test->low > test->high)
		set_nothing(test);
}

static void set_i64(struct pfs_scan_test *test, const void *column)
{
	test->how = PFS_HOW_I64;
	test->column = column;
}

/* The types whose letters are from low to high. */
static void set_type(struct pfs_scan_test *test, int64_t low, int64_t high)
{
	static const char letters[] = "?pc?d?b?f?l?s???"; /* by the mode's type bits */
	uint16_t types = 0;

	for (unsigned i = 0; i < 16; i++)
		if (letters[i] != '?' && letters[i] >= low && letters[i] <= high)
			types |= (uint16_t)(1u << i);
	test->how = PFS_HOW_TYPE;
	test->low = types;
}

static void set_mask(struct pfs_scan_test *test, int64_t mask, int64_t wanted)
{
	test->how = PFS_HOW_MASK;
	test->low = mask & 0xffff;
	test->high = wanted;
	if (wanted & ~test->low)
		set_nothing(test);
}

static void set_child_of(struct pfs_scan_test *test, const struct pfs_image *image, uint32_t slot)
{
	test->slot = slot;
	test->relation = PFS_TEST_CHILD_OF;
	set_u32(test, image->parent, slot, slot);
}

/* A parent's number is compared as its slot where it can be. */
static void set_parent(struct pfs_scan_test *test, const struct pfs_tree *tree)
{
	uint32_t slot;

	test->not_root = true;
	test->how = PFS_HOW_INTEGER;
	if (test->low != test->high)
		return;
	slot = pfs_scan_slot_of(tree, (uint64_t)test->low);
	if (slot == PFS_NO_SLOT)
		set_nothing(test);
	else
		set_child_of(test, &tree->image, slot);
}

static void set_ino(struct pfs_scan_test *test, const struct pfs_tree *tree)
{
	set_i64(test, tree->image.prime);
	if (test->low != test->high)
		return;
	test->slot = pfs_scan_slot_of(tree, (uint64_t)test->low);
	if (test->slot == PFS_NO_SLOT) {
		set_nothing(test);
		return;
	}
	test->how = PFS_HOW_SLOT;
	test->low = test->high = test->slot;
}

/* Few nodes have one: they are listed, those alone that have one in the range, or have one not in
 * it. */
static int set_link(struct pfs_scan_test *test, struct pfs_tree *tree, bool inside)
{
	test->how = PFS_HOW_LIST;
	test->negated = false;
	return pfs_hard_link_slots(tree, &test->list, &test->n_list, test->low, test->high, inside);
}

static int set_source(struct pfs_scan_test *test, struct pfs_tree *tree)
{
	const void *array = pfs_field_array(&tree->image, test->field);

	test->how = PFS_HOW_INTEGER;
	switch (pfs_fields[test->field].source) {
	case PFS_SOURCE_U16:
		if (test->field == PFS_FIELD_MODE && test->low == test->high)
			set_mask(test, 0xffff, test->low);
		return 0;
	case PFS_SOURCE_U32:
		set_u32(test, array, test->low, test->high);
		return 0;
	case PFS_SOURCE_I64:
	case PFS_SOURCE_TIME:
		set_i64(test, array);
		return 0;
	case PFS_SOURCE_INO:
		set_ino(test, tree);
		return 0;
	case PFS_SOURCE_TYPE:
		set_type(test, test->low, test->high);
		return 0;
	case PFS_SOURCE_PARENT:
		set_parent(test, tree);
		return 0;
	case PFS_SOURCE_DEPTH:
		test->how = PFS_HOW_DEPTH;
		return 0;
	case PFS_SOURCE_LINK:
		return set_link(test, tree, !test->negated);
	case PFS_SOURCE_LINKS:
	case PFS_SOURCE_RDEV:
	case PFS_SOURCE_READDIR:
	case PFS_SOURCE_TOTAL: /* they are there */
	case PFS_SOURCE_TOTAL_TIME:
		return 0;
	case PFS_SOURCE_NONE:
	case PFS_SOURCE_COMPARED: /* nor is this pushed down */
	case PFS_SOURCE_NAME:
	case PFS_SOURCE_EXT:
	case PFS_SOURCE_TARGET:
	case PFS_SOURCE_PATH:
	case PFS_SOURCE_PREORDER:
		break;
	}
	return -EINVAL;
}

static int set_range(struct pfs_scan_test *test, struct pfs_tree *tree)
{
	if (test->low > test->high) {
		set_nothing(test);
		test->not_root = test->field == PFS_FIELD_PARENT;
		return test->field == PFS_FIELD_LINK ? set_link(test, tree, !test->negated) : 0;
	}
	return set_source(test, tree);
}

/* ---- subtrees ---- */

static int set_under(struct pfs_scan_test *test, struct pfs_tree *tree)
{
	int error;

	test->relation = PFS_TEST_UNDER;
	test->how = PFS_HOW_SLOT;
	test->low = 0;
	test->high = UINT32_MAX;
	if (test->slot == tree->image.root)
		return 0;
	test->low = test->high = test->slot;
	if (!S_ISDIR(tree->image.mode[test->slot]))
		return 0;
	error = pfs_span_ranges(tree, &test->ranges, &test->n_ranges, test->slot);
	if (error == -ENODATA)
		test->how = PFS_HOW_CLIMB;
	else if (!error && (test->n_ranges > 1 || test->ranges[0].from != test->slot))
		test->how = PFS_HOW_RANGES;
	else if (!error)
		test->high = (int64_t)test->ranges[0].to - 1;
	return error == -ENODATA ? 0 : error;
}

/* ---- bytes ---- */

static void set_path_slot(struct pfs_scan_test *test, uint32_t slot)
{
	test->slot = slot;
	test->how = PFS_HOW_SLOT;
	test->low = test->high = slot;
	if (slot == PFS_NO_SLOT)
		set_nothing(test);
}

/* The node whose path has exactly these bytes. */
static uint32_t node_at(struct pfs_tree *tree, const char *path, size_t len)
{
	uint32_t slot = tree->image.root;
	const char *end = path + len;

	if (len == 0 || *path != '/')
		return PFS_NO_SLOT;
	if (len == 1 || pfs_path_index_find(tree, &slot, path, len) == 0)
		return slot;
	while (path < end && slot != PFS_NO_SLOT) {
		const char *name = path + 1, *slash = memchr(name, '/', (size_t)(end - name));

		path = slash ? slash : end;
		if (path == name || path - name > PFS_NAME_MAX || !S_ISDIR(tree->image.mode[slot]))
			return PFS_NO_SLOT;
		slot = pfs_image_child(tree, slot, name, (size_t)(path - name));
	}
	return slot;
}

/* What begins so lies under the directory before the last slash, which will be another test.  If
 * that is all that is asked, the text is not looked at. */
static int set_path_under(struct pfs_scan_test *test, struct pfs_tree *tree)
{
	const struct pfs_text_match *text = &test->text;
	const uint8_t *slash = memrchr(text->prefix, '/', text->prefix_len);
	size_t above = slash ? (size_t)(slash - text->prefix) : 0;
	uint32_t slot;

	if (!slash || text->prefix[0] != '/') {
		set_nothing(test);
		return 0;
	}
	slot = above ? node_at(tree, (const char *)text->prefix, above) : tree->image.root;
	if (slot == PFS_NO_SLOT) {
		set_nothing(test);
		return 0;
	}
	test->slot = slot;
	if (above + 1 < text->prefix_len || text->rest != PFS_REST_NONE || text->suffix_len ||
	    text->needle.len)
		return 0;
	PFS_TRY(set_under(test, tree));
	test->proper = above > 0; /* the root's path ends in a slash itself */
	test->low += test->proper && test->how == PFS_HOW_SLOT;
	return 0;
}

/* Returns true if a frozen tree's index lists the paths, so that nobody has to know what is under
 * their directory. */
static bool is_listed(const struct pfs_scan_test *test, struct pfs_tree *tree)
{
	struct pfs_path_range range;
	bool exact;

	return !test->negated && pfs_path_range_of(&range, &exact, &test->text) &&
	       pfs_path_index_is_lent(tree);
}

static int set_path(struct pfs_scan_test *test, struct pfs_tree *tree)
{
	const struct pfs_text_match *text = &test->text;
	bool exact = text->rest == PFS_REST_NONE && text->max_len == text->prefix_len;

	test->how = PFS_HOW_TEXT;
	if (text->fold || text->prefix_len == 0)
		return 0;
	if (!exact)
		return is_listed(test, tree) ? 0 : set_path_under(test, tree);
	set_path_slot(test, node_at(tree, (const char *)text->prefix, text->prefix_len));
	return 0;
}

static int set_text(struct pfs_scan_test *test, struct pfs_tree *tree,
		    const struct pfs_predicate *predicate)
{
	if (test->field == PFS_FIELD_PREORDER)
		return -EINVAL;
	if (test->field == PFS_FIELD_EXT && predicate->test == PFS_TEST_EQUAL && !test->negated) {
		test->how = PFS_HOW_NAME;
		return pfs_scan_match_init_ext(&test->text, predicate->text, predicate->text_len);
	}
	PFS_TRY(pfs_scan_match_init(&test->text, predicate));
	test->how = test->field == PFS_FIELD_NAME ? PFS_HOW_NAME : PFS_HOW_TEXT;
	return test->field == PFS_FIELD_PATH ? set_path(test, tree) : 0;
}

/* Prepares a test that the field has no value. */
static int set_none(struct pfs_scan_test *test, struct pfs_tree *tree)
{
	const struct pfs_image *image = &tree->image;
	bool negated = test->negated;

	switch (pfs_fields[test->field].source) {
	case PFS_SOURCE_PARENT:
		test->how = PFS_HOW_SLOT;
		test->low = test->high = image->root;
		return 0;
	case PFS_SOURCE_LINK:
		test->low = INT64_MIN;
		test->high = INT64_MAX;
		PFS_TRY(set_link(test, tree, true));
		test->negated = !negated;
		return 0;
	case PFS_SOURCE_EXT:
		test->how = PFS_HOW_TEXT;
		test->is_none = true;
		return 0;
	case PFS_SOURCE_TARGET:
		set_type(test, 'l', 'l');
		test->negated = !test->negated;
		return 0;
	case PFS_SOURCE_U16: /* all nodes have one */
	case PFS_SOURCE_U32:
	case PFS_SOURCE_I64:
	case PFS_SOURCE_TIME:
	case PFS_SOURCE_INO:
	case PFS_SOURCE_TYPE:
	case PFS_SOURCE_DEPTH:
	case PFS_SOURCE_LINKS:
	case PFS_SOURCE_RDEV:
	case PFS_SOURCE_READDIR:
	case PFS_SOURCE_TOTAL:
	case PFS_SOURCE_TOTAL_TIME:
	case PFS_SOURCE_NAME:
	case PFS_SOURCE_PATH:
	case PFS_SOURCE_PREORDER:
		set_nothing(test);
		return 0;
	case PFS_SOURCE_NONE:
	case PFS_SOURCE_COMPARED:
		break;
	}
	return -EINVAL;
}

/* ---- other relations ---- */

/* The host walks up once, whoever answers single questions: a kernel would be asked for each. */
static int set_ancestors(struct pfs_scan_test *test, const struct pfs_tree *tree)
{
	const struct pfs_image *image = &tree->image;
	size_t capacity = 0;

	test->how = PFS_HOW_LIST;
	pfs_device_lookup_count(tree, PFS_QUESTION_ANCESTOR, false, 0);
	for (uint32_t slot = image->parent[test->slot]; slot != PFS_NO_SLOT;
	     slot = image->parent[slot]) {
		PFS_TRY(pfs_grow(&test->list, &capacity, test->n_list + 1, sizeof(*test->list)));
		test->list[test->n_list++] = slot;
	}
	if (test->n_list)
		qsort(test->list, test->n_list, sizeof(*test->list), pfs_compare_u32);
	return 0;
}

static int set_relation(struct pfs_scan_test *test, struct pfs_tree *tree, enum pfs_test relation)
{
	test->slot = pfs_scan_slot_of(tree, (uint64_t)test->low);
	if (test->slot == PFS_NO_SLOT)
		return -ENOENT;
	if (relation == PFS_TEST_ANCESTOR_OF)
		return set_ancestors(test, tree);
	if (relation != PFS_TEST_CHILD_OF)
		return set_under(test, tree);
	set_child_of(test, &tree->image, test->slot);
	return 0;
}

/* ---- all of it ---- */

static int set(struct pfs_scan_test *test, struct pfs_tree *tree,
	       const struct pfs_predicate *predicate)
{
	bool bytes = pfs_field_is_bytes(predicate->field);

	*test = (struct pfs_scan_test){
		.negated = predicate->negated,
		.field = predicate->field,
		.low = predicate->low,
		.high = predicate->high,
		.slot = PFS_NO_SLOT,
	};
	switch (predicate->test) {
	case PFS_TEST_RANGE:
		return bytes ? -EINVAL : set_range(test, tree);
	case PFS_TEST_MASK:
		set_mask(test, test->low, test->high);
		return test->field == PFS_FIELD_MODE ? 0 : -EINVAL;
	case PFS_TEST_NONE:
		return set_none(test, tree);
	case PFS_TEST_UNDER:
	case PFS_TEST_CHILD_OF:
	case PFS_TEST_ANCESTOR_OF:
		return set_relation(test, tree, predicate->test);
	case PFS_TEST_SHOWN:
		test->how = PFS_HOW_PARENT_BITS;
		test->bits = predicate->bits;
		return 0;
	default:
		return bytes ? set_text(test, tree, predicate) : -EINVAL;
	}
}

/* Ranges of slots say something of it that is not as good without: not of what is a few nodes, or
 * all. */
static bool wants_spans(struct pfs_tree *tree, const struct pfs_predicate *predicate)
{
	uint32_t slot = pfs_scan_slot_of(tree, (uint64_t)predicate->low),
		 left = pfs_selection_few(tree->image.end);
	struct pfs_children children;
	struct pfs_btree_entry entry;

	if (slot == PFS_NO_SLOT || !S_ISDIR(tree->image.mode[slot]))
		return false;
	if (predicate->test == PFS_TEST_UNDER)
		return slot != tree->image.root;
	pfs_children_begin(&children, tree, slot, 0, 0);
	while (left && pfs_children_next(&children, &entry))
		left--;
	return !left;
}

/* What the test asks about, made once for all. */
static int prepare(struct pfs_tree *tree, const struct pfs_predicate *predicate,
		   const struct pfs_scan_watch *watch)
{
	/* Who asks for all paths but some has no use for the index. */
	bool is_path = predicate->field == PFS_FIELD_PATH && predicate->test > PFS_TEST_EQUAL &&
		       predicate->test < PFS_TEST_UNDER &&
		       (predicate->negated || !pfs_path_index_is_lent(tree));

	if (predicate->test == PFS_TEST_RANGE && pfs_field_is_total(predicate->field))
		return pfs_scan_prepare_totals(tree, watch);
	if (is_path ||
	    ((predicate->test == PFS_TEST_CHILD_OF || predicate->test == PFS_TEST_UNDER) &&
	     wants_spans(tree, predicate)))
		return pfs_scan_prepare_spans(tree, watch);
	return 0;
}

int pfs_selection_init(struct pfs_selection *selection, struct pfs_tree *tree,
		       const struct pfs_predicate *predicates, size_t n,
		       const struct pfs_scan_watch *watch)
{
	struct pfs_names_view names;

	*selection = (struct pfs_selection){.tree = tree}; /* it is finished after an error, too */
	for (size_t i = 0; i < n; i++)
		PFS_TRY(prepare(tree, &predicates[i], watch)); /* may let go of the tree */
	pfs_names_view(tree->image.names, &names);
	*selection = (struct pfs_selection){
		.tree = tree,
		.image = &tree->image,
		.names = {.bytes = names.heap,
			  .size = names.heap_size,
			  .place_shift = (uint8_t)names.place_shift,
			  .length_size = 1},
		.all_live = tree->image.nodes == tree->image.end,
		.to = tree->image.end,
		.watch = watch,
	};
	/* one more of each, for what a path's beginning comes to */
	selection->tests = selection->few;
	selection->order = selection->few_order;
	if (2 * n + 1 > PFS_TESTS_FEW) {
		selection->tests = calloc(2 * n + 1, sizeof(*selection->tests));
		selection->order = calloc(2 * n + 1, sizeof(struct pfs_scan_test *));
	}
	if (!selection->tests || !selection->order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		selection->n_tests++;
		PFS_TRY(set(&selection->tests[i], tree, &predicates[i]));
	}
	for (size_t i = 0; i < n; i++) {
		struct pfs_scan_test *test = &selection->tests[i];

		if (test->how != PFS_HOW_TEXT || test->slot == PFS_NO_SLOT || test->negated)
			continue;
		selection->tests[selection->n_tests] = (struct pfs_scan_test){.slot = test->slot};
		PFS_TRY(set_under(&selection->tests[selection->n_tests++], tree));
	}
	return 0;
}

void pfs_selection_finish(struct pfs_selection *selection)
{
	for (size_t i = 0; i < selection->n_tests; i++) {
		struct pfs_scan_test *test = &selection->tests[i];

		pfs_text_match_finish(&test->text);
		free(test->list);
		free(test->ranges);
		free(test->climbed);
		free(test->own_bits);
	}
	if (selection->tests != selection->few)
		free(selection->tests);
	if (selection->order != selection->few_order)
		free(selection->order);
	free(selection->own_list);
}
