/* SPDX-License-Identifier: MIT */
/* New directories, and nodes that come to another place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/change/change.h"
#include "tools/refresh/refresh_impl.h"

#define ATTEMPTS 16 /* at a set of changes that others' changes come before */

static int change(struct pfs_refresh *refresh, struct pfs_change_set *set)
{
	const struct pfs_caller caller = {.uid = geteuid(), .gid = getegid()};
	char why[512];
	int error = set->n ? -EAGAIN : 0;

	for (int i = 0; i < ATTEMPTS && error == -EAGAIN; i++)
		error = pfs_tree_change(refresh->tree, set,
					&(struct pfs_change_basis){.epoch = pfs_follow_epoch(refresh->tree)},
					&caller, why, sizeof(why));
	return error;
}

/* ---- names that are in the way ---- */

/* What goes, or comes to another place later than this is made, gives its name up. */
static int clear_name(struct pfs_refresh *refresh, struct pfs_change_set *set,
		      const struct pfs_finding *found)
{
	const char *name = pfs_refresh_name(found->name);
	char other[PFS_NAME_MAX + 1];
	const struct pfs_gone *gone;
	uint64_t occupant;
	int error = pfs_follow_child(refresh->tree, &occupant, found->place->ino, name);

	if (error)
		return error == -ENOENT || error == -ESTALE ? 0 : error;
	gone = pfs_refresh_find(refresh, occupant);
	if (occupant == found->ino || !gone || gone->present ||
	    (found->kind == PFS_FOUND_MOVED && gone->claimed))
		return 0;
	pfs_change_name_aside(other, name, occupant);
	return pfs_change_set_move(set, occupant, found->place->ino, other);
}

static bool is_directory(const struct pfs_finding *found)
{
	return S_ISDIR(found->entry->attr.st_mode);
}

static bool makes_directory(const struct pfs_finding *found)
{
	return found->kind == PFS_FOUND_NEW && is_directory(found);
}

static int clear_names(struct pfs_refresh *refresh)
{
	struct pfs_change_set set = {.kind = PFS_CHANGE_UPDATE};
	const struct pfs_finding *found;
	int error = 0;

	for (found = refresh->found; found && !error; found = found->following)
		if (found->place->ino && (makes_directory(found) || found->kind == PFS_FOUND_MOVED))
			error = clear_name(refresh, &set, found);
	if (!error)
		error = change(refresh, &set);
	pfs_change_set_finish(&set);
	return error;
}

/* ---- directories ---- */

/* Where nothing can be made, nothing of what is below comes either. */
static int make_directory(struct pfs_refresh *refresh, struct pfs_finding *found)
{
	const struct pfs_caller caller = {.uid = geteuid(), .gid = getegid()};
	const struct pfs_refresh_watcher *watcher = refresh->options->watcher;
	const char *name = pfs_refresh_name(found->name);
	struct pfs_entry entry;
	int error;

	if (!found->place->ino) {
		found->kind = PFS_FOUND_LEFT;
		return 0;
	}
	error = pfs_tree_make(refresh->tree, &entry, found->place->ino, name, S_IFDIR | 0700, 0,
			      &caller);
	if (error == -EEXIST || error == -ENOENT || error == -ESTALE) {
		found->kind = PFS_FOUND_LEFT;
		return pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, found->place->ino, name, NULL,
				     "the store has something of its own by this name");
	}
	if (error)
		return error;
	found->ino = entry.attr.st_ino;
	pfs_tree_forget(refresh->tree, found->ino, 1);
	pfs_follow_tell(refresh->tree, found->place->ino, name);
	if (found->as) {
		found->as->ino = found->ino;
		found->as->own = found;
		if (watcher)
			watcher->made(watcher->arg, found->as->number, found->ino);
	}
	return pfs_refresh_take_made(refresh, found);
}

/* ---- moves ---- */

static int move_all(struct pfs_refresh *refresh)
{
	struct pfs_change_set set = {.kind = PFS_CHANGE_UPDATE};
	struct pfs_finding *found;
	int error = 0;

	for (found = refresh->found; found && !error; found = found->following) {
		if (found->kind != PFS_FOUND_MOVED)
			continue;
		if (!found->place->ino) {
			found->kind = PFS_FOUND_LEFT;
			continue;
		}
		if (found->as && !found->as->own) /* it could not be read: where it is counts */
			found->as->own = found;
		error = pfs_change_set_move(&set, found->ino, found->place->ino, pfs_refresh_name(found->name));
	}
	if (!error)
		error = change(refresh, &set);
	pfs_change_set_finish(&set);
	return error;
}

/* What is made and moved changes the times of directories; they tell what is still to do there. */
static int restore_times(struct pfs_refresh *refresh)
{
	const struct pfs_refresh_place *place;

	for (place = refresh->kept; place; place = place->next) {
		const struct pfs_taking taking = {
			.attr = &place->before,
			.set = PFS_SET_MTIME | PFS_SET_CTIME,
		};
		int error;

		if (!place->ino || !place->before.st_mode || place->touched)
			continue;
		error = pfs_follow_take(refresh->tree, place->ino, &taking);
		if (error && error != -ESTALE)
			return error;
	}
	return 0;
}

static int move_locked(struct pfs_refresh *refresh)
{
	struct pfs_finding *found;

	PFS_TRY(clear_names(refresh));
	for (found = refresh->found; found; found = found->following)
		if (makes_directory(found))
			PFS_TRY(make_directory(refresh, found));
	PFS_TRY(move_all(refresh));
	return restore_times(refresh);
}

int pfs_refresh_move(struct pfs_refresh *refresh)
{
	const struct pfs_finding *found = refresh->found;
	int error;

	while (found && !makes_directory(found) && found->kind != PFS_FOUND_MOVED)
		found = found->following;
	if (!found)
		return 0;
	PFS_TRY(pfs_refresh_reserve_moves(refresh));
	pfs_follow_hold(refresh->tree);
	error = move_locked(refresh);
	pfs_follow_let_go(refresh->tree);
	return error;
}
