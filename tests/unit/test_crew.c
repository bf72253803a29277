/* SPDX-License-Identifier: MIT */
/* The threads of an operator stop together when its run pauses, and all end if a pause fails. */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu/relation.h"
#include "gpu/run.h"

#define PIECES 300u

static const unsigned threads[] = {1, 2, 3, 7};

struct piecework {
	pthread_t caller;
	unsigned pauses, fails_at; /* 0: never */
	atomic_uint inside, done;  /* pieces */
	atomic_uint wrong; /* pieces that were worked on in a pause, or after one that failed */
	atomic_bool has_ended;
};

static int poll_always(void *context)
{
	const struct piecework *work = context;

	return pthread_equal(pthread_self(), work->caller) ? PFS_RUN_PAUSE : 0;
}

static int pause_run(void *context)
{
	struct piecework *work = context;

	for (unsigned i = 0; i < 10; i++) {
		(void)sched_yield();
		work->wrong += atomic_load(&work->inside) > 0;
	}
	if (++work->pauses != work->fails_at)
		return 0;
	atomic_store(&work->has_ended, true);
	return -EAGAIN;
}

static int work_piece(void *context, unsigned worker PFS_UNUSED, uint64_t from PFS_UNUSED,
		      uint64_t to PFS_UNUSED)
{
	struct piecework *work = context;

	atomic_fetch_add(&work->inside, 1);
	if (atomic_load(&work->has_ended))
		atomic_fetch_add(&work->wrong, 1);
	for (unsigned i = 0; i < 10; i++)
		(void)sched_yield();
	atomic_fetch_add(&work->done, 1);
	atomic_fetch_sub(&work->inside, 1);
	return 0;
}

static int run(struct piecework *work, unsigned n_threads)
{
	struct pfs_run run = {
		.on = PFS_ENGINE_HOST, .poll = poll_always, .pause = pause_run, .context = work};
	int error;

	work->caller = pthread_self();
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, n_threads), 0);
	error = pfs_operators_for(&run, PIECES, 1, work_piece, work);
	pfs_operators_close(run.operators);
	assert_int_equal(work->wrong, 0);
	return error;
}

static void no_thread_works_during_a_pause(void **state PFS_UNUSED)
{
	for (size_t i = 0; i < PFS_COUNT(threads); i++) {
		struct piecework work = {.pauses = 0};

		assert_int_equal(run(&work, threads[i]), 0);
		assert_int_equal(work.done, PIECES);
		assert_true(work.pauses > 0);
	}
}

static void a_pause_that_fails_ends_all(void **state PFS_UNUSED)
{
	for (size_t i = 0; i < PFS_COUNT(threads); i++) {
		for (unsigned at = 1; at < 10; at++) {
			struct piecework work = {.fails_at = at};
			int error = run(&work, threads[i]);

			/* The caller may get fewer pieces than that. */
			assert_int_equal(error, work.has_ended ? -EAGAIN : 0);
			assert_true(work.has_ended || work.pauses < at);
		}
	}
}

/* ---- a helper's piece that is as long as all ---- */

#define LONG_POLLS_MAX 20000u /* far more than are made before it ends */

struct long_piece {
	pthread_t caller;
	int error; /* of the caller's poll, or 0 */
	bool is_error_of_pause, caller_fails;
	atomic_bool is_joined, has_left; /* a helper's piece has begun, and ended */
	atomic_uint pauses, polls;	 /* of the caller meanwhile; of the helper */
};

static int poll_beside(void *context)
{
	struct long_piece *work = context;

	if (!pthread_equal(pthread_self(), work->caller))
		return 0;
	if (!atomic_load(&work->is_joined))
		return 0;
	return work->error && !work->is_error_of_pause ? work->error : PFS_RUN_PAUSE;
}

static int pause_beside(void *context)
{
	struct long_piece *work = context;

	atomic_fetch_add(&work->pauses, 1);
	return work->error;
}

static const struct pfs_run *long_run;

/* A helper works until the caller has paused three times, or its poll fails; the caller has
 * nothing more to do when the helper begins, or fails itself. */
static int work_long(void *context, unsigned worker PFS_UNUSED, uint64_t from PFS_UNUSED,
		     uint64_t to PFS_UNUSED)
{
	struct long_piece *work = context;
	int error = 0;

	if (pthread_equal(pthread_self(), work->caller)) {
		while (!atomic_load(&work->is_joined))
			(void)sched_yield();
		return work->caller_fails ? -ENOMEM : 0;
	}
	if (atomic_exchange(&work->is_joined, true))
		return 0;
	while (!error && atomic_load(&work->pauses) < 3 &&
	       atomic_fetch_add(&work->polls, 1) < LONG_POLLS_MAX) {
		(void)usleep(100);
		error = pfs_run_check(long_run);
		if (!error)
			error = pfs_run_poll(long_run);
	}
	atomic_store(&work->has_left, true);
	return error;
}

static int run_long(struct long_piece *work)
{
	struct pfs_run run = {
		.on = PFS_ENGINE_HOST, .poll = poll_beside, .pause = pause_beside, .context = work};
	int error;

	work->caller = pthread_self();
	long_run = &run;
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 2), 0);
	error = pfs_operators_for(&run, 2, 1, work_long, work);
	pfs_operators_close(run.operators);
	assert_true(work->has_left);
	assert_in_range(work->polls, 0, LONG_POLLS_MAX - 1);
	return error;
}

static void a_leader_that_waits_pauses(void **state PFS_UNUSED)
{
	struct long_piece work = {.error = 0}, failing = {.caller_fails = true};

	assert_int_equal(run_long(&work), 0);
	assert_in_range(work.pauses, 3, UINT_MAX);
	assert_int_equal(run_long(&failing), -ENOMEM);
	assert_in_range(failing.pauses, 3, UINT_MAX);
}

static void a_leader_that_has_to_end_ends_its_helpers(void **state PFS_UNUSED)
{
	struct long_piece late = {.error = -EINTR},
			  changed = {.error = -EAGAIN, .is_error_of_pause = true};

	assert_int_equal(run_long(&late), -EINTR);
	assert_int_equal(late.pauses, 0);
	assert_int_equal(run_long(&changed), -EAGAIN);
	assert_int_equal(changed.pauses, 1);
}

/* ---- arrays that grow ---- */

#define GROWN ((size_t)1 << 20) /* elements */

struct growth {
	unsigned pauses, fails_at; /* 0: never */
	int64_t bytes;
};

static int poll_growth(void *context PFS_UNUSED)
{
	return PFS_RUN_PAUSE;
}

static int pause_growth(void *context)
{
	struct growth *growth = context;

	return ++growth->pauses == growth->fails_at ? -EAGAIN : 0;
}

static int charge_growth(void *context, int64_t bytes)
{
	struct growth *growth = context;

	growth->bytes += bytes;
	return 0;
}

/* Megabytes of it are copied and cleared in pieces, of which the last but one is the last to be
 * paused after. */
static void an_array_that_grows_lets_others_in(void **state PFS_UNUSED)
{
	struct growth growth = {.pauses = 0};
	const struct pfs_run run = {.poll = poll_growth,
				    .pause = pause_growth,
				    .charge = charge_growth,
				    .context = &growth};
	uint32_t *array = NULL;

	assert_int_equal(pfs_run_grow(&run, &array, 0, 2, sizeof(*array), true), 0);
	assert_int_equal(growth.pauses, 0);
	array[0] = 1;
	array[1] = 2;
	assert_int_equal(pfs_run_grow(&run, &array, 2, GROWN, sizeof(*array), true), 0);
	assert_in_range(growth.pauses, 15, UINT32_MAX);
	assert_true(array[0] == 1 && array[1] == 2 && !array[2] && !array[GROWN - 1]);
	array[GROWN - 1] = 3;
	growth.fails_at = growth.pauses + 9;
	assert_int_equal(pfs_run_grow(&run, &array, GROWN, 2 * GROWN, sizeof(*array), false),
			 -EAGAIN);
	assert_int_equal(growth.bytes, GROWN * sizeof(*array));
	assert_int_equal(pfs_run_grow(&run, &array, GROWN, 2 * GROWN, sizeof(*array), false), 0);
	assert_true(array[1] == 2 && array[GROWN - 1] == 3);
	assert_int_equal((uintptr_t)array % (2u << 20), 0); /* a huge page */
	pfs_run_free(&run, array, 2 * GROWN, sizeof(*array));
	assert_int_equal(growth.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_thread_works_during_a_pause),
		cmocka_unit_test(a_pause_that_fails_ends_all),
		cmocka_unit_test(a_leader_that_waits_pauses),
		cmocka_unit_test(a_leader_that_has_to_end_ends_its_helpers),
		cmocka_unit_test(an_array_that_grows_lets_others_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
