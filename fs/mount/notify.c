/* SPDX-License-Identifier: MIT */
#include "fs/mount/notify.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"

struct notice {
	struct notice *next;
	struct timespec due; /* CLOCK_MONOTONIC */
	uint64_t ino;
	bool named;
	char name[];
};

struct pfs_notifier {
	void (*send)(void *arg, uint64_t ino, const char *name);
	void *arg;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t pushed;
	pthread_cond_t idle;
	struct notice *first, **last; /* protected by lock */
	unsigned hurry;		      /* those who wait for all to be sent; protected by lock */
	uint64_t queued, sent;	      /* notices, so far; protected by lock */
	bool stopping;		      /* protected by lock */
};

static struct timespec time_in(long ms)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	time.tv_nsec += ms * 1000000L;
	time.tv_sec += time.tv_nsec / 1000000000L;
	time.tv_nsec %= 1000000000L;
	return time;
}

static bool is_before(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

/* Waits for the first notice to be due and takes it; NULL when the notifier is to stop. */
static struct notice *take(struct pfs_notifier *notifier)
{
	struct notice *first;
	struct timespec due;

	PFS_LOCKED(&notifier->lock);
	while (!notifier->stopping) {
		first = notifier->first;
		if (!first) {
			(void)pthread_cond_wait(&notifier->pushed, &notifier->lock);
		} else if (!notifier->hurry && is_before(time_in(0), first->due)) {
			due = first->due; /* it may be postponed meanwhile */
			(void)pthread_cond_timedwait(&notifier->pushed, &notifier->lock, &due);
		} else {
			notifier->first = first->next;
			if (!notifier->first)
				notifier->last = &notifier->first;
			return first;
		}
	}
	return NULL;
}

static void *notifier_main(void *arg)
{
	struct pfs_notifier *notifier = arg;
	struct notice *notice;

	while ((notice = take(notifier))) {
		notifier->send(notifier->arg, notice->ino, notice->named ? notice->name : NULL);
		free(notice);
		(void)pthread_mutex_lock(&notifier->lock);
		notifier->sent++;
		(void)pthread_cond_broadcast(&notifier->idle);
		(void)pthread_mutex_unlock(&notifier->lock);
	}
	return NULL;
}

void pfs_notifier_flush(struct pfs_notifier *notifier)
{
	uint64_t until;

	PFS_LOCKED(&notifier->lock);
	until = notifier->queued;
	notifier->hurry++;
	(void)pthread_cond_signal(&notifier->pushed);
	while (notifier->sent < until && !notifier->stopping)
		(void)pthread_cond_wait(&notifier->idle, &notifier->lock);
	notifier->hurry--;
}

int pfs_notifier_start(struct pfs_notifier **out,
		       void (*send)(void *arg, uint64_t ino, const char *name), void *arg)
{
	struct pfs_notifier *notifier = calloc(1, sizeof(*notifier));
	pthread_condattr_t clock;
	int error;

	*out = NULL;
	if (!notifier)
		return -ENOMEM;
	notifier->send = send;
	notifier->arg = arg;
	notifier->last = &notifier->first;
	(void)pthread_mutex_init(&notifier->lock, NULL);
	(void)pthread_condattr_init(&clock);
	(void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&notifier->pushed, &clock);
	(void)pthread_cond_init(&notifier->idle, NULL);
	(void)pthread_condattr_destroy(&clock);
	error = -pthread_create(&notifier->thread, NULL, notifier_main, notifier);
	if (error) {
		pfs_error("cannot start a thread: %s", strerror(-error));
		free(notifier);
		return error;
	}
	*out = notifier;
	return 0;
}

/* With the lock. */
static void append(struct pfs_notifier *notifier, struct notice *notice)
{
	notice->due = time_in(PFS_NOTICE_DELAY_MS);
	notice->next = NULL;
	*notifier->last = notice;
	notifier->last = &notice->next;
	(void)pthread_cond_signal(&notifier->pushed);
}

/* With the lock.  True when the inode has a notice waiting, which then waits on. */
static bool postpone(struct pfs_notifier *notifier, uint64_t ino)
{
	struct notice *notice, **link = &notifier->first;

	while (*link && ((*link)->named || (*link)->ino != ino))
		link = &(*link)->next;
	notice = *link;
	if (!notice)
		return false;
	*link = notice->next;
	if (!*link)
		notifier->last = link;
	append(notifier, notice);
	return true;
}

void pfs_notifier_push(struct pfs_notifier *notifier, uint64_t ino, const char *name)
{
	size_t len = name ? strlen(name) + 1 : 0;
	struct notice *notice;

	PFS_LOCKED(&notifier->lock);
	if (!name && postpone(notifier, ino))
		return;
	notice = malloc(sizeof(*notice) + len);
	if (!notice) {
		pfs_warning("no memory to tell the kernel of a change; it may see old data");
		return;
	}
	notice->ino = ino;
	notice->named = name != NULL;
	if (name)
		memcpy(notice->name, name, len);
	notifier->queued++;
	append(notifier, notice);
}

void pfs_notifier_stop(struct pfs_notifier *notifier)
{
	struct notice *notice, *next;

	if (!notifier)
		return;
	(void)pthread_mutex_lock(&notifier->lock);
	notifier->stopping = true;
	(void)pthread_cond_signal(&notifier->pushed);
	(void)pthread_cond_broadcast(&notifier->idle);
	(void)pthread_mutex_unlock(&notifier->lock);
	(void)pthread_join(notifier->thread, NULL);
	for (notice = notifier->first; notice; notice = next) {
		next = notice->next;
		free(notice);
	}
	(void)pthread_cond_destroy(&notifier->pushed);
	(void)pthread_cond_destroy(&notifier->idle);
	(void)pthread_mutex_destroy(&notifier->lock);
	free(notifier);
}
