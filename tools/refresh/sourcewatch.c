/* SPDX-License-Identifier: MIT */
#include "tools/refresh/sourcewatch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "fs/content/compared.h"
#include "fs/content/follow.h"
#include "fs/content/original.h"
#include "tools/refresh/sourcewatch_impl.h"

#define USUAL_PAUSE_MS	30000
#define QUIET_MS	50  /* a burst is over when nothing has come for so long, */
#define BURST_MS	400 /* or has lasted for so long */
#define RETRY_MS	500 /* after an error; then twice as long each time */

/* ---- means ---- */

/* error: of the last refresh */
static void say_means(struct pfs_sourcewatch *watch, int error)
{
	size_t n;
	bool limited;
	char text[PFS_FOLLOW_HOW], why[PFS_REFRESH_EXPLAINED];

	(void)pthread_mutex_lock(&watch->lock);
	n = watch->directories.count;
	limited = watch->limited;
	(void)pthread_mutex_unlock(&watch->lock);
	if (error) {
		pfs_refresh_explain(why, sizeof(why), error);
		(void)snprintf(text, sizeof(text), "not followed: %s", why);
	} else if (watch->means == PFS_SOURCEWATCH_REFRESH) {
		(void)snprintf(text, sizeof(text), "refreshed every %g s",
			       watch->options.pause_ms / 1000.0);
	} else if (limited) {
		(void)snprintf(text, sizeof(text),
			       "%s watches %zu directories; everything is refreshed every %g s",
			       pfs_sourcewatch_names[watch->means], n,
			       watch->options.pause_ms / 1000.0);
	} else {
		(void)snprintf(text, sizeof(text), "%s watches %zu directories",
			       pfs_sourcewatch_names[watch->means], n);
	}
	pfs_follow_set_how(watch->tree, text);
}

/* Begins to listen for events of all roots that are there. */
static int open_events(struct pfs_sourcewatch *watch, struct pfs_sourceevents **out)
{
	struct pfs_original_root root;
	int *roots = NULL, error = 0;
	size_t n = 0, capacity = 0;

	for (size_t i = 0; !error && pfs_follow_root(watch->tree, &root, i); i++) {
		if (root.fd < 0)
			continue;
		error = pfs_grow(&roots, &capacity, n + 1, sizeof(*roots));
		if (!error)
			roots[n++] = root.fd;
	}
	if (!error && !n)
		error = -ENODATA;
	if (!error)
		error = pfs_sourceevents_open(out,
					      watch->means == PFS_SOURCEWATCH_FANOTIFY
						      ? PFS_SOURCEEVENTS_FANOTIFY
						      : PFS_SOURCEEVENTS_INOTIFY,
					      roots, n);
	free(roots);
	return error;
}

static int begin_means(struct pfs_sourcewatch *watch)
{
	static const struct pfs_thread_kind kind = {"pfs-source", 0, PFS_THREAD_STACK};
	struct pfs_sourceevents *events;
	int error = open_events(watch, &events);

	if (error)
		return error;
	(void)pthread_mutex_lock(&watch->lock);
	watch->events = events;
	(void)pthread_mutex_unlock(&watch->lock);
	error = pfs_thread_start(&watch->hearer, &kind, pfs_sourcewatch_hear, watch);
	watch->hearing = !error;
	if (error) {
		PFS_LOCKED(&watch->lock);
		watch->events = NULL;
	}
	if (error)
		pfs_sourceevents_close(events);
	return error;
}

static void end_means(struct pfs_sourcewatch *watch)
{
	struct pfs_sourceevents *events = watch->events;
	eventfd_t n;

	if (watch->hearing) {
		(void)eventfd_write(watch->ended, 1);
		(void)pthread_join(watch->hearer, NULL);
		(void)eventfd_read(watch->ended, &n);
		watch->hearing = false;
	}
	(void)pthread_mutex_lock(&watch->lock);
	watch->events = NULL;
	watch->failed = watch->limited = watch->limit_said = false;
	watch->lost = true;
	pfs_sourcewatch_forget_all(watch);
	(void)pthread_mutex_unlock(&watch->lock);
	pfs_sourceevents_close(events);
}

static void next_means(struct pfs_sourcewatch *watch)
{
	PFS_LOCKED(&watch->lock);

	watch->means++;
}

/* The first of the means, from the present one on, that there is. */
static void choose_means(struct pfs_sourcewatch *watch)
{
	while (watch->means != PFS_SOURCEWATCH_REFRESH) {
		int error = begin_means(watch);

		if (!error)
			return;
		if (error != -ENODATA)
			pfs_info("%s: cannot be watched by %s: %s", watch->options.store,
				 pfs_sourcewatch_names[watch->means], strerror(-error));
		next_means(watch);
	}
}

/* Folders that have come back are watched, too. */
static void renew_means(struct pfs_sourcewatch *watch)
{
	end_means(watch);
	(void)pthread_mutex_lock(&watch->lock);
	watch->means = watch->options.best;
	(void)pthread_mutex_unlock(&watch->lock);
	choose_means(watch);
}

static void lower_means(struct pfs_sourcewatch *watch)
{
	pfs_warning("%s: is no longer watched by %s", watch->options.store,
		    pfs_sourcewatch_names[watch->means]);
	end_means(watch);
	next_means(watch);
	choose_means(watch);
}

/* ---- refreshing ---- */

static bool is_stopped(void *arg)
{
	const struct pfs_sourcewatch *watch = arg;

	return atomic_load(&watch->stop);
}

static int take_event(void *arg, enum pfs_refresh_event event, const char *path,
		      const char *from PFS_UNUSED, const char *why)
{
	return event == PFS_REFRESH_UNREAD ? pfs_sourcewatch_note_unread(arg, path, why) : 0;
}

static int refresh(struct pfs_sourcewatch *watch, const uint64_t *inos, size_t n)
{
	const struct pfs_refresh_options options = {
		.store = watch->options.store,
		.inos = inos,
		.n_inos = n,
		.shallow = n != 0,
		.watcher = &watch->watcher,
		.repeated = watch->compared_once,
		.event = take_event,
		.gone = is_stopped,
		.arg = watch,
	};
	struct pfs_refresh_report report;
	char why[PATH_MAX] = "", text[PFS_REFRESH_EXPLAINED];
	int error = pfs_refresh(watch->tree, &options, &report, why, sizeof(why));

	pfs_sourcewatch_take_unread(watch, !n, error);
	if (error && error != -ECANCELED && error != watch->last) {
		pfs_refresh_explain(text, sizeof(text), error);
		pfs_warning("%s: cannot be refreshed: %s%s%s", watch->options.store, why,
			    *why ? ": " : "", text);
	}
	if (error != -ECANCELED)
		watch->last = error;
	watch->compared_once |= !error && !n;
	return error;
}

struct inos {
	uint64_t *list;
	size_t n, capacity;
	int error;
};

static void add_ino(void *arg, uint64_t ino)
{
	struct inos *inos = arg;

	if (!inos->error)
		inos->error =
			pfs_grow(&inos->list, &inos->capacity, inos->n + 1, sizeof(*inos->list));
	if (!inos->error)
		inos->list[inos->n++] = ino;
}

static void set_links_only(struct pfs_sourcewatch *watch, bool links_only)
{
	PFS_LOCKED(&watch->lock);

	watch->links_only = links_only;
}

/* Other names of files that have just been taken over are where no event has said so. */
static int refresh_linked(struct pfs_sourcewatch *watch)
{
	struct stat of[PFS_LINKED_AT_ONCE];
	struct inos inos = {.list = NULL};
	size_t n;
	int error;

	(void)pthread_mutex_lock(&watch->lock);
	n = watch->n_linked;
	memcpy(of, watch->linked, n * sizeof(*of));
	watch->n_linked = 0;
	(void)pthread_mutex_unlock(&watch->lock);
	if (!n)
		return 0;
	pfs_follow_alike(watch->tree, of, n, add_ino, &inos);
	error = inos.error;
	set_links_only(watch, true);
	if (!error && inos.n)
		error = refresh(watch, inos.list, inos.n);
	set_links_only(watch, false);
	free(inos.list);
	return error;
}

static int refresh_stale(struct pfs_sourcewatch *watch)
{
	struct inos inos = {.list = NULL};

	(void)pthread_mutex_lock(&watch->lock);
	pfs_sourcewatch_take_stale(watch, add_ino, &inos);
	(void)pthread_mutex_unlock(&watch->lock);
	for (size_t i = 0; i < watch->unread.n && inos.n; i++)
		if (watch->unread.list[i].ino)
			add_ino(&inos, watch->unread.list[i].ino);
	if (!inos.error && inos.n)
		inos.error = refresh(watch, inos.list, inos.n);
	pfs_sourcewatch_note_asked(watch, inos.list, inos.n);
	free(inos.list);
	return inos.error ? inos.error : refresh_linked(watch);
}

/* Another one that something has been left to comes soon, but takes a fifth of the time at most,
 * and less and less where it leaves that again though nothing has changed. */
static void rest(struct pfs_sourcewatch *watch, uint64_t begun_ms, bool again)
{
	uint64_t ms;

	watch->all_ms = pfs_now_ms();
	ms = again ? 2 * watch->rest_ms : 4 * (watch->all_ms - begun_ms);
	watch->rest_ms = PFS_MIN(PFS_MAX(ms, RETRY_MS), watch->options.pause_ms);
}

static int refresh_all(struct pfs_sourcewatch *watch)
{
	uint64_t begun_ms = pfs_now_ms();
	bool again;
	int error;

	(void)pthread_mutex_lock(&watch->lock);
	again = watch->behind && watch->heard_ns / PFS_NS_PER_MS < watch->all_ms;
	watch->behind = false;
	watch->lost = false;
	watch->n_linked = 0;
	watch->limited = false;
	pfs_sourcewatch_take_stale(watch, NULL, NULL);
	(void)pthread_mutex_unlock(&watch->lock);
	error = refresh(watch, NULL, 0);
	rest(watch, begun_ms, again);
	return error;
}

/* ---- the thread that refreshes ---- */

struct news {
	bool lost, failed, limited, behind;
};

static struct news take_news(struct pfs_sourcewatch *watch)
{
	PFS_LOCKED(&watch->lock);

	return (struct news){watch->lost, watch->failed, watch->limited, watch->behind};
}

static bool repeats(struct pfs_sourcewatch *watch)
{
	return take_news(watch).limited || watch->means == PFS_SOURCEWATCH_REFRESH;
}

/* Looks for each folder at its path: no event says that one was renamed, or lies below a filesystem
 * that is no longer mounted. Returns how many are not there; *back: one is there again, or its
 * filesystem is mounted anew. */
static size_t look_for_folders(struct pfs_sourcewatch *watch, bool *back)
{
	struct pfs_original_root root;
	size_t n = 0;

	(void)pthread_mutex_lock(&watch->lock);
	watch->look = false;
	(void)pthread_mutex_unlock(&watch->lock);
	*back = false;
	if (pfs_refresh_possible(watch->tree))
		return 0;
	for (size_t i = 0; pfs_follow_root(watch->tree, &root, i); i++) {
		struct pfs_original_root before = root;
		int error = pfs_follow_find_root(watch->tree, &root);

		n += error != 0;
		*back |= !error && (before.away || before.dev != root.dev);
	}
	return n;
}

/* Returns how long what is left to a refresh of everything still waits. */
static uint64_t time_left(const struct pfs_sourcewatch *watch)
{
	uint64_t now = pfs_now_ms(), due = watch->all_ms + watch->rest_ms;

	return due > now ? due - now : 0;
}

/* Returns how long it may be until the folders are looked for, and everything is refreshed again if
 * that is needed. */
static uint64_t pause_of(struct pfs_sourcewatch *watch, int error)
{
	unsigned retry_ms = PFS_MIN(watch->retry_ms, watch->options.pause_ms);

	watch->retry_ms = error ? 2 * retry_ms : RETRY_MS;
	if (error)
		return retry_ms;
	return take_news(watch).behind ? time_left(watch) : watch->options.pause_ms;
}

/* False: the pause is over.  After an error news alone do not end it. */
static bool wait_for_news(struct pfs_sourcewatch *watch, int error)
{
	const struct timespec until = pfs_clock_in_ms(CLOCK_MONOTONIC, pause_of(watch, error));
	PFS_LOCKED(&watch->lock);

	while (!(error ? atomic_load(&watch->stop) : pfs_sourcewatch_has_news(watch)))
		if (pthread_cond_timedwait(&watch->wake, &watch->lock, &until) == ETIMEDOUT)
			return false;
	return true;
}

/* Waits until nothing comes for a moment, a burst at most.  Hearing wakes, so this looks again each
 * time. */
static void wait_for_quiet(struct pfs_sourcewatch *watch)
{
	uint64_t begun = pfs_now_ns(), now = begun;
	PFS_LOCKED(&watch->lock);

	while (!atomic_load(&watch->stop) && !watch->failed &&
	       now < begun + BURST_MS * UINT64_C(1000000) &&
	       (now < begun + QUIET_MS * UINT64_C(1000000) ||
		now < watch->heard_ns + QUIET_MS * UINT64_C(1000000))) {
		const struct timespec until = pfs_clock_in_ms(CLOCK_MONOTONIC, QUIET_MS);

		(void)pthread_cond_timedwait(&watch->wake, &watch->lock, &until);
		now = pfs_now_ns();
	}
}

static void *run(void *arg)
{
	struct pfs_sourcewatch *watch = arg;
	bool all = true, back;
	size_t n_away = look_for_folders(watch, &back), n;
	int error;

	choose_means(watch);
	while (!is_stopped(watch)) {
		struct news news;
		bool over;

		error = all ? refresh_all(watch) : refresh_stale(watch);
		pfs_sourcewatch_forget_gone(watch);
		pfs_sourcewatch_set_seen(watch, !error);
		if (error != -ECANCELED)
			say_means(watch, error);
		over = !wait_for_news(watch, error);
		wait_for_quiet(watch);
		n = look_for_folders(watch, &back);
		if (back)
			renew_means(watch);
		all = error || back || n > n_away || (over && repeats(watch));
		n_away = n;
		news = take_news(watch);
		if (news.failed && !is_stopped(watch))
			lower_means(watch);
		all |= news.lost || news.failed || (news.behind && !time_left(watch));
	}
	pfs_sourcewatch_set_seen(watch, false);
	error = pfs_compared_keep(watch->tree);
	if (error)
		pfs_info("%s: when it was compared last is not kept: %s", watch->options.store,
			 strerror(-error));
	end_means(watch);
	pfs_follow_set_how(watch->tree, "");
	return NULL;
}

/* ---- */

int pfs_sourcewatch_open(struct pfs_sourcewatch **out, struct pfs_tree *tree,
			 const struct pfs_sourcewatch_options *options)
{
	struct pfs_sourcewatch *watch = calloc(1, sizeof(*watch));
	pthread_condattr_t attr;

	*out = NULL;
	if (!watch)
		return -ENOMEM;
	watch->tree = tree;
	watch->options = *options;
	watch->options.pause_ms = options->pause_ms ? options->pause_ms : USUAL_PAUSE_MS;
	watch->means = options->best;
	watch->retry_ms = RETRY_MS;
	watch->watcher = pfs_sourcewatch_tells(watch);
	(void)pthread_mutex_init(&watch->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&watch->wake, &attr);
	(void)pthread_condattr_destroy(&attr);
	watch->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (watch->ended >= 0) {
		*out = watch;
		return 0;
	}
	pfs_sourcewatch_close(watch);
	return -EMFILE;
}

int pfs_sourcewatch_start(struct pfs_sourcewatch *watch)
{
	static const struct pfs_thread_kind kind = {"pfs-refresh", 0, PFS_THREAD_STACK};
	int error = pfs_thread_start(&watch->refresher, &kind, run, watch);

	watch->started = !error;
	return error;
}

void pfs_sourcewatch_stop(struct pfs_sourcewatch *watch)
{
	if (!watch || !watch->started)
		return;
	(void)pthread_mutex_lock(&watch->lock);
	atomic_store(&watch->stop, true);
	(void)pthread_cond_signal(&watch->wake);
	(void)pthread_mutex_unlock(&watch->lock);
	(void)pthread_join(watch->refresher, NULL);
	watch->started = false;
}

void pfs_sourcewatch_close(struct pfs_sourcewatch *watch)
{
	if (!watch)
		return;
	if (watch->ended >= 0)
		(void)close(watch->ended);
	(void)pthread_cond_destroy(&watch->wake);
	(void)pthread_mutex_destroy(&watch->lock);
	pfs_sourcewatch_free_unread(&watch->unread);
	free(watch);
}

void pfs_sourcewatch_look(struct pfs_sourcewatch *watch)
{
	if (!watch)
		return;
	(void)pthread_mutex_lock(&watch->lock);
	watch->look = true;
	(void)pthread_cond_signal(&watch->wake);
	(void)pthread_mutex_unlock(&watch->lock);
}

const struct pfs_refresh_watcher *pfs_sourcewatch_watcher(const struct pfs_sourcewatch *watch)
{
	return watch ? &watch->watcher : NULL;
}
