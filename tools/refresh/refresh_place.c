/* SPDX-License-Identifier: MIT */
/* Makes new directories, moves nodes, and reserves room for the changes of a hold. */
#include "tools/refresh/refresh_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/change/change.h"
#include "fs/journal/journal.h"

#define ATTEMPTS       16 /* how often a set is tried if its nodes change meanwhile */
#define DIRECTORY_ROWS 4u /* rows of a directory whose entries change, and of one change more */

static int change(struct pfs_refresh *refresh, struct pfs_change_set *set)
{
	const struct pfs_caller caller = {.uid = geteuid(), .gid = getegid()};
	char why[512];
	int error = set->n ? -EAGAIN : 0;

	for (int i = 0; i < ATTEMPTS && error == -EAGAIN; i++)
		error = pfs_tree_change(
			refresh->tree, set,
			&(struct pfs_change_basis){.epoch = pfs_follow_epoch(refresh->tree)},
			&caller, why, sizeof(why));
	return error;
}

static bool is_directory(const struct pfs_finding *found)
{
	return S_ISDIR(found->entry->attr.st_mode);
}

static bool makes_directory(const struct pfs_finding *found)
{
	return found->kind == PFS_FOUND_NEW && is_directory(found);
}

/* Returns true if the finding's name is needed before gone nodes go, or if options->keep is set, so
 * that they do not. A directory stays in the way of a file if something in it stays. */
static bool needs_name(const struct pfs_refresh *refresh, const struct pfs_finding *found)
{
	const struct pfs_gone *gone;

	if (found->kind != PFS_FOUND_NEW || is_directory(found))
		return found->kind == PFS_FOUND_NEW || found->kind == PFS_FOUND_MOVED;
	gone = refresh->options->keep && found->over ? pfs_refresh_find(refresh, found->over)
						     : NULL;
	return gone && !gone->stays;
}

/* ---- room ----
 *
 * Room is reserved for all changes of a hold. A change by itself finds out that the disk is full
 * only when it is made, in the middle of the hold, which would leave a directory with half of its
 * entries. */

static void add_found(struct pfs_journal_need *need, const struct pfs_finding *found)
{
	const struct pfs_crawl_entry *entry = found->entry;
	size_t at = entry->attrs;

	if (found->kind == PFS_FOUND_NEW)
		need->made++;
	else
		need->rows++;
	need->bytes += sizeof(struct pfs_source_record) + found->place->dir->path_len +
		       strlen(found->name) + entry->target_len;
	for (uint32_t i = 0; i < entry->n_attrs; i++) {
		struct pfs_crawl_attr attr;

		pfs_crawl_attr(found->batch, &attr, &at);
		need->bytes += attr.name_len + attr.value_len;
	}
}

/* Adds a node that goes with all below it. One that stays is marked, and does not go. */
static void add_gone(struct pfs_refresh *refresh, struct pfs_journal_need *need,
		     const struct pfs_gone *gone)
{
	need->bytes += gone->former;
	if (refresh->options->keep)
		need->rows += gone->n_below + 1;
	else
		need->gone += gone->n_below + 1;
}

/* Adds what loses its mark with the directory. */
static int add_marked(struct pfs_refresh *refresh, struct pfs_journal_need *need,
		      const struct pfs_finding *own)
{
	struct pfs_below *list = NULL;
	size_t n = 0;
	int error = own->ino && pfs_refresh_is_marked(refresh, own->ino)
			    ? pfs_refresh_list_below(refresh, &list, &n, own->ino)
			    : 0;

	free(list);
	need->rows += n;
	return error == -ESTALE ? 0 : error;
}

/* Holds for the changes of the node's directory. What only removes may use the last reserve. */
static int hold(struct pfs_refresh *refresh, struct pfs_journal_need *need, uint64_t ino)
{
	char *path PFS_FREE = NULL;
	uint64_t lacking;
	int error;

	need->rows += DIRECTORY_ROWS;
	error = pfs_follow_hold_for(refresh->tree, &lacking, need);
	if (error == -ENOSPC && !pfs_tree_path(refresh->tree, &path, ino))
		(void)snprintf(refresh->why, refresh->why_size,
			       "%s: its changes need up to %" PRIu64
			       " bytes free where the store is",
			       path, lacking);
	return error;
}

static int hold_moves(struct pfs_refresh *refresh)
{
	struct pfs_journal_need need = {.rows = 0};

	for (const struct pfs_finding *found = refresh->found; found; found = found->following) {
		if (!needs_name(refresh, found))
			continue;
		add_found(&need, found);
		need.rows += 3; /* both directories of a move, and a node that has its new name */
	}
	return hold(refresh, &need, refresh->root_ino);
}

int pfs_refresh_hold_place(struct pfs_refresh *refresh, const struct pfs_refresh_place *place)
{
	struct pfs_journal_need need = {.removal = !place->found};

	for (const struct pfs_finding *found = place->found; found; found = found->next)
		add_found(&need, found);
	if (place->own) {
		add_found(&need, place->own);
		PFS_TRY(add_marked(refresh, &need, place->own));
	}
	for (const struct pfs_gone *gone = place->gone; gone; gone = gone->next)
		if (!gone->present && !gone->claimed)
			add_gone(refresh, &need, gone);
	need.removal &= need.gone > 0;
	return hold(refresh, &need, place->ino);
}

int pfs_refresh_hold_loose(struct pfs_refresh *refresh, const struct pfs_gone *gone)
{
	struct pfs_journal_need need = {.removal = !refresh->options->keep};

	add_gone(refresh, &need, gone);
	return hold(refresh, &need, gone->parent);
}

/* ---- names that are taken ---- */

/* If another node has the finding's new name, and goes or is moved only later, gives that node
 * another name. */
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

static int clear_names(struct pfs_refresh *refresh)
{
	struct pfs_change_set set = {.kind = PFS_CHANGE_UPDATE};
	const struct pfs_finding *found;
	int error = 0;

	for (found = refresh->found; found && !error; found = found->following)
		if (found->place->ino && needs_name(refresh, found))
			error = clear_name(refresh, &set, found);
	if (!error)
		error = change(refresh, &set);
	pfs_change_set_finish(&set);
	return error;
}

/* ---- directories ---- */

/* Makes a new directory. If the place has no node, or the name is taken, the finding is LEFT, and
 * nothing below it is made either. */
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
		found->place->dir->unread = true;
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
			found->place->dir->unread = true;
			continue;
		}
		if (found->as && !found->as->own) /* it could not be read; its new place counts */
			found->as->own = found;
		error = pfs_change_set_move(&set, found->ino, found->place->ino,
					    pfs_refresh_name(found->name));
	}
	if (!error)
		error = change(refresh, &set);
	pfs_change_set_finish(&set);
	return error;
}

/* Lists directories that nodes leave, with their attributes. They need not have findings: that a
 * node left may be known only from its new place. */
static int list_left(struct pfs_refresh *refresh, struct pfs_followers *left)
{
	for (const struct pfs_finding *found = refresh->found; found; found = found->following) {
		uint64_t ino = found->kind == PFS_FOUND_MOVED
				       ? pfs_follow_parent(refresh->tree, found->ino)
				       : 0;

		if (!ino || (left->n && left->list[left->n - 1].ino == ino))
			continue;
		PFS_TRY(pfs_grow(&left->list, &left->capacity, left->n + 1, sizeof(*left->list)));
		if (!pfs_follow_node(refresh->tree, &left->list[left->n], ino))
			left->n++;
	}
	return 0;
}

int pfs_refresh_restore(struct pfs_refresh *refresh, uint64_t ino, const struct stat *before)
{
	const struct pfs_taking taking = {.attr = before, .set = PFS_SET_MTIME | PFS_SET_CTIME};
	int error = pfs_follow_take(refresh->tree, ino, &taking);

	return error == -ESTALE ? 0 : error;
}

/* Gives directories the times back that making and moving nodes has changed. These times tell what
 * is still to be done in a directory. */
static int restore_times(struct pfs_refresh *refresh, const struct pfs_followers *left)
{
	for (size_t i = 0; i < left->n; i++)
		PFS_TRY(pfs_refresh_restore(refresh, left->list[i].ino, &left->list[i].attr));
	for (const struct pfs_refresh_place *place = refresh->kept; place; place = place->next)
		if (place->ino && place->before.st_mode && !place->touched)
			PFS_TRY(pfs_refresh_restore(refresh, place->ino, &place->before));
	return 0;
}

static int make_and_move(struct pfs_refresh *refresh, struct pfs_followers *left)
{
	struct pfs_finding *found;

	PFS_TRY(list_left(refresh, left));
	PFS_TRY(clear_names(refresh));
	for (found = refresh->found; found; found = found->following)
		if (makes_directory(found))
			PFS_TRY(make_directory(refresh, found));
	PFS_TRY(move_all(refresh));
	return restore_times(refresh, left);
}

static int move_locked(struct pfs_refresh *refresh)
{
	struct pfs_followers left = {.n = 0};
	int error = make_and_move(refresh, &left);

	pfs_followers_finish(&left);
	return error;
}

int pfs_refresh_move(struct pfs_refresh *refresh)
{
	const struct pfs_finding *found = refresh->found;
	int error;

	while (found && !needs_name(refresh, found))
		found = found->following;
	if (!found)
		return 0;
	PFS_TRY(hold_moves(refresh));
	error = move_locked(refresh);
	pfs_follow_let_go(refresh->tree);
	return error;
}
