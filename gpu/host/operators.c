/* SPDX-License-Identifier: MIT */
#include "gpu/host/operators.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/pool.h"
#include "base/thread.h"
#include "gpu/crew.h"

#define WORKERS_MAX 256u
#define PAGE	    4096u	    /* at least */
#define TOUCHED	    (UINT64_C(1) << 20) /* bytes: half a huge page, as memory may begin within one */

struct pfs_host_operators {
	struct pfs_operator_backend base;
	unsigned n_workers;
	pthread_mutex_t lock;  /* held by the operator that has the threads */
	struct pfs_pool *pool; /* NULL until it is first needed; protected by lock */
	bool no_pool;	       /* it could not be opened; protected by lock */
};

struct job {
	struct pfs_crew crew;
	const struct pfs_run *run;
	int (*work)(void *context, unsigned worker, uint64_t from, uint64_t to);
	void *context;
	uint64_t n, grain;
	atomic_uint_fast64_t next;
	/* The first piece that failed, with its error in the low bits, so that the earliest one is
	 * the least; NONE. */
	atomic_uint_fast64_t failed;
};

#define ERROR_BITS 12
#define NONE	   UINT64_MAX

static void note_failed(struct job *job, uint64_t piece, int error)
{
	uint_fast64_t failed = piece << ERROR_BITS | (uint64_t)-error,
		      before = atomic_load(&job->failed);

	while (failed < before && !atomic_compare_exchange_weak(&job->failed, &before, failed))
		;
}

unsigned pfs_host_workers(const struct pfs_host_operators *host)
{
	return host->n_workers;
}

static void work_off(struct job *job, unsigned worker)
{
	while (atomic_load(&job->failed) == NONE) {
		uint64_t from = atomic_fetch_add(&job->next, job->grain);
		int error;

		if (from >= job->n)
			return;
		error = pfs_run_poll(job->run);
		if (!error)
			error = job->work(job->context, worker, from,
					  PFS_MIN(from + job->grain, job->n));
		if (error)
			note_failed(job, from / job->grain, error);
	}
}

static void work_as(void *context, size_t from, size_t to)
{
	struct job *job = context;

	pfs_crew_join(&job->crew);
	for (size_t worker = from; worker < to; worker++)
		work_off(job, (unsigned)worker);
	pfs_crew_leave(&job->crew);
}

struct pfs_pool *pfs_host_take_pool(struct pfs_host_operators *host)
{
	if (host->n_workers == 1 || pthread_mutex_trylock(&host->lock))
		return NULL;
	if (!host->pool && !host->no_pool)
		host->no_pool = pfs_pool_open(&host->pool, host->n_workers, PFS_THREAD_NICE) != 0;
	if (!host->pool)
		(void)pthread_mutex_unlock(&host->lock);
	return host->pool;
}

void pfs_host_return_pool(struct pfs_host_operators *host, struct pfs_pool *pool)
{
	if (pool)
		(void)pthread_mutex_unlock(&host->lock);
}

int pfs_host_for(struct pfs_host_operators *host, const struct pfs_run *run, uint64_t n,
		 uint64_t grain,
		 int (*work)(void *context, unsigned worker, uint64_t from, uint64_t to),
		 void *context)
{
	struct job job = {.run = run,
			  .work = work,
			  .context = context,
			  .n = n,
			  .grain = grain,
			  .failed = NONE};
	uint64_t failed;

	pfs_crew_open(&job.crew);
	if (n > grain) {
		struct pfs_pool *pool = pfs_host_take_pool(host);

		if (pool)
			pfs_pool_run(pool, host->n_workers, 1, work_as, &job);
		pfs_host_return_pool(host, pool);
	}
	work_off(&job, 0); /* what is left, which is everything if others have the threads */
	pfs_crew_close(&job.crew);
	failed = atomic_load(&job.failed);
	return failed == NONE ? 0 : -(int)(failed & ((1u << ERROR_BITS) - 1));
}

static int touch_piece(void *context, unsigned worker PFS_UNUSED, uint64_t from, uint64_t to)
{
	volatile char *memory = context;

	for (uint64_t at = from; at < to; at += PAGE)
		memory[at] = 0;
	return 0;
}

int pfs_host_touch(struct pfs_host_operators *host, const struct pfs_run *run, void *memory, size_t size)
{
	return pfs_host_for(host, run, size, TOUCHED, touch_piece, memory);
}

void pfs_host_operators_close(struct pfs_operator_backend *b)
{
	struct pfs_host_operators *host = pfs_host_operators_of(b);

	pfs_pool_close(host->pool);
	(void)pthread_mutex_destroy(&host->lock);
	free(host);
}

int pfs_host_operators_create(struct pfs_operator_backend **out,
			      const struct pfs_families *families, unsigned n_threads)
{
	struct pfs_host_operators *host = calloc(1, sizeof(*host));
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	if (!host)
		return -ENOMEM;
	host->base.families = families;
	host->n_workers = n_threads ? n_threads : (unsigned)PFS_MAX(online, 1L);
	host->n_workers = PFS_MIN(host->n_workers, WORKERS_MAX);
	(void)pthread_mutex_init(&host->lock, NULL);
	*out = &host->base;
	return 0;
}
