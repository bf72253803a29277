/* SPDX-License-Identifier: MIT */
/* tools/bench/duckdb.h - DuckDB as a yardstick of statements: a database in memory, by its shared
 * library, which `tools/setup bench` brings.
 *
 * Threads: one at a time; DuckDB uses as many as the machine has. */
#ifndef PFS_TOOLS_BENCH_DUCKDB_H
#define PFS_TOOLS_BENCH_DUCKDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

struct pfs_duckdb;

/* Opens a database. The library is $LIBDUCKDB, else peers/libduckdb.so in this program's own folder
 * or the one above it, else the one that the loader finds. *out is NULL on failure. -ENOENT: there
 * is none; -ENOMEM. */
PFS_MUST_CHECK int pfs_duckdb_open(struct pfs_duckdb **out);
void pfs_duckdb_close(struct pfs_duckdb *duckdb); /* NULL is allowed */

/* Runs statements to their end, all rows of the last one made; *rows (may be NULL) that it had.
 * -EINVAL: it does not take one, which is logged. */
PFS_MUST_CHECK int pfs_duckdb_run(struct pfs_duckdb *duckdb, uint64_t *rows, const char *sql);

/* As pfs_duckdb_run; if there is one row, writes its values into `row`, with tabs between them and
 * nothing for NULL, else "". */
PFS_MUST_CHECK int pfs_duckdb_ask(struct pfs_duckdb *duckdb, uint64_t *rows, char *row, size_t size,
				  const char *sql);

/* ---- a CSV file of rows to read in ---- */

/* Text without bytes beyond ASCII: DuckDB wants UTF-8, names have any bytes. */
void pfs_duckdb_put_text(FILE *csv, const char *text, size_t size, bool last);
void pfs_duckdb_put_number(FILE *csv, int64_t number, bool last);
void pfs_duckdb_put_null(FILE *csv, bool last);

#endif
