/* SPDX-License-Identifier: MIT */
/* tools/bench/peer.h - SQLite as anybody would use it: a database in memory, a table, indexes,
 * statements. The yardstick of statements over a tree; for benchmarks only.
 *
 * Threads: one at a time. */
#ifndef PFS_TOOLS_BENCH_PEER_H
#define PFS_TOOLS_BENCH_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "meta/sql/sqlquery.h"

/* Opens a library in peers/, beside the program or a folder above it, as tools/setup bench brings
 * it, or one of the system's; for dlclose. NULL: there is none. */
void *pfs_peer_library(const char *name);

/* Finds the functions of a library, which may be NULL. Returns false if it lacks one. */
struct pfs_peer_function {
	const char *name;
	void **at;
};
bool pfs_peer_functions(void *library, const struct pfs_peer_function *functions, size_t n);

struct pfs_peer;

/* Opens an empty database. *out is NULL on failure. -ENOMEM. */
PFS_MUST_CHECK int pfs_peer_open(struct pfs_peer **out);
void pfs_peer_close(struct pfs_peer *peer); /* NULL is allowed */

/* Runs a statement to its end and reads all of its values; *rows (may be NULL) is how many rows it
 * had. -EINVAL: SQLite does not take it, which is logged. */
PFS_MUST_CHECK int pfs_peer_run(struct pfs_peer *peer, uint64_t *rows, const char *sql);

/* As pfs_peer_run, without preparing it again if it is the one that was run so last. */
PFS_MUST_CHECK int pfs_peer_run_kept(struct pfs_peer *peer, uint64_t *rows, const char *sql);

/* Runs the statement that was first given, with `n` values for its parameters, for every row to
 * insert; NULL ends it. */
PFS_MUST_CHECK int pfs_peer_insert(struct pfs_peer *peer, const char *sql,
				   const struct pfs_sql_value *values, size_t n);

#endif
