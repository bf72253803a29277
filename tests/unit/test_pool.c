/* SPDX-License-Identifier: MIT */
/* The pool of threads: each piece of a job is worked on once, and run returns after all of them,
 * whatever the number of threads, pieces and jobs, and however late a thread wakes up. */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/pool.h"
#include "base/thread.h"
#include "tests/ref/random.h"

#define N_MAX 5000

struct job {
	size_t n, grain;
	_Atomic uint8_t worked[N_MAX];
	_Atomic uint64_t done;
};

static void work(void *context, size_t from, size_t to)
{
	struct job *job = context;

	if (from >= to || to > job->n ||
	    to - from > job->grain) { /* no assert here: it jumps out of a thread */
		job->done += N_MAX;
		return;
	}
	if (from % 7 == 0)
		(void)sched_yield();
	for (size_t i = from; i < to; i++)
		atomic_fetch_add(&job->worked[i], 1);
	atomic_fetch_add(&job->done, to - from);
}

static unsigned threads_left = UINT_MAX; /* that can be started */
static unsigned started;

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __real_pfs_thread_start(pthread_t *thread, const struct pfs_thread_kind *kind,
			    void *(*main)(void *), void *arg);
int __wrap_pfs_thread_start(pthread_t *thread, const struct pfs_thread_kind *kind,
			    void *(*main)(void *), void *arg);
int __wrap_pfs_thread_start(pthread_t *thread, const struct pfs_thread_kind *kind,
			    void *(*main)(void *), void *arg)
{
	if (!threads_left)
		return -EAGAIN;
	threads_left--;
	started++;
	return __real_pfs_thread_start(thread, kind, main, arg);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static void run_jobs(unsigned n_threads, unsigned n_jobs, uint64_t *seed)
{
	struct pfs_pool *pool;
	static struct job job;

	assert_int_equal(pfs_pool_open(&pool, n_threads, 0), 0);
	assert_int_equal(pfs_pool_threads(pool), n_threads);
	for (unsigned i = 0; i < n_jobs; i++) {
		job.n = random_below(seed, random_below(seed, 4) ? 20 : N_MAX);
		job.grain = 1 + random_below(seed, random_below(seed, 2) ? 3 : N_MAX);
		memset(&job.worked, 0, sizeof(job.worked));
		job.done = 0;
		pfs_pool_run(pool, job.n, job.grain, work, &job);
		assert_int_equal(job.done, job.n);
		for (size_t at = 0; at < job.n; at++)
			assert_int_equal(job.worked[at], 1);
	}
	pfs_pool_close(pool);
}

static void test_jobs(void **state)
{
	uint64_t seed = 20260801;

	(void)state;
	for (unsigned n_threads = 1; n_threads <= 16; n_threads++)
		run_jobs(n_threads, 200, &seed);
}

/* Opened and closed at once: threads that have not begun to wait must not be waited for in vain. */
static void test_life(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned i = 0; i < 300; i++)
		run_jobs(1 + i % 9, i % 3, &seed);
	pfs_pool_close(NULL);
}

static void fewer_threads_do_as_well(void **state)
{
	uint64_t seed = 20261126;

	(void)state;
	for (unsigned left = 0; left < 4; left++) {
		threads_left = left;
		run_jobs(6, 50, &seed);
	}
	threads_left = UINT_MAX;
}

/* Whoever may never have much to do opens a pool all the same. */
static void threads_start_with_the_first_job(void **state)
{
	static struct job job = {.n = 100, .grain = 100};
	struct pfs_pool *pool;

	(void)state;
	started = 0;
	assert_int_equal(pfs_pool_open(&pool, 3, 0), 0);
	pfs_pool_run(pool, job.n, job.grain, work, &job);
	assert_int_equal(started, 0);
	job.grain = 10;
	pfs_pool_run(pool, job.n, job.grain, work, &job);
	pfs_pool_run(pool, job.n, job.grain, work, &job);
	assert_int_equal(started, 2);
	assert_int_equal(job.done, 3 * job.n);
	pfs_pool_close(pool);
}

static void without_a_pool_the_caller_works(void **state)
{
	static struct job job = {.n = 100, .grain = 10};

	(void)state;
	pfs_pool_run(NULL, job.n, job.grain, work, &job);
	assert_int_equal(job.done, job.n);
	assert_int_equal(pfs_pool_threads(NULL), 1);
}

/* ---- several callers ---- */

struct caller {
	struct pfs_pool *pool;
	uint64_t seed;
	bool is_wrong;
	struct job job;
};

static void *share(void *arg)
{
	struct caller *caller = arg;
	struct job *job = &caller->job;

	for (unsigned i = 0; i < 60; i++) {
		job->n = random_below(&caller->seed, N_MAX);
		job->grain = 1 + random_below(&caller->seed, 50);
		memset(&job->worked, 0, sizeof(job->worked));
		job->done = 0;
		pfs_pool_run(caller->pool, job->n, job->grain, work, job);
		caller->is_wrong = caller->is_wrong || job->done != job->n;
		for (size_t at = 0; at < job->n; at++)
			caller->is_wrong = caller->is_wrong || job->worked[at] != 1;
	}
	return NULL;
}

static void callers_share(void **state)
{
	static struct caller callers[5];
	pthread_t threads[PFS_COUNT(callers)];
	struct pfs_pool *pool;

	(void)state;
	assert_int_equal(pfs_pool_open(&pool, 3, 0), 0);
	for (size_t i = 0; i < PFS_COUNT(callers); i++) {
		callers[i].pool = pool;
		callers[i].seed = i;
		assert_int_equal(pthread_create(&threads[i], NULL, share, &callers[i]), 0);
	}
	for (size_t i = 0; i < PFS_COUNT(callers); i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_false(callers[i].is_wrong);
	}
	pfs_pool_close(pool);
}

/* Asks for the threads while another one has them: this one does its work alone. */
static void work_and_share(void *context, size_t from, size_t to)
{
	struct caller *caller = context;
	struct caller inner = {.pool = caller->pool, .job = {.n = 40, .grain = 1}};

	pfs_pool_run(inner.pool, inner.job.n, inner.job.grain, work, &inner.job);
	atomic_fetch_add(&caller->job.done, inner.job.done == 40 ? to - from : 0);
}

static void the_threads_are_taken(void **state)
{
	static struct caller caller;

	(void)state;
	assert_int_equal(pfs_pool_open(&caller.pool, 3, 0), 0);
	pfs_pool_run(caller.pool, 100, 10, work_and_share, &caller);
	assert_int_equal(caller.job.done, 100);
	pfs_pool_close(caller.pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_life),
		cmocka_unit_test(fewer_threads_do_as_well),
		cmocka_unit_test(threads_start_with_the_first_job),
		cmocka_unit_test(without_a_pool_the_caller_works),
		cmocka_unit_test(callers_share),
		cmocka_unit_test(the_threads_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
