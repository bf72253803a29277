/* SPDX-License-Identifier: MIT */
/* fs/mount/query/pending.h - requests that wait for their answer without a thread, or until a
 * thread has made it, and may be interrupted meanwhile: the interrupt answers them at once.
 *
 * The module that answers such requests owns their lists, and the lock of the lists. Lock order:
 * libfuse's lock of a request -> the lists' lock. */
#ifndef PFS_FS_MOUNT_QUERY_PENDING_H
#define PFS_FS_MOUNT_QUERY_PENDING_H

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"

/* A request that may wait. It is the first member of a struct that malloc gave for it. */
struct pfs_pending {
	fuse_req_t req;
	struct pfs_pendings *list;
	/* protected by the list's lock */
	struct pfs_pending *next, **link; /* in the list; link NULL: it does not wait */
	bool is_made;			  /* a thread makes what the request asks for */
	_Atomic bool is_interrupted;
};

/* A list of requests that wait, the longest first. */
struct pfs_pendings {
	pthread_mutex_t *lock;
	unsigned *count; /* requests that wait, in all lists of this lock; protected by lock */
	struct pfs_pending *first, **last;
};

void pfs_pendings_init(struct pfs_pendings *list, pthread_mutex_t *lock, unsigned *count);

/* Says that a request, of which req and list are set, may be going to wait. The caller does not
 * hold the lock. */
void pfs_pending_begin(struct pfs_pending *pending);
/* Has the request wait from now on; an interrupt then answers and frees it. Returns false if it was
 * interrupted before; it does not wait then. The lock is held. */
PFS_MUST_CHECK bool pfs_pending_wait(struct pfs_pending *pending);
/* Takes a waiting request out of its list. The lock is held. */
void pfs_pending_take(struct pfs_pending *pending);
/* Says that a thread makes from now on what the request, which does not wait, asks for; that may
 * take a while, and an interrupt answers the request meanwhile. The thread calls pfs_pending_end
 * all the same. Returns false if the request was interrupted before. The lock is held. */
PFS_MUST_CHECK bool pfs_pending_make(struct pfs_pending *pending);
/* Returns true if the request has been answered meanwhile; for the thread that makes its answer. */
bool pfs_pending_is_gone(const struct pfs_pending *pending);
/* Says that the request, which does not wait, is going to be answered now. Returns true if it was
 * interrupted, and has been answered with EINTR. The caller does not hold the lock. */
PFS_MUST_CHECK bool pfs_pending_end(struct pfs_pending *pending);

#endif
