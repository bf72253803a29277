/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include <unistd.h>

#include "fs/mount/query/turns.h"

static struct pfs_turns *turns;

static int take_as(uint64_t number, uid_t uid, bool sees_all)
{
	const struct pfs_turn turn = {number, uid, sees_all, false};

	return pfs_turns_take(turns, &turn, &number, sizeof(number));
}

static int take(uint64_t number, uid_t uid)
{
	return take_as(number, uid, true);
}

/* Ends the user's turn; the number of who is next, 0: nobody. */
static uint64_t end_as(uid_t uid, bool sees_all)
{
	struct pfs_turn turn = {0, uid, sees_all, false};
	uint64_t number = 0;
	size_t len;
	void *request = pfs_turns_end(turns, &turn, &len);

	if (!request)
		return 0;
	assert_int_equal(len, sizeof(number));
	memcpy(&number, request, len);
	assert_int_equal(number, turn.number);
	free(request);
	return number;
}

static uint64_t end(uid_t uid)
{
	return end_as(uid, true);
}

/* The number of the request that another thread was to go on with last. */
static atomic_uint handed;

static void go_on(void *arg PFS_UNUSED, const struct pfs_turn *turn, void *request,
		  size_t len PFS_UNUSED)
{
	atomic_store(&handed, (unsigned)turn->number);
	free(request);
}

static void open_turns(unsigned slots)
{
	assert_int_equal(pfs_turns_open(&turns, slots, go_on, NULL), 0);
}

static void test_order(void **state)
{
	(void)state;
	open_turns(2);
	assert_int_equal(take(1, 5), 1);
	assert_int_equal(take(2, 5), 1);
	assert_int_equal(take(3, 5), 0);
	assert_int_equal(take(4, 5), 0);
	assert_int_equal(pfs_turns_waiting(turns), 2);
	assert_int_equal(end(5), 3);
	assert_int_equal(end(5), 4);
	assert_int_equal(end(5), 0);
	assert_int_equal(end(5), 0);
	assert_int_equal(pfs_turns_waiting(turns), 0);
	assert_int_equal(take(5, 5), 1);
	pfs_turns_close(turns);
}

/* Who comes with one request does not wait behind another's many. */
static void test_fair(void **state)
{
	uint64_t next;

	(void)state;
	open_turns(2);
	for (uint64_t i = 1; i <= 100; i++)
		assert_int_equal(take(i, 5), i <= 2);
	assert_int_equal(take(1000, 6), 0);
	assert_int_equal(take(2000, 7), 0);
	assert_int_equal(end(5), 1000); /* 6 and 7 have none */
	assert_int_equal(end(5), 2000);
	assert_int_equal(take(1001, 6), 0);
	assert_int_equal(end(6), 3); /* 5 was served before 6 */
	assert_int_equal(end(7), 1001);
	next = end(5);
	assert_int_equal(next, 4);
	pfs_turns_close(turns); /* with those who wait */
}

/* Those who do not see all have half of the slots, and others' waiting does not hold up who may. */
static void test_others(void **state)
{
	(void)state;
	open_turns(4);
	assert_int_equal(take_as(1, 1000, false), 1);
	assert_int_equal(take_as(2, 1001, false), 1);
	assert_int_equal(take_as(3, 1002, false), 0);
	assert_int_equal(take(4, 0), 1);
	assert_int_equal(take(5, 0), 1);
	assert_int_equal(take(6, 0), 0);
	assert_int_equal(end(0), 6);
	assert_int_equal(end_as(1000, false), 3);
	assert_int_equal(end(0), 0);
	assert_int_equal(take_as(7, 1000, false), 0);
	assert_int_equal(end(0), 0); /* 7 is still one too many */
	assert_int_equal(end_as(1001, false), 7);
	for (uint64_t i = 0; i < PFS_WAITING_OTHERS; i++)
		assert_int_equal(take_as(10 + i, 1000, false), 0);
	assert_int_equal(take_as(9, 1000, false), -EAGAIN);
	assert_int_equal(take_as(8, 1003, false), 0);
	pfs_turns_close(turns);
}

static void test_withdrawn(void **state)
{
	(void)state;
	open_turns(1);
	assert_int_equal(take(1, 5), 1);
	for (uint64_t i = 2; i <= 6; i++)
		assert_int_equal(take(i, 5), 0);
	assert_true(pfs_turns_withdraw(turns, 3)); /* in the middle, first, last */
	assert_true(pfs_turns_withdraw(turns, 2));
	assert_true(pfs_turns_withdraw(turns, 6));
	assert_false(pfs_turns_withdraw(turns, 1)); /* it has its turn */
	assert_int_equal(pfs_turns_waiting(turns), 2);
	assert_int_equal(take(7, 5), 0);
	assert_int_equal(end(5), 4);
	assert_int_equal(end(5), 5);
	assert_int_equal(end(5), 7);
	assert_int_equal(end(5), 0);

	assert_false(pfs_turns_withdraw(turns, 20)); /* overtakes it */
	assert_int_equal(take(20, 5), -EINTR);
	assert_int_equal(take(21, 5), 1);
	assert_int_equal(take(22, 5), 0);
	assert_true(pfs_turns_withdraw(turns, 22));
	assert_int_equal(take(23, 5), 0);
	assert_int_equal(end(5), 23);
	pfs_turns_close(turns);
	pfs_turns_close(NULL);
}

/* ---- calls ---- */

struct call {
	uid_t uid;
	pthread_t thread;
	atomic_bool has_run, is_let_go, is_gone;
	int result;
};

static void run_call(void *arg)
{
	struct call *call = arg;

	atomic_store(&call->has_run, true);
	while (!atomic_load(&call->is_let_go))
		(void)usleep(1000);
}

static bool is_gone(void *arg)
{
	const struct call *call = arg;

	return atomic_load(&call->is_gone);
}

static void *call_main(void *arg)
{
	struct call *call = arg;
	const struct pfs_turn_call turn = {call->uid, true, run_call, is_gone, call};

	call->result = pfs_turns_call(turns, &turn);
	return NULL;
}

static void begin_call(struct call *call, uid_t uid)
{
	*call = (struct call){.uid = uid, .result = 1};
	assert_int_equal(pthread_create(&call->thread, NULL, call_main, call), 0);
}

static int end_call(struct call *call)
{
	atomic_store(&call->is_let_go, true);
	assert_int_equal(pthread_join(call->thread, NULL), 0);
	return call->result;
}

static void await_run(const struct call *call)
{
	for (unsigned ms = 0; ms < 20000 && !atomic_load(&call->has_run); ms++)
		(void)usleep(1000);
	assert_true(atomic_load(&call->has_run));
}

static void await_waiting(unsigned n)
{
	for (unsigned ms = 0; ms < 20000 && pfs_turns_waiting(turns) != n; ms++)
		(void)usleep(1000);
	assert_int_equal(pfs_turns_waiting(turns), n);
}

/* Calls and requests wait for each other, fairly by user. */
static void test_calls(void **state)
{
	struct call first, second, third;

	(void)state;
	open_turns(1);
	begin_call(&first, 5);
	await_run(&first);
	begin_call(&second, 5);
	await_waiting(1);
	assert_int_equal(take(7, 6), 0);
	assert_false(atomic_load(&second.has_run));
	atomic_store(&handed, 0);
	assert_int_equal(end_call(&first), 0);
	assert_int_equal(atomic_load(&handed), 7); /* 6 had no turn yet */
	assert_false(atomic_load(&second.has_run));
	begin_call(&third, 6);
	await_waiting(2);
	assert_int_equal(end(6), 0); /* a call goes on by itself */
	await_run(&second);
	assert_false(atomic_load(&third.has_run));
	assert_int_equal(end_call(&second), 0);
	await_run(&third);
	assert_int_equal(end_call(&third), 0);
	assert_int_equal(take(8, 5), 1);
	pfs_turns_close(turns);
}

/* One that waits leaves when nobody wants it, and all do when the turns are stopped, which waits
 * for those that run. */
static void test_calls_end(void **state)
{
	struct call runs, leaves, waits;

	(void)state;
	open_turns(1);
	begin_call(&runs, 5);
	await_run(&runs);
	begin_call(&leaves, 6);
	begin_call(&waits, 7);
	await_waiting(2);
	atomic_store(&leaves.is_gone, true);
	assert_int_equal(end_call(&leaves), -EINTR);
	assert_false(atomic_load(&leaves.has_run));
	assert_int_equal(pfs_turns_waiting(turns), 1);
	atomic_store(&runs.is_let_go, true);
	await_run(&waits);
	atomic_store(&waits.is_let_go, true);
	pfs_turns_stop(turns);
	assert_int_equal(end_call(&runs), 0);
	assert_int_equal(end_call(&waits), 0);
	begin_call(&leaves, 5);
	assert_int_equal(end_call(&leaves), -EINTR);
	assert_int_equal(take(1, 5), 1); /* requests do, still */
	begin_call(&leaves, 5);
	assert_int_equal(end_call(&leaves), -EINTR);
	assert_ptr_equal(pfs_turns_ref(turns), turns);
	pfs_turns_close(turns);
	assert_int_equal(end(5), 0);
	pfs_turns_close(turns);
	pfs_turns_stop(NULL);
	assert_null(pfs_turns_ref(NULL));
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
static atomic_uint wakes; /* of calls, but for those that look whether anybody wants them */

int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until)
{
	int error = __real_pthread_cond_timedwait(cond, mutex, until);

	(void)atomic_fetch_add(&wakes, !error);
	return error;
}
/* NOLINTEND(bugprone-reserved-identifier) */

#define CALLS 16u

/* A turn that ends wakes the call that is next, and no other. */
static void test_wakes(void **state)
{
	struct call calls[CALLS];

	(void)state;
	open_turns(1);
	for (unsigned i = 0; i < CALLS; i++) {
		begin_call(&calls[i], 5);
		if (i)
			await_waiting(i);
		else
			await_run(&calls[i]);
	}
	atomic_store(&wakes, 0);
	for (unsigned i = 0; i < CALLS; i++) {
		await_run(&calls[i]);
		assert_int_equal(end_call(&calls[i]), 0);
	}
	assert_in_range(atomic_load(&wakes), 1, 2 * CALLS); /* some may wake for no reason */
	pfs_turns_close(turns);
}

/* ---- many threads ---- */

#define SLOTS	4u
#define REQUESTS 3000u

static atomic_uint running, most, done;

static void run_one(void)
{
	unsigned now = atomic_fetch_add(&running, 1) + 1, seen = atomic_load(&most);

	while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
		;
	for (unsigned i = 0; i < 100; i++)
		(void)atomic_load(&most);
	(void)atomic_fetch_sub(&running, 1);
	(void)atomic_fetch_add(&done, 1);
}

static void *ask_on(void *arg)
{
	uid_t uid = *(const uid_t *)arg;

	for (uint64_t i = 1; i <= REQUESTS; i++) {
		struct pfs_turn turn = {(uint64_t)uid << 32 | i, uid, true, false};
		void *next;
		size_t len;

		if (pfs_turns_take(turns, &turn, "request", 8) <= 0)
			continue;
		run_one();
		while ((next = pfs_turns_end(turns, &turn, &len)) != NULL) {
			run_one();
			free(next);
		}
	}
	return NULL;
}

/* Each request is run once, and never more than there are slots. */
static void test_together(void **state)
{
	pthread_t threads[8];
	uid_t uids[8];

	(void)state;
	open_turns(SLOTS);
	for (unsigned i = 0; i < 8; i++) {
		uids[i] = 1 + i % 3;
		assert_int_equal(pthread_create(&threads[i], NULL, ask_on, &uids[i]), 0);
	}
	for (unsigned i = 0; i < 8; i++)
		(void)pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&done), 8 * REQUESTS);
	assert_true(atomic_load(&most) <= SLOTS);
	assert_int_equal(pfs_turns_waiting(turns), 0);
	pfs_turns_close(turns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	  cmocka_unit_test(test_fair),
		cmocka_unit_test(test_others),	  cmocka_unit_test(test_withdrawn),
		cmocka_unit_test(test_calls),	  cmocka_unit_test(test_calls_end),
		cmocka_unit_test(test_wakes),	  cmocka_unit_test(test_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
