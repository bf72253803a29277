/* SPDX-License-Identifier: MIT */
/* fs/mount/query/streamed.h - reads of streams (fs/query/output/stream.h), which may have to make
 * or measure text first.
 *
 * At most PFS_STREAMED_MAX threads of a mount do so at a time. Further reads wait as requests,
 * without a thread, in the order in which they came; a thread that has answered its own read goes
 * on with the next. Each read can be interrupted and repeated.
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
struct pfs_streamed; /* the reads of streams of one mount */

#define PFS_STREAMED_MAX 8u /* threads that make text for reads */

PFS_MUST_CHECK int pfs_streamed_open(struct pfs_streamed **out); /* -ENOMEM */
void pfs_streamed_close(struct pfs_streamed *streamed); /* no read waits; NULL is allowed */
unsigned pfs_streamed_waiting(struct pfs_streamed *streamed); /* returns how many reads wait */

/* Replies with bytes of the answer, which is a stream or complete. The handle keeps the answer open
 * until the reply. */
void pfs_streamed_read(struct pfs_streamed *streamed, fuse_req_t req, struct pfs_handle *handle,
		       struct pfs_answer *answer, size_t size, uint64_t offset);
/* Replies with attr once the answer's size is known, which is added to attr's st_size. */
void pfs_streamed_measure(struct pfs_streamed *streamed, fuse_req_t req, struct pfs_handle *handle,
			  struct pfs_answer *answer, const struct stat *attr);

#endif
