/* SPDX-License-Identifier: MIT */
/* fs/query/output/stream.h - text that is made as it is read, dropped behind the reader, and made again where
 * he goes back.  A thread of the stream's makes what comes next while he reads, once there is much.
 *
 * Threads: any number may read; the source is asked by one at a time. */
#ifndef PFS_FS_QUERY_OUTPUT_STREAM_H
#define PFS_FS_QUERY_OUTPUT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Makes the rows of the text. It gives the same rows whenever it is asked for them. */
struct pfs_stream_source {
	void *arg; /* the stream's from open on, which may fail */
	/* Gives some of the text from *row on (0 is the beginning) to fn, in pieces; moves *row
	 * behind it and returns 1. Returns 0 if nothing follows, a negative errno, or what fn
	 * returns. */
	int (*next)(void *arg, uint64_t *row, int (*fn)(void *fn_arg, const char *bytes, size_t size),
		    void *fn_arg);
	/* Sets *size to how many bytes the text of the next n rows has, or of those that there are;
	 * all else as `next`. */
	int (*measure)(void *arg, uint64_t *row, uint64_t *size, uint64_t n);
	void (*close)(void *arg);
};

struct pfs_stream;

#define PFS_STREAM_MARKED 65536u /* rows, from which on at most the text is made again */

/* Opens a stream. memory: bytes of text that are kept, beside the piece made last. -ENOMEM. */
PFS_MUST_CHECK int pfs_stream_open(struct pfs_stream **out, const struct pfs_stream_source *source,
				   size_t memory);
void pfs_stream_close(struct pfs_stream *stream); /* NULL is allowed */

/* Called between two pieces, and from time to time while others ask the source (NULL: never): true if
 * nobody waits any more. It does nothing with the stream. */
struct pfs_stream_wait {
	bool (*gone)(void *arg);
	void *arg;
};

/* Makes the text until it ends or fills what is kept, so that the size of a short one is known.
 * Nobody reads yet. Errors as of read. */
PFS_MUST_CHECK int pfs_stream_begin(struct pfs_stream *stream, const struct pfs_stream_wait *wait);

/* Reads; returns the number of bytes, fewer than `size` only at the end. -EINTR: nobody waits; it
 * may be asked again, as after any error. What the source returns. */
PFS_MUST_CHECK ssize_t pfs_stream_read(struct pfs_stream *stream, void *data, size_t size,
				       uint64_t offset, const struct pfs_stream_wait *wait);
/* Reads what is kept, as read does; -EAGAIN: some of it has to be made. */
PFS_MUST_CHECK ssize_t pfs_stream_read_kept(struct pfs_stream *stream, void *data, size_t size, uint64_t offset);
/* Finds the size where it is not known yet, without making the text; 0, or an error as of read. */
PFS_MUST_CHECK int pfs_stream_measure(struct pfs_stream *stream, const struct pfs_stream_wait *wait);
/* Measures the next PFS_STREAM_MARKED rows where the size is not known yet, unless somebody asks the source. */
void pfs_stream_measure_some(struct pfs_stream *stream);
/* Gets the size; returns false if it is not known. */
bool pfs_stream_size(struct pfs_stream *stream, uint64_t *size);

#endif
