/* SPDX-License-Identifier: MIT */
/* One test of up to a block of slots.  The bits of slots that failed before are clear: columns are
 * read only where enough are left, a word of 64 at a time, and everything else for each that is. */
#include "fs/nodes/scan_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/pattern.h"
#include "fs/image/path.h"

#define FEW_LEFT 3 /* of 64: these alone are read, not the whole column */
#define LOOKS	 256u /* of patterns, at the most: 16 M steps, while the tree is held */
#define OWN_WORK UINT64_C(65536) /* is not told to the other workers */

/* A walk over set bits. */
struct walk {
	const uint64_t *bits;
	size_t words, word;
	uint64_t left; /* of the word before */
};

static inline struct walk walk_bits(const uint64_t *bits, size_t words)
{
	return (struct walk){.bits = bits, .words = words};
}

static inline bool next_bit(struct walk *walk, size_t *i)
{
	while (!walk->left) {
		if (walk->word == walk->words)
			return false;
		walk->left = walk->bits[walk->word++];
	}
	*i = (walk->word - 1) * 64 + (unsigned)__builtin_ctzll(walk->left);
	walk->left &= walk->left - 1;
	return true;
}

static inline void set_bit(uint64_t *bits, size_t i)
{
	bits[i / 64] |= UINT64_C(1) << i % 64;
}

static inline bool get_bit(const uint64_t *bits, size_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

/* ---- columns ---- */

static void read_column(const struct pfs_selection *selection, const struct pfs_scan_test *test,
			uint64_t *out, size_t first, size_t words)
{
	const struct pfs_scan_simd *simd = selection->simd;

	switch (test->how) {
	case PFS_HOW_U32:
		simd->between_u32(out, (const uint32_t *)test->column + first, words,
				  (uint32_t)test->low, (uint32_t)test->high);
		break;
	case PFS_HOW_MASK:
		simd->masked_u16(out, selection->image->mode + first, words, (uint16_t)test->low,
				 (uint16_t)test->high);
		break;
	case PFS_HOW_TYPE:
		simd->type_u16(out, selection->image->mode + first, words, (uint16_t)test->low);
		break;
	default:
		simd->between_i64(out, (const int64_t *)test->column + first, words, test->low,
				  test->high);
	}
}

static bool read_one(const struct pfs_selection *selection, const struct pfs_scan_test *test,
		     size_t slot)
{
	const uint16_t *mode = selection->image->mode;
	int64_t value;

	switch (test->how) {
	case PFS_HOW_U32:
		value = ((const uint32_t *)test->column)[slot];
		break;
	case PFS_HOW_MASK:
		return (mode[slot] & test->low) == test->high;
	case PFS_HOW_TYPE:
		return test->low >> (mode[slot] >> 12) & 1;
	default:
		value = ((const int64_t *)test->column)[slot];
	}
	return value >= test->low && value <= test->high;
}

/* out = the test's bits, right where those of `bits` are set. */
static void by_column(const struct pfs_selection *selection, const struct pfs_scan_test *test,
		      uint64_t *out, const uint64_t *bits, size_t first, size_t words)
{
	size_t w = 0, end;

	while (w < words) {
		uint64_t left = bits[w];

		out[w] = 0;
		if (__builtin_popcountll(left) <= FEW_LEFT) {
			for (; left; left &= left - 1) {
				unsigned i = (unsigned)__builtin_ctzll(left);
				bool holds = read_one(selection, test, first + w * 64 + i);

				out[w] |= (uint64_t)holds << i;
			}
			w++;
			continue;
		}
		for (end = w + 1; end < words && __builtin_popcountll(bits[end]) > FEW_LEFT; end++)
			;
		read_column(selection, test, out + w, first + w * 64, end - w);
		w = end;
	}
}

/* ---- slots and sets of them ---- */

/* Sets the bits of those slots from..to (without it) that are among the words'. */
static void set_run(uint64_t *out, size_t first, size_t words, int64_t from, int64_t to)
{
	from = PFS_MAX(from - (int64_t)first, 0);
	to = PFS_MIN(to - (int64_t)first, (int64_t)words * 64);
	while (from < to) {
		int64_t n = PFS_MIN(to - from, 64 - from % 64);

		out[from / 64] |= ~UINT64_C(0) >> (64 - n) << from % 64;
		from += n;
	}
}

static void by_slot(const struct pfs_scan_test *test, uint64_t *out, size_t first, size_t words)
{
	set_run(out, first, words, test->low, test->high + 1);
}

static void by_ranges(const struct pfs_scan_test *test, uint64_t *out, size_t first, size_t words)
{
	size_t low = 0, high = test->n_ranges;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (test->ranges[middle].to <= first)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < test->n_ranges && test->ranges[low].from < first + words * 64; low++)
		set_run(out, first, words, test->ranges[low].from, test->ranges[low].to);
	if (test->proper && test->slot >= first && test->slot < first + words * 64)
		out[(test->slot - first) / 64] &= ~(UINT64_C(1) << (test->slot - first) % 64);
}

static void by_list(const struct pfs_scan_test *test, uint64_t *out, size_t first, size_t words)
{
	for (size_t k = 0; k < test->n_list; k++)
		if (test->list[k] >= first && test->list[k] < first + words * 64)
			set_bit(out, test->list[k] - first);
}

/* A node is shown where its directory's bit is set; the root always. */
static void by_parent_bits(const struct pfs_image *image, const struct pfs_scan_test *test,
			   uint64_t *out, const uint64_t *bits, size_t first, size_t words)
{
	struct walk walk = walk_bits(bits, words);
	size_t i;

	while (next_bit(&walk, &i)) {
		uint32_t parent = image->parent[first + i];

		if (parent == PFS_NO_SLOT || get_bit(test->bits, parent))
			set_bit(out, i);
	}
}

/* Whether `top` is met on the way up; what is learned on it is noted, by several threads at once.
 */
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

/* ---- how much is done in one hold ---- */

static void tell_work(struct pfs_scan_worker *worker)
{
	atomic_fetch_add_explicit(worker->work, worker->own_work, memory_order_relaxed);
	worker->own_work = 0;
}

static void note_work(struct pfs_scan_worker *worker, uint64_t work)
{
	worker->own_work += work;
	if (worker->work && worker->own_work >= OWN_WORK)
		tell_work(worker);
}

/* True: the slot is left to the next hold, and with it all behind it. */
static bool leave(struct pfs_scan_worker *worker, uint32_t slot)
{
	if (!worker->work || atomic_load_explicit(worker->work, memory_order_relaxed) < PFS_SCAN_WORK)
		return false;
	worker->next = slot;
	return true;
}

/* ---- values ---- */

static int count_look(void *arg)
{
	return ++*(unsigned *)arg > LOOKS;
}

/* -E2BIG: the pattern would take too many steps. */
static int match_holds(const struct pfs_text_match *match, bool *holds, const char *bytes, size_t len)
{
	unsigned looks = 0;
	const struct pfs_pattern_look look = {count_look, &looks};

	*holds = pfs_text_match_holds_outside(match, (const uint8_t *)bytes, len);
	if (*holds && match->rest == PFS_REST_PATTERN &&
	    pfs_pattern_matches_until(holds, &look, pfs_text_match_kind(match), match->text, 0, bytes, len))
		return -E2BIG;
	return 0;
}

/* Text that is not always there: false, negated or not, where it is none. */
static int text_holds(struct pfs_scan_worker *worker, const struct pfs_scan_test *test, bool *holds,
		      uint32_t slot)
{
	const struct pfs_image *image = worker->selection->image;
	const char *bytes;
	size_t len;

	if (test->field == PFS_FIELD_PATH)
		PFS_TRY(pfs_scan_path(worker, image, &bytes, &len, slot));
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

static int holds_for(struct pfs_scan_worker *worker, const struct pfs_scan_test *test, bool *holds,
		     uint32_t slot)
{
	const struct pfs_selection *selection = worker->selection;
	int64_t value;

	if (test->how == PFS_HOW_TEXT)
		return text_holds(worker, test, holds, slot);
	if (test->how == PFS_HOW_CLIMB) {
		*holds = climb(selection->image, test, slot);
		return 0;
	}
	if (test->how == PFS_HOW_DEPTH)
		value = pfs_image_depth(selection->image, slot);
	else
		value = pfs_scan_integer(selection->tree, test->field, slot);
	*holds = value >= test->low && value <= test->high;
	return 0;
}

static int one_by_one(struct pfs_scan_worker *worker, const struct pfs_scan_test *test,
		      uint64_t *out, const uint64_t *bits, size_t first, size_t words)
{
	struct walk walk = walk_bits(bits, words);
	size_t i;

	while (next_bit(&walk, &i)) {
		bool holds;

		if (test->how == PFS_HOW_TEXT && leave(worker, (uint32_t)(first + i)))
			break;
		PFS_TRY(holds_for(worker, test, &holds, (uint32_t)(first + i)));
		if (holds)
			set_bit(out, i);
	}
	return 0;
}

static void verify_names(struct pfs_scan_worker *worker, const struct pfs_text_match *match,
			 uint64_t *bits, size_t first, size_t words)
{
	const struct pfs_selection *selection = worker->selection;
	const uint32_t *place = selection->image->name + first;
	struct walk walk = walk_bits(bits, words);
	size_t i;

	while (next_bit(&walk, &i)) {
		size_t len;
		const uint8_t *name = pfs_heap_text(&selection->names, place[i], &len);

		if (leave(worker, (uint32_t)(first + i)))
			break;
		if (!pfs_pattern_matches(pfs_text_match_kind(match), match->text, 0, name, len))
			bits[i / 64] &= ~(UINT64_C(1) << i % 64);
		note_work(worker, pfs_scan_match_work(match, len));
	}
}

/* Where some of the sample passed, there are some among so many. */
static void find_names(struct pfs_scan_worker *worker, const struct pfs_scan_test *test, uint64_t *out,
		       size_t first, size_t words)
{
	const struct pfs_selection *selection = worker->selection;

	if (!test->passed)
		pfs_scan_leave_out_names(selection->tree, &test->text, out, (uint32_t)first, words);
	pfs_text_match_keep(&test->text, out, &selection->names, selection->image->name + first, words);
	if (test->text.rest == PFS_REST_PATTERN)
		verify_names(worker, &test->text, out, first, words);
}

/* ---- all of it ---- */

/* out, all zero = the test's bits, negation aside. */
static int find(struct pfs_scan_worker *worker, const struct pfs_scan_test *test, uint64_t *out,
		const uint64_t *bits, size_t first, size_t words)
{
	const struct pfs_selection *selection = worker->selection;

	switch (test->how) {
	case PFS_HOW_NOTHING:
		break;
	case PFS_HOW_SLOT:
		by_slot(test, out, first, words);
		break;
	case PFS_HOW_RANGES:
		by_ranges(test, out, first, words);
		break;
	case PFS_HOW_LIST:
		by_list(test, out, first, words);
		break;
	case PFS_HOW_BITS:
		memcpy(out, test->bits + first / 64, words * sizeof(*out));
		break;
	case PFS_HOW_PARENT_BITS:
		by_parent_bits(selection->image, test, out, bits, first, words);
		break;
	case PFS_HOW_NAME:
		memcpy(out, bits, words * sizeof(*out));
		find_names(worker, test, out, first, words);
		break;
	case PFS_HOW_DEPTH:
	case PFS_HOW_INTEGER:
	case PFS_HOW_TEXT:
	case PFS_HOW_CLIMB:
		return one_by_one(worker, test, out, bits, first, words);
	default:
		by_column(selection, test, out, bits, first, words);
	}
	return 0;
}

static void clear_from(uint64_t *bits, size_t from, size_t words)
{
	bits[from / 64] &= ~(~UINT64_C(0) << from % 64);
	for (size_t w = from / 64 + 1; w < words; w++)
		bits[w] = 0;
}

int pfs_scan_filter(struct pfs_scan_worker *worker, const struct pfs_scan_test *test,
		    uint64_t *bits, uint32_t first, size_t words)
{
	uint32_t root = worker->selection->image->root;
	uint64_t found[PFS_SCAN_BLOCK_WORDS] = {0};

	PFS_TRY(find(worker, test, found, bits, first, words));
	if (worker->next < first + words * 64)
		clear_from(bits, worker->next - first, words);
	for (size_t w = 0; w < words; w++)
		bits[w] &= test->negated ? ~found[w] : found[w];
	if (test->not_root && root >= first && root < first + words * 64)
		bits[(root - first) / 64] &= ~(UINT64_C(1) << root % 64);
	return 0;
}

static void keep_live(const struct pfs_selection *selection, uint64_t *bits, uint32_t first,
		      size_t words)
{
	const uint64_t *live = selection->image->live + first / 64;

	for (size_t w = 0; w < words; w++)
		bits[w] &= live[w];
}

int pfs_scan_filter_all(struct pfs_scan_worker *worker, uint64_t *bits, uint32_t first,
			size_t words)
{
	const struct pfs_selection *selection = worker->selection;
	uint64_t any = 1;

	if (!selection->all_live)
		keep_live(selection, bits, first, words);
	for (size_t i = 0; i < selection->n_order && any; i++) {
		PFS_TRY(pfs_scan_filter(worker, selection->order[i], bits, first, words));
		any = 0;
		for (size_t w = 0; w < words; w++)
			any |= bits[w];
	}
	return 0;
}

void pfs_scan_worker_finish(struct pfs_scan_worker *worker)
{
	if (worker->work)
		tell_work(worker);
	pfs_trail_finish(&worker->trail);
	free(worker->path);
}
