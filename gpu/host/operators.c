/* SPDX-License-Identifier: MIT */
#include "gpu/host/operators.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/pool.h"

#define WORKERS_MAX 256u

struct pfs_host_operators {
	struct pfs_operator_backend base;
	unsigned n_workers;
	pthread_mutex_t lock;  /* of who has the threads */
	struct pfs_pool *pool; /* NULL until first wanted; protected by lock */
	bool no_pool;	       /* it could not be had; protected by lock */
};

struct job {
	const struct pfs_run *run;
	int (*work)(void *context, unsigned worker, uint64_t from, uint64_t to);
	void *context;
	uint64_t n, grain;
	atomic_uint_fast64_t next;
	atomic_int error; /* the first */
};

unsigned pfs_host_workers(const struct pfs_host_operators *host)
{
	return host->n_workers;
}

static void work_off(struct job *job, unsigned worker)
{
	while (!atomic_load(&job->error)) {
		uint64_t from = atomic_fetch_add(&job->next, job->grain);
		int error, none = 0;

		if (from >= job->n)
			return;
		error = pfs_run_poll(job->run);
		if (!error)
			error = job->work(job->context, worker, from,
					  PFS_MIN(from + job->grain, job->n));
		if (error)
			(void)atomic_compare_exchange_strong(&job->error, &none, error);
	}
}

static void work_as(void *context, size_t from, size_t to)
{
	for (size_t worker = from; worker < to; worker++)
		work_off(context, (unsigned)worker);
}

int pfs_host_for(struct pfs_host_operators *host, const struct pfs_run *run, uint64_t n,
		 uint64_t grain,
		 int (*work)(void *context, unsigned worker, uint64_t from, uint64_t to),
		 void *context)
{
	struct job job = {.run = run, .work = work, .context = context, .n = n, .grain = grain};

	if (n > grain && host->n_workers > 1 && pthread_mutex_trylock(&host->lock) == 0) {
		if (!host->pool && !host->no_pool)
			host->no_pool = pfs_pool_open(&host->pool, host->n_workers) != 0;
		if (host->pool)
			pfs_pool_run(host->pool, host->n_workers, 1, work_as, &job);
		(void)pthread_mutex_unlock(&host->lock);
	}
	work_off(&job, 0); /* what is left: all of it, if others have the threads */
	return atomic_load(&job.error);
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
