/* SPDX-License-Identifier: MIT */
/* fs/query/sides.h - side tables in connections, and what statements do to them; inside of
 * fs/query. */
#ifndef PFS_FS_QUERY_SIDES_H
#define PFS_FS_QUERY_SIDES_H

#include "fs/query/internal.h"

/* Makes the connection know the tables that there are now, and their rows; a prepared statement is finished if
 * they are others than before. */
PFS_MUST_CHECK int pfs_sides_refresh(struct pfs_connection *connection, struct pfs_tree *tree);

/* Declares those that the text may be about.  -EAGAIN: they have changed since refresh; -EINTR. */
PFS_MUST_CHECK int pfs_sides_declare(struct pfs_query *query, const char *text, size_t len);
/* One of its tables, inside of pfs_sides_read; one that is damaged stays undeclared. */
struct pfs_sql_side;
PFS_MUST_CHECK int pfs_sides_declare_one(struct pfs_connection *connection, struct pfs_store *store,
					 const struct pfs_sql_side *side);

/* Fills those that the prepared statement names.  -EAGAIN: they have changed since refresh. */
PFS_MUST_CHECK int pfs_sides_fill(struct pfs_connection *connection, struct pfs_tree *tree);

/* The statement has run (pfs_sql_run): keeps what it did, rows until the next commit and all else durably, or undoes
 * it.  pfs_sides_hold is held. */
PFS_MUST_CHECK int pfs_sides_keep(struct pfs_connection *connection, struct pfs_tree *tree,
				  struct pfs_sql_problem *problem);

/* Names are the same whatever their capitals. */
bool pfs_side_is_named(const char *name, const char *other);

/* connections.c: a connection whose nodes have the attributes that the viewer sees, for a while, and for a
 * statement whose patterns are plain (pfs_patterns_are_plain), or are not; with no copies of side tables but the
 * viewer's own (NULL: who sees all).  -EAGAIN: there are other names by now. */
PFS_MUST_CHECK int pfs_connection_get(struct pfs_connection **out, struct pfs_queries *queries,
				      const struct pfs_attr_visibility *attrs, bool plain_patterns,
				      const struct pfs_viewer *viewer);
void pfs_connection_put(struct pfs_queries *queries, struct pfs_connection *connection);

#endif
