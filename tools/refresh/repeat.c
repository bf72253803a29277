/* SPDX-License-Identifier: MIT */
#include "tools/refresh/repeat.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "tools/refresh/refresh.h"

struct pfs_repeat {
	struct pfs_tree *tree;
	const char *store;
	unsigned pause_ms;
	int last; /* error, which has been logged */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	_Atomic bool stop;
};

static bool is_stopped(void *arg)
{
	const struct pfs_repeat *repeat = arg;

	return atomic_load(&repeat->stop);
}

static void refresh_once(struct pfs_repeat *repeat)
{
	const struct pfs_refresh_options options = {
		.store = repeat->store,
		.gone = is_stopped,
		.arg = repeat,
	};
	struct pfs_refresh_report report;
	char why[PATH_MAX] = "";
	int error = pfs_refresh(repeat->tree, &options, &report, why, sizeof(why));

	if (error && error != -ECANCELED && error != repeat->last)
		pfs_warning("%s: cannot be refreshed: %s%s%s", repeat->store, why, *why ? ": " : "",
			    strerror(-error));
	if (error != -ECANCELED)
		repeat->last = error;
}

/* False: stop. */
static bool wait_for_next(struct pfs_repeat *repeat)
{
	struct timespec until;
	PFS_LOCKED(&repeat->lock);

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += repeat->pause_ms / 1000;
	until.tv_nsec += (long)(repeat->pause_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	while (!atomic_load(&repeat->stop))
		if (pthread_cond_timedwait(&repeat->ended, &repeat->lock, &until) == ETIMEDOUT)
			break;
	return !atomic_load(&repeat->stop);
}

static void *run(void *arg)
{
	struct pfs_repeat *repeat = arg;

	do
		refresh_once(repeat);
	while (wait_for_next(repeat));
	return NULL;
}

int pfs_repeat_start(struct pfs_repeat **out, struct pfs_tree *tree, const char *store,
		     unsigned pause_ms)
{
	struct pfs_repeat *repeat = calloc(1, sizeof(*repeat));
	pthread_condattr_t attr;
	int error;

	*out = NULL;
	if (!repeat)
		return -ENOMEM;
	repeat->tree = tree;
	repeat->store = store;
	repeat->pause_ms = pause_ms;
	(void)pthread_mutex_init(&repeat->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&repeat->ended, &attr);
	(void)pthread_condattr_destroy(&attr);
	error = pthread_create(&repeat->thread, NULL, run, repeat);
	if (!error) {
		*out = repeat;
		return 0;
	}
	(void)pthread_cond_destroy(&repeat->ended);
	(void)pthread_mutex_destroy(&repeat->lock);
	free(repeat);
	return -error;
}

void pfs_repeat_stop(struct pfs_repeat *repeat)
{
	if (!repeat)
		return;
	(void)pthread_mutex_lock(&repeat->lock);
	atomic_store(&repeat->stop, true);
	(void)pthread_cond_signal(&repeat->ended);
	(void)pthread_mutex_unlock(&repeat->lock);
	(void)pthread_join(repeat->thread, NULL);
	(void)pthread_cond_destroy(&repeat->ended);
	(void)pthread_mutex_destroy(&repeat->lock);
	free(repeat);
}
