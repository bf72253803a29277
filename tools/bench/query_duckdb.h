/* SPDX-License-Identifier: MIT */
/* tools/bench/query_duckdb.h - the same statements by DuckDB's command line program, where it is
 * installed: over the rows in a table in memory, timed by itself, to the millisecond. */
#ifndef PFS_TOOLS_BENCH_QUERY_DUCKDB_H
#define PFS_TOOLS_BENCH_QUERY_DUCKDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* A CSV file of rows, text without bytes beyond ASCII: DuckDB wants UTF-8, names have any bytes. */
void pfs_duckdb_put_text(FILE *csv, const char *text, size_t size, bool last);
void pfs_duckdb_put_number(FILE *csv, int64_t number, bool last);
void pfs_duckdb_put_null(FILE *csv, bool last);

/* Runs `setup`, then each of n statements 1 + runs times in one process; ms[i * runs + k] is how long
 * the i-th took, its first run left out.  Files are made in folder and removed.  -EIO, having said
 * which statement it stopped at. */
PFS_MUST_CHECK int pfs_duckdb_run(double *ms, const char *verb, const char *folder,
				  const char *setup, char *const *statements, size_t n,
				  uint64_t runs);

#endif
