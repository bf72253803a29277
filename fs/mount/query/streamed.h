/* SPDX-License-Identifier: MIT */
/* fs/mount/query/streamed.h - reads of streams (fs/query/output/stream.h), which may have to make text or measure it first.
 *
 * Few of a mount's do so at a time. The others wait as requests, without a thread, in the order in which they
 * came, and whoever has answered his own goes on with the next. Each can be interrupted and repeated.
 *
 * Threads: any number. */
#ifndef PFS_FS_MOUNT_QUERY_STREAMED_H
#define PFS_FS_MOUNT_QUERY_STREAMED_H

#include <fuse_lowlevel.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

struct pfs_answer;
struct pfs_handle;
struct pfs_streamed; /* those of a mount */

#define PFS_STREAMED_MAX 8u /* threads that make text for reads */

PFS_MUST_CHECK int pfs_streamed_open(struct pfs_streamed **out); /* -ENOMEM */
void pfs_streamed_close(struct pfs_streamed *streamed); /* none waits any more; NULL is allowed */
unsigned pfs_streamed_waiting(struct pfs_streamed *streamed); /* reads */

/* Replies with bytes of the answer, a stream or complete, which the handle keeps open until then. */
void pfs_streamed_read(struct pfs_streamed *streamed, fuse_req_t req, struct pfs_handle *handle,
		       struct pfs_answer *answer, size_t size, uint64_t offset);
/* Replies with attr, to whose st_size the answer's is added once it is known. */
void pfs_streamed_measure(struct pfs_streamed *streamed, fuse_req_t req, struct pfs_handle *handle,
			  struct pfs_answer *answer, const struct stat *attr);

#endif
