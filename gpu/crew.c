/* SPDX-License-Identifier: MIT */
#include "gpu/crew.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "gpu/run.h"

#define PAUSING 1
/* Between two polls of a leader that waits. */
#define WAIT_MS 1

/* The crew that this thread leads, and the one that it helps; NULL: none. */
static _Thread_local struct pfs_crew *led, *helped;

void pfs_crew_open(struct pfs_crew *crew)
{
	pthread_condattr_t attr;

	*crew = (struct pfs_crew){.state = 0};
	(void)pthread_mutex_init(&crew->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&crew->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	led = crew;
}

void pfs_crew_close(struct pfs_crew *crew)
{
	led = NULL;
	(void)pthread_cond_destroy(&crew->changed);
	(void)pthread_mutex_destroy(&crew->lock);
}

/* Waits for the end of a pause. The lock is held. */
static void wait_for_end(struct pfs_crew *crew)
{
	while (atomic_load(&crew->state) == PAUSING)
		(void)pthread_cond_wait(&crew->changed, &crew->lock);
}

void pfs_crew_join(struct pfs_crew *crew)
{
	if (led == crew)
		return;
	PFS_LOCKED(&crew->lock);
	wait_for_end(crew);
	crew->helpers++;
	helped = crew;
}

void pfs_crew_leave(struct pfs_crew *crew)
{
	if (led == crew)
		return;
	PFS_LOCKED(&crew->lock);
	crew->helpers--;
	helped = NULL;
	(void)pthread_cond_broadcast(&crew->changed);
}

/* For a helper: waits for the end of a pause, and returns the leader's error. */
static int stop(struct pfs_crew *crew)
{
	if (!atomic_load_explicit(&crew->state, memory_order_relaxed))
		return 0;
	PFS_LOCKED(&crew->lock);
	crew->stopped++;
	(void)pthread_cond_broadcast(&crew->changed);
	wait_for_end(crew);
	crew->stopped--;
	return atomic_load(&crew->state);
}

static void begin_pause(struct pfs_crew *crew)
{
	PFS_LOCKED(&crew->lock);

	atomic_store(&crew->state, PAUSING);
	while (crew->stopped < crew->helpers)
		(void)pthread_cond_wait(&crew->changed, &crew->lock);
}

/* Ends a pause, or with an error all helpers. */
static void go_on(struct pfs_crew *crew, int error)
{
	PFS_LOCKED(&crew->lock);

	atomic_store(&crew->state, error);
	(void)pthread_cond_broadcast(&crew->changed);
}

/* For the leader. A thread that joins meanwhile waits, so that the lock is not needed while
 * run->pause takes other locks. */
static int pause_together(const struct pfs_run *run)
{
	struct pfs_crew *crew = led;
	int error;

	if (crew)
		begin_pause(crew);
	error = run->pause(run->context);
	if (crew)
		go_on(crew, error);
	return error;
}

int pfs_run_check(const struct pfs_run *run)
{
	int error = helped ? PFS_MIN(atomic_load(&helped->state), 0) : 0;

	if (!error && run->poll)
		error = run->poll(run->context);
	return error == PFS_RUN_PAUSE ? 0 : error;
}

int pfs_run_poll(const struct pfs_run *run)
{
	int error;

	if (helped)
		PFS_TRY(stop(helped));
	error = run->poll ? run->poll(run->context) : 0;
	if (error == PFS_RUN_PAUSE)
		return run->pause ? pause_together(run) : 0;
	if (error && led)
		go_on(led, error);
	return error;
}

/* Waits for a helper to leave, but not for long. Returns whether all have. */
static bool wait_a_little(struct pfs_crew *crew)
{
	const struct timespec until = pfs_clock_in_ms(CLOCK_MONOTONIC, WAIT_MS);

	PFS_LOCKED(&crew->lock);
	if (crew->helpers)
		(void)pthread_cond_timedwait(&crew->changed, &crew->lock, &until);
	return !crew->helpers;
}

int pfs_crew_wait(struct pfs_crew *crew, const struct pfs_run *run)
{
	int error = atomic_load(&crew->state);

	while (!wait_a_little(crew)) {
		if (!error)
			error = pfs_run_poll(run);
	}
	return error;
}
