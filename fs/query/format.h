/* SPDX-License-Identifier: MIT */
/* fs/query/format.h - what those share who write text into a sink: gathered output and quoting.
 * Callers of the query layer want answer.h. */
#ifndef PFS_FS_QUERY_FORMAT_H
#define PFS_FS_QUERY_FORMAT_H

#include "fs/query/answer.h"

/* Output gathered into large writes; after an error the rest is dropped. */
struct pfs_out {
	const struct pfs_sink *sink;
	int error;
	size_t used;
	uint64_t rows;
	size_t path; /* the column that lists of paths are made of */
	char data[64 << 10];
};
void pfs_out_bytes(struct pfs_out *out, const void *bytes, size_t size);
void pfs_out_text(struct pfs_out *out, const char *text);
void pfs_out_flush(struct pfs_out *out);

void pfs_tsv_value(struct pfs_out *out, const struct pfs_query_value *value);

/* The bytes of the UTF-8 character at text (size > 0), 0 if there is none: overlong forms, surrogates
 * and what is beyond U+10FFFF are none. */
size_t pfs_utf8_length(const char *text, size_t size);

/* A JSON string with its quotes; false if a byte of it was no UTF-8 and became U+FFFD. */
bool pfs_out_json(struct pfs_out *out, const char *bytes, size_t size);

/* PFS_FORMAT_TEXT of pfs_format_rows. */
PFS_MUST_CHECK int pfs_format_aligned(struct pfs_query *query, const struct pfs_sink *sink,
				      struct pfs_query_error *error);

/* Fills in why an answer could not be written; returns rc. */
int pfs_format_failed(struct pfs_query_error *error, int rc);

#endif
