/* SPDX-License-Identifier: MIT */
/* fs/mount/dispatch.h - the threads that receive requests and process them.
 *
 * A small, fixed number of threads, the receivers, wait for requests: the fewer they are, the more
 * often the thread that runs already takes the next request. A receiver that is going to wait for
 * the disk says so (pfs_dispatch_yield). If no other receiver is free, a spare thread becomes a
 * receiver in its place; the first one finishes its request, and is then a spare thread itself. A
 * receiver whose request takes some milliseconds is replaced in any case. So no request waits for
 * another request's disk, and none is copied.
 *
 * Nothing of FUSE is here: requests are bytes. */
#ifndef PFS_FS_MOUNT_DISPATCH_H
#define PFS_FS_MOUNT_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct pfs_dispatch;

struct pfs_dispatch_options {
	unsigned receivers;   /* threads that wait for requests; at least 1 */
	unsigned max_threads; /* of all kinds; if it equals receivers, none is ever replaced */
	size_t request_size;  /* size of the buffer that receive() is given, in bytes */
	void *arg;
	/* Waits for a request and returns its length; 0: call it again; negative: there will be no
	 * more requests. It returns 0 when a signal interrupts it (EINTR). */
	ssize_t (*receive)(void *arg, void *buffer, size_t size);
	void (*process)(void *arg, void *buffer, size_t len);
};

/* Starts the threads, with a warning if there cannot be as many receivers. *out is NULL on failure:
 * there is not even one.  All signals should be blocked. */
PFS_MUST_CHECK int pfs_dispatch_start(struct pfs_dispatch **out,
				      const struct pfs_dispatch_options *options);

/* Returns a descriptor that becomes readable when there are no more requests. It stays the
 * dispatcher's. */
int pfs_dispatch_event(const struct pfs_dispatch *dispatch);

/* Has a thread that is no receiver call fn(arg), which may do what process() may. -EAGAIN: there
 * are as many threads as may be, or the dispatcher is being stopped; -ENOMEM. */
PFS_MUST_CHECK int pfs_dispatch_run(struct pfs_dispatch *dispatch, void (*fn)(void *arg),
				    void *arg);

/* Receives no more requests, waits for those that are being processed, and frees all. NULL is
 * allowed. */
void pfs_dispatch_stop(struct pfs_dispatch *dispatch);

/* ---- inside process() ---- */

/* Says that what follows may take long. To be called once or more often for a request; cheap when
 * repeated; does nothing in other threads. */
void pfs_dispatch_yield(void);

/* Returns a buffer that belongs to this thread, of at least `size` bytes, aligned to pages. It is
 * valid until process() returns or until the next call. NULL: there is no memory. */
void *pfs_dispatch_scratch(size_t size);

#endif
