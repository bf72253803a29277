/* SPDX-License-Identifier: MIT */
/* base/input.h - a file, or standard input, read once or again from any place.
 *
 * What cannot be read twice (a pipe, or bytes that are made while they are read) is kept in an
 * unlinked temporary file while it is read, if pfs_input_keep says so. */
#ifndef PFS_BASE_INPUT_H
#define PFS_BASE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define PFS_INPUT_RECORD_MAX (64u << 20) /* bytes in a line or a CSV row */

struct pfs_input {
	const char *name; /* for messages */
	int fd;		  /* -1: bytes in memory, or from the maker */
	int kept_fd;	  /* the copy of a pipe, or -1 */
	bool regular;	  /* fd can be read again */
	bool end;	  /* nothing more comes after what is in the buffer */
	char *buffer;
	size_t capacity;
	size_t next, size; /* the buffer's unread part: next..size */
	uint64_t offset;   /* of the buffer's first byte */
	size_t step;	   /* bytes to read at once */
	const struct pfs_input_maker *maker;
	void *made_of;
	const char *why; /* a sentence about the last error, or NULL */
};

/* What makes bytes: read gives 1 to room of them, 0 at the end, or a negative errno, with a
 * sentence in *why if it has one; close frees what they are made of. */
struct pfs_input_maker {
	ssize_t (*read)(void *made_of, const char **why, char *to, size_t room);
	void (*close)(void *made_of);
};

/* path "-" is standard input.  Negative errno. */
PFS_MUST_CHECK int pfs_input_open(struct pfs_input *input, const char *path);

/* Bytes that stay the caller's. */
PFS_MUST_CHECK int pfs_input_open_memory(struct pfs_input *input, const void *data, size_t size);

/* Bytes that are made while they are read; what they are made of is the input's from now on. */
void pfs_input_open_made(struct pfs_input *input, const char *name,
			 const struct pfs_input_maker *maker, void *made_of);
void pfs_input_close(struct pfs_input *input);

/* From now on everything can be read again, also what lies in the buffer; -ESPIPE if something has
 * left it. */
PFS_MUST_CHECK int pfs_input_keep(struct pfs_input *input);

/* The same, and reads everything at once: the input is a regular file then. */
PFS_MUST_CHECK int pfs_input_keep_all(struct pfs_input *input);

/* Makes at least `wanted` bytes lie in the buffer, fewer only at the end of the input; returns how
 * many there are from input->buffer + input->next on, or a negative errno. */
PFS_MUST_CHECK ssize_t pfs_input_need(struct pfs_input *input, size_t wanted);

/* Where the next byte comes from, and going back there. */
uint64_t pfs_input_tell(const struct pfs_input *input);
PFS_MUST_CHECK int pfs_input_seek(struct pfs_input *input, uint64_t offset);

/* The next record and the delimiter's place after it: 1, or 0 at the end.  *record is valid until
 * the next call.  A last record without its delimiter counts.  -EMSGSIZE. */
PFS_MUST_CHECK int pfs_input_record(struct pfs_input *input, const char **record, size_t *len,
				    char delimiter);

#endif
