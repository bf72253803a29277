/* SPDX-License-Identifier: MIT */
/* In a directory that is as it was a quick refresh looks at directories alone, whose names the
 * store has: so it is not opened, but those in it are asked for by their paths from one above it
 * that is open.  The kernel takes half of the time to find them, so that several threads ask it.
 * Nothing is taken over here: whatever differs is walked as usual. */
#include "tools/refresh/refresh_compare.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/pool.h"
#include "base/thread.h"
#include "tools/import/ignore.h"

#define LONG_PATH   (PATH_MAX / 2) /* from there on a directory is opened, so that paths begin anew */
#define AT_ONCE	    128u	   /* directories that threads share */
#define PIECE	    8u		   /* of them, that one has at a time; fewer are not worth a second one */
#define THREADS_MAX 4u
#define NS	    INT64_C(1000000000)

/* A directory that stays closed, with others in it. */
struct closed {
	struct closed *next;
	uint64_t ino, above;
	uint32_t slot; /* the node's; PFS_NO_SLOT: not known */
	char path[];   /* from the place's directory on */
};

/* What the source has in the place of a directory. */
struct original {
	uint64_t ino;
	dev_t dev;
	bool unchanged;
	bool mounted; /* something is mounted there */
};

/* One that is looked at beside others, by any thread. */
struct looked_at {
	struct closed *closed;
	struct pfs_followers children;
	struct original *originals; /* of each, as far as they were looked at */
	size_t n, capacity;
	bool differs; /* not all of them are directories that there still are */
	int error;
};

struct closed_walk {
	struct pfs_comparison *comparison;
	struct closed *todo;
	struct looked_at looked_at[AT_ONCE];
	size_t n;
};

static dev_t device_of(const struct statx *now)
{
	return makedev(now->stx_dev_major, now->stx_dev_minor);
}

static int add(struct closed_walk *walk, uint64_t ino, uint32_t slot, uint64_t above,
	       const char *path)
{
	size_t len = strlen(path);
	struct closed *closed = malloc(sizeof(*closed) + len + 1);

	if (!closed)
		return -ENOMEM;
	*closed = (struct closed){.next = walk->todo, .ino = ino, .above = above, .slot = slot};
	memcpy(closed->path, path, len + 1);
	walk->todo = closed;
	return 0;
}

/* Returns true if nothing in the directory would be looked at but directories, and nobody wants to
 * know that it is read, or what is mounted there. */
static bool may_stay_closed(const struct pfs_refresh *refresh, const struct original *original,
			    uint64_t ino)
{
	const struct pfs_refresh_watcher *watcher = refresh->options->watcher;

	return original->unchanged && !original->mounted &&
	       (!watcher || watcher->knows(watcher->arg, ino));
}

/* It is walked, as pfs_compare_children would have it. */
static int walk_later(const struct closed_walk *walk, uint64_t ino, uint64_t above,
		      const char *path)
{
	const struct pfs_comparison *comparison = walk->comparison;
	struct pfs_refresh_place *place;
	bool first;

	PFS_TRY(pfs_refresh_begin(comparison->refresh, &first, ino));
	if (!first)
		return 0;
	PFS_TRY(pfs_refresh_place(comparison->refresh, &place, comparison->place->dir->path, path));
	place->ino = ino;
	place->above = above;
	place->met = true;
	place->in_mount = comparison->place->in_mount;
	return 0;
}

static bool is_time(int64_t column, struct statx_timestamp time)
{
	int64_t ns;

	return !__builtin_mul_overflow(time.tv_sec, NS, &ns) &&
	       !__builtin_add_overflow(ns, (int64_t)time.tv_nsec, &ns) && column == ns;
}

/* Returns false if there is no such directory, or something is mounted there, or is no more. above:
 * the device of what is not mounted. */
static bool look_at(struct original *out, int fd, const char *path,
		    const struct pfs_subdirectory *child, dev_t above)
{
	struct statx now;

	if (statx(fd, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &now) < 0 ||
	    !S_ISDIR(now.stx_mode))
		return false;
	*out = (struct original){
		.ino = now.stx_ino,
		.dev = device_of(&now),
		.unchanged = child->settled && is_time(child->mtime, now.stx_mtime) &&
			     is_time(child->ctime, now.stx_ctime),
		.mounted = pfs_crawl_is_mounted(&now, above),
	};
	return out->mounted == child->mounted;
}

/* All of them, before anything follows from one. */
static void look_at_children(const struct pfs_comparison *comparison, struct looked_at *at)
{
	const struct closed *closed = at->closed;
	size_t len = strlen(closed->path);
	char path[LONG_PATH + PFS_NAME_MAX + 2];

	memcpy(path, closed->path, len);
	path[len] = '/';
	for (; at->n < at->children.n && !at->differs; at->n++) {
		const struct pfs_subdirectory *child = &at->children.directories[at->n];
		const char *name = pfs_source_name(at->children.names + child->name);

		memcpy(path + len + 1, name, strlen(name) + 1);
		at->differs = !look_at(&at->originals[at->n], comparison->fd, path, child,
				       comparison->dev);
	}
}

static void look_at_some(void *context, size_t from, size_t to)
{
	struct closed_walk *walk = context;

	for (; from < to; from++) {
		struct looked_at *at = &walk->looked_at[from];

		at->n = 0;
		at->differs = false;
		at->error =
			pfs_follow_subdirectories(walk->comparison->refresh->tree, &at->children,
						  at->closed->ino, at->closed->slot);
		if (!at->error)
			at->error = pfs_grow(&at->originals, &at->capacity, at->children.n,
					     sizeof(*at->originals));
		if (!at->error)
			look_at_children(walk->comparison, at);
	}
}

static int compare_one(struct closed_walk *walk, const struct looked_at *at, size_t i)
{
	const struct pfs_comparison *comparison = walk->comparison;
	const struct pfs_subdirectory *child = &at->children.directories[i];
	const struct original *original = &at->originals[i];
	bool stays = may_stay_closed(comparison->refresh, original, child->ino);
	char path[PATH_MAX];

	if (original->mounted && pfs_crawl_look_stays_out(comparison->refresh->look, original->dev))
		return 0;
	if (stays)
		PFS_TRY(pfs_refresh_note_read(comparison->refresh, child->ino, original->dev,
					      original->ino));
	if (stays && !child->has_subdirectories)
		return 0;
	(void)snprintf(path, sizeof(path), "%s/%s", at->closed->path,
		       pfs_source_name(at->children.names + child->name));
	return stays && strlen(path) < LONG_PATH
		       ? add(walk, child->ino, child->slot, at->closed->ino, path)
		       : walk_later(walk, child->ino, at->closed->ino, path);
}

static int compare_in(struct closed_walk *walk, const struct looked_at *at)
{
	const struct closed *closed = at->closed;

	walk->comparison->refresh->report->looked_at += at->n;
	if (at->error)
		return at->error == -ESTALE ? 0 : at->error; /* the node has just been removed */
	if (at->differs)
		return walk_later(walk, closed->ino, closed->above, closed->path);
	for (size_t i = 0; i < at->children.n; i++)
		PFS_TRY(compare_one(walk, at, i));
	return 0;
}

/* As many as wait, up to AT_ONCE. */
static int compare_some(struct closed_walk *walk)
{
	int error = 0;

	for (walk->n = 0; walk->todo && walk->n < AT_ONCE; walk->n++) {
		walk->looked_at[walk->n].closed = walk->todo;
		walk->todo = walk->todo->next;
	}
	pfs_pool_run(walk->comparison->refresh->pool, walk->n, PIECE, look_at_some, walk);
	for (size_t i = 0; i < walk->n; i++) {
		if (!error)
			error = compare_in(walk, &walk->looked_at[i]);
		free(walk->looked_at[i].closed);
	}
	return error;
}

static int compare_all(struct closed_walk *walk)
{
	const struct pfs_refresh_options *options = walk->comparison->refresh->options;
	int error = 0;

	while (walk->todo && !error) {
		bool gone = options->gone && options->gone(options->arg);

		error = gone ? -ECANCELED : compare_some(walk);
	}
	while (walk->todo) {
		struct closed *closed = walk->todo;

		walk->todo = closed->next;
		free(closed);
	}
	for (size_t i = 0; i < AT_ONCE; i++) {
		pfs_followers_finish(&walk->looked_at[i].children);
		free(walk->looked_at[i].originals);
	}
	return error;
}

/* Its threads start when they are wanted. */
static int open_pool(struct pfs_refresh *refresh)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	return refresh->pool ? 0
			     : pfs_pool_open(&refresh->pool,
					     (unsigned)PFS_MIN(PFS_MAX(processors, 1L),
							       (long)THREADS_MAX),
					     PFS_THREAD_NICE);
}

static int compare_below(struct pfs_comparison *comparison, const struct pfs_follower *child,
			 const char *name)
{
	struct closed_walk walk = {.comparison = comparison};

	PFS_TRY(open_pool(comparison->refresh));
	PFS_TRY(add(&walk, child->ino, PFS_NO_SLOT, comparison->place->ino, name));
	return compare_all(&walk);
}

int pfs_compare_closed(struct pfs_comparison *comparison, bool *closed,
		       const struct pfs_follower *child, const char *name, const struct statx *now)
{
	struct pfs_refresh *refresh = comparison->refresh;
	bool mounted = pfs_crawl_is_mounted(now, comparison->dev);
	const struct original original = {now->stx_ino, device_of(now),
					  pfs_is_unchanged(child, now, mounted), mounted};

	*closed = false;
	if (!pfs_passes_over_files(comparison) || comparison->place->flat || refresh->otherwise)
		return 0;
	/* what is left out is known of directories that are entered alone */
	if (child->attr.st_nlink != 2 && pfs_leaving_out_given(&refresh->left_out))
		return 0;
	*closed = may_stay_closed(refresh, &original, child->ino);
	if (!*closed)
		return 0;
	PFS_TRY(pfs_refresh_note_read(refresh, child->ino, original.dev, original.ino));
	return child->attr.st_nlink != 2 ? compare_below(comparison, child, name) : 0;
}
