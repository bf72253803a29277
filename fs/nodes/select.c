/* SPDX-License-Identifier: MIT */
/* Sets of nodes by their relation to others, counted or listed. */
#include "fs/tree/tree.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/image/span.h"
#include "fs/nodes/codes.h"
#include "fs/nodes/paths.h"
#include "fs/nodes/scan.h"
#include "fs/tree/tree_impl.h"

#define ATTEMPTS 4u /* to find a set beside somebody who writes */

/* What a set is found from, again and again until it is. */
struct finding {
	struct pfs_tree *tree;
	const struct pfs_question *question;
	bool has_lock; /* pfs_codes_lock */
};

/* The sets of n nodes; subtrees all in one pass. */
static int sets_of(struct pfs_engine *engine, struct pfs_bitmap **out, enum pfs_relation relation,
		   const uint32_t *slots, size_t n)
{
	size_t done = 0;
	int error = 0;

	if (relation == PFS_SUBTREE)
		return pfs_engine_subtrees(engine, out, slots, n);
	for (; done < n && !error; done += !error)
		error = pfs_engine_parents(engine, &out[done], slots[done]);
	while (error && done > 0)
		pfs_bitmap_free(out[--done]);
	return error;
}

/* Adds the sets to *all, which begins with the first of them. */
static int combine(struct pfs_bitmap **all, struct pfs_bitmap *const *sets, size_t n,
		   enum pfs_bitmap_op op)
{
	int error = 0;

	for (size_t i = 0; i < n; i++) {
		if (!*all) {
			*all = sets[i];
			continue;
		}
		if (!error)
			error = pfs_bitmap_combine(*all, sets[i], op);
		pfs_bitmap_free(sets[i]);
	}
	return error;
}

/* The directories in which the nodes lie; the root lies in none. */
static int select_parents(struct pfs_engine *engine, struct pfs_bitmap **out, const uint32_t *slots,
			  size_t n)
{
	uint32_t *parents PFS_FREE = malloc(n * sizeof(*parents));
	size_t n_parents = 0;

	if (!parents)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		PFS_TRY(pfs_engine_parent(engine, &parents[n_parents], slots[i]));
		n_parents += parents[n_parents] != PFS_NO_SLOT;
	}
	return pfs_bitmap_of_slots(engine, out, parents, n_parents);
}

static int select_deepest(struct pfs_engine *engine, struct pfs_bitmap **out, const uint32_t *slots,
			  size_t n)
{
	uint32_t deepest;

	PFS_TRY(pfs_engine_common_ancestor(engine, &deepest, slots, n));
	return pfs_bitmap_of_slots(engine, out, &deepest, 1);
}

/* The union over all slots; of common ancestors the intersection. */
static int select_slots(struct pfs_engine *engine, struct pfs_bitmap **out, enum pfs_relation relation,
			const uint32_t *slots, size_t n)
{
	enum pfs_bitmap_op op = relation == PFS_COMMON_ANCESTORS ? PFS_BITMAP_AND : PFS_BITMAP_OR;
	struct pfs_bitmap *sets[PFS_SUBTREES_MAX], *all = NULL;
	int error = 0;

	if (relation == PFS_PARENTS)
		return select_parents(engine, out, slots, n);
	if (relation == PFS_DEEPEST_COMMON)
		return select_deepest(engine, out, slots, n);
	for (size_t at = 0; at < n && !error; at += PFS_SUBTREES_MAX) {
		size_t now = PFS_MIN(n - at, PFS_SUBTREES_MAX);

		error = sets_of(engine, sets, relation, slots + at, now);
		if (!error)
			error = combine(&all, sets, now, op);
	}
	if (error)
		pfs_bitmap_free(all);
	else
		*out = all;
	return error;
}

/* ---- what is asked about, while the tree is held ---- */

static int find_asked(uint32_t **out, const struct pfs_tree *tree, const struct pfs_question *question)
{
	uint32_t *slots PFS_FREE = calloc(question->n, sizeof(*slots));

	if (question->n == 0)
		return -EINVAL;
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < question->n; i++) {
		slots[i] = pfs_image_slot(tree, question->inos[i]);
		if (slots[i] == PFS_NO_SLOT || tree->image.state[slots[i]] & PFS_SLOT_UNLINKED)
			return -ENOENT;
	}
	*out = PFS_TAKE(slots);
	return 0;
}

/* From the index of names, on whichever side single questions are answered: no code tells more. */
static int find_children(void *arg, uint64_t **bits)
{
	const struct finding *finding = arg;
	const struct pfs_question *question = finding->question;
	const struct pfs_tree *tree = finding->tree;
	uint64_t *set PFS_FREE = calloc(pfs_div_round_up(tree->image.end, 64) + 1, sizeof(*set));
	uint32_t *slots PFS_FREE = NULL;

	if (!set)
		return -ENOMEM;
	PFS_TRY(find_asked(&slots, tree, question));
	for (size_t i = 0; i < question->n; i++) {
		struct pfs_children children;
		struct pfs_btree_entry entry;

		pfs_children_begin(&children, tree, slots[i], 0, 0);
		while (pfs_children_next(&children, &entry))
			set[entry.slot / 64] |= UINT64_C(1) << entry.slot % 64;
	}
	*bits = PFS_TAKE(set);
	return 0;
}

static uint64_t count_bits(const struct pfs_tree *tree, const uint64_t *bits)
{
	uint64_t n = 0;

	for (size_t word = 0; word < pfs_div_round_up(tree->image.end, 64); word++)
		n += (uint64_t)__builtin_popcountll(bits[word]);
	return n;
}

static int count_children(struct finding *finding, uint64_t *count)
{
	uint64_t *bits PFS_FREE = NULL;

	PFS_TRY(find_children(finding, &bits));
	*count = count_bits(finding->tree, bits);
	return 0;
}

/* ---- by the engine ---- */

static int count_set(struct pfs_engine *engine, uint64_t *count, const struct pfs_question *question,
		     const uint32_t *slots)
{
	struct pfs_bitmap *set;
	int error;

	PFS_TRY(select_slots(engine, &set, question->relation, slots, question->n));
	error = pfs_bitmap_count(set, count);
	pfs_bitmap_free(set);
	return error;
}

/* The tree has been let go while the engine computes. */
static int count_by_engine(struct pfs_tree *tree, uint64_t *count, const struct pfs_question *question)
{
	uint32_t *slots PFS_FREE = NULL;
	struct pfs_engine *engine;
	int error;

	PFS_TRY(pfs_codes_begin(tree, &engine));
	error = find_asked(&slots, tree, question);
	pfs_codes_let_go(tree);
	if (!error)
		error = count_set(engine, count, question, slots);
	if (error == -ESTALE) /* lost with its device: the host engine answers now */
		error = count_set(engine, count, question, slots);
	pfs_codes_end(tree);
	return error;
}

/* ---- subtrees, by their ranges of slots ---- */

/* Which of the word's bits are in the range, from slot on. */
static uint64_t mask_of(struct pfs_slot_range range, uint32_t slot)
{
	uint32_t bits = PFS_MIN(range.to - slot, 64 - slot % 64);

	return ~UINT64_C(0) >> (64 - bits) << slot % 64;
}

static uint32_t next_word(struct pfs_slot_range range, uint32_t slot)
{
	return slot + PFS_MIN(range.to - slot, 64 - slot % 64);
}

/* Nodes in a range of slots. */
static uint64_t count_live(const struct pfs_image *image, struct pfs_slot_range range)
{
	uint64_t n = 0;

	for (uint32_t slot = range.from; slot < range.to; slot = next_word(range, slot))
		n += (uint64_t)__builtin_popcountll(image->live[slot / 64] & mask_of(range, slot));
	return n;
}

/* -ENODATA: they are not known. */
static int ranges_of(struct pfs_tree *tree, struct pfs_slot_range **ranges, size_t *n, uint64_t ino)
{
	const struct pfs_image *image = &tree->image;
	uint32_t slot = pfs_image_slot(tree, ino);

	if (slot == PFS_NO_SLOT || image->state[slot] & PFS_SLOT_UNLINKED)
		return -ENOENT;
	if (S_ISDIR(image->mode[slot]))
		return pfs_span_ranges(tree, ranges, n, slot);
	*ranges = malloc(sizeof(**ranges));
	if (!*ranges)
		return -ENOMEM;
	**ranges = (struct pfs_slot_range){slot, slot + 1};
	*n = 1;
	return 0;
}

/* The set of all that is in the subtrees, as bits by slot. */
static int find_ranges(void *arg, uint64_t **bits)
{
	const struct finding *finding = arg;
	const struct pfs_image *image = &finding->tree->image;
	uint64_t *set PFS_FREE = calloc(pfs_div_round_up(image->end, 64) + 1, sizeof(*set));

	if (!set)
		return -ENOMEM;
	for (size_t i = 0; i < finding->question->n; i++) {
		struct pfs_slot_range *ranges PFS_FREE = NULL;
		size_t n;

		PFS_TRY(ranges_of(finding->tree, &ranges, &n, finding->question->inos[i]));
		for (size_t k = 0; k < n; k++)
			for (uint32_t slot = ranges[k].from; slot < ranges[k].to;
			     slot = next_word(ranges[k], slot))
				set[slot / 64] |= image->live[slot / 64] & mask_of(ranges[k], slot);
	}
	*bits = PFS_TAKE(set);
	return 0;
}

/* May let go of the tree. */
static int count_ranges(struct finding *finding, uint64_t *count)
{
	const struct pfs_question *question = finding->question;
	struct pfs_tree *tree = finding->tree;
	struct pfs_slot_range *ranges PFS_FREE = NULL;
	uint64_t *bits PFS_FREE = NULL;
	size_t n;

	PFS_TRY(pfs_spans_prepare(tree, pfs_hold_pause, tree));
	if (question->n > 1) {
		PFS_TRY(find_ranges(finding, &bits));
		*count = count_bits(tree, bits);
		return 0;
	}
	PFS_TRY(ranges_of(tree, &ranges, &n, *question->inos));
	*count = 0;
	for (size_t i = 0; i < n; i++)
		*count += count_live(&tree->image, ranges[i]);
	return 0;
}

/* Whether they are to be found by ranges: that costs less than to bring an engine on the host up to date. */
static bool are_ranges(struct pfs_tree *tree, const struct pfs_question *question)
{
	return question->relation == PFS_SUBTREE && question->n && !pfs_codes_use_device(tree);
}

/* ---- */

int pfs_tree_count(struct pfs_tree *tree, uint64_t *count, const struct pfs_question *question)
{
	struct finding finding = {.tree = tree, .question = question};
	int error = -ENODATA;

	if (question->relation == PFS_CHILDREN || are_ranges(tree, question)) {
		pfs_hold_read(tree, __func__);
		error = question->relation == PFS_CHILDREN ? count_children(&finding, count)
							   : count_ranges(&finding, count);
		pfs_hold_end(tree);
	}
	return error == -ENODATA ? count_by_engine(tree, count, question) : error;
}

/* Gets the engine for this hold of the tree, and lets others have the lock. */
static int get_engine(struct finding *finding, struct pfs_engine **engine)
{
	int error;

	if (!finding->has_lock) { /* in a later hold */
		error = pfs_codes_try(finding->tree, engine);
		return error == -EBUSY ? -EAGAIN : error;
	}
	PFS_TRY(pfs_codes_get(finding->tree, engine));
	pfs_codes_unlock(finding->tree);
	finding->has_lock = false;
	return 0;
}

static int find_set(void *arg, uint64_t **bits)
{
	struct finding *finding = arg;
	const struct pfs_question *question = finding->question;
	struct pfs_tree *tree = finding->tree;
	uint32_t *slots PFS_FREE = NULL;
	struct pfs_engine *engine;
	struct pfs_bitmap *set;
	int error;

	PFS_TRY(get_engine(finding, &engine));
	PFS_TRY(find_asked(&slots, tree, question));
	error = select_slots(engine, &set, question->relation, slots, question->n);
	if (error == -ESTALE) /* as above */
		error = select_slots(engine, &set, question->relation, slots, question->n);
	if (error)
		return error;
	error = pfs_codes_bits(bits, set, tree->image.end);
	pfs_bitmap_free(set);
	return error == -ESTALE ? -EAGAIN : error;
}

static int open_by_engine(struct pfs_paths **paths, struct finding *finding, unsigned flags)
{
	struct pfs_tree *tree = finding->tree;
	int error = -EAGAIN;

	for (unsigned i = 0; i < ATTEMPTS && error == -EAGAIN; i++) {
		pfs_codes_lock(tree);
		finding->has_lock = true;
		error = pfs_codes_prepare(tree);
		if (!error)
			error = pfs_paths_open_set(paths, tree, find_set, finding, flags);
		if (finding->has_lock)
			pfs_codes_unlock(tree);
	}
	return error;
}

static int open_set(struct pfs_paths **paths, struct finding *finding, unsigned flags)
{
	struct pfs_tree *tree = finding->tree;
	int error = -ENODATA;

	if (finding->question->relation == PFS_CHILDREN)
		return pfs_paths_open_set(paths, tree, find_children, finding, flags);
	if (are_ranges(tree, finding->question)) {
		pfs_hold_read(tree, __func__);
		error = pfs_spans_prepare(tree, pfs_hold_pause, tree);
		pfs_hold_end(tree);
		if (!error)
			error = pfs_paths_open_set(paths, tree, find_ranges, finding, flags);
	}
	return error == -ENODATA ? open_by_engine(paths, finding, flags) : error;
}

/* In many short holds. */
int pfs_tree_list(struct pfs_tree *tree, const struct pfs_question *question, unsigned flags,
		  int (*fn)(void *arg, const char *bytes, size_t size), void *arg)
{
	struct finding finding = {.tree = tree, .question = question};
	struct pfs_paths *paths;
	uint64_t row = 0, before;
	int error = 0;

	if (question->n == 1 && are_ranges(tree, question))
		PFS_TRY(pfs_paths_open(&paths, tree, question->inos[0], flags));
	else
		PFS_TRY(open_set(&paths, &finding, flags));
	do {
		before = row;
		error = pfs_paths_next(paths, &row, fn, arg);
	} while (row != before); /* else there are no more, or that is what fn says */
	pfs_paths_close(paths);
	return error;
}

int pfs_tree_engine(struct pfs_tree *tree, struct pfs_engine_info *info)
{
	return pfs_codes_describe(tree, info);
}

int pfs_tree_engine_now(struct pfs_tree *tree, struct pfs_engine_info *info)
{
	return pfs_codes_describe_now(tree, info);
}

int pfs_tree_check_codes(struct pfs_tree *tree, uint64_t *wrong)
{
	struct pfs_engine *engine;
	int error;

	PFS_TRY(pfs_codes_begin(tree, &engine));
	pfs_codes_let_go(tree);
	error = pfs_engine_check(engine, wrong);
	pfs_codes_end(tree);
	return error;
}
