/* SPDX-License-Identifier: MIT */
/* Sets of nodes by their relation to others, counted or listed. */
#include "fs/tree/tree.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/radix.h"
#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/image/old_places.h"
#include "fs/image/span.h"
#include "fs/nodes/codes.h"
#include "fs/nodes/paths.h"
#include "fs/nodes/scan.h"
#include "fs/tree/tree_impl.h"

/* A set that is found: what is asked about is looked up in a hold of the tree, and the set is as it
 * is then. */
struct finding {
	struct pfs_tree *tree;
	const struct pfs_question *question;
	uint32_t *slots;	   /* of the nodes that are asked about */
	uint32_t end;		   /* of the image */
	struct pfs_engine *engine; /* with a lease (pfs_codes_begin); NULL: none */
	uint64_t *bits;		   /* of subtrees, by slot */
};

/* Forgets what belongs to the hold before, if there was one. */
static void forget(struct finding *finding)
{
	free(PFS_TAKE(finding->slots));
	free(PFS_TAKE(finding->bits));
	if (PFS_TAKE(finding->engine))
		pfs_codes_end(finding->tree);
}

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
static int select_slots(struct pfs_engine *engine, struct pfs_bitmap **out,
			enum pfs_relation relation, const uint32_t *slots, size_t n)
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

static int find_asked(uint32_t **out, const struct pfs_tree *tree,
		      const struct pfs_question *question)
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

static uint64_t *make_bits(uint32_t end)
{
	return calloc(pfs_div_round_up(end, 64) + 1, sizeof(uint64_t));
}

static void set_bit(uint64_t *bits, uint32_t slot)
{
	bits[slot / 64] |= UINT64_C(1) << slot % 64;
}

/* ---- children: from the index of names, on whichever side single questions are answered; no code
 * tells more ---- */

/* Children are followed in many holds. A child that has the place that it had at the moment is an
 * entry of the index in each of them, whatever comes and goes beside it. All others are passed over
 * there, and follow from the past. */
struct following {
	const struct finding *finding;
	const struct pfs_old_places *past;
	uint64_t *bits;
	size_t at;		     /* of the directories */
	struct pfs_btree_entry
		next; /* where the entries of that one go on; key 0: at their beginning */
	uint32_t changed;	     /* where the slots that have changed go on */
};

/* One directory's, as far as *left lets. */
static void follow_entries(struct following *f, unsigned *left)
{
	const uint32_t directory = f->finding->slots[f->at];
	const uint64_t first = pfs_image_key(directory, 0);
	struct pfs_btree_entry *next = &f->next;
	struct pfs_children children;

	if (!next->key)
		*next = (struct pfs_btree_entry){.key = first};
	pfs_children_begin(&children, f->finding->tree, directory, (uint32_t)(next->key - first),
			   next->slot);
	for (; *left && pfs_children_next(&children, next); --*left)
		if (!pfs_old_places_has_changed(f->past, next->slot))
			set_bit(f->bits, next->slot);
	next->slot++;
	if (*left) { /* there are no more */
		*next = (struct pfs_btree_entry){0};
		f->at++;
		--*left;
	}
}

static bool is_asked(const struct finding *finding, uint32_t slot)
{
	size_t at = pfs_lower_bound_u32(finding->slots, finding->question->n, slot);

	return at < finding->question->n && finding->slots[at] == slot;
}

static void follow_changed(struct following *f, unsigned *left)
{
	struct pfs_old_place place;

	for (; *left && pfs_old_places_next(f->past, &f->changed); f->changed++, --*left) {
		pfs_old_places_find(f->past, &place, f->changed);
		if (place.is_live && f->changed != f->finding->tree->image.root &&
		    is_asked(f->finding, place.parent))
			set_bit(f->bits, f->changed);
	}
}

/* Follows changes in one hold. *more: not all has been followed. */
static int follow_some(struct following *f, bool *more)
{
	struct pfs_tree *tree = f->finding->tree;
	unsigned left = PFS_PATHS_HELD;
	int error;

	pfs_hold_read(tree, __func__);
	error = pfs_old_places_check(f->past);
	while (left && !error && f->at < f->finding->question->n)
		follow_entries(f, &left);
	if (!error)
		follow_changed(f, &left);
	pfs_hold_end(tree);
	*more = !left;
	return error;
}

static int hold_children(void *arg)
{
	struct finding *finding = arg;
	int error;

	forget(finding);
	pfs_hold_read(finding->tree, __func__);
	finding->end = finding->tree->image.end;
	error = find_asked(&finding->slots, finding->tree, finding->question);
	if (error)
		pfs_hold_end(finding->tree);
	return error;
}

static int find_children(void *arg, const struct pfs_old_places *past, uint64_t **bits)
{
	struct finding *finding = arg;
	uint64_t *set PFS_FREE = make_bits(finding->end);
	struct following following = {.finding = finding, .past = past, .bits = set};
	bool more = true;

	if (!set)
		return -ENOMEM;
	PFS_TRY(pfs_radix_sort_u32(finding->slots, finding->question->n));
	while (more)
		PFS_TRY(follow_some(&following, &more));
	*bits = PFS_TAKE(set);
	return 0;
}

static uint64_t count_bits(const uint64_t *bits, uint32_t end)
{
	uint64_t n = 0;

	for (size_t word = 0; word < pfs_div_round_up(end, 64); word++)
		n += (uint64_t)__builtin_popcountll(bits[word]);
	return n;
}

static int count_children(struct finding *finding, uint64_t *count)
{
	struct pfs_old_places *past;
	uint64_t *bits PFS_FREE = NULL;
	int error;

	PFS_TRY(hold_children(finding));
	error = pfs_old_places_open(&past, finding->tree);
	pfs_hold_end(finding->tree);
	if (!error)
		error = find_children(finding, past, &bits);
	pfs_old_places_close(past);
	if (!error)
		*count = count_bits(bits, finding->end);
	return error;
}

/* ---- by the engine, which computes when the tree has been let go ---- */

static int hold_engine(void *arg)
{
	struct finding *finding = arg;
	int error;

	forget(finding);
	PFS_TRY(pfs_codes_begin(finding->tree, &finding->engine));
	finding->end = finding->tree->image.end;
	error = find_asked(&finding->slots, finding->tree, finding->question);
	if (error)
		pfs_codes_let_go(finding->tree);
	return error;
}

static int count_set(const struct finding *finding, uint64_t *count)
{
	const struct pfs_question *question = finding->question;
	struct pfs_bitmap *set;
	int error;

	PFS_TRY(select_slots(finding->engine, &set, question->relation, finding->slots,
			     question->n));
	error = pfs_bitmap_count(set, count);
	pfs_bitmap_free(set);
	return error;
}

static int count_by_engine(struct finding *finding, uint64_t *count)
{
	int error;

	PFS_TRY(hold_engine(finding));
	pfs_codes_let_go(finding->tree);
	error = count_set(finding, count);
	if (error == -ESTALE) /* lost with its device: the host engine answers now */
		error = count_set(finding, count);
	return error;
}

static int read_set(const struct finding *finding, uint64_t **bits)
{
	const struct pfs_question *question = finding->question;
	struct pfs_bitmap *set;
	int error;

	PFS_TRY(select_slots(finding->engine, &set, question->relation, finding->slots,
			     question->n));
	error = pfs_codes_bits(bits, set, finding->end);
	pfs_bitmap_free(set);
	return error;
}

/* The lease keeps the engine as it was at the moment. */
static int find_by_engine(void *arg, const struct pfs_old_places *past PFS_UNUSED, uint64_t **bits)
{
	struct finding *finding = arg;
	int error = read_set(finding, bits);

	if (error == -ESTALE) /* as above */
		error = read_set(finding, bits);
	forget(finding);
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
	return pfs_scan_ranges(tree, ranges, n, slot);
}

/* The set of all that is in the subtrees, as bits by slot. */
static int list_ranges(struct finding *finding)
{
	const struct pfs_image *image = &finding->tree->image;
	uint64_t *set = make_bits(image->end);

	finding->bits = set;
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
	return 0;
}

static int hold_ranges(void *arg)
{
	struct finding *finding = arg;
	struct pfs_tree *tree = finding->tree;
	int error;

	forget(finding);
	pfs_hold_read(tree, __func__);
	error = pfs_spans_prepare(tree, pfs_hold_pause, tree);
	finding->end = tree->image.end;
	if (!error)
		error = list_ranges(finding);
	if (error)
		pfs_hold_end(tree);
	return error;
}

/* They were listed in the hold. */
static int find_ranges(void *arg, const struct pfs_old_places *past PFS_UNUSED, uint64_t **bits)
{
	struct finding *finding = arg;

	*bits = PFS_TAKE(finding->bits);
	return 0;
}

static int count_range(struct pfs_tree *tree, uint64_t *count, uint64_t ino)
{
	struct pfs_slot_range *ranges PFS_FREE = NULL;
	size_t n;

	PFS_TRY(ranges_of(tree, &ranges, &n, ino));
	*count = 0;
	for (size_t i = 0; i < n; i++)
		*count += count_live(&tree->image, ranges[i]);
	return 0;
}

static int count_ranges(struct finding *finding, uint64_t *count)
{
	struct pfs_tree *tree = finding->tree;
	int error;

	if (finding->question->n > 1) {
		PFS_TRY(hold_ranges(finding));
		pfs_hold_end(tree);
		*count = count_bits(finding->bits, finding->end);
		return 0;
	}
	pfs_hold_read(tree, __func__);
	error = pfs_spans_prepare(tree, pfs_hold_pause, tree);
	if (!error)
		error = count_range(tree, count, *finding->question->inos);
	pfs_hold_end(tree);
	return error;
}

/* Returns true if subtrees are to be found as ranges of slots, which costs less than bringing an
 * engine on the host up to date. */
static bool are_ranges(struct pfs_tree *tree, const struct pfs_question *question)
{
	return question->relation == PFS_SUBTREE && question->n && !pfs_codes_use_device(tree);
}

/* ---- */

int pfs_tree_count(struct pfs_tree *tree, uint64_t *count, const struct pfs_question *question)
{
	struct finding finding = {.tree = tree, .question = question};
	int error = -ENODATA;

	if (question->relation == PFS_CHILDREN)
		error = count_children(&finding, count);
	else if (are_ranges(tree, question))
		error = count_ranges(&finding, count);
	if (error == -ENODATA)
		error = count_by_engine(&finding, count);
	forget(&finding);
	return error;
}

static int open_set(struct pfs_paths **paths, struct finding *finding, unsigned flags)
{
	const struct pfs_paths_source children = {hold_children, find_children, finding},
				      ranges = {hold_ranges, find_ranges, finding},
				      engine = {hold_engine, find_by_engine, finding};
	struct pfs_tree *tree = finding->tree;
	int error = -ENODATA;

	if (finding->question->relation == PFS_CHILDREN)
		error = pfs_paths_open_set(paths, tree, &children, flags);
	else if (are_ranges(tree, finding->question))
		error = pfs_paths_open_set(paths, tree, &ranges, flags);
	if (error == -ENODATA)
		error = pfs_paths_open_set(paths, tree, &engine, flags);
	forget(finding);
	return error;
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
