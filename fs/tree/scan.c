/* SPDX-License-Identifier: MIT */
/* Sets of nodes by predicates. */
#include "fs/tree/scan_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/tree/pattern.h"
#include "fs/tree/totals.h"

#define STOP_EVERY 4096u /* nodes between two looks at *stop */

uint64_t pfs_scan_lock(struct pfs_tree *tree)
{
	(void)pthread_rwlock_rdlock(&tree->lock);
	return tree->image.epoch;
}

void pfs_scan_unlock(struct pfs_tree *tree)
{
	(void)pthread_rwlock_unlock(&tree->lock);
}

uint32_t pfs_scan_end(const struct pfs_tree *tree)
{
	return tree->image.end;
}

uint32_t pfs_scan_slot_of(const struct pfs_tree *tree, uint64_t ino)
{
	uint32_t slot = pfs_image_slot(tree, ino);

	return slot != PFS_NO_SLOT && pfs_scan_is_live(&tree->image, slot) ? slot : PFS_NO_SLOT;
}

void pfs_slots_finish(struct pfs_slots *slots)
{
	free(slots->slot);
	*slots = (struct pfs_slots){0};
}

/* ---- predicates made ready ---- */

static bool is_relation(enum pfs_test test)
{
	return test == PFS_TEST_UNDER || test == PFS_TEST_CHILD_OF || test == PFS_TEST_ANCESTOR_OF;
}

static int check(const struct pfs_predicate *predicate)
{
	bool bytes = pfs_field_is_bytes(predicate->field);

	switch (predicate->test) {
	case PFS_TEST_RANGE:
		return bytes ? -EINVAL : 0;
	case PFS_TEST_MASK:
		return predicate->field == PFS_FIELD_MODE ? 0 : -EINVAL;
	case PFS_TEST_NONE:
	case PFS_TEST_UNDER:
	case PFS_TEST_CHILD_OF:
	case PFS_TEST_ANCESTOR_OF:
		return 0;
	default:
		return bytes ? 0 : -EINVAL;
	}
}

/* *test is to be finished in any case. */
static int prepare(struct pfs_tree *tree, struct pfs_scan_test *test,
		   const struct pfs_predicate *predicate)
{
	*test = (struct pfs_scan_test){
		.field = predicate->field,
		.test = predicate->test,
		.negated = predicate->negated,
		.low = predicate->low,
		.high = predicate->high,
		.text = predicate->text,
		.high_text = predicate->high_text,
		.text_len = predicate->text_len,
		.high_len = predicate->high_len,
	};
	PFS_TRY(check(predicate));
	if (is_relation(test->test)) {
		test->slot = pfs_scan_slot_of(tree, (uint64_t)test->low);
		return test->slot == PFS_NO_SLOT ? -ENOENT : 0;
	}
	if (test->field >= PFS_FIELD_SUBTREE_COUNT && test->field <= PFS_FIELD_SUBTREE_MTIME)
		PFS_TRY(pfs_totals_prepare(tree));
	if (test->test == PFS_TEST_GLOB || test->test == PFS_TEST_LIKE) {
		test->owned = strndup(predicate->text, predicate->text_len);
		test->text = test->owned;
		return test->owned ? 0 : -ENOMEM;
	}
	return 0;
}

struct selection {
	struct pfs_tree *tree;
	struct pfs_scan_test *tests;
	size_t n_tests;
	struct pfs_scan_text room;
	const volatile bool *stop;
};

static void finish(struct selection *selection)
{
	for (size_t i = 0; i < selection->n_tests && selection->tests; i++)
		free(selection->tests[i].owned);
	free(selection->tests);
	free(selection->room.bytes);
}

static int start(struct selection *selection, struct pfs_tree *tree,
		 const struct pfs_predicate *predicates, size_t n, const volatile bool *stop)
{
	int error = 0;

	*selection = (struct selection){.tree = tree, .n_tests = n, .stop = stop};
	selection->tests = calloc(PFS_MAX(n, 1), sizeof(*selection->tests));
	if (!selection->tests)
		return -ENOMEM;
	for (size_t i = 0; i < n && !error; i++)
		error = prepare(tree, &selection->tests[i], &predicates[i]);
	if (error)
		finish(selection);
	return error;
}

/* ---- one test of one node ---- */

/* Whether a comes before b, by memcmp; the shorter one first. */
static bool is_before(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int order = memcmp(a, b, PFS_MIN(a_len, b_len));

	return order < 0 || (order == 0 && a_len < b_len);
}

static bool bytes_match(const struct pfs_scan_test *test, const char *bytes, size_t len)
{
	switch (test->test) {
	case PFS_TEST_EQUAL:
		return len == test->text_len && memcmp(bytes, test->text, len) == 0;
	case PFS_TEST_BETWEEN:
		return !(test->text && is_before(bytes, len, test->text, test->text_len)) &&
		       (!test->high_text || is_before(bytes, len, test->high_text, test->high_len));
	case PFS_TEST_GLOB:
		return pfs_glob_matches(test->text, bytes);
	case PFS_TEST_LIKE:
		return pfs_like_matches(test->text, bytes);
	case PFS_TEST_CONTAINS:
		return memmem(bytes, len, test->text, test->text_len) != NULL;
	case PFS_TEST_PREFIX:
		return len >= test->text_len && memcmp(bytes, test->text, test->text_len) == 0;
	default:
		return len >= test->text_len &&
		       memcmp(bytes + len - test->text_len, test->text, test->text_len) == 0;
	}
}

static int test_bytes(struct selection *selection, const struct pfs_scan_test *test, bool *holds,
		      uint32_t slot)
{
	const char *bytes;
	size_t len;

	PFS_TRY(pfs_scan_text(selection->tree, &selection->room, &bytes, &len, test->field, slot));
	if (test->test == PFS_TEST_NONE)
		*holds = !bytes != test->negated;
	else
		*holds = bytes && bytes_match(test, bytes, len) != test->negated;
	return 0;
}

static bool test_integer(const struct pfs_tree *tree, const struct pfs_scan_test *test,
			 uint32_t slot)
{
	int64_t value = pfs_scan_integer(tree, test->field, slot);
	bool holds;

	if (test->test == PFS_TEST_NONE)
		return (value == PFS_FIELD_NONE) != test->negated;
	if (test->test == PFS_TEST_MASK)
		holds = (value & test->low) == test->high;
	else
		holds = value >= test->low && value <= test->high;
	return value != PFS_FIELD_NONE && holds != test->negated;
}

static bool test_relation(const struct pfs_tree *tree, const struct pfs_scan_test *test,
			  uint32_t slot)
{
	bool holds;

	if (test->test == PFS_TEST_CHILD_OF)
		holds = tree->image.parent[slot] == test->slot;
	else if (test->test == PFS_TEST_UNDER)
		holds = pfs_image_is_under(tree, slot, test->slot);
	else
		holds = slot != test->slot && pfs_image_is_under(tree, test->slot, slot);
	return holds != test->negated;
}

static int test_all(struct selection *selection, bool *holds, uint32_t slot)
{
	*holds = pfs_scan_is_live(&selection->tree->image, slot);
	for (size_t i = 0; i < selection->n_tests && *holds; i++) {
		const struct pfs_scan_test *test = &selection->tests[i];

		if (is_relation(test->test))
			*holds = test_relation(selection->tree, test, slot);
		else if (pfs_field_is_bytes(test->field))
			PFS_TRY(test_bytes(selection, test, holds, slot));
		else
			*holds = test_integer(selection->tree, test, slot);
	}
	return 0;
}

/* ---- sets ---- */

static int select_slots(struct selection *selection, struct pfs_slots *out,
			const struct pfs_slots *within)
{
	size_t n = within ? within->n : selection->tree->image.end;
	size_t capacity = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t slot = within ? within->slot[i] : (uint32_t)i;
		bool holds;

		if (i % STOP_EVERY == 0 && selection->stop && *selection->stop)
			return -EINTR;
		PFS_TRY(test_all(selection, &holds, slot));
		if (!holds)
			continue;
		PFS_TRY(pfs_grow(&out->slot, &capacity, out->n + 1, sizeof(*out->slot)));
		out->slot[out->n++] = slot;
	}
	return 0;
}

int pfs_scan_select(struct pfs_tree *tree, struct pfs_slots *out,
		    const struct pfs_predicate *predicates, size_t n,
		    const struct pfs_slots *within, const volatile bool *stop)
{
	struct selection selection;
	int error;

	*out = (struct pfs_slots){0};
	PFS_TRY(start(&selection, tree, predicates, n, stop));
	error = select_slots(&selection, out, within);
	if (error)
		pfs_slots_finish(out);
	finish(&selection);
	return error;
}

int pfs_scan_count(struct pfs_tree *tree, uint64_t *count, const struct pfs_predicate *predicates,
		   size_t n, const volatile bool *stop)
{
	struct pfs_slots slots;

	PFS_TRY(pfs_scan_select(tree, &slots, predicates, n, NULL, stop));
	*count = slots.n;
	pfs_slots_finish(&slots);
	return 0;
}

uint64_t pfs_scan_estimate(struct pfs_tree *tree, const char **how,
			   const struct pfs_predicate *predicates, size_t n)
{
	(void)predicates;
	*how = "all columns";
	return n ? tree->image.nodes / 4 + 1 : tree->image.nodes;
}
