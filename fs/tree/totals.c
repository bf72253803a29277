/* SPDX-License-Identifier: MIT */
/* Totals of a subtree, whoever asks first. */
#include "fs/image/totals.h"

#include "fs/tree/tree_impl.h"

int pfs_tree_totals(struct pfs_tree *tree, struct pfs_totals *out, uint64_t ino)
{
	uint32_t slot;
	int error;

	pfs_hold_read(tree, __func__);
	error = pfs_image_slot(tree, ino) == PFS_NO_SLOT
			? -ESTALE
			: pfs_totals_prepare(tree, pfs_hold_pause, tree);
	slot = pfs_image_slot(tree, ino);
	if (!error && slot == PFS_NO_SLOT)
		error = -ESTALE; /* it went meanwhile */
	if (!error)
		pfs_totals_at(tree, out, slot);
	pfs_hold_end(tree);
	return error;
}
