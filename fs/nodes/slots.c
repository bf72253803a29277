/* SPDX-License-Identifier: MIT */
/* The tree held for reading, and what is known of a slot without a look at others (scan.h). */
#include "fs/nodes/scan.h"

#include <stdlib.h>

#include "base/later.h"
#include "fs/image/hold.h"
#include "fs/image/span.h"
#include "fs/tree/tree_impl.h"

uint64_t pfs_scan_lock(struct pfs_tree *tree, const char *by)
{
	pfs_hold_read(tree, by);
	return tree->image.epoch;
}

void pfs_scan_unlock(struct pfs_tree *tree)
{
	pfs_hold_end(tree);
}

uint32_t pfs_scan_end(const struct pfs_tree *tree)
{
	return tree->image.end;
}

uint32_t pfs_scan_slot_of(const struct pfs_tree *tree, uint64_t ino)
{
	uint32_t slot = pfs_image_slot(tree, ino);

	return slot != PFS_NO_SLOT && pfs_image_is_live(&tree->image, slot) ? slot : PFS_NO_SLOT;
}

uint32_t pfs_scan_span(struct pfs_tree *tree, uint32_t slot)
{
	uint32_t end;

	if (slot == tree->image.root)
		return tree->image.nodes;
	if (!S_ISDIR(tree->image.mode[slot]))
		return 1;
	end = pfs_span_end(tree, slot);
	return end > slot ? end - slot : 0;
}

int pfs_scan_ranges(struct pfs_tree *tree, struct pfs_slot_range **ranges, size_t *n, uint32_t slot)
{
	const bool is_root = slot == tree->image.root;

	if (!is_root && S_ISDIR(tree->image.mode[slot]))
		return pfs_span_ranges(tree, ranges, n, slot);
	*ranges = malloc(sizeof(**ranges));
	if (!*ranges)
		return -ENOMEM;
	**ranges = is_root ? (struct pfs_slot_range){0, tree->image.end}
			   : (struct pfs_slot_range){slot, slot + 1};
	*n = 1;
	return 0;
}

void pfs_slots_finish(struct pfs_slots *slots)
{
	pfs_free_later(slots->slot);
	*slots = (struct pfs_slots){0};
}
