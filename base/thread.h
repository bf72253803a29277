/* SPDX-License-Identifier: MIT */
/* base/thread.h - threads with a name, a niceness and a stack for deep recursion. All threads of
 * the daemon are started here; SQL runs on threads with PFS_THREAD_STACK.
 *
 * SQLite recurses as deeply as a statement nests, and its limits are far beyond an ordinary
 * thread's stack. A statement within the limits of meta/sql/sqlquery.h uses less than a tenth of
 * such a stack, which ends with a guard page. Pages that are never touched take no memory.
 *
 * Threads for which nobody waits have a niceness: those of pools, those that make answers before
 * they are read, the committer. A thread keeps its niceness for life, because lowering it needs a
 * privilege. Threads without niceness may keep such a thread, with the locks that it holds, from
 * the processor for long. So it holds the tree's lock only for one short piece of work at a time,
 * and never while it changes as many nodes as a statement names. */
#ifndef PFS_BASE_THREAD_H
#define PFS_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>

#include "base/err.h"

#define PFS_THREAD_STACK ((size_t)64 << 20) /* bytes */
#define PFS_THREAD_NICE	 10

struct pfs_thread_kind {
	const char *name; /* at most 15 bytes, shown by `ps -L` and `top -H`; stays valid */
	int niceness; /* PFS_THREAD_NICE: that much above the process's first thread, if the system
		       * allows it; 0: that of the thread that starts it */
	size_t stack_size; /* bytes; 0: the system's default */
};

/* Starts a thread that calls main(arg); the caller joins or detaches it. -EAGAIN, -ENOMEM. */
PFS_MUST_CHECK int pfs_thread_start(pthread_t *thread, const struct pfs_thread_kind *kind,
				    void *(*main)(void *), void *arg);

/* Calls fn(arg) in a thread with PFS_THREAD_STACK, and waits until it returns. -EAGAIN, -ENOMEM: fn
 * was not called. */
PFS_MUST_CHECK int pfs_thread_call(void (*fn)(void *arg), void *arg);

#endif
