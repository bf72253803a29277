/* SPDX-License-Identifier: MIT */
/* fs/mount/notify.h - tells the kernel what changed without its knowledge.
 *
 * One thread of its own sends notices, holding no lock: the kernel may make a notice wait for a
 * request in flight on the same inode or directory, so no thread that serves requests can send one.
 *
 * Notices are sent PFS_NOTICE_DELAY_MS after they are queued. The daemon often finds a change while
 * it answers a request for attributes, and the reply brings the new ones. A notice that overtakes
 * this reply, or reaches the kernel before the asking process has taken the reply over, makes the
 * kernel throw the new attributes away and decide on access by the old ones. So if an inode goes on
 * changing, its notice is sent when it pauses, and if it is a linked file whose mode or owner
 * changed, when these have been the same for PFS_NOTICE_RIGHTS_MS, even if a flush waits. Until
 * then a process that has the file open may read cached bytes; one that opens it anew does not. */
#ifndef PFS_FS_MOUNT_NOTIFY_H
#define PFS_FS_MOUNT_NOTIFY_H

#include <stdint.h>

#include "base/err.h"

#define PFS_NOTICE_DELAY_MS  100
#define PFS_NOTICE_RIGHTS_MS 1000

struct pfs_notifier;

/* Starts the thread. send() delivers one notice: about the entry `name` of the directory ino or, if
 * name is NULL, about the inode's attributes and content. -ENOMEM, -EAGAIN. */
PFS_MUST_CHECK int pfs_notifier_start(struct pfs_notifier **out,
				      void (*send)(void *arg, uint64_t ino, const char *name),
				      void *arg);

/* Queues a notice; does not block. If there is no memory for it, it is dropped, and that is
 * logged. */
void pfs_notifier_push(struct pfs_notifier *notifier, uint64_t ino, const char *name);

/* Sends the queued notices, and returns when the kernel has them or send() has pushed them again.
 * Not to be called by a thread that serves a request: the kernel may make a notice wait for that
 * request. */
void pfs_notifier_flush(struct pfs_notifier *notifier);

/* Sends no more notices: drops those pushed from now on, and makes calls of flush return at once,
 * also those that wait already. NULL is allowed. */
void pfs_notifier_stop(struct pfs_notifier *notifier);

/* Stops, ends the thread and frees the notifier. No other thread may push or flush any more. NULL
 * is allowed. */
void pfs_notifier_close(struct pfs_notifier *notifier);

#endif
