/* SPDX-License-Identifier: MIT */
/* fs/mount/reply.h - where a verb's answer goes: to a client of the control socket or, in a command
 * that has opened the store itself, to that command's output. Verbs (fs/mount/control/control.h)
 * cannot tell which.
 *
 * Threads: a reply belongs to one thread. */
#ifndef PFS_FS_MOUNT_REPLY_H
#define PFS_FS_MOUNT_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define PFS_REPLY_MESSAGE 8192

struct pfs_reply {
	/* Writes bytes of the answer. It never waits for the reader, so the caller may hold locks.
	 * After an error the verb has to stop. -EPIPE: the reader is gone; -ENOBUFS: the reader
	 * lags behind by more bytes than there is memory for. */
	int (*write)(struct pfs_reply *reply, const void *bytes, size_t size);
	bool (*gone)(struct pfs_reply *reply); /* true if the reader is gone */
	char message[PFS_REPLY_MESSAGE];       /* the sentence for stderr; "" for none */
};

PFS_MUST_CHECK static inline int pfs_reply_write(struct pfs_reply *reply, const void *bytes,
						 size_t size)
{
	return size ? reply->write(reply, bytes, size) : 0;
}

PFS_MUST_CHECK int pfs_reply_print(struct pfs_reply *reply, const char *format, ...)
	PFS_PRINTF(2, 3);

/* Returns true if the reader is gone. Long work that writes nothing calls it from time to time. */
static inline bool pfs_reply_gone(struct pfs_reply *reply)
{
	return reply->gone(reply);
}

/* Says why there is no answer, or not all of it: "OBJECT: what is wrong; what to do". Returns
 * `status`, for the verb to return. */
int pfs_reply_fail(struct pfs_reply *reply, int status, const char *format, ...) PFS_PRINTF(3, 4);

#endif
