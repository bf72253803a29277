/* SPDX-License-Identifier: MIT */
/* base/input.h - a file, standard input or bytes in memory, read in order or again from an offset.
 *
 * An input that cannot be read twice (a pipe, or bytes that are made while they are read) is copied
 * into an unlinked temporary file while it is read, if pfs_input_keep was called before.
 * Threads: one thread at a time uses an input. */
#ifndef PFS_BASE_INPUT_H
#define PFS_BASE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define PFS_INPUT_RECORD_MAX (64u << 20) /* the longest line or CSV row, in bytes */

struct pfs_input_stream {
	const char *name; /* for messages */
	int fd;		  /* -1: the bytes are in memory, or a maker makes them */
	int kept_fd;	  /* the temporary file that gets a copy; -1: there is none */
	bool regular;	  /* fd can be read again */
	bool end;	  /* nothing follows the buffer's bytes */
	char *buffer;
	size_t capacity;
	size_t next, size; /* the buffer's unread part: next..size */
	uint64_t offset;   /* of the buffer's first byte */
	size_t step;	   /* how many bytes to read at once */
	size_t jump;	   /* the same after the last seek; 0: there was none */
	uint64_t records;  /* records read since that seek */
	const struct pfs_input_maker *maker;
	void *made_of; /* the maker's state */
	const char *why; /* a sentence about the last error, or NULL */
};

/* Functions that make the bytes of an input. read returns 1 to `room` bytes, 0 at the end, or a
 * negative errno, for which it may set *why to a sentence; close frees made_of. */
struct pfs_input_maker {
	ssize_t (*read)(void *made_of, const char **why, char *to, size_t room);
	void (*close)(void *made_of);
};

/* Opens the file at path; "-" is standard input. Errors of open(2); -ENOMEM. */
PFS_MUST_CHECK int pfs_input_open(struct pfs_input_stream *input, const char *path);

/* Opens bytes in memory, which stay the caller's and must outlive the input. */
PFS_MUST_CHECK int pfs_input_open_memory(struct pfs_input_stream *input, const void *data,
					 size_t size);

/* Opens the bytes that the maker makes; the input owns made_of from now on. */
void pfs_input_open_made(struct pfs_input_stream *input, const char *name,
			 const struct pfs_input_maker *maker, void *made_of);
void pfs_input_close(struct pfs_input_stream *input);

/* Keeps the bytes in the buffer and those that are read from now on, so that they can be read
 * again. -ESPIPE: bytes have left the buffer already. */
PFS_MUST_CHECK int pfs_input_keep(struct pfs_input_stream *input);

/* As pfs_input_keep, but reads the whole input at once; it is a regular file afterwards. */
PFS_MUST_CHECK int pfs_input_keep_all(struct pfs_input_stream *input);

/* Reads until the buffer has `wanted` unread bytes or the input ends. Returns how many it has, from
 * input->buffer + input->next on, or a negative errno. */
PFS_MUST_CHECK ssize_t pfs_input_need(struct pfs_input_stream *input, size_t wanted);

/* pfs_input_tell returns the offset of the next byte; pfs_input_seek goes back to an offset. */
uint64_t pfs_input_tell(const struct pfs_input_stream *input);
PFS_MUST_CHECK int pfs_input_seek(struct pfs_input_stream *input, uint64_t offset);

/* Reads the next record, which ends with the delimiter or at the input's end. Returns 1, or 0 at
 * the end; *record is without the delimiter and valid until the next call. -EMSGSIZE: the record is
 * longer than PFS_INPUT_RECORD_MAX. */
PFS_MUST_CHECK int pfs_input_record(struct pfs_input_stream *input, const char **record,
				    size_t *len, char delimiter);

#endif
