/* SPDX-License-Identifier: MIT */
/* fs/query/relational/change.h - INSERT, UPDATE and DELETE of rows of a side table: the operators
 * find the rows, and what they become is said row by row, for who applies it (fs/tree/sides.h). */
#ifndef PFS_FS_QUERY_RELATIONAL_CHANGE_H
#define PFS_FS_QUERY_RELATIONAL_CHANGE_H

#include "fs/query/internal.h"
#include "meta/siderows.h"

/* Finds what the statement, which SQLite has prepared, changes; nothing is changed yet. rows is
 * empty at first, and the caller's to be finished; the bytes that it has room for are charged to
 * the query's account, and the caller's to be discharged. pfs_sides_hold is held, and the
 * connection refreshed.  -EOPNOTSUPP: SQLite has to run it, with parts or without, be it that the
 * table has constraints, that a value does not fit, that an index finds few rows sooner, or that
 * others have waited for the tree whose nodes it reads: *why, a constant, says it; -EINTR. */
PFS_MUST_CHECK int pfs_relational_change(struct pfs_query *query, struct pfs_side_rows *rows,
					 const char **why);

/* The rows have been applied: the columns take them over at once, while the changes are at hand.
 * The connection is refreshed. */
void pfs_relational_changed(struct pfs_query *query, uint32_t table);

#endif
