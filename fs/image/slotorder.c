/* SPDX-License-Identifier: MIT */
#include "fs/image/slotorder.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/radix.h"
#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/tree/tree_impl.h"

struct pfs_slotorder {
	pthread_mutex_t lock; /* of noting it, with tree->lock for reading */
	atomic_int order;     /* enum pfs_slot_order; set after what strays from it, */
	uint32_t strays[PFS_STRAYS_MAX], n_strays; /* which ascends */
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

void pfs_slotorder_note(struct pfs_tree *tree, enum pfs_slot_order order, const uint32_t *strays,
			  size_t n)
{
	struct pfs_slotorder *known = tree->slotorder;
	PFS_LOCKED(&known->lock);

	if (atomic_load(&known->order) != PFS_ORDER_UNKNOWN) /* another reader was faster */
		return;
	if (n)
		memcpy(known->strays, strays, n * sizeof(*strays));
	known->n_strays = (uint32_t)n;
	atomic_store(&known->order, order);
}

static void stray(const struct pfs_tree *tree, uint32_t slot)
{
	struct pfs_slotorder *known = tree->slotorder;
	size_t at = first_stray(known, slot);

	if (at < known->n_strays && known->strays[at] == slot)
		return;
	if (known->n_strays == PFS_STRAYS_MAX) {
		atomic_store(&known->order, PFS_ORDER_UNKNOWN);
		return;
	}
	memmove(known->strays + at + 1, known->strays + at,
		(known->n_strays++ - at) * sizeof(*known->strays));
	known->strays[at] = slot;
}

static void changed(struct pfs_tree *tree, uint32_t slot, unsigned columns PFS_UNUSED)
{
	struct pfs_slotorder *known = tree->slotorder;

	if (!pfs_image_is_live(&tree->image, slot) ||
	    atomic_load(&known->order) != PFS_ORDER_ASCENDING)
		return;
	if (S_ISDIR(tree->image.mode[slot]) && !pfs_image_is_empty(tree, slot))
		atomic_store(&known->order, PFS_ORDER_UNKNOWN);
	else
		stray(tree, slot);
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
