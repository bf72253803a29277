/* SPDX-License-Identifier: MIT */
/* base/thread.h - threads with room for deep recursion: whoever runs SQL runs it on one.
 *
 * SQLite recurses as deeply as a statement nests, and says no only at limits far beyond what an ordinary
 * thread's stack holds.  These stacks are so large that a statement within its limits (meta/sql/sqlquery.h)
 * stays below a tenth of one, and end with a guard page.  What of them is never touched costs no memory. */
#ifndef PFS_BASE_THREAD_H
#define PFS_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>

#include "base/err.h"

#define PFS_THREAD_STACK ((size_t)64 << 20) /* bytes */

/* As pthread_create.  The caller joins or detaches it.  -EAGAIN, -ENOMEM. */
PFS_MUST_CHECK int pfs_thread_start(pthread_t *thread, void *(*main)(void *), void *arg);

/* Calls fn(arg) in such a thread and waits for its end; whether it could be started. */
PFS_MUST_CHECK int pfs_thread_call(void (*fn)(void *arg), void *arg);

#endif
