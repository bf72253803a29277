/* SPDX-License-Identifier: MIT */
/* Statements whose answers grow: they are made ahead, rest, wait for a turn and go on. */
#include "fs/mount/query/growing_impl.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "fs/mount/dispatch.h"
#include "fs/query/output/format.h"

#define HURRYING_MAX 8

static const struct pfs_query_error nobody_asks = {.error = -EINTR};

/* ---- resting ---- */

void pfs_growing_wake(struct pfs_growing *growing, enum pfs_growing_state state)
{
	struct pfs_growings *all = growing->all;

	*growing->link = growing->next;
	if (growing->next)
		growing->next->link = growing->link;
	else
		all->last = growing->link;
	all->counts.resting--;
	growing->state = state;
	growing->refs++; /* the reference of the thread that runs it */
}

static void *keep(void *arg);

/* Has the statement rest. The lock is held. */
static void rest(struct pfs_growing *growing)
{
	static const struct pfs_thread_kind kind = {"pfs-rest", PFS_THREAD_NICE, PFS_THREAD_STACK};
	struct pfs_growings *all = growing->all;

	growing->state = PFS_GROWING_RESTS;
	growing->rests_ns = pfs_now_ns();
	growing->next = NULL;
	growing->link = all->last;
	*all->last = growing;
	all->last = &growing->next;
	all->counts.resting++;
	if (!all->has_thread && !all->stops)
		all->has_thread = pfs_thread_start(&all->thread, &kind, keep, all) == 0;
	(void)pthread_cond_broadcast(&all->changed);
}

/* Returns true if enough of the answer has been made for now, and the statement then rests. */
static bool rests(struct pfs_growing *growing)
{
	uint64_t made = pfs_answer_made(growing->answer);
	bool is_enough;
	PFS_LOCKED(&growing->all->lock);

	is_enough = pfs_answer_is_in_file(growing->answer) && !growing->readers.first &&
		    !growing->left && !growing->hurries &&
		    made >= growing->read_to + growing->ahead;
	if (is_enough)
		rest(growing);
	return is_enough;
}

/* ---- making ---- */

static bool is_gone(void *arg)
{
	struct pfs_growing *growing = arg;

	return growing->scope && growing->scope->gone &&
	       growing->scope->gone(growing->scope->gone_arg);
}

static void tell(struct pfs_growing *growing, const struct pfs_query_error *error)
{
	const struct pfs_growing_host *host = &growing->all->host;
	size_t len;
	const char *sql = pfs_making_sql(growing->making, &len);
	char *text PFS_FREE = pfs_query_error_text(error, sql, len);

	host->failed(host->arg, growing->uid, growing->about, text);
}

/* Ends the statement, and tells who waits. */
static void end(struct pfs_growing *growing, int status, const struct pfs_query_error *error)
{
	struct pfs_making *making = growing->making;

	if (status && status != -EINTR)
		tell(growing, error);
	(void)pthread_mutex_lock(&growing->all->lock);
	growing->making = NULL; /* no interrupt reaches it any more */
	(void)pthread_mutex_unlock(&growing->all->lock);
	pfs_making_close(making);
	if (!status)
		pfs_answer_set_growing(growing->answer, false);
	(void)pthread_mutex_lock(&growing->all->lock);
	growing->state = PFS_GROWING_ENDED;
	growing->all->counts.answers--;
	(void)pthread_mutex_unlock(&growing->all->lock);
	pfs_shares_give(&growing->all->shares, growing->uid);
	pfs_growing_answer_readers(growing, true, 0);
}

void pfs_growing_go_on(struct pfs_growing *growing)
{
	struct pfs_query_error error = {.error = 0};
	int status = 1;

	pfs_dispatch_yield();
	(void)atomic_fetch_add(growing->all->host.running, 1);
	(void)pthread_mutex_lock(&growing->all->lock);
	growing->state = PFS_GROWING_RUNS;
	(void)pthread_mutex_unlock(&growing->all->lock);
	if (growing->rests_ns)
		pfs_query_rested(pfs_making_query(growing->making),
				 pfs_now_ns() - growing->rests_ns);
	growing->rests_ns = 0;
	while (status > 0 && !rests(growing)) {
		status = pfs_making_step(growing->making, &error);
		if (status > 0)
			pfs_growing_answer_readers(growing, false, 0);
	}
	(void)atomic_fetch_sub(growing->all->host.running, 1);
	if (status <= 0)
		end(growing, status, &error);
	pfs_growing_unref(growing);
}

/* Called once there is enough of an answer to begin with: lets the answer be read while it grows,
 * if the user's share and the statement allow that. Returns 1 if it may be read from now on; 0 if
 * not yet or, with *may_grow false, not before it is complete; an error ends its statement. */
static int settle(struct pfs_growing *growing, bool *may_grow, struct pfs_query_error *error)
{
	struct pfs_shares *shares = &growing->all->shares;
	int status = -EOPNOTSUPP;

	if (pfs_shares_take(shares, growing->uid)) {
		status = pfs_making_settle(growing->making, error);
		if (status <= 0)
			pfs_shares_give(shares, growing->uid);
	}
	*may_grow = status != -EOPNOTSUPP;
	return *may_grow ? status : 0;
}

/* Makes the answer until there is enough to begin with. Returns 1 if there is; else as
 * pfs_making_step. */
static int begin(struct pfs_growing *growing, bool may_grow, struct pfs_query_error *error)
{
	int status;

	while ((status = pfs_making_step(growing->making, error)) > 0) {
		if (!may_grow || pfs_answer_made(growing->answer) < growing->ahead)
			continue;
		status = settle(growing, &may_grow, error);
		if (status)
			return status;
	}
	return status;
}

static void destroy(struct pfs_growing *growing)
{
	pfs_making_close(growing->making);
	pfs_answer_close(growing->answer);
	free(growing);
}

static int start(struct pfs_growing *growing, const struct pfs_asked *asked,
		 const struct pfs_growing_asker *asker, struct pfs_query_error *error)
{
	struct pfs_query_scope scope = *asker->scope;
	int status;

	scope.gone = is_gone;
	scope.gone_arg = growing;
	PFS_TRY(pfs_making_open(&growing->making, growing->answer, asker->queries, &scope, asked,
				error));
	asker->running(asker->arg, pfs_making_query(growing->making));
	status = begin(growing, growing->all && !asker->wants_all, error);
	asker->running(asker->arg, NULL);
	return status;
}

int pfs_growing_begin(struct pfs_growing **out, struct pfs_growings *growings,
		      struct pfs_answer *answer, const struct pfs_asked *asked,
		      const struct pfs_growing_asker *asker, struct pfs_query_error *error)
{
	struct pfs_growing *growing = calloc(1, sizeof(*growing));
	int status;

	*out = NULL;
	if (!growing)
		return pfs_format_failed(error, -ENOMEM);
	growing->all = growings;
	growing->answer = pfs_answer_ref(answer);
	growing->scope = asker->scope;
	growing->uid = asker->scope->uid;
	growing->sees_all = asker->scope->sees_all;
	growing->about = asker->about;
	growing->ahead = asker->memory;
	growing->refs = 2;
	status = start(growing, asked, asker, error);
	growing->scope = NULL;
	if (status <= 0) {
		destroy(growing);
		return status;
	}
	pfs_answer_set_growing(answer, true);
	pfs_pendings_init(&growing->readers, &growings->lock, &growings->counts.readers);
	PFS_LOCKED(&growings->lock);
	growings->counts.answers++;
	*out = growing;
	return 0;
}

struct pfs_growing *pfs_growing_ref(struct pfs_growing *growing)
{
	PFS_LOCKED(&growing->all->lock);

	growing->refs++;
	return growing;
}

static void drop(struct pfs_growing *growing, unsigned n)
{
	unsigned refs;

	(void)pthread_mutex_lock(&growing->all->lock);
	refs = growing->refs -= n;
	(void)pthread_mutex_unlock(&growing->all->lock);
	if (!refs)
		destroy(growing);
}

void pfs_growing_unref(struct pfs_growing *growing)
{
	if (growing)
		drop(growing, 1);
}

void pfs_growing_leave(struct pfs_growing *growing)
{
	bool ends;

	if (!growing)
		return;
	(void)pthread_mutex_lock(&growing->all->lock);
	growing->left = true;
	ends = growing->state == PFS_GROWING_RESTS;
	if (ends)
		pfs_growing_wake(growing, PFS_GROWING_RUNS);
	else if (growing->state == PFS_GROWING_WAITS)
		ends = pfs_turns_withdraw(growing->all->host.turns, growing->turn);
	if (!ends && growing->making)
		pfs_query_interrupt(pfs_making_query(growing->making));
	(void)pthread_mutex_unlock(&growing->all->lock);
	if (ends)
		end(growing, -EINTR, &nobody_asks);
	/* the reader's reference, and that of the thread that runs it */
	drop(growing, ends ? 2 : 1);
}

void pfs_growing_take_turn(struct pfs_growing *growing, uint64_t number)
{
	const struct pfs_turn turn = {number, growing->uid, growing->sees_all, true};
	const struct pfs_growing_host *host = &growing->all->host;
	int error = host->take_turn(host->arg, &turn, growing);
	bool left;

	if (error >= 0)
		return;
	(void)pthread_mutex_lock(&growing->all->lock);
	left = growing->left;
	if (!left)
		rest(growing);
	(void)pthread_mutex_unlock(&growing->all->lock);
	if (left)
		end(growing, -EINTR, &nobody_asks);
	else
		pfs_growing_answer_readers(growing, true, error);
	pfs_growing_unref(growing);
}

/* ---- those that rest for long ---- */

static void *hurry(void *arg)
{
	struct pfs_growing *growing = arg;
	struct pfs_growings *all = growing->all;

	pfs_growing_go_on(growing);
	PFS_LOCKED(&all->lock);
	all->hurrying--;
	(void)pthread_cond_broadcast(&all->changed);
	return NULL;
}

/* Starts a thread that runs the statement to its end, since one without an end must not keep the
 * others waiting. The lock is held, but released meanwhile. */
static void run_to_end(struct pfs_growings *all, struct pfs_growing *growing)
{
	static const struct pfs_thread_kind kind = {"pfs-hurry", PFS_THREAD_NICE, PFS_THREAD_STACK};
	pthread_t thread;

	growing->hurries = true;
	pfs_growing_wake(growing, PFS_GROWING_RUNS);
	all->hurrying++;
	(void)pthread_mutex_unlock(&all->lock);
	if (pfs_thread_start(&thread, &kind, hurry, growing) == 0)
		(void)pthread_detach(thread);
	else
		(void)hurry(growing);
	(void)pthread_mutex_lock(&all->lock);
}

static void *keep(void *arg)
{
	struct pfs_growings *all = arg;
	const uint64_t rest_ns = (uint64_t)all->host.rest_ms * 1000000;

	(void)pthread_mutex_lock(&all->lock);
	while (!all->stops) {
		struct pfs_growing *growing = all->first;
		uint64_t end = growing ? growing->rests_ns + rest_ns : 0;
		const struct timespec until = {(time_t)(end / 1000000000),
					       (long)(end % 1000000000)};

		if (!growing || all->hurrying == HURRYING_MAX) {
			(void)pthread_cond_wait(&all->changed, &all->lock);
		} else if (end > pfs_now_ns()) {
			(void)pthread_cond_timedwait(&all->changed, &all->lock, &until);
		} else {
			run_to_end(all, growing);
		}
	}
	while (all->hurrying)
		(void)pthread_cond_wait(&all->changed, &all->lock);
	(void)pthread_mutex_unlock(&all->lock);
	return NULL;
}

int pfs_growings_open(struct pfs_growings **out, const struct pfs_growing_host *host)
{
	struct pfs_growings *all = calloc(1, sizeof(*all));
	pthread_condattr_t attr;

	*out = all;
	if (!all)
		return -ENOMEM;
	all->host = *host;
	all->last = &all->first;
	pfs_shares_init(&all->shares, PFS_GROWING_MAX);
	(void)pthread_mutex_init(&all->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&all->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	return 0;
}

void pfs_growings_stop(struct pfs_growings *growings)
{
	if (!growings)
		return;
	(void)pthread_mutex_lock(&growings->lock);
	growings->stops = true; /* so that none is started any more */
	(void)pthread_cond_broadcast(&growings->changed);
	(void)pthread_mutex_unlock(&growings->lock);
	if (growings->has_thread)
		(void)pthread_join(growings->thread, NULL);
}

void pfs_growings_close(struct pfs_growings *growings)
{
	if (!growings)
		return;
	pfs_shares_finish(&growings->shares);
	(void)pthread_cond_destroy(&growings->changed);
	(void)pthread_mutex_destroy(&growings->lock);
	free(growings);
}

void pfs_growings_count(struct pfs_growings *growings, struct pfs_growing_counts *out)
{
	*out = (struct pfs_growing_counts){0};
	if (growings) {
		PFS_LOCKED(&growings->lock);
		*out = growings->counts;
	}
}
