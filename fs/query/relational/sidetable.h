/* SPDX-License-Identifier: MIT */
/* fs/query/relational/sidetable.h - side tables as tables of the operators: a copy of each one's
 * columns, made when a statement first names it, and shared.  Rows that change later are changed in it if nobody uses
 * it, else it is made anew.
 *
 * Threads: any number of callers of one cache; what is shared is read only. */
#ifndef PFS_FS_QUERY_RELATIONAL_SIDETABLE_H
#define PFS_FS_QUERY_RELATIONAL_SIDETABLE_H

#include "fs/query/relational/bound.h"

struct pfs_side_column {
	char *name;
	enum pfs_class class;
	enum pfs_affinity affinity;
	enum pfs_collation collation;
	bool can_be_null;
	const char *why_not; /* its values are of several classes, or blobs; NULL: the operators
				have it */
};

struct pfs_side_table {
	char *name; /* as it is declared */
	struct pfs_side_column *columns;
	struct pfs_table table; /* a column for each; those with why_not are nothing */
};

/* The table of a connection's copy, which is filled.  *out is to be put back.  -ENOENT: no side
 * table of that name; -EOPNOTSUPP: it has generated columns, or too many rows; -ENOMEM. */
PFS_MUST_CHECK int pfs_side_table_get(const struct pfs_side_table **out, struct pfs_query *query,
				      const char *name);
void pfs_side_table_put(struct pfs_queries *queries, const struct pfs_side_table *table);

/* The queries' cache of them, closed when no statement is left. */
void pfs_side_tables_close(struct pfs_queries *queries);

#endif
