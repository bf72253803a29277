/* SPDX-License-Identifier: MIT */
/* fs/query/output/answer.h - the rows of a statement as the bytes of a file. The bytes are in
 * memory while they are few, or while there is enough memory; further ones are in an unlinked
 * temporary file. Or they are text that is made as it is read (stream.h).
 *
 * Threads: one at a time writes to an answer. Any number may read, meanwhile too, bytes that have
 * been written. */
#ifndef PFS_FS_QUERY_OUTPUT_ANSWER_H
#define PFS_FS_QUERY_OUTPUT_ANSWER_H

#include "fs/query/output/stream.h"
#include "fs/query/query.h"

enum pfs_format {
	PFS_FORMAT_TSV, /* header line; tab, newline, CR and backslash as \t \n \r \\; NULL empty */
	PFS_FORMAT_CSV, /* RFC 4180, raw bytes */
	PFS_FORMAT_JSON,   /* an array of objects; invalid bytes U+FFFD, and NAME_bytes in base64 */
	PFS_FORMAT_TEXT,   /* aligned columns, for people */
	PFS_FORMAT_PATHS,  /* the column `path`, or else the first column, a value a line */
	PFS_FORMAT_PATHS0, /* as PATHS, each value ended by a NUL */
};

/* Gets the format that is named "tsv", "csv", "json", "txt", "paths" or "paths0". -EINVAL. */
PFS_MUST_CHECK int pfs_format_by_name(enum pfs_format *format, const char *name, size_t len);

/* ---- writing rows ---- */

/* Says where bytes go; write returns 0 or a negative errno, which ends the writing. */
struct pfs_sink {
	void *arg;
	int (*write)(void *arg, const void *bytes, size_t size);
};

/* Reads the query to its end and writes every row. Returns -EAGAIN if the query restarts. TEXT
 * first reads all rows to know their widths. */
PFS_MUST_CHECK int pfs_format_rows(struct pfs_query *query, enum pfs_format format,
				   const struct pfs_sink *sink, struct pfs_query_error *error);

/* ---- answers ---- */

struct pfs_answer;

/* Makes an empty answer, to be written to. memory: bytes that it keeps before it goes to a file in
 * $TMPDIR; limit: the most bytes in all, 0: none (-EFBIG). */
PFS_MUST_CHECK int pfs_answer_create(struct pfs_answer **out, size_t memory, uint64_t limit);
/* Lets the answer have more memory than `memory`, as long as what all answers have beyond their own
 * is below a budget: a 32nd of the machine's memory, 512 MiB at most. */
void pfs_answer_keep_more(struct pfs_answer *answer);
void pfs_answers_set_budget(uint64_t bytes); /* sets another budget, for tests */
uint64_t pfs_answers_taken(void);	     /* returns how many bytes of the budget are in use */
/* Returns the same answer, which has to be closed once more. */
struct pfs_answer *pfs_answer_ref(struct pfs_answer *answer);
void pfs_answer_close(struct pfs_answer *answer); /* NULL is allowed */
/* The function `write` of a sink; arg is the answer. */
int pfs_answer_write(void *arg, const void *bytes, size_t size);
void pfs_answer_truncate(struct pfs_answer *answer); /* to nothing */
/* Returns the size; 0 while it is not known: of a stream, or of an answer that still grows. */
uint64_t pfs_answer_size(const struct pfs_answer *answer);
/* is_growing: the answer may be read before all of it has been written. */
void pfs_answer_set_growing(struct pfs_answer *answer, bool is_growing);
uint64_t pfs_answer_made(const struct pfs_answer *answer); /* bytes that have been written */
/* Returns true if the next bytes go to the file, as there is no more memory for them. */
bool pfs_answer_is_in_file(const struct pfs_answer *answer);
/* Makes an empty answer, which is not written to, a stream's: reads get the stream's text. The
 * answer owns the stream, and begins it (pfs_stream_begin). */
PFS_MUST_CHECK int pfs_answer_set_stream(struct pfs_answer *answer, struct pfs_stream *stream,
					 const struct pfs_stream_wait *wait);
bool pfs_answer_is_stream(const struct pfs_answer *answer);
bool pfs_answer_is_complete(const struct pfs_answer *answer);
/* Finds the size of a stream, as pfs_stream_measure does. Errors are those of
 * pfs_answer_read_while. */
PFS_MUST_CHECK int pfs_answer_measure(const struct pfs_answer *answer,
				      const struct pfs_stream_wait *wait);
void pfs_answer_measure_some(const struct pfs_answer *answer); /* as pfs_stream_measure_some */
/* As pfs_answer_read; -EAGAIN: some of the bytes have to be made first. */
PFS_MUST_CHECK ssize_t pfs_answer_read_there(struct pfs_answer *answer, void *data, size_t size,
					     uint64_t offset);
/* As pfs_answer_read; returns -EINTR if `wait` says that no reader waits any more, and bytes are
 * still to be made. */
PFS_MUST_CHECK ssize_t pfs_answer_read_while(struct pfs_answer *answer, void *data, size_t size,
					     uint64_t offset, const struct pfs_stream_wait *wait);
/* Reads; returns the number of bytes, fewer than `size` only at the end of what has been
 * written. */
PFS_MUST_CHECK ssize_t pfs_answer_read(struct pfs_answer *answer, void *data, size_t size,
				       uint64_t offset);

/* Returns where the bytes from `offset` on are in memory. *size is how many are wanted, and then
 * how many there are. They are valid until the answer is written to, truncated or closed. NULL: the
 * answer ends before `offset`, or the bytes are in the file. */
const char *pfs_answer_view(const struct pfs_answer *answer, size_t *size, uint64_t offset);

/* pfs_answer_lend returns a chunk of the answer's memory, PFS_ANSWER_CHUNK bytes, which any thread
 * may fill; no other function is called with the answer meanwhile. NULL: there is none, and bytes
 * are written by pfs_answer_write. pfs_answer_add says that these bytes, in a lent chunk, are the
 * answer's next. Bytes of a lent chunk that are not added are wasted until the answer is truncated
 * or closed. */
#define PFS_ANSWER_CHUNK ((size_t)2 << 20)
char *pfs_answer_lend(struct pfs_answer *answer);
PFS_MUST_CHECK int pfs_answer_add(struct pfs_answer *answer, const char *bytes, size_t size);

/* Runs the statement to its end into an empty answer; if it restarts, runs it again (making.c). */
PFS_MUST_CHECK int pfs_answer_run(struct pfs_answer *answer, struct pfs_queries *queries,
				  const struct pfs_query_scope *scope, const char *sql, size_t len,
				  enum pfs_format format, struct pfs_query_error *error);

#endif
