/* SPDX-License-Identifier: MIT */
/* The nodes of a set: which of them still exist, and whether they are as they were when the
 * statement chose them. */
#include "fs/change/change_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/order.h"
#include "fs/attr/attrcolumn.h"
#include "fs/attr/attredit.h"
#include "fs/image/feed.h"
#include "fs/image/hold.h"
#include "fs/image/image.h"
#include "fs/image/image_copy.h"
#include "fs/tree/tree_impl.h"

#define FOUND_A_HOLD 1024u
/* changes since then that are compared one by one; they may be other nodes' */
#define RECENT_MAX   4096u

/* Returns true if one of the nodes has changed since the epoch of the statement. */
static bool is_recent(const struct pfs_changing *changing)
{
	const struct pfs_tree *tree = changing->tree;
	struct pfs_feed_follower others = {.columns = PFS_COLUMNS_ALL,
					   .cursor = changing->basis->epoch};
	size_t n = changing->changes->n, n_recent = RECENT_MAX;
	uint32_t recent[RECENT_MAX];

	if (pfs_feed_next(&tree->image, &others, recent, &n_recent)) /* there are more */
		return true;
	qsort(recent, n_recent, sizeof(*recent), pfs_compare_u32);
	for (size_t row = 0; row < n && n_recent; row++)
		if (bsearch(&changing->slots[row], recent, n_recent, sizeof(*recent),
			    pfs_compare_u32))
			return true;
	return false;
}

static size_t seen_size(const struct pfs_changing *changing)
{
	return ((size_t)changing->basis->frozen->image.end / 64 + 1) * sizeof(*changing->seen);
}

int pfs_change_find(struct pfs_changing *changing)
{
	const struct pfs_change_set *changes = changing->changes;
	struct pfs_tree *tree = changing->tree;

	if (!changing->basis->frozen || changes->kind == PFS_CHANGE_CREATE)
		return 0;
	changing->seen = malloc(seen_size(changing));
	if (!changing->seen)
		return -ENOMEM;
	for (size_t row = 0; row < changes->n;) {
		size_t end = PFS_MIN(changes->n, row + FOUND_A_HOLD);

		pfs_hold_read(tree, __func__);
		for (; row < end; row++)
			changing->slots[row] = pfs_image_slot(tree, changes->list[row].ino);
		pfs_hold_end(tree);
	}
	return 0;
}

static bool is_there(const struct pfs_changing *changing, size_t row)
{
	const struct pfs_image *image = &changing->tree->image;
	uint32_t slot = changing->slots[row];

	return slot != PFS_NO_SLOT && image->prime[slot] == changing->changes->list[row].ino &&
	       !(image->state[slot] & PFS_SLOT_UNLINKED);
}

static void exchange_edits(struct pfs_attr_edit *a, struct pfs_attr_edit *b)
{
	const struct pfs_attr_edit edit = *a;

	*a = *b;
	*b = edit;
}

/* Removes the rows of nodes that are gone: the result is as if they had been removed after the
 * change. */
static void drop_gone(struct pfs_changing *changing)
{
	struct pfs_change_set *changes = changing->changes;
	size_t n = 0;

	for (size_t row = 0; row < changes->n; row++) {
		if (!is_there(changing, row))
			continue;
		changes->list[n] = changes->list[row];
		changing->slots[n] = changing->slots[row];
		if (changing->edits)
			exchange_edits(&changing->edits[n], &changing->edits[row]);
		if (changing->kept)
			changing->kept[n] = changing->kept[row];
		n++;
	}
	changes->n = n;
}

/* Returns true if a directory above the node has moved. Directories that were looked at before are
 * not looked at again. */
static bool has_moved_above(struct pfs_changing *changing, uint32_t slot)
{
	const struct pfs_change_basis *basis = changing->basis;
	const uint32_t *parents = changing->tree->image.parent;
	uint32_t at = parents[slot];

	while (at != PFS_NO_SLOT && at < basis->frozen->image.end &&
	       !(changing->seen[at / 64] >> at % 64 & 1)) {
		if (pfs_image_copy_changed(basis->frozen, at, basis->columns & PFS_COLUMNS_PLACE))
			return true;
		changing->seen[at / 64] |= UINT64_C(1) << at % 64;
		at = parents[at];
	}
	return false;
}

/* Leaves columns alone that others have changed since. */
static void keep_theirs(struct pfs_change *change, unsigned changed)
{
	static const struct {
		unsigned column, fields;
	} of[] = {
		{PFS_COLUMN_PARENT | PFS_COLUMN_NAME,
		 PFS_CHANGE_PARENT | PFS_CHANGE_NAME | PFS_CHANGE_PATH},
		{PFS_COLUMN_MODE, PFS_CHANGE_MODE},
		{PFS_COLUMN_UID, PFS_CHANGE_UID},
		{PFS_COLUMN_GID, PFS_CHANGE_GID},
		{PFS_COLUMN_SIZE, PFS_CHANGE_SIZE},
		{PFS_COLUMN_ATIME, PFS_CHANGE_ATIME},
		{PFS_COLUMN_MTIME, PFS_CHANGE_MTIME},
	};

	for (size_t i = 0; i < PFS_COUNT(of); i++)
		if (changed & of[i].column)
			change->set &= ~of[i].fields;
}

static int look(struct pfs_changing *changing, size_t row)
{
	const struct pfs_change_basis *basis = changing->basis;
	struct pfs_change *change = &changing->changes->list[row];
	uint32_t slot = changing->slots[row];
	unsigned changed = pfs_image_copy_changed(basis->frozen, slot, basis->columns);

	if (basis->is_last && changing->changes->kind == PFS_CHANGE_UPDATE) {
		keep_theirs(change, changed);
		return 0;
	}
	if (!changed && !pfs_attrs_frozen_changed(basis->frozen, change->ino) &&
	    !has_moved_above(changing, slot))
		return 0;
	if (!basis->is_last)
		return -EAGAIN;
	return pfs_change_fail(changing, -EBUSY, slot,
			       "it changes faster than the statement finds it");
}

int pfs_change_check(struct pfs_changing *changing)
{
	const struct pfs_change_set *changes = changing->changes;

	if (changes->kind == PFS_CHANGE_CREATE)
		return 0;
	if (changing->basis->frozen) {
		/* an earlier attempt was in another hold */
		memset(changing->seen, 0, seen_size(changing));
		drop_gone(changing);
		for (size_t row = 0; row < changes->n; row++)
			PFS_TRY(look(changing, row));
		return 0;
	}
	for (size_t row = 0; row < changes->n; row++) {
		changing->slots[row] = pfs_image_slot(changing->tree, changes->list[row].ino);
		if (!is_there(changing, row))
			return -EAGAIN;
	}
	return is_recent(changing) ? -EAGAIN : 0;
}

bool pfs_change_came_later(const struct pfs_changing *changing, uint32_t slot)
{
	const struct pfs_change_basis *basis = changing->basis;

	return basis->frozen && !basis->is_last &&
	       (slot >= basis->frozen->image.end ||
		!pfs_image_is_live(&basis->frozen->image, slot) ||
		pfs_image_copy_changed(basis->frozen, slot, PFS_COLUMN_PARENT));
}
