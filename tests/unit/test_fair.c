/* SPDX-License-Identifier: MIT */
/* The fair lock: who goes in after whom, and that neither side keeps the other out for ever. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/checked.h"
#include "base/fair.h"

#define ENOUGH 200u   /* times that one must get in beside others without rest */
#define MOST   50000u /* times that those go in at the most */

static struct pfs_fair lock;

/* ---- the order ---- */

static char order[8]; /* who went in, as letters */
static _Atomic unsigned n_in;

struct visitor {
	pthread_t thread;
	char letter;
	bool writes;
};

static void *visit(void *arg)
{
	const struct visitor *visitor = arg;

	(visitor->writes ? pfs_fair_write : pfs_fair_read)(&lock);
	order[atomic_fetch_add(&n_in, 1)] = visitor->letter;
	pfs_fair_end(&lock);
	return NULL;
}

static void send(struct visitor *visitor, char letter, bool writes)
{
	*visitor = (struct visitor){.letter = letter, .writes = writes};
	assert_int_equal(pthread_create(&visitor->thread, NULL, visit, visitor), 0);
}

static void await(const struct visitor *visitor)
{
	assert_int_equal(pthread_join(visitor->thread, NULL), 0);
}

/* Until somebody who comes has changed the word. */
static void await_change(const _Atomic uint32_t *word, uint32_t before)
{
	for (unsigned ms = 0; ms < 20000 && atomic_load(word) == before; ms++)
		(void)usleep(1000);
	assert_int_not_equal(atomic_load(word), before);
}

static void begin_order(void)
{
	memset(order, 0, sizeof(order));
	n_in = 0;
}

/* A reader who waits goes in before a writer who has waited for longer than he. */
static void a_reader_comes_before_the_next_writer(void **state PFS_UNUSED)
{
	struct visitor reader, writer;
	uint32_t come;

	begin_order();
	pfs_fair_write(&lock);
	send(&writer, 'w', true);
	await_change(&lock.waiting, 0);
	come = atomic_load(&lock.come);
	send(&reader, 'r', false);
	await_change(&lock.come, come);
	pfs_fair_end(&lock);
	await(&reader);
	await(&writer);
	assert_string_equal(order, "rw");
}

/* A writer who waits goes in before readers who come later than he. */
static void a_writer_comes_before_later_readers(void **state PFS_UNUSED)
{
	struct visitor reader, writer;
	uint32_t come;

	begin_order();
	pfs_fair_read(&lock);
	come = atomic_load(&lock.come);
	send(&writer, 'w', true);
	await_change(&lock.come, come); /* he has marked it */
	come = atomic_load(&lock.come);
	send(&reader, 'r', false);
	await_change(&lock.come, come);
	(void)usleep(20000); /* in which he would go in */
	assert_int_equal(atomic_load(&n_in), 0);
	pfs_fair_end(&lock);
	await(&reader);
	await(&writer);
	assert_string_equal(order, "wr");
}

static void a_writer_who_tries_does_not_wait(void **state PFS_UNUSED)
{
	assert_true(pfs_fair_try_write(&lock));
	assert_false(pfs_fair_try_write(&lock));
	pfs_fair_end(&lock);
	pfs_fair_read(&lock);
	assert_false(pfs_fair_try_write(&lock));
	pfs_fair_read(&lock); /* as another thread */
	pfs_fair_end(&lock);
	assert_false(pfs_fair_try_write(&lock));
	pfs_fair_end(&lock);
	assert_true(pfs_fair_try_write(&lock));
	pfs_fair_end(&lock);
	pfs_fair_read(&lock);
	pfs_fair_end(&lock);
}

/* ---- without rest ---- */

static _Atomic bool stop;
static _Atomic unsigned n_wanted; /* restless ones who wait, or are about to */
static unsigned left, right;	  /* protected by the lock: equal, whenever somebody is in */
static _Atomic unsigned n_wrong;

static void look(bool writes)
{
	n_wrong += left != right;
	if (writes) {
		left++;
		right++;
	}
}

struct restless {
	pthread_t thread;
	bool writes;
	unsigned times; /* that he went in */
};

/* Goes in again and again, and out only when the other one is coming. */
static void *go_on(void *arg)
{
	struct restless *one = arg;

	for (; one->times < MOST && !atomic_load(&stop); one->times++) {
		atomic_fetch_add(&n_wanted, 1);
		(one->writes ? pfs_fair_write : pfs_fair_read)(&lock);
		atomic_fetch_sub(&n_wanted, 1);
		look(one->writes);
		for (unsigned i = 0; i < 100 && !atomic_load(&n_wanted); i++)
			(void)sched_yield();
		(void)usleep(50); /* the other one waits by now */
		pfs_fair_end(&lock);
	}
	return NULL;
}

static void expect_to_get_in(bool others_write)
{
	struct restless others[2];

	stop = false;
	n_wrong = left = right = 0;
	for (unsigned i = 0; i < 2; i++) {
		others[i] = (struct restless){.writes = others_write};
		assert_int_equal(pthread_create(&others[i].thread, NULL, go_on, &others[i]), 0);
	}
	for (unsigned i = 0; i < ENOUGH; i++) {
		(others_write ? pfs_fair_read : pfs_fair_write)(&lock);
		look(!others_write);
		pfs_fair_end(&lock);
		(void)sched_yield();
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(others[i].thread, NULL), 0);
		assert_in_range(others[i].times, 0, MOST - 1);
	}
	assert_int_equal(atomic_load(&n_wrong), 0);
}

static void two_writers_let_a_reader_in(void **state PFS_UNUSED)
{
	expect_to_get_in(true);
}

static void two_readers_let_a_writer_in(void **state PFS_UNUSED)
{
	expect_to_get_in(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_comes_before_the_next_writer),
		cmocka_unit_test(a_writer_comes_before_later_readers),
		cmocka_unit_test(a_writer_who_tries_does_not_wait),
		cmocka_unit_test(two_writers_let_a_reader_in),
		cmocka_unit_test(two_readers_let_a_writer_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
