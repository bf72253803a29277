/* SPDX-License-Identifier: MIT */
/* In a directory that is as it was a quick refresh looks at directories alone, whose names the store has: so it is not
 * opened, but those in it are asked for by their paths from one above it that is open.  Nothing is taken over here:
 * whatever differs is walked as usual. */
#include "tools/refresh/refresh_compare.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/import/ignore.h"

#define LONG_PATH (PATH_MAX / 2) /* from there on a directory is opened, so that paths begin anew */

/* A directory that stays closed, with others in it. */
struct closed {
	struct closed *next;
	uint64_t ino, above;
	char path[]; /* from the place's directory on */
};

struct closed_walk {
	struct pfs_comparison *comparison;
	struct closed *todo;
	struct pfs_followers children; /* of the one at hand */
	struct statx *now;	       /* of each */
	size_t capacity;
};

static dev_t device_of(const struct statx *now)
{
	return makedev(now->stx_dev_major, now->stx_dev_minor);
}

static int add(struct closed_walk *walk, uint64_t ino, uint64_t above, const char *path)
{
	size_t len = strlen(path);
	struct closed *closed = malloc(sizeof(*closed) + len + 1);

	if (!closed)
		return -ENOMEM;
	*closed = (struct closed){.next = walk->todo, .ino = ino, .above = above};
	memcpy(closed->path, path, len + 1);
	walk->todo = closed;
	return 0;
}

/* Nothing in it would be looked at but directories, it has not been met elsewhere, and nobody wants to know that it is
 * read. */
static int may_stay_closed(const struct pfs_comparison *comparison, bool *out, const struct pfs_follower *directory,
			   const struct statx *now)
{
	struct pfs_refresh *refresh = comparison->refresh;
	const struct pfs_refresh_watcher *watcher = refresh->options->watcher;
	uint64_t was = 0;

	*out = pfs_is_unchanged(directory, now) && (!watcher || watcher->knows(watcher->arg, directory->ino));
	if (*out)
		PFS_TRY(pfs_refresh_note_walked(refresh, &was, directory->ino, device_of(now), now->stx_ino));
	*out = *out && !was;
	return 0;
}

/* It is walked, as pfs_compare_children would have it. */
static int walk_later(const struct closed_walk *walk, uint64_t ino, uint64_t above, const char *path)
{
	const struct pfs_comparison *comparison = walk->comparison;
	struct pfs_refresh_place *place;

	PFS_TRY(pfs_refresh_place(comparison->refresh, &place, comparison->place->dir->path, path));
	place->ino = ino;
	place->above = above;
	place->met = true;
	return 0;
}

/* All of them, before anything follows from one.  False: something is not as it should be. */
static bool look_at_all(struct closed_walk *walk, const struct closed *closed)
{
	const struct pfs_comparison *comparison = walk->comparison;
	char path[PATH_MAX];

	for (size_t i = 0; i < walk->children.n; i++) {
		const char *name = pfs_source_name(walk->children.names + walk->children.list[i].name);

		(void)snprintf(path, sizeof(path), "%s/%s", closed->path, name);
		comparison->refresh->report->looked_at++;
		if (statx(comparison->fd, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS,
			  &walk->now[i]) < 0 ||
		    !S_ISDIR(walk->now[i].stx_mode))
			return false;
	}
	return true;
}

static int compare_one(struct closed_walk *walk, const struct closed *closed, size_t i)
{
	const struct pfs_comparison *comparison = walk->comparison;
	const struct pfs_follower *child = &walk->children.list[i];
	char path[PATH_MAX];
	bool stays;

	if (device_of(&walk->now[i]) != comparison->dev && !comparison->refresh->options->cross_mounts)
		return 0;
	(void)snprintf(path, sizeof(path), "%s/%s", closed->path, pfs_source_name(walk->children.names + child->name));
	PFS_TRY(may_stay_closed(comparison, &stays, child, &walk->now[i]));
	if (stays && child->attr.st_nlink == 2)
		return 0;
	return stays && strlen(path) < LONG_PATH ? add(walk, child->ino, closed->ino, path)
						 : walk_later(walk, child->ino, closed->ino, path);
}

static int compare_in(struct closed_walk *walk, const struct closed *closed)
{
	struct pfs_refresh *refresh = walk->comparison->refresh;
	int error = pfs_follow_list(refresh->tree, &walk->children, closed->ino, true);

	if (!error)
		error = pfs_grow(&walk->now, &walk->capacity, walk->children.n, sizeof(*walk->now));
	if (error)
		return error == -ESTALE ? 0 : error; /* the node has just been removed */
	if (!look_at_all(walk, closed))
		return walk_later(walk, closed->ino, closed->above, closed->path);
	for (size_t i = 0; i < walk->children.n && !error; i++)
		error = compare_one(walk, closed, i);
	return error;
}

static int compare_all(struct closed_walk *walk)
{
	const struct pfs_refresh_options *options = walk->comparison->refresh->options;
	int error = 0;

	while (walk->todo) {
		struct closed *closed = walk->todo;

		walk->todo = closed->next;
		if (!error && options->gone && options->gone(options->arg))
			error = -ECANCELED;
		if (!error)
			error = compare_in(walk, closed);
		free(closed);
	}
	pfs_followers_finish(&walk->children);
	free(walk->now);
	return error;
}

int pfs_compare_closed(struct pfs_comparison *comparison, bool *closed, const struct pfs_follower *child,
		       const char *name, const struct statx *now)
{
	struct pfs_refresh *refresh = comparison->refresh;
	struct closed_walk walk = {.comparison = comparison};
	int error;

	*closed = false;
	if (!pfs_passes_over_files(comparison) || comparison->place->flat || refresh->otherwise)
		return 0;
	/* what is left out is known of directories that are entered alone */
	if (child->attr.st_nlink != 2 && pfs_leaving_out_given(&refresh->left_out))
		return 0;
	PFS_TRY(may_stay_closed(comparison, closed, child, now));
	if (!*closed || child->attr.st_nlink == 2)
		return 0;
	error = add(&walk, child->ino, comparison->place->ino, name);
	return error ? error : compare_all(&walk);
}
