/* SPDX-License-Identifier: MIT */
/* The pool of threads: each piece of a job is worked on once, and run returns after all of them,
 * whatever the number of threads, pieces and jobs, and however late a thread wakes up. */
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
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

	if (from >= to || to > job->n) { /* no assert here: it jumps out of a thread */
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

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __real_pfs_thread_start(pthread_t *thread, const struct pfs_thread_kind *kind, void *(*main)(void *),
			    void *arg);
int __wrap_pfs_thread_start(pthread_t *thread, const struct pfs_thread_kind *kind, void *(*main)(void *),
			    void *arg);
int __wrap_pfs_thread_start(pthread_t *thread, const struct pfs_thread_kind *kind, void *(*main)(void *),
			    void *arg)
{
	if (!threads_left)
		return -EAGAIN;
	threads_left--;
	return __real_pfs_thread_start(thread, kind, main, arg);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static void run_jobs(unsigned n_threads, unsigned n_jobs, uint64_t *seed)
{
	unsigned others = PFS_MIN(n_threads - 1, threads_left);
	struct pfs_pool *pool;
	static struct job job;

	assert_int_equal(pfs_pool_open(&pool, n_threads, 0), 0);
	assert_int_equal(pfs_pool_threads(pool), others + 1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_life),
		cmocka_unit_test(fewer_threads_do_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
