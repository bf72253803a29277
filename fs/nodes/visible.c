/* SPDX-License-Identifier: MIT */
/* What is kept is a bit for each directory: whether what lies in it can be seen. */
#include "fs/nodes/visible.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/content/hardlink.h"
#include "fs/image/totals.h"
#include "fs/nodes/scan_impl.h"
#include "fs/tree/tree_impl.h"

#define VIEWERS_MAX 16u /* that are remembered */

struct pfs_visible {
	atomic_uint references;
	struct pfs_viewer viewer;
	gid_t *groups; /* the viewer's, owned */
	uint64_t access; /* when it was found: image.access */
	uint64_t *open;	 /* by slot */
	pthread_mutex_t lock; /* of what follows */
	bool has_totals;
	uint64_t totals_epoch;
	struct pfs_totals *totals; /* by number of directory */
	uint32_t *first_number;	   /* by word of slots: directories before it */
	uint64_t *directories;	   /* bits by slot */
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

void pfs_visible_unref(struct pfs_visible *visible)
{
	if (!visible || atomic_fetch_sub(&visible->references, 1) > 1)
		return;
	(void)pthread_mutex_destroy(&visible->lock);
	free(visible->groups);
	free(visible->open);
	free(visible->totals);
	free(visible->first_number);
	free(visible->directories);
	free(visible->names);
	free(visible);
}

/* ---- what is open ---- */

static bool is_member(const struct pfs_viewer *viewer, gid_t gid)
{
	for (size_t i = 0; i < viewer->n_groups; i++)
		if (viewer->groups[i] == gid)
			return true;
	return viewer->gid == gid;
}

/* Whether the node itself lets the viewer do all of `what`: R_OK, W_OK, X_OK. */
static bool allows(const struct pfs_image *image, const struct pfs_viewer *viewer, uint32_t slot,
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
	return allows(image, viewer, slot, R_OK | X_OK);
}

static bool get_bit(const uint64_t *bits, uint32_t slot)
{
	return bits[slot / 64] >> slot % 64 & 1;
}

static void set_bit(uint64_t *bits, uint32_t slot)
{
	bits[slot / 64] |= UINT64_C(1) << slot % 64;
}

/* Whether it and all above it do. */
static bool all_let_in(const struct pfs_image *image, const struct pfs_viewer *viewer, uint32_t slot)
{
	while (slot != PFS_NO_SLOT && lets_in(image, viewer, slot))
		slot = image->parent[slot];
	return slot == PFS_NO_SLOT;
}

static bool is_directory(const struct pfs_image *image, uint32_t slot)
{
	return S_ISDIR(image->mode[slot]) && pfs_image_is_live(image, slot);
}

/* What is above is known already, where its slot is the lower one. */
static void find_open(struct pfs_visible *visible, const struct pfs_image *image)
{
	for (uint32_t slot = 0; slot < image->end; slot++) {
		uint32_t parent = image->parent[slot];
		bool open;

		if (!is_directory(image, slot))
			continue;
		if (parent < slot)
			open = get_bit(visible->open, parent) &&
			       lets_in(image, &visible->viewer, slot);
		else
			open = all_let_in(image, &visible->viewer, slot);
		if (open)
			set_bit(visible->open, slot);
	}
}

static struct pfs_visible *create(const struct pfs_tree *tree, const struct pfs_viewer *viewer)
{
	struct pfs_visible *visible = calloc(1, sizeof(*visible));

	if (!visible)
		return NULL;
	(void)pthread_mutex_init(&visible->lock, NULL);
	atomic_store(&visible->references, 1);
	visible->access = tree->image.access;
	visible->groups = malloc((viewer->n_groups + 1) * sizeof(*visible->groups));
	visible->open = calloc((size_t)tree->image.end / 64 + 1, sizeof(*visible->open));
	if (!visible->groups || !visible->open) {
		pfs_visible_unref(visible);
		return NULL;
	}
	if (viewer->n_groups)
		memcpy(visible->groups, viewer->groups,
		       viewer->n_groups * sizeof(*visible->groups));
	visible->viewer = *viewer;
	visible->viewer.groups = visible->groups;
	find_open(visible, &tree->image);
	return visible;
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
	return visible->access == tree->image.access;
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

int pfs_visible_get(struct pfs_visible **out, struct pfs_tree *tree,
		    const struct pfs_viewer *viewer)
{
	struct pfs_viewers *viewers = tree->viewers;
	struct pfs_visible *visible;
	size_t i;

	*out = NULL;
	if (viewer->uid == 0)
		return 0;
	PFS_LOCKED(&viewers->lock);
	i = find(viewers, viewer);
	visible = viewers->seen[i];
	if (!visible || !is_same(&visible->viewer, viewer) || !is_current(visible, tree)) {
		visible = create(tree, viewer);
		if (!visible)
			return -ENOMEM;
		pfs_visible_unref(viewers->seen[i]);
	}
	memmove(viewers->seen + 1, viewers->seen, i * sizeof(struct pfs_visible *));
	viewers->seen[0] = visible;
	*out = pfs_visible_ref(visible);
	return 0;
}

/* ---- asking ---- */

bool pfs_visible_has(const struct pfs_visible *visible, const struct pfs_tree *tree, uint32_t slot)
{
	uint32_t parent = tree->image.parent[slot];

	return !visible || parent == PFS_NO_SLOT || get_bit(visible->open, parent);
}

bool pfs_visible_may_read(const struct pfs_visible *visible, const struct pfs_tree *tree,
			  uint32_t slot)
{
	return !visible || allows(&tree->image, &visible->viewer, slot, R_OK);
}

int pfs_visible_bearers(const struct pfs_visible *visible, const struct pfs_tree *tree,
			struct pfs_slots *out)
{
	const struct pfs_image *image = &tree->image;
	size_t capacity = 0;

	*out = (struct pfs_slots){.n = 0};
	for (uint32_t slot = 0; slot < image->end; slot++) {
		if (!(image->flags[slot] & PFS_NODE_ATTRS) || !pfs_image_is_live(image, slot) ||
		    !pfs_visible_has(visible, tree, slot) ||
		    !pfs_visible_may_read(visible, tree, slot))
			continue;
		if (pfs_grow(&out->slot, &capacity, out->n + 1, sizeof(*out->slot))) {
			pfs_slots_finish(out);
			return -ENOMEM;
		}
		out->slot[out->n++] = slot;
	}
	return 0;
}

struct pfs_predicate pfs_visible_predicate(const struct pfs_visible *visible)
{
	if (!visible) /* every node has a name */
		return (struct pfs_predicate){
			.field = PFS_FIELD_NAME,
			.test = PFS_TEST_NONE,
			.negated = true,
		};
	return (struct pfs_predicate){.test = PFS_TEST_SHOWN, .bits = visible->open};
}

/* ---- totals ---- */

static size_t number_of(const struct pfs_visible *visible, uint32_t slot)
{
	uint64_t below = visible->directories[slot / 64] & ((UINT64_C(1) << slot % 64) - 1);

	return visible->first_number[slot / 64] + (size_t)__builtin_popcountll(below);
}

/* Numbers the directories that can be seen. */
static size_t number_directories(struct pfs_visible *visible, const struct pfs_tree *tree)
{
	const struct pfs_image *image = &tree->image;
	size_t n = 0;

	for (uint32_t slot = 0; slot < image->end; slot++) {
		if (slot % 64 == 0) {
			visible->first_number[slot / 64] = (uint32_t)n;
			visible->directories[slot / 64] = 0;
		}
		if (is_directory(image, slot) && pfs_visible_has(visible, tree, slot)) {
			set_bit(visible->directories, slot);
			n++;
		}
	}
	return n;
}

static void add(struct pfs_totals *to, const struct pfs_totals *totals)
{
	to->count += totals->count;
	to->size += totals->size;
	to->blocks += totals->blocks;
	to->mtime = PFS_MAX(to->mtime, totals->mtime);
}

/* Every node is added to the directory it lies in; *below counts subdirectories. */
static void add_to_parents(struct pfs_visible *visible, const struct pfs_tree *tree, uint32_t *below)
{
	const struct pfs_image *image = &tree->image;

	for (uint32_t slot = 0; slot < image->end; slot++) {
		struct pfs_totals own;
		uint32_t parent;

		if (!pfs_image_is_live(image, slot) || !pfs_visible_has(visible, tree, slot))
			continue;
		own = pfs_totals_own(tree, slot);
		parent = image->parent[slot];
		if (S_ISDIR(image->mode[slot])) {
			add(&visible->totals[number_of(visible, slot)], &own);
			if (parent != PFS_NO_SLOT)
				below[number_of(visible, parent)]++;
		} else {
			add(&visible->totals[number_of(visible, parent)], &own);
		}
	}
}

/* A directory is complete when all below it are; then it is added to the one above. */
static void add_upwards(struct pfs_visible *visible, const struct pfs_tree *tree, uint32_t *below)
{
	const uint32_t *parents = tree->image.parent;

	for (uint32_t slot = tree->image.end; slot-- > 0;) {
		uint32_t at = slot;

		if (!get_bit(visible->directories, slot) || below[number_of(visible, slot)])
			continue;
		while (parents[at] != PFS_NO_SLOT) {
			size_t up = number_of(visible, parents[at]), here = number_of(visible, at);

			below[here] = UINT32_MAX; /* done */
			add(&visible->totals[up], &visible->totals[here]);
			at = parents[at];
			if (--below[up])
				break;
		}
	}
}

static int make_totals(struct pfs_visible *visible, const struct pfs_tree *tree)
{
	size_t words = (size_t)tree->image.end / 64 + 1, n;
	uint32_t *below PFS_FREE = NULL;

	free(visible->totals);
	free(visible->directories);
	free(visible->first_number);
	visible->totals = NULL;
	visible->directories = calloc(words, sizeof(*visible->directories));
	visible->first_number = calloc(words, sizeof(*visible->first_number));
	if (!visible->directories || !visible->first_number)
		return -ENOMEM;
	n = number_directories(visible, tree);
	below = calloc(n + 1, sizeof(*below));
	visible->totals = calloc(n + 1, sizeof(*visible->totals));
	if (!below || !visible->totals)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		visible->totals[i].mtime = INT64_MIN;
	add_to_parents(visible, tree, below);
	add_upwards(visible, tree, below);
	return 0;
}

static int prepare_totals(struct pfs_visible *visible, const struct pfs_tree *tree)
{
	PFS_LOCKED(&visible->lock);

	if (visible->has_totals && visible->totals_epoch == tree->image.epoch)
		return 0;
	visible->has_totals = false;
	PFS_TRY(make_totals(visible, tree));
	visible->has_totals = true;
	visible->totals_epoch = tree->image.epoch;
	return 0;
}

static int64_t total_of(const struct pfs_visible *visible, const struct pfs_tree *tree,
			enum pfs_field field, uint32_t slot)
{
	struct pfs_totals totals = get_bit(visible->directories, slot)
					   ? visible->totals[number_of(visible, slot)]
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
	return pfs_hard_links_seen(tree, &visible->names, visible);
}

int pfs_visible_integers(struct pfs_visible *visible, struct pfs_tree *tree, int64_t *out,
			 enum pfs_field field, const uint32_t *slots, size_t n)
{
	if (!visible || !pfs_field_is_viewers(field))
		return pfs_scan_integers(tree, out, field, slots, n);
	if (field == PFS_FIELD_LINKS) {
		PFS_TRY(count_names(visible, tree));
		for (size_t i = 0; i < n; i++)
			out[i] = pfs_hard_link_names(tree, slots[i], visible->names);
		return 0;
	}
	PFS_TRY(prepare_totals(visible, tree));
	for (size_t i = 0; i < n; i++)
		out[i] = total_of(visible, tree, field, slots[i]);
	return 0;
}
