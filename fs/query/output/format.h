/* SPDX-License-Identifier: MIT */
/* fs/query/output/format.h - gathered output and quoting, for the writers of all text formats.
 * Callers of the query layer want answer.h. */
#ifndef PFS_FS_QUERY_OUTPUT_FORMAT_H
#define PFS_FS_QUERY_OUTPUT_FORMAT_H

#include "fs/query/output/answer.h"

/* Output that is gathered, and written to a sink in large pieces. Without a sink it is kept in one
 * piece. After an error all further output is dropped. */
struct pfs_out {
	const struct pfs_sink *sink; /* NULL: the output is kept */
	int error;
	char *data;
	size_t used, capacity; /* at least PFS_OUT_SIZE */
	bool is_lent; /* the caller owns `data`; output beyond it is moved to memory of its own */
	uint64_t rows;
};
#define PFS_OUT_SIZE ((size_t)64 << 10)

PFS_MUST_CHECK int pfs_out_init(struct pfs_out *out, const struct pfs_sink *sink); /* -ENOMEM */
/* Keeps the output in `size` bytes that the caller owns, as long as it fits. */
void pfs_out_init_lent(struct pfs_out *out, char *data, size_t size);
void pfs_out_finish(struct pfs_out *out); /* without flushing */
void pfs_out_bytes(struct pfs_out *out, const void *bytes, size_t size);
void pfs_out_text(struct pfs_out *out, const char *text);
PFS_PRINTF(2, 3)
void pfs_out_print(struct pfs_out *out, const char *format, ...); /* at most 511 bytes */
void pfs_out_flush(struct pfs_out *out); /* to the sink */

/* Returns where `size` bytes may be put, PFS_OUT_SIZE at most; the caller adds those that were put
 * to `used`. */
void pfs_out_make_room(struct pfs_out *out, size_t size);
static inline char *pfs_out_room(struct pfs_out *out, size_t size)
{
	if (size > out->capacity - out->used)
		pfs_out_make_room(out, size);
	return out->data + out->used;
}

static inline void pfs_out_char(struct pfs_out *out, char c)
{
	*pfs_out_room(out, 1) = c;
	out->used++;
}

void pfs_tsv_value(struct pfs_out *out, const struct pfs_sql_value *value);
void pfs_tsv_bytes(struct pfs_out *out, const char *bytes, size_t size); /* escapes them */
/* Writes rows of a portion, until there are `size` bytes; returns how many rows. */
size_t pfs_tsv_part(struct pfs_out *out, const struct pfs_portion *part, size_t n_columns,
		    size_t size);

/* Returns how many bytes the UTF-8 character at text (size > 0) has; 0 if there is none: overlong
 * forms, surrogates and what is beyond U+10FFFF are none. */
size_t pfs_utf8_length(const char *text, size_t size);

/* Writes a JSON string with its quotes; returns false if a byte of it was no UTF-8 and became
 * U+FFFD. */
bool pfs_out_json(struct pfs_out *out, const char *bytes, size_t size);
/* Writes "name":value and, where the value is no UTF-8, "name_bytes": in base64. */
void pfs_json_member(struct pfs_out *out, const char *name, const struct pfs_sql_value *value);

/* Writes the rows of a query, some at a time. answer: the answer whose sink `sink` is, so that many
 * rows are written into its memory directly; NULL: the sink is none of an answer's. -ENOMEM. */
struct pfs_writing;
PFS_MUST_CHECK int pfs_writing_open(struct pfs_writing **out, struct pfs_query *query,
				    enum pfs_format format, const struct pfs_sink *sink,
				    struct pfs_answer *answer);
void pfs_writing_close(struct pfs_writing *writing); /* NULL is allowed */
/* Writes some rows. Returns 1 if there may be more, 0 if all is written; errors as of
 * pfs_format_rows. */
PFS_MUST_CHECK int pfs_writing_step(struct pfs_writing *writing, struct pfs_query_error *error);

/* Writes PFS_FORMAT_TEXT, for pfs_format_rows. */
PFS_MUST_CHECK int pfs_format_aligned(struct pfs_query *query, const struct pfs_sink *sink,
				      struct pfs_query_error *error);

/* Fills in *error for an answer that could not be written; returns failure. */
int pfs_format_failed(struct pfs_query_error *error, int failure);

#endif
