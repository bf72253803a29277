/* SPDX-License-Identifier: MIT */
/* fs/query/relational/printed.h - rows of values as printf() prints them, with SQLite's results. */
#ifndef PFS_FS_QUERY_RELATIONAL_PRINTED_H
#define PFS_FS_QUERY_RELATIONAL_PRINTED_H

#include "fs/query/relational/bound.h"
#include "fs/query/relational/textchain.h"

/* A format, and vectors of the values that it prints: integers and reals for conversions of
 * numbers, texts and integers for %s. */
struct pfs_printing {
	const struct pfs_sql_format *format;
	struct pfs_vector values[PFS_TERM_ARGS_MAX];
};

/* Returns true if the printing takes its vectors; false: %s is of reals, which SQLite knows how to
 * print. */
bool pfs_printing_takes(const struct pfs_printing *printing);
/* Prints row `at` into the buffer. -ENOMEM; -EOPNOTSUPP: the text is long. */
PFS_MUST_CHECK int pfs_printing_row(const struct pfs_printing *printing,
				    struct pfs_text_buffer *out, uint64_t at);
/* Rows with equal values have equal hashes. */
uint64_t pfs_printing_hash(const struct pfs_printing *printing, uint64_t at);
/* Returns true if both rows have the same values, and so print the same. */
bool pfs_printing_same(const struct pfs_printing *printing, uint64_t a, uint64_t b);

#endif
