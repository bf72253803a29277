/* SPDX-License-Identifier: MIT */
/* base/csv.h - reads the records of a CSV text (RFC 4180; any bytes; lines end with LF or CRLF),
 * and writes fields.
 *
 * A field that starts with a quote ends with one; elsewhere a quote is an ordinary byte. A byte
 * order mark at the start is skipped. Empty lines are skipped unless `empty_lines` is set.
 *
 * Fields are separated by commas or another byte. In the tables of the NCBI a tab, a bar and a tab
 * separate them, each line ends with a tab and a bar, and quotes have no meaning. Threads: one
 * thread at a time uses a reader. */
#ifndef PFS_BASE_CSV_H
#define PFS_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/input.h"

#define PFS_CSV_NCBI "\t|\t" /* the one delimiter of several bytes */

struct pfs_csv_field {
	const char *text;
	size_t len;
	bool quoted;
};

struct pfs_csv {
	struct pfs_input_stream *input;
	const char *delimiter; /* one byte, or PFS_CSV_NCBI; NULL: a comma */
	bool empty_lines; /* each is a record of one empty field */
	struct pfs_csv_field *fields; /* of the last record; valid until the next call */
	size_t n_fields;
	uint64_t offset; /* of the record's first byte, in the input */
	/* The number of the record's first line, from 1; after an error, of the wrong line. */
	uint64_t line;
	/* private */
	uint64_t next_line;
	size_t fields_capacity;
	char *text;
	size_t size, capacity;
};

/* Reads the next record. Returns 1, or 0 at the end. -EBADMSG: the input is not CSV, and *why is a
 * sentence that says why; the errors of reading the input. */
PFS_MUST_CHECK int pfs_csv_next(struct pfs_csv *csv, const char **why);

/* Goes to the record that starts at `offset`, and counts lines from 1 there. Errors as
 * pfs_input_seek. */
PFS_MUST_CHECK int pfs_csv_seek(struct pfs_csv *csv, uint64_t offset);
void pfs_csv_free(struct pfs_csv *csv);

/* Writes a field, in quotes if the reader would not read it back otherwise. */
void pfs_csv_print(FILE *out, char delimiter, const void *text, size_t len);

#endif
