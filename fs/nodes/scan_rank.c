/* SPDX-License-Identifier: MIT */
/* In which order a selection's tests are made: first the test that takes away the most for the
 * least. What each takes away a sample of the slots tells; what it costs is known by how it is
 * done. */
#include "fs/nodes/scan_impl.h"

#include "fs/tree/tree_impl.h"

#define SAMPLE_WORDS 64u /* places spread over the slots to be looked at ... */
#define SAMPLE_BITS  UINT64_C(0x1111111111111111) /* ... and which of the 64 slots there */

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

/* Those of the sample's slots that have a name. */
static uint64_t live_bits(const struct pfs_image *image, uint32_t first)
{
	uint64_t live = 0;

	for (uint64_t left = SAMPLE_BITS; left; left &= left - 1) {
		uint32_t slot = first + (uint32_t)__builtin_ctzll(left);

		if (slot < image->end && pfs_image_is_live(image, slot))
			live |= left & -left;
	}
	return live;
}

/* Takes some of the slots through all tests, to know what they leave. */
static int sample(struct pfs_selection *selection)
{
	_Atomic uint64_t work = 0;
	struct pfs_scan_worker worker = pfs_scan_worker_of(selection, &work);
	uint32_t step = (selection->to - selection->from) / SAMPLE_WORDS;
	size_t all = 0, total = 0;
	int error = 0;

	for (uint32_t w = 0; w < SAMPLE_WORDS && !error && worker.next == UINT32_MAX; w++) {
		uint32_t first = (selection->from + w * step) / 64 * 64;
		uint64_t live = live_bits(selection->image, first), in_all = live;

		total += (size_t)__builtin_popcountll(live);
		for (size_t i = 0; i < selection->n_order && !error; i++) {
			uint64_t bits = live;

			error = pfs_scan_filter(&worker, selection->order[i], &bits, first, 1);
			selection->order[i]->passed += (unsigned)__builtin_popcountll(bits);
			in_all &= bits;
		}
		all += (size_t)__builtin_popcountll(in_all);
	}
	for (size_t i = 0; i < selection->n_order && !error; i++)
		selection->order[i]->share =
			((float)selection->order[i]->passed + 0.5f) / ((float)total + 1.0f);
	selection->share = ((double)all + 0.5) / ((double)total + 1.0);
	pfs_scan_worker_finish(&worker);
	return error;
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

int pfs_selection_order(struct pfs_selection *selection, bool estimate)
{
	selection->share = 1.0;
	for (size_t i = 0; i < selection->n_tests; i++) {
		struct pfs_scan_test *test = &selection->tests[i];

		if (test->done)
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
