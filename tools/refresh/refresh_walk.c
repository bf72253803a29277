/* SPDX-License-Identifier: MIT */
/* Goes through directories: whether each still is the one that it was, and has changed. */
#include "tools/refresh/refresh_impl.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/content/compared.h"
#include "fs/content/filesystem.h"
#include "tools/refresh/refresh_compare.h"

/* By how much times of a filesystem may be coarser than the clock, or of another one. */
#define COARSE_SECONDS 2
#define NSEC	       INT64_C(1000000000)

/* ---- the directory itself ---- */

/* Makes a place of the directory above, which only says where, and is not walked again. Sets *name
 * to the name that the place has in it. */
static int make_above(struct pfs_refresh *refresh, struct pfs_refresh_place **above,
		      const char **name, const struct pfs_refresh_place *place)
{
	const char *slash = strrchr(place->dir->path, '/');
	char *path PFS_FREE =
		strndup(place->dir->path, slash ? (size_t)(slash - place->dir->path) : 0);
	uint64_t ino = place->above ? place->above : pfs_follow_parent(refresh->tree, place->ino);
	struct pfs_follower parent;

	*name = slash ? slash + 1 : place->dir->path;
	if (!path)
		return -ENOMEM;
	PFS_TRY(pfs_refresh_where(refresh, above, path, ino));
	PFS_TRY(pfs_follow_node(refresh->tree, &parent, ino));
	(*above)->before = parent.attr;
	return 0;
}

/* Notes that another directory has the node's name. Takes the batch over, also on failure. */
static int note_another(struct pfs_comparison *comparison, struct pfs_finding **out,
			struct pfs_crawl_batch *batch)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct pfs_refresh_place *place = comparison->place, *above;
	const struct stat *now = &batch->entries[0].attr;
	const char *name;
	uint64_t was =
		place->was ? place->was : pfs_refresh_read_as(refresh, now->st_dev, now->st_ino);
	int error = make_above(refresh, &above, &name, place);

	if (error) {
		pfs_crawl_look_free(batch);
		return error;
	}
	PFS_TRY(pfs_refresh_found(refresh, out, above, batch, name));
	(*out)->kind = PFS_FOUND_NEW;
	(*out)->over = place->ino;
	(*out)->was = was != place->ino ? was : 0;
	(*out)->set = PFS_TAKE_ALL;
	return 0;
}

/* Another directory has the node's name.  Which one it is, is decided when all is known. The
 * directory itself comes later, with its times. */
static int replace_directory(struct pfs_comparison *comparison, struct pfs_crawl_batch *batch,
			     const struct pfs_follower *node,
			     const struct pfs_source_record *record, bool unmounted)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct pfs_finding *found;
	struct pfs_gone *gone;

	PFS_TRY(note_another(comparison, &found, batch));
	PFS_TRY(pfs_refresh_gone(refresh, &gone, found->place, node->ino, record));
	comparison->place = found->place;
	gone->maybe = true;
	if (unmounted)
		PFS_TRY(pfs_refresh_unmounted(refresh, gone));
	if (gone->stands)
		found->kind = PFS_FOUND_LEFT;
	else if (gone->unmounted)
		gone->stands = found;
	return 0;
}

/* The store has moved the node to the name of another directory, which is new if the node goes. */
static int displace_directory(struct pfs_comparison *comparison, struct pfs_crawl_batch *batch,
			      const struct pfs_source_record *record)
{
	struct pfs_finding *found;

	PFS_TRY(note_another(comparison, &found, batch));
	return pfs_refresh_displaced(comparison->refresh, comparison->place->ino, record->path,
				     found);
}

static int note_own(struct pfs_comparison *comparison, struct pfs_crawl_batch *batch,
		    const struct pfs_follower *node, const struct pfs_source_record *record)
{
	struct pfs_refresh_place *place = comparison->place;
	const struct stat *now = &batch->entries[0].attr;
	struct pfs_finding *found;

	PFS_TRY(pfs_refresh_found(comparison->refresh, &found, place, batch, ""));
	found->kind = PFS_FOUND_CHANGED;
	found->ino = node->ino;
	found->silent = true;
	if (record) {
		found->set = pfs_what_to_take(record, &node->attr, now);
		found->silent = !(found->set & PFS_TAKE_RIGHTS);
		found->another =
			place->matched && !pfs_refresh_same(comparison->refresh, batch, record);
		found->set = found->another ? PFS_TAKE_ALL : found->set;
	} else if (pfs_is_later(now->st_mtim, node->attr.st_mtim)) {
		found->set = PFS_SET_MTIME | PFS_SET_CTIME;
	}
	place->own = found;
	return 0;
}

/* Returns true if the node's times are those that pfs_stamp gives a listing, and not the record's:
 * its mtime may be the same, if the source has changed the directory in the same tick. */
static bool is_stamped(const struct pfs_source_record *record, const struct stat *node)
{
	const struct timespec *mtime = &node->st_mtim, *ctime = &node->st_ctim;

	return !pfs_is_time(record->ctime, *ctime) &&
	       (ctime->tv_sec - mtime->tv_sec) * NSEC + ctime->tv_nsec - mtime->tv_nsec == 1;
}

/* Returns true if the store's directory was changed since it was read. Without times the record is
 * of a directory that a refresh has not read to its end; one that takes a node by its name has not
 * been read as that. */
static bool is_touched(const struct pfs_refresh_place *place,
		       const struct pfs_source_record *record, const struct pfs_follower *node)
{
	bool by_name = place->matched && place->from->over == place->ino;

	return !by_name && (record->ctime.sec || record->ctime.nsec) &&
	       (!pfs_is_time(record->mtime, node->attr.st_mtim) ||
		is_stamped(record, &node->attr));
}

/* Another directory is there instead. If the node's was that of a filesystem mounted in the one
 * above it, and that one's own directory has its place now, it is not gone, but cannot be seen,
 * whatever has come into that directory since; nor if something is mounted over it. */
static int take_another(struct pfs_comparison *comparison, struct pfs_crawl_batch *batch,
			const struct pfs_follower *node, const struct pfs_source_record *record)
{
	bool unseen;
	int error = pfs_refresh_is_unseen(comparison->refresh, &unseen, record, node->flags,
					  comparison->place->above, &batch->entries[0]);

	if (!error)
		return replace_directory(comparison, batch, node, record, unseen);
	pfs_crawl_look_free(batch);
	return error;
}

/* Sets *own if what is there is the record's. -ESTALE: it is not, and the directory above tells
 * what has become of it. */
static int compare_mark(struct pfs_comparison *comparison, bool *own,
			const struct pfs_crawl_batch *batch, const struct pfs_source_record *record)
{
	struct pfs_refresh *refresh = comparison->refresh;
	const struct pfs_refresh_place *place = comparison->place;

	*own = pfs_refresh_same(refresh, batch, record);
	if (*own && comparison->mounted && !place->matched)
		PFS_TRY(pfs_refresh_same_mounted(refresh, own, comparison->fd, record, place->ino,
						 true));
	if (*own && comparison->mounted)
		return pfs_refresh_learn(refresh, record->dev, comparison->dev);
	return *own || place->matched || place->above || !refresh->options->shallow ? 0 : -ESTALE;
}

/* Another root has put something in the directory, too, and it stays that one's. Sets *unseen if
 * what this root has put in it is not seen. */
static int compare_shared(struct pfs_comparison *comparison, bool *unseen)
{
	const struct pfs_refresh_place *place = comparison->place;

	comparison->listing = true;
	PFS_TRY(pfs_refresh_is_shared_unseen(comparison->refresh, unseen, comparison->fd,
					     place->dir, place->ino));
	return *unseen ? pfs_refresh_tell(comparison->refresh, PFS_REFRESH_UNREAD, place->ino, NULL,
					  NULL, PFS_NOT_MOUNTED)
		       : 0;
}

/* Sets *is if the node does not say what is mounted where its directory is. */
static int is_mounted_anew(const struct pfs_comparison *comparison, bool *is,
			   const struct pfs_follower *node, const struct pfs_crawl_batch *batch)
{
	bool was = node->flags & PFS_NODE_MOUNT;
	uint64_t filesystem = 0;

	if (comparison->mounted)
		PFS_TRY(pfs_filesystem_get(comparison->refresh->tree, &filesystem, node->ino));
	*is = was != comparison->mounted || filesystem != batch->entries[0].filesystem;
	return 0;
}

/* Called for a directory whose record has another path. If it is the record's, it has moved, and
 * what has been moved out of it by the store is sought, unless the store has changed nothing in it:
 * then its times are those of the record. Else it is another one by the name that the store has
 * given the node (*displaced). */
static int compare_path(struct pfs_comparison *comparison, bool *displaced, bool own,
			const struct pfs_source_record *record, const struct pfs_follower *node)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct pfs_refresh_place *place = comparison->place;
	const char *recorded = record->path;

	if (strcmp(comparison->old_path, recorded) != 0) {
		*displaced = !own && !place->matched;
		if (*displaced)
			return 0;
		free(place->old_path);
		comparison->old_path = place->old_path = strdup(recorded);
		if (!place->old_path)
			return -ENOMEM;
		PFS_TRY(pfs_refresh_note_move(refresh, recorded, place->dir->path));
		PFS_TRY(pfs_refresh_displaced_to(refresh, place->ino, recorded, place->dir->path));
	}
	return !place->old_path || pfs_is_time(record->ctime, node->attr.st_ctim)
		       ? 0
		       : pfs_refresh_seek(refresh, place->old_path);
}

/* Which directory is there. */
struct identity {
	bool own;	/* the record's */
	bool anew;	/* the node does not say what is mounted there */
	bool displaced; /* another one by the name that the store has given the node */
};

/* record NULL: there is none. */
static int identify(struct pfs_comparison *comparison, struct identity *is,
		    const struct pfs_follower *node, const struct pfs_crawl_batch *batch,
		    const struct pfs_source_record *record)
{
	*is = (struct identity){.own = false};
	if (record)
		PFS_TRY(compare_mark(comparison, &is->own, batch, record));
	PFS_TRY(is_mounted_anew(comparison, &is->anew, node, batch));
	return record ? compare_path(comparison, &is->displaced, is->own, record, node) : 0;
}

/* Called before the listing of a directory is read that the store has changed. What the store has
 * moved out of it is met elsewhere only by a refresh that looks at all files. */
static int prepare_listing(const struct pfs_comparison *comparison)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct pfs_refresh_place *place = comparison->place;
	int64_t begun_s;

	if (!place->touched || !comparison->listing)
		return 0;
	if (refresh->options->quick || !pfs_refresh_begins_at_root(refresh))
		PFS_TRY(pfs_refresh_seek_renamed(refresh, comparison->old_path));
	/* a file that is changed may let in what was left out */
	if (!place->settled || refresh->left_out.gitignore || refresh->left_out.caches)
		return 0;
	PFS_TRY(pfs_compared_begun(refresh->tree, &begun_s, place->ino));
	if (begun_s - COARSE_SECONDS > place->listed.sec)
		place->listed = (struct pfs_time){.sec = begun_s - COARSE_SECONDS};
	return 0;
}

/* It may have changed. */
static int compare_directory(struct pfs_comparison *comparison, const struct pfs_follower *node,
			     bool *replaced)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct pfs_refresh_place *place = comparison->place;
	struct pfs_source_record record;
	struct pfs_crawl_batch *batch;
	char path[PATH_MAX];
	struct pfs_gone *gone;
	struct identity is;
	bool known, same;
	int error = pfs_follow_record(refresh->tree, &record, path, node->ino);

	if (error && error != -ENOENT)
		return error;
	known = !error;
	if (known && record.root != refresh->root.id)
		return compare_shared(comparison, replaced);
	PFS_TRY(pfs_crawl_look_at(refresh->look, &batch, NULL));
	if (!batch)
		return -ESTALE;
	error = identify(comparison, &is, node, batch, known ? &record : NULL);
	*replaced = is.displaced || (known && !place->matched && !is.own && place->above);
	if (error) {
		pfs_crawl_look_free(batch);
		return error;
	}
	if (is.displaced)
		return displace_directory(comparison, batch, &record);
	if (*replaced)
		return take_another(comparison, batch, node, &record);
	gone = pfs_refresh_find(refresh, node->ino);
	if (gone && !gone->claimed)
		gone->present = true;
	place->touched = known && is_touched(place, &record, node);
	place->settled = node->flags & PFS_NODE_SETTLED;
	if (known)
		place->listed = record.ctime;
	comparison->adopting = !known;
	/* else the record is another directory's, which may have the same times */
	same = is.own && pfs_is_as_recorded(&record, &batch->entries[0].attr);
	comparison->listing = !same || !place->settled || refresh->otherwise;
	if (!same || place->old_path || place->matched || is.anew ||
	    (comparison->listing && batch->entries[0].settled && !refresh->otherwise))
		return note_own(comparison, batch, node, known ? &record : NULL);
	pfs_crawl_look_free(batch);
	return 0;
}

static int compare_place(struct pfs_comparison *comparison)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct pfs_refresh_place *place = comparison->place;
	struct pfs_follower node = {.ino = place->ino};
	bool replaced = false;
	struct statx now;

	if (statx(comparison->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &now) < 0)
		return -errno;
	comparison->dev = place->dir->dev;
	comparison->mounted = place->dir->path_len &&
			      pfs_crawl_is_mounted_at(&now, comparison->fd, refresh->root.dev);
	place->in_mount |= comparison->mounted;
	comparison->old_path = place->old_path ? place->old_path : place->dir->path;
	comparison->listing = !place->ino;
	refresh->report->looked_at++;
	PFS_TRY(pfs_refresh_enter(refresh, place, comparison->fd));
	if (!place->ino && pfs_refresh_has_moved(refresh, place->from, place->was)) {
		place->from->kind = PFS_FOUND_LEFT;
		place->from->place->unfinished = true;
		return 0;
	}
	if (place->ino) {
		PFS_TRY(pfs_follow_node(refresh->tree, &node, place->ino));
		place->before = node.attr;
	}
	/* a mount point is looked at, too, so that its filesystem is known */
	if (place->ino &&
	    (comparison->mounted || place->old_path || refresh->otherwise ||
	     pfs_refresh_find(refresh, place->ino) || !pfs_is_unchanged(&node, &now, false)))
		PFS_TRY(compare_directory(comparison, &node, &replaced));
	if (replaced)
		return 0;
	PFS_TRY(prepare_listing(comparison));
	return pfs_compare_children(comparison);
}

/* It was there a moment ago.  Where it is not found it stays: the next refresh finds the directory
 * above changed. */
static int lose(struct pfs_refresh *refresh, const struct pfs_refresh_place *place)
{
	struct pfs_source_record record;
	char path[PATH_MAX];
	struct pfs_gone *gone;
	int error;

	if (!place->met || place->old_path || pfs_refresh_find(refresh, place->ino))
		return 0;
	error = pfs_follow_record(refresh->tree, &record, path, place->ino);
	if (!error)
		error = pfs_refresh_gone(refresh, &gone, NULL, place->ino, &record);
	if (!error)
		gone->held = true;
	return error == -ENOENT || error == -ESTALE ? 0 : error;
}

/* Sets *is to false if the refresh has come to the place before, or has found a directory above it
 * to be another one. */
static int is_wanted(struct pfs_refresh *refresh, bool *is, const struct pfs_refresh_place *place)
{
	const struct pfs_gone *gone = pfs_refresh_find(refresh, place->ino);

	*is = !place->start || !gone || gone->top;
	return *is && place->start ? pfs_refresh_begin(refresh, is, place->ino) : 0;
}

/* Called for a directory below one that has moved. It is there all the same, with all below it. */
static int stay_below(struct pfs_refresh *refresh, const struct pfs_refresh_place *place,
		      struct pfs_gone *gone)
{
	struct pfs_refresh_place *above;
	struct pfs_crawl_batch *batch = NULL;
	const char *name;
	int error, fd;

	PFS_TRY(make_above(refresh, &above, &name, place));
	error = pfs_crawl_look_enter(refresh->look, &fd, above->dir);
	if (!error) {
		error = pfs_crawl_look_at(refresh->look, &batch, name);
		pfs_crawl_look_leave(refresh->look);
	}
	if (!batch)
		return pfs_crawl_is_own(error) ? error : 0;
	PFS_TRY(pfs_refresh_found(refresh, &gone->stands, above, batch, name));
	gone->stands->kind = PFS_FOUND_LEFT;
	gone->stands->over = place->ino;
	return 0;
}

/* Called for a directory that cannot be opened where its node comes to: what is in it is not known,
 * so that all stays, until the next refresh finds the directory there again. */
static int stay(struct pfs_refresh *refresh, struct pfs_refresh_place *place)
{
	struct pfs_gone *gone = place->ino ? pfs_refresh_find(refresh, place->ino) : NULL;

	if (!gone || (!place->from && !place->old_path))
		return 0;
	PFS_TRY(pfs_refresh_seek(refresh, gone->path));
	gone->held = true;
	gone->claimed = false;
	if (!place->from)
		return stay_below(refresh, place, gone);
	place->from->kind = PFS_FOUND_LEFT;
	place->from->as = NULL;
	place->from->place->dir->unread = true;
	place->in_use = false;
	return 0;
}

/* Called for a directory that cannot be opened. The listing of the one above it gives a new node
 * the directory's times, which do not change when it can be opened. */
static int leave_unread(struct pfs_refresh *refresh, struct pfs_refresh_place *place, int error)
{
	const struct pfs_refresh_watcher *watcher = refresh->options->watcher;
	bool vanished = error == -ENOENT || error == -ENOTDIR || error == -ELOOP;

	/* nobody says again that it may have changed */
	if (vanished && watcher &&
	    (place->old_path || (place->start && !pfs_refresh_find(refresh, place->ino))))
		watcher->left(watcher->arg, 0);
	place->unread = true;
	PFS_TRY(stay(refresh, place));
	if (vanished && place->from)
		place->from->place->unfinished = true;
	if (vanished)
		return lose(refresh, place);
	return place->ino ? pfs_refresh_tell(refresh, PFS_REFRESH_UNREAD, place->ino, NULL, NULL,
					     strerror(-error))
			  : pfs_refresh_tell_found(refresh, PFS_REFRESH_UNREAD, place->from, NULL,
						   strerror(-error));
}

static int walk_one(struct pfs_refresh *refresh, struct pfs_refresh_place *place)
{
	struct pfs_comparison comparison = {.refresh = refresh, .place = place};
	bool wanted;
	int error = is_wanted(refresh, &wanted, place);

	if (error || !wanted)
		return error;
	refresh->reading = place->ino ? place->ino : place->above;
	error = pfs_crawl_look_enter(refresh->look, &comparison.fd, place->dir);
	if (pfs_crawl_is_own(error))
		return error;
	if (error)
		return leave_unread(refresh, place, error);
	error = compare_place(&comparison);
	pfs_crawl_look_leave(refresh->look);
	free(comparison.by_name);
	free(comparison.seen);
	while (comparison.n_unknown)
		free(comparison.unknown[--comparison.n_unknown]);
	free(comparison.unknown);
	if (error == -ESTALE) /* the node has just been removed */
		return 0;
	return error;
}

int pfs_refresh_walk(struct pfs_refresh *refresh)
{
	while (refresh->todo) {
		struct pfs_refresh_place *place = refresh->todo;
		int error;

		if (refresh->options->gone && refresh->options->gone(refresh->options->arg))
			return -ECANCELED;
		refresh->todo = place->next;
		place->next = NULL;
		error = walk_one(refresh, place);
		if (place->in_use) {
			*refresh->kept_end = place;
			refresh->kept_end = &place->next;
		} else {
			pfs_refresh_place_free(place);
		}
		if (error)
			return error;
	}
	return 0;
}
