/* SPDX-License-Identifier: MIT */
#include "fs/mount/notify.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

#define BUCKETS 8192

struct notice {
	/* in the order in which they are sent; link is what points here */
	struct notice *next, **link;
	struct notice *next_of_bucket;
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
	struct notice *by_ino[BUCKETS]; /* notices without a name; protected by lock */
	/* how many callers wait in pfs_notifier_flush; protected by lock */
	unsigned hurry;
	/* how many notices were queued, and sent; protected by lock */
	uint64_t queued, sent;
	uint64_t awaited; /* waiting callers are woken when so many are sent; protected by lock */
	bool stopping;		      /* protected by lock */
};

/* ---- the queue: the lock is held ---- */

static struct notice **find(struct pfs_notifier *notifier, uint64_t ino)
{
	struct notice **link = &notifier->by_ino[ino / 2 % BUCKETS];

	while (*link && (*link)->ino != ino)
		link = &(*link)->next_of_bucket;
	return link;
}

static void append(struct pfs_notifier *notifier, struct notice *notice)
{
	notice->due = pfs_clock_in_ms(CLOCK_MONOTONIC, PFS_NOTICE_DELAY_MS);
	notice->next = NULL;
	notice->link = notifier->last;
	*notifier->last = notice;
	notifier->last = &notice->next;
	(void)pthread_cond_signal(&notifier->pushed);
}

static void take_out(struct pfs_notifier *notifier, struct notice *notice)
{
	*notice->link = notice->next;
	if (notice->next)
		notice->next->link = notice->link;
	else
		notifier->last = notice->link;
}

static struct notice *take_first(struct pfs_notifier *notifier)
{
	struct notice *first = notifier->first;

	take_out(notifier, first);
	if (!first->named)
		*find(notifier, first->ino) = first->next_of_bucket;
	return first;
}

/* Returns true if a notice about the inode waits already, and makes that one wait longer. */
static bool postpone(struct pfs_notifier *notifier, uint64_t ino)
{
	struct notice *notice = *find(notifier, ino);

	if (!notice)
		return false;
	if (notifier->hurry) /* it is sent at once, before all later ones, which flush relies on */
		return true;
	take_out(notifier, notice);
	append(notifier, notice);
	return true;
}

/* ---- the thread ---- */

/* Waits until the first notice is due, and takes it. Returns NULL if the notifier is to stop. */
static struct notice *take(struct pfs_notifier *notifier)
{
	struct notice *first;
	struct timespec due;

	PFS_LOCKED(&notifier->lock);
	while (!notifier->stopping) {
		first = notifier->first;
		if (!first) {
			(void)pthread_cond_wait(&notifier->pushed, &notifier->lock);
		} else if (!notifier->hurry &&
			   (int64_t)pfs_now_ns() < pfs_timespec_ns(first->due)) {
			due = first->due; /* a copy, since the notice may be postponed meanwhile */
			(void)pthread_cond_timedwait(&notifier->pushed, &notifier->lock, &due);
		} else {
			return take_first(notifier);
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
		if (++notifier->sent >= notifier->awaited) {
			/* callers that wait for more set it again */
			notifier->awaited = UINT64_MAX;
			(void)pthread_cond_broadcast(&notifier->idle);
		}
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
	while (notifier->sent < until && !notifier->stopping) {
		notifier->awaited = PFS_MIN(notifier->awaited, until);
		(void)pthread_cond_wait(&notifier->idle, &notifier->lock);
	}
	notifier->hurry--;
}

int pfs_notifier_start(struct pfs_notifier **out,
		       void (*send)(void *arg, uint64_t ino, const char *name), void *arg)
{
	static const struct pfs_thread_kind kind = {"pfs-notifier", 0, 0};
	struct pfs_notifier *notifier = calloc(1, sizeof(*notifier));
	pthread_condattr_t clock;
	int error;

	*out = NULL;
	if (!notifier)
		return -ENOMEM;
	notifier->send = send;
	notifier->arg = arg;
	notifier->awaited = UINT64_MAX;
	notifier->last = &notifier->first;
	(void)pthread_mutex_init(&notifier->lock, NULL);
	(void)pthread_condattr_init(&clock);
	(void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&notifier->pushed, &clock);
	(void)pthread_cond_init(&notifier->idle, NULL);
	(void)pthread_condattr_destroy(&clock);
	error = pfs_thread_start(&notifier->thread, &kind, notifier_main, notifier);
	if (error) {
		pfs_error("cannot start a thread: %s", strerror(-error));
		free(notifier);
		return error;
	}
	*out = notifier;
	return 0;
}

void pfs_notifier_push(struct pfs_notifier *notifier, uint64_t ino, const char *name)
{
	size_t len = name ? strlen(name) + 1 : 0;
	struct notice *notice;

	PFS_LOCKED(&notifier->lock);
	if (notifier->stopping || (!name && postpone(notifier, ino)))
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
	notice->next_of_bucket = NULL; /* it is in no bucket yet */
	if (!name)
		*find(notifier, ino) = notice;
	notifier->queued++;
	append(notifier, notice);
}

void pfs_notifier_stop(struct pfs_notifier *notifier)
{
	if (!notifier)
		return;
	(void)pthread_mutex_lock(&notifier->lock);
	notifier->stopping = true;
	(void)pthread_cond_signal(&notifier->pushed);
	(void)pthread_cond_broadcast(&notifier->idle);
	(void)pthread_mutex_unlock(&notifier->lock);
}

void pfs_notifier_close(struct pfs_notifier *notifier)
{
	struct notice *notice, *next;

	if (!notifier)
		return;
	pfs_notifier_stop(notifier);
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
