/* SPDX-License-Identifier: MIT */
/* What each entry that was found is: a node that was elsewhere, the node of its name as another
 * file, or new.
 *
 * Directories come first: what lies in one that moved is compared with what it held, which brings
 * up more of everything.  An original's own mark decides before its name does. */
#include "tools/refresh/refresh_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

/* ---- directories ---- */

static bool is_open(const struct pfs_finding *found, bool directory)
{
	return found->kind == PFS_FOUND_NEW && !found->as && !found->closed &&
	       S_ISDIR(found->entry->attr.st_mode) == directory;
}

/* The node comes to where the entry is; its name there may be the one that it has. */
static int claim(struct pfs_refresh *refresh, struct pfs_finding *found, struct pfs_gone *gone)
{
	const struct pfs_source_record *record = &gone->record;
	const struct stat *now = &found->entry->attr;

	gone->claimed = true;
	gone->found = found;
	found->kind = PFS_FOUND_MOVED;
	found->ino = gone->by_prime.prime;
	found->set = PFS_SET_CTIME;
	found->set |= record->mode != now->st_mode ? PFS_SET_MODE : 0;
	found->set |= record->uid != now->st_uid ? PFS_SET_UID : 0;
	found->set |= record->gid != now->st_gid ? PFS_SET_GID : 0;
	found->set |= S_ISREG(now->st_mode) ? PFS_SET_SIZE : 0;
	found->set |= pfs_is_time(record->mtime, now->st_mtim) ? 0 : PFS_SET_MTIME;
	return pfs_refresh_learn(refresh, record->dev, now->st_dev);
}

/* The directory is walked, as that of the node; or, ino 0, all in it is new. */
static int walk_found(struct pfs_refresh *refresh, struct pfs_finding *found, uint64_t ino,
		      const char *old_path)
{
	found->closed = !found->entry->dir;
	if (found->closed)
		return 0;
	PFS_TRY(pfs_refresh_place(refresh, &found->as, found->place->dir->path, found->name));
	found->as->from = found;
	found->as->ino = ino;
	found->as->above = found->place->ino;
	found->as->in_mount = found->place->in_mount;
	found->as->matched = true;
	found->as->in_use = true;
	if (!old_path)
		return 0;
	found->as->old_path = strdup(old_path);
	return found->as->old_path ? pfs_refresh_note_move(refresh, old_path, found->as->dir->path)
				   : -ENOMEM;
}

/* Claims nodes for entries that are where they have moved to. */
static int match_marks(struct pfs_refresh *refresh, bool *any, bool directories)
{
	struct pfs_finding *found;

	for (found = refresh->found; found; found = found->following) {
		struct pfs_gone *gone;

		if (!is_open(found, directories))
			continue;
		PFS_TRY(pfs_refresh_twin(refresh, &gone, found));
		if (!gone)
			continue;
		*any = true;
		PFS_TRY(claim(refresh, found, gone));
		if (directories)
			PFS_TRY(walk_found(refresh, found, found->ino, gone->path));
	}
	return 0;
}

/* Returns true if something is gone whose original may be where the refresh has not looked. */
static bool has_lost(const struct pfs_refresh *refresh)
{
	const struct pfs_byprime_table *table = &refresh->gone;

	for (size_t i = 0; i < PFS_MAX(table->size, 1); i++) {
		const struct pfs_byprime *at = table->chains ? table->chains[i] : table->only;

		for (; at; at = at->next) {
			const struct pfs_gone *gone = (const struct pfs_gone *)at;

			if (!gone->present && !gone->claimed && !gone->held)
				return true;
		}
	}
	return false;
}

/* What the store has removed, and has not moved, is not new; nor is what it has moved something over
 * that stays. A directory of the latter is walked all the same if something may have moved to it,
 * which stays where it is then. */
static int leave_removed(struct pfs_refresh *refresh, bool directories)
{
	bool walks = directories && has_lost(refresh);
	struct pfs_finding *found;

	for (found = refresh->found; found; found = found->following) {
		bool covered = pfs_refresh_is_covered(refresh, found);

		if ((!found->removed && (!covered || walks)) || !is_open(found, directories))
			continue;
		found->kind = PFS_FOUND_LEFT;
		if (!covered)
			PFS_TRY(pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, found->place->ino,
						 found->name, NULL, "removed in the store"));
	}
	return 0;
}

/* Returns true if the entry is where the filesystem of the node of its name is or was mounted. */
static bool is_stand_in(const struct pfs_finding *found, const struct pfs_gone *gone)
{
	return gone && gone->stands == found && !gone->claimed;
}

/* Where it is now was perhaps read before it came there. */
static void hold(struct pfs_gone *gone)
{
	if (gone && !gone->claimed)
		gone->present = gone->held = true;
}

static void leave(struct pfs_finding *found, struct pfs_gone *over)
{
	found->kind = PFS_FOUND_LEFT;
	hold(over);
}

/* The directory takes the node of its name, whose record has another path if what both lie in has
 * moved. */
static int take_over(struct pfs_refresh *refresh, struct pfs_finding *found, struct pfs_gone *gone)
{
	char path[PATH_MAX];
	size_t len;
	bool here = pfs_refresh_path_of(path, found, &len) && strcmp(path, gone->path) == 0;

	gone->claimed = gone->present = true;
	found->kind = PFS_FOUND_CHANGED;
	found->ino = found->over;
	return walk_found(refresh, found, found->ino, here ? NULL : gone->path);
}

/* Those that no mark was found for go by their names, if by_name is set: until all that are new
 * have been walked, what is in them may have a node that a name would give to another. */
static int place_directories(struct pfs_refresh *refresh, bool *any, bool by_name)
{
	struct pfs_finding *found;

	for (found = refresh->found; found; found = found->following) {
		struct pfs_gone *gone = found->over ? pfs_refresh_find(refresh, found->over) : NULL;
		bool takes = gone && gone->maybe && !gone->claimed && S_ISDIR(gone->mode);

		if (!is_open(found, true))
			continue;
		if (pfs_refresh_has_moved(refresh, found, found->was)) {
			found->place->unfinished = true;
			leave(found, gone);
			continue;
		}
		if (is_stand_in(found, gone)) {
			leave(found, gone);
			continue;
		}
		if (takes && !by_name)
			continue;
		*any = true;
		if (takes)
			PFS_TRY(take_over(refresh, found, gone));
		else
			PFS_TRY(walk_found(refresh, found, 0, NULL));
	}
	return 0;
}

/* ---- all else ---- */

static int match_files(struct pfs_refresh *refresh)
{
	struct pfs_finding *found;
	bool any;

	PFS_TRY(match_marks(refresh, &any, false));
	PFS_TRY(pfs_refresh_replace_displaced(refresh));
	PFS_TRY(leave_removed(refresh, false));
	for (found = refresh->found; found; found = found->following) {
		struct pfs_gone *gone = found->over ? pfs_refresh_find(refresh, found->over) : NULL;

		if (!is_open(found, false) || !gone)
			continue;
		if (is_stand_in(found, gone))
			found->kind = PFS_FOUND_LEFT;
		if (!gone->maybe || gone->claimed || !S_ISREG(gone->mode))
			continue;
		gone->claimed = gone->present = true;
		found->kind = PFS_FOUND_CHANGED;
		found->another = true;
		found->ino = found->over;
	}
	return 0;
}

/* Returns the directory that the place's is in once all has moved; 0: there is none. */
static uint64_t place_above(const struct pfs_refresh_place *place)
{
	while (!place->ino && place->from)
		place = place->from->place;
	return place->ino;
}

/* Returns the directory that the node is in once all has moved; 0: there is none. */
static uint64_t new_parent(const struct pfs_refresh *refresh, uint64_t ino)
{
	const struct pfs_gone *gone = pfs_refresh_find(refresh, ino);

	return gone && gone->found && gone->found->kind == PFS_FOUND_MOVED
		       ? place_above(gone->found->place)
		       : pfs_follow_parent(refresh->tree, ino);
}

/* Returns true if the directory would come to lie in itself. If others above it would, the way up
 * from it has no end: it comes again to where it was after a power of two of steps. */
static bool comes_below_itself(const struct pfs_refresh *refresh, const struct pfs_finding *found)
{
	uint64_t above = place_above(found->place), met = above;

	for (size_t steps = 1; above && above != found->ino; steps++) {
		above = new_parent(refresh, above);
		if (above == met)
			return false;
		if ((steps & (steps - 1)) == 0)
			met = above;
	}
	return above;
}

/* The node stays where it is, and keeps its name from others. */
static void leave_in_place(const struct pfs_refresh *refresh, struct pfs_finding *found)
{
	struct pfs_gone *gone = pfs_refresh_find(refresh, found->ino);

	if (gone)
		gone->present = true;
	found->kind = PFS_FOUND_CHANGED;
	found->silent = true;
}

/* A directory that would come to lie in itself, as the store has moved what it comes to, stays
 * where it is. */
static int settle_moves(struct pfs_refresh *refresh, bool *any)
{
	for (struct pfs_finding *found = refresh->found; found; found = found->following) {
		char path[PATH_MAX];
		size_t len;

		if (found->kind != PFS_FOUND_MOVED || !S_ISDIR(found->entry->attr.st_mode) ||
		    !comes_below_itself(refresh, found) || !pfs_refresh_path_of(path, found, &len))
			continue;
		PFS_TRY(pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, found->ino, NULL, path,
					 "moved in the store"));
		leave_in_place(refresh, found);
		*any = true;
	}
	return 0;
}

/* Sets *is if the finding's name is and stays another node's. */
static int is_taken(struct pfs_refresh *refresh, bool *is, const struct pfs_finding *found)
{
	const struct pfs_gone *gone;
	uint64_t occupant;
	int error = pfs_follow_child(refresh->tree, &occupant, found->place->ino,
				     pfs_refresh_name(found->name));

	*is = false;
	if (error)
		return error == -ENOENT || error == -ESTALE ? 0 : error;
	gone = pfs_refresh_find(refresh, occupant);
	*is = occupant != found->ino && (!gone || gone->present);
	return 0;
}

/* A name that something else keeps is left to it; so is the node that would have come there where
 * it is. */
static int settle_name(struct pfs_refresh *refresh, struct pfs_finding *found, bool *any)
{
	bool taken, silent;

	PFS_TRY(is_taken(refresh, &taken, found));
	if (!taken)
		return 0;
	*any = true;
	silent = found->kind == PFS_FOUND_NEW && pfs_refresh_is_covered(refresh, found);
	if (found->kind == PFS_FOUND_MOVED) {
		found->place->dir->unread = true; /* perhaps only until all has moved */
		leave_in_place(refresh, found);
	} else {
		found->kind = PFS_FOUND_LEFT;
	}
	return silent ? 0
		      : pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, found->place->ino, found->name,
					 NULL, "the store has something of its own by this name");
}

/* What would have come to a directory that is not made stays where it is, too. */
static int settle_below(struct pfs_refresh *refresh, struct pfs_finding *found, bool *any)
{
	struct pfs_refresh_place *place;
	char path[PATH_MAX];
	size_t len;

	*any = true;
	if (found->kind == PFS_FOUND_NEW) {
		found->kind = PFS_FOUND_LEFT;
		return 0;
	}
	PFS_TRY(pfs_refresh_where(refresh, &place, found->place->dir->path,
				  pfs_follow_parent(refresh->tree, found->ino)));
	found->place = place;
	leave_in_place(refresh, found);
	(void)pfs_refresh_path_of(path, found, &len);
	return pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, found->ino, NULL, path,
				"the name of its directory is taken in the store");
}

static int settle_names(struct pfs_refresh *refresh, bool *any)
{
	for (struct pfs_finding *found = refresh->found; found; found = found->following) {
		const struct pfs_finding *from = found->place->from;

		if (found->kind != PFS_FOUND_NEW && found->kind != PFS_FOUND_MOVED)
			continue;
		if (found->place->ino)
			PFS_TRY(settle_name(refresh, found, any));
		else if (from && from->kind == PFS_FOUND_LEFT)
			PFS_TRY(settle_below(refresh, found, any));
	}
	return 0;
}

/* What stays where it is has a name that others were to get, and may have been on its way out of
 * what comes to it. */
static int settle(struct pfs_refresh *refresh)
{
	bool any;

	do {
		any = false;
		PFS_TRY(settle_moves(refresh, &any));
		PFS_TRY(settle_names(refresh, &any));
	} while (any);
	return 0;
}

/* Returns true if the node, or one of those that are gone that it is below, is held. */
static bool is_held(const struct pfs_refresh *refresh, const struct pfs_gone *gone)
{
	while (gone && !gone->held)
		gone = pfs_refresh_find(refresh, gone->parent);
	return gone;
}

static int hold_one(struct pfs_refresh *refresh, struct pfs_gone *gone)
{
	if (gone->claimed || !is_held(refresh, gone))
		return 0;
	gone->present = refresh->unlooked = true;
	return gone->unmounted ? pfs_refresh_tell(refresh, PFS_REFRESH_UNREAD, gone->by_prime.prime,
						  NULL, NULL, PFS_NOT_MOUNTED)
			       : 0;
}

static int hold_below(struct pfs_refresh *refresh)
{
	const struct pfs_byprime_table *table = &refresh->gone;

	for (size_t i = 0; i < PFS_MAX(table->size, 1); i++) {
		struct pfs_byprime *at = table->chains ? table->chains[i] : table->only;

		for (; at; at = at->next)
			PFS_TRY(hold_one(refresh, (struct pfs_gone *)at));
	}
	return 0;
}

static bool hold_tops(struct pfs_gone *gone)
{
	bool any = false;

	for (; gone; gone = gone->next)
		if (!gone->present && !gone->claimed && !gone->maybe) {
			hold(gone);
			any = true;
		}
	return any;
}

/* Returns true if what has no place is held until it is seen where it is. */
static bool is_any_held(const struct pfs_gone *gone)
{
	while (gone && (!gone->held || gone->claimed || gone->unmounted))
		gone = gone->next;
	return gone;
}

/* Returns true if there was one that nothing had said to be there. */
static bool hold_displaced(struct pfs_refresh *refresh)
{
	bool any = false;

	for (const struct pfs_displaced *at = refresh->displaced; at; at = at->next) {
		struct pfs_gone *gone = pfs_refresh_find(refresh, at->by_prime.prime);

		any |= gone && !gone->claimed && !gone->present;
		hold(gone);
	}
	return any;
}

/* Returns true if directories have come or moved. */
static bool has_new_directories(const struct pfs_refresh *refresh)
{
	const struct pfs_finding *found = refresh->found;

	while (found && (!S_ISDIR(found->entry->attr.st_mode) || found->kind == PFS_FOUND_CHANGED))
		found = found->following;
	return found;
}

static bool has_gone_directories(const struct pfs_refresh *refresh)
{
	for (const struct pfs_refresh_place *place = refresh->kept; place; place = place->next)
		for (const struct pfs_gone *gone = place->gone; gone; gone = gone->next)
			if (S_ISDIR(gone->mode))
				return true;
	return false;
}

/* While the source changes, what is gone is perhaps where was looked before it came there. */
static int hold_gone(struct pfs_refresh *refresh)
{
	const struct pfs_refresh_watcher *watcher = refresh->options->watcher;
	bool any = false, changed = false;
	bool restless = watcher && watcher->restless(watcher->arg, &changed);

	if (restless) {
		(void)hold_tops(refresh->loose);
		any = hold_displaced(refresh);
	}
	/* some are perhaps there twice, and no events come for one of the two */
	any |= changed && (has_new_directories(refresh) || has_gone_directories(refresh));
	if (watcher && (any || is_any_held(refresh->loose)))
		watcher->left(watcher->arg, 0);
	for (struct pfs_refresh_place *place = refresh->kept; place; place = place->next) {
		if (restless && place->number)
			place->unfinished |= hold_tops(place->gone);
		if (watcher && place->unfinished)
			watcher->left(watcher->arg, place->number);
	}
	return hold_below(refresh);
}

/* Returns true if the store wants it so that the entry has no node. */
static bool is_left_for_good(struct pfs_refresh *refresh, const struct pfs_finding *found)
{
	const struct pfs_gone *gone = found->over ? pfs_refresh_find(refresh, found->over) : NULL;

	return found->removed || is_stand_in(found, gone) || pfs_refresh_is_covered(refresh, found);
}

/* Each place gets what was found in it. A directory that has an entry which is left is read again:
 * perhaps it was only for the moment that it could have no node. */
static void hand_out(struct pfs_refresh *refresh)
{
	struct pfs_finding *found;

	for (found = refresh->found; found; found = found->following) {
		struct pfs_refresh_place *place = found->place;

		if (found->kind == PFS_FOUND_LEFT && !is_left_for_good(refresh, found))
			place->dir->unread = true;
		if (found->kind == PFS_FOUND_LEFT || place->own == found || found->listed ||
		    (found->kind == PFS_FOUND_CHANGED && found->as))
			continue;
		found->next = place->found;
		place->found = found;
	}
}

/* One round: of the directories known so far, or of those that come up in them. */
static int go_through_directories(struct pfs_refresh *refresh, bool *any)
{
	*any = false;
	PFS_TRY(pfs_refresh_look_for_displaced(refresh));
	PFS_TRY(match_marks(refresh, any, true));
	if (!*any) {
		PFS_TRY(leave_removed(refresh, true));
		PFS_TRY(place_directories(refresh, any, false));
		if (!*any)
			PFS_TRY(place_directories(refresh, any, true));
	}
	return pfs_refresh_walk(refresh);
}

int pfs_refresh_match(struct pfs_refresh *refresh)
{
	bool any = true;
	int error;

	do
		error = go_through_directories(refresh, &any);
	while (!error && any);
	if (error)
		return error;
	PFS_TRY(match_files(refresh));
	PFS_TRY(hold_gone(refresh));
	PFS_TRY(settle(refresh));
	hand_out(refresh);
	return 0;
}
