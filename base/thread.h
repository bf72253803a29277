/* SPDX-License-Identifier: MIT */
/* base/thread.h - threads with room for deep recursion. Whoever runs SQL runs it on one of these.
 *
 * SQLite recurses as deeply as a statement nests, and refuses only at limits far beyond an ordinary
 * thread's stack. These stacks are so large that a statement within its limits
 * (meta/sql/sqlquery.h) stays below a tenth of one, and they end with a guard page. The pages that
 * are never touched cost no memory. */
#ifndef PFS_BASE_THREAD_H
#define PFS_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>

#include "base/err.h"

#define PFS_THREAD_STACK ((size_t)64 << 20) /* bytes */

/* Starts a thread as pthread_create does; the caller joins or detaches it. -EAGAIN, -ENOMEM. */
PFS_MUST_CHECK int pfs_thread_start(pthread_t *thread, void *(*main)(void *), void *arg);

/* Calls fn(arg) in such a thread and waits for its end. -EAGAIN, -ENOMEM: fn was not called. */
PFS_MUST_CHECK int pfs_thread_call(void (*fn)(void *arg), void *arg);

#endif
