/* SPDX-License-Identifier: MIT */
/* What each entry that was found is: a node that was elsewhere, the node of its name as another
 * file, or new.
 *
 * Directories come first: what lies in one that moved is compared with what it held, which brings
 * up more of everything.  An original's own mark decides before its name does. */
#include "tools/refresh/refresh_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

/* ---- nodes that the store has moved ---- */

static int compare_displaced(const void *a, const void *b)
{
	const struct pfs_displaced *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* The source's path of an entry found, allocated. */
static char *path_of(const struct pfs_finding *found)
{
	const char *folder = found->place->dir->path;
	char *path;

	if (asprintf(&path, "%s%s%s", folder, *folder ? "/" : "", found->name) < 0)
		return NULL;
	return path;
}

/* Entries whose node is elsewhere in the store are not new. */
static int leave_displaced(struct pfs_refresh *refresh)
{
	struct pfs_finding *found;

	if (!refresh->n_displaced)
		return 0;
	qsort(refresh->displaced, refresh->n_displaced, sizeof(*refresh->displaced),
	      compare_displaced);
	for (found = refresh->found; found; found = found->following) {
		struct pfs_displaced key = {.path = NULL};
		const struct pfs_displaced *at;
		char *path PFS_FREE = NULL;

		if (found->kind != PFS_FOUND_NEW)
			continue;
		path = key.path = path_of(found);
		if (!path)
			return -ENOMEM;
		at = bsearch(&key, refresh->displaced, refresh->n_displaced, sizeof(key),
			     compare_displaced);
		if (at && !pfs_refresh_find(refresh, at->ino))
			found->kind = PFS_FOUND_LEFT;
	}
	return 0;
}

/* Looks at an entry of the folder. *batch is NULL if that was not possible, which was told. */
static int look_at_entry(struct pfs_refresh *refresh, struct pfs_crawl_batch **batch,
			 const char *folder, const char *name)
{
	struct pfs_refresh_place *place;
	struct stat now;
	int error, fd;

	*batch = NULL;
	PFS_TRY(pfs_refresh_visit(refresh, &place, &fd, folder));
	error = fstatat(fd, name, &now, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
	if (!error)
		error = pfs_crawl_look_at(refresh->look, batch, name);
	pfs_refresh_leave(refresh, place);
	return error;
}

/* Called if the original of a node that the store has moved is not where its record has it. If
 * another filesystem is there than it was in, it is not gone, but cannot be seen; unless that is
 * the one below, and the options say that what is not mounted is gone. */
static int lose_displaced(struct pfs_refresh *refresh, const struct pfs_displaced *displaced,
			  const struct pfs_source_record *record)
{
	struct pfs_follower node;
	struct pfs_gone *gone;
	bool unseen = false;
	int error = pfs_follow_node(refresh->tree, &node, displaced->ino);

	if (!error)
		error = pfs_refresh_look_for(refresh, &unseen, record, &node);
	if (error == -ESTALE)
		return 0;
	if (pfs_crawl_is_own(error))
		return error;
	if (error)
		return pfs_refresh_tell(refresh, PFS_REFRESH_UNREAD, displaced->ino, NULL, NULL,
					strerror(-error));
	PFS_TRY(pfs_refresh_gone(refresh, &gone, NULL, displaced->ino, record));
	return unseen ? pfs_refresh_unmounted(refresh, gone) : 0;
}

/* The node is elsewhere in the store than its original, which the batch has; a directory is walked
 * from there. */
static int keep_displaced(struct pfs_refresh *refresh, const struct pfs_displaced *displaced,
			  const struct pfs_crawl_batch *batch)
{
	struct pfs_refresh_place *place;

	PFS_TRY(pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, displaced->ino, NULL, displaced->path,
				 "moved in the store"));
	if (!S_ISDIR(batch->entries[0].attr.st_mode))
		return 0;
	PFS_TRY(pfs_refresh_place(refresh, &place, displaced->path, NULL));
	place->ino = displaced->ino;
	place->flat = refresh->options->shallow;
	return 0;
}

/* Sets *is if the entry of the batch, which may be NULL, is the record's. */
static int is_original(struct pfs_refresh *refresh, bool *is, const struct pfs_displaced *displaced,
		       const struct pfs_crawl_batch *batch, const struct pfs_source_record *record)
{
	struct pfs_there there = {.was = true};

	*is = batch && pfs_refresh_same(refresh, batch, record);
	if (!*is || !batch->entries[0].mounted)
		return 0;
	PFS_TRY(pfs_refresh_look_there(refresh, &there, displaced->path, record, displaced->ino));
	*is = there.same;
	return 0;
}

/* Looks whether the original is where its record has it. */
static int look_at_displaced(struct pfs_refresh *refresh, const struct pfs_displaced *displaced)
{
	const char *slash = strrchr(displaced->path, '/');
	const char *name = slash ? slash + 1 : displaced->path;
	struct pfs_crawl_batch *batch = NULL;
	struct pfs_source_record record;
	char path[PATH_MAX];
	bool is;
	int error = pfs_follow_record(refresh->tree, &record, path, displaced->ino);

	if (error)
		return error == -ENOENT ? 0 : error;
	path[slash ? slash - displaced->path : 0] = 0;
	refresh->reading = displaced->ino;
	error = look_at_entry(refresh, &batch, path, name);
	if (!error && !batch)
		return 0;
	record.path = displaced->path;
	if (!error || error == -ENOENT || error == -ENOTDIR)
		error = is_original(refresh, &is, displaced, batch, &record);
	if (error && !pfs_crawl_is_own(error))
		error = pfs_refresh_tell(refresh, PFS_REFRESH_UNREAD, displaced->ino, NULL, NULL,
					 strerror(-error));
	else if (!error && is)
		error = keep_displaced(refresh, displaced, batch);
	else if (!error)
		error = lose_displaced(refresh, displaced, &record);
	pfs_crawl_look_free(batch);
	return error;
}

static int look_at_all_displaced(struct pfs_refresh *refresh)
{
	for (size_t i = 0; i < refresh->n_displaced; i++) {
		PFS_TRY(look_at_displaced(refresh, &refresh->displaced[i]));
		PFS_TRY(pfs_refresh_walk(refresh)); /* may find others */
	}
	return 0;
}

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
	return found->as->old_path ? 0 : -ENOMEM;
}

/* The entry has moved with the directory that it is in. The store has moved the node out of that
 * directory, and it stays where it is. */
static int keep_moved(struct pfs_refresh *refresh, struct pfs_finding *found)
{
	char *path PFS_FREE = path_of(found);

	if (!path)
		return -ENOMEM;
	found->kind = PFS_FOUND_CHANGED;
	found->silent = true;
	return pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, found->ino, NULL, path,
				"moved in the store");
}

/* Claims nodes for entries that have moved with the directory that they are in, and then for
 * others: of the names of a file, the store may have moved one. */
static int match_marks(struct pfs_refresh *refresh, bool *any, bool directories, bool along)
{
	struct pfs_finding *found;

	for (found = refresh->found; found; found = found->following) {
		struct pfs_gone *gone;

		if (!is_open(found, directories))
			continue;
		PFS_TRY(pfs_refresh_twin(refresh, &gone, found, along));
		if (!gone)
			continue;
		*any = true;
		PFS_TRY(claim(refresh, found, gone));
		if (along)
			PFS_TRY(keep_moved(refresh, found));
		if (directories)
			PFS_TRY(walk_found(refresh, found, found->ino, gone->path));
	}
	return 0;
}

/* What the store has removed, and has not moved, is not new. */
static int leave_removed(struct pfs_refresh *refresh, bool directories)
{
	struct pfs_finding *found;

	for (found = refresh->found; found; found = found->following) {
		if (!pfs_refresh_was_removed(found) || !is_open(found, directories))
			continue;
		found->kind = PFS_FOUND_LEFT;
		PFS_TRY(pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, found->place->ino, found->name,
					 NULL, "removed in the store"));
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

/* The directory takes the node of its name, whose record has another path if what both lie in has
 * moved. */
static int take_over(struct pfs_refresh *refresh, struct pfs_finding *found, struct pfs_gone *gone)
{
	char *path PFS_FREE = path_of(found);

	if (!path)
		return -ENOMEM;
	gone->claimed = gone->present = true;
	found->kind = PFS_FOUND_CHANGED;
	found->ino = found->over;
	return walk_found(refresh, found, found->ino,
			  strcmp(path, gone->path) != 0 ? gone->path : NULL);
}

/* Those that no mark was found for go by their names. */
static int place_directories(struct pfs_refresh *refresh, bool *any)
{
	struct pfs_finding *found;

	for (found = refresh->found; found; found = found->following) {
		struct pfs_gone *gone = found->over ? pfs_refresh_find(refresh, found->over) : NULL;

		if (!is_open(found, true))
			continue;
		if (pfs_refresh_has_moved(refresh, found, found->was) ||
		    is_stand_in(found, gone)) {
			found->kind = PFS_FOUND_LEFT;
			hold(gone);
			continue;
		}
		*any = true;
		if (gone && gone->maybe && !gone->claimed && S_ISDIR(gone->mode))
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

	PFS_TRY(match_marks(refresh, &any, false, true));
	PFS_TRY(match_marks(refresh, &any, false, false));
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

/* A name that something of the store's own has is left to it; so is the node that would have come
 * there where it is. */
static int settle_names(struct pfs_refresh *refresh)
{
	struct pfs_finding *found;

	for (found = refresh->found; found; found = found->following) {
		const struct pfs_gone *gone;
		uint64_t occupant;
		int error;

		if ((found->kind != PFS_FOUND_NEW && found->kind != PFS_FOUND_MOVED) ||
		    !found->place->ino)
			continue;
		error = pfs_follow_child(refresh->tree, &occupant, found->place->ino,
					 pfs_refresh_name(found->name));
		if (error && error != -ENOENT && error != -ESTALE)
			return error;
		gone = error ? NULL : pfs_refresh_find(refresh, occupant);
		if (error || occupant == found->ino || (gone && !gone->present))
			continue;
		PFS_TRY(pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, found->place->ino, found->name,
					 NULL, "the store has something of its own by this name"));
		found->kind = found->ino ? PFS_FOUND_CHANGED : PFS_FOUND_LEFT;
		found->silent = true;
	}
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

/* While the source changes, what is gone is perhaps where was looked before it came there. */
static int hold_gone(struct pfs_refresh *refresh)
{
	const struct pfs_refresh_watcher *watcher = refresh->options->watcher;

	bool restless = watcher && watcher->restless(watcher->arg);

	for (struct pfs_refresh_place *place = refresh->kept; place; place = place->next) {
		if (restless && place->number)
			place->unfinished |= hold_tops(place->gone);
		if (watcher && place->unfinished)
			watcher->left(watcher->arg, place->number);
	}
	return hold_below(refresh);
}

/* Each place gets what was found in it. */
static void hand_out(struct pfs_refresh *refresh)
{
	struct pfs_finding *found;

	for (found = refresh->found; found; found = found->following) {
		struct pfs_refresh_place *place = found->place;

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
	PFS_TRY(match_marks(refresh, any, true, true));
	PFS_TRY(match_marks(refresh, any, true, false));
	if (!*any) {
		PFS_TRY(leave_removed(refresh, true));
		PFS_TRY(place_directories(refresh, any));
	}
	return pfs_refresh_walk(refresh);
}

int pfs_refresh_match(struct pfs_refresh *refresh)
{
	bool any = true;
	int error;

	PFS_TRY(look_at_all_displaced(refresh));
	PFS_TRY(leave_displaced(refresh));
	do
		error = go_through_directories(refresh, &any);
	while (!error && any);
	if (error)
		return error;
	PFS_TRY(match_files(refresh));
	PFS_TRY(hold_gone(refresh));
	PFS_TRY(settle_names(refresh));
	hand_out(refresh);
	return 0;
}
