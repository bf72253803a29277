/* SPDX-License-Identifier: MIT */
/* Which directories of the source are watched, what nodes they are, and which may have changed. */
#include "tools/refresh/sourcewatch_impl.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "fs/content/compared.h"
#include "fs/content/follow.h"

#define FORGOTTEN_AFTER 4096 /* directories added, before those that are gone are dropped */

const char *const pfs_sourcewatch_names[] = {
	[PFS_SOURCEWATCH_FANOTIFY] = "fanotify",
	[PFS_SOURCEWATCH_INOTIFY] = "inotify",
	[PFS_SOURCEWATCH_REFRESH] = "refreshes",
};

/* ---- directories; with the lock ---- */

static void mark(struct pfs_sourcewatch *watch, struct pfs_source_directory *directory)
{
	if (directory->stale)
		return;
	directory->stale = true;
	directory->next_stale = watch->stale;
	watch->stale = directory;
	watch->n_stale++;
}

static struct pfs_source_directory *find(const struct pfs_sourcewatch *watch, uint64_t number)
{
	return (struct pfs_source_directory *)pfs_byprime_find(&watch->directories, number);
}

static struct pfs_source_directory *find_node(const struct pfs_sourcewatch *watch, uint64_t ino)
{
	struct pfs_byprime *by_ino = pfs_byprime_find(&watch->by_ino, ino);

	return by_ino ? (void *)((char *)by_ino - offsetof(struct pfs_source_directory, by_ino))
		      : NULL;
}

static void set_ino(struct pfs_sourcewatch *watch, struct pfs_source_directory *directory,
		    uint64_t ino)
{
	if (directory->ino)
		pfs_byprime_remove(&watch->by_ino, &directory->by_ino);
	directory->ino = directory->by_ino.prime = ino;
	if (ino)
		pfs_byprime_add(&watch->by_ino, &directory->by_ino);
}

static void forget(struct pfs_sourcewatch *watch, struct pfs_source_directory *directory)
{
	directory->gone = true;
	set_ino(watch, directory, 0);
	if (directory->stale)
		return;
	pfs_byprime_remove(&watch->directories, &directory->by_number);
	free(directory);
}

void pfs_sourcewatch_take_stale(struct pfs_sourcewatch *watch, void (*fn)(void *arg, uint64_t ino),
				void *arg)
{
	struct pfs_source_directory *at = watch->stale, *next;

	watch->stale = NULL;
	watch->n_stale = 0;
	for (; at; at = next) {
		next = at->next_stale;
		at->stale = false;
		at->missed |= !at->ino;
		at->asked = at->ino;
		if (at->gone)
			forget(watch, at);
		else if (at->ino && fn)
			fn(arg, at->ino);
	}
}

void pfs_sourcewatch_note_asked(struct pfs_sourcewatch *watch, const uint64_t *inos, size_t n)
{
	PFS_LOCKED(&watch->lock);

	for (size_t i = 0; i < n; i++) {
		struct pfs_source_directory *directory = find_node(watch, inos[i]);
		struct pfs_follower node;

		if (!directory || !directory->asked)
			continue;
		directory->asked = false;
		watch->behind |= !pfs_follow_node(watch->tree, &node, inos[i]);
	}
}

static void leave_directory(void *arg PFS_UNUSED, struct pfs_byprime *entry PFS_UNUSED)
{
}

static void free_directory(void *arg PFS_UNUSED, struct pfs_byprime *entry)
{
	free(entry);
}

void pfs_sourcewatch_forget_all(struct pfs_sourcewatch *watch)
{
	watch->stale = NULL;
	watch->n_stale = 0;
	pfs_byprime_drain(&watch->by_ino, leave_directory, NULL);
	pfs_byprime_drain(&watch->directories, free_directory, NULL);
	watch->live = 0;
}

/* ---- what refreshes tell ---- */

static size_t limit_of(const struct pfs_sourcewatch *watch)
{
	bool inotify = watch->means == PFS_SOURCEWATCH_INOTIFY;

	if (inotify && watch->options.limit)
		return watch->options.limit;
	return pfs_sourceevents_limit(inotify ? PFS_SOURCEEVENTS_INOTIFY
					      : PFS_SOURCEEVENTS_FANOTIFY);
}

static void limit(struct pfs_sourcewatch *watch, int error)
{
	if (!watch->limit_said)
		pfs_warning(
			"%s: watches %zu directories by %s, and no more (%s): everything is refreshed every "
			"%u s as well",
			watch->options.store, watch->directories.count,
			pfs_sourcewatch_names[watch->means], strerror(-error),
			watch->options.pause_ms / 1000);
	watch->limited = watch->limit_said = true;
}

static struct pfs_source_directory *add(struct pfs_sourcewatch *watch, uint64_t number)
{
	struct pfs_source_directory *directory = find(watch, number);

	if (directory)
		return directory;
	if (watch->directories.count >= limit_of(watch)) {
		pfs_sourceevents_remove(watch->events, number);
		limit(watch, -ENOSPC);
		return NULL;
	}
	directory = calloc(1, sizeof(*directory));
	if (!directory) {
		pfs_sourceevents_remove(watch->events, number);
		limit(watch, -ENOMEM);
		return NULL;
	}
	directory->by_number.prime = number;
	pfs_byprime_add(&watch->directories, &directory->by_number);
	return directory;
}

static uint64_t enter(void *arg, int fd, uint64_t ino, uint64_t *was)
{
	struct pfs_sourcewatch *watch = arg;
	struct pfs_source_directory *directory = NULL;
	uint64_t number = 0;
	int error;
	PFS_LOCKED(&watch->lock);

	if (!watch->events)
		return 0;
	error = pfs_sourceevents_add(watch->events, &number, fd);
	if (error)
		limit(watch, error);
	else
		directory = add(watch, number);
	if (directory) {
		*was = directory->ino == ino ? 0 : directory->ino;
		set_ino(watch, directory, ino);
		directory->gone = directory->missed = directory->asked = false;
	}
	return directory ? number : 0;
}

static bool knows(void *arg, uint64_t ino)
{
	struct pfs_sourcewatch *watch = arg;
	PFS_LOCKED(&watch->lock);

	return !watch->events || pfs_byprime_find(&watch->by_ino, ino);
}

static void made(void *arg, uint64_t number, uint64_t ino)
{
	struct pfs_sourcewatch *watch = arg;
	struct pfs_source_directory *directory;
	PFS_LOCKED(&watch->lock);

	directory = number ? find(watch, number) : NULL;
	if (!directory)
		return;
	set_ino(watch, directory, ino);
	if (directory->missed) {
		directory->missed = false;
		mark(watch, directory);
		(void)pthread_cond_signal(&watch->wake);
	}
}

/* Not twice in a row: while the source changes all the time, what is gone has to go some day. */
static bool restless(void *arg, bool *changed)
{
	struct pfs_sourcewatch *watch = arg;
	PFS_LOCKED(&watch->lock);

	*changed = watch->stale;
	watch->held_back = !watch->held_back && watch->stale;
	return watch->held_back;
}

static void left(void *arg, uint64_t number)
{
	struct pfs_sourcewatch *watch = arg;
	struct pfs_source_directory *directory;
	PFS_LOCKED(&watch->lock);

	watch->behind |= !number;
	directory = number ? find(watch, number) : NULL;
	if (directory)
		mark(watch, directory);
}

static void linked(void *arg, const struct stat *node)
{
	struct pfs_sourcewatch *watch = arg;
	PFS_LOCKED(&watch->lock);

	if (!watch->events || watch->links_only)
		return;
	if (watch->n_linked < PFS_LINKED_AT_ONCE)
		watch->linked[watch->n_linked++] = *node;
	else
		watch->lost = true;
}

/* ---- hearing ---- */

static void hear(void *arg, enum pfs_sourceevent event, uint64_t number)
{
	struct pfs_sourcewatch *watch = arg;
	struct pfs_source_directory *directory;
	PFS_LOCKED(&watch->lock);

	if (event == PFS_SOURCEEVENT_LOST) {
		pfs_compared_set_live(watch->tree, false);
		if (!watch->lost)
			pfs_info("%s: events were lost; everything is refreshed",
				 watch->options.store);
		watch->lost = true;
		return;
	}
	directory = find(watch, number);
	if (!directory)
		return;
	if (event == PFS_SOURCEEVENT_GONE) {
		forget(watch, directory);
		return;
	}
	pfs_compared_set_live(watch->tree, false);
	mark(watch, directory);
	watch->heard_ns = pfs_now_ns();
}

bool pfs_sourcewatch_has_news(const struct pfs_sourcewatch *watch)
{
	return watch->stale || watch->lost || watch->failed || watch->look ||
	       atomic_load(&watch->stop);
}

void pfs_sourcewatch_set_seen(struct pfs_sourcewatch *watch, bool seen)
{
	PFS_LOCKED(&watch->lock);

	pfs_compared_set_live(watch->tree, seen && watch->events && !watch->limited &&
						   !watch->behind &&
						   !pfs_sourcewatch_has_news(watch));
}

void *pfs_sourcewatch_hear(void *arg)
{
	struct pfs_sourcewatch *watch = arg;
	struct pollfd polled[] = {
		{.fd = pfs_sourceevents_fd(watch->events), .events = POLLIN},
		{.fd = watch->ended, .events = POLLIN},
	};
	int error = 0;

	while (!error && !polled[1].revents) {
		if (poll(polled, PFS_COUNT(polled), -1) < 0 && errno != EINTR)
			error = -errno;
		if (!error && polled[0].revents)
			error = pfs_sourceevents_read(watch->events, hear, watch);
		(void)pthread_mutex_lock(&watch->lock);
		watch->failed = error != 0;
		if (error)
			pfs_compared_set_live(watch->tree, false);
		if (pfs_sourcewatch_has_news(watch))
			(void)pthread_cond_signal(&watch->wake);
		(void)pthread_mutex_unlock(&watch->lock);
	}
	return NULL;
}

/* ---- directories that are gone ---- */

static void forget_if_gone(struct pfs_sourcewatch *watch, struct pfs_byprime **at)
{
	while (*at) {
		struct pfs_source_directory *directory = (struct pfs_source_directory *)*at;
		struct pfs_follower node;

		if (directory->stale || !directory->ino ||
		    !pfs_follow_node(watch->tree, &node, directory->ino)) {
			at = &(*at)->next;
			continue;
		}
		pfs_sourceevents_remove(watch->events, directory->by_number.prime);
		set_ino(watch, directory, 0);
		*at = directory->by_number.next;
		watch->directories.count--;
		free(directory);
	}
}

/* Directories come and go; the kernel does not always say that one is no more. */
void pfs_sourcewatch_forget_gone(struct pfs_sourcewatch *watch)
{
	struct pfs_byprime_table *table = &watch->directories;
	PFS_LOCKED(&watch->lock);

	if (!watch->events || table->count < 2 * watch->live + FORGOTTEN_AFTER)
		return;
	for (size_t i = 0; i < table->size; i++)
		forget_if_gone(watch, &table->chains[i]);
	watch->live = table->count;
}

struct pfs_refresh_watcher pfs_sourcewatch_tells(struct pfs_sourcewatch *watch)
{
	return (struct pfs_refresh_watcher){watch, enter, knows, made, restless, left, linked};
}
