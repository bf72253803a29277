/* SPDX-License-Identifier: MIT */
/* fs/query/output/stream.h - text that is made as it is read. Text that has been read is dropped,
 * and made again if a reader goes back. If much is read, a thread of the stream makes the next text
 * meanwhile.
 *
 * Threads: any number may read; one at a time calls the source. */
#ifndef PFS_FS_QUERY_OUTPUT_STREAM_H
#define PFS_FS_QUERY_OUTPUT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Makes the rows of the text. It gives the same rows whenever it is asked for them. */
struct pfs_stream_source {
	void *arg; /* owned by the stream once pfs_stream_open is called, even if that fails */
	/* Gives the text of some rows from *row on (0 is the first) to fn, in pieces; moves *row
	 * behind these rows, and returns 1. Returns 0 if no row follows, a negative errno, or what
	 * fn returns. */
	int (*next)(void *arg, uint64_t *row,
		    int (*fn)(void *fn_arg, const char *bytes, size_t size), void *fn_arg);
	/* Sets *size to the bytes of text of the next n rows, or of fewer, if no more follow. Moves
	 * *row and returns as `next` does. */
	int (*measure)(void *arg, uint64_t *row, uint64_t *size, uint64_t n);
	void (*close)(void *arg);
};

struct pfs_stream;

#define PFS_STREAM_MARKED 65536u /* rows that are made again at most before the wanted one */

/* Opens a stream. memory: bytes of text that it keeps, beside the last piece. -ENOMEM. */
PFS_MUST_CHECK int pfs_stream_open(struct pfs_stream **out, const struct pfs_stream_source *source,
				   size_t memory);
void pfs_stream_close(struct pfs_stream *stream); /* NULL is allowed */

/* gone is called between two pieces, and from time to time while another thread calls the source;
 * NULL: never. It returns true if the reader is gone. It must not use the stream. */
struct pfs_stream_wait {
	bool (*gone)(void *arg);
	void *arg;
};

/* Makes text until it ends or the stream's memory is full, so that the size of a short text is
 * known. To be called before the first read. Errors as of pfs_stream_read. */
PFS_MUST_CHECK int pfs_stream_begin(struct pfs_stream *stream, const struct pfs_stream_wait *wait);

/* Reads; returns the number of bytes, fewer than `size` only at the end. -EINTR: the reader is
 * gone; or an error of the source. After any error it may be called again. */
PFS_MUST_CHECK ssize_t pfs_stream_read(struct pfs_stream *stream, void *data, size_t size,
				       uint64_t offset, const struct pfs_stream_wait *wait);
/* As pfs_stream_read, for text that is in memory; -EAGAIN: some of it has to be made. */
PFS_MUST_CHECK ssize_t pfs_stream_read_kept(struct pfs_stream *stream, void *data, size_t size,
					    uint64_t offset);
/* Finds the size, if it is not known yet, without making the text. Errors as of pfs_stream_read. */
PFS_MUST_CHECK int pfs_stream_measure(struct pfs_stream *stream,
				      const struct pfs_stream_wait *wait);
/* If the size is not known yet, measures the next PFS_STREAM_MARKED rows, unless another thread is
 * calling the source. */
void pfs_stream_measure_some(struct pfs_stream *stream);
/* Gets the size; returns false if it is not known. */
bool pfs_stream_size(struct pfs_stream *stream, uint64_t *size);

#endif
