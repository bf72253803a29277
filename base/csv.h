/* SPDX-License-Identifier: MIT */
/* base/csv.h - records of a CSV text: RFC 4180, raw bytes, LF or CRLF.
 *
 * A field that starts with a quote ends with one; elsewhere a quote is an ordinary byte.  Empty
 * lines are passed over unless they are asked for, and so is a byte order mark at the start.
 *
 * Another byte than a comma may stand between fields.  The tables of the NCBI have a bar between
 * two tabs there, a tab and a bar before each line's end, and know no quotes. */
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
	struct pfs_input *input;
	const char *delimiter; /* one byte, or PFS_CSV_NCBI; NULL: a comma */
	bool empty_lines; /* are records of one empty field, too */
	struct pfs_csv_field *fields; /* of the last record; valid until the next call */
	size_t n_fields;
	uint64_t offset; /* in the input, of the record's first byte */
	uint64_t line;	 /* of the record's first byte, or where it is wrong; 1 is the first */
	/* private */
	uint64_t next_line;
	size_t fields_capacity;
	char *text;
	size_t size, capacity;
};

/* The next record: 1, or 0 at the end.  -EBADMSG: not CSV, a sentence in *why; else what reading
 * the input says. */
PFS_MUST_CHECK int pfs_csv_next(struct pfs_csv *csv, const char **why);

/* Goes back to a record's offset; line numbers count from 1 there. */
PFS_MUST_CHECK int pfs_csv_seek(struct pfs_csv *csv, uint64_t offset);
void pfs_csv_free(struct pfs_csv *csv);

/* Writes a field, quoted where it has to be among others that the byte stands between. */
void pfs_csv_print(FILE *out, char delimiter, const void *text, size_t len);

#endif
