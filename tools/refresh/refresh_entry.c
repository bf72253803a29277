/* SPDX-License-Identifier: MIT */
/* Compares the nodes of a directory with the entries that it has in the source now. */
#include "tools/refresh/refresh_compare.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "fs/change/change.h"

/* ---- what is found ---- */

/* Notes that the child takes something over from the entry. record NULL: it has none yet. */
static int note_changed(struct pfs_comparison *comparison, struct pfs_crawl_batch *batch,
			const struct pfs_follower *child, const struct pfs_source_record *record,
			const char *name)
{
	struct pfs_refresh_place *place = comparison->place;
	const struct stat *now = &batch->entries[0].attr;
	struct pfs_finding *found;

	PFS_TRY(pfs_refresh_found(comparison->refresh, &found, place, batch, name));
	found->kind = PFS_FOUND_CHANGED;
	found->ino = child->ino;
	found->silent = !record || pfs_is_as_recorded(record, now);
	found->set = record ? pfs_what_to_take(record, &child->attr, now) : 0;
	found->listed = true;
	found->next = place->found;
	place->found = found;
	return 0;
}

/* Notes an entry of the place that may be new. gone: the node of its name, whose original it is
 * not. Takes the batch over, also on failure. */
static int note_new(struct pfs_comparison *comparison, struct pfs_crawl_batch *batch,
		    const char *name, struct pfs_gone *gone)
{
	struct pfs_finding *found;

	PFS_TRY(pfs_refresh_found(comparison->refresh, &found, comparison->place, batch, name));
	found->kind = PFS_FOUND_NEW;
	found->over = gone->by_prime.prime;
	found->set = PFS_TAKE_ALL;
	if (gone->stands)
		found->kind = PFS_FOUND_LEFT;
	else if (gone->unmounted)
		gone->stands = found;
	return 0;
}

/* ---- one child ---- */

/* Called for a directory where something is mounted, which is not walked. If the one that it is in
 * has moved, it is there all the same, with all below it. */
static int leave_mounted(struct pfs_comparison *comparison, const struct pfs_follower *child,
			 const char *name)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct pfs_gone *gone = pfs_refresh_find(refresh, child->ino);
	struct pfs_crawl_batch *batch;
	bool is_gone = gone && !gone->claimed;
	int error;

	if (!is_gone && child->flags & PFS_NODE_MOUNT)
		return 0;
	if (is_gone) {
		gone->held = true;
		PFS_TRY(pfs_refresh_seek(refresh, gone->path));
	}
	PFS_TRY(pfs_crawl_look_at(refresh->look, &batch, name));
	if (!batch)
		return 0;
	if (!is_gone) {
		error = pfs_refresh_leave_covered(refresh, child, batch);
		pfs_crawl_look_free(batch);
		return error;
	}
	PFS_TRY(pfs_refresh_found(refresh, &gone->stands, comparison->place, batch, name));
	gone->stands->kind = PFS_FOUND_LEFT;
	gone->stands->over = child->ino;
	return 0;
}

/* Puts a directory on the list of places to be walked, if it has to be walked. */
static int push_directory(struct pfs_comparison *comparison, const struct pfs_follower *child,
			  const char *name, const struct statx *now)
{
	struct pfs_refresh *refresh = comparison->refresh;
	bool mounted = pfs_crawl_is_mounted(now, comparison->dev), first, closed;
	struct pfs_refresh_place *place;

	if (pfs_refresh_is_met(refresh, child->ino, comparison->place, name) ||
	    (comparison->place->flat && !refresh->otherwise && pfs_is_unchanged(child, now, mounted)))
		return 0;
	if (mounted && pfs_crawl_look_stays_out(refresh->look,
						makedev(now->stx_dev_major, now->stx_dev_minor)))
		return leave_mounted(comparison, child, name);
	PFS_TRY(pfs_compare_closed(comparison, &closed, child, name, now));
	if (closed)
		return 0;
	PFS_TRY(pfs_refresh_begin(refresh, &first, child->ino));
	/* Below a moved directory it is walked all the same: its old place did not have it. */
	if (!first && !comparison->place->old_path)
		return 0;
	PFS_TRY(pfs_refresh_place(refresh, &place, comparison->place->dir->path, name));
	place->flat = comparison->place->flat;
	place->ino = child->ino;
	place->above = comparison->place->ino;
	place->met = true;
	place->in_mount = comparison->place->in_mount;
	if (!comparison->place->old_path)
		return 0;
	if (asprintf(&place->old_path, "%s/%s", comparison->old_path, name) < 0) {
		place->old_path = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* Compares a child with an entry of the name and directory that are in the child's record. */
static int compare_known(struct pfs_comparison *comparison, struct pfs_crawl_batch *batch,
			 const struct pfs_follower *child, const struct pfs_source_record *record,
			 const char *name)
{
	struct pfs_refresh *refresh = comparison->refresh;
	const struct stat *now = &batch->entries[0].attr;
	struct pfs_gone *gone;

	if (!pfs_refresh_same(refresh, batch, record)) {
		PFS_TRY(pfs_refresh_gone(refresh, &gone, comparison->place, child->ino, record));
		gone->maybe = true;
		return note_new(comparison, batch, name, gone);
	}
	gone = pfs_refresh_find(refresh, child->ino);
	if (gone)
		gone->present = true;
	if (!pfs_is_as_recorded(record, now) || comparison->place->old_path)
		return note_changed(comparison, batch, child, record, name);
	pfs_crawl_look_free(batch);
	if (record->mode == child->attr.st_mode && record->uid == child->attr.st_uid &&
	    record->gid == child->attr.st_gid && pfs_is_time(record->mtime, child->attr.st_mtim))
		return 0; /* only the ctime differs: its name or a user.* attribute changed */
	return pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, child->ino, NULL, NULL,
				"attributes changed in the store");
}

static int tell_own(struct pfs_refresh *refresh, const struct pfs_follower *child)
{
	return pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, child->ino, NULL, NULL,
				"the store has something of its own by this name");
}

/* Notes that the child is gone. The directory in which a filesystem was mounted may go with the
 * mount. */
static int lose(struct pfs_comparison *comparison, struct pfs_gone **gone,
		const struct pfs_follower *child, const struct pfs_source_record *record)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct pfs_refresh_place *place = comparison->place;
	bool unseen = false;

	PFS_TRY(pfs_refresh_gone(refresh, gone, place, child->ino, record));
	if (S_ISDIR(child->attr.st_mode))
		PFS_TRY(pfs_refresh_is_unseen(refresh, &unseen, record, child->flags, place->ino,
					      NULL));
	return unseen ? pfs_refresh_unmounted(refresh, *gone) : 0;
}

/* Returns true if the record's path lies in the directory, by the path of the directory's own
 * record. Sets *name to the path's last component. */
static bool is_recorded_here(const struct pfs_comparison *comparison,
			     const struct pfs_source_record *record, const char **name)
{
	const char *path = record->path, *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	*name = slash ? slash + 1 : path;
	return strlen(comparison->old_path) == len && memcmp(comparison->old_path, path, len) == 0;
}

/* Returns true if the child's record is of the entry `name` of the directory: the store has not
 * moved it. */
static bool is_of_entry(const struct pfs_comparison *comparison,
			const struct pfs_source_record *record, const char *name)
{
	const char *recorded;

	return is_recorded_here(comparison, record, &recorded) && strcmp(recorded, name) == 0;
}

/* Notes that the store has moved the child, perhaps to where the source has moved its original. The
 * entry of the child's name is new if neither is so. */
static int displace(struct pfs_comparison *comparison, const struct pfs_follower *child,
		    const char *path, const char *name)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct pfs_crawl_batch *batch;
	struct pfs_finding *found;

	if (pfs_refresh_is_met(refresh, child->ino, comparison->place, name))
		return 0;
	PFS_TRY(pfs_crawl_look_at(refresh->look, &batch, name));
	if (!batch)
		return 0;
	PFS_TRY(pfs_refresh_found(refresh, &found, comparison->place, batch, name));
	found->kind = PFS_FOUND_NEW;
	found->over = child->ino;
	found->set = PFS_TAKE_ALL;
	return pfs_refresh_displaced(refresh, child->ino, path, found);
}

/* Compares a child with an entry of another type: the child is gone, and the entry is new. */
static int compare_other(struct pfs_comparison *comparison, const struct pfs_follower *child,
			 const char *name)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct pfs_source_record record;
	struct pfs_crawl_batch *batch = NULL;
	char path[PATH_MAX];
	struct pfs_gone *gone;
	int error = pfs_follow_record(refresh->tree, &record, path, child->ino);

	if (error == -ENOENT || (!error && record.root != refresh->root.id))
		return tell_own(refresh, child);
	if (!error && !is_of_entry(comparison, &record, name))
		return displace(comparison, child, path, name);
	if (!error)
		error = pfs_crawl_look_at(refresh->look, &batch, name);
	if (error || !batch)
		return error;
	error = lose(comparison, &gone, child, &record);
	if (!error)
		return note_new(comparison, batch, name, gone);
	pfs_crawl_look_free(batch);
	return error;
}

/* Called for a child without a record. Gives it one if the store is an older one, and the child is
 * not a regular file and is the same in the source. Else the child is the store's own. */
static int adopt(struct pfs_comparison *comparison, const struct pfs_follower *child,
		 const char *name)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct pfs_crawl_batch *batch = NULL;
	char target[PATH_MAX] = "";
	const struct pfs_crawl_entry *entry;

	if (comparison->adopting && !S_ISREG(child->attr.st_mode))
		PFS_TRY(pfs_crawl_look_at(refresh->look, &batch, name));
	entry = batch ? &batch->entries[0] : NULL;
	if (batch && S_ISLNK(child->attr.st_mode) &&
	    pfs_tree_readlink(refresh->tree, target, child->ino))
		*target = 0;
	if (batch && strlen(target) == entry->target_len &&
	    memcmp(target, batch->bytes + entry->target, entry->target_len) == 0)
		return note_changed(comparison, batch, child, NULL, name);
	pfs_crawl_look_free(batch);
	return pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, child->ino, NULL, NULL,
			     "content is the store's own");
}

/* Compares a child by its record, since its attributes do not show that nothing has changed. */
static int compare_closely(struct pfs_comparison *comparison, const struct pfs_follower *child,
			   const char *name)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct pfs_source_record record;
	struct pfs_crawl_batch *batch;
	char path[PATH_MAX];
	int error = pfs_follow_record(refresh->tree, &record, path, child->ino);

	if (error == -ENOENT)
		return adopt(comparison, child, name);
	if (error)
		return error;
	if (record.root != refresh->root.id)
		return tell_own(refresh, child);
	if (!is_of_entry(comparison, &record, name))
		return displace(comparison, child, path, name);
	PFS_TRY(pfs_crawl_look_at(refresh->look, &batch, name));
	return batch ? compare_known(comparison, batch, child, &record, name) : 0;
}

static int miss(struct pfs_comparison *comparison, const struct pfs_follower *child);

/* Compares a child with the entry `name` of the source, if there is one. */
static int compare_child(struct pfs_comparison *comparison, const struct pfs_follower *child,
			 const char *name)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct statx now;

	if (pfs_crawl_look_passes(refresh->look, name, S_ISDIR(child->attr.st_mode))) {
		refresh->unlooked |= S_ISDIR(child->attr.st_mode);
		return 0;
	}
	if (pfs_passes_over(comparison, child))
		return 0;
	refresh->report->looked_at++;
	if (statx(comparison->fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS,
		  &now) < 0)
		return errno == ENOENT ? miss(comparison, child)
				       : pfs_refresh_tell(refresh, PFS_REFRESH_UNREAD, child->ino,
							  NULL, NULL, strerror(errno));
	if ((now.stx_mode & S_IFMT) != (child->attr.st_mode & S_IFMT))
		return compare_other(comparison, child, name);
	if (S_ISDIR(now.stx_mode))
		return push_directory(comparison, child, name, &now);
	if (!comparison->place->old_path && !pfs_refresh_find(refresh, child->ino) &&
	    (!comparison->adopting || S_ISREG(now.stx_mode)) &&
	    (int64_t)now.stx_size == child->attr.st_size &&
	    pfs_are_times_equal(child->attr.st_mtim, pfs_timespec_of_statx(now.stx_mtime)) &&
	    pfs_are_times_equal(child->attr.st_ctim, pfs_timespec_of_statx(now.stx_ctime)))
		return 0;
	if (now.stx_nlink > 1 && refresh->options->watcher)
		refresh->options->watcher->linked(refresh->options->watcher->arg, &child->attr);
	return compare_closely(comparison, child, name);
}

/* ---- names that only the store or only the source has ---- */

/* Takes the name off the list of names that no child has. Returns true if it was on the list. */
static bool take_unknown(const struct pfs_comparison *comparison, const char *name)
{
	for (size_t i = 0; i < comparison->n_unknown; i++)
		if (comparison->unknown[i] && strcmp(comparison->unknown[i], name) == 0) {
			free(comparison->unknown[i]);
			comparison->unknown[i] = NULL;
			return true;
		}
	return false;
}

/* Returns true if refreshes that keep gone nodes named the node `here`, as another got its name,
 * or the name that it had got then. */
static bool is_aside(const char *here, const char *name, uint64_t ino)
{
	char was[PFS_NAME_MAX + 1], aside[PFS_NAME_MAX + 1];
	size_t len;

	(void)snprintf(aside, sizeof(aside), "%s", pfs_refresh_name(name));
	do {
		len = strlen(aside);
		memcpy(was, aside, len + 1);
		pfs_change_name_aside(aside, was, ino);
		if (strcmp(here, aside) == 0)
			return true;
	} while (strlen(aside) > len && len < strlen(here));
	return false;
}

/* Sets *is if the child was given another name by a refresh, or its original's is another entry's
 * now: a listing has that entry as no unknown one, and it need not be the store's own. */
static int is_renamed_away(const struct pfs_comparison *comparison, bool *is, const char *here,
			   const char *name, const struct pfs_source_record *record)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct pfs_crawl_batch *batch;

	*is = is_aside(here, name, record->prime);
	if (*is || !comparison->listing || take_unknown(comparison, name))
		return 0;
	PFS_TRY(pfs_crawl_look_at(refresh->look, &batch, name));
	*is = batch && !pfs_refresh_same(refresh, batch, record);
	pfs_crawl_look_free(batch);
	return 0;
}

/* Called for a child whose name the source lacks: it is gone, or was renamed or moved in the
 * store. */
static int miss(struct pfs_comparison *comparison, const struct pfs_follower *child)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct pfs_source_record record;
	char path[PATH_MAX];
	struct pfs_gone *gone;
	const char *name, *here = comparison->refresh->children.names + child->name;
	struct stat now;
	bool renamed, away;
	int error;

	if (pfs_crawl_look_passes(refresh->look, here, S_ISDIR(child->attr.st_mode)))
		return 0;
	error = pfs_follow_record(refresh->tree, &record, path, child->ino);
	if (error == -ENOENT)
		PFS_TRY(pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, child->ino, NULL, NULL,
				      "it is the store's own"));
	if (error == -ENOENT || (!error && record.root != refresh->root.id))
		return S_ISDIR(child->attr.st_mode)
			       ? pfs_refresh_displaced_below(refresh, child->ino)
			       : 0;
	if (error)
		return error;
	if (!is_recorded_here(comparison, &record, &name))
		return pfs_refresh_displaced(refresh, child->ino, path, NULL);
	renamed = strcmp(name, here) != 0 && strcmp(pfs_refresh_name(name), here) != 0;
	/* What cannot be looked at for another reason is there, which compare_child tells. */
	away = fstatat(comparison->fd, name, &now, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
	if (!away && renamed)
		PFS_TRY(is_renamed_away(comparison, &away, here, name, &record));
	if (away)
		return lose(comparison, &gone, child, &record);
	if (renamed)
		PFS_TRY(pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, child->ino, NULL, name,
					 "renamed in the store"));
	return compare_child(comparison, child, name);
}

/* Returns true if an entry without a node was removed in the store: the directory was changed
 * there, and had the entry when it was last read. An entry that came since has a later ctime or, if
 * it came at once and the directory was not settled, the same. So has one that the directory had,
 * and that has changed since. */
static bool was_removed(const struct pfs_comparison *comparison, const struct stat *attr)
{
	const struct pfs_refresh_place *place = comparison->place;
	struct timespec listed = pfs_timespec_of(place->listed);

	if (!place->touched)
		return false;
	return place->settled ? !pfs_is_later(attr->st_ctim, listed)
			      : pfs_is_later(listed, attr->st_ctim);
}

/* Notes an entry as new whose name no child has. */
static int take_unknown_name(struct pfs_comparison *comparison, const char *name)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct pfs_crawl_batch *batch;
	struct pfs_finding *found;

	refresh->report->looked_at++;
	PFS_TRY(pfs_crawl_look_at(refresh->look, &batch, name));
	if (!batch)
		return 0;
	if (pfs_crawl_look_passes(refresh->look, name, S_ISDIR(batch->entries[0].attr.st_mode))) {
		pfs_crawl_look_free(batch);
		return 0;
	}
	PFS_TRY(pfs_refresh_found(refresh, &found, comparison->place, batch, name));
	found->kind = PFS_FOUND_NEW;
	found->set = PFS_TAKE_ALL;
	found->removed = was_removed(comparison, &batch->entries[0].attr);
	return 0;
}

/* ---- listings ---- */

static int compare_names(const void *a, const void *b, void *arg)
{
	const struct pfs_followers *children = arg;
	const uint32_t *x = a, *y = b;

	return strcmp(children->names + children->list[*x].name,
		      children->names + children->list[*y].name);
}

static int sort_children(struct pfs_comparison *comparison)
{
	struct pfs_followers *children = &comparison->refresh->children;

	comparison->by_name = calloc(PFS_MAX(children->n, 1), sizeof(*comparison->by_name));
	comparison->seen = calloc(PFS_MAX(children->n, 1), 1);
	if (!comparison->by_name || !comparison->seen)
		return -ENOMEM;
	for (size_t i = 0; i < children->n; i++)
		comparison->by_name[i] = (uint32_t)i;
	qsort_r(comparison->by_name, children->n, sizeof(*comparison->by_name), compare_names,
		children);
	return 0;
}

/* Returns the child of that name, or NULL. */
static const struct pfs_follower *find_child(const struct pfs_comparison *comparison,
					     const char *name)
{
	const struct pfs_followers *children = &comparison->refresh->children;
	const struct pfs_follower *list = children->list;
	const uint32_t *by_name = comparison->by_name;
	uint64_t at = PFS_SEARCH(i, 0, children->n,
				 strcmp(children->names + list[by_name[i]].name, name) < 0);

	return at < children->n && !strcmp(children->names + list[by_name[at]].name, name)
		       ? &list[by_name[at]]
		       : NULL;
}

static int list_unknown(struct pfs_comparison *comparison, const char *name)
{
	char *copy = strdup(name);

	if (!copy || pfs_grow(&comparison->unknown, &comparison->unknown_capacity,
			      comparison->n_unknown + 1, sizeof(char *))) {
		free(copy);
		return -ENOMEM;
	}
	comparison->unknown[comparison->n_unknown++] = copy;
	return 0;
}

/* Marks the child that has this name in the source as seen, or lists the name as unknown. */
static int take_name(struct pfs_comparison *comparison, const char *name)
{
	const struct pfs_follower *child;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    strlen(name) > PFS_NAME_MAX)
		return 0;
	child = find_child(comparison, pfs_refresh_name(name));
	if (!child)
		return list_unknown(comparison, name);
	comparison->seen[child - comparison->refresh->children.list] = 1;
	return 0;
}

static int compare_unknown(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Called if a listing cannot be read to its end. Nodes that it lacks are not gone, and the next
 * refresh reads it again. */
static int give_up(struct pfs_comparison *comparison, const char *why)
{
	struct pfs_refresh_place *place = comparison->place;

	comparison->listing = false;
	place->unread = true;
	if (place->own)
		place->own->kind = PFS_FOUND_LEFT;
	place->own = NULL;
	return place->ino ? pfs_refresh_tell(comparison->refresh, PFS_REFRESH_UNREAD, place->ino,
					     NULL, NULL, why)
			  : pfs_refresh_tell_found(comparison->refresh, PFS_REFRESH_UNREAD,
						   place->from, NULL, why);
}

static int read_names(struct pfs_comparison *comparison)
{
	char buffer[32768] __attribute__((aligned(8)));

	comparison->refresh->report->listed++;
	for (;;) {
		ssize_t size = getdents64(comparison->fd, buffer, sizeof(buffer));

		if (size < 0)
			return give_up(comparison, strerror(errno));
		if (size == 0)
			return 0;
		for (ssize_t at = 0; at < size;) {
			const struct dirent64 *entry = (const void *)(buffer + at);

			PFS_TRY(take_name(comparison, entry->d_name));
			at += entry->d_reclen;
		}
	}
}

static int compare_listed(struct pfs_comparison *comparison, uint32_t i)
{
	const struct pfs_followers *children = &comparison->refresh->children;
	const struct pfs_follower *child = &children->list[i];
	const char *name = children->names + child->name;

	return comparison->seen[i] ? compare_child(comparison, child, pfs_source_name(name))
				   : miss(comparison, child);
}

static int compare_listing(struct pfs_comparison *comparison)
{
	const struct pfs_followers *children = &comparison->refresh->children;

	PFS_TRY(sort_children(comparison));
	PFS_TRY(read_names(comparison));
	if (!comparison->listing)
		return 0;
	if (comparison->n_unknown)
		qsort(comparison->unknown, comparison->n_unknown, sizeof(char *), compare_unknown);
	for (size_t i = 0; i < children->n; i++)
		PFS_TRY(compare_listed(comparison, comparison->by_name[i]));
	for (size_t i = 0; i < comparison->n_unknown; i++)
		if (comparison->unknown[i])
			PFS_TRY(take_unknown_name(comparison, comparison->unknown[i]));
	return 0;
}

int pfs_compare_children(struct pfs_comparison *comparison)
{
	struct pfs_followers *children = &comparison->refresh->children;

	children->n = children->names_len = 0;
	if (comparison->place->ino)
		PFS_TRY(pfs_follow_list(comparison->refresh->tree, children, comparison->place->ino,
					pfs_passes_over_files(comparison) && !comparison->listing));
	if (comparison->listing)
		return compare_listing(comparison);
	for (size_t i = 0; i < children->n; i++) {
		const struct pfs_follower *child = &children->list[i];

		PFS_TRY(compare_child(comparison, child,
				      pfs_source_name(children->names + child->name)));
	}
	return 0;
}
