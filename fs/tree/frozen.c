/* SPDX-License-Identifier: MIT */
#include "fs/tree/frozen.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "fs/attr/attrcolumn.h"
#include "fs/content/hardlink.h"
#include "fs/image/hold.h"
#include "fs/image/slotorder.h"
#include "fs/image/span.h"
#include "fs/image/image_copy.h"
#include "fs/image/totals.h"
#include "fs/image/watch.h"
#include "fs/nodes/codes.h"
#include "fs/nodes/columns.h"
#include "fs/nodes/index.h"
#include "fs/nodes/index_paths.h"
#include "fs/tree/directories.h"
#include "fs/tree/tree_impl.h"

#define ATTEMPTS 8 /* to find columns of attributes that hold yet */

/* What is derived, of which nothing is made yet. */
static int create_parts(struct pfs_tree *tree)
{
	static int (*const create[])(struct pfs_tree *tree) = {
		pfs_codes_create,   pfs_totals_create,	pfs_spans_create,
		pfs_slotorder_create, pfs_viewers_create, pfs_columns_create,
		pfs_directories_create,
	};

	for (size_t i = 0; i < PFS_COUNT(create); i++)
		PFS_TRY(create[i](tree));
	return 0;
}

static int hold(struct pfs_tree *live, const struct pfs_frozen_wish *wish)
{
	if (wish->hold)
		return wish->hold(wish->arg);
	pfs_hold_read(live, "pfs_frozen_begin");
	return 0;
}

/* Begins to freeze the tree, in one short hold. */
static int begin(struct pfs_tree *tree, struct pfs_tree *live, const struct pfs_frozen_wish *wish)
{
	uint64_t number;
	int error = 0;

	PFS_TRY(hold(live, wish));
	if (pfs_image_copy_size(wish->columns, live->image.end) > wish->most)
		error = -ENOMEM;
	if (!error)
		error = pfs_image_copy_begin(tree, &number);
	if (!error)
		error = pfs_attrs_frozen_begin(tree, number);
	if (!error)
		error = pfs_indexes_freeze(tree, live);
	if (!error)
		error = pfs_path_index_freeze(tree, live);
	pfs_hold_end(live);
	return error;
}

static int begin_tree(struct pfs_tree *tree, struct pfs_tree *live,
		      const struct pfs_frozen_wish *wish)
{
	pfs_hold_create(tree);
	atomic_store(&tree->read_only, true);
	tree->store = live->store;
	tree->pool = live->pool;
	tree->operators = live->operators;
	tree->registers = live->registers;
	tree->compared = live->compared;
	tree->links = live->links; /* what that asks: which folders are there */
	PFS_TRY(pfs_attrs_frozen_open(tree, live, wish->attrs, wish->n_attrs));
	PFS_TRY(pfs_image_copy_open(tree, live, wish->columns));
	PFS_TRY(pfs_indexes_create(tree));
	pfs_indexes_follow(live); /* so that little is left for the hold */
	return begin(tree, live, wish);
}

int pfs_frozen_fill(struct pfs_tree *frozen, struct pfs_tree *live,
		    const struct pfs_frozen_wish *wish)
{
	PFS_TRY(pfs_image_copy_fill(frozen, wish->poll, wish->arg));
	PFS_TRY(pfs_hard_links_freeze(frozen, live, wish->columns & PFS_COLUMN_FLAGS));
	return create_parts(frozen);
}

uint64_t pfs_frozen_epoch(const struct pfs_tree *frozen)
{
	return frozen->image.epoch;
}

int pfs_frozen_begin(struct pfs_tree **out, struct pfs_tree *live,
		     const struct pfs_frozen_wish *wish)
{
	int error = -EAGAIN;

	*out = NULL;
	for (unsigned attempt = 0; error == -EAGAIN && attempt < ATTEMPTS; attempt++) {
		struct pfs_tree *tree = calloc(1, sizeof(*tree));

		error = tree ? begin_tree(tree, live, wish) : -ENOMEM;
		if (error)
			pfs_frozen_close(tree);
		else
			*out = tree;
	}
	/* Columns of attributes are forgotten as soon as they are read. */
	return error == -EAGAIN && wish->n_attrs ? -ENOMEM : error;
}

int pfs_frozen_open(struct pfs_tree **out, struct pfs_tree *live,
		    const struct pfs_frozen_wish *wish)
{
	int error;

	PFS_TRY(pfs_frozen_begin(out, live, wish));
	error = pfs_frozen_fill(*out, live, wish);
	if (error)
		pfs_frozen_close(PFS_TAKE(*out));
	return error;
}

void pfs_frozen_close(struct pfs_tree *frozen)
{
	if (!frozen)
		return;
	pfs_directories_destroy(frozen);
	pfs_path_index_thaw(frozen);
	pfs_indexes_destroy(frozen);
	pfs_columns_destroy(frozen);
	pfs_viewers_destroy(frozen);
	pfs_slotorder_destroy(frozen);
	pfs_spans_destroy(frozen);
	pfs_totals_destroy(frozen);
	pfs_codes_destroy(frozen);
	pfs_attrs_frozen_close(frozen);
	pfs_hard_links_destroy(frozen);
	pfs_image_copy_close(frozen);
	pfs_hold_destroy(frozen);
	free(frozen);
}

uint64_t pfs_frozen_size(const struct pfs_tree *frozen)
{
	return pfs_image_copy_bytes(frozen);
}

bool pfs_frozen_is_lost(const struct pfs_tree *frozen)
{
	return pfs_image_copy_is_lost(frozen) || pfs_path_index_is_lost(frozen);
}
