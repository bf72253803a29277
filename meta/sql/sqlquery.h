/* SPDX-License-Identifier: MIT */
/* meta/sql/sqlquery.h - SQLite as a query engine over tables that callbacks give, column by column.
 *
 * A connection has a database of its own in memory, with copies of side tables (sqlside.h) and the
 * source as a virtual table. Statements read, or change rows of one table, or make and drop tables
 * and indexes, as far as they are allowed to; there is no ATTACH, no trigger, no view, and no
 * pragma that sets anything.
 *
 * Threads: a connection belongs to one thread at a time, but for pfs_sql_interrupt.
 * Errors: a negative errno that a callback returns ends the statement with it.
 * Not handled here: what the tables hold. The store's file is never touched. */
#ifndef PFS_META_SQLQUERY_H
#define PFS_META_SQLQUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "meta/account.h"

struct pfs_sql;

enum pfs_sql_type { PFS_SQL_NULL, PFS_SQL_INTEGER, PFS_SQL_REAL, PFS_SQL_TEXT, PFS_SQL_BLOB };

struct pfs_sql_value {
	enum pfs_sql_type type;
	union {
		int64_t integer;
		double real;
		const char *bytes; /* text and blobs; not terminated */
	};
	size_t size; /* of bytes */
};

/* ---- sources ---- */

enum pfs_sql_op { /* column OP value */
	PFS_SQL_EQ,
	PFS_SQL_NE,
	PFS_SQL_LT,
	PFS_SQL_LE,
	PFS_SQL_GT,
	PFS_SQL_GE,
	PFS_SQL_IS, /* equal, or both NULL */
	PFS_SQL_IS_NULL,
	PFS_SQL_NOT_NULL,
	PFS_SQL_GLOB,
	PFS_SQL_LIKE,
	PFS_SQL_FUNCTION, /* from here on the source's own functions, in their order, of (column, value) */
};

struct pfs_sql_constraint {
	int column; /* -1: the rowid */
	int op;	    /* enum pfs_sql_op */
	const struct pfs_sql_value *value; /* NULL: it is no constant, and known only when a scan starts */
	bool is_in; /* `=` each of IN's values; of a row's SQLite does not say so */
	/* out */
	bool take;  /* the scan gets it as an argument, and leaves out no row that satisfies it */
	bool exact; /* and returns no row that does not: SQLite need not check it */
};

struct pfs_sql_order {
	int column; /* -1: the rowid */
	bool descending; /* NULL is less than anything else */
};
#define PFS_SQL_ORDER_MAX 8

struct pfs_sql_plan {
	/* The conditions that the source may take over. Comparisons of text by a collation other
	 * than BINARY are not among them. */
	struct pfs_sql_constraint *constraints;
	size_t n;
	uint64_t columns; /* that the statement uses, a bit each; bit 63: some from 63 on */
	const struct pfs_sql_order *order; /* in which rows are wanted; SQLite sorts them otherwise */
	size_t n_order;
	uint64_t limit; /* at most so many rows are read, unless some are left out; a hint */
	/* out */
	unsigned id; /* handed to start() */
	bool ordered; /* rows will come in the order wanted */
	bool unique;  /* at most one row will come */
	double cost;  /* about as much as stepping over so many rows costs SQLite */
	int64_t rows;
};

/* A constraint that the scan took, with its value; they are in the constraints' order. */
struct pfs_sql_argument {
	int column, op;
	struct pfs_sql_value value;
	/* The number that the value reads as, if it is a text that does; else the value. */
	struct pfs_sql_value number;
};

/* Holds what a scan is started with. */
struct pfs_sql_begin {
	unsigned id;	  /* these three are the plan's */
	uint64_t columns, limit;
	const struct pfs_sql_order *order; /* NULL unless the plan said `ordered` */
	size_t n_order;
	const struct pfs_sql_argument *arguments;
	size_t n;
};

/* A batch of rows, column by column; the source's memory until the next fetch or start. */
enum pfs_sql_kind {
	PFS_SQL_ABSENT, /* not there yet: gather() is called when it is needed */
	PFS_SQL_INTEGERS,
	PFS_SQL_BYTES,
	PFS_SQL_VALUES,
};
#define PFS_SQL_NO_INTEGER INT64_MIN /* NULL */

struct pfs_sql_column {
	enum pfs_sql_kind kind;
	const int64_t *integers;
	const char *bytes; /* text of row i: offset[i] to offset[i + 1] */
	const uint64_t *offset;
	const uint8_t *is_null; /* NULL: no row is NULL */
	const struct pfs_sql_value *values;
};

struct pfs_sql_rows {
	size_t n;
	struct pfs_sql_column *columns; /* one for each column of the table */
};

/* A change of one row that a statement asks for. */
struct pfs_sql_update {
	enum { PFS_SQL_UPDATES, PFS_SQL_DELETES, PFS_SQL_INSERTS } kind;
	int64_t rowid; /* of the row that there is; not of an INSERT */
	const struct pfs_sql_value *columns; /* the n columns as they are to be; n is 0 for a DELETE */
	const bool *given; /* of an UPDATE: the statement sets the column; of an INSERT: it is not NULL */
	size_t n;
};

struct pfs_sql_scan; /* whatever the source needs for it */

struct pfs_sql_source {
	const char *name;
	const char *const *functions; /* names of those that it takes as constraints, ended by NULL */
	void (*plan)(void *user, struct pfs_sql_plan *plan);
	/* Between open and close a scan is started any number of times. */
	int (*open)(void *user, struct pfs_sql_scan **scan);
	void (*close)(struct pfs_sql_scan *scan);
	int (*start)(struct pfs_sql_scan *scan, const struct pfs_sql_begin *begin);
	/* The next batch; n is 0 at the end. */
	int (*fetch)(struct pfs_sql_scan *scan, struct pfs_sql_rows *rows);
	/* Fills in rows->columns[column] of this batch, and of those to come. */
	int (*gather)(struct pfs_sql_scan *scan, struct pfs_sql_rows *rows, int column);
	int (*rowid)(struct pfs_sql_scan *scan, int64_t *rowid, size_t row);
	/* Called while the statement may still be reading: the changes are to be collected. */
	int (*update)(void *user, const struct pfs_sql_update *update);
};

/* ---- parts: tables whose rows are there when a statement takes its first step ---- */

#define PFS_SQL_PART_NAME  "sqlite_part_" /* followed by its number; no other table can have that name */
#define PFS_SQL_PART_PLANS (1u << 30)	  /* plus its number: what a plan's steps have as the id of a scan */

struct pfs_sql_part {
	unsigned number;
	const char *declaration; /* CREATE TABLE x (...) */
	void *arg;
	uint64_t (*rows)(void *arg);
	/* Sets *out to a value, which is no blob; its bytes stay until the statement is reset or
	 * finished. */
	void (*value)(void *arg, struct pfs_sql_value *out, uint64_t row, size_t column);
};

/* Lets statements that are prepared from now on name these n parts, numbered from 0, and no others.
 * The array stays the caller's and must last until the next call. Finishes the prepared statement.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_sql_set_parts(struct pfs_sql *sql, const struct pfs_sql_part *parts, size_t n);

/* ---- functions ---- */

struct pfs_sql_call; /* where a function's result goes; a function that returns none returns NULL */
void pfs_sql_return_integer(struct pfs_sql_call *call, int64_t value);
void pfs_sql_return_real(struct pfs_sql_call *call, double value);
void pfs_sql_return_text(struct pfs_sql_call *call, const char *bytes, size_t size); /* copied */
void pfs_sql_return_error(struct pfs_sql_call *call, int error, const char *text);

struct pfs_sql_function {
	const char *name;
	int n_arguments;
	void (*call)(void *user, struct pfs_sql_call *call, const struct pfs_sql_value *arguments);
	/* Or, if step is there, an aggregate of one argument, whose state is zero at first. */
	size_t state_size;
	void (*step)(void *user, struct pfs_sql_call *call, void *state,
		     const struct pfs_sql_value *argument);
	/* State is NULL if there was no row. */
	void (*final)(void *user, struct pfs_sql_call *call, void *state);
};

#define PFS_SQL_PROBLEM_SIZE 256

/* A table function of one value: NAME(value) has the rows that open and next give, one after the other, and none if
 * the value is NULL. */
struct pfs_sql_table_function {
	const char *name;
	const char *columns; /* as CREATE TABLE has them */
	int n_columns;
	int rows_assumed; /* when the statement is planned */
	/* `value` is valid until close.  problem: why the value is none, for people; then the statement ends with -EINVAL and it. */
	int (*open)(void *user, void **rows, const struct pfs_sql_value *value, char problem[PFS_SQL_PROBLEM_SIZE]);
	int (*next)(void *rows); /* also before the first row; 1, or 0: the end */
	int (*value)(void *rows, struct pfs_sql_value *out, int column); /* of the row; valid until the next call */
	void (*close)(void *rows);
	/* Or, if start is there: rows that were opened are kept until the statement ends, and serve whoever asks for the
	 * same value again.  It is called before the first row; from then on next gives all rows, or if `key` is not NULL
	 * those alone whose column key_column, of integers, has it, without a look at the others. */
	int (*start)(void *rows, const int64_t *key);
	int key_column, key_rows; /* rows assumed of a key */
	/* Nothing may be asked for a while: it lets go of what would hold others up.  NULL: there is no such thing. */
	void (*pause)(void *rows);
};

/* ---- connections and statements ---- */

struct pfs_sql_options {
	const struct pfs_sql_source *source;
	const char *declaration; /* CREATE TABLE x (...) with the source's columns; read while opening only */
	const struct pfs_sql_function *functions; /* ended by one whose name is NULL */
	const struct pfs_sql_table_function *const *tables; /* ended by NULL; NULL: none */
	/* Called from time to time while a statement runs; a result that is not 0 ends the
	 * statement. */
	int (*tick)(void *user);
	/* True if every pattern of LIKE and GLOB will be a text whose only wildcard is at its end.
	 * Then both are left to SQLite, which uses an index for them. Some other patterns would
	 * take SQLite for ever. */
	bool plain_patterns;
};
/* Opens a connection. The source, functions and tables must outlive it. *out is NULL on failure.
 * -ENOMEM; -EINVAL: the declaration is none. */
PFS_MUST_CHECK int pfs_sql_open(struct pfs_sql **out, const struct pfs_sql_options *options);
void pfs_sql_close(struct pfs_sql *sql); /* NULL is allowed */

/* The terms on which the next statements run. */
struct pfs_sql_terms {
	void *user; /* passed to callbacks */
	/* Counts what they allocate; what does not fit is sorted in temporary files. */
	struct pfs_account *account;
	uint64_t memory; /* the account's bound in bytes; 0: none */
	/* The most bytes that a value, or a row, may have, else -ENOMEM; 0: PFS_SQL_VALUE_MAX. A
	 * statement that does more than a few operations on each value may get less, down to
	 * PFS_SQL_VALUE_MIN. */
	uint64_t value;
	bool may_change; /* if not, statements that change anything are -EACCES */
};
#define PFS_SQL_VALUE_MAX ((uint64_t)16 << 20)
#define PFS_SQL_VALUE_MIN ((uint64_t)64 << 10)
void pfs_sql_set_up(struct pfs_sql *sql, const struct pfs_sql_terms *terms);

struct pfs_sql_problem {
	long offset; /* of the wrong place in the statement; -1: unknown */
	char text[256];
};

/* Prepares the statement. The calling thread needs a stack as base/thread.h makes them. -EINVAL: it
 * is wrong, empty, more than one statement, too deeply nested, or has parameters; -EACCES: it may
 * not be run here; -E2BIG: it has too many SELECTs; -ENOMEM, or what a callback returned. */
PFS_MUST_CHECK int pfs_sql_prepare(struct pfs_sql *sql, const char *text, size_t len,
				   struct pfs_sql_problem *problem);
void pfs_sql_finish(struct pfs_sql *sql); /* finishes the statement, if there is one */
/* Finishes the statement and forgets the terms, until the next set_up. Returns false if a
 * transaction could not be ended: the connection is of no more use then. */
PFS_MUST_CHECK bool pfs_sql_rest(struct pfs_sql *sql);
void pfs_sql_reset(struct pfs_sql *sql);  /* goes back to before the first row */

/* Calls fn for each column of the table of that name, hidden ones included, until it returns
 * non-zero, which is returned. -ENOENT: there is no such table; -ENOMEM. */
PFS_MUST_CHECK int pfs_sql_table_columns(struct pfs_sql *sql, const char *table,
					 int (*fn)(void *arg, const char *name, bool is_hidden), void *arg);

/* Sets *out to what SQLite makes of the number, which need not be the nearest. -ENOMEM, -EIO. */
PFS_MUST_CHECK int pfs_sql_real(struct pfs_sql *sql, double *out, const char *text);

/* Steps to the next row. Returns 1 for a row, 0 at the end; -EINTR; -EINVAL: the problem's text
 * says what is wrong; -ENOMEM; -ENOSPC and -EIO of temporary files; or what a callback returned,
 * with an empty text. */
PFS_MUST_CHECK int pfs_sql_step(struct pfs_sql *sql, struct pfs_sql_problem *problem);
void pfs_sql_interrupt(struct pfs_sql *sql);

/* The statement, which does not run now, may not go on for long. */
void pfs_sql_pause(struct pfs_sql *sql);

/* Tells what the prepared statement reads, as SQLite asked leave for it while it prepared: each
 * column of each table once, by the names that they are declared with; a table of which no column
 * is read has the column "". Returns false if they were too many to be remembered, or memory was
 * short. */
struct pfs_sql_read {
	char *table, *column;
};
bool pfs_sql_reads(const struct pfs_sql *sql, const struct pfs_sql_read **reads, size_t *n);
/* Returns the source's columns that the statement needs, a bit each; the 64th bit stands for all
 * from there on. SQLite asks no leave for columns that USING and NATURAL name. */
uint64_t pfs_sql_source_columns(const struct pfs_sql *sql);

size_t pfs_sql_columns(const struct pfs_sql *sql);
const char *pfs_sql_column_name(const struct pfs_sql *sql, size_t column);
/* Returns the affinity, as a declaration names it (INT, REAL, NUM, TEXT, BLOB), of a result that is a column as it is; NULL: it is
 * anything else, or declared without a type. */
const char *pfs_sql_column_affinity(const struct pfs_sql *sql, size_t column);
/* Gets a value of the present row; it is valid until the next step, reset or finish. If there is no
 * memory for it, it is empty, and the next step is -ENOMEM. */
void pfs_sql_value(struct pfs_sql *sql, struct pfs_sql_value *out, size_t column);

/* Calls fn for each step of how the statement `text` would run, outer ones first, until it returns
 * non-zero, which is returned. */
PFS_MUST_CHECK int pfs_sql_explain(struct pfs_sql *sql, const char *text, size_t len,
				   int (*fn)(void *arg, int id, int parent, const char *detail),
				   void *arg);

#endif
