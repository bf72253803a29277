/* SPDX-License-Identifier: MIT */
/* base/input.h - a file, or standard input, read in order, or again from any place.
 *
 * What cannot be read twice (a pipe, or bytes that are made while they are read) is copied into an
 * unlinked temporary file while it is read, if pfs_input_keep was called before.
 * Threads: an input is one thread's at a time. */
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
	int kept_fd;	  /* what is read is copied here; -1: it is not */
	bool regular;	  /* fd can be read again */
	bool end;	  /* nothing follows what is in the buffer */
	char *buffer;
	size_t capacity;
	size_t next, size; /* the buffer's unread part: next..size */
	uint64_t offset;   /* of the buffer's first byte */
	size_t step;	   /* bytes to read at once */
	size_t jump;	   /* the same, where it went last; 0: it read in order */
	uint64_t records;  /* read since then */
	const struct pfs_input_maker *maker;
	void *made_of;
	const char *why; /* a sentence about the last error, or NULL */
};

/* Makes bytes. read returns 1 to `room` of them, 0 at the end, or a negative errno and, if it has
 * one, a sentence in *why; close frees made_of. */
struct pfs_input_maker {
	ssize_t (*read)(void *made_of, const char **why, char *to, size_t room);
	void (*close)(void *made_of);
};

/* Opens the file at path; "-" is standard input. What open(2) returns; -ENOMEM. */
PFS_MUST_CHECK int pfs_input_open(struct pfs_input_stream *input, const char *path);

/* Reads bytes in memory, which stay the caller's and must outlive the input. */
PFS_MUST_CHECK int pfs_input_open_memory(struct pfs_input_stream *input, const void *data, size_t size);

/* Reads what the maker makes; the input owns made_of from now on. */
void pfs_input_open_made(struct pfs_input_stream *input, const char *name,
			 const struct pfs_input_maker *maker, void *made_of);
void pfs_input_close(struct pfs_input_stream *input);

/* Keeps what is read from now on, and what is in the buffer, so that it can be read again. -ESPIPE:
 * something has left the buffer already. */
PFS_MUST_CHECK int pfs_input_keep(struct pfs_input_stream *input);

/* As pfs_input_keep, and reads everything at once; the input is a regular file afterwards. */
PFS_MUST_CHECK int pfs_input_keep_all(struct pfs_input_stream *input);

/* Fills the buffer until `wanted` bytes are unread in it, or the input ends. Returns how many are
 * there, from input->buffer + input->next on, or a negative errno. */
PFS_MUST_CHECK ssize_t pfs_input_need(struct pfs_input_stream *input, size_t wanted);

/* The offset of the next byte, and going to an offset again. */
uint64_t pfs_input_tell(const struct pfs_input_stream *input);
PFS_MUST_CHECK int pfs_input_seek(struct pfs_input_stream *input, uint64_t offset);

/* Reads the next record and steps over the delimiter behind it; the last record may lack it.
 * Returns 1, or 0 at the end; *record is valid until the next call. -EMSGSIZE: a record is longer
 * than PFS_INPUT_RECORD_MAX. */
PFS_MUST_CHECK int pfs_input_record(struct pfs_input_stream *input, const char **record, size_t *len,
				    char delimiter);

#endif
