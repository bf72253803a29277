/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/kept_rates.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "fs/query/relational/measure.h"

struct pfs_kept_rates {
	pthread_mutex_t lock;
	pthread_cond_t ends;  /* is_ending was set */
	struct pfs_rates now; /* this and the next two are protected by lock */
	bool measures;
	bool is_ending;
	unsigned delay_ms;
	bool has_thread; /* this and the next belong to whoever measures and closes */
	pthread_t thread;
};

int pfs_kept_rates_open(struct pfs_kept_rates **out)
{
	struct pfs_kept_rates *kept = calloc(1, sizeof(*kept));
	pthread_condattr_t attr;

	*out = kept;
	if (!kept)
		return -ENOMEM;
	kept->now = pfs_rates_fixed;
	(void)pthread_mutex_init(&kept->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&kept->ends, &attr);
	(void)pthread_condattr_destroy(&attr);
	return 0;
}

void pfs_kept_rates_get(struct pfs_kept_rates *kept, struct pfs_rates *out)
{
	PFS_LOCKED(&kept->lock);

	*out = kept->now;
}

/* ---- the host ---- */

static int is_ending(void *arg)
{
	struct pfs_kept_rates *kept = arg;
	PFS_LOCKED(&kept->lock);

	return kept->is_ending ? -EINTR : 0;
}

static int wait_for_start(struct pfs_kept_rates *kept)
{
	struct timespec start = pfs_clock_in_ms(CLOCK_MONOTONIC, kept->delay_ms);
	PFS_LOCKED(&kept->lock);

	while (!kept->is_ending && !pthread_cond_timedwait(&kept->ends, &kept->lock, &start))
		;
	return kept->is_ending ? -EINTR : 0;
}

static void take_measured(struct pfs_kept_rates *kept, const struct pfs_measured *measured)
{
	PFS_LOCKED(&kept->lock);

	pfs_rates_measured(&kept->now, measured);
}

static void *measure(void *arg)
{
	struct pfs_measured measured;
	int error = wait_for_start(arg);

	if (!error)
		error = pfs_measure_host(&measured, is_ending, arg);
	if (!error)
		take_measured(arg, &measured);
	else
		pfs_debug("the host is not measured: %s", strerror(-error));
	return NULL;
}

static void allow(struct pfs_kept_rates *kept)
{
	PFS_LOCKED(&kept->lock);

	kept->measures = true;
}

void pfs_kept_rates_measure(struct pfs_kept_rates *kept, unsigned delay_ms)
{
	static const struct pfs_thread_kind kind = {"pfs-measure", PFS_THREAD_NICE, 0};

	allow(kept);
	kept->delay_ms = delay_ms;
	kept->has_thread = pfs_thread_start(&kept->thread, &kind, measure, kept) == 0;
}

static void ask_to_end(struct pfs_kept_rates *kept)
{
	PFS_LOCKED(&kept->lock);

	kept->is_ending = true;
	(void)pthread_cond_signal(&kept->ends);
}

void pfs_kept_rates_close(struct pfs_kept_rates *kept)
{
	if (!kept)
		return;
	ask_to_end(kept);
	if (kept->has_thread)
		(void)pthread_join(kept->thread, NULL);
	(void)pthread_cond_destroy(&kept->ends);
	(void)pthread_mutex_destroy(&kept->lock);
	free(kept);
}

/* ---- a device ---- */

static bool is_allowed(struct pfs_kept_rates *kept)
{
	PFS_LOCKED(&kept->lock);

	return kept->measures;
}

static void take_seen(struct pfs_kept_rates *kept, const struct pfs_seen *seen)
{
	PFS_LOCKED(&kept->lock);

	pfs_rates_seen(&kept->now, seen);
}

void pfs_kept_rates_see(struct pfs_kept_rates *kept, struct pfs_operators *operators,
			uint64_t start_ns)
{
	struct pfs_seen seen = {.start_ns = (double)start_ns};
	int error;

	if (!is_allowed(kept))
		return;
	error = pfs_measure_device(&seen, operators);
	if (!error)
		take_seen(kept, &seen);
	else
		pfs_debug("the device is not measured: %s", strerror(-error));
}
