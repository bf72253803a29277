/* SPDX-License-Identifier: MIT */
/* base/thread.h - threads with a name, a niceness and room for deep recursion. Every thread of the
 * daemon is one of these; whoever runs SQL runs it on one with PFS_THREAD_STACK.
 *
 * SQLite recurses as deeply as a statement nests, and refuses only at limits far beyond an ordinary
 * thread's stack. These stacks are so large that a statement within its limits
 * (meta/sql/sqlquery.h) stays below a tenth of one, and they end with a guard page. The pages that
 * are never touched cost no memory.
 *
 * Niceness is for who works beside or ahead of those that somebody waits for: pools, what is made
 * before it is read, the committer. A thread cannot take its niceness back without a privilege, so
 * that a thread has one for life. Who has one may be kept from the processor for long by those who
 * have none, with the locks that he holds: he holds the tree's lock for one short piece of work at
 * a time, and never while as many nodes are changed as a statement names. */
#ifndef PFS_BASE_THREAD_H
#define PFS_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>

#include "base/err.h"

#define PFS_THREAD_STACK ((size_t)64 << 20) /* bytes */
#define PFS_THREAD_NICE	 10

struct pfs_thread_kind {
	const char *name; /* at most 15 bytes, which `ps -L` and `top -H` show; it stays there */
	int niceness; /* PFS_THREAD_NICE: that much above the process's first thread, if the system
		       * lets it; 0: that of whoever starts it */
	size_t stack_size; /* bytes; 0: the system's */
};

/* Starts a thread as pthread_create does; the caller joins or detaches it. -EAGAIN, -ENOMEM. */
PFS_MUST_CHECK int pfs_thread_start(pthread_t *thread, const struct pfs_thread_kind *kind,
				    void *(*main)(void *), void *arg);

/* Calls fn(arg) in a thread with PFS_THREAD_STACK and waits for its end. -EAGAIN, -ENOMEM: fn was
 * not called. */
PFS_MUST_CHECK int pfs_thread_call(void (*fn)(void *arg), void *arg);

#endif
