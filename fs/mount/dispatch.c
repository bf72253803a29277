/* SPDX-License-Identifier: MIT */
#include "fs/mount/dispatch.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

#define SPARE_MS      10000 /* a thread without work ends after this time */
#define JOIN_MS	      2 /* how often a waiting thread is interrupted at the stop */
#define TICK_MS	      10 /* a request that takes longer than one to two ticks has its thread replaced */
#define QUIET_TICKS   100     /* after so many ticks without a request the monitor stops ticking */
#define WAKE_SIGNAL   SIGUSR1 /* interrupts a receiver */

enum worker_state {
	RECEIVING,  /* one of the receivers, waiting */
	PROCESSING, /* one of the receivers, with a request */
	REPLACED,   /* finishes its request; another has its place */
};

struct worker {
	struct pfs_dispatch *dispatch;
	struct worker *next; /* in the list of all workers; protected by dispatch->lock */
	struct worker *next_spare;
	pthread_t thread;
	pthread_cond_t chosen; /* a place is free for this spare */
	bool has_place;	       /* protected by dispatch->lock */
	/* what a spare thread is to run; NULL: nothing; protected by dispatch->lock */
	void (*job)(void *arg);
	void *job_arg;
	_Atomic int state;
	/* requests so far, which tells one long request from many short ones */
	_Atomic uint32_t served;
	uint32_t served_at_tick; /* `served` at the monitor's last tick; only the monitor uses it */
	void *request;
	void *scratch;
	size_t scratch_size;
};

struct pfs_dispatch {
	struct pfs_dispatch_options options;
	pthread_mutex_t lock;
	struct worker *workers; /* protected by lock */
	struct worker *spares;	/* protected by lock; last in, first out */
	unsigned n_workers;	/* protected by lock */
	bool stopping;		/* protected by lock */
	_Atomic bool ended;	/* no more requests are received */
	_Atomic bool parked;	/* the monitor sleeps until a request comes */
	bool monitor_runs;
	pthread_t monitor;
	pthread_cond_t unpark; /* the monitor may have something to do */
	int event;
};

static _Thread_local struct worker *self;

static void *worker_main(void *arg);

/* ---- memory ---- */

static void *map_pages(size_t size)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

static void unmap_pages(void *pages, size_t size)
{
	if (pages)
		(void)munmap(pages, size);
}

void *pfs_dispatch_scratch(size_t size)
{
	if (size > self->scratch_size) {
		unmap_pages(self->scratch, self->scratch_size);
		self->scratch = map_pages(size);
		self->scratch_size = self->scratch ? size : 0;
	}
	return self->scratch;
}

static void free_worker(struct worker *worker)
{
	unmap_pages(worker->request, worker->dispatch->options.request_size);
	unmap_pages(worker->scratch, worker->scratch_size);
	(void)pthread_cond_destroy(&worker->chosen);
	free(worker);
}

/* ---- threads ---- */

static int init_clock_cond(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int error = pthread_condattr_init(&attr);

	if (error)
		return -error;
	error = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (!error)
		error = pthread_cond_init(cond, &attr);
	(void)pthread_condattr_destroy(&attr);
	return -error;
}

/* Adds a thread. With a job it is a spare thread that runs the job; without one it has a place
 * among the receivers. The lock is held. */
static int add_worker(struct pfs_dispatch *dispatch, void (*job)(void *arg), void *arg)
{
	static const struct pfs_thread_kind kind = {"pfs-receiver", 0, PFS_THREAD_STACK};
	struct worker *worker = calloc(1, sizeof(*worker));
	int error;

	if (!worker)
		return -ENOMEM;
	worker->dispatch = dispatch;
	worker->has_place = !job;
	worker->job = job;
	worker->job_arg = arg;
	atomic_store(&worker->state, job ? REPLACED : RECEIVING);
	error = init_clock_cond(&worker->chosen);
	if (error) {
		free(worker);
		return error;
	}
	worker->request = map_pages(dispatch->options.request_size);
	error = worker->request ? pfs_thread_start(&worker->thread, &kind, worker_main, worker)
				: -ENOMEM;
	if (error) {
		free_worker(worker);
		return error;
	}
	worker->next = dispatch->workers;
	dispatch->workers = worker;
	dispatch->n_workers++;
	return 0;
}

/* Removes an ending worker from the list and frees it. Once the dispatcher stops, pfs_dispatch_stop
 * does so instead. */
static void leave(struct worker *worker)
{
	struct pfs_dispatch *dispatch = worker->dispatch;
	struct worker **link = &dispatch->workers;

	if (dispatch->stopping)
		return;
	while (*link != worker)
		link = &(*link)->next;
	*link = worker->next;
	dispatch->n_workers--;
	(void)pthread_detach(worker->thread);
	free_worker(worker);
}

/* Takes a spare thread and wakes it for what the caller gives it. Returns NULL if there is none.
 * The lock is held. */
static struct worker *take_spare(struct pfs_dispatch *dispatch)
{
	struct worker *spare = dispatch->spares;

	if (spare) {
		dispatch->spares = spare->next_spare;
		(void)pthread_cond_signal(&spare->chosen);
	}
	return spare;
}

static bool has_room(const struct pfs_dispatch *dispatch)
{
	return dispatch->n_workers < dispatch->options.max_threads;
}

/* Gives a place among the receivers to a spare thread or a new one. Returns false if there can be
 * none. The lock is held. */
static bool fill_place(struct pfs_dispatch *dispatch)
{
	struct worker *spare = take_spare(dispatch);

	if (!spare)
		return has_room(dispatch) && add_worker(dispatch, NULL, NULL) == 0;
	spare->has_place = true;
	return true;
}

int pfs_dispatch_run(struct pfs_dispatch *dispatch, void (*fn)(void *arg), void *arg)
{
	struct worker *spare;
	PFS_LOCKED(&dispatch->lock);

	if (dispatch->stopping)
		return -EAGAIN;
	spare = take_spare(dispatch);
	if (!spare)
		return has_room(dispatch) ? add_worker(dispatch, fn, arg) : -EAGAIN;
	spare->job = fn;
	spare->job_arg = arg;
	return 0;
}

/* Gives the place of a worker that processes a request to another thread. The lock is held. */
static void replace(struct worker *worker)
{
	int expected = PROCESSING;

	if (worker->dispatch->stopping ||
	    !atomic_compare_exchange_strong(&worker->state, &expected, REPLACED))
		return;
	worker->has_place = false;
	if (!fill_place(worker->dispatch)) {
		worker->has_place = true; /* rejoin() waits for the lock before it looks */
		atomic_store(&worker->state, PROCESSING);
	}
}

/* Returns true if another receiver waits for requests. If two threads call this at the same time,
 * at least one of them sees that the other one is processing. The lock is held. */
static bool another_waits(const struct pfs_dispatch *dispatch)
{
	for (struct worker *worker = dispatch->workers; worker; worker = worker->next)
		if (worker->has_place && atomic_load(&worker->state) == RECEIVING)
			return true;
	return false;
}

void pfs_dispatch_yield(void)
{
	struct pfs_dispatch *dispatch = self ? self->dispatch : NULL;

	if (!dispatch || dispatch->options.max_threads <= dispatch->options.receivers ||
	    atomic_load_explicit(&self->state, memory_order_relaxed) != PROCESSING)
		return;
	PFS_LOCKED(&dispatch->lock);
	if (!another_waits(dispatch))
		replace(self);
}

static void wait_as_spare(struct worker *worker)
{
	struct pfs_dispatch *dispatch = worker->dispatch;
	struct worker **link = &dispatch->spares;
	const struct timespec end = pfs_clock_in_ms(CLOCK_MONOTONIC, SPARE_MS);
	int error = 0;

	worker->next_spare = dispatch->spares;
	dispatch->spares = worker;
	while (!worker->has_place && !worker->job && !dispatch->stopping && !error)
		error = pthread_cond_timedwait(&worker->chosen, &dispatch->lock, &end);
	if (worker->has_place || worker->job)
		return;
	while (*link != worker)
		link = &(*link)->next_spare;
	*link = worker->next_spare;
}

/* Runs the worker's job without the lock, which is held before and after. */
static void do_job(struct worker *worker)
{
	void (*job)(void *arg) = PFS_TAKE(worker->job);

	(void)pthread_mutex_unlock(&worker->dispatch->lock);
	job(worker->job_arg);
	(void)pthread_mutex_lock(&worker->dispatch->lock);
}

/* Called after a request during which the worker's place was given away, and at the start of a
 * worker that has a job. Does jobs until the worker has a place again. Returns false if the worker
 * is to end; it may have been freed then. */
static bool rejoin(struct worker *worker)
{
	PFS_LOCKED(&worker->dispatch->lock);
	if (!worker->has_place && !worker->job)
		wait_as_spare(worker);
	while (worker->job) {
		do_job(worker);
		wait_as_spare(worker);
	}
	if (!worker->has_place) {
		leave(worker);
		return false;
	}
	atomic_store(&worker->state, RECEIVING);
	return true;
}

static void unpark(struct pfs_dispatch *dispatch)
{
	PFS_LOCKED(&dispatch->lock);
	atomic_store(&dispatch->parked, false);
	(void)pthread_cond_signal(&dispatch->unpark);
}

/* Processes one request. Returns false if the worker is to end. */
static bool serve(struct worker *worker, size_t len)
{
	struct pfs_dispatch *dispatch = worker->dispatch;
	int expected = PROCESSING;

	atomic_store_explicit(&worker->served, worker->served + 1, memory_order_relaxed);
	/* Sequentially consistent, as in park(): either this sees that the monitor sleeps, or the
	 * monitor sees that there is a request. */
	atomic_store(&worker->state, PROCESSING);
	if (atomic_load(&dispatch->parked))
		unpark(dispatch);
	dispatch->options.process(dispatch->options.arg, worker->request, len);
	return atomic_compare_exchange_strong(&worker->state, &expected, RECEIVING) ||
	       rejoin(worker);
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	struct pfs_dispatch *dispatch = worker->dispatch;
	sigset_t wake;

	self = worker;
	(void)sigemptyset(&wake);
	(void)sigaddset(&wake, WAKE_SIGNAL);
	(void)pthread_sigmask(SIG_UNBLOCK, &wake, NULL);
	if (atomic_load(&worker->state) == REPLACED && !rejoin(worker))
		return NULL;
	while (!atomic_load_explicit(&dispatch->ended, memory_order_relaxed)) {
		ssize_t len = dispatch->options.receive(dispatch->options.arg, worker->request,
							dispatch->options.request_size);

		if (len < 0) {
			atomic_store(&dispatch->ended, true);
			(void)eventfd_write(dispatch->event, 1);
		} else if (len > 0 && !serve(worker, (size_t)len)) {
			break;
		}
	}
	return NULL;
}

/* ---- the monitor: replaces receivers that are stuck ---- */

/* Replaces the workers that have been at one request since the last look. Returns true if anything
 * happened since then. The lock is held. */
static bool look(struct pfs_dispatch *dispatch)
{
	struct worker *worker;
	bool active = false;

	for (worker = dispatch->workers; worker; worker = worker->next) {
		uint32_t served = atomic_load_explicit(&worker->served, memory_order_relaxed);
		int state = atomic_load(&worker->state);

		active |= state == PROCESSING || served != worker->served_at_tick;
		if (state == PROCESSING && served == worker->served_at_tick)
			replace(worker);
		worker->served_at_tick = served;
	}
	return active;
}

/* Sleeps until a request comes. The lock is held. */
static void park(struct pfs_dispatch *dispatch)
{
	atomic_store(&dispatch->parked, true);
	if (look(dispatch))
		atomic_store(&dispatch->parked, false);
	while (atomic_load(&dispatch->parked) && !dispatch->stopping)
		(void)pthread_cond_wait(&dispatch->unpark, &dispatch->lock);
}

static void *monitor_main(void *arg)
{
	struct pfs_dispatch *dispatch = arg;
	unsigned quiet = 0;

	PFS_LOCKED(&dispatch->lock);
	while (!dispatch->stopping) {
		const struct timespec tick = pfs_clock_in_ms(CLOCK_MONOTONIC, TICK_MS);

		(void)pthread_cond_timedwait(&dispatch->unpark, &dispatch->lock, &tick);
		quiet = look(dispatch) ? 0 : quiet + 1;
		if (quiet >= QUIET_TICKS)
			park(dispatch);
	}
	return NULL;
}

/* ---- start and stop ---- */

static void on_wake(int signal PFS_UNUSED)
{
}

static int start_monitor(struct pfs_dispatch *dispatch)
{
	static const struct pfs_thread_kind kind = {"pfs-monitor", 0, 0};
	int error;

	if (dispatch->options.max_threads <= dispatch->options.receivers)
		return 0;
	error = pfs_thread_start(&dispatch->monitor, &kind, monitor_main, dispatch);
	dispatch->monitor_runs = error == 0;
	return error;
}

/* If the process's address space is limited (ulimit -v), the receivers' stacks take at most a
 * quarter of it, since statements and pools need some, too. */
static unsigned affordable(unsigned receivers)
{
	struct rlimit space;

	if (getrlimit(RLIMIT_AS, &space) || space.rlim_cur == RLIM_INFINITY)
		return receivers;
	return (unsigned)PFS_MAX(PFS_MIN(receivers, space.rlim_cur / 4 / PFS_THREAD_STACK), 1);
}

/* Starts the threads of a dispatcher whose members are initialised, with fewer receivers if there
 * cannot be as many. */
static int start_threads(struct pfs_dispatch *dispatch)
{
	/* without SA_RESTART, so that it interrupts */
	struct sigaction action = {.sa_handler = on_wake};
	const unsigned wanted = dispatch->options.receivers, most = affordable(wanted);
	unsigned n = 0;
	int error;

	if (sigaction(WAKE_SIGNAL, &action, NULL) != 0)
		return -errno;
	PFS_LOCKED(&dispatch->lock);
	error = start_monitor(dispatch);
	while (!error && n < most) {
		error = add_worker(dispatch, NULL, NULL);
		n += !error;
	}
	if (!n)
		return error;
	if (n < wanted)
		pfs_warning("%u threads wait for requests instead of %u: there is no room for "
			    "more (ulimit -v, -u)",
			    n, wanted);
	return 0;
}

int pfs_dispatch_start(struct pfs_dispatch **out, const struct pfs_dispatch_options *options)
{
	struct pfs_dispatch *dispatch = calloc(1, sizeof(*dispatch));
	int error;

	*out = NULL;
	if (!dispatch)
		return -ENOMEM;
	dispatch->options = *options;
	dispatch->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	error = dispatch->event < 0 ? -errno : init_clock_cond(&dispatch->unpark);
	if (error) {
		if (dispatch->event >= 0)
			(void)close(dispatch->event);
		free(dispatch);
		return error;
	}
	(void)pthread_mutex_init(&dispatch->lock, NULL);
	error = start_threads(dispatch);
	if (error) {
		pfs_error("cannot start threads: %s", strerror(-error));
		pfs_dispatch_stop(dispatch);
		return error;
	}
	*out = dispatch;
	return 0;
}

int pfs_dispatch_event(const struct pfs_dispatch *dispatch)
{
	return dispatch->event;
}

static void join(struct worker *worker)
{
	for (;;) {
		struct timespec end;

		/* A signal that comes just before the worker waits is lost, so it is sent again and
		 * again. */
		if (atomic_load(&worker->state) == RECEIVING)
			(void)pthread_kill(worker->thread, WAKE_SIGNAL);
		end = pfs_clock_in_ms(CLOCK_REALTIME, JOIN_MS);
		if (pthread_timedjoin_np(worker->thread, NULL, &end) != ETIMEDOUT)
			return;
	}
}

void pfs_dispatch_stop(struct pfs_dispatch *dispatch)
{
	struct worker *worker;

	if (!dispatch)
		return;
	(void)pthread_mutex_lock(&dispatch->lock);
	dispatch->stopping = true; /* from now on nobody joins or leaves the list of workers */
	atomic_store(&dispatch->ended, true);
	(void)pthread_cond_signal(&dispatch->unpark);
	for (worker = dispatch->workers; worker; worker = worker->next)
		(void)pthread_cond_signal(&worker->chosen);
	(void)pthread_mutex_unlock(&dispatch->lock);
	if (dispatch->monitor_runs)
		(void)pthread_join(dispatch->monitor, NULL);
	while (dispatch->workers) {
		worker = dispatch->workers;
		dispatch->workers = worker->next;
		join(worker);
		free_worker(worker);
	}
	(void)pthread_cond_destroy(&dispatch->unpark);
	(void)pthread_mutex_destroy(&dispatch->lock);
	(void)close(dispatch->event);
	free(dispatch);
}
