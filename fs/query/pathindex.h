/* SPDX-License-Identifier: MIT */
/* fs/query/pathindex.h - CREATE INDEX name ON nodes(path), and DROP INDEX name.
 *
 * SQLite does not see these statements: it has no indexes of virtual tables. However many such
 * indexes have been made, the tree has one index of paths (fs/nodes/index_paths.h), or none. The
 * store keeps their names, which differ from those of tables and of tables' indexes, with upper and
 * lower case being equal. */
#ifndef PFS_FS_QUERY_PATHINDEX_H
#define PFS_FS_QUERY_PATHINDEX_H

#include "fs/query/internal.h"

/* If the statement is one of the two, runs it, durably, and sets *is_one. -EINVAL: it cannot be
 * done; -EACCES: it is one of them, and may_change is false; what the store returns. */
PFS_MUST_CHECK int pfs_path_index_statement(struct pfs_query *query, bool *is_one, bool may_change,
					    struct pfs_sql_problem *problem);

/* Checks a statement that makes a table or an index; pfs_sides_hold is held. -EINVAL: it uses the
 * name of a path index. *is_done: the name is used, but the statement says IF NOT EXISTS. */
PFS_MUST_CHECK int pfs_path_index_leaves_name(struct pfs_tree *tree, bool *is_done, const char *sql,
					      size_t len, struct pfs_sql_problem *problem);
/* Checks the name of a table, which may replace another table. -EEXIST: an index has it. */
PFS_MUST_CHECK int pfs_path_index_leaves(struct pfs_tree *tree, const char *table);

/* Calls fn with each name, in byte order, until it returns non-zero, which is returned. Names of a
 * newer program's indexes, which nothing here follows, are left out. */
PFS_MUST_CHECK int pfs_path_index_names(struct pfs_tree *tree,
					int (*fn)(void *arg, const char *name, size_t len),
					void *arg);

#endif
