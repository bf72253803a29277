/* SPDX-License-Identifier: MIT */
/* fs/query/times.h - dates in statements: a text literal that is compared with mtime, atime, ctime or
 * subtree_mtime and reads as ISO 8601 becomes its number of nanoseconds.
 *
 * Read: YYYY-MM, YYYY-MM-DD, and after "T" or a blank hh:mm, hh:mm:ss, hh:mm:ss.fraction; then Z,
 * +hh, +hh:mm, -hh:mm or nothing, which is UTC.  Compared: =, ==, !=, <>, <, <=, >, >=, IS, IS NOT, on
 * either side; [NOT] BETWEEN ... AND ...; [NOT] IN (...); with the column or its MAX or MIN.  By name
 * alone: a column of that name of another table is meant too. */
#ifndef PFS_FS_QUERY_TIMES_H
#define PFS_FS_QUERY_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* False: not such a time, or beyond 64 bits of nanoseconds. */
bool pfs_time_parse(int64_t *nanoseconds, const char *text, size_t len);

struct pfs_edit { /* of the new text: where something was replaced */
	size_t at, old_at, len, old_len;
};

struct pfs_edits {
	char *text; /* the statement as it is now; not terminated */
	size_t len, capacity;
	size_t copied; /* so much of the old one is in it */
	struct pfs_edit *edits;
	size_t n, edits_capacity;
};

/* -ENOMEM.  finish in any case. */
PFS_MUST_CHECK int pfs_times_replace(struct pfs_edits *out, const char *sql, size_t len);
void pfs_edits_finish(struct pfs_edits *edits);

/* Copies the old text up to old_at, and puts n bytes in place of old_len of it; copies what is left.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_edits_replace(struct pfs_edits *edits, const char *old, size_t old_at,
				     size_t old_len, const char *bytes, size_t n);
PFS_MUST_CHECK int pfs_edits_end(struct pfs_edits *edits, const char *old, size_t len);

/* Where an offset of the new text is in the old. */
long pfs_edits_offset(const struct pfs_edits *edits, long offset);

#endif
