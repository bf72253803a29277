/* SPDX-License-Identifier: MIT */
#include "gpu/host/operators.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/pool.h"
#include "gpu/crew.h"

struct pfs_host_operators {
	struct pfs_operator_backend base;
	struct pfs_pool *pool;
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
	return pfs_pool_threads(host ? host->pool : NULL);
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

/* A helper's piece may take long. Meanwhile others may want to change what it reads, or the run may
 * have to end. */
static void wait_for_helpers(void *context)
{
	struct job *job = context;
	int error = pfs_crew_wait(&job->crew, job->run);

	if (error)
		note_failed(job, job->n / job->grain + 1, error);
}

struct pfs_pool *pfs_host_pool(const struct pfs_host_operators *host)
{
	return host->pool;
}

static int work_alone(const struct pfs_run *run, uint64_t n, uint64_t grain,
		      int (*work)(void *context, unsigned worker, uint64_t from, uint64_t to),
		      void *context)
{
	for (uint64_t from = 0; from < n; from += grain) {
		PFS_TRY(pfs_run_poll(run));
		PFS_TRY(work(context, 0, from, PFS_MIN(from + grain, n)));
	}
	return 0;
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

	if (!host || n <= grain)
		return work_alone(run, n, grain, work, context);
	pfs_crew_open(&job.crew);
	pfs_pool_run_last(host->pool, pfs_host_workers(host), 1, work_as, wait_for_helpers, &job);
	pfs_crew_close(&job.crew);
	failed = atomic_load(&job.failed);
	return failed == NONE ? 0 : -(int)(failed & ((1u << ERROR_BITS) - 1));
}

void pfs_host_operators_close(struct pfs_operator_backend *b)
{
	free(pfs_host_operators_of(b));
}

int pfs_host_operators_create(struct pfs_operator_backend **out,
			      const struct pfs_families *families, struct pfs_pool *pool)
{
	struct pfs_host_operators *host = calloc(1, sizeof(*host));

	if (!host)
		return -ENOMEM;
	host->base.families = families;
	host->pool = pool;
	*out = &host->base;
	return 0;
}
