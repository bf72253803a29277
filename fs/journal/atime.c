/* SPDX-License-Identifier: MIT */
#include "fs/journal/atime.h"

#include "fs/image/image.h"
#include "fs/journal/journal.h"
#include "fs/tree/tree_impl.h"

#define DAY INT64_C(86400)

static bool is_later(struct pfs_time a, struct pfs_time b)
{
	return a.sec != b.sec ? a.sec > b.sec : a.nsec > b.nsec;
}

bool pfs_atime_is_due(const struct pfs_tree *tree, uint32_t slot)
{
	const struct pfs_image *image = &tree->image;
	struct pfs_time atime;

	if (tree->options.no_atime || atomic_load(&tree->read_only))
		return false;
	atime = pfs_image_time(tree, image->atime, slot);
	return !is_later(atime, pfs_image_time(tree, image->mtime, slot)) ||
	       !is_later(atime, pfs_image_time(tree, image->ctime, slot)) ||
	       pfs_now().sec - atime.sec >= DAY;
}

void pfs_update_atime(struct pfs_tree *tree, uint64_t ino)
{
	uint32_t slot;

	if (pfs_journal_reserve(tree, 1, 0, true))
		return;
	pfs_hold_write(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot != PFS_NO_SLOT && pfs_atime_is_due(tree, slot))
		pfs_stamp(tree, slot, PFS_COLUMN_ATIME, pfs_now());
	pfs_hold_end(tree);
}
