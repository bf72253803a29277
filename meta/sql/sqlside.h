/* SPDX-License-Identifier: MIT */
/* meta/sql/sqlside.h - a connection's copies of side tables (meta/sql/sqlquery.h). The connection
 * knows the names of all side tables; it declares and fills one when a statement names it.
 *
 * A declaration is the text that makes a table and its indexes: CREATE statements, each ended by a
 * semicolon and a newline. Threads: as the connection's. Errors: as those of pfs_sql_prepare. */
#ifndef PFS_META_SQLSIDE_H
#define PFS_META_SQLSIDE_H

#include "meta/sql/sqlquery.h"
#include "meta/store.h"

struct pfs_sql_side {
	uint32_t id; /* its number in the store; 0: it is not in the store yet */
	char *name;
	size_t n_columns; /* stored columns; known once it is declared */
	bool has_indexes;
	bool named; /* the statement names it, or may name it */
	bool wanted; /* the statement needs it (pfs_sql_sides_named) */
	bool declared, filled;
	uint64_t version; /* the version of its rows; the caller's number */
	uint64_t missed_ns; /* the time that statements lost because it was not filled; the
			     * caller's */
	bool is_damaged; /* its declaration is damaged */
	bool is_examined, is_simple; /* is_simple is known; the result of pfs_sql_side_is_simple */
};

/* ---- copies ---- */

/* Removes all tables but those that `keeps`, unless it is NULL, returns true for. -ENOMEM: some may
 * be left; the connection must be closed. */
PFS_MUST_CHECK int pfs_sql_sides_clear(struct pfs_sql *sql, bool (*keeps)(void *arg, uint32_t id),
				       void *arg);

/* Adds the name of a table. -EUCLEAN: no table can have that name, or another has it; -ENOMEM. */
PFS_MUST_CHECK int pfs_sql_side_add(struct pfs_sql *sql, uint32_t id, const void *name,
				    size_t name_len, bool has_indexes);

/* Returns true if the connection has the table of that number and name. */
bool pfs_sql_side_has(const struct pfs_sql *sql, uint32_t id, const void *name, size_t name_len);

/* Sets `wanted` of the tables that a statement, which is prepared next, may need: those that it
 * names; those with indexes, if it names an index or makes something; all, if it reads SQLite's
 * schema. */
void pfs_sql_sides_named(struct pfs_sql *sql, const char *text, size_t len);

/* Makes the table that the declaration (meta/declaration.h) describes. `why` has room for
 * PFS_DECLARATION_WHY bytes. -EUCLEAN: the declaration is wrong, and the table counts as damaged
 * from now on; -ENOMEM. */
PFS_MUST_CHECK int pfs_sql_side_declare(struct pfs_sql *sql, uint32_t id, const void *declaration,
					size_t len, char *why);

/* Returns the table of that name; NULL: there is none. */
struct pfs_sql_side *pfs_sql_side_find(const struct pfs_sql *sql, const char *name);

/* Returns the tables in the order in which they were added; the array belongs to the connection,
 * and is valid until the next add or clear. */
const struct pfs_sql_side *pfs_sql_sides(const struct pfs_sql *sql, size_t *n);

/* Fill a wanted table. pfs_sql_fill_begin begins; with anew the table first loses its rows.
 * pfs_sql_fill_row, whose arg is the connection, adds a row, as pfs_store_scan_rows calls it.
 * pfs_sql_fill_end sets the version of the rows if error is 0; else it restores the rows that the
 * table had, and returns the error. -ENOMEM: the rows are more than the account allows. */
PFS_MUST_CHECK int pfs_sql_fill_begin(struct pfs_sql *sql, uint32_t id, bool anew);
int pfs_sql_fill_row(void *arg, int64_t row, const struct pfs_cell *cells, size_t n);
/* As pfs_sql_fill_row, for a row that may be there already and now has these cells; NULL: it was
 * removed. */
int pfs_sql_fill_changed(void *arg, int64_t row, const struct pfs_cell *cells, size_t n);
PFS_MUST_CHECK int pfs_sql_fill_end(struct pfs_sql *sql, uint32_t id, uint64_t version, int error);
/* Sets the version of the rows, after a statement of the connection has changed them. */
void pfs_sql_side_is_of(struct pfs_sql *sql, uint32_t id, uint64_t version);

/* How a column of a side table is declared. Generated columns are included. */
struct pfs_sql_declared {
	bool is_number; /* it is the rowid, under another name */
	const char *name, *type, *collation;
	bool is_not_null, is_generated;
	bool is_indexed; /* an index of all rows begins with it, or it is the rowid */
};
/* Calls fn for each column of a declared table, until it returns non-zero, which is returned. */
PFS_MUST_CHECK int
pfs_sql_side_declared(struct pfs_sql *sql, const char *table,
		      int (*fn)(void *arg, const struct pfs_sql_declared *declared), void *arg);

/* Sets *is to true if the table is declared and SQLite would refuse no row whose values fit the
 * columns' types and NOT NULL: nothing is unique but the rowid, there is no CHECK, and indexes are
 * of columns. */
PFS_MUST_CHECK int pfs_sql_side_is_simple(struct pfs_sql *sql, bool *is, const char *table);

/* ---- statements that change something ---- */

enum pfs_sql_effect {
	PFS_SQL_READS,
	PFS_SQL_CHANGES_SOURCE,
	PFS_SQL_CHANGES_ROWS,	 /* of a side table */
	PFS_SQL_CHANGES_TABLES, /* makes or drops a table or an index */
};

/* Returns what the prepared statement does. */
enum pfs_sql_effect pfs_sql_effect(const struct pfs_sql *sql);

/* Runs the statement to its end in a transaction, which stays open until pfs_sql_commit or
 * pfs_sql_rollback, so that the caller can look at the changes. Errors as pfs_sql_step; the
 * transaction is rolled back then. */
PFS_MUST_CHECK int pfs_sql_run(struct pfs_sql *sql, struct pfs_sql_problem *problem);
PFS_MUST_CHECK int pfs_sql_commit(struct pfs_sql *sql);
void pfs_sql_rollback(struct pfs_sql *sql);

/* What has happened to a side table. pfs_sql_fates calls fn first for tables that were dropped,
 * then for new ones (id 0), then for those whose rows or indexes have changed. */
enum pfs_sql_fate {
	PFS_SQL_DROPPED,
	PFS_SQL_MADE,	  /* the table and all its rows are new */
	PFS_SQL_INDEXED,  /* its declaration has changed, and its rows have not */
	PFS_SQL_REPLACED, /* any of its rows may have changed */
	PFS_SQL_CHANGED,  /* the rows of pfs_sql_changed_rows have changed */
};
PFS_MUST_CHECK int pfs_sql_fates(struct pfs_sql *sql,
				 int (*fn)(void *arg, const struct pfs_sql_side *side,
					   enum pfs_sql_fate fate),
				 void *arg);

/* Removes the tables that a statement has made and the connection does not know. Outside of a
 * transaction. */
PFS_MUST_CHECK int pfs_sql_sides_drop_new(struct pfs_sql *sql);

/* Sets *text to the table's declaration, which the caller frees. */
PFS_MUST_CHECK int pfs_sql_declaration(struct pfs_sql *sql, char **text, const char *table);

/* pfs_sql_all_rows calls fn for each row of the table; pfs_sql_changed_rows for each row that the
 * statement changed, with cells NULL if it was removed. Both stop when fn returns non-zero, and
 * return that. */
PFS_MUST_CHECK int pfs_sql_all_rows(struct pfs_sql *sql, const char *table,
				    int (*fn)(void *arg, int64_t row, const struct pfs_cell *cells,
					      size_t n),
				    void *arg);
PFS_MUST_CHECK int pfs_sql_changed_rows(struct pfs_sql *sql, const char *table,
					int (*fn)(void *arg, int64_t row,
						  const struct pfs_cell *cells, size_t n),
					void *arg);

/* Returns how many rows of any table the statement changed. */
uint64_t pfs_sql_changes(const struct pfs_sql *sql);

#endif
