/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/checked.h"

#define NICENESS_MAX 19

struct start {
	struct pfs_thread_kind kind;
	void *(*main)(void *);
	void *arg;
};

/* A thread works without its niceness and its name, too, so failures to set them are ignored. */
static void *begin(void *arg)
{
	struct start start = *(struct start *)arg;

	free(arg);
	if (start.kind.niceness) {
		int first = getpriority(PRIO_PROCESS, (id_t)getpid());

		(void)setpriority(PRIO_PROCESS, 0, /* this thread, not the process */
				  PFS_MIN(first + start.kind.niceness, NICENESS_MAX));
	}
	(void)pthread_setname_np(pthread_self(), start.kind.name);
	return start.main(start.arg);
}

int pfs_thread_start(pthread_t *thread, const struct pfs_thread_kind *kind, void *(*main)(void *),
		     void *arg)
{
	struct start *start = malloc(sizeof(*start));
	pthread_attr_t attr;
	int error = start ? pthread_attr_init(&attr) : ENOMEM;

	if (error) {
		free(start);
		return -error;
	}
	*start = (struct start){*kind, main, arg};
	if (kind->stack_size)
		error = pthread_attr_setstacksize(&attr, kind->stack_size);
	if (!error)
		error = pthread_create(thread, &attr, begin, start);
	if (error)
		free(start);
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
	static const struct pfs_thread_kind kind = {"pfs-call", 0, PFS_THREAD_STACK};
	struct call call = {fn, arg};
	pthread_t thread = 0;

	PFS_TRY(pfs_thread_start(&thread, &kind, call_main, &call));
	(void)pthread_join(thread, NULL);
	return 0;
}
