/* SPDX-License-Identifier: MIT */
/* fs/mount/notify.h - tells the kernel what changed behind its back.
 *
 * One thread of its own sends notices, holding no lock: the kernel may make a notice wait for a
 * request in flight on the same inode or directory, so no thread that serves requests can send one.
 *
 * Notices are sent PFS_NOTICE_DELAY_MS after they are queued. What changed is often found by a
 * request for attributes, whose reply brings it. A notice that overtakes the reply, or the asking
 * process when it takes the reply over, makes the kernel throw the new attributes away and decide
 * access on the old ones. So an inode that goes on changing is told of when it pauses, and one
 * whose mode or owner changed when those have been the same for PFS_NOTICE_RIGHTS_MS. Until then,
 * who has it open may read what is cached; who opens it anew does not. */
#ifndef PFS_FS_MOUNT_NOTIFY_H
#define PFS_FS_MOUNT_NOTIFY_H

#include <stdint.h>

#include "base/err.h"

#define PFS_NOTICE_DELAY_MS  100
#define PFS_NOTICE_RIGHTS_MS 1000

struct pfs_notifier;

/* Starts the thread. send() delivers one notice: about the entry `name` of the directory ino, or
 * with name NULL about the inode's attributes and content. -ENOMEM, -EAGAIN. */
PFS_MUST_CHECK int pfs_notifier_start(struct pfs_notifier **out,
				      void (*send)(void *arg, uint64_t ino, const char *name),
				      void *arg);

/* Queues a notice; does not block. If there is no memory for it, it is dropped, and that is
 * logged. */
void pfs_notifier_push(struct pfs_notifier *notifier, uint64_t ino, const char *name);

/* Sends what is queued, and returns when the kernel has it. Not to be called by a thread that
 * serves a request which the kernel may make a notice wait for. */
void pfs_notifier_flush(struct pfs_notifier *notifier);

/* Sends no more: drops what is pushed from now on, and has those return at once who wait in a
 * flush, now or later. NULL is allowed. */
void pfs_notifier_stop(struct pfs_notifier *notifier);

/* Stops, ends the thread, and frees, when nobody pushes or flushes any more. NULL is allowed. */
void pfs_notifier_close(struct pfs_notifier *notifier);

#endif
