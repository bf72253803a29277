/* SPDX-License-Identifier: MIT */
/* In which order a selection's tests are made: first the test that takes away the most for the
 * least. What each takes away a sample of the slots tells; what it costs is known by how it is
 * done. */
#include "fs/nodes/scan_impl.h"

#include <string.h>

#define SAMPLE_WORDS 64u /* places spread over the slots to be looked at ... */
#define SAMPLE_STEP  4u	 /* ... and every fourth of the 64 slots there */
#define SAMPLE_MAX   (SAMPLE_WORDS * 64u / SAMPLE_STEP)

/* Nanoseconds a slot, and the part that passes where nothing else is known. */
static void guess(struct pfs_scan_test *test)
{
	static const struct {
		float cost, share;
	} guesses[] = {
		[PFS_HOW_NOTHING] = {0.0f, 0.0f},     [PFS_HOW_SLOT] = {0.0f, 0.5f},
		[PFS_HOW_LIST] = {0.0f, 0.001f},      [PFS_HOW_RANGES] = {0.0f, 0.2f},
		[PFS_HOW_U32] = {0.15f, 0.1f},	      [PFS_HOW_I64] = {0.3f, 0.25f},
		[PFS_HOW_MASK] = {0.1f, 0.5f},	      [PFS_HOW_TYPE] = {0.1f, 0.5f},
		[PFS_HOW_NAME] = {3.0f, 0.02f},	      [PFS_HOW_DEPTH] = {5.0f, 0.2f},
		[PFS_HOW_INTEGER] = {5.0f, 0.2f},     [PFS_HOW_TEXT] = {60.0f, 0.1f},
		[PFS_HOW_PARENT_BITS] = {1.0f, 0.5f}, [PFS_HOW_BITS] = {0.0f, 0.2f},
		[PFS_HOW_CLIMB] = {4.0f, 0.2f},
	};
	const struct pfs_text_match *text = &test->text;

	test->cost = guesses[test->how].cost;
	test->share = guesses[test->how].share;
	if (test->how == PFS_HOW_NAME && text->rest != PFS_REST_NONE)
		test->cost += text->prefix_len + text->suffix_len + text->needle.len ? 2.0f : 30.0f;
	if (test->negated)
		test->share = 1.0f - test->share;
}

/* Lists slots with a node, spread over those to be looked at. */
static size_t list_sample(const struct pfs_selection *selection, uint32_t *slots)
{
	const struct pfs_image *image = selection->image;
	uint32_t step = (selection->to - selection->from) / SAMPLE_WORDS;
	size_t n = 0;

	for (uint32_t w = 0; w < SAMPLE_WORDS; w++) {
		uint32_t first = (selection->from + w * step) / 64 * 64;

		for (uint32_t slot = first; slot < first + 64; slot += SAMPLE_STEP)
			if (slot < image->end && pfs_image_is_live(image, slot))
				slots[n++] = slot;
	}
	return n;
}

/* Which part of the sample these tests leave. */
static int try_tests(struct pfs_selection *selection, struct pfs_scan_test *const *tests,
		     size_t n_tests, const uint32_t *sample, size_t n, size_t *passed,
		     double *share)
{
	uint32_t slots[SAMPLE_MAX];
	struct pfs_slots left = {.slot = slots, .n = n};
	size_t n_seen;

	memcpy(slots, sample, n * sizeof(*slots));
	PFS_TRY(pfs_selection_keep(selection, tests, n_tests, &left, true, &n_seen));
	*passed = left.n;
	*share = ((double)left.n + 0.5) / ((double)n_seen + 1.0);
	return 0;
}

/* Takes some of the slots through all tests, to know what they leave. */
static int sample(struct pfs_selection *selection)
{
	uint32_t slots[SAMPLE_MAX];
	size_t n = list_sample(selection, slots), passed;
	double share;

	for (size_t i = 0; i < selection->n_order; i++) {
		struct pfs_scan_test *test = selection->order[i];

		PFS_TRY(try_tests(selection, &test, 1, slots, n, &passed, &share));
		test->passed = (unsigned)passed;
		test->share = (float)share;
	}
	return try_tests(selection, selection->order, selection->n_order, slots, n, &passed,
			 &selection->share);
}

/* What a test costs for each slot that it takes away. */
static float rank(const struct pfs_scan_test *test)
{
	return test->cost / (1.0001f - test->share);
}

static void sort_tests(struct pfs_selection *selection)
{
	struct pfs_scan_test **order = selection->order;

	for (size_t i = 1; i < selection->n_order; i++) {
		struct pfs_scan_test *test = order[i];
		size_t k = i;

		for (; k > 0 && rank(order[k - 1]) > rank(test); k--)
			order[k] = order[k - 1];
		order[k] = test;
	}
}

/* Returns true if the test holds for all slots to be looked at, by their numbers. */
static bool holds_for_all(const struct pfs_selection *selection, const struct pfs_scan_test *test)
{
	return test->how == PFS_HOW_SLOT && test->negated &&
	       (test->high < (int64_t)selection->from || test->low >= (int64_t)selection->to);
}

int pfs_selection_order(struct pfs_selection *selection, bool estimate)
{
	selection->share = 1.0;
	for (size_t i = 0; i < selection->n_tests; i++) {
		struct pfs_scan_test *test = &selection->tests[i];

		if (test->done || holds_for_all(selection, test))
			continue;
		guess(test);
		selection->share *= test->share;
		selection->order[selection->n_order++] = test;
	}
	if (selection->n_order > !estimate && !selection->list &&
	    pfs_selection_size(selection) > 4 * PFS_SCAN_SMALL)
		PFS_TRY(sample(selection));
	sort_tests(selection);
	if (!selection->how) {
		bool names = selection->n_order && selection->order[0]->how == PFS_HOW_NAME;

		selection->how = names ? "all names" : "all columns";
	}
	return 0;
}
