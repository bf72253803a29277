/* SPDX-License-Identifier: MIT */
/* While a pass goes on, directories change behind and before it. What it says of a directory that
 * has not changed itself follows from what it says of the one above. So in the end the changed ones
 * are put right, and where that turns one over, those in it are, downwards. */
#include "fs/nodes/visible_open.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/tree/tree_impl.h"

#ifdef PFS_VERIFY /* so that small trees are let go, too */
#define HELD_SLOTS 16u
#else
#define HELD_SLOTS (64u << 10) /* looked at before others may have the tree */
#endif
#define FOLLOWED (8u << 10) /* entries, in one hold */
#define SPARE	 (64u << 10) /* slots that may come while they are found */

static _Atomic uint32_t held_slots = HELD_SLOTS, followed = FOLLOWED;

void pfs_open_set_piece(uint32_t slots, uint32_t entries)
{
	atomic_store(&held_slots, slots ? slots : HELD_SLOTS);
	atomic_store(&followed, entries ? entries : FOLLOWED);
}

bool pfs_open_is_little(const struct pfs_tree *tree)
{
	return tree->image.end <= atomic_load(&held_slots);
}

static bool is_member(const struct pfs_viewer *viewer, gid_t gid)
{
	for (size_t i = 0; i < viewer->n_groups; i++)
		if (viewer->groups[i] == gid)
			return true;
	return viewer->gid == gid;
}

bool pfs_viewer_may(const struct pfs_image *image, const struct pfs_viewer *viewer, uint32_t slot,
		    unsigned what)
{
	unsigned mode = image->mode[slot];

	if (image->uid[slot] == viewer->uid)
		mode >>= 6;
	else if (is_member(viewer, image->gid[slot]))
		mode >>= 3;
	return (mode & what) == what;
}

static bool lets_in(const struct pfs_image *image, const struct pfs_viewer *viewer, uint32_t slot)
{
	return pfs_viewer_may(image, viewer, slot, R_OK | X_OK);
}

/* ---- all of them ---- */

struct pass {
	struct pfs_open *open;
	const struct pfs_image *image;
	const struct pfs_viewer *viewer;
	uint64_t *known; /* bits by slot, of slots below */
	uint32_t end;	 /* where directories come later, they are put right in the end */
};

static bool is_unknown(const struct pass *pass, uint32_t slot)
{
	return slot < pass->end && !pfs_slot_bit(pass->known, slot);
}

/* Classifies a directory and its unclassified ancestors: all below the topmost one that the viewer
 * may not search are closed. */
static void find_above(struct pass *pass, uint32_t slot)
{
	const uint32_t *parents = pass->image->parent;
	uint32_t at, closed = PFS_NO_SLOT; /* the topmost */
	bool reached, passed;

	for (at = slot; is_unknown(pass, at); at = parents[at])
		if (!lets_in(pass->image, pass->viewer, at))
			closed = at;
	reached = at == PFS_NO_SLOT || (at < pass->end && pfs_slot_bit(pass->open->bits, at));
	passed = closed == PFS_NO_SLOT;
	for (at = slot; is_unknown(pass, at); at = parents[at]) {
		pfs_slot_bit_set(pass->known, at);
		if (reached && passed)
			pfs_slot_bit_set(pass->open->bits, at);
		passed = passed || at == closed;
	}
}

/* What is above is known already, where its slot is the lower one. */
static void find_one(struct pass *pass, uint32_t slot)
{
	uint32_t parent = pass->image->parent[slot];

	if (!pfs_visible_directory(pass->image, slot) || pfs_slot_bit(pass->known, slot))
		return;
	if (parent >= slot) {
		find_above(pass, slot);
		return;
	}
	pfs_slot_bit_set(pass->known, slot);
	if (pfs_slot_bit(pass->open->bits, parent) && lets_in(pass->image, pass->viewer, slot))
		pfs_slot_bit_set(pass->open->bits, slot);
}

/* ---- what has changed since ---- */

struct following {
	struct pfs_open *open;
	const struct pfs_tree *tree;
	const struct pfs_viewer *viewer;
	uint32_t *turned; /* directories whose entries are to be looked at */
	size_t n, capacity;
	uint32_t left; /* entries that may be */
};

static int follow_one(struct following *following, uint32_t slot)
{
	const struct pfs_image *image = &following->tree->image;
	uint64_t *bits = following->open->bits;
	uint32_t parent = image->parent[slot];
	bool is_open;

	if (!pfs_visible_directory(image, slot))
		return 0;
	is_open = (parent == PFS_NO_SLOT || pfs_slot_bit(bits, parent)) &&
		  lets_in(image, following->viewer, slot);
	if (is_open == pfs_slot_bit(bits, slot))
		return 0;
	bits[slot / 64] ^= UINT64_C(1) << slot % 64;
	PFS_TRY(pfs_grow(&following->turned, &following->capacity, following->n + 1,
			 sizeof(*following->turned)));
	following->turned[following->n++] = slot;
	return 0;
}

static int follow_below(struct following *following)
{
	while (following->n) {
		struct pfs_children children;
		struct pfs_btree_entry entry;

		pfs_children_begin(&children, following->tree, following->turned[--following->n], 0,
				   0);
		while (pfs_children_next(&children, &entry)) {
			if (!following->left--)
				return -EAGAIN;
			PFS_TRY(follow_one(following, entry.slot));
		}
	}
	return 0;
}

/* Bits of slots that have come since are 0. */
static int make_room(struct pfs_open *open, uint32_t end)
{
	size_t before = (size_t)open->end / 64 + 1, now = (size_t)end / 64 + 1;
	uint64_t *bits;

	if (end <= open->end)
		return 0;
	bits = realloc(open->bits, now * sizeof(*bits));
	if (!bits)
		return -ENOMEM;
	memset(bits + before, 0, (now - before) * sizeof(*bits));
	open->bits = bits;
	open->end = end;
	return 0;
}

static int follow(struct pfs_open *open, const struct pfs_tree *tree,
		  const struct pfs_viewer *viewer)
{
	const struct pfs_image *image = &tree->image;
	struct following following = {
		.open = open, .tree = tree, .viewer = viewer, .left = atomic_load(&followed)};
	int error =
		image->access - open->access > PFS_RECENT ? -EAGAIN : make_room(open, image->end);

	for (; !error && open->access < image->access; open->access++) {
		error = follow_one(&following, image->recent_access[open->access % PFS_RECENT]);
		if (!error)
			error = follow_below(&following);
	}
	free(following.turned);
	return error;
}

/* ---- */

static int begin(struct pfs_open *open, uint32_t end, uint64_t access)
{
	*open = (struct pfs_open){.end = end, .access = access};
	open->bits = calloc((size_t)end / 64 + 1, sizeof(*open->bits));
	return open->bits ? 0 : -ENOMEM;
}

int pfs_open_find(struct pfs_open *open, struct pfs_tree *tree, const struct pfs_viewer *viewer,
		  bool lets_others)
{
	struct pass pass = {
		.open = open, .image = &tree->image, .viewer = viewer, .end = tree->image.end};
	uint64_t *known PFS_FREE = NULL;
	uint32_t piece = atomic_load(&held_slots);

	PFS_TRY(begin(open, pass.end + (lets_others ? SPARE : 0), tree->image.access));
	pass.known = known = calloc((size_t)pass.end / 64 + 1, sizeof(*known));
	if (!known)
		return -ENOMEM;
	for (uint32_t slot = 0; slot < pass.end; slot++) {
		if (lets_others && slot % piece == piece - 1)
			(void)pfs_hold_pause(tree);
		find_one(&pass, slot);
	}
	return follow(open, tree, viewer);
}

int pfs_open_copy(struct pfs_open *open, const struct pfs_tree *tree,
		  const struct pfs_viewer *viewer, const struct pfs_open *before)
{
	PFS_TRY(begin(open, before->end, before->access));
	memcpy(open->bits, before->bits, ((size_t)before->end / 64 + 1) * sizeof(*open->bits));
	return follow(open, tree, viewer);
}

void pfs_open_finish(struct pfs_open *open)
{
	free(PFS_TAKE(open->bits));
}
