/* SPDX-License-Identifier: MIT */
#include "fs/tree/frozen.h"

#include <stdlib.h>

#include "base/checked.h"
#include "fs/content/hardlink.h"
#include "fs/image/slotorder.h"
#include "fs/image/span.h"
#include "fs/image/still.h"
#include "fs/image/totals.h"
#include "fs/nodes/codes.h"
#include "fs/nodes/columns.h"
#include "fs/nodes/index.h"
#include "fs/tree/directories.h"
#include "fs/tree/tree_impl.h"

/* What is derived, of which nothing is made yet. */
static int create_parts(struct pfs_tree *tree)
{
	static int (*const create[])(struct pfs_tree *tree) = {
		pfs_codes_create,   pfs_totals_create,	pfs_spans_create,
		pfs_slotorder_create, pfs_viewers_create, pfs_indexes_create, pfs_columns_create,
		pfs_directories_create,
	};

	for (size_t i = 0; i < PFS_COUNT(create); i++)
		PFS_TRY(create[i](tree));
	return 0;
}

static int open_tree(struct pfs_tree *tree, struct pfs_tree *live, unsigned columns, uint64_t most,
		     int (*poll)(void *arg), void *arg)
{
	pfs_hold_create(tree);
	atomic_store(&tree->read_only, true);
	tree->store = live->store;
	tree->scan = live->scan;
	tree->registers = live->registers;
	tree->hard_links = live->hard_links; /* there are none, and none come */
	pfs_hold_read(live, __func__);
	if (pfs_still_size(columns, live->image.end) > most || pfs_hard_links_are_there(live))
		columns = 0;
	pfs_hold_end(live);
	if (!columns)
		return -EOPNOTSUPP;
	PFS_TRY(pfs_still_open(tree, live, columns, poll, arg));
	return create_parts(tree);
}

int pfs_frozen_open(struct pfs_tree **out, struct pfs_tree *live, unsigned columns, uint64_t most,
		    int (*poll)(void *arg), void *arg)
{
	struct pfs_tree *tree = calloc(1, sizeof(*tree));
	int error;

	*out = NULL;
	if (!tree)
		return -ENOMEM;
	error = open_tree(tree, live, columns, most, poll, arg);
	if (error)
		pfs_frozen_close(tree);
	else
		*out = tree;
	return error;
}

void pfs_frozen_close(struct pfs_tree *frozen)
{
	if (!frozen)
		return;
	pfs_directories_destroy(frozen);
	pfs_indexes_destroy(frozen);
	pfs_columns_destroy(frozen);
	pfs_viewers_destroy(frozen);
	pfs_slotorder_destroy(frozen);
	pfs_spans_destroy(frozen);
	pfs_totals_destroy(frozen);
	pfs_codes_destroy(frozen);
	pfs_still_close(frozen);
	pfs_hold_destroy(frozen);
	free(frozen);
}

uint64_t pfs_frozen_size(const struct pfs_tree *frozen)
{
	return pfs_still_bytes(frozen);
}

bool pfs_frozen_is_lost(const struct pfs_tree *frozen)
{
	return pfs_still_is_lost(frozen);
}
