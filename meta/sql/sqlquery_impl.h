/* SPDX-License-Identifier: MIT */
/* meta/sql/sqlquery_impl.h - what the files behind meta/sql/sqlquery.h share.
 *
 * sqlquery.c has connections and statements; sqlauthorize.c what these may do; sqltable.c,
 * sqltablefunction.c and sqlpart.c the virtual tables of sources, of table functions and of parts;
 * sqlvtab.c what these three share; sqlside.c the copies of side tables; sqlfunction.c functions;
 * sqltext.c, sqlformat.c and sqljson.c replacements of SQLite's functions, which look at the clock;
 * program.c SQLite's program of a statement, from which it bounds the length of values. */
#ifndef PFS_META_SQLQUERY_IMPL_H
#define PFS_META_SQLQUERY_IMPL_H

#include <sqlite3.h>

#include "meta/sql/sqlquery.h"
#include "meta/store.h"

#if SQLITE_VERSION_NUMBER < 3038000
#error "SQLite 3.38 or newer is needed"
#endif

/* The most bytes of a side table's row in SQLite, with what that says about the columns. */
#define PFS_SQL_ROW_MAX (PFS_TABLE_ROW_MAX + (uint64_t)16 * PFS_TABLE_COLUMNS_MAX)

enum { /* what SQLite asked the authorizer about a statement: it */
	PFS_SQL_SAW_SOURCE = 1,	/* changes rows of the source */
	PFS_SQL_SAW_ROWS = 2,	/* changes rows of a side table */
	PFS_SQL_SAW_SCHEMA = 8, /* makes or drops a table or index */
};

struct pfs_sql {
	sqlite3 *handle;
	sqlite3_stmt *statement;
	const struct pfs_sql_source *source;
	char *declaration;
	const struct pfs_sql_function *functions;
	const struct pfs_sql_table_function *const *tables;
	struct pfs_sql_opened *opened; /* opened rows of table functions (sqltablefunction.c) */
	struct pfs_sql_binding *bindings; /* one for each function */
	int (*tick)(void *user);
	int steps;   /* steps of SQLite's program between two ticks */
	long ticked; /* the time of the last tick: nanoseconds of a second */
	void *user;
	struct pfs_account *account; /* of the statement; NULL: none */
	struct pfs_sql_json *json; /* sqljson.c; NULL: not needed yet */
	bool matches_no_blobs; /* SQLite was built so that LIKE and GLOB match no blobs */
	bool is_lost; /* there was no memory for a value that pfs_sql_value returned */
	uint64_t value_limit; /* the most bytes of a value, by the terms */
	uint64_t steps_limit; /* the same, by the statement's operations on values; 0: not counted
				 yet */
	uint64_t sort_memory; /* the memory for sorts that was set last */
	int error; /* what a callback returned that ended the statement */
	bool may_change;
	unsigned saw;	   /* PFS_SQL_SAW_ bits of the statement */
	char changed[256]; /* the table whose rows or indexes the statement changes; "" or cut:
			    * none */
	uint64_t updated; /* the columns that it sets, a bit each (pfs_sql_name_bit) */
	bool own;	   /* the authorizer allows all: this module's own statement is prepared */
	struct pfs_sql_side *sides;
	size_t n_sides, sides_capacity;
	uint32_t *sides_by_name; /* a hash table of indexes into `sides`, plus 1; NULL: none */
	uint64_t hash_seed;
	size_t by_name_size;	 /* cells of it: a power of 2, at least 2 * n_sides */
	uint64_t tables_made;	 /* changes when tables change, or when the authorizer must be asked
				    anew */
	struct pfs_sql_value *update_values; /* room for a row of the source */
	bool *update_given;
	size_t update_width;
	sqlite3_stmt *to_real; /* for pfs_sql_real; NULL: not prepared yet */
	sqlite3_stmt *fill; /* writes a row of the table being filled */
	sqlite3_stmt *empty; /* removes a row of it */
	int64_t *rowids;    /* the rows that the statement changed, in its order */
	size_t n_rowids, rowids_capacity;
	bool rowids_lost;  /* there was no memory for all of them */
	char refused[160]; /* why the authorizer refused the statement */
	int refusal;	   /* the errno for that */
	unsigned selects;  /* SELECTs of the statement being prepared, of which the authorizer
			    * heard */
	struct pfs_sql_read
		*reads; /* its reads, of which the authorizer heard; each one allocation */
	size_t n_reads, reads_capacity;
	bool reads_lost;  /* there was no memory for all of them, or they were too many */
	uint64_t columns; /* the source's columns with which the statement was planned */
	unsigned n_parts; /* parts that are declared as tables */
};

/* Gets a value from SQLite's. Returns false, and an empty value, if there is no memory for it. */
bool pfs_sql_from_value(struct pfs_sql_value *out, sqlite3_value *value);
/* As pfs_sql_from_value, but a text that is a number becomes that number, as when SQLite compares
 * it with a number. `value` is not changed. */
void pfs_sql_number_of(struct pfs_sql_value *out, sqlite3_value *value);

/* Keeps the errno that a callback returned; returns SQLite's result for it. */
int pfs_sql_failed(struct pfs_sql *sql, int error);

/* Returns the errno for a result of SQLite, and writes SQLite's text to *problem. */
int pfs_sql_explain_result(struct pfs_sql *sql, struct pfs_sql_problem *problem, int result);

/* ---- sqlauthorize.c ---- */

/* The authorizer: returns SQLITE_DENY for what a statement may not do, and says in `refused` what
 * to do instead; else notes what the statement reads and changes. `arg` is the struct pfs_sql. */
int pfs_sql_authorize(void *arg, int action, const char *a, const char *b, const char *database,
		      const char *inner);

/* ---- sqlreads.c ---- */

/* Notes that the statement being prepared reads the column; column "": SQLite names none. */
void pfs_sql_note_read(struct pfs_sql *sql, const char *table, const char *column);
void pfs_sql_forget_reads(struct pfs_sql *sql);

/* ---- sqlside.c ---- */

/* Notes that the statement being prepared names the table. */
void pfs_sql_side_seen(struct pfs_sql *sql, const char *name);
/* Notes that the statement being prepared drops the table, for which its rows need not be there. */
void pfs_sql_side_dropped(struct pfs_sql *sql, const char *name);
struct pfs_sql_side *pfs_sql_side_by_id(const struct pfs_sql *sql, uint32_t id);
/* Leaves the first n of `sides`; nothing is freed, and the tables stay in the database. */
void pfs_sql_sides_leave(struct pfs_sql *sql, size_t n);
void pfs_sql_sides_close(struct pfs_sql *sql);
/* Prepare and step a statement of the connection's own, for which the authorizer allows all.
 * prepare frees the text, which sqlite3_mprintf made. Both return SQLite's results. */
PFS_MUST_CHECK int pfs_sql_own_prepare(struct pfs_sql *sql, sqlite3_stmt **out, char *text);
PFS_MUST_CHECK int pfs_sql_own_step(const struct pfs_sql *sql, sqlite3_stmt *statement);
PFS_MUST_CHECK int pfs_sql_own_errno(struct pfs_sql *sql, int result);
/* Sets *list to the quoted names of the rowid and of the n stored columns, separated by commas; the
 * caller frees it with sqlite3_free. -EINVAL: the rowid has no name, or there are too many columns;
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_sql_list_columns(struct pfs_sql *sql, char **list, size_t *n,
					const char *table);

/* Returns a bit for the name of a column; several names may have the same bit. */
static inline uint64_t pfs_sql_name_bit(const char *name)
{
	unsigned sum = 0;

	while (name && *name)
		sum = sum * 31 + (unsigned char)*name++;
	return UINT64_C(1) << sum % 64;
}

/* ---- sqlrows.c ---- */

/* SQLite's update hook; arg is the connection. */
void pfs_sql_row_changed(void *arg, int op, const char *database, const char *table,
			 sqlite3_int64 rowid);

/* ---- sqlvtab.c: what the virtual tables share ----
 * All functions but disconnect and give return SQLite's results. */

struct pfs_sql_vtab {
	sqlite3_vtab base;
	struct pfs_sql *sql;
	const void *of; /* the kind of table's own */
};

/* Makes a table with the columns of `declaration`. */
PFS_MUST_CHECK int pfs_sql_vtab_connect(sqlite3 *handle, sqlite3_vtab **out,
					const char *declaration, struct pfs_sql *sql,
					const void *of);
int pfs_sql_vtab_disconnect(sqlite3_vtab *table);
/* Makes a cursor of `size` bytes, all 0, which sqlite3_free frees. */
PFS_MUST_CHECK int pfs_sql_vtab_open(sqlite3_vtab_cursor **out, size_t size);
/* Gives the value to SQLite as that of a column. keep: SQLITE_TRANSIENT, or SQLITE_STATIC for bytes
 * that outlive the statement. */
void pfs_sql_vtab_give(sqlite3_context *context, const struct pfs_sql_value *value,
		       sqlite3_destructor_type keep);

/* Add the source, the table functions and the functions to a connection. They return SQLite's
 * results. */
PFS_MUST_CHECK int pfs_sql_add_table(struct pfs_sql *sql);
PFS_MUST_CHECK int pfs_sql_add_table_functions(struct pfs_sql *sql);
bool pfs_sql_is_reserved(const struct pfs_sql *sql, const char *name);
void pfs_sql_close_opened(struct pfs_sql *sql); /* closes `opened`, at the end of a statement */
PFS_MUST_CHECK int pfs_sql_add_functions(struct pfs_sql *sql);

/* ---- sqltext.c, sqlformat.c, sqljson.c: replacements of SQLite's functions that can take long
 *
 * ---- */

/* Adds functions that look at the clock. plain_patterns: LIKE and GLOB stay SQLite's own, so that
 * it uses an index for them. */
PFS_MUST_CHECK int pfs_sql_add_text_functions(struct pfs_sql *sql, bool plain_patterns);
/* Adds the functions of JSON, for pfs_sql_add_text_functions. */
PFS_MUST_CHECK int pfs_sql_add_json_functions(struct pfs_sql *sql);
void pfs_sql_json_close(struct pfs_sql_json *json); /* NULL is allowed */
/* Returns true if the statement has to end. */
bool pfs_sql_is_over(struct pfs_sql *sql);
/* Makes the text a function's result, and frees it. */
void pfs_sql_return_str(sqlite3_context *context, sqlite3_str *str);
void pfs_sql_format(sqlite3_context *context, int argc, sqlite3_value **argv);

/* ---- program.c ---- */

/* Bounds the length of the prepared statement's values, before its first step, so that it works
 * only a short time between two looks at the clock. Returns SQLite's results; SQLITE_AUTH: the
 * statement has more operations than are allowed, and sql->refused says so. */
PFS_MUST_CHECK int pfs_sql_bound_values(struct pfs_sql *sql);

/* Sets how long values may be: as the statement's; or, if rows of side tables are read and written
 * as they are, as those may be, too. */
void pfs_sql_let_rows(struct pfs_sql *sql, bool let);

/* ---- sqltable.c ---- */

/* Finds the source's function of that name, for SQLite to call. Returns false if there is none. */
bool pfs_sql_find_function(const struct pfs_sql *sql, const char *name,
			   void (**fn)(sqlite3_context *, int, sqlite3_value **), void **arg);

#endif
