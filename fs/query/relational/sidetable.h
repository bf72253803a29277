/* SPDX-License-Identifier: MIT */
/* fs/query/relational/sidetable.h - side tables as tables of the operators: a copy of each one's
 * columns, made when a statement first names it, and shared.  Rows that change later are changed in
 * it if nobody uses it, else it is made anew.
 *
 * Threads: any number of callers of one cache; what is shared is read only. */
#ifndef PFS_FS_QUERY_RELATIONAL_SIDETABLE_H
#define PFS_FS_QUERY_RELATIONAL_SIDETABLE_H

#include "fs/query/relational/bound.h"
#include "meta/store.h"

struct pfs_side_column {
	char *name;
	enum pfs_class class;
	enum pfs_affinity affinity;
	enum pfs_collation collation;
	bool can_be_null, is_not_null; /* by its values; as it is declared */
	bool is_number; /* the row's number by another name */
	bool is_real;	/* its affinity, which is numeric, makes reals of integers; else integers of
			   reals that are whole */
	bool is_indexed; /* SQLite's copy has an index of all rows that begins with it */
	const char *why_not; /* its values are of several classes, or blobs; NULL: the operators
				have it */
};

struct pfs_side_table {
	char *name; /* as it is declared */
	uint32_t id; /* the store's */
	struct pfs_side_column *columns;
	struct pfs_table table; /* a column for each; those with why_not are nothing */
};

/* The table as it was when the connection was refreshed (pfs_sides_refresh).  *out is to be put
 * back.  -ENOENT: no side table of that name; -EOPNOTSUPP: it has generated columns; -E2BIG: more
 * rows than the statement has memory for; -EAGAIN: it has changed since; -ENOMEM. */
PFS_MUST_CHECK int pfs_side_table_get(const struct pfs_side_table **out, struct pfs_query *query,
				      const char *name);
void pfs_side_table_put(struct pfs_queries *queries, const struct pfs_side_table *table);

/* The number of a row, and the greatest of all (0: there is none). */
int64_t pfs_side_table_number(const struct pfs_side_table *table, uint32_t row);
int64_t pfs_side_table_last(const struct pfs_side_table *table);
/* The value of a row's column that has no why_not; bytes are the table's. */
void pfs_side_table_cell(const struct pfs_side_table *table, struct pfs_cell *out, uint32_t row,
			 size_t column);
/* Returns true if SQLite would keep that value in the column as it is. */
bool pfs_side_column_keeps(const struct pfs_side_column *column, const struct pfs_cell *cell);

/* ---- rows by their values ---- */

/* Keys, which are in the order of a column's numbers. */
struct pfs_side_range {
	uint64_t low, high;
};

/* Leaves out what is not `op` the constant, a number; op is =, IS, <, <=, > or >=.  Something
 * beside it may stay. */
void pfs_side_range_narrow(struct pfs_side_range *range, const struct pfs_side_table *table,
			   size_t column, enum pfs_op op, const struct pfs_constant *constant);
bool pfs_side_table_is_indexed(const struct pfs_side_table *table,
			       size_t column); /* find has been asked before */
/* Finds rows among which all are whose number in the column is in the range, ascending; makes the
 * index, if there is none, on the account.  *rows NULL: they are more than `most`, or there is no
 * room for the index; else the caller frees them.  -ENOMEM. */
PFS_MUST_CHECK int pfs_side_table_find(const struct pfs_side_table *table, uint32_t **rows,
				       size_t *n, size_t column, const struct pfs_side_range *range,
				       size_t most, struct pfs_account *account);

/* The queries' cache of them, closed when no statement is left. */
void pfs_side_tables_close(struct pfs_queries *queries);

#endif
