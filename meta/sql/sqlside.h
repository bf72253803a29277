/* SPDX-License-Identifier: MIT */
/* meta/sql/sqlside.h - the tables that a connection of meta/sql/sqlquery.h has of its own: copies
 * of side tables. It knows all their names; one is declared and filled when a statement names it.
 *
 * A declaration is the text that makes a table and its indexes: CREATE statements, each ended by ";
 * ".
 * Threads: as the connection's. Errors: as those of pfs_sql_prepare. */
#ifndef PFS_META_SQLSIDE_H
#define PFS_META_SQLSIDE_H

#include "meta/sql/sqlquery.h"
#include "meta/store.h"

struct pfs_sql_side {
	uint32_t id; /* its number in the store; 0: it is not in the store yet */
	char *name;
	size_t n_columns; /* columns that are stored; known once it is declared */
	bool has_indexes;
	bool named; /* the statement names it, or may do so */
	bool wanted, declared, filled;
	uint64_t version; /* that its rows were filled as; the caller's number */
	uint64_t missed_ns; /* what statements would have been sooner by it, had it been filled as of their version; the caller's */
	bool is_damaged; /* its declaration is damaged */
	bool is_examined, is_simple; /* pfs_sql_side_is_simple has been asked, and said so */
};

/* ---- copies ---- */

/* Forgets all tables. -ENOMEM: nobody knows what is there now. */
PFS_MUST_CHECK int pfs_sql_sides_clear(struct pfs_sql *sql);

/* Makes a table known by its name. -EUCLEAN: no table can have that name, or another has it
 * already; -ENOMEM. */
PFS_MUST_CHECK int pfs_sql_side_add(struct pfs_sql *sql, uint32_t id, const void *name,
				    size_t name_len, bool has_indexes);

/* Finds the tables that a statement about to be prepared names: they become wanted, the others not.
 * Tables with indexes are wanted, too, where it names an index or makes something; all are where it
 * asks what there is. */
void pfs_sql_sides_named(struct pfs_sql *sql, const char *text, size_t len);

/* Makes the table that the declaration (meta/declaration.h) describes; why has room for
 * PFS_DECLARATION_WHY bytes. -EUCLEAN: it describes none, and the table counts as damaged from then
 * on; -ENOMEM. */
PFS_MUST_CHECK int pfs_sql_side_declare(struct pfs_sql *sql, uint32_t id, const void *declaration,
					size_t len, char *why);

/* Returns the table of that name; NULL: there is none. */
struct pfs_sql_side *pfs_sql_side_find(const struct pfs_sql *sql, const char *name);

/* Returns the tables in the order in which they were added; the array is the connection's, until
 * the next add or clear. */
const struct pfs_sql_side *pfs_sql_sides(const struct pfs_sql *sql, size_t *n);

/* Fill a table that is wanted: begin, anew if it is to lose the rows that it has; row for each of its rows, as
 * pfs_store_scan_rows calls it, arg being the connection; end, with what it is the version of unless there was an error,
 * which is returned: then it has the rows that it had. -ENOMEM: more than the connection may have. */
PFS_MUST_CHECK int pfs_sql_fill_begin(struct pfs_sql *sql, uint32_t id, bool anew);
int pfs_sql_fill_row(void *arg, int64_t row, const struct pfs_cell *cells, size_t n);
/* Likewise for a row that may be there already, and has these cells now; NULL: it is gone. */
int pfs_sql_fill_changed(void *arg, int64_t row, const struct pfs_cell *cells, size_t n);
PFS_MUST_CHECK int pfs_sql_fill_end(struct pfs_sql *sql, uint32_t id, uint64_t version, int error);
/* The rows, which a statement of the connection has changed, are of that version now. */
void pfs_sql_side_is_of(struct pfs_sql *sql, uint32_t id, uint64_t version);

/* Says how a side table's column is declared; generated columns stand among the others. */
struct pfs_sql_declared {
	bool is_number; /* the row's number by another name */
	const char *name, *type, *collation;
	bool is_not_null, is_generated;
	bool is_indexed; /* an index of all rows begins with it, or it is the row's number */
};
PFS_MUST_CHECK int
pfs_sql_side_declared(struct pfs_sql *sql, const char *table,
		      int (*fn)(void *arg, const struct pfs_sql_declared *declared), void *arg);

/* Sets *is if the table is declared and every row can be put into it whose values fit its columns and are not NULL where that is said: nothing is
 * unique but the row's number, nothing is checked, and indexes are of columns. */
PFS_MUST_CHECK int pfs_sql_side_is_simple(struct pfs_sql *sql, bool *is, const char *table);

/* ---- statements that change something ---- */

enum pfs_sql_effect {
	PFS_SQL_READS,
	PFS_SQL_CHANGES_SOURCE,
	PFS_SQL_CHANGES_ROWS,	 /* of a side table */
	PFS_SQL_CHANGES_TABLES, /* makes or drops a table or an index */
};

/* Returns what the prepared statement will do. */
enum pfs_sql_effect pfs_sql_effect(const struct pfs_sql *sql);

/* Runs the statement to its end inside a transaction, which stays open until commit or rollback, so
 * that what it has done can be looked at. Errors as of pfs_sql_step; it is rolled back then. */
PFS_MUST_CHECK int pfs_sql_run(struct pfs_sql *sql, struct pfs_sql_problem *problem);
PFS_MUST_CHECK int pfs_sql_commit(struct pfs_sql *sql);
void pfs_sql_rollback(struct pfs_sql *sql);

/* Says what has become of a side table. They are told in this order: first those that are gone,
 * then those that are new (id 0), then those whose rows or indexes have changed. */
enum pfs_sql_fate {
	PFS_SQL_DROPPED,
	PFS_SQL_MADE,	  /* it is new, and so are all its rows */
	PFS_SQL_INDEXED,  /* it has another declaration; its rows are the same */
	PFS_SQL_REPLACED, /* any of its rows may have changed */
	PFS_SQL_CHANGED,  /* those of its rows have changed that pfs_sql_changed_rows tells */
};
PFS_MUST_CHECK int pfs_sql_fates(struct pfs_sql *sql,
				 int (*fn)(void *arg, const struct pfs_sql_side *side,
					   enum pfs_sql_fate fate),
				 void *arg);

/* Sets *text to the table's declaration, which the caller frees. */
PFS_MUST_CHECK int pfs_sql_declaration(struct pfs_sql *sql, char **text, const char *table);

/* Call fn for each row of the table; or for each that the statement changed, with cells NULL if the
 * row is gone; until it returns non-zero, which is returned. */
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
