/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

int pfs_thread_start(pthread_t *thread, void *(*main)(void *), void *arg)
{
	pthread_attr_t attr;
	int error = pthread_attr_init(&attr);

	if (error)
		return -error;
	error = pthread_attr_setstacksize(&attr, PFS_THREAD_STACK);
	if (!error)
		error = pthread_create(thread, &attr, main, arg);
	(void)pthread_attr_destroy(&attr);
	return -error;
}

struct call {
	void (*fn)(void *arg);
	void *arg;
};

static void *call_main(void *arg)
{
	const struct call *call = arg;

	call->fn(call->arg);
	return NULL;
}

int pfs_thread_call(void (*fn)(void *arg), void *arg)
{
	struct call call = {fn, arg};
	pthread_t thread = 0;

	PFS_TRY(pfs_thread_start(&thread, call_main, &call));
	(void)pthread_join(thread, NULL);
	return 0;
}
