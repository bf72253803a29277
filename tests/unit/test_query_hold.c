/* SPDX-License-Identifier: MIT */
/* A statement that has held the tree for long finds that out also where the system's clock ticks
 * rarely: here it does not tick at all. */
#include <pthread.h>
#include <time.h>

#include "tests/unit/query_util.h"

#include "fs/image/hold.h"
#include "fs/query/internal.h"

#define LONG_US 8000

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
	if (id != CLOCK_MONOTONIC_COARSE)
		return __real_clock_gettime(id, out);
	*out = (struct timespec){.tv_sec = 1000};
	return 0;
}
/* NOLINTEND(bugprone-reserved-identifier) */

static struct pfs_query *start_held(void)
{
	static const char sql[] = "SELECT count(*) FROM nodes";
	struct pfs_query *query;

	assert_int_equal(pfs_query_start(&query, queries, &scope, sql, strlen(sql), &error), 0);
	assert_int_equal(pfs_query_hold(query), 0);
	return query;
}

static void *make_one(void *made)
{
	*(uint64_t *)made = temp_tree_make(tree, PFS_ROOT_PRIME, "late", S_IFREG | 0644);
	return NULL;
}

static void wait_for_writer(void)
{
	for (unsigned ms = 0; ms < 20000 && !pfs_hold_is_wanted(tree); ms++)
		(void)usleep(1000);
	assert_true(pfs_hold_is_wanted(tree));
}

static void who_waits_is_let_in(void **state PFS_UNUSED)
{
	struct pfs_query *query = start_held();
	uint64_t made = 0;
	pthread_t writer;

	assert_int_equal(pthread_create(&writer, NULL, make_one, &made), 0);
	wait_for_writer();
	(void)usleep(LONG_US);
	assert_int_equal(pfs_query_poll(query), -EAGAIN);
	assert_int_equal(pfs_query_look(query), -EAGAIN); /* he has changed something */
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_int_not_equal(made, 0);
	pfs_query_release(query);
	pfs_query_finish(query);
}

static void it_pauses_also_if_nobody_waits(void **state PFS_UNUSED)
{
	struct pfs_query *query = start_held();

	assert_int_equal(pfs_query_look(query), 0);
	(void)usleep(LONG_US);
	assert_int_equal(pfs_query_poll(query), PFS_RUN_PAUSE);
	assert_int_equal(pfs_query_look(query), 0); /* nothing has changed */
	pfs_query_release(query);
	pfs_query_finish(query);
}

/* A device that starts, which takes long, keeps only those waiting who want operators. */
static void figures_are_told_while_a_device_starts(void **state PFS_UNUSED)
{
	uint64_t host = 1, device = 1;

	(void)pthread_mutex_lock(&queries->placing);
	assert_false(pfs_queries_count(queries, &host, &device));
	(void)pthread_mutex_unlock(&queries->placing);
	assert_int_equal(host + device, 0);
	pfs_query_finish(start_held());
	(void)pthread_mutex_lock(&queries->placing);
	(void)pfs_queries_count(queries, &host, &device);
	(void)pthread_mutex_unlock(&queries->placing);
}

static void operators_take_time(void **state PFS_UNUSED)
{
	static const char sql[] = "SELECT type, count(*) FROM nodes GROUP BY type";
	struct pfs_query *query;
	int got;

	assert_int_equal(pfs_queries_operators_ns(queries), 0);
	assert_int_equal(pfs_query_start(&query, queries, &scope, sql, strlen(sql), &error), 0);
	while ((got = pfs_query_next(query, &error)) == 1)
		;
	pfs_query_finish(query);
	assert_int_equal(got, 0);
	assert_int_not_equal(pfs_queries_operators_ns(queries), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_waits_is_let_in, set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_pauses_also_if_nobody_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(figures_are_told_while_a_device_starts, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(operators_take_time, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
