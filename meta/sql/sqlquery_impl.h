/* SPDX-License-Identifier: MIT */
/* meta/sql/sqlquery_impl.h - what the files of meta/sql/ share behind meta/sql/sqlquery.h.
 *
 * sqlquery.c has connections, statements and what these may do; sqltable.c sources as virtual
 * tables; sqltablefunction.c rows that callbacks give; sqlpart.c parts of statements; sqlvtab.c what these three share; sqlside.c
 * the tables of its own; sqlfunction.c functions; sqltext.c, sqlformat.c and sqljson.c those of SQLite's functions that
 * look at the clock here; program.c SQLite's program for a statement, and how long its values may
 * be. */
#ifndef PFS_META_SQLQUERY_IMPL_H
#define PFS_META_SQLQUERY_IMPL_H

#include <sqlite3.h>

#include "meta/sql/sqlquery.h"

#if SQLITE_VERSION_NUMBER < 3038000
#error "SQLite 3.38 or newer is needed"
#endif

enum { /* what the authorizer was asked about: a statement that */
	PFS_SQL_SAW_SOURCE = 1,	/* changes rows of the source, */
	PFS_SQL_SAW_ROWS = 2,	/* of a table, */
	PFS_SQL_SAW_SCHEMA = 8, /* makes or drops something */
};

struct pfs_sql {
	sqlite3 *handle;
	sqlite3_stmt *statement;
	const struct pfs_sql_source *source;
	char *declaration;
	const struct pfs_sql_function *functions;
	const struct pfs_sql_table_function *const *tables;
	struct pfs_sql_opened *opened; /* rows of table functions, as sqltablefunction.c has them */
	struct pfs_sql_binding *bindings; /* one for each function */
	int (*tick)(void *user);
	int steps;   /* of SQLite's machine between two ticks, */
	long ticked; /* and when the last one was, nanoseconds of a second */
	void *user;
	struct pfs_account *account; /* of the statement; NULL: none */
	struct pfs_sql_json *json; /* NULL: not needed yet */
	bool matches_no_blobs; /* LIKE and GLOB, as SQLite was made */
	bool is_lost; /* there was no memory for a value that was asked for */
	uint64_t value_limit; /* bytes that a value may have, by the terms, */
	uint64_t steps_limit; /* and by how many steps over values the statement has; 0: not counted yet */
	uint64_t sort_memory; /* as set last */
	int error; /* what a callback said: why SQLite gave up */
	bool may_change;
	unsigned saw;	   /* of the statement */
	char changed[256]; /* the table whose rows or indexes the statement changes; "" or cut: none */
	uint64_t updated; /* the columns that it sets, a bit each (pfs_sql_name_bit) */
	bool own;	   /* a statement of this module's own: not asked about */
	struct pfs_sql_side *sides;
	size_t n_sides, sides_capacity;
	uint32_t *sides_by_name; /* a hash of them, by number and one; NULL: none */
	uint64_t hash_seed;
	size_t by_name_size;	 /* a power of 2, at least twice as many */
	uint64_t tables_made;	 /* a number that is another one once there are other tables, or leave is asked anew */
	struct pfs_sql_value *update_values; /* room for a row of the source */
	bool *update_given;
	size_t update_width;
	sqlite3_stmt *to_real; /* what pfs_sql_real asks; NULL: nothing yet */
	sqlite3_stmt *fill; /* puts a row into the table being filled, */
	sqlite3_stmt *empty; /* and takes one out */
	int64_t *rowids;    /* that the statement changed, in its order */
	size_t n_rowids, rowids_capacity;
	bool rowids_lost;
	char refused[160]; /* why the authorizer said no, and */
	int refusal;	   /* the errno for it */
	unsigned selects;  /* that it was asked about, of the statement being prepared */
	struct pfs_sql_read *reads; /* that it was asked about, of that statement; each one piece */
	size_t n_reads, reads_capacity;
	bool reads_lost;
	uint64_t columns; /* of the source, that it was planned with */
	unsigned n_parts; /* that are tables */
};

/* Takes over a value. Returns false, and an empty value, if there is no memory for it. */
bool pfs_sql_from_value(struct pfs_sql_value *out, sqlite3_value *value);
/* As pfs_sql_from_value, but a text that reads as a number throughout becomes that number, as where
 * SQLite compares it with one. `value` stays as it is. */
void pfs_sql_number_of(struct pfs_sql_value *out, sqlite3_value *value);

/* Remembers the errno that a callback returned; returns SQLite's result for it. */
int pfs_sql_failed(struct pfs_sql *sql, int error);

/* Returns the errno for one of SQLite's results, with its text in *problem. */
int pfs_sql_explain_result(struct pfs_sql *sql, struct pfs_sql_problem *problem, int result);

/* ---- sqlreads.c ---- */

void pfs_sql_note_read(struct pfs_sql *sql, const char *table, const char *column);
void pfs_sql_forget_reads(struct pfs_sql *sql);

/* ---- sqlside.c ---- */

/* Notes that the statement being prepared names the table. */
void pfs_sql_side_seen(struct pfs_sql *sql, const char *name);
struct pfs_sql_side *pfs_sql_side_by_id(const struct pfs_sql *sql, uint32_t id);
void pfs_sql_sides_forget(struct pfs_sql *sql); /* forgets their names; the tables stay */
void pfs_sql_sides_close(struct pfs_sql *sql);
/* Statements of the connection's own, which the authorizer is not asked about.  Prepare takes the text; both return
 * SQLite's results. */
PFS_MUST_CHECK int pfs_sql_own_prepare(struct pfs_sql *sql, sqlite3_stmt **out, char *text);
PFS_MUST_CHECK int pfs_sql_own_step(const struct pfs_sql *sql, sqlite3_stmt *statement);
PFS_MUST_CHECK int pfs_sql_own_errno(struct pfs_sql *sql, int result);
/* Sets *list, which sqlite3_free takes, to the name of the row number and those of the n stored columns, as SQL has
 * them.  -EINVAL: the row number has no name, or there are too many columns; -ENOMEM. */
PFS_MUST_CHECK int pfs_sql_list_columns(struct pfs_sql *sql, char **list, size_t *n, const char *table);

/* A bit for the name of a column, which others may have, too. */
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

/* ---- sqlvtab.c: what the virtual tables share; all but disconnect and give return SQLite's results ---- */

struct pfs_sql_vtab {
	sqlite3_vtab base;
	struct pfs_sql *sql;
	const void *of; /* whose rows they are; the table's own */
};

/* Makes a table with the columns of `declaration`. */
PFS_MUST_CHECK int pfs_sql_vtab_connect(sqlite3 *handle, sqlite3_vtab **out, const char *declaration,
					struct pfs_sql *sql, const void *of);
int pfs_sql_vtab_disconnect(sqlite3_vtab *table);
/* Makes a cursor of `size` bytes, all 0, which sqlite3_free takes. */
PFS_MUST_CHECK int pfs_sql_vtab_open(sqlite3_vtab_cursor **out, size_t size);
/* Hands the value to SQLite as a column.  keep: SQLITE_TRANSIENT, or SQLITE_STATIC for bytes that outlive the statement. */
void pfs_sql_vtab_give(sqlite3_context *context, const struct pfs_sql_value *value, sqlite3_destructor_type keep);

PFS_MUST_CHECK int pfs_sql_add_table(struct pfs_sql *sql); /* all three return SQLite's results */
PFS_MUST_CHECK int pfs_sql_add_table_functions(struct pfs_sql *sql);
bool pfs_sql_is_table_function(const struct pfs_sql *sql, const char *name);
void pfs_sql_close_opened(struct pfs_sql *sql); /* rows of table functions, at the end of the statement */
PFS_MUST_CHECK int pfs_sql_add_functions(struct pfs_sql *sql);

/* ---- sqltext.c, sqlformat.c, sqljson.c: functions of SQLite's that would take long without looking at the clock ---- */

/* Adds the functions that look at the clock. plain_patterns: LIKE and GLOB stay SQLite's own, which
 * finds rows by what a pattern begins with. */
PFS_MUST_CHECK int pfs_sql_add_text_functions(struct pfs_sql *sql, bool plain_patterns);
/* Adds those of JSON, for pfs_sql_add_text_functions. */
PFS_MUST_CHECK int pfs_sql_add_json_functions(struct pfs_sql *sql);
void pfs_sql_json_close(struct pfs_sql_json *json); /* NULL is allowed */
/* Returns true if the statement has to end. */
bool pfs_sql_is_over(struct pfs_sql *sql);
/* Makes the text a function's result, and frees it. */
void pfs_sql_return_str(sqlite3_context *context, sqlite3_str *str);
void pfs_sql_format(sqlite3_context *context, int argc, sqlite3_value **argv);

/* ---- program.c ---- */

/* Bounds the length of the prepared statement's values, before its first step, so that what it does
 * between two looks at the clock is short. Returns SQLite's results; SQLITE_AUTH: the statement
 * does more than any may, and sql->refused says so. */
PFS_MUST_CHECK int pfs_sql_bound_values(struct pfs_sql *sql);

/* ---- sqltable.c ---- */

/* Finds what SQLite calls for the function of that name. Returns false if there is none. */
bool pfs_sql_find_function(const struct pfs_sql *sql, const char *name,
			   void (**fn)(sqlite3_context *, int, sqlite3_value **), void **arg);

#endif
