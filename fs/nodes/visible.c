/* SPDX-License-Identifier: MIT */
/* What is kept is a bit for each directory: whether what lies in it can be seen. */
#include "fs/nodes/visible.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/later.h"
#include "fs/content/hardlink.h"
#include "fs/image/totals.h"
#include "fs/nodes/scan_impl.h"
#include "fs/nodes/visible_open.h"
#include "fs/tree/tree_impl.h"

#define VIEWERS_MAX 16u /* that are remembered */
#define LOOK_EVERY  (16u << 10) /* slots */
#define TRIES	    4u /* to find what is open, where more changes than can be followed */

struct counts {
	struct pfs_totals *totals; /* by number of directory */
	uint32_t *first_number;	   /* by word of slots: directories before it */
	uint64_t *directories;	   /* bits by slot */
};

struct pfs_visible {
	atomic_uint references;
	struct pfs_viewer viewer;
	gid_t *groups; /* the viewer's, owned */
	struct pfs_open open;
	pthread_mutex_t lock; /* of what follows */
	bool has_totals;
	uint64_t totals_epoch;
	struct counts counts;
	uint32_t *names;	   /* of fs/tree/hardlink.h; NULL: not counted yet */
	uint64_t names_epoch;
};

struct pfs_viewers {
	pthread_mutex_t lock;
	struct pfs_visible *seen[VIEWERS_MAX]; /* the latest first */
};

int pfs_viewers_create(struct pfs_tree *tree)
{
	tree->viewers = calloc(1, sizeof(*tree->viewers));
	if (!tree->viewers)
		return -ENOMEM;
	(void)pthread_mutex_init(&tree->viewers->lock, NULL);
	return 0;
}

void pfs_viewers_destroy(struct pfs_tree *tree)
{
	if (!tree->viewers)
		return;
	for (size_t i = 0; i < VIEWERS_MAX; i++)
		pfs_visible_unref(tree->viewers->seen[i]);
	(void)pthread_mutex_destroy(&tree->viewers->lock);
	free(tree->viewers);
	tree->viewers = NULL;
}

struct pfs_visible *pfs_visible_ref(struct pfs_visible *visible)
{
	if (visible)
		atomic_fetch_add(&visible->references, 1);
	return visible;
}

static void finish_counts(struct counts *counts)
{
	pfs_free_later(counts->totals);
	pfs_free_later(counts->first_number);
	pfs_free_later(counts->directories);
}

void pfs_visible_unref(struct pfs_visible *visible)
{
	if (!visible || atomic_fetch_sub(&visible->references, 1) > 1)
		return;
	(void)pthread_mutex_destroy(&visible->lock);
	free(visible->groups);
	pfs_open_finish(&visible->open);
	finish_counts(&visible->counts);
	free(visible->names);
	free(visible);
}

/* before: what the viewer saw, of which it is made; NULL: anew. */
static int create(struct pfs_visible **out, struct pfs_tree *tree, const struct pfs_viewer *viewer,
		  const struct pfs_visible *before, bool lets_others)
{
	struct pfs_visible *visible = calloc(1, sizeof(*visible));
	int error = -ENOMEM;

	*out = NULL;
	if (!visible)
		return -ENOMEM;
	(void)pthread_mutex_init(&visible->lock, NULL);
	atomic_store(&visible->references, 1);
	visible->groups = malloc((viewer->n_groups + 1) * sizeof(*visible->groups));
	if (!visible->groups)
		goto fail;
	if (viewer->n_groups)
		memcpy(visible->groups, viewer->groups,
		       viewer->n_groups * sizeof(*visible->groups));
	visible->viewer = *viewer;
	visible->viewer.groups = visible->groups;
	error = before ? pfs_open_copy(&visible->open, tree, viewer, &before->open)
		       : pfs_open_find(&visible->open, tree, viewer, lets_others);
	if (error)
		goto fail;
	*out = visible;
	return 0;
fail:
	pfs_visible_unref(visible);
	return error;
}

/* ---- viewers remembered ---- */

static bool is_same(const struct pfs_viewer *a, const struct pfs_viewer *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->n_groups == b->n_groups &&
	       (!a->n_groups ||
		memcmp(a->groups, b->groups, a->n_groups * sizeof(*a->groups)) == 0);
}

/* Slots are beyond the bits when files came since: no file's bit is ever asked for. */
static bool is_current(const struct pfs_visible *visible, const struct pfs_tree *tree)
{
	return visible->open.access == tree->image.access;
}

/* The place of the viewer, or the last one. */
static size_t find(const struct pfs_viewers *viewers, const struct pfs_viewer *viewer)
{
	size_t i = 0;

	while (i < VIEWERS_MAX - 1 && viewers->seen[i] &&
	       !is_same(&viewers->seen[i]->viewer, viewer))
		i++;
	return i;
}

/* Remembers `visible` in place of what was remembered of the viewer, which it may be. */
static void remember(struct pfs_viewers *viewers, struct pfs_visible *visible)
{
	size_t i = find(viewers, &visible->viewer);

	if (viewers->seen[i] != visible)
		pfs_visible_unref(viewers->seen[i]);
	memmove(viewers->seen + 1, viewers->seen, i * sizeof(struct pfs_visible *));
	viewers->seen[0] = visible;
}

/* What is remembered of the viewer, put right, or NULL; viewers' lock is held. -EAGAIN: that takes
 * long. */
static int recall(struct pfs_visible **out, struct pfs_tree *tree, const struct pfs_viewer *viewer)
{
	struct pfs_visible *visible = tree->viewers->seen[find(tree->viewers, viewer)], *now;

	*out = NULL;
	if (!visible || !is_same(&visible->viewer, viewer))
		return -EAGAIN;
	if (!is_current(visible, tree)) {
		PFS_TRY(create(&now, tree, viewer, visible, false));
		visible = now;
	}
	remember(tree->viewers, visible);
	*out = visible;
	return 0;
}

static int find_known(struct pfs_tree *tree, const struct pfs_viewer *viewer)
{
	struct pfs_visible *visible;
	PFS_LOCKED(&tree->viewers->lock);

	return recall(&visible, tree, viewer);
}

int pfs_visible_make(struct pfs_tree *tree, const struct pfs_viewer *viewer)
{
	struct pfs_visible *visible;
	int error;

	if (viewer->uid == 0 || tree->image.copy)
		return 0;
	(void)pfs_scan_lock(tree, __func__);
	error = find_known(tree, viewer);
	for (unsigned tries = 0; tries < TRIES && error == -EAGAIN; tries++) {
		error = create(&visible, tree, viewer, NULL, true);
		if (!error) {
			PFS_LOCKED(&tree->viewers->lock);
			remember(tree->viewers, visible);
		}
	}
	pfs_scan_unlock(tree);
	return error == -EAGAIN ? 0 : error; /* directories change all the time: get says so */
}

int pfs_visible_get(struct pfs_visible **out, struct pfs_tree *tree,
		    const struct pfs_viewer *viewer)
{
	struct pfs_visible *visible;
	int error;

	*out = NULL;
	if (viewer->uid == 0)
		return 0;
	PFS_LOCKED(&tree->viewers->lock);
	error = recall(&visible, tree, viewer);
	if (error == -EAGAIN && (tree->image.copy || pfs_open_is_little(tree))) {
		error = create(&visible, tree, viewer, NULL, false);
		if (!error)
			remember(tree->viewers, visible);
	}
	if (!error)
		*out = pfs_visible_ref(visible);
	return error;
}

/* ---- asking ---- */

bool pfs_visible_has(const struct pfs_visible *visible, const struct pfs_tree *tree, uint32_t slot)
{
	uint32_t parent = tree->image.parent[slot];

	return !visible || parent == PFS_NO_SLOT || pfs_slot_bit(visible->open.bits, parent);
}

void pfs_visible_words(const struct pfs_visible *visible, const struct pfs_tree *tree,
		       uint64_t *words, size_t first, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		words[i] = tree->image.live[first + i];
		for (uint64_t left = words[i]; left; left &= left - 1) {
			uint64_t slot = (first + i) * 64 + (unsigned)__builtin_ctzll(left);

			if (!pfs_visible_has(visible, tree, (uint32_t)slot))
				words[i] &= ~(left & -left);
		}
	}
}

bool pfs_visible_may_read(const struct pfs_visible *visible, const struct pfs_tree *tree,
			  uint32_t slot)
{
	return !visible || pfs_viewer_may(&tree->image, &visible->viewer, slot, R_OK);
}

bool pfs_visible_may_surely_read(const struct pfs_visible *visible, const struct pfs_tree *tree,
				 uint32_t slot)
{
	return !visible || (!(tree->image.flags[slot] & PFS_NODE_LINKED) &&
			    pfs_visible_may_read(visible, tree, slot));
}

bool pfs_visible_bears(const struct pfs_visible *visible, const struct pfs_tree *tree,
		       uint32_t slot)
{
	const struct pfs_image *image = &tree->image;

	return slot < image->end && image->flags[slot] & PFS_NODE_ATTRS &&
	       pfs_image_is_live(image, slot) && pfs_visible_has(visible, tree, slot) &&
	       pfs_visible_may_read(visible, tree, slot);
}

struct pfs_predicate pfs_visible_predicate(const struct pfs_visible *visible)
{
	if (!visible) /* every node has a name */
		return (struct pfs_predicate){
			.field = PFS_FIELD_NAME,
			.test = PFS_TEST_NONE,
			.negated = true,
		};
	return (struct pfs_predicate){.test = PFS_TEST_SHOWN, .bits = visible->open.bits};
}

/* ---- totals ---- */

struct counting {
	const struct pfs_visible *visible;
	const struct pfs_tree *tree;
	const struct pfs_scan_watch *watch;
	struct counts counts;
	uint32_t *below; /* by number: subdirectories that have not been added to it */
};

static int look(const struct counting *counting, uint32_t slot)
{
	return slot % LOOK_EVERY ? 0 : pfs_scan_look(counting->watch);
}

static size_t number_of(const struct counts *counts, uint32_t slot)
{
	uint64_t below = counts->directories[slot / 64] & ((UINT64_C(1) << slot % 64) - 1);

	return counts->first_number[slot / 64] + pfs_count_ones(below);
}

/* Numbers the directories that can be seen. */
static int number_directories(struct counting *counting, size_t *n)
{
	const struct pfs_image *image = &counting->tree->image;

	*n = 0;
	for (uint32_t slot = 0; slot < image->end; slot++) {
		PFS_TRY(look(counting, slot));
		if (slot % 64 == 0)
			counting->counts.first_number[slot / 64] = (uint32_t)*n;
		if (pfs_visible_directory(image, slot) &&
		    pfs_visible_has(counting->visible, counting->tree, slot)) {
			pfs_slot_bit_set(counting->counts.directories, slot);
			++*n;
		}
	}
	return 0;
}

/* Every node is added to the directory it lies in. */
static int add_to_parents(struct counting *counting)
{
	const struct pfs_image *image = &counting->tree->image;
	struct counts *counts = &counting->counts;

	for (uint32_t slot = 0; slot < image->end; slot++) {
		struct pfs_totals own;
		uint32_t parent;

		PFS_TRY(look(counting, slot));
		if (!pfs_image_is_live(image, slot) ||
		    !pfs_visible_has(counting->visible, counting->tree, slot))
			continue;
		own = pfs_totals_own(counting->tree, slot);
		parent = image->parent[slot];
		if (S_ISDIR(image->mode[slot])) {
			pfs_totals_add(&counts->totals[number_of(counts, slot)], &own);
			if (parent != PFS_NO_SLOT)
				counting->below[number_of(counts, parent)]++;
		} else {
			pfs_totals_add(&counts->totals[number_of(counts, parent)], &own);
		}
	}
	return 0;
}

/* A directory is complete when all below it are; then it is added to the one above. */
static int add_upwards(struct counting *counting)
{
	const uint32_t *parents = counting->tree->image.parent;
	struct counts *counts = &counting->counts;
	uint32_t *below = counting->below;

	for (uint32_t slot = counting->tree->image.end; slot-- > 0;) {
		uint32_t at = slot;

		PFS_TRY(look(counting, slot));
		if (!pfs_slot_bit(counts->directories, slot) || below[number_of(counts, slot)])
			continue;
		while (parents[at] != PFS_NO_SLOT) {
			size_t up = number_of(counts, parents[at]), here = number_of(counts, at);

			below[here] = UINT32_MAX; /* done */
			pfs_totals_add(&counts->totals[up], &counts->totals[here]);
			at = parents[at];
			if (--below[up])
				break;
		}
	}
	return 0;
}

static int count(struct counting *counting)
{
	size_t words = (size_t)counting->tree->image.end / 64 + 1, n;
	struct counts *counts = &counting->counts;

	counts->directories = calloc(words, sizeof(*counts->directories));
	counts->first_number = calloc(words, sizeof(*counts->first_number));
	if (!counts->directories || !counts->first_number)
		return -ENOMEM;
	PFS_TRY(number_directories(counting, &n));
	counting->below = calloc(n + 1, sizeof(*counting->below));
	counts->totals = calloc(n + 1, sizeof(*counts->totals));
	if (!counting->below || !counts->totals)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		PFS_TRY(look(counting, i)); /* the memory is touched here first */
		counts->totals[i].mtime = INT64_MIN;
	}
	PFS_TRY(add_to_parents(counting));
	return add_upwards(counting);
}

static bool has_totals(struct pfs_visible *visible, const struct pfs_tree *tree)
{
	PFS_LOCKED(&visible->lock);

	return visible->has_totals && visible->totals_epoch == tree->image.epoch;
}

/* counts: the ones that are not kept, afterwards.  Others may be reading those of this epoch. */
static void keep(struct pfs_visible *visible, struct counts *counts, uint64_t epoch)
{
	struct counts before;
	PFS_LOCKED(&visible->lock);

	if (visible->has_totals && visible->totals_epoch == epoch)
		return;
	before = visible->counts;
	visible->counts = *counts;
	*counts = before;
	visible->has_totals = true;
	visible->totals_epoch = epoch;
}

/* They are counted without the mutex: whoever has that must not wait for the tree's lock, as looks
 * do. */
static int prepare_totals(struct pfs_visible *visible, const struct pfs_tree *tree,
			  const struct pfs_scan_watch *watch)
{
	struct counting counting = {.visible = visible, .tree = tree, .watch = watch};
	int error;

	if (has_totals(visible, tree))
		return 0;
	error = count(&counting);
	pfs_free_later(counting.below);
	if (!error)
		keep(visible, &counting.counts, tree->image.epoch);
	finish_counts(&counting.counts);
	return error;
}

static int64_t total_of(const struct pfs_visible *visible, const struct pfs_tree *tree,
			enum pfs_field field, uint32_t slot)
{
	const struct counts *counts = &visible->counts;
	struct pfs_totals totals = pfs_slot_bit(counts->directories, slot)
					   ? counts->totals[number_of(counts, slot)]
					   : pfs_totals_own(tree, slot);

	return pfs_scan_total(&totals, field);
}

static int count_names(struct pfs_visible *visible, const struct pfs_tree *tree)
{
	PFS_LOCKED(&visible->lock);

	if (visible->names && visible->names_epoch == tree->image.epoch)
		return 0;
	free(visible->names);
	visible->names = NULL;
	visible->names_epoch = tree->image.epoch;
	return pfs_hard_links_seen(tree, &visible->names, pfs_visible_has, visible);
}

int pfs_visible_prepare(struct pfs_visible *visible, struct pfs_tree *tree, enum pfs_field field,
			const struct pfs_scan_watch *watch)
{
	if (!pfs_field_is_total(field))
		return 0;
	return visible ? prepare_totals(visible, tree, watch)
		       : pfs_scan_prepare_totals(tree, watch);
}

/* A file's only name in sight is one that has no others. */
static int64_t link_seen(const struct pfs_visible *visible, const struct pfs_tree *tree,
			 uint32_t slot)
{
	int64_t link = pfs_hard_link_of(tree, slot);

	return link != PFS_NO_LINK && pfs_hard_link_names(tree, slot, visible->names) > 1
		       ? link
		       : PFS_NO_LINK;
}

int pfs_visible_integers(struct pfs_visible *visible, struct pfs_tree *tree, int64_t *out,
			 enum pfs_field field, const uint32_t *slots, size_t n)
{
	if (!visible || !pfs_field_is_viewers(field))
		return pfs_scan_integers(tree, out, field, slots, n);
	if (field == PFS_FIELD_LINKS || field == PFS_FIELD_LINK) {
		PFS_TRY(count_names(visible, tree));
		for (size_t i = 0; i < n; i++)
			out[i] = field == PFS_FIELD_LINK
					 ? link_seen(visible, tree, slots[i])
					 : pfs_hard_link_names(tree, slots[i], visible->names);
		return 0;
	}
	if (!pfs_field_is_total(field))
		return -EINVAL;
	PFS_TRY(prepare_totals(visible, tree, NULL));
	for (size_t i = 0; i < n; i++)
		out[i] = total_of(visible, tree, field, slots[i]);
	return 0;
}
