/* SPDX-License-Identifier: MIT */
/* meta/db.h - one SQLite connection to a store, with its prepared statements, and the one place
 * that turns SQLite's results into errnos. For meta/ alone. Threads: a connection belongs to one
 * thread at a time (SQLITE_OPEN_NOMUTEX). */
#ifndef PFS_META_DB_H
#define PFS_META_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "meta/sql.h"

#define PFS_DB_APPLICATION_ID 0x70667331 /* "pfs1"; in the file's header */
#define PFS_DB_PAGE_SIZE      8192

struct pfs_db {
	sqlite3 *handle;
	const char *path; /* for messages; the store owns it */
	int version;	  /* of the file's format; at most PFS_STORE_SCHEMA */
	bool has_history; /* the store kept history when this was opened */
	/* NULL but for the writer of a store that keeps history. */
	sqlite3_stmt *history[PFS_HISTORY_COUNT];
	sqlite3_stmt *sql[PFS_SQL_COUNT];
	struct pfs_db *next; /* in the list of idle readers */
	/* For the writer alone (tablerows.c): statements that write and remove rows of the side
	 * table row_table, which was written last, and where they are; NULL: none was. */
	sqlite3_stmt *row_put, *row_remove;
	uint32_t row_table;
	size_t row_columns;
	struct pfs_packed_cursor *rows;
	int logged; /* the error that was logged last; the same error again is not logged */
	bool keeps; /* it is in one long read transaction: pfs_db_begin_reading and end do
		     * nothing */
	bool open;  /* false while it is being opened: pfs_store_explain then tells some errors */
	struct pfs_account *asker; /* of a reader in use: the account that its thread had entered */
};

enum pfs_db_mode {
	PFS_DB_WRITE,	  /* writes, with a log and syncs */
	PFS_DB_CREATE,	  /* as WRITE; the file is empty and gets the schema */
	PFS_DB_BULK,	  /* as CREATE, without a log and syncs; it is the only connection */
	PFS_DB_READ,	  /* reads, beside a writer of this process or after a crash */
	PFS_DB_IMMUTABLE, /* reads a file that nobody writes: takes no locks, needs no -wal or
			   * -shm */
};

/* Opens a connection to the store at `path`, which is absolute and must outlive the connection;
 * checks the header and prepares the statements. *out is NULL on failure. -EMEDIUMTYPE and
 * -EPROTONOSUPPORT as pfs_store_open; the store's errors. */
PFS_MUST_CHECK int pfs_db_open(struct pfs_db **out, const char *path, enum pfs_db_mode mode,
			       const char *vfs);

/* Prepare and finish the writer's statements that keep history. */
PFS_MUST_CHECK int pfs_db_begin_history(struct pfs_db *db);
void pfs_db_end_history(struct pfs_db *db);

/* Closes and frees the connection. NULL is allowed. Returns 0, or the errno of what could not be
 * closed. */
int pfs_db_close(struct pfs_db *db);

/* Finishes row_put and row_remove, because their table is about to change. */
void pfs_db_forget_rows(struct pfs_db *db);

/* Turns a file that was opened BULK into an ordinary store: gives it a log (WAL), and the header by
 * which a store is recognised. */
PFS_MUST_CHECK int pfs_db_finish_bulk(struct pfs_db *db);

/* Steps the statement. Returns 1 for a row, 0 at the end, or a negative errno, which is logged. */
PFS_MUST_CHECK int pfs_db_step(struct pfs_db *db, sqlite3_stmt *statement);

/* Runs a prepared statement whose parameters are bound and which returns no rows, and resets it. */
PFS_MUST_CHECK int pfs_db_run(struct pfs_db *db, enum pfs_store_statement sql);

/* Runs the text of a statement, which has no parameters; its rows are ignored. */
PFS_MUST_CHECK int pfs_db_exec(struct pfs_db *db, const char *text);

/* Begin and end a read transaction, in which all statements of the connection see one state of the
 * store. */
PFS_MUST_CHECK int pfs_db_begin_reading(struct pfs_db *db);
int pfs_db_end_reading(struct pfs_db *db);

/* Returns the errno for a result of SQLite on this connection, and logs the connection's message; 0
 * for SQLITE_OK. */
int pfs_db_errno(struct pfs_db *db, int result);

/* Logs that a row of the table is damaged; `what` says how. Returns -EUCLEAN. */
int pfs_db_damaged(const struct pfs_db *db, const char *table, uint64_t prime, const char *what);

static inline void pfs_cleanup_statement(sqlite3_stmt **statement)
{
	(void)sqlite3_reset(*statement); /* the step has reported the error that this returns */
}

/* sqlite3_stmt *s PFS_RESET = db->sql[...]; resets the statement at the end of the block. */
#define PFS_RESET __attribute__((cleanup(pfs_cleanup_statement)))

/* ---- reading the values of a row ----
 * Most functions return false if the value has another type or is out of range. */

bool pfs_column_int(int64_t *out, sqlite3_stmt *row, int column, int64_t low, int64_t high);
bool pfs_column_u32(uint32_t *out, sqlite3_stmt *row, int column);
bool pfs_column_u64(uint64_t *out, sqlite3_stmt *row,
		    int column); /* kept as int64_t of the same bits */

/* Sets *data to bytes that belong to the row until the next step; it is never NULL. */
bool pfs_column_blob(const void **data, size_t *len, sqlite3_stmt *row, int column, size_t max_len);

struct pfs_time;
bool pfs_column_time(struct pfs_time *out, sqlite3_stmt *row, int column);

/* Gets a value of any type; its bytes belong to the row until the next step. */
struct pfs_cell;
void pfs_column_cell(struct pfs_cell *cell, sqlite3_stmt *row, int column);

#define PFS_TIME_TEXT_SIZE 32

/* Bind values to parameters. This copies nothing and cannot fail: blobs must stay valid until the
 * statement has run. */
void pfs_bind_int(sqlite3_stmt *statement, int parameter, int64_t value);
void pfs_bind_u64(sqlite3_stmt *statement, int parameter, uint64_t value);
void pfs_bind_blob(sqlite3_stmt *statement, int parameter, const void *data, size_t len);
void pfs_bind_time(sqlite3_stmt *statement, int parameter, const struct pfs_time *time,
		   char text[PFS_TIME_TEXT_SIZE]); /* text: memory that must stay as long */

#endif
