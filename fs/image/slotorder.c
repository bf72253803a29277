/* SPDX-License-Identifier: MIT */
#include "fs/image/slotorder.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/radix.h"
#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/tree/tree_impl.h"

struct pfs_slotorder {
	pthread_mutex_t lock; /* of noting it, with tree->lock for reading */
	atomic_int order;     /* enum pfs_slot_order; set after what strays from it, */
	uint32_t strays[PFS_STRAYS_MAX], n_strays; /* which ascends */
	/* Protected by the lock and, for writing, by tree->lock: how many threads are determining
	 * the order (and share `strays`), and how often such a pass was abandoned. */
	unsigned looking, ended; /* how many; how often what had begun came to nothing */
};

enum pfs_slot_order pfs_slotorder(struct pfs_tree *tree)
{
	return (enum pfs_slot_order)atomic_load(&tree->slotorder->order);
}

/* The first of them that is not below the slot. */
static size_t first_stray(const struct pfs_slotorder *known, uint32_t slot)
{
	return pfs_lower_bound_u32(known->strays, known->n_strays, slot);
}

size_t pfs_slotorder_strays(struct pfs_tree *tree, const uint32_t **strays, uint32_t slot)
{
	const struct pfs_slotorder *known = tree->slotorder;
	size_t first = first_stray(known, slot);

	*strays = known->strays + first;
	return known->n_strays - first;
}

unsigned pfs_slotorder_begin(struct pfs_tree *tree)
{
	struct pfs_slotorder *known = tree->slotorder;
	PFS_LOCKED(&known->lock);

	if (known->looking++ == 0 && atomic_load(&known->order) == PFS_ORDER_UNKNOWN)
		known->n_strays = 0;
	return known->ended;
}

static bool is_stray(const struct pfs_slotorder *known, uint32_t slot)
{
	size_t at = first_stray(known, slot);

	return at < known->n_strays && known->strays[at] == slot;
}

size_t pfs_slotorder_keep(struct pfs_tree *tree, uint32_t *slots, size_t n)
{
	const struct pfs_slotorder *known = tree->slotorder;
	size_t kept = 0;
	PFS_LOCKED(&tree->slotorder->lock);

	for (size_t i = 0; i < n; i++)
		if (pfs_image_is_live(&tree->image, slots[i]) && !is_stray(known, slots[i]))
			slots[kept++] = slots[i];
	return kept;
}

/* Adds the strays that were found to those that strayed meanwhile. False: they are too many. */
static bool add_strays(struct pfs_slotorder *known, const uint32_t *strays, size_t n)
{
	uint32_t all[PFS_STRAYS_MAX];
	size_t n_all = 0, i = 0, j = 0;

	while (i < n || j < known->n_strays) {
		bool is_found = j == known->n_strays || (i < n && strays[i] <= known->strays[j]);
		uint32_t slot = is_found ? strays[i] : known->strays[j];

		if (n_all == PFS_STRAYS_MAX)
			return false;
		all[n_all++] = slot;
		i += i < n && strays[i] == slot;
		j += j < known->n_strays && known->strays[j] == slot;
	}
	if (n_all)
		memcpy(known->strays, all, n_all * sizeof(*all));
	known->n_strays = (uint32_t)n_all;
	return true;
}

void pfs_slotorder_end(struct pfs_tree *tree, unsigned begun, enum pfs_slot_order order,
		       const uint32_t *strays, size_t n)
{
	struct pfs_slotorder *known = tree->slotorder;
	PFS_LOCKED(&known->lock);

	known->looking--;
	if (begun != known->ended ||
	    atomic_load(&known->order) != PFS_ORDER_UNKNOWN) /* another was faster */
		return;
	if (order == PFS_ORDER_OTHER ||
	    (order == PFS_ORDER_ASCENDING && add_strays(known, strays, n)))
		atomic_store(&known->order, order);
}

/* Nothing is known, or will be from what has begun. */
static void forget(struct pfs_slotorder *known)
{
	atomic_store(&known->order, PFS_ORDER_UNKNOWN);
	known->n_strays = 0;
	known->ended++;
}

static void stray(const struct pfs_tree *tree, uint32_t slot)
{
	struct pfs_slotorder *known = tree->slotorder;
	size_t at = first_stray(known, slot);

	if (at < known->n_strays && known->strays[at] == slot)
		return;
	if (known->n_strays == PFS_STRAYS_MAX) {
		forget(known);
		return;
	}
	memmove(known->strays + at + 1, known->strays + at,
		(known->n_strays++ - at) * sizeof(*known->strays));
	known->strays[at] = slot;
}

static void changed(struct pfs_tree *tree, uint32_t slot, unsigned columns PFS_UNUSED)
{
	struct pfs_slotorder *known = tree->slotorder;

	int order = atomic_load(&known->order);

	if (!pfs_image_is_live(&tree->image, slot) || order == PFS_ORDER_OTHER ||
	    (order == PFS_ORDER_UNKNOWN && !known->looking))
		return;
	if (S_ISDIR(tree->image.mode[slot]) && !pfs_image_is_empty(tree, slot))
		forget(known);
	else
		stray(tree, slot);
}

void pfs_slotorder_load(struct pfs_tree *tree, const uint32_t *strays, uint32_t n)
{
	struct pfs_slotorder *known = tree->slotorder;

	forget(known);
	if (n == PFS_STRAYS_UNKNOWN)
		return;
	if (n)
		memcpy(known->strays, strays, n * sizeof(*strays));
	known->n_strays = n;
	atomic_store(&known->order, PFS_ORDER_ASCENDING);
}

/* Pre-order goes on in the directory that it is at, or in one of those above with a sibling that
 * comes later. */
static bool may_follow(const struct pfs_image *image, uint32_t last, uint32_t slot)
{
	uint32_t above = image->parent[slot];

	if (last == above)
		return true;
	while (last != image->root && image->parent[last] != above)
		last = image->parent[last];
	return last != image->root &&
	       pfs_names_compare(image->names, image->name[last], image->name[slot]) < 0;
}

static bool is_exact(const struct pfs_image *image)
{
	uint32_t last = image->root;

	for (uint32_t slot = 0; slot < image->end; slot++) {
		if (slot == image->root
			    ? last != slot
			    : pfs_image_is_live(image, slot) && !may_follow(image, last, slot))
			return false;
		if (pfs_image_is_live(image, slot))
			last = slot;
	}
	return true;
}

uint32_t pfs_slotorder_find(const struct pfs_tree *tree, const uint32_t **strays)
{
	const struct pfs_slotorder *known = tree->slotorder;
	int order = atomic_load(&known->order);

	*strays = known->strays;
	if (order == PFS_ORDER_ASCENDING)
		return known->n_strays;
	return order == PFS_ORDER_UNKNOWN && is_exact(&tree->image) ? 0 : PFS_STRAYS_UNKNOWN;
}

static const struct pfs_watcher watcher = {
	.name = "order of slots",
	.columns = PFS_COLUMNS_PLACE,
	.changed = changed,
};

int pfs_slotorder_create(struct pfs_tree *tree)
{
	tree->slotorder = calloc(1, sizeof(*tree->slotorder));
	if (!tree->slotorder)
		return -ENOMEM;
	(void)pthread_mutex_init(&tree->slotorder->lock, NULL);
	pfs_watch(tree, &watcher);
	return 0;
}

void pfs_slotorder_destroy(struct pfs_tree *tree)
{
	if (!tree->slotorder)
		return;
	(void)pthread_mutex_destroy(&tree->slotorder->lock);
	free(tree->slotorder);
	tree->slotorder = NULL;
}
