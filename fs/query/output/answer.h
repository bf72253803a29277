/* SPDX-License-Identifier: MIT */
/* fs/query/output/answer.h - the rows of a statement as the bytes of a file. They are kept in
 * memory while they are few, or while there is enough of it, and beyond that in an unlinked
 * temporary file; or they are text that is made as it is read (stream.h).
 *
 * Threads: one at a time writes to an answer. Any number read; while it is written to, only what is
 * there by then. */
#ifndef PFS_FS_QUERY_OUTPUT_ANSWER_H
#define PFS_FS_QUERY_OUTPUT_ANSWER_H

#include "fs/query/output/stream.h"
#include "fs/query/query.h"

enum pfs_format {
	PFS_FORMAT_TSV,	   /* header line; tab, newline, CR and backslash as \t \n \r \\; NULL empty */
	PFS_FORMAT_CSV,	   /* RFC 4180, raw bytes */
	PFS_FORMAT_JSON,   /* an array of objects; invalid bytes U+FFFD, and NAME_bytes in base64 */
	PFS_FORMAT_TEXT,   /* aligned columns, for people */
	PFS_FORMAT_PATHS,  /* the column `path`, or else the first, one a line */
	PFS_FORMAT_PATHS0, /* the same, NUL-ended */
};

/* Gets the format that is named "tsv", "csv", "json", "txt", "paths" or "paths0". -EINVAL. */
PFS_MUST_CHECK int pfs_format_by_name(enum pfs_format *format, const char *name, size_t len);

/* ---- writing rows ---- */

/* Says where bytes go; write returns 0 or a negative errno, which ends the writing. */
struct pfs_sink {
	void *arg;
	int (*write)(void *arg, const void *bytes, size_t size);
};

/* Reads the query to its end and writes every row; a restart (-EAGAIN) is passed on.  TEXT first
 * reads all rows to know their widths. */
PFS_MUST_CHECK int pfs_format_rows(struct pfs_query *query, enum pfs_format format,
				   const struct pfs_sink *sink, struct pfs_query_error *error);

/* ---- answers ---- */

struct pfs_answer;

/* Makes an empty answer, to be written to. memory: bytes that it keeps before it goes to a file in
 * $TMPDIR; limit: the most bytes in all, 0: none (-EFBIG). */
PFS_MUST_CHECK int pfs_answer_create(struct pfs_answer **out, size_t memory, uint64_t limit);
/* Lets it keep more than `memory` as long as what all answers have beyond theirs is below a budget:
 * a 32nd of the machine's memory, 512 MiB at most. */
void pfs_answer_keep_more(struct pfs_answer *answer);
void pfs_answers_set_budget(uint64_t bytes); /* sets another budget, for tests */
uint64_t pfs_answers_taken(void);	     /* of it */
/* Returns the same answer, which has to be closed once more. */
struct pfs_answer *pfs_answer_ref(struct pfs_answer *answer);
void pfs_answer_close(struct pfs_answer *answer); /* NULL is allowed */
/* The write of a sink; arg is the answer. */
int pfs_answer_write(void *arg, const void *bytes, size_t size);
void pfs_answer_truncate(struct pfs_answer *answer); /* to nothing */
/* Returns the size; 0 while it is not known: of a stream, or of an answer that still grows. */
uint64_t pfs_answer_size(const struct pfs_answer *answer);
/* Says that it is read before all of it has been written, from then on until it is told
 * otherwise. */
void pfs_answer_set_growing(struct pfs_answer *answer, bool is_growing);
uint64_t pfs_answer_made(const struct pfs_answer *answer); /* bytes that have been written */
/* True if what comes next goes there: there is no more memory for it. */
bool pfs_answer_is_in_file(const struct pfs_answer *answer);
/* Makes an empty answer, which is not written to, be read from a stream, which is its own from now
 * on; begins the stream. */
PFS_MUST_CHECK int pfs_answer_set_stream(struct pfs_answer *answer, struct pfs_stream *stream,
					 const struct pfs_stream_wait *wait);
bool pfs_answer_is_stream(const struct pfs_answer *answer);
bool pfs_answer_is_complete(const struct pfs_answer *answer);
/* Finds the size of a stream, as pfs_stream_measure does. 0, or an error as of
 * pfs_answer_read_while. */
PFS_MUST_CHECK int pfs_answer_measure(const struct pfs_answer *answer,
				      const struct pfs_stream_wait *wait);
void pfs_answer_measure_some(const struct pfs_answer *answer); /* as pfs_stream_measure_some */
/* Reads what is there, as pfs_answer_read; -EAGAIN: some of it has to be made first. */
PFS_MUST_CHECK ssize_t pfs_answer_read_there(struct pfs_answer *answer, void *data, size_t size,
					     uint64_t offset);
/* As pfs_answer_read; ends with -EINTR where nobody waits any more for what is still to be made. */
PFS_MUST_CHECK ssize_t pfs_answer_read_while(struct pfs_answer *answer, void *data, size_t size,
					     uint64_t offset, const struct pfs_stream_wait *wait);
/* Reads; returns the number of bytes, fewer than `size` only at the end of what has been
 * written. */
PFS_MUST_CHECK ssize_t pfs_answer_read(struct pfs_answer *answer, void *data, size_t size,
				       uint64_t offset);

/* Returns where the bytes from `offset` on are in memory, *size of them, at most as many as were
 * asked for; valid until the answer is written to, truncated or closed. NULL: it ends before, or
 * they are in the file. */
const char *pfs_answer_view(const struct pfs_answer *answer, size_t *size, uint64_t offset);

/* lend returns a chunk of the answer's memory, PFS_ANSWER_CHUNK bytes, which any thread may write
 * to while nobody calls anything else of the answer; NULL: it is to be written as usual. add says
 * that bytes of a chunk that was lent come next. What is not added is wasted until the answer is
 * truncated or closed. */
#define PFS_ANSWER_CHUNK ((size_t)2 << 20)
char *pfs_answer_lend(struct pfs_answer *answer);
PFS_MUST_CHECK int pfs_answer_add(struct pfs_answer *answer, const char *bytes, size_t size);

/* Runs the statement to its end, again if it has to restart, into an empty answer (making.c). */
PFS_MUST_CHECK int pfs_answer_run(struct pfs_answer *answer, struct pfs_queries *queries,
				  const struct pfs_query_scope *scope, const char *sql, size_t len,
				  enum pfs_format format, struct pfs_query_error *error);

#endif
