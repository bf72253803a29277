/* SPDX-License-Identifier: MIT */
/* Where a root is in the store, and at which directories of it a refresh begins. */
#include "tools/refresh/refresh_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/checked.h"
#include "base/cleanup.h"

/* ---- where a root is in the store ---- */

/* A node whose path in the store ends as the one in the source is below where the root was put. */
static int find_root(void *arg, uint64_t ino, const struct pfs_source_record *record)
{
	struct pfs_refresh *refresh = arg;
	char *path PFS_FREE = NULL;
	size_t len, end;
	int error;

	if (record->root != refresh->root.id)
		return 0;
	if (!record->path_len) {
		refresh->root_ino = ino;
		return 1;
	}
	error = pfs_tree_path(refresh->tree, &path, ino);
	if (error)
		return error == -ESTALE ? 0 : error;
	len = strlen(path);
	end = record->path_len;
	if (len <= end || memcmp(path + len - end, record->path, end) != 0 ||
	    path[len - end - 1] != '/')
		return 0;
	path[len - end - (len - end > 1)] = 0;
	error = pfs_tree_resolve(refresh->tree, &refresh->root_ino, path);
	return error ? error : 1;
}

int pfs_refresh_find_root(struct pfs_refresh *refresh)
{
	int error = pfs_follow_find(refresh->tree, find_root, refresh);

	return PFS_MIN(error, 0);
}

/* ---- where to begin ---- */

/* Returns true if the names of the path lead from the root's node to the directory. */
static bool is_named(struct pfs_refresh *refresh, const char *path, size_t len, uint64_t directory)
{
	uint64_t at = refresh->root_ino;
	char copy[PATH_MAX];
	int error = 0;

	(void)snprintf(copy, sizeof(copy), "%.*s", (int)len, path);
	for (char *name = copy, *next; !error && name; name = next) {
		next = strchr(name, '/');
		if (next)
			*next++ = 0;
		error = pfs_follow_child(refresh->tree, &at, at, pfs_refresh_name(name));
	}
	return !error && at == directory;
}

/* Returns the node of the directory above, if it is that of the source's directory above, though
 * it may have come with another source; 0: it is not. */
static uint64_t find_above(struct pfs_refresh *refresh, const char *path, uint64_t ino)
{
	uint64_t above = pfs_follow_parent(refresh->tree, ino);
	const char *slash = strrchr(path, '/');
	struct pfs_source_record record;
	char above_path[PATH_MAX];
	size_t len = slash ? (size_t)(slash - path) : 0;

	if (!*path || !above)
		return 0;
	if (above == refresh->root_ino) /* which need not have a record */
		return slash ? 0 : above;
	if (pfs_follow_record(refresh->tree, &record, above_path, above) == 0 &&
	    record.root == refresh->root.id)
		return record.path_len == len && memcmp(path, above_path, len) == 0 ? above : 0;
	return slash && is_named(refresh, path, len, above) ? above : 0;
}

int pfs_refresh_look_at_directory(struct pfs_refresh *refresh, struct pfs_crawl_batch **batch,
				  const char *path)
{
	struct pfs_refresh_place *place;
	int error, fd;

	*batch = NULL;
	PFS_TRY(pfs_refresh_visit(refresh, &place, &fd, path));
	error = pfs_crawl_look_at(refresh->look, batch, NULL);
	pfs_refresh_leave(refresh, place);
	return error;
}

/* Notes that nothing is mounted over the node's directory. *first is false if that was known. */
static int pass(struct pfs_refresh *refresh, bool *first, uint64_t ino)
{
	*first = true;
	return refresh->cut ? 0 : pfs_refresh_note(&refresh->passed, first, ino);
}

/* The same for a directory whose record is another root's. */
static int look_at_shared(struct pfs_refresh *refresh, bool *unseen, const char *path, uint64_t ino)
{
	struct pfs_refresh_place *place;
	int fd, error = pfs_refresh_visit(refresh, &place, &fd, path);

	if (!error) {
		error = pfs_refresh_is_shared_unseen(refresh, unseen, fd, place->dir, ino);
		pfs_refresh_leave(refresh, place);
	}
	return pfs_crawl_is_own(error) ? error : 0;
}

/* Sets *unseen if the node's directory is not what is where it was, and something is or was mounted
 * there. */
static int look_above(struct pfs_refresh *refresh, bool *unseen, const char *path, uint64_t ino,
		      uint64_t above)
{
	struct pfs_source_record record;
	struct pfs_follower node;
	struct pfs_there there = {.was = false};
	char recorded[PATH_MAX];
	int error = pfs_follow_record(refresh->tree, &record, recorded, ino), was;

	*unseen = false;
	if (!error)
		error = pfs_follow_node(refresh->tree, &node, ino);
	if (error)
		return error == -ENOENT || error == -ESTALE ? 0 : error;
	if (record.root != refresh->root.id)
		return look_at_shared(refresh, unseen, path, ino);
	was = pfs_refresh_was_mounted(refresh, &record, node.flags, above);
	if (was < 0)
		return was;
	there.was = was;
	error = pfs_refresh_look_there(refresh, &there, path, &record, ino);
	if (pfs_crawl_is_own(error))
		return error;
	*unseen = !refresh->options->unmounted && !there.same && (was || there.mounted);
	return 0;
}

/* If something else is mounted in one of the directories above than was, or nothing, the refresh
 * begins there: sets *ino and cuts the path. What lies below there now is of another. The directory
 * itself is looked at when it is walked. */
static int begin_at_mount(struct pfs_refresh *refresh, uint64_t *ino, char *path)
{
	char at_path[PATH_MAX];
	uint64_t at = *ino, above;
	bool first = true, unseen = false, own = true;

	(void)snprintf(at_path, sizeof(at_path), "%s", path);
	while (first && (above = find_above(refresh, at_path, at))) {
		char *slash = strrchr(at_path, '/');

		if (!own)
			PFS_TRY(pass(refresh, &first, at));
		if (!own && first)
			PFS_TRY(look_above(refresh, &unseen, at_path, at, above));
		own = false;
		if (unseen) {
			*ino = at;
			path[strlen(at_path)] = 0;
			refresh->cut = true;
		}
		*(slash ? slash : at_path) = 0;
		at = above;
	}
	return 0;
}

/* Removes the last name from the path. */
static void cut(char *path)
{
	char *slash = strrchr(path, '/');

	*(slash ? slash : path) = 0;
}

int pfs_refresh_is_in_place(struct pfs_refresh *refresh, bool *is, uint64_t ino)
{
	struct pfs_source_record record;
	char path[PATH_MAX];

	PFS_TRY(pfs_follow_record(refresh->tree, &record, path, ino));
	*is = !*path || find_above(refresh, path, ino);
	return 0;
}

/* Sets *is to true if the source has no directory of that path. One that cannot be reached is not
 * known to be gone. */
static int is_gone(struct pfs_refresh *refresh, bool *is, const char *path)
{
	struct pfs_crawl_batch *batch;
	int error = pfs_refresh_look_at_directory(refresh, &batch, path);

	pfs_crawl_look_free(batch);
	*is = error == -ENOENT || error == -ENOTDIR || error == -ELOOP;
	return pfs_crawl_is_own(error) ? error : 0;
}

/* Sets *closed if something is mounted at the name in the directory of the path that the refresh
 * stays out of. */
static int is_closed(struct pfs_refresh *refresh, bool *closed, const char *path, const char *name)
{
	struct pfs_refresh_place *place;
	struct statx now;
	int fd, error = pfs_refresh_visit(refresh, &place, &fd, path);

	if (!error) {
		*closed = statx(fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS,
				&now) == 0 &&
			  S_ISDIR(now.stx_mode) && pfs_crawl_is_mounted(&now, place->dir->dev) &&
			  pfs_crawl_look_stays_out(refresh->look,
						   makedev(now.stx_dev_major, now.stx_dev_minor));
		pfs_refresh_leave(refresh, place);
	}
	return pfs_crawl_is_own(error) ? error : 0;
}

/* Goes on with the directory above. *ino is 0 if the store has moved the node out of that: it is
 * looked for where its original was. */
static int go_up(struct pfs_refresh *refresh, uint64_t *ino, char *path)
{
	uint64_t above = find_above(refresh, path, *ino);

	if (!above)
		PFS_TRY(pfs_refresh_displaced(refresh, *ino, path, NULL));
	*ino = above;
	cut(path);
	return 0;
}

/* What is mounted on the way, and not read, is found by the directory that it is mounted in. */
static int begin_above_closed(struct pfs_refresh *refresh, uint64_t *ino, char *path)
{
	char above[PATH_MAX] = "", way[PATH_MAX], *name = way;
	bool closed = false;

	(void)snprintf(way, sizeof(way), "%s", path);
	while (*name && !closed) {
		char *end = strchrnul(name, '/');
		bool last = !*end;

		*end = 0;
		PFS_TRY(is_closed(refresh, &closed, above, name));
		if (closed || last)
			break;
		(void)memcpy(above, way, (size_t)(end - way) + 1);
		*end = '/';
		name = end + 1;
	}
	while (closed && *ino && strlen(path) > (size_t)(name - way))
		PFS_TRY(go_up(refresh, ino, path));
	return 0;
}

/* A directory that is gone is found to be by the listing of the one above it. */
static int begin_above_gone(struct pfs_refresh *refresh, uint64_t *ino, char *path)
{
	bool gone = true;

	while (*path && *ino && gone) {
		PFS_TRY(is_gone(refresh, &gone, path));
		if (gone)
			PFS_TRY(go_up(refresh, ino, path));
	}
	return 0;
}

static int begin_at_directory(struct pfs_refresh *refresh, uint64_t ino, char *path, bool flat)
{
	struct pfs_refresh_place *place;
	uint64_t asked = ino;

	if (!refresh->options->shallow)
		PFS_TRY(begin_above_closed(refresh, &ino, path));
	if (ino)
		PFS_TRY(begin_at_mount(refresh, &ino, path));
	if (!refresh->options->shallow)
		PFS_TRY(begin_above_gone(refresh, &ino, path));
	if (!ino)
		return 0;
	PFS_TRY(pfs_refresh_place(refresh, &place, path, NULL));
	place->start = true;
	place->ino = ino;
	place->above = find_above(refresh, path, ino);
	place->flat = flat || refresh->options->shallow || ino != asked;
	return 0;
}

/* What is no longer there needs none. What the store has moved is looked for where its original
 * was: what is beside it there is not beside it in the store. */
static int begin_at(struct pfs_refresh *refresh, uint64_t ino, bool flat)
{
	struct pfs_source_record record;
	struct pfs_follower node;
	char path[PATH_MAX];
	bool in_place = true;
	int error = pfs_follow_node(refresh->tree, &node, ino);

	if (error)
		return error == -ESTALE ? 0 : error;
	error = pfs_follow_record(refresh->tree, &record, path, ino);
	if (error && error != -ENOENT)
		return error;
	if (ino == refresh->root_ino)
		*path = 0; /* whatever came to the same directory before */
	else if (error || record.root != refresh->root.id)
		return 0;
	if (!refresh->options->shallow)
		in_place = !*path || find_above(refresh, path, ino);
	if (!in_place)
		return pfs_refresh_displaced(refresh, ino, path, NULL);
	if (S_ISDIR(node.attr.st_mode))
		return begin_at_directory(refresh, ino, path, flat);
	cut(path); /* with what is beside it */
	return begin_at_directory(refresh, pfs_follow_parent(refresh->tree, ino), path, true);
}

/* Returns true if the node is the directory or lies below it. */
static bool is_below(const struct pfs_refresh *refresh, uint64_t ino, uint64_t directory)
{
	while (ino && ino != directory)
		ino = pfs_follow_parent(refresh->tree, ino);
	return ino;
}

bool pfs_refresh_begins_at_root(const struct pfs_refresh *refresh)
{
	const struct pfs_refresh_options *options = refresh->options;

	for (size_t i = 0; i + options->n_flat < options->n_inos && !options->shallow; i++)
		if (is_below(refresh, refresh->root_ino, options->inos[i]))
			return true;
	return !options->n_inos;
}

static int begin_at_root(struct pfs_refresh *refresh)
{
	struct pfs_refresh_place *place;

	PFS_TRY(pfs_refresh_place(refresh, &place, "", NULL));
	place->ino = refresh->root_ino;
	return 0;
}

/* Those that are walked whole are first, and what lies above others is before them. */
static int compare_places(const void *a, const void *b)
{
	const struct pfs_refresh_place *x = *(struct pfs_refresh_place *const *)a;
	const struct pfs_refresh_place *y = *(struct pfs_refresh_place *const *)b;

	if (x->flat != y->flat)
		return x->flat - y->flat;
	return (x->dir->path_len > y->dir->path_len) - (x->dir->path_len < y->dir->path_len);
}

/* Orders the places so that whichever is met below another one has been begun before its turn. */
static int order_places(struct pfs_refresh *refresh)
{
	struct pfs_refresh_place **list PFS_FREE = NULL, **end = &refresh->todo, *place;
	size_t n = 0, capacity = 0;

	for (place = refresh->todo; place; place = place->next) {
		PFS_TRY(pfs_grow(&list, &capacity, n + 1, sizeof(struct pfs_refresh_place *)));
		list[n++] = place;
	}
	if (!n)
		return 0;
	qsort((void *)list, n, sizeof(struct pfs_refresh_place *), compare_places);
	for (size_t i = 0; i < n; i++) {
		*end = list[i];
		end = &list[i]->next;
	}
	*end = NULL;
	return 0;
}

int pfs_refresh_set_out(struct pfs_refresh *refresh)
{
	const struct pfs_refresh_options *options = refresh->options;

	if (pfs_refresh_begins_at_root(refresh))
		return begin_at_root(refresh);
	refresh->unlooked = true;
	for (size_t i = 0; i < options->n_inos; i++)
		PFS_TRY(begin_at(refresh, options->inos[i],
				 i + options->n_flat >= options->n_inos));
	PFS_TRY(order_places(refresh));
	/* a directory that the store has made may have anything in it */
	return refresh->todo || refresh->displaced || options->shallow ||
			       options->n_flat == options->n_inos
		       ? 0
		       : begin_at_root(refresh);
}

/* ---- which roots ---- */

/* Returns true if the node, or the nearest one above it that came with any root, came with this. */
static bool is_of(struct pfs_refresh *refresh, uint64_t ino)
{
	struct pfs_source_record record;
	char path[PATH_MAX];

	for (; ino; ino = pfs_follow_parent(refresh->tree, ino))
		if (!pfs_follow_record(refresh->tree, &record, path, ino))
			return record.root == refresh->root.id;
	return false;
}

/* Directories that are to be looked into. */
struct pile {
	uint64_t *list;
	size_t n, capacity;
};

/* Sets *is to true if one of the directory's children came with the root; else adds those that are
 * directories to the pile. */
static int look_into(struct pfs_refresh *refresh, bool *is, struct pile *pile, uint64_t directory)
{
	struct pfs_followers children = {.n = 0};
	int error = pfs_follow_list(refresh->tree, &children, directory, false);

	for (size_t i = 0; i < children.n && !error && !*is; i++) {
		const struct pfs_follower *child = &children.list[i];
		struct pfs_source_record record;
		char path[PATH_MAX];

		*is = !pfs_follow_record(refresh->tree, &record, path, child->ino) &&
		      record.root == refresh->root.id;
		if (*is || !S_ISDIR(child->attr.st_mode))
			continue;
		error = pfs_grow(&pile->list, &pile->capacity, pile->n + 1, sizeof(*pile->list));
		if (!error)
			pile->list[pile->n++] = child->ino;
	}
	pfs_followers_finish(&children);
	return error == -ESTALE || error == -ENOTDIR ? 0 : error;
}

/* Sets *is to true if something below the node came with the root. */
static int has_below(struct pfs_refresh *refresh, bool *is, uint64_t ino)
{
	struct pile pile = {.n = 0};
	int error = look_into(refresh, is, &pile, ino);

	while (!error && !*is && pile.n)
		error = look_into(refresh, is, &pile, pile.list[--pile.n]);
	free(pile.list);
	return error;
}

int pfs_refresh_is_asked(struct pfs_refresh *refresh, bool *is)
{
	const struct pfs_refresh_options *options = refresh->options;

	*is = !options->n_inos;
	for (size_t i = 0; i < options->n_inos && !*is; i++)
		*is = is_of(refresh, options->inos[i]);
	for (size_t i = 0; i + options->n_flat < options->n_inos && !*is && !options->shallow; i++)
		PFS_TRY(has_below(refresh, is, options->inos[i]));
	return 0;
}
