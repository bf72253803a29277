/* SPDX-License-Identifier: MIT */
/* Threads have the name, the niceness and the stack that they were started with. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/pool.h"
#include "base/thread.h"

struct seen {
	char name[16];
	int niceness;
	size_t stack_size;
};

static void look(struct seen *seen)
{
	pthread_attr_t attr;

	(void)pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
	seen->niceness = getpriority(PRIO_PROCESS, 0);
	if (pthread_getattr_np(pthread_self(), &attr))
		return;
	(void)pthread_attr_getstacksize(&attr, &seen->stack_size);
	(void)pthread_attr_destroy(&attr);
}

static void *look_main(void *arg)
{
	look(arg);
	return arg;
}

static void look_in_thread(struct seen *seen, const struct pfs_thread_kind *kind)
{
	pthread_t thread;
	void *done;

	assert_int_equal(pfs_thread_start(&thread, kind, look_main, seen), 0);
	assert_int_equal(pthread_join(thread, &done), 0);
	assert_ptr_equal(done, seen);
}

static int lowered(void)
{
	return PFS_MIN(getpriority(PRIO_PROCESS, (id_t)getpid()) + PFS_THREAD_NICE, 19);
}

static void test_as_they_were_started(void **state PFS_UNUSED)
{
	static const struct pfs_thread_kind low = {"exactly-15-char", PFS_THREAD_NICE, 0},
					    deep = {"deep", 0, PFS_THREAD_STACK};
	struct seen seen = {.niceness = -1};

	look_in_thread(&seen, &low);
	assert_string_equal(seen.name, low.name);
	assert_int_equal(seen.niceness, lowered());
	look_in_thread(&seen, &deep);
	assert_string_equal(seen.name, deep.name);
	assert_int_equal(seen.niceness, getpriority(PRIO_PROCESS, 0));
	assert_in_range(seen.stack_size, PFS_THREAD_STACK, 2 * PFS_THREAD_STACK);
}

static void *start_another(void *arg)
{
	static const struct pfs_thread_kind low = {"second", PFS_THREAD_NICE, 0};
	pthread_t thread;

	if (pfs_thread_start(&thread, &low, look_main, arg))
		return NULL;
	(void)pthread_join(thread, NULL);
	return arg;
}

static void test_a_second_one_is_not_lowered_again(void **state PFS_UNUSED)
{
	static const struct pfs_thread_kind low = {"first", PFS_THREAD_NICE, 0};
	struct seen seen = {.niceness = -1};
	pthread_t thread;

	assert_int_equal(pfs_thread_start(&thread, &low, start_another, &seen), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_string_equal(seen.name, "second");
	assert_int_equal(seen.niceness, lowered());
}

static void look_or_wait(void *context, size_t from, size_t to PFS_UNUSED)
{
	struct seen *seen = context;

	if (gettid() != getpid())
		look(&seen[from]);
	else
		(void)usleep(2000);
}

/* Of a thousand pieces some are the other thread's. */
static void test_pool(void **state PFS_UNUSED)
{
	static struct seen seen[1000];
	struct pfs_pool *pool;
	unsigned n = 0;

	assert_int_equal(pfs_pool_open(&pool, 2, PFS_THREAD_NICE), 0);
	pfs_pool_run(pool, PFS_COUNT(seen), 1, look_or_wait, seen);
	pfs_pool_close(pool);
	for (size_t i = 0; i < PFS_COUNT(seen); i++) {
		if (!seen[i].name[0])
			continue;
		assert_string_equal(seen[i].name, "pfs-pool");
		assert_int_equal(seen[i].niceness, lowered());
		n++;
	}
	assert_int_not_equal(n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_they_were_started),
		cmocka_unit_test(test_a_second_one_is_not_lowered_again),
		cmocka_unit_test(test_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
