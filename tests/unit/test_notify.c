/* SPDX-License-Identifier: MIT */
/* The notifier: notices go out in order, one for many changes of an inode, and all that were pushed
 * before a flush have gone out when it returns, whatever others push meanwhile, unless the notifier
 * stops. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fs/mount/notify.h"

#define INOS 50000

static struct pfs_notifier *notifier;
static _Atomic unsigned sent[INOS];
static _Atomic bool first_waits, first_came;
static unsigned sent_at_return; /* of the second inode's, by flush */

/* The first inode's waits until it is told to go on; the second's takes long. */
static void send(void *arg, uint64_t ino, const char *name)
{
	(void)arg;
	(void)name;
	if (ino == 1) {
		first_came = true;
		while (first_waits)
			(void)usleep(1000);
	}
	if (ino == 2)
		(void)usleep(30000);
	sent[ino]++;
}

static int set_up(void **state)
{
	(void)state;
	memset(sent, 0, sizeof(sent));
	first_waits = first_came = false;
	return pfs_notifier_start(&notifier, send, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	pfs_notifier_close(notifier);
	return 0;
}

static void test_flush(void **state)
{
	(void)state;
	pfs_notifier_push(notifier, 3, NULL);
	pfs_notifier_push(notifier, 3, NULL);
	pfs_notifier_push(notifier, 3, "name");
	pfs_notifier_push(notifier, 4, NULL);
	pfs_notifier_flush(notifier);
	assert_int_equal(sent[3], 2); /* one for both changes, and the name */
	assert_int_equal(sent[4], 1);
	pfs_notifier_flush(notifier);
}

/* Each once, however often and in whatever order they change. */
static void test_many(void **state)
{
	(void)state;
	for (uint64_t turn = 0; turn < 3; turn++)
		for (uint64_t i = 0; i < INOS - 10; i++)
			pfs_notifier_push(notifier, 10 + (i * 7919 + turn) % (INOS - 10), NULL);
	pfs_notifier_flush(notifier);
	for (uint64_t i = 10; i < INOS; i++)
		assert_in_range(sent[i], 1, 3);
}

static void *flush(void *arg)
{
	pfs_notifier_flush(notifier);
	sent_at_return = sent[2];
	return arg;
}

/* An inode that changes again while a flush is at work keeps its turn. */
static void test_flush_under_changes(void **state)
{
	pthread_t thread;

	(void)state;
	first_waits = true;
	pfs_notifier_push(notifier, 1, NULL);
	pfs_notifier_push(notifier, 2, NULL);
	assert_int_equal(pthread_create(&thread, NULL, flush, NULL), 0);
	while (!first_came)
		(void)usleep(1000);
	pfs_notifier_push(notifier, 5, NULL);
	pfs_notifier_push(notifier, 2, NULL);
	first_waits = false;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(sent_at_return, 1);
}

static void *let_go(void *arg)
{
	(void)usleep(30000);
	first_waits = false;
	return arg;
}

/* A stop lets go who waits in a flush, and what had not gone out does not. */
static void test_stop_under_flush(void **state)
{
	pthread_t flushing, letting_go;

	(void)state;
	first_waits = true;
	pfs_notifier_push(notifier, 1, NULL);
	pfs_notifier_push(notifier, 3, NULL);
	assert_int_equal(pthread_create(&flushing, NULL, flush, NULL), 0);
	while (!first_came)
		(void)usleep(1000);
	assert_int_equal(pthread_create(&letting_go, NULL, let_go, NULL), 0);
	pfs_notifier_stop(notifier);
	assert_int_equal(pthread_join(letting_go, NULL), 0);
	assert_int_equal(pthread_join(flushing, NULL), 0);
	assert_int_equal(sent[3], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_flush, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_flush_under_changes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stop_under_flush, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
