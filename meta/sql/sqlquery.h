/* SPDX-License-Identifier: MIT */
/* meta/sql/sqlquery.h - SQLite as a query engine over tables that callbacks give, column by column.
 *
 * A connection has a database of its own in memory, with copies of side tables (sqlside.h), and the
 * sources as virtual tables.  Statements read, or change rows of one table, or make and drop tables and
 * indexes, as they are allowed to: no ATTACH, no triggers and views, no pragma that sets anything.
 *
 * Threads: a connection belongs to one thread at a time, but for pfs_sql_interrupt.
 * Not handled here: what the tables hold; the store's file is never touched.
 *
 * What a callback returns as a negative errno ends the statement with it. */
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
	PFS_SQL_FUNCTION, /* and on: the source's functions, in their order, of (column, value) */
};

struct pfs_sql_constraint {
	int column; /* -1: the rowid */
	int op;	    /* enum pfs_sql_op */
	const struct pfs_sql_value *value; /* NULL: not a constant, known only when a scan starts */
	/* out */
	bool take;  /* the scan gets it as an argument, and finds no row fewer than satisfy it */
	bool exact; /* and no row more: SQLite need not look again */
};

struct pfs_sql_order {
	int column; /* -1: the rowid */
	bool descending; /* NULL is less than anything else */
};
#define PFS_SQL_ORDER_MAX 8

struct pfs_sql_plan {
	/* What could be pushed down here.  Comparisons of text by another collation than BINARY are
	 * left out. */
	struct pfs_sql_constraint *constraints;
	size_t n;
	uint64_t columns; /* that the statement uses, bit by bit; bit 63: some from 63 on */
	const struct pfs_sql_order *order; /* that rows are wanted in, or sorted into otherwise */
	size_t n_order;
	uint64_t limit; /* so many rows are read at most, unless others are left out; a hint */
	/* out */
	unsigned id; /* given to start */
	bool ordered; /* rows will come as wanted */
	bool unique;  /* one row at most */
	double cost;  /* about: rows that SQLite could have stepped over instead */
	int64_t rows;
};

/* What was taken, in the order of the constraints. */
struct pfs_sql_argument {
	int column, op;
	struct pfs_sql_value value;
	struct pfs_sql_value number; /* value, if it is text that reads as a number: that */
};

/* What a scan begins with. */
struct pfs_sql_begin {
	unsigned id;	  /* the plan's, as are: */
	uint64_t columns, limit;
	const struct pfs_sql_order *order; /* if it said `ordered` */
	size_t n_order;
	const struct pfs_sql_argument *arguments;
	size_t n;
};

/* A batch of rows, column by column; the source's until the next fetch or start. */
enum pfs_sql_kind {
	PFS_SQL_ABSENT, /* not gathered: asked for when it is needed */
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
	const uint8_t *is_null; /* NULL: none is */
	const struct pfs_sql_value *values;
};

struct pfs_sql_rows {
	size_t n;
	struct pfs_sql_column *columns; /* one for each of the table's */
};

/* A change of one row that a statement asks for. */
struct pfs_sql_update {
	enum { PFS_SQL_UPDATES, PFS_SQL_DELETES, PFS_SQL_INSERTS } kind;
	int64_t rowid; /* of the row that is there */
	const struct pfs_sql_value *columns; /* n of them, as they are to be; none to DELETE */
	const bool *given; /* UPDATE: the statement sets it; INSERT: it is not NULL */
	size_t n;
};

struct pfs_sql_scan; /* the source's own */

struct pfs_sql_source {
	const char *name;
	const char *const *functions; /* that constraints may be, ended by NULL */
	void (*plan)(void *user, struct pfs_sql_plan *plan);
	/* open and close frame any number of starts. */
	int (*open)(void *user, struct pfs_sql_scan **scan);
	void (*close)(struct pfs_sql_scan *scan);
	int (*start)(struct pfs_sql_scan *scan, const struct pfs_sql_begin *begin);
	int (*fetch)(struct pfs_sql_scan *scan, struct pfs_sql_rows *rows); /* n 0: the end */
	/* Fills in rows->columns[column] of the batch, and of those to come. */
	int (*gather)(struct pfs_sql_scan *scan, struct pfs_sql_rows *rows, int column);
	int (*rowid)(struct pfs_sql_scan *scan, int64_t *rowid, size_t row);
	/* Called while the statement may still read: what is asked for is to be collected. */
	int (*update)(void *user, const struct pfs_sql_update *update);
};

/* ---- parts: tables whose rows are there when a statement takes its first step ---- */

#define PFS_SQL_PART_NAME  "sqlite_part_" /* and its number: no other table can have that name */
#define PFS_SQL_PART_PLANS (1u << 30)	  /* and its number: what a plan's steps have for an id of a scan */

struct pfs_sql_part {
	unsigned number;
	const char *declaration; /* CREATE TABLE x (...) */
	void *arg;
	uint64_t (*rows)(void *arg);
	/* No blobs; bytes stay until the statement is reset or finished. */
	void (*value)(void *arg, struct pfs_sql_value *out, uint64_t row, size_t column);
};

/* Statements prepared from now on may name these n, numbered from 0 on, and no others; the array stays the
 * caller's, until the next call.  The prepared statement is finished.  -ENOMEM. */
PFS_MUST_CHECK int pfs_sql_set_parts(struct pfs_sql *sql, const struct pfs_sql_part *parts, size_t n);

/* ---- functions ---- */

struct pfs_sql_call; /* where a function's result goes; without one it is NULL */
void pfs_sql_return_integer(struct pfs_sql_call *call, int64_t value);
void pfs_sql_return_real(struct pfs_sql_call *call, double value);
void pfs_sql_return_text(struct pfs_sql_call *call, const char *bytes, size_t size); /* copied */
void pfs_sql_return_error(struct pfs_sql_call *call, int error, const char *text);

struct pfs_sql_function {
	const char *name;
	int n_arguments;
	void (*call)(void *user, struct pfs_sql_call *call, const struct pfs_sql_value *arguments);
	/* Or an aggregate of one argument: state is zero at first. */
	size_t state_size;
	void (*step)(void *user, struct pfs_sql_call *call, void *state,
		     const struct pfs_sql_value *argument);
	void (*final)(void *user, struct pfs_sql_call *call, void *state); /* state NULL: no row */
};

/* A table function over a text: NAME(text) has a row for each line, with the columns line (from 1), path (its
 * bytes) and ino (the number that it gets). */
struct pfs_sql_list {
	const char *name;
	/* out[i] = the number of lines[i], or PFS_SQL_NO_INTEGER. */
	int (*number)(void *user, int64_t *out, const struct pfs_sql_value *lines, size_t n);
};

/* ---- connections and statements ---- */

struct pfs_sql_options {
	const struct pfs_sql_source *source;
	const char *declaration; /* CREATE TABLE x (...): the source's columns; not kept */
	const struct pfs_sql_function *functions; /* ended by one without a name */
	const struct pfs_sql_list *list; /* NULL: none */
	/* Asked from time to time while a statement runs; not 0 ends it. */
	int (*tick)(void *user);
	/* Every pattern of LIKE and GLOB is a text that ends with its only wildcard: they are left to
	 * SQLite, which goes by an index then.  Of other patterns some would take SQLite for ever. */
	bool plain_patterns;
};
/* *out NULL on failure.  The source, functions and list must outlive it.  -ENOMEM, -EINVAL (the
 * declaration is none). */
PFS_MUST_CHECK int pfs_sql_open(struct pfs_sql **out, const struct pfs_sql_options *options);
void pfs_sql_close(struct pfs_sql *sql); /* NULL is allowed */

/* How the next statements run. */
struct pfs_sql_terms {
	void *user; /* what callbacks get */
	struct pfs_account *account; /* that they allocate on, sorting in temporary files what is more */
	uint64_t memory; /* its bound; 0: none */
	uint64_t value;	 /* the most bytes that a value, or a row, may have: a longer one is -ENOMEM; 0: as
			    many as PFS_SQL_VALUE_MAX.  Of a statement that does more than a few
			    operations on each value it may be less, down to PFS_SQL_VALUE_MIN */
	bool may_change; /* else statements that change anything are -EACCES */
};
#define PFS_SQL_VALUE_MAX ((uint64_t)16 << 20)
#define PFS_SQL_VALUE_MIN ((uint64_t)64 << 10)
void pfs_sql_set_up(struct pfs_sql *sql, const struct pfs_sql_terms *terms);

struct pfs_sql_problem {
	long offset; /* -1: unknown */
	char text[256];
};

/* -EINVAL: wrong, empty, more than one statement, with parameters, or too deeply nested; -EACCES: not a
 * statement that may be run here; -E2BIG: too many SELECTs; -ENOMEM, or what a callback said.  Whoever
 * calls has a stack as base/thread.h makes them. */
PFS_MUST_CHECK int pfs_sql_prepare(struct pfs_sql *sql, const char *text, size_t len,
				   struct pfs_sql_problem *problem);
void pfs_sql_finish(struct pfs_sql *sql); /* the statement, if there is one */
/* Finish, and forgets what callbacks get until set_up.  False: a transaction could not be ended, and the
 * connection is of no more use. */
PFS_MUST_CHECK bool pfs_sql_rest(struct pfs_sql *sql);
void pfs_sql_reset(struct pfs_sql *sql);  /* to before its first row */

/* Calls fn for each column of the table of that name, hidden ones included, until it returns non-zero, which
 * is returned.  -ENOENT: there is no such table; -ENOMEM. */
PFS_MUST_CHECK int pfs_sql_table_columns(struct pfs_sql *sql, const char *table,
					 int (*fn)(void *arg, const char *name, bool is_hidden), void *arg);

/* 1: a row; 0: the end; -EINTR, -EINVAL (the text says), -ENOMEM, -ENOSPC and -EIO (temporary
 * files), or what a callback said (the text is empty then). */
PFS_MUST_CHECK int pfs_sql_step(struct pfs_sql *sql, struct pfs_sql_problem *problem);
void pfs_sql_interrupt(struct pfs_sql *sql);

/* What the prepared statement reads, as SQLite asked for leave to while it prepared it: each column
 * of each table once, by their names as they are declared; the column is "" where a table is read
 * and none of its columns.  False: they are too many to be remembered, or memory was short. */
struct pfs_sql_read {
	char *table, *column;
};
bool pfs_sql_reads(const struct pfs_sql *sql, const struct pfs_sql_read **reads, size_t *n);
/* The source's columns that it needs, by their numbers, the 64th bit being all from there on.  SQLite asks no
 * leave for those that USING and NATURAL name. */
uint64_t pfs_sql_source_columns(const struct pfs_sql *sql);

size_t pfs_sql_columns(const struct pfs_sql *sql);
const char *pfs_sql_column_name(const struct pfs_sql *sql, size_t column);
/* Of the row; valid until the next step, reset or finish.  One that there is no memory for is empty, and
 * that step is -ENOMEM. */
void pfs_sql_value(struct pfs_sql *sql, struct pfs_sql_value *out, size_t column);

/* ---- rows past SQLite ---- */

#define PFS_SQL_PLAIN_MAX 64 /* columns of a statement's row */

struct pfs_sql_plain {
	int columns[PFS_SQL_PLAIN_MAX]; /* of the source, by column of the row; -1: the rowid */
	struct pfs_sql_scan *scan;
	struct pfs_sql_rows rows; /* its batch, */
	size_t row;		  /* and which one of it is the statement's */
};

/* Of a statement that stands on a row: whether each of its rows is one of a single scan of the source,
 * nothing being computed, left out or sorted on the way.  It is asked for in SQLite's program for the
 * statement, which takes about as long as pfs_sql_prepare; plans are made for it anew.  False also
 * where there is any doubt.  The scan stays open until the statement is reset or finished, and may be
 * read on by its own fetch; the statement then must not be stepped again. */
bool pfs_sql_plain(struct pfs_sql *sql, struct pfs_sql_plain *plain);

/* Calls fn for each step of how the statement `text` would run, outer ones first, until it returns
 * non-zero, which is returned. */
PFS_MUST_CHECK int pfs_sql_explain(struct pfs_sql *sql, const char *text, size_t len,
				   int (*fn)(void *arg, int id, int parent, const char *detail),
				   void *arg);

#endif
