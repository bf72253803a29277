/* SPDX-License-Identifier: MIT */
/* fs/mount/query/pending.h - requests that wait for their answer without a thread, or until a
 * thread has made it, and may be interrupted meanwhile: the interrupt answers them at once.
 *
 * Whoever answers them owns the lists and the lock of their lists. Lock order: a request's own
 * (libfuse's) -> that lock. */
#ifndef PFS_FS_MOUNT_QUERY_PENDING_H
#define PFS_FS_MOUNT_QUERY_PENDING_H

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"

/* Comes first in what malloc gave for a request. */
struct pfs_pending {
	fuse_req_t req;
	struct pfs_pendings *list;
	/* Protected by the list's lock: */
	struct pfs_pending *next, **link; /* of those that wait; link NULL: it does not */
	bool is_made;			  /* somebody makes what is asked */
	_Atomic bool is_interrupted;
};

/* Those that wait, the longest first. */
struct pfs_pendings {
	pthread_mutex_t *lock;
	unsigned *count; /* of requests that wait, here and elsewhere; protected by lock */
	struct pfs_pending *first, **last;
};

void pfs_pendings_init(struct pfs_pendings *list, pthread_mutex_t *lock, unsigned *count);

/* Says that a request, of which req and list are set, may be going to wait. Nobody has the lock. */
void pfs_pending_begin(struct pfs_pending *pending);
/* With the lock: has it wait from now on. An interrupt answers it then, and frees it. Returns false if it was
 * interrupted before, and does not wait. */
PFS_MUST_CHECK bool pfs_pending_wait(struct pfs_pending *pending);
/* With the lock: takes one that waits out of its list. */
void pfs_pending_take(struct pfs_pending *pending);
/* With the lock: says that what is asked of one that does not wait is made from now on, which may take a while.
 * An interrupt answers it then; who makes it goes on to pfs_pending_end all the same. Returns false if it was
 * interrupted before. */
PFS_MUST_CHECK bool pfs_pending_make(struct pfs_pending *pending);
/* Returns true if who asked has gone, or does not wait any more; for who makes what is asked. */
bool pfs_pending_is_gone(const struct pfs_pending *pending);
/* Says that the request, which does not wait, is going to be answered now; returns true if it was interrupted, and
 * has been answered with EINTR. Nobody has the lock. */
PFS_MUST_CHECK bool pfs_pending_end(struct pfs_pending *pending);

#endif
