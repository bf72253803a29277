/* SPDX-License-Identifier: MIT */
/* rename(2).  All of it is decided and reserved before anything changes. */
#include "fs/tree/dir.h"

#include <stdio.h>

#include "base/btree.h"
#include "fs/content/row.h"
#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/image/path.h"
#include "fs/journal/journal.h"
#include "fs/journal/part.h"
#include "fs/tree/tree_impl.h"

struct place {
	uint64_t parent;
	const char *name;
	size_t name_len;
	uint32_t hash;	    /* of the name */
	uint32_t directory; /* slots, once locked */
	uint32_t slot;
};

struct renaming {
	struct place from, to;
	unsigned flags;
	uint64_t kept;	   /* the node whose record may go */
	uint64_t former;   /* what history keeps of it, in bytes */
	uint64_t replaced; /* the node that went or has to be kept first, or 0 */
	bool is_unused;	   /* nobody refers to it */
	uint64_t moved[2]; /* those that have another place now, or 0 */
};

static bool is_directory(const struct pfs_tree *tree, uint32_t slot)
{
	return S_ISDIR(tree->image.mode[slot]);
}

/* The test of a move: would the directory come to lie under itself? */
static bool is_under(const struct pfs_tree *tree, uint32_t directory, uint32_t moved)
{
	bool under;

	if (pfs_device_lookup_is_under(tree, &under, PFS_QUESTION_MOVE, directory, moved))
		return under;
	pfs_device_lookup_count(tree, PFS_QUESTION_MOVE, false, 0);
	return pfs_image_is_under(tree, directory, moved);
}

static int find(struct pfs_tree *tree, struct place *place)
{
	PFS_TRY(pfs_dir_slot_alive(tree, &place->directory, place->parent));
	place->hash = pfs_image_hash(tree, place->name, place->name_len);
	place->slot = pfs_image_child_of_hash(tree, place->directory, place->name, place->name_len,
					      place->hash);
	return 0;
}

static int check_exchange(const struct pfs_tree *tree, const struct place *from,
			  const struct place *to)
{
	if (to->slot == PFS_NO_SLOT)
		return -ENOENT;
	if (is_directory(tree, to->slot) && is_under(tree, from->directory, to->slot))
		return -EINVAL;
	return 0;
}

static int check_replace(const struct pfs_tree *tree, const struct place *from,
			 const struct place *to)
{
	if (to->slot == PFS_NO_SLOT || to->slot == from->slot)
		return 0;
	if (is_directory(tree, from->slot) && !is_directory(tree, to->slot))
		return -ENOTDIR;
	if (!is_directory(tree, from->slot) && is_directory(tree, to->slot))
		return -EISDIR;
	if (is_directory(tree, to->slot) && !pfs_image_is_empty(tree, to->slot))
		return -ENOTEMPTY;
	return 0;
}

static int check(struct pfs_tree *tree, struct renaming *renaming)
{
	struct place *from = &renaming->from, *to = &renaming->to;

	PFS_TRY(find(tree, from));
	PFS_TRY(find(tree, to));
	if (from->slot == PFS_NO_SLOT)
		return -ENOENT;
	if (renaming->flags & RENAME_NOREPLACE && to->slot != PFS_NO_SLOT)
		return -EEXIST;
	if (is_directory(tree, from->slot) && is_under(tree, to->directory, from->slot))
		return -EINVAL;
	if (renaming->flags & RENAME_EXCHANGE)
		return check_exchange(tree, from, to);
	return check_replace(tree, from, to);
}

/* Gives the node the place `to`, with the name `name` (a place in the heap). */
static void move(struct pfs_tree *tree, uint32_t slot, const struct place *to, uint32_t name,
		 struct pfs_time now)
{
	uint32_t from = tree->image.parent[slot];

	/* first of all: what comes and goes is then hardly ever the newest (totals.h) */
	pfs_stamp(tree, from, PFS_COLUMN_MTIME | PFS_COLUMN_CTIME, now);
	if (to->directory != from)
		pfs_stamp(tree, to->directory, PFS_COLUMN_MTIME | PFS_COLUMN_CTIME, now);
	pfs_image_move(tree, slot, to->directory, name, to->hash, pfs_stamp_ctime(tree, slot, now));
	pfs_journal_touch(tree, slot);
}

static int exchange(struct pfs_tree *tree, struct renaming *renaming)
{
	struct pfs_names *names = tree->image.names;
	struct place *from = &renaming->from, *to = &renaming->to;
	struct pfs_time now = pfs_now();
	uint32_t new_name, old_name;
	int error;

	PFS_TRY(pfs_names_add(names, &new_name, to->name, to->name_len));
	error = pfs_names_add(names, &old_name, from->name, from->name_len);
	if (error) {
		pfs_names_remove(names, new_name);
		return error;
	}
	move(tree, from->slot, to, new_name, now);
	move(tree, to->slot, from, old_name, now);
	return 0;
}

static int replace(struct pfs_tree *tree, struct renaming *renaming)
{
	struct place *from = &renaming->from, *to = &renaming->to;
	struct pfs_time now = pfs_now();
	uint32_t name;

	if (to->slot != PFS_NO_SLOT) {
		renaming->replaced = tree->image.prime[to->slot];
		if (pfs_parts_must_keep(tree, to->slot) && renaming->kept != renaming->replaced)
			return -EAGAIN;
	}
	PFS_TRY(pfs_names_add(tree->image.names, &name, to->name, to->name_len));
	if (to->slot != PFS_NO_SLOT)
		renaming->is_unused = pfs_unlink_slot(tree, to->slot, to->hash, now);
	pfs_journal_replaced(tree, renaming->former);
	move(tree, from->slot, to, name, now);
	return 0;
}

/* -EAGAIN: call pfs_parts_keep for what is replaced first. */
static int rename_locked(struct pfs_tree *tree, struct renaming *renaming)
{
	renaming->replaced = 0;
	PFS_TRY(check(tree, renaming));
	if (renaming->from.slot == renaming->to.slot)
		return 0;
	PFS_TRY(pfs_btree_reserve(tree->image.by_name, 2)); /* it takes no slot */
	renaming->moved[0] = tree->image.prime[renaming->from.slot];
	if (renaming->flags & RENAME_EXCHANGE)
		renaming->moved[1] = tree->image.prime[renaming->to.slot];
	return renaming->flags & RENAME_EXCHANGE ? exchange(tree, renaming)
						  : replace(tree, renaming);
}

static int prepare(struct renaming *renaming)
{
	PFS_TRY(pfs_name_check(&renaming->from.name_len, renaming->from.name));
	PFS_TRY(pfs_name_check(&renaming->to.name_len, renaming->to.name));
	if (renaming->flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE) ||
	    renaming->flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	return pfs_name_is_reserved(renaming->to.name) ? -EEXIST : 0;
}

int pfs_tree_rename(struct pfs_tree *tree, uint64_t parent, const char *name, uint64_t new_parent,
		    const char *new_name, unsigned flags)
{
	struct renaming renaming = {
		.from = {.parent = parent, .name = name},
		.to = {.parent = new_parent, .name = new_name},
		.flags = flags,
	};
	int error = prepare(&renaming);

	pfs_rows_hold(tree);
	while (!error) {
		error = pfs_journal_reserve_removal(tree, 4, renaming.former);
		if (error)
			break;
		pfs_hold_write(tree, __func__);
		error = rename_locked(tree, &renaming);
		pfs_hold_end(tree);
		if (error != -EAGAIN)
			break;
		error = pfs_parts_keep(tree, renaming.replaced, &renaming.former);
		renaming.kept = renaming.replaced;
	}
	if (!error && renaming.is_unused)
		pfs_drop_unused(tree, renaming.replaced);
	for (size_t i = 0; i < PFS_COUNT(renaming.moved) && !error; i++)
		if (renaming.moved[i])
			pfs_row_changed(tree, renaming.moved[i], false);
	pfs_rows_let_go(tree);
	return error;
}
