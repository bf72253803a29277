/* SPDX-License-Identifier: MIT */
/* gpu/query.c - questions whose answer is a set, and questions about single nodes that need no
 * code. */
#include "base/cleanup.h"
#include "gpu/engine_impl.h"

static int find_live(const struct pfs_engine *e, uint32_t slot)
{
	return pfs_slot_live(&e->columns, slot) ? 0 : -ENOENT;
}

int pfs_engine_parent(struct pfs_engine *e, uint32_t *parent, uint32_t slot)
{
	PFS_READING(&e->lock);
	const struct pfs_columns *c = &e->columns;

	if (find_live(e, slot))
		return -ENOENT;
	*parent = c->directory_slot[pfs_slot_parent(c, slot)];
	return 0;
}

/* ---- sets ---- */

static int range_bitmap(struct pfs_engine *e, struct pfs_bitmap **out, uint64_t from, uint64_t to)
{
	struct pfs_bitmap *bitmap = calloc(1, sizeof(*bitmap));

	if (!bitmap)
		return -ENOMEM;
	*bitmap = (struct pfs_bitmap){
		.engine = e,
		.is_range = true,
		.from = from,
		.to = to,
		.backend = e->backend,
		.words = pfs_engine_words(e),
	};
	*out = bitmap;
	return 0;
}

static void free_all(struct pfs_bitmap **bitmaps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		pfs_bitmap_free(bitmaps[i]);
		bitmaps[i] = NULL;
	}
}

/* Finds the subtrees for which no code is looked at: a file is its own; an unspoiled directory's is
 * a range. The others are left[*n_left]. */
static int answer_by_range(struct pfs_engine *e, struct pfs_bitmap **out, const uint32_t *slots,
			   size_t n, size_t *left, size_t *n_left)
{
	const struct pfs_columns *c = &e->columns;
	int error = 0;

	*n_left = 0;
	for (size_t i = 0; i < n; i++)
		if (find_live(e, slots[i]))
			return -ENOENT;
	for (size_t i = 0; i < n && error == 0; i++) {
		uint32_t slot = slots[i], span;

		if (!pfs_slot_is_directory(c, slot)) {
			error = range_bitmap(e, &out[i], slot, (uint64_t)slot + 1);
			continue;
		}
		span = c->span[c->home[slot]];
		if (span && e->use_ranges)
			error = range_bitmap(e, &out[i], slot, (uint64_t)slot + span);
		else
			left[(*n_left)++] = i;
	}
	return error;
}

/* Sets for each subtree in which of the others it lies. */
static void find_masks(const struct pfs_columns *c, struct pfs_asked_subtree *subtrees, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		subtrees[i].mask = 0;
		for (uint32_t d = subtrees[i].directory; d; d = c->directories[d].parent)
			for (size_t k = 0; k < n; k++)
				subtrees[i].mask |= (uint64_t)(subtrees[k].directory == d) << k;
	}
}

static int answer_by_codes(const struct pfs_asking *asking, struct pfs_bitmap **out,
			   const uint32_t *slots, const size_t *left, size_t n_left)
{
	const struct pfs_columns *c = &asking->engine->columns;
	struct pfs_codes_job *job = asking->job;
	struct pfs_asked_subtree subtrees[PFS_SUBTREES_MAX];
	uint32_t *bits[PFS_SUBTREES_MAX];

	for (size_t i = 0; i < n_left; i++) {
		uint32_t directory = c->home[slots[left[i]]];

		subtrees[i].directory = directory;
		subtrees[i].divisor = pfs_divisor_of(c->directories[directory].prime);
		PFS_TRY(pfs_bitmap_new(asking, &out[left[i]]));
		bits[i] = out[left[i]]->bits;
	}
	if (n_left > 1)
		find_masks(c, subtrees, n_left);
	return job->ops->subtrees(job, bits, pfs_engine_words(asking->engine), subtrees, n_left);
}

static int find_subtrees(const struct pfs_asking *asking, struct pfs_bitmap **out,
			 const uint32_t *slots, size_t n)
{
	size_t left[PFS_SUBTREES_MAX], n_left;

	PFS_TRY(answer_by_range(asking->engine, out, slots, n, left, &n_left));
	return n_left ? answer_by_codes(asking, out, slots, left, n_left) : 0;
}

/* Finds the subtrees, if no code needs to be looked at: the back end may be out of date. */
static int find_ranges(struct pfs_engine *e, struct pfs_bitmap **out, const uint32_t *slots,
		       size_t n, bool *is_answered)
{
	PFS_READING(&e->lock);
	size_t left[PFS_SUBTREES_MAX], n_left;
	int error = answer_by_range(e, out, slots, n, left, &n_left);

	*is_answered = error || !n_left;
	return error;
}

int pfs_engine_subtrees(struct pfs_engine *e, struct pfs_bitmap **out, const uint32_t *slots,
			size_t n)
{
	struct pfs_asking asking = {.engine = e};
	struct pfs_bitmap *made[PFS_SUBTREES_MAX] = {NULL};
	bool is_answered;
	int error;

	if (n > PFS_SUBTREES_MAX)
		return -E2BIG;
	error = find_ranges(e, made, slots, n, &is_answered);
	while (!is_answered) {
		free_all(made, n);
		error = pfs_asking_begin(&asking);
		error = error ? error : find_subtrees(&asking, made, slots, n);
		is_answered = pfs_asking_end(&asking, &error);
	}
	if (error)
		free_all(made, n);
	for (size_t i = 0; i < n && !error; i++)
		out[i] = made[i];
	return error;
}

int pfs_engine_subtree(struct pfs_engine *e, struct pfs_bitmap **out, uint32_t slot)
{
	return pfs_engine_subtrees(e, out, &slot, 1);
}

static int find_parents(const struct pfs_asking *asking, struct pfs_bitmap **out, uint32_t slot)
{
	struct pfs_codes_job *job = asking->job;

	if (find_live(asking->engine, slot))
		return -ENOENT;
	PFS_TRY(pfs_bitmap_new(asking, out));
	return job->ops->parents(job, (*out)->bits, (*out)->words, slot);
}

int pfs_engine_parents(struct pfs_engine *e, struct pfs_bitmap **out, uint32_t slot)
{
	struct pfs_asking asking = {.engine = e};
	struct pfs_bitmap *made = NULL;
	int error;

	do {
		free_all(&made, 1);
		error = pfs_asking_begin(&asking);
		error = error ? error : find_parents(&asking, &made, slot);
	} while (!pfs_asking_end(&asking, &error));
	if (error)
		free_all(&made, 1);
	else
		*out = made;
	return error;
}
