/* SPDX-License-Identifier: MIT */
/* Nodes that the store has moved. Each stays where the store has put it, and follows its original,
 * which is looked for by the path in the node's record; if a directory that the path lies in has
 * moved in the source, by the path that the original has in that one.
 *
 * Most are met where they are now. Those that are not, as a quick refresh looks at no files and one
 * of paths not everywhere, are sought among all records when a directory moves that the store has
 * changed: once its record has its new path, nothing tells any more where they belong. So are those
 * that were moved out of a directory whose listing is read: it may have another name for them. */
#include "tools/refresh/refresh_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/search.h"

/* ---- where originals are now ---- */

/* Sets `now` by the moves that have been found since the last call. *another is false if it stays
 * as it was. */
static int find_now(const struct pfs_refresh *refresh, struct pfs_displaced *displaced,
		    bool *another)
{
	const struct pfs_source_move *move = pfs_refresh_move_of(
		refresh, displaced->path, &displaced->n_moves, &displaced->moved_len);

	*another = move;
	if (!move)
		return 0;
	free(displaced->now);
	if (asprintf(&displaced->now, "%s%s", move->to, displaced->path + displaced->moved_len) < 0)
		displaced->now = NULL;
	return displaced->now ? 0 : -ENOMEM;
}

/* ---- what becomes of one ---- */

/* Looks at the entry of the path. *batch is NULL if that was not possible, which was told. */
static int look_at_entry(struct pfs_refresh *refresh, struct pfs_crawl_batch **batch,
			 const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder PFS_FREE = strndup(path, slash ? (size_t)(slash - path) : 0);
	bool passes;

	*batch = NULL;
	return folder ? pfs_refresh_look_in(refresh, batch, &passes, folder,
					    slash ? slash + 1 : path)
		      : -ENOMEM;
}

/* Sets *is if the folder that the path lies in is the one that it was. */
static int is_in_folder(struct pfs_refresh *refresh, bool *is, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder PFS_FREE = strndup(path, slash ? (size_t)(slash - path) : 0);
	struct pfs_crawl_batch *batch = NULL;
	struct pfs_source_dir was;
	int error;

	*is = !slash;
	if (!folder)
		return -ENOMEM;
	if (!slash)
		return 0;
	error = pfs_follow_folder(refresh->tree, &was, refresh->root.id, folder);
	if (error)
		return error == -ENOENT ? 0 : error;
	error = pfs_refresh_look_at_directory(refresh, &batch, folder);
	if (batch)
		*is = pfs_refresh_same(refresh, batch,
				       &(struct pfs_source_record){
					       .dev = was.dev, .ino = was.ino, .mark = was.mark});
	pfs_crawl_look_free(batch);
	return pfs_crawl_is_own(error) ? error : 0;
}

static int tell_unread(struct pfs_refresh *refresh, uint64_t ino, int error)
{
	return pfs_refresh_tell(refresh, PFS_REFRESH_UNREAD, ino, NULL, NULL, strerror(-error));
}

/* Called if the original is not where the record has it. If another filesystem is there than it was
 * in, it is not gone, but cannot be seen; unless that is the one below, and the options say that
 * what is not mounted is gone. If its folder is not there, and not all is refreshed, it may be
 * where nobody looks. */
static int lose(struct pfs_refresh *refresh, const struct pfs_displaced *displaced,
		const struct pfs_source_record *record)
{
	uint64_t ino = displaced->by_prime.prime;
	struct pfs_follower node;
	struct pfs_gone *gone;
	bool unseen = false, in_folder = true;
	int error = pfs_follow_node(refresh->tree, &node, ino);

	if (!error)
		error = pfs_refresh_look_for(refresh, &unseen, record, &node);
	if (error == -ESTALE)
		return 0;
	if (pfs_crawl_is_own(error))
		return error;
	if (error)
		return tell_unread(refresh, ino, error);
	PFS_TRY(pfs_refresh_gone(refresh, &gone, displaced->here ? displaced->here->place : NULL,
				 ino, record));
	if (unseen)
		return pfs_refresh_unmounted(refresh, gone);
	if (!pfs_refresh_begins_at_root(refresh))
		PFS_TRY(is_in_folder(refresh, &in_folder, displaced->path));
	gone->held |= !in_folder;
	return 0;
}

/* A directory is walked from where its original is. */
static int walk_from(struct pfs_refresh *refresh, const struct pfs_displaced *displaced,
		     const char *at)
{
	struct pfs_refresh_place *place;

	PFS_TRY(pfs_refresh_place(refresh, &place, at, NULL));
	place->ino = displaced->by_prime.prime;
	if (at == displaced->path) {
		place->flat = refresh->options->shallow;
		return 0;
	}
	place->old_path = strdup(displaced->path);
	if (!place->old_path)
		return -ENOMEM;
	return at == displaced->met ? pfs_refresh_note_move(refresh, displaced->path, at) : 0;
}

/* Any other node takes over what has changed, and where the original is now. Takes the batch over,
 * also on failure. */
static int take_from(struct pfs_refresh *refresh, const struct pfs_displaced *displaced,
		     struct pfs_crawl_batch *batch, const struct pfs_source_record *record,
		     const char *at)
{
	const struct stat *now = &batch->entries[0].attr;
	const char *slash = strrchr(at, '/');
	uint64_t ino = displaced->by_prime.prime;
	struct pfs_refresh_place *place;
	struct pfs_finding *found;
	struct pfs_follower node;
	char *folder PFS_FREE = strndup(at, slash ? (size_t)(slash - at) : 0);
	bool another = !pfs_refresh_same(refresh, batch, record);
	bool same = !another && pfs_is_as_recorded(record, now);
	int error = folder ? pfs_follow_node(refresh->tree, &node, ino) : -ENOMEM;

	if (!error && same && at == displaced->path) {
		pfs_crawl_look_free(batch);
		return 0;
	}
	if (!error)
		error = pfs_refresh_where(refresh, &place, folder,
					  pfs_follow_parent(refresh->tree, ino));
	if (error) {
		pfs_crawl_look_free(batch);
		return error == -ESTALE ? 0 : error;
	}
	PFS_TRY(pfs_refresh_found(refresh, &found, place, batch, slash ? slash + 1 : at));
	found->kind = PFS_FOUND_CHANGED;
	found->ino = ino;
	found->another = another;
	found->silent = same || at != displaced->path;
	found->set = pfs_what_to_take(record, &node.attr, now);
	return 0;
}

/* The node's original is what the batch has from now on. Takes the batch over, also on failure. */
static int keep(struct pfs_refresh *refresh, struct pfs_displaced *displaced,
		struct pfs_crawl_batch *batch, const struct pfs_source_record *record,
		const char *at)
{
	struct pfs_gone *gone = pfs_refresh_find(refresh, displaced->by_prime.prime);
	bool directory = S_ISDIR(batch->entries[0].attr.st_mode);
	int error = 0;

	displaced->at = at;
	displaced->unread = false;
	if (gone) {
		gone->present = gone->claimed = true;
		gone->held = gone->unmounted = false;
	}
	if (at != displaced->met)
		error = pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, displaced->by_prime.prime, NULL,
					 at, "moved in the store");
	if (!error && !directory)
		return take_from(refresh, displaced, batch, record, at);
	if (!error)
		error = walk_from(refresh, displaced, at);
	pfs_crawl_look_free(batch);
	return error;
}

/* Sets *is if the entry of the batch, which may be NULL, is the record's. */
static int is_original(struct pfs_refresh *refresh, bool *is, const struct pfs_displaced *displaced,
		       const struct pfs_crawl_batch *batch, const struct pfs_source_record *record,
		       const char *at)
{
	struct pfs_there there = {.was = true, .elsewhere = at != displaced->path};

	*is = batch && pfs_refresh_same(refresh, batch, record);
	if (!*is || !batch->entries[0].mounted)
		return 0;
	PFS_TRY(pfs_refresh_look_there(refresh, &there, at, record, displaced->by_prime.prime));
	*is = there.same;
	return 0;
}

/* It cannot be told whether the original is there, so that the node stays. If a directory that it
 * lies in has moved, so does its record, since the next refresh would not find that out. */
static int leave_unread(struct pfs_refresh *refresh, struct pfs_displaced *displaced,
			const char *at)
{
	struct pfs_gone *gone = pfs_refresh_find(refresh, displaced->by_prime.prime);

	displaced->unread = at == displaced->now;
	if (gone)
		gone->held = true;
	return displaced->unread ? pfs_refresh_seek(refresh, displaced->path) : 0;
}

static void drop_another(struct pfs_displaced *displaced)
{
	if (!displaced)
		return;
	pfs_crawl_look_free(displaced->another);
	displaced->another = NULL;
}

/* Looks whether the original is there. *gone: it is not. */
static int look_at(struct pfs_refresh *refresh, struct pfs_displaced *displaced, const char *at,
		   const struct pfs_source_record *record, bool *gone)
{
	uint64_t ino = displaced->by_prime.prime;
	struct pfs_crawl_batch *batch;
	int error;
	bool is;

	*gone = displaced->unread = false;
	refresh->reading = ino;
	error = look_at_entry(refresh, &batch, at);
	if (!error && !batch)
		return leave_unread(refresh, displaced, at);
	if (error == -ENOENT || error == -ENOTDIR || error == -ELOOP)
		error = 0;
	if (!error)
		error = is_original(refresh, &is, displaced, batch, record, at);
	if (!error && is)
		return keep(refresh, displaced, batch, record, at);
	if (at == displaced->path)
		drop_another(displaced);
	if (!error && batch && at == displaced->path && S_ISREG(batch->entries[0].attr.st_mode))
		displaced->another = batch;
	else
		pfs_crawl_look_free(batch);
	*gone = !error;
	if (!error || pfs_crawl_is_own(error))
		return error;
	PFS_TRY(leave_unread(refresh, displaced, at));
	return tell_unread(refresh, ino, error);
}

/* Looks where the original is: where the record has it; where the node is. */
static int look_first(struct pfs_refresh *refresh, struct pfs_displaced *displaced,
		      const struct pfs_source_record *record)
{
	bool gone;

	PFS_TRY(look_at(refresh, displaced, displaced->path, record, &gone));
	if (gone)
		PFS_TRY(pfs_refresh_look_behind(refresh, displaced));
	displaced->looked = true;
	if (gone && displaced->met)
		PFS_TRY(look_at(refresh, displaced, displaced->met, record, &gone));
	return gone ? lose(refresh, displaced, record) : 0;
}

static int look_for(struct pfs_refresh *refresh, struct pfs_displaced *displaced)
{
	const struct pfs_gone *gone = pfs_refresh_find(refresh, displaced->by_prime.prime);
	struct pfs_source_record record;
	char path[PATH_MAX];
	bool another, is_gone;
	int error;

	if (displaced->at || (gone && gone->claimed))
		return 0;
	error = pfs_follow_record(refresh->tree, &record, path, displaced->by_prime.prime);
	if (error)
		return error == -ENOENT ? 0 : error;
	record.path = displaced->path;
	if (!displaced->looked)
		PFS_TRY(look_first(refresh, displaced, &record));
	if (displaced->at)
		return 0;
	PFS_TRY(find_now(refresh, displaced, &another));
	return another ? look_at(refresh, displaced, displaced->now, &record, &is_gone) : 0;
}

bool pfs_refresh_is_covered(const struct pfs_refresh *refresh, const struct pfs_finding *found)
{
	const struct pfs_gone *gone = found->over ? pfs_refresh_find(refresh, found->over) : NULL;

	return found->over && pfs_byprime_find(&refresh->displaced_inos, found->over) &&
	       (!gone || gone->present || gone->held);
}

/* ---- those that are not met ---- */

static int compare_sought(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int compare_start(const char *sought, const char *path, size_t len)
{
	int order = strncmp(sought, path, len);

	return order ? order : sought[len] != 0;
}

static bool is_listed(const struct pfs_refresh *refresh, const char *path, size_t len)
{
	uint64_t at = PFS_SEARCH(i, 0, refresh->n_sought,
				 compare_start(refresh->sought[i], path, len) < 0);

	return at < refresh->n_sought && !compare_start(refresh->sought[at], path, len);
}

/* Returns true if the path lies in one of the directories that are sought in. */
static bool is_sought(const struct pfs_refresh *refresh, const char *path, size_t path_len)
{
	size_t slash = path_len;

	for (size_t len = 0; len < path_len; len++) {
		if (path[len] != '/')
			continue;
		if (is_listed(refresh, path, len))
			return true;
		slash = len;
	}
	return slash < path_len ? is_listed(refresh, path, slash + 1) : is_listed(refresh, "/", 1);
}

/* Nodes whose records have a path in one of the directories. */
struct met {
	const struct pfs_refresh *refresh;
	uint64_t *list;
	size_t n, capacity;
};

static int meet(void *arg, uint64_t ino, const char *path, size_t path_len)
{
	struct met *met = arg;

	if (!is_sought(met->refresh, path, path_len) || pfs_refresh_find(met->refresh, ino))
		return 0;
	PFS_TRY(pfs_grow(&met->list, &met->capacity, met->n + 1, sizeof(*met->list)));
	met->list[met->n++] = ino;
	return 0;
}

/* What lies below directories that have moved is in `gone` since they were missed. Of all others
 * those have been moved that are not in the directory of their record; or were removed, and are
 * open. */
static int displace_met(struct pfs_refresh *refresh, const struct met *met)
{
	for (size_t i = 0; i < met->n; i++) {
		uint64_t ino = met->list[i];
		struct pfs_source_record record;
		char path[PATH_MAX];
		bool stays = !pfs_follow_parent(refresh->tree, ino);
		int error = 0;

		if (!stays)
			error = pfs_refresh_is_in_place(refresh, &stays, ino);
		if (!error && !stays)
			error = pfs_follow_record(refresh->tree, &record, path, ino);
		if (!error && !stays)
			error = pfs_refresh_displaced(refresh, ino, path, NULL);
		if (error && error != -ENOENT)
			return error;
	}
	return 0;
}

static int seek(struct pfs_refresh *refresh)
{
	struct met met = {.refresh = refresh};
	int error;

	if (!refresh->n_sought)
		return 0;
	qsort((void *)refresh->sought, refresh->n_sought, sizeof(char *), compare_sought);
	error = pfs_follow_paths(refresh->tree, refresh->root.id, meet, &met);
	pfs_refresh_forget_sought(refresh);
	if (!error)
		error = displace_met(refresh, &met);
	free(met.list);
	return error;
}

/* ---- all of them ---- */

static int compare_at(const void *a, const void *b)
{
	const struct pfs_displaced *const *x = a, *const *y = b;

	return strcmp((*x)->at, (*y)->at);
}

static int compare_recorded(const void *a, const void *b)
{
	const struct pfs_displaced *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

static int compare_path(const void *path, const void *displaced)
{
	return strcmp(path, (*(const struct pfs_displaced *const *)displaced)->at);
}

/* Entries whose node is elsewhere in the store are not new. */
static int leave_entries(struct pfs_refresh *refresh)
{
	const struct pfs_displaced **list PFS_FREE = NULL;
	size_t n = 0, capacity = 0, len;
	char path[PATH_MAX];

	for (const struct pfs_displaced *at = refresh->displaced; at; at = at->next) {
		if (!at->at)
			continue;
		PFS_TRY(pfs_grow(&list, &capacity, n + 1, sizeof(struct pfs_displaced *)));
		list[n++] = at;
	}
	if (!n)
		return 0;
	qsort((void *)list, n, sizeof(struct pfs_displaced *), compare_at);
	for (struct pfs_finding *found = refresh->found; found; found = found->following)
		if (found->kind == PFS_FOUND_NEW && !found->as &&
		    pfs_refresh_path_of(path, found, &len) &&
		    bsearch(path, (void *)list, n, sizeof(struct pfs_displaced *), compare_path))
			found->kind = PFS_FOUND_LEFT;
	return 0;
}

/* Returns true if the file that has come to where the original was is what becomes of it, as far as
 * the node alone tells. */
static bool may_take_over(const struct pfs_refresh *refresh, const struct pfs_displaced *displaced)
{
	const struct pfs_gone *gone = pfs_refresh_find(refresh, displaced->by_prime.prime);

	return displaced->another && !displaced->at && gone && S_ISREG(gone->mode) &&
	       !gone->present && !gone->claimed && !gone->held;
}

/* Lists the nodes that may take over, in the order of their paths. */
static int list_another(struct pfs_refresh *refresh, struct pfs_displaced ***list, size_t *n)
{
	size_t capacity = 0;

	for (struct pfs_displaced *at = refresh->displaced; at; at = at->next) {
		if (!may_take_over(refresh, at))
			continue;
		PFS_TRY(pfs_grow(list, &capacity, *n + 1, sizeof(struct pfs_displaced *)));
		(*list)[(*n)++] = at;
	}
	if (*n)
		qsort((void *)*list, *n, sizeof(struct pfs_displaced *), compare_recorded);
	return 0;
}

static struct pfs_displaced *find_another(struct pfs_displaced **list, size_t n, const char *path)
{
	uint64_t at = PFS_SEARCH(i, 0, n, strcmp(list[i]->path, path) < 0);

	return at < n && strcmp(list[at]->path, path) == 0 ? list[at] : NULL;
}

/* Drops files that are the originals of other nodes. All others are not new. */
static void drop_claimed(struct pfs_refresh *refresh, struct pfs_displaced **list, size_t n)
{
	char path[PATH_MAX];
	size_t len;

	for (const struct pfs_displaced *at = refresh->displaced; at; at = at->next)
		if (at->at)
			drop_another(find_another(list, n, at->at));
	for (struct pfs_finding *found = refresh->found; found; found = found->following) {
		struct pfs_displaced *displaced =
			pfs_refresh_path_of(path, found, &len) ? find_another(list, n, path) : NULL;

		if (displaced && found->kind == PFS_FOUND_NEW && !found->as)
			found->kind = PFS_FOUND_LEFT;
		else if (found->kind != PFS_FOUND_LEFT)
			drop_another(displaced);
	}
}

int pfs_refresh_replace_displaced(struct pfs_refresh *refresh)
{
	struct pfs_displaced **list PFS_FREE = NULL;
	size_t n = 0;

	PFS_TRY(list_another(refresh, &list, &n));
	if (!n)
		return 0;
	drop_claimed(refresh, list, n);
	for (size_t i = 0; i < n; i++) {
		struct pfs_displaced *at = list[i];
		struct pfs_crawl_batch *batch = at->another;

		at->another = NULL;
		if (batch)
			PFS_TRY(keep(refresh, at, batch,
				     &pfs_refresh_find(refresh, at->by_prime.prime)->record,
				     at->path));
	}
	return 0;
}

int pfs_refresh_look_for_displaced(struct pfs_refresh *refresh)
{
	struct pfs_displaced *at;

	do {
		PFS_TRY(seek(refresh));
		for (at = refresh->displaced; at; at = at->next) {
			PFS_TRY(look_for(refresh, at));
			PFS_TRY(pfs_refresh_walk(refresh)); /* may find others */
		}
	} while (refresh->n_sought);
	return leave_entries(refresh);
}
