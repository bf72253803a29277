/* SPDX-License-Identifier: MIT */
/* meta/sql/sqlside.h - the tables of its own that a connection of meta/sql/sqlquery.h has: copies of side
 * tables, known by their names, and declared and filled when a statement names them.
 *
 * A declaration is what makes the table and its indexes: CREATE statements, each ended by ";\n".
 * Errors are as pfs_sql_prepare has them. */
#ifndef PFS_META_SQLSIDE_H
#define PFS_META_SQLSIDE_H

#include "meta/sql/sqlquery.h"
#include "meta/store.h"

struct pfs_sql_side {
	uint32_t id; /* the store's; 0: not there yet */
	char *name;
	size_t n_columns; /* that are stored; once it is declared */
	bool has_indexes;
	bool named; /* by the statement, or it may be */
	bool wanted, declared, filled;
	bool is_damaged; /* it cannot be declared */
};

/* ---- copies ---- */

/* -ENOMEM: what is there now is not known. */
PFS_MUST_CHECK int pfs_sql_sides_clear(struct pfs_sql *sql);

/* Makes a table known.  -EUCLEAN: it cannot have that name, or another one has it; -ENOMEM. */
PFS_MUST_CHECK int pfs_sql_side_add(struct pfs_sql *sql, uint32_t id, const void *name,
				    size_t name_len, bool has_indexes);

/* Which of them a statement that is to be prepared names: they become wanted, the others not.  Those with
 * indexes are, too, where it names an index or makes something, and all where it asks what there is. */
void pfs_sql_sides_named(struct pfs_sql *sql, const char *text, size_t len);

/* Makes the table that the declaration (meta/declaration.h) says; why: PFS_DECLARATION_WHY bytes.  -EUCLEAN: it
 * says none, and the table is damaged from then on; -ENOMEM. */
PFS_MUST_CHECK int pfs_sql_side_declare(struct pfs_sql *sql, uint32_t id, const void *declaration,
					size_t len, char *why);

/* The one of that name; NULL: it does not know that one. */
struct pfs_sql_side *pfs_sql_side_find(const struct pfs_sql *sql, const char *name);

/* The tables, in the order in which they were added; the connection's until the next add or clear. */
const struct pfs_sql_side *pfs_sql_sides(const struct pfs_sql *sql, size_t *n);

/* Fills a table that is wanted: begin, row for each of its rows (arg is the connection, as
 * pfs_store_scan_rows calls it), end.  -ENOMEM: more than the connection may have. */
PFS_MUST_CHECK int pfs_sql_fill_begin(struct pfs_sql *sql, uint32_t id);
int pfs_sql_fill_row(void *arg, int64_t row, const struct pfs_cell *cells, size_t n);
PFS_MUST_CHECK int pfs_sql_fill_end(struct pfs_sql *sql, uint32_t id, int error);

/* Calls fn with the names of the table's stored columns. */
PFS_MUST_CHECK int pfs_sql_side_columns(struct pfs_sql *sql, const char *table,
					int (*fn)(void *arg, const char *name), void *arg);

/* What a side table's columns are declared as, generated ones with the others. */
struct pfs_sql_declared {
	const char *name, *type, *collation;
	bool is_not_null, is_generated;
};
PFS_MUST_CHECK int
pfs_sql_side_declared(struct pfs_sql *sql, const char *table,
		      int (*fn)(void *arg, const struct pfs_sql_declared *declared), void *arg);

/* ---- statements that change something ---- */

enum pfs_sql_effect {
	PFS_SQL_READS,
	PFS_SQL_CHANGES_SOURCE,
	PFS_SQL_CHANGES_ROWS,	 /* of a side table */
	PFS_SQL_CHANGES_TABLES, /* makes or drops a table or an index */
};

/* What the prepared statement will do. */
enum pfs_sql_effect pfs_sql_effect(const struct pfs_sql *sql);

/* Runs the statement to its end, kept open for looking at what it has done until commit or rollback.
 * Errors as pfs_sql_step; it is rolled back then. */
PFS_MUST_CHECK int pfs_sql_run(struct pfs_sql *sql, struct pfs_sql_problem *problem);
PFS_MUST_CHECK int pfs_sql_commit(struct pfs_sql *sql);
void pfs_sql_rollback(struct pfs_sql *sql);

/* What has come of the side tables: those that are gone, then those that are new (id 0), then those
 * whose rows or indexes changed. */
enum pfs_sql_fate {
	PFS_SQL_DROPPED,
	PFS_SQL_MADE,	  /* all rows are new */
	PFS_SQL_INDEXED,  /* only the declaration is another */
	PFS_SQL_REPLACED, /* any row may have changed */
	PFS_SQL_CHANGED,  /* the rows that pfs_sql_changed_rows tells */
};
PFS_MUST_CHECK int pfs_sql_fates(struct pfs_sql *sql,
				 int (*fn)(void *arg, const struct pfs_sql_side *side,
					   enum pfs_sql_fate fate),
				 void *arg);

/* *text: the table's declaration, the caller's to free. */
PFS_MUST_CHECK int pfs_sql_declaration(struct pfs_sql *sql, char **text, const char *table);

/* Calls fn for each row; or for each that the statement changed, cells NULL for what is gone. */
PFS_MUST_CHECK int pfs_sql_all_rows(struct pfs_sql *sql, const char *table,
				    int (*fn)(void *arg, int64_t row, const struct pfs_cell *cells,
					      size_t n),
				    void *arg);
PFS_MUST_CHECK int pfs_sql_changed_rows(struct pfs_sql *sql, const char *table,
					int (*fn)(void *arg, int64_t row,
						  const struct pfs_cell *cells, size_t n),
					void *arg);

/* Rows that the statement changed, of any table. */
uint64_t pfs_sql_changes(const struct pfs_sql *sql);

#endif
