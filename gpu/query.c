/* SPDX-License-Identifier: MIT */
/* gpu/query.c - questions whose answer is a set, and those about single nodes that need no code. */
#include "base/cleanup.h"
#include "gpu/engine_impl.h"

static int find_live(const struct pfs_engine *e, uint32_t slot)
{
	return pfs_slot_live(&e->columns, slot) ? 0 : -ENOENT;
}

int pfs_engine_parent(struct pfs_engine *e, uint32_t *parent, uint32_t slot)
{
	PFS_LOCKED(&e->lock);
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

static void free_unlocked(struct pfs_bitmap *bitmap)
{
	if (bitmap && bitmap->bits)
		bitmap->backend->ops->release(bitmap->backend, bitmap->bits,
					      bitmap->words * sizeof(*bitmap->bits));
	free(bitmap);
}

/* A file is its whole subtree; an unspoiled directory's is a range; the others (*n_left of them,
 * left[]: which) are for the codes. */
static int answer_by_range(struct pfs_engine *e, struct pfs_bitmap **out, const uint32_t *slots,
			   size_t n, size_t *left, size_t *n_left)
{
	const struct pfs_columns *c = &e->columns;
	int error = 0;

	*n_left = 0;
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

/* Of each subtree, which of them it lies in. */
static void find_masks(const struct pfs_columns *c, struct pfs_asked_subtree *subtrees, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		subtrees[i].mask = 0;
		for (uint32_t d = subtrees[i].directory; d; d = c->directories[d].parent)
			for (size_t k = 0; k < n; k++)
				subtrees[i].mask |= (uint64_t)(subtrees[k].directory == d) << k;
	}
}

static int answer_by_codes(struct pfs_engine *e, struct pfs_bitmap **out, const uint32_t *slots,
			   const size_t *left, size_t n_left)
{
	const struct pfs_columns *c = &e->columns;
	struct pfs_asked_subtree subtrees[PFS_SUBTREES_MAX];
	uint32_t *bits[PFS_SUBTREES_MAX];
	int error;

	for (size_t i = 0; i < n_left; i++) {
		uint32_t directory = c->home[slots[left[i]]];

		subtrees[i].directory = directory;
		subtrees[i].divisor = pfs_divisor_of(c->directories[directory].prime);
	}
	if (n_left > 1)
		find_masks(c, subtrees, n_left);
	do {
		error = pfs_engine_update(e);
		for (size_t i = 0; i < n_left && error == 0; i++) {
			free_unlocked(out[left[i]]); /* of a device that failed half-way */
			out[left[i]] = NULL;
			error = pfs_bitmap_new(e, &out[left[i]]);
			if (error == 0)
				bits[i] = out[left[i]]->bits;
		}
		if (error == 0)
			error = e->backend->ops->subtrees(e->backend, bits, pfs_engine_words(e),
							  subtrees, n_left);
	} while (pfs_engine_leave_device(e, error));
	return error;
}

static int subtrees_locked(struct pfs_engine *e, struct pfs_bitmap **out, const uint32_t *slots,
			   size_t n)
{
	struct pfs_bitmap *made[PFS_SUBTREES_MAX] = {NULL};
	size_t left[PFS_SUBTREES_MAX], n_left;
	int error;

	if (n > PFS_SUBTREES_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n; i++)
		if (find_live(e, slots[i]))
			return -ENOENT;
	error = answer_by_range(e, made, slots, n, left, &n_left);
	if (error == 0 && n_left)
		error = answer_by_codes(e, made, slots, left, n_left);
	for (size_t i = 0; i < n; i++) {
		if (error)
			free_unlocked(made[i]);
		else
			out[i] = made[i];
	}
	return error;
}

int pfs_engine_subtrees(struct pfs_engine *e, struct pfs_bitmap **out, const uint32_t *slots,
			size_t n)
{
	PFS_LOCKED(&e->lock);

	return subtrees_locked(e, out, slots, n);
}

int pfs_engine_subtree(struct pfs_engine *e, struct pfs_bitmap **out, uint32_t slot)
{
	return pfs_engine_subtrees(e, out, &slot, 1);
}

int pfs_engine_parents(struct pfs_engine *e, struct pfs_bitmap **out, uint32_t slot)
{
	PFS_LOCKED(&e->lock);
	struct pfs_bitmap *bitmap = NULL;
	int error;

	if (find_live(e, slot))
		return -ENOENT;
	do {
		error = pfs_engine_update(e);
		error = error ? error : pfs_bitmap_new(e, &bitmap);
		if (error)
			continue;
		error = e->backend->ops->parents(e->backend, bitmap->bits, bitmap->words, slot);
		if (error)
			free_unlocked(bitmap);
	} while (pfs_engine_leave_device(e, error));
	if (error == 0)
		*out = bitmap;
	return error;
}
