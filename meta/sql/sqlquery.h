/* SPDX-License-Identifier: MIT */
/* meta/sql/sqlquery.h - SQLite as a query engine over tables whose columns come from callbacks.
 *
 * A connection has a database of its own in memory, with copies of side tables (sqlside.h), and a
 * virtual table: the source. A statement reads, changes rows of one table, or makes or drops tables
 * and indexes, as far as its terms allow. ATTACH, triggers, views and pragmas that set something
 * are refused.
 *
 * Threads: one thread at a time uses a connection, but any thread may call pfs_sql_interrupt.
 * Errors: if a callback returns a negative errno, the statement ends with it. Not handled here:
 * what the tables mean. The store's file is not used. */
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
	size_t size; /* of bytes; else 0 */
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
		  PFS_SQL_FUNCTION, /* and following: the source's functions, in their order, of
				       (column, value) */
};

struct pfs_sql_constraint {
	int column; /* -1: the rowid */
	int op;	    /* enum pfs_sql_op */
	const struct pfs_sql_value *value; /* NULL: the value is only known when a scan starts */
	bool is_in; /* it comes from IN: `=` with each of its values (not set for IN of row
		     * values) */
	/* Set by plan(): */
	bool take;  /* the scan wants it as an argument, and gives every row that satisfies it */
	bool exact; /* the scan gives no other rows, so SQLite need not check it */
};

struct pfs_sql_order {
	int column; /* -1: the rowid */
	bool descending; /* NULL is less than any other value */
};
#define PFS_SQL_ORDER_MAX 8

struct pfs_sql_plan {
	/* The conditions that the source may check. Comparisons of text with a collation other than
	 * BINARY are not among them. */
	struct pfs_sql_constraint *constraints;
	size_t n;
	uint64_t columns; /* the columns that the statement uses, a bit each; bit 63: any from 63
			   * on */
	const struct pfs_sql_order
		*order; /* the wanted order; SQLite sorts if the source does not */
	size_t n_order;
	uint64_t limit; /* a hint: at most so many rows are read, if SQLite leaves none of them
			 * out */
	/* Set by plan(): */
	unsigned id; /* passed to start() */
	bool ordered; /* rows will come in the wanted order */
	bool unique;  /* at most one row will come */
	double cost;  /* in units of what a step over one row costs SQLite */
	int64_t rows;
};

/* A constraint that the scan took, with its value. Arguments are in the order of the constraints.
 */
struct pfs_sql_argument {
	int column, op;
	struct pfs_sql_value value;
	/* If the value is a text that reads as a number: that number; else the value. */
	struct pfs_sql_value number;
};

/* What a scan is started with. */
struct pfs_sql_begin {
	unsigned id;	  /* these three are of the plan */
	uint64_t columns, limit;
	const struct pfs_sql_order *order; /* NULL unless the plan said `ordered` */
	size_t n_order;
	const struct pfs_sql_argument *arguments;
	size_t n;
};

/* A batch of rows, column by column, in the source's memory; valid until the next fetch or start.
 */
enum pfs_sql_kind {
	PFS_SQL_ABSENT, /* gather() fills it in when it is needed */
	PFS_SQL_INTEGERS,
	PFS_SQL_BYTES,
	PFS_SQL_VALUES,
};
#define PFS_SQL_NO_INTEGER INT64_MIN /* NULL */

struct pfs_sql_column {
	enum pfs_sql_kind kind;
	const int64_t *integers;
	const char *bytes; /* the text of row i is at offset[i] to offset[i + 1] */
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
	int64_t rowid; /* of the row that is changed; not set for an INSERT */
	const struct pfs_sql_value *columns; /* the new values of n columns; n is 0 for a DELETE */
	const bool *given; /* UPDATE: the statement sets this column; INSERT: it is not NULL */
	bool sets_rowid;   /* to another one */
	size_t n;
};

struct pfs_sql_scan; /* the source's */

struct pfs_sql_source {
	const char *name;
	const char *const
		*functions; /* names of functions that it takes as constraints; the last is NULL */
	void (*plan)(void *user, struct pfs_sql_plan *plan);
	/* Between open and close a scan is started any number of times. */
	int (*open)(void *user, struct pfs_sql_scan **scan);
	void (*close)(struct pfs_sql_scan *scan);
	int (*start)(struct pfs_sql_scan *scan, const struct pfs_sql_begin *begin);
	/* Gets the next batch; rows->n is 0 at the end. */
	int (*fetch)(struct pfs_sql_scan *scan, struct pfs_sql_rows *rows);
	/* Fills in rows->columns[column] of this batch; fetch then fills it in for later batches.
	 */
	int (*gather)(struct pfs_sql_scan *scan, struct pfs_sql_rows *rows, int column);
	int (*rowid)(struct pfs_sql_scan *scan, int64_t *rowid, size_t row);
	/* Notes a change. The statement may still be reading, so the source must not apply it yet.
	 */
	int (*update)(void *user, const struct pfs_sql_update *update);
};

/* ---- parts: tables whose rows are known when a statement takes its first step ---- */

#define PFS_SQL_PART_NAME  "sqlite_part_" /* and its number; SQLite allows no other table this name */
#define PFS_SQL_PART_PLANS (1u << 30)	  /* plus its number: the id of its scans in a plan */

struct pfs_sql_part {
	unsigned number;
	const char *declaration; /* CREATE TABLE x (...) */
	unsigned rows_assumed; /* by SQLite, when it plans the statement before the part has run */
	void *arg;
	uint64_t (*rows)(void *arg);
	/* Gets a value, which is no blob; its bytes are valid until the statement is reset or
	 * finished. */
	void (*value)(void *arg, struct pfs_sql_value *out, uint64_t row, size_t column);
};

/* Sets the parts, numbered from 0, that statements can name which are prepared from now on. The
 * array stays the caller's, and must stay valid until the next call. Finishes the prepared
 * statement. -ENOMEM. */
PFS_MUST_CHECK int pfs_sql_set_parts(struct pfs_sql *sql, const struct pfs_sql_part *parts,
				     size_t n);

/* ---- functions ---- */

/* A call of a function, for setting its result. If none is set, the result is NULL. */
struct pfs_sql_call;
void pfs_sql_return_integer(struct pfs_sql_call *call, int64_t value);
void pfs_sql_return_real(struct pfs_sql_call *call, double value);
void pfs_sql_return_text(struct pfs_sql_call *call, const char *bytes, size_t size); /* copied */
void pfs_sql_return_error(struct pfs_sql_call *call, int error, const char *text);

struct pfs_sql_function {
	const char *name;
	int n_arguments;
	void (*call)(void *user, struct pfs_sql_call *call, const struct pfs_sql_value *arguments);
	/* If step is not NULL, the function is an aggregate of one argument; its state is 0 at
	 * first. */
	size_t state_size;
	void (*step)(void *user, struct pfs_sql_call *call, void *state,
		     const struct pfs_sql_value *argument);
	/* state is NULL if there was no row. */
	void (*final)(void *user, struct pfs_sql_call *call, void *state);
};

#define PFS_SQL_PROBLEM_SIZE 256

/* A table function of one value: NAME(value) is a table with the rows that open and next give; it
 * is empty if the value is NULL. */
struct pfs_sql_table_function {
	const char *name;
	const char *columns; /* their declarations, as in CREATE TABLE */
	int n_columns;
	int rows_assumed; /* the estimate for planning */
	/* Opens the rows of a value, which is valid until close. If the value is wrong, it returns
	 * -EINVAL and writes a sentence to `problem`; the statement ends with both. */
	int (*open)(void *user, void **rows, const struct pfs_sql_value *value,
		    char problem[PFS_SQL_PROBLEM_SIZE]);
	int (*next)(
		void *rows); /* goes to the next, at first to the first row: 1, or 0 at the end */
	/* Gets a value of the row; it is valid until the next call. */
	int (*value)(void *rows, struct pfs_sql_value *out, int column);
	void (*close)(void *rows);
	/* If start is not NULL, opened rows are kept until the statement ends, and used again for
	 * the same value. start is called before the first row. After it, next gives all rows or,
	 * if key is not NULL, the rows that have *key in the column key_column, of integers. */
	int (*start)(void *rows, const int64_t *key);
	int key_column, key_rows; /* key_rows: the estimate of the rows with one key */
	/* Called when nothing may be read for a while: releases what would hold others up. May be
	 * NULL. */
	void (*pause)(void *rows);
};

/* Returns true if the name is that of a function of SQLite's own that is read as a table. A table
 * cannot have it, which would stand in the function's place. */
bool pfs_sql_is_sqlites(const char *name);

/* ---- connections and statements ---- */

struct pfs_sql_options {
	const struct pfs_sql_source *source;
	const char *
		declaration; /* CREATE TABLE x (...) with the source's columns; read only by open */
	const struct pfs_sql_function *functions; /* the last has the name NULL */
	const struct pfs_sql_table_function *const
		*tables; /* the last is NULL; NULL: there are none */
	/* Called from time to time while a statement runs; a result other than 0 ends it. */
	int (*tick)(void *user);
	/* True if every pattern of LIKE and GLOB has one wildcard, at its end. Then SQLite's own
	 * functions are used, which can use an index. With some other patterns they would run
	 * nearly for ever. */
	bool plain_patterns;
};
/* Opens a connection. The source, functions and tables must outlive it. *out is NULL on failure.
 * -ENOMEM; -EINVAL: the declaration is wrong. */
PFS_MUST_CHECK int pfs_sql_open(struct pfs_sql **out, const struct pfs_sql_options *options);
void pfs_sql_close(struct pfs_sql *sql); /* NULL is allowed */

/* The terms for the next statements. */
struct pfs_sql_terms {
	void *user; /* passed to callbacks */
	/* Counts what they allocate. Sorts that do not fit use temporary files. */
	struct pfs_account *account;
	uint64_t memory; /* the account's bound in bytes; 0: there is none */
	/* The most bytes of a value or row; a longer one is -ENOMEM. 0: PFS_SQL_VALUE_MAX. A
	 * statement with many operations on each value may get less, down to PFS_SQL_VALUE_MIN. */
	uint64_t value;
	bool may_change; /* false: statements that change something fail with -EACCES */
};
#define PFS_SQL_VALUE_MAX ((uint64_t)16 << 20)
#define PFS_SQL_VALUE_MIN ((uint64_t)64 << 10)
void pfs_sql_set_up(struct pfs_sql *sql, const struct pfs_sql_terms *terms);
/* Sets *limit to the most bytes that a value of the prepared statement may have, less than the
 * terms say if it has many operations. -EOPNOTSUPP: SQLite has an error to tell, at the first
 * step. */
PFS_MUST_CHECK int pfs_sql_value_limit(struct pfs_sql *sql, uint64_t *limit);

/* A format of printf() whose conversions are of numbers and texts, taken apart. */
#define PFS_SQL_PIECES_MAX 16
#define PFS_SQL_SPEC_MAX   64 /* bytes; also the greatest width and precision */
struct pfs_sql_format {
	struct pfs_sql_piece {
		enum { PFS_SQL_AS_IS, PFS_SQL_AS_INTEGER, PFS_SQL_AS_REAL, PFS_SQL_AS_TEXT } what;
		const char *text; /* AS_IS: bytes of the format */
		size_t len;
		char spec[PFS_SQL_SPEC_MAX]; /* INTEGER, REAL: as SQLite takes it for 64 bits */
		bool is_decimal;	     /* INTEGER: its digits, and nothing else */
		/* TEXT: in bytes, or, if counts_characters, in characters; precision -1: all */
		bool at_left, counts_characters;
		int width, precision;
	} pieces[PFS_SQL_PIECES_MAX];
	size_t n_pieces;
	size_t n_values; /* of the pieces, those that print a value */
};
#define PFS_SQL_PRINTED_MAX 1024 /* bytes of a printed number, with a NUL */
/* Returns false if the format has another conversion, none, or more pieces. The format's bytes stay
 * the caller's. */
bool pfs_sql_format_take(struct pfs_sql_format *out, const char *format, size_t len);
/* Prints the number, a real or an integer, as printf() does. Returns how many bytes that makes. */
size_t pfs_sql_print_number(char out[PFS_SQL_PRINTED_MAX], const struct pfs_sql_piece *piece,
			    bool is_real, int64_t integer, double real);

struct pfs_sql_problem {
	long offset; /* of the error in the statement; -1: unknown */
	char text[256];
};

/* Prepares a statement. The calling thread has a stack of PFS_THREAD_STACK (base/thread.h).
 * -EINVAL: the text is wrong, empty, more than one statement, nested too deeply, or has parameters;
 * -EACCES: the statement is not allowed; -E2BIG: it has too many SELECTs; -ENOMEM; what a callback
 * returned. */
PFS_MUST_CHECK int pfs_sql_prepare(struct pfs_sql *sql, const char *text, size_t len,
				   struct pfs_sql_problem *problem);
void pfs_sql_finish(struct pfs_sql *sql); /* finishes the statement, if there is one */
/* Finishes the statement, and forgets the terms until the next pfs_sql_set_up. Returns false if a
 * transaction could not be ended: the connection must then be closed. */
PFS_MUST_CHECK bool pfs_sql_rest(struct pfs_sql *sql);
void pfs_sql_reset(struct pfs_sql *sql);  /* goes back to before the first row */

/* Calls fn for each column of a table, also for hidden ones, until fn returns non-zero, which is
 * returned. -ENOENT: there is no such table; -ENOMEM. */
PFS_MUST_CHECK int pfs_sql_table_columns(struct pfs_sql *sql, const char *table,
					 int (*fn)(void *arg, const char *name, bool is_hidden),
					 void *arg);

/* Sets *out to the real that SQLite reads from the text, which may not be the nearest one. -ENOMEM,
 * -EIO. */
PFS_MUST_CHECK int pfs_sql_real(struct pfs_sql *sql, double *out, const char *text);

/* Goes to the next row. Returns 1 for a row, 0 at the end. -EINTR; -EINVAL: problem->text says what
 * is wrong; -ENOMEM; -ENOSPC and -EIO of temporary files; what a callback returned, with an empty
 * text. */
PFS_MUST_CHECK int pfs_sql_step(struct pfs_sql *sql, struct pfs_sql_problem *problem);
void pfs_sql_interrupt(struct pfs_sql *sql);

/* Tells the connection that its statement may not be stepped for a while: table functions are
 * paused. */
void pfs_sql_pause(struct pfs_sql *sql);

/* Gets what the prepared statement reads, as SQLite asked its authorizer: each column of each table
 * once, with the names of their declarations; a table of which no column is read has the column "".
 * Returns false if these are too many, or memory was short. */
struct pfs_sql_read {
	char *table, *column;
};
bool pfs_sql_reads(const struct pfs_sql *sql, const struct pfs_sql_read **reads, size_t *n);
/* Returns the source's columns that the statement needs, a bit each; bit 63 is for all columns from
 * 63 on. (SQLite does not ask its authorizer for columns of USING and NATURAL.) */
uint64_t pfs_sql_source_columns(const struct pfs_sql *sql);

/* Return how many columns the prepared statement has, and a column's title, which belongs to the
 * statement. */
size_t pfs_sql_columns(const struct pfs_sql *sql);
const char *pfs_sql_column_name(const struct pfs_sql *sql, size_t column);
/* Returns the affinity (INT, REAL, NUM, TEXT or BLOB) of a result column that is just a table's
 * column; NULL: it is an expression, or a column that is declared without a type. */
const char *pfs_sql_column_affinity(const struct pfs_sql *sql, size_t column);
/* Gets a value of the present row, valid until the next step, reset or finish. If there is no
 * memory for it, the value is empty, and the next step returns -ENOMEM. */
void pfs_sql_value(struct pfs_sql *sql, struct pfs_sql_value *out, size_t column);

/* Returns true if the text ends with the semicolon of a statement, with nothing but blanks and
 * comments after it. */
bool pfs_sql_is_complete(const char *text);

/* Calls fn for each line of EXPLAIN QUERY PLAN of the statement `text`, outer steps first, until fn
 * returns non-zero, which is returned. Errors as pfs_sql_prepare. */
PFS_MUST_CHECK int pfs_sql_explain(struct pfs_sql *sql, const char *text, size_t len,
				   int (*fn)(void *arg, int id, int parent, const char *detail),
				   void *arg);

#endif
