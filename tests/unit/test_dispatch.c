/* SPDX-License-Identifier: MIT */
/* Threads that receive requests, over a pipe in place of /dev/fuse; and the notifier. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "fs/mount/dispatch.h"
#include "fs/mount/notify.h"

/* A request is one byte.  'q': quick.  'y': yields and waits.  's': waits without saying so.  'b':
 * uses scratch memory, yielding in between. */
struct server {
	int ends[2]; /* of a socket that keeps messages apart */
	_Atomic unsigned quick, waiting, done;
	_Atomic bool released;
	_Atomic bool bad;
};

static void pause_ms(unsigned ms)
{
	(void)usleep(ms * 1000);
}

/* Up to 10 seconds. */
static bool becomes(const _Atomic unsigned *counter, unsigned wanted)
{
	unsigned i;

	for (i = 0; i < 10000 && atomic_load(counter) != wanted; i++)
		pause_ms(1);
	return atomic_load(counter) == wanted;
}

static ssize_t receive(void *arg, void *buffer, size_t size)
{
	struct server *server = arg;
	ssize_t n = recv(server->ends[0], buffer, size, 0);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return n == 0 ? -ENODEV : n;
}

static void use_scratch(struct server *server)
{
	char *data = pfs_dispatch_scratch(100000);
	size_t i;

	memset(data, (int)(uintptr_t)&data, 100000);
	pfs_dispatch_yield();
	pause_ms(1);
	for (i = 0; i < 100000; i++)
		if (data[i] != (char)(uintptr_t)&data)
			atomic_store(&server->bad, true);
}

static void process(void *arg, void *buffer, size_t len)
{
	struct server *server = arg;
	char kind = *(char *)buffer;

	if (len != 1)
		atomic_store(&server->bad, true);
	if (kind == 'q') {
		atomic_fetch_add(&server->quick, 1);
		return;
	}
	if (kind == 'b') {
		use_scratch(server);
		atomic_fetch_add(&server->done, 1);
		return;
	}
	if (kind == 'y') {
		pfs_dispatch_yield();
		pfs_dispatch_yield();
	}
	atomic_fetch_add(&server->waiting, 1);
	while (!atomic_load(&server->released))
		pause_ms(1);
	if (*(char *)buffer != kind) /* the request stays this thread's */
		atomic_store(&server->bad, true);
	atomic_fetch_add(&server->done, 1);
}

static void request(struct server *server, const char *kinds)
{
	for (; *kinds; kinds++)
		assert_int_equal(send(server->ends[1], kinds, 1, 0), 1);
}

static struct pfs_dispatch *start(struct server *server, unsigned receivers, unsigned max_threads)
{
	const struct pfs_dispatch_options options = {
		.receivers = receivers,
		.max_threads = max_threads,
		.request_size = 4096,
		.arg = server,
		.receive = receive,
		.process = process,
	};
	struct pfs_dispatch *dispatch;

	memset(server, 0, sizeof(*server));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, server->ends), 0);
	assert_int_equal(pfs_dispatch_start(&dispatch, &options), 0);
	return dispatch;
}

static void finish(struct server *server, struct pfs_dispatch *dispatch)
{
	pfs_dispatch_stop(dispatch);
	assert_false(server->bad);
	(void)close(server->ends[0]);
	(void)close(server->ends[1]);
}

static bool has_ended(const struct pfs_dispatch *dispatch, int timeout_ms)
{
	struct pollfd event = {.fd = pfs_dispatch_event(dispatch), .events = POLLIN};

	return poll(&event, 1, timeout_ms) == 1;
}

static void serves_many(void **state PFS_UNUSED)
{
	struct server server;
	struct pfs_dispatch *dispatch = start(&server, 2, 10);
	unsigned i;

	for (i = 0; i < 1000; i++)
		request(&server, "q");
	assert_true(becomes(&server.quick, 1000));
	assert_false(has_ended(dispatch, 0));
	finish(&server, dispatch);
}

static void who_yields_is_replaced(void **state PFS_UNUSED)
{
	struct server server;
	struct pfs_dispatch *dispatch = start(&server, 1, 40);

	request(&server, "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyq");
	assert_true(becomes(&server.quick, 1));
	assert_true(becomes(&server.waiting, 30));
	atomic_store(&server.released, true);
	assert_true(becomes(&server.done, 30));
	request(&server, "yyyyyq");
	assert_true(becomes(&server.quick, 2));
	finish(&server, dispatch);
	assert_int_equal(server.done, 35);
}

struct job {
	struct server *server;
	_Atomic unsigned done;
};

/* A job has memory of its thread's, and may take long. */
static void do_job(void *arg)
{
	struct job *job = arg;

	use_scratch(job->server);
	atomic_fetch_add(&job->server->waiting, 1);
	while (!atomic_load(&job->server->released))
		pause_ms(1);
	atomic_fetch_add(&job->done, 1);
}

static void jobs_are_done_by_spare_threads(void **state PFS_UNUSED)
{
	struct server server;
	struct pfs_dispatch *dispatch = start(&server, 1, 4);
	struct job job = {.server = &server};

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pfs_dispatch_run(dispatch, do_job, &job), 0);
	assert_true(becomes(&server.waiting, 3));
	assert_int_equal(pfs_dispatch_run(dispatch, do_job, &job),
			 -EAGAIN); /* that would be a fifth thread */
	request(&server, "q");
	assert_true(becomes(&server.quick, 1));
	atomic_store(&server.released, true);
	assert_true(becomes(&job.done, 3));
	for (unsigned i = 0; i < 100; i++) { /* by threads that are there */
		int error;

		while ((error = pfs_dispatch_run(dispatch, do_job, &job)) == -EAGAIN)
			pause_ms(1);
		assert_int_equal(error, 0);
	}
	assert_true(becomes(&job.done, 103));
	request(&server, "yyyq");
	assert_true(becomes(&server.quick, 2));
	finish(&server, dispatch);
	assert_int_equal(server.done, 3);
}

static unsigned count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned n = 0;

	assert_non_null(tasks);
	while (readdir(tasks))
		n++;
	(void)closedir(tasks);
	return n;
}

/* One that is kept from running for long is replaced all the same: so not in each of many tries. */
static void nobody_is_replaced_while_another_waits(void **state PFS_UNUSED)
{
	unsigned more = 0, tries = 0;

	do {
		struct server server;
		struct pfs_dispatch *dispatch = start(&server, 2, 10);
		unsigned before = count_threads();

		atomic_store(&server.released, true);
		request(&server, "y");
		assert_true(becomes(&server.done, 1));
		more = count_threads() - before;
		finish(&server, dispatch);
	} while (more && ++tries < 50);
	assert_int_equal(more, 0);
}

static void who_is_stuck_is_replaced(void **state PFS_UNUSED)
{
	struct server server;
	struct pfs_dispatch *dispatch = start(&server, 2, 10);

	request(&server, "sssq");
	assert_true(becomes(&server.quick, 1));
	assert_true(becomes(&server.waiting, 3));
	atomic_store(&server.released, true);
	assert_true(becomes(&server.done, 3));
	finish(&server, dispatch);
}

/* The monitor sleeps after a second without requests. */
static void who_is_stuck_after_a_pause_too(void **state PFS_UNUSED)
{
	struct server server;
	struct pfs_dispatch *dispatch = start(&server, 1, 10);

	pause_ms(1300);
	request(&server, "sq");
	assert_true(becomes(&server.quick, 1));
	atomic_store(&server.released, true);
	finish(&server, dispatch);
	assert_int_equal(server.done, 1);
}

static void the_number_of_threads_is_limited(void **state PFS_UNUSED)
{
	struct server server;
	struct pfs_dispatch *dispatch = start(&server, 1, 3);

	request(&server, "yyyyyyq");
	assert_true(becomes(&server.waiting, 3));
	pause_ms(50);
	assert_int_equal(server.waiting, 3);
	assert_int_equal(server.quick, 0);
	atomic_store(&server.released, true);
	assert_true(becomes(&server.quick, 1));
	assert_true(becomes(&server.done, 6));
	finish(&server, dispatch);
}

static void one_thread_serves_one_at_a_time(void **state PFS_UNUSED)
{
	struct server server;
	struct pfs_dispatch *dispatch = start(&server, 1, 1);

	request(&server, "yyq");
	assert_true(becomes(&server.waiting, 1));
	pause_ms(50);
	assert_int_equal(server.waiting, 1);
	atomic_store(&server.released, true);
	assert_true(becomes(&server.quick, 1));
	finish(&server, dispatch);
}

static void scratch_memory_is_the_threads_own(void **state PFS_UNUSED)
{
	struct server server;
	struct pfs_dispatch *dispatch = start(&server, 3, 20);
	unsigned i;

	for (i = 0; i < 300; i++)
		request(&server, "b");
	assert_true(becomes(&server.done, 300));
	finish(&server, dispatch);
}

static void says_when_there_is_no_more(void **state PFS_UNUSED)
{
	struct server server;
	struct pfs_dispatch *dispatch = start(&server, 2, 10);

	request(&server, "qq");
	assert_int_equal(shutdown(server.ends[1], SHUT_RDWR), 0);
	assert_true(has_ended(dispatch, 10000));
	finish(&server, dispatch);
	assert_int_equal(server.quick, 2);
}

/* ---- where there is no room for as many ---- */

static _Atomic int receivers_left = INT_MAX; /* that can be started */
static _Atomic unsigned receivers_started;
static rlim_t address_space = RLIM_INFINITY;

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __real_pfs_thread_start(pthread_t *thread, const struct pfs_thread_kind *kind,
			    void *(*main)(void *), void *arg);
int __wrap_pfs_thread_start(pthread_t *thread, const struct pfs_thread_kind *kind,
			    void *(*main)(void *), void *arg);
int __wrap_getrlimit64(int resource, struct rlimit *limit);

int __wrap_pfs_thread_start(pthread_t *thread, const struct pfs_thread_kind *kind,
			    void *(*main)(void *), void *arg)
{
	if (strcmp(kind->name, "pfs-receiver") == 0) {
		if (atomic_fetch_sub(&receivers_left, 1) <= 0)
			return -EAGAIN;
		atomic_fetch_add(&receivers_started, 1);
	}
	return __real_pfs_thread_start(thread, kind, main, arg);
}

int __wrap_getrlimit64(int resource, struct rlimit *limit)
{
	*limit = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
	if (resource == RLIMIT_AS)
		limit->rlim_cur = address_space;
	return 0;
}
/* NOLINTEND(bugprone-reserved-identifier) */

static void serves_with(unsigned receivers)
{
	struct server server;
	struct pfs_dispatch *dispatch;

	receivers_started = 0;
	dispatch = start(&server, 5, 10);
	assert_int_equal(receivers_started, receivers);
	request(&server, "qqq");
	assert_true(becomes(&server.quick, 3));
	finish(&server, dispatch);
}

static void fewer_receivers_serve_as_well(void **state PFS_UNUSED)
{
	receivers_left = 2;
	serves_with(2);
	receivers_left = 1;
	serves_with(1);
	receivers_left = INT_MAX;
}

static void stacks_take_a_quarter_of_the_address_space(void **state PFS_UNUSED)
{
	address_space = (rlim_t)3 * 4 * PFS_THREAD_STACK;
	serves_with(3);
	address_space = 1;
	serves_with(1);
	address_space = RLIM_INFINITY;
	serves_with(5);
}

static void without_a_receiver_it_does_not_start(void **state PFS_UNUSED)
{
	const struct pfs_dispatch_options options = {
		.receivers = 2,
		.max_threads = 10,
		.request_size = 4096,
		.receive = receive,
		.process = process,
	};
	struct pfs_dispatch *dispatch;

	receivers_left = 0;
	assert_int_equal(pfs_dispatch_start(&dispatch, &options), -EAGAIN);
	assert_null(dispatch);
	receivers_left = INT_MAX;
}

static void starts_and_stops(void **state PFS_UNUSED)
{
	struct server server;
	unsigned i;

	for (i = 0; i < 100; i++)
		finish(&server, start(&server, 3, 3 + i % 2));
	pfs_dispatch_stop(NULL);
}

/* ---- the notifier ---- */

struct notices {
	_Atomic unsigned sent;
	_Atomic bool bad;
};

static void count_notice(void *arg, uint64_t ino, const char *name)
{
	struct notices *notices = arg;
	unsigned n = atomic_load(&notices->sent);

	/* In order: even ones without a name. */
	if (ino != n || (n % 2 == 0) != (name == NULL) || (name && strcmp(name, "name") != 0))
		atomic_store(&notices->bad, true);
	atomic_store(&notices->sent, n + 1);
}

static void notices_arrive_in_order(void **state PFS_UNUSED)
{
	struct notices notices = {0};
	struct pfs_notifier *notifier;
	uint64_t i;

	assert_int_equal(pfs_notifier_start(&notifier, count_notice, &notices), 0);
	for (i = 0; i < 10000; i++)
		pfs_notifier_push(notifier, i, i % 2 ? "name" : NULL);
	assert_true(becomes(&notices.sent, 10000));
	assert_false(notices.bad);
	pfs_notifier_close(notifier);
	pfs_notifier_close(NULL);
}

static void drop_notice(void *arg PFS_UNUSED, uint64_t ino PFS_UNUSED, const char *name PFS_UNUSED)
{
	pause_ms(20);
}

static void what_is_queued_is_dropped_at_the_end(void **state PFS_UNUSED)
{
	struct pfs_notifier *notifier;
	unsigned i;

	assert_int_equal(pfs_notifier_start(&notifier, drop_notice, NULL), 0);
	for (i = 0; i < 1000; i++)
		pfs_notifier_push(notifier, i, "name");
	pfs_notifier_close(notifier);
}

static void who_comes_after_the_end_is_not_kept(void **state PFS_UNUSED)
{
	struct notices notices = {0};
	struct pfs_notifier *notifier;

	assert_int_equal(pfs_notifier_start(&notifier, count_notice, &notices), 0);
	pfs_notifier_stop(notifier);
	pfs_notifier_stop(NULL);
	pfs_notifier_push(notifier, 0, NULL);
	pfs_notifier_flush(notifier);
	pfs_notifier_close(notifier);
	assert_int_equal(notices.sent, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serves_many),
		cmocka_unit_test(who_yields_is_replaced),
		cmocka_unit_test(jobs_are_done_by_spare_threads),
		cmocka_unit_test(nobody_is_replaced_while_another_waits),
		cmocka_unit_test(who_is_stuck_is_replaced),
		cmocka_unit_test(who_is_stuck_after_a_pause_too),
		cmocka_unit_test(the_number_of_threads_is_limited),
		cmocka_unit_test(one_thread_serves_one_at_a_time),
		cmocka_unit_test(scratch_memory_is_the_threads_own),
		cmocka_unit_test(says_when_there_is_no_more),
		cmocka_unit_test(fewer_receivers_serve_as_well),
		cmocka_unit_test(stacks_take_a_quarter_of_the_address_space),
		cmocka_unit_test(without_a_receiver_it_does_not_start),
		cmocka_unit_test(starts_and_stops),
		cmocka_unit_test(notices_arrive_in_order),
		cmocka_unit_test(what_is_queued_is_dropped_at_the_end),
		cmocka_unit_test(who_comes_after_the_end_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
