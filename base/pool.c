/* SPDX-License-Identifier: MIT */
#include "base/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/reserve.h"
#include "base/thread.h"

#define THREADS_MAX	    256
#define THREADS_MAX_LIMITED 8 /* where address space is limited: each thread's stack takes 8 MiB of it */

struct pfs_pool {
	pthread_mutex_t taken; /* held by the caller whose job the threads do */
	pthread_mutex_t lock;
	pthread_cond_t start, finish;
	/* protected by lock */
	unsigned long job;
	bool is_open;  /* other threads may still join the job */
	unsigned busy; /* threads at the job, without the caller */
	bool closing;
	/* the job; written with the lock held, while it is not open and no thread is busy */
	void (*work)(void *context, size_t from, size_t to);
	void *context;
	size_t n, grain;
	atomic_size_t next;
	/* the threads besides the caller; the first job starts them; protected by `taken` */
	int niceness;
	bool has_started;
	unsigned wanted, n_threads;
	pthread_t threads[];
};

static void work_off(struct pfs_pool *pool)
{
	for (;;) {
		size_t from = atomic_fetch_add(&pool->next, pool->grain);

		if (from >= pool->n)
			return;
		pool->work(pool->context, from, PFS_MIN(from + pool->grain, pool->n));
	}
}

static void *thread_main(void *argument)
{
	struct pfs_pool *pool = argument;
	unsigned long seen = 0;

	(void)pthread_mutex_lock(&pool->lock);
	for (;;) {
		while (!pool->closing && (!pool->is_open || pool->job == seen))
			(void)pthread_cond_wait(&pool->start, &pool->lock);
		if (pool->closing)
			break;
		seen = pool->job;
		pool->busy++;
		(void)pthread_mutex_unlock(&pool->lock);
		work_off(pool);
		(void)pthread_mutex_lock(&pool->lock);
		if (--pool->busy == 0)
			(void)pthread_cond_signal(&pool->finish);
	}
	(void)pthread_mutex_unlock(&pool->lock);
	return NULL;
}

int pfs_pool_open(struct pfs_pool **out, unsigned n_threads, int niceness)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	const unsigned most = pfs_space_is_limited() ? THREADS_MAX_LIMITED : THREADS_MAX;
	unsigned wanted = n_threads ? n_threads : (unsigned)PFS_MAX(online, 1L);
	struct pfs_pool *pool;

	wanted = PFS_MIN(wanted, most);
	pool = calloc(1, sizeof(*pool) + wanted * sizeof(pool->threads[0]));
	if (!pool)
		return -ENOMEM;
	(void)pthread_mutex_init(&pool->lock, NULL);
	(void)pthread_mutex_init(&pool->taken, NULL);
	(void)pthread_cond_init(&pool->start, NULL);
	(void)pthread_cond_init(&pool->finish, NULL);
	pool->niceness = niceness;
	pool->wanted = wanted - 1;
	*out = pool;
	return 0;
}

void pfs_pool_close(struct pfs_pool *pool)
{
	if (!pool)
		return;
	(void)pthread_mutex_lock(&pool->lock);
	pool->closing = true;
	(void)pthread_cond_broadcast(&pool->start);
	(void)pthread_mutex_unlock(&pool->lock);
	for (unsigned i = 0; i < pool->n_threads; i++)
		(void)pthread_join(pool->threads[i], NULL);
	(void)pthread_cond_destroy(&pool->finish);
	(void)pthread_cond_destroy(&pool->start);
	(void)pthread_mutex_destroy(&pool->lock);
	(void)pthread_mutex_destroy(&pool->taken);
	free(pool);
}

unsigned pfs_pool_threads(const struct pfs_pool *pool)
{
	return pool ? pool->wanted + 1 : 1;
}

static void start_threads(struct pfs_pool *pool)
{
	const struct pfs_thread_kind kind = {pool->niceness ? "pfs-pool" : "pfs-piece",
					     pool->niceness, 0};

	if (pool->has_started)
		return;
	pool->has_started = true;
	while (pool->n_threads < pool->wanted &&
	       !pfs_thread_start(&pool->threads[pool->n_threads], &kind, thread_main, pool))
		pool->n_threads++;
}

static void work_alone(size_t n, size_t grain, void (*work)(void *context, size_t from, size_t to),
		       void *context)
{
	for (size_t from = 0, to; from < n; from = to) {
		to = from + PFS_MIN(grain, n - from);
		work(context, from, to);
	}
}

static void work_together(struct pfs_pool *pool, size_t n, size_t grain,
			  void (*work)(void *context, size_t from, size_t to),
			  void (*last)(void *context), void *context)
{
	(void)pthread_mutex_lock(&pool->lock);
	pool->work = work;
	pool->context = context;
	pool->n = n;
	pool->grain = grain;
	atomic_store(&pool->next, 0);
	pool->is_open = true;
	pool->job++;
	(void)pthread_cond_broadcast(&pool->start);
	(void)pthread_mutex_unlock(&pool->lock);
	work_off(pool);
	if (last)
		last(context);
	(void)pthread_mutex_lock(&pool->lock);
	pool->is_open = false; /* a thread that has not joined by now finds nothing to do */
	while (pool->busy)
		(void)pthread_cond_wait(&pool->finish, &pool->lock);
	(void)pthread_mutex_unlock(&pool->lock);
}

void pfs_pool_run_last(struct pfs_pool *pool, size_t n, size_t grain,
		       void (*work)(void *context, size_t from, size_t to),
		       void (*last)(void *context), void *context)
{
	/* one piece is not worth waking threads */
	bool is_mine =
		pool && pool->wanted && n > grain && pthread_mutex_trylock(&pool->taken) == 0;

	if (!is_mine) {
		work_alone(n, grain, work, context);
		return;
	}
	start_threads(pool);
	if (pool->n_threads)
		work_together(pool, n, grain, work, last, context);
	else
		work_alone(n, grain, work, context);
	(void)pthread_mutex_unlock(&pool->taken);
}

void pfs_pool_run(struct pfs_pool *pool, size_t n, size_t grain,
		  void (*work)(void *context, size_t from, size_t to), void *context)
{
	pfs_pool_run_last(pool, n, grain, work, NULL, context);
}
