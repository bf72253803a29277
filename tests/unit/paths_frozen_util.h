/* SPDX-License-Identifier: MIT */
/* tests/unit/paths_frozen_util.h - a frozen tree beside the tree that goes on, for tests of its
 * path index. */
#ifndef PFS_TESTS_UNIT_PATHS_FROZEN_UTIL_H
#define PFS_TESTS_UNIT_PATHS_FROZEN_UTIL_H

#include "paths_util.h"

#include "fs/tree/frozen.h"
#include "fs/tree/tree_impl.h"

static struct model now; /* the tree as it goes on */
static struct pfs_tree *frozen;

/* What the model has from now on is what the frozen tree has. */
static void freeze(void)
{
	const struct pfs_frozen_wish wish = {.most = UINT64_MAX};

	look();
	assert_int_equal(pfs_frozen_open(&frozen, model.tree, &wish), 0);
	model_look(&now, model.tree);
}

static void thaw(void)
{
	pfs_frozen_close(frozen);
	model_forget(&now);
}

static const struct pfs_path_range all = {.low = NULL};

/* Returns the error of opening a walk along all paths of the frozen tree. */
static int open_walk(void)
{
	struct pfs_path_index_walk *walk;
	int error;

	(void)pfs_scan_lock(frozen, __func__);
	error = pfs_path_index_walk_open(&walk, frozen, &all, false);
	if (!error)
		pfs_path_index_walk_close(walk);
	pfs_scan_unlock(frozen);
	return error;
}

#endif
