/* SPDX-License-Identifier: MIT */
/* fs/query/pathindex.h - CREATE INDEX name ON nodes(path), and DROP INDEX name.
 *
 * SQLite does not see them: it has no indexes of virtual tables. However many names there are, the
 * tree has one index of paths (fs/nodes/index_paths.h), or none. Their names differ from those of
 * tables and of tables' indexes, whatever their capitals; the store keeps them. */
#ifndef PFS_FS_QUERY_PATHINDEX_H
#define PFS_FS_QUERY_PATHINDEX_H

#include "fs/query/internal.h"

/* Runs the statement, whole and durably, if it is one of the two, and sets *is_one. -EINVAL: it
 * cannot be done; -EACCES: it is one, and may_change is false; what the store returns. */
PFS_MUST_CHECK int pfs_path_index_statement(struct pfs_query *query, bool *is_one, bool may_change,
					    struct pfs_sql_problem *problem);

/* Checks a statement that makes a table or an index, pfs_sides_hold being held. -EINVAL: it uses
 * the name of a path index. *is_done: it was only to be made if there is none of its name. */
PFS_MUST_CHECK int pfs_path_index_leaves_name(struct pfs_tree *tree, bool *is_done, const char *sql,
					      size_t len, struct pfs_sql_problem *problem);
/* Checks the name of a table in the same way. -EEXIST. */
PFS_MUST_CHECK int pfs_path_index_leaves(struct pfs_tree *tree, const char *table);

/* Calls fn with each name, in byte order, until it returns non-zero, which is returned. */
PFS_MUST_CHECK int pfs_path_index_names(struct pfs_tree *tree,
					int (*fn)(void *arg, const char *name, size_t len),
					void *arg);

#endif
