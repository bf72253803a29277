/* SPDX-License-Identifier: MIT */
/* fs/query/sides.h - side tables in connections, and what statements do to them; inside of
 * fs/query. */
#ifndef PFS_FS_QUERY_SIDES_H
#define PFS_FS_QUERY_SIDES_H

#include "fs/query/internal.h"

/* Tells the connection which side tables there are now; their rows are read when a statement names
 * them. If they are not the same as before, a prepared statement is finished. The connection's
 * statement reads the tables as they are at this moment. -ENOMEM; the store's errors. */
PFS_MUST_CHECK int pfs_sides_refresh(struct pfs_connection *connection, struct pfs_tree *tree);
/* Returns true if pfs_sides_refresh would find the same tables as last time. */
bool pfs_sides_are_known(const struct pfs_connection *connection, const struct pfs_tree *tree);

/* Declares in the connection's database each table that the text may name.  -EAGAIN: tables have
 * changed since refresh; -EINTR. */
PFS_MUST_CHECK int pfs_sides_declare(struct pfs_query *query, const char *text, size_t len);

/* Fills SQLite's copies of the tables that the prepared statement names, with their rows at the
 * time of pfs_sides_refresh; other tables cost nothing. -EAGAIN: a table has changed since, and all
 * its rows would be needed. */
PFS_MUST_CHECK int pfs_sides_fill(struct pfs_connection *connection, struct pfs_tree *tree);

/* Keeps what a statement that has run (pfs_sql_run) did to side tables, or undoes it. Changed rows
 * are durable with the next commit; all other changes are when this returns. pfs_sides_hold is
 * held. */
PFS_MUST_CHECK int pfs_sides_keep(struct pfs_query *query, struct pfs_sql_problem *problem);

/* Returns the error of pfs_sides_commit or pfs_sides_apply. -ENOSPC: the query will say that the
 * store has no room; else it would be temporary files that have none. */
int pfs_sides_tell_space(struct pfs_query *query, int error);

/* sidechange.c: changes rows of a side table as the prepared statement says, by the operators.
 * pfs_sides_hold is held, and the connection is refreshed. -EOPNOTSUPP: SQLite has to do it. */
PFS_MUST_CHECK int pfs_sides_change(struct pfs_query *query, struct pfs_sql_problem *problem);

/* Returns true if the two are the name of one table: A to Z count as a to z. */
bool pfs_side_is_named(const char *name, const char *other);

/* connections.c: lends a connection until pfs_connection_put. Its `nodes` has the attributes in
 * `attrs`. plain_patterns: the statement's patterns are plain (pfs_patterns_are_plain). Its copies
 * of side tables are the viewer's own (NULL: those of viewers who see all nodes). -EAGAIN: there
 * are other attributes by now; -ENOMEM. */
PFS_MUST_CHECK int pfs_connection_get(struct pfs_connection **out, struct pfs_queries *queries,
				      const struct pfs_attr_visibility *attrs, bool plain_patterns,
				      const struct pfs_viewer *viewer);
void pfs_connection_put(struct pfs_queries *queries, struct pfs_connection *connection);

#endif
