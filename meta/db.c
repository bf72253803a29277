/* SPDX-License-Identifier: MIT */
#include "meta/db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "meta/account.h"
#include "meta/version.h"
#include "meta/vfs.h"

/* another program may look into the file, for example sqlite3(1) */
#define BUSY_TIMEOUT_MS 5000
#define ROW_LIMIT	(16 << 20) /* bytes; a damaged row may claim any length */
#define PATH_LIMIT	500	   /* SQLite allows 512 bytes, including "-journal" */
#define URI_SIZE	2048	   /* each byte of the path may take three */

enum sql_kind { READ, WRITE, BULK };

static const struct {
	enum sql_kind kind;
	const char *text;
} statements[PFS_SQL_COUNT] = {
#define SQL_STATEMENT(name, kind, text) [PFS_SQL_##name] = {(kind), (text)},
	PFS_SQL_STATEMENTS(SQL_STATEMENT)};

static const char *const history[PFS_HISTORY_COUNT] = {
#define HISTORY_TEXT(name, text) [PFS_HISTORY_##name] = (text),
	PFS_HISTORY_STATEMENTS(HISTORY_TEXT)};

/* ---- errors ---- */

/* SQLite has no errno of a connection for what fails in a COMMIT; the files have. */
static int system_errno(sqlite3 *handle)
{
	int error = sqlite3_system_errno(handle);
	sqlite3_file *log = NULL;

	if (!error)
		(void)sqlite3_file_control(handle, "main", SQLITE_FCNTL_LAST_ERRNO, &error);
	if (!error)
		(void)sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
	if (log && log->pMethods)
		(void)log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &error);
	return error;
}

static int io_errno(sqlite3 *handle, int result)
{
	int system = handle ? system_errno(handle) : 0;

	if (result == SQLITE_IOERR_NOMEM)
		return -ENOMEM;
	if (result == SQLITE_IOERR_CORRUPTFS)
		return -EUCLEAN;
	return system == ENOSPC || system == EDQUOT || system == EFBIG ? -system : -EIO;
}

/* SQLite tries in other ways after a refusal, so that its errno may be of one of these. */
static int open_errno(const struct pfs_db *db)
{
	int system = db->handle ? sqlite3_system_errno(db->handle) : 0;
	char why[1];

	if (pfs_vfs_explain(why, sizeof(why), db->path))
		return -EPERM;
	return system > 0 ? -system : -EIO;
}

static int errno_of(const struct pfs_db *db, int result)
{
	switch (result & 0xff) {
	case SQLITE_OK:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_INTERRUPT: /* by the caller whose `tick` returned non-zero */
		return -EINTR;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_IOERR:
		return io_errno(db->handle, result);
	case SQLITE_CANTOPEN:
		return open_errno(db);
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
		return -EBUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_CONSTRAINT: /* the store's own statements break no constraint of a sound file */
	case SQLITE_TOOBIG:	/* and a sound file has no such row */
	case SQLITE_SCHEMA:
		return -EUCLEAN;
	default:
		return -EIO;
	}
}

/* Returns true if pfs_store_explain describes the error in a line of its own. */
static bool told_elsewhere(const struct pfs_db *db, int error)
{
	return error == -EUCLEAN || error == -EINTR ||
	       (!db->open &&
		(error == -EACCES || error == -EPERM || error == -EROFS || error == -ENOENT));
}

int pfs_db_errno(struct pfs_db *db, int result)
{
	int error = errno_of(db, result);

	if (error && error != db->logged) {
		db->logged = error;
		pfs_log(told_elsewhere(db, error) ? PFS_LOG_INFO : PFS_LOG_ERROR,
			"%s: %s (SQLite result %d)", db->path,
			db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(result), result);
	}
	return error;
}

int pfs_db_damaged(const struct pfs_db *db, const char *table, uint64_t prime, const char *what)
{
	pfs_info("%s: damaged: %s %llu: %s; see `primefs check`", db->path, table,
		 (unsigned long long)prime, what);
	return -EUCLEAN;
}

int pfs_db_step(struct pfs_db *db, sqlite3_stmt *statement)
{
	int result = sqlite3_step(statement);

	if (result == SQLITE_ROW)
		return 1;
	return result == SQLITE_DONE ? 0 : pfs_db_errno(db, result);
}

int pfs_db_run(struct pfs_db *db, enum pfs_store_statement sql)
{
	sqlite3_stmt *statement PFS_RESET = db->sql[sql];
	int got = pfs_db_step(db, statement);

	return got < 0 ? got : 0;
}

int pfs_db_exec(struct pfs_db *db, const char *text)
{
	return pfs_db_errno(db, sqlite3_exec(db->handle, text, NULL, NULL, NULL));
}

int pfs_db_begin_reading(struct pfs_db *db)
{
	return db->keeps ? 0 : pfs_db_exec(db, "BEGIN");
}

int pfs_db_end_reading(struct pfs_db *db)
{
	if (db->keeps || sqlite3_get_autocommit(db->handle))
		return 0; /* some failures end the transaction */
	return pfs_db_exec(db, "ROLLBACK");
}

/* ---- opening ---- */

static int make_uri(char uri[URI_SIZE], const char *path, const char *query)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-._~/";
	size_t at = (size_t)snprintf(uri, URI_SIZE, "file:");

	for (; *path; path++) {
		if (at + 4 > URI_SIZE)
			return -ENAMETOOLONG;
		if (strchr(plain, *path))
			uri[at++] = *path;
		else
			at += (size_t)snprintf(uri + at, 4, "%%%02X", (unsigned char)*path);
	}
	if (at + strlen(query) + 1 > URI_SIZE)
		return -ENAMETOOLONG;
	(void)snprintf(uri + at, URI_SIZE - at, "%s", query);
	return 0;
}

static int open_handle(struct pfs_db *db, enum pfs_db_mode mode, const char *vfs)
{
	bool read = mode == PFS_DB_READ || mode == PFS_DB_IMMUTABLE;
	char uri[URI_SIZE];
	int error;

	pfs_accounts_begin();
	if (strlen(db->path) > PATH_LIMIT)
		return -ENAMETOOLONG;
	error = make_uri(uri, db->path, mode == PFS_DB_IMMUTABLE ? "?immutable=1" : "");
	if (error)
		return error;
	error = pfs_db_errno(db,
			     sqlite3_open_v2(uri, &db->handle,
					     (read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
						     SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX |
						     SQLITE_OPEN_EXRESCODE,
					     vfs ? vfs : pfs_vfs_name()));
	if (error)
		return error;
	(void)sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
	(void)sqlite3_limit(db->handle, SQLITE_LIMIT_LENGTH, ROW_LIMIT);
	/* A defensive connection silently refuses to work without a journal. */
	(void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, mode != PFS_DB_BULK, NULL);
	(void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	(void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	(void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	return 0;
}

static const char *mode_pragmas(enum pfs_db_mode mode)
{
	switch (mode) {
	case PFS_DB_BULK:
		return "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF;"
		       "PRAGMA synchronous = OFF; PRAGMA cache_size = -16384;"
		       "PRAGMA secure_delete = OFF;";
	case PFS_DB_CREATE:
	case PFS_DB_WRITE:
		return "PRAGMA synchronous = FULL;"
		       "PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 268435456;"
		       "PRAGMA cache_size = -16384; PRAGMA secure_delete = OFF;";
	case PFS_DB_READ:
	case PFS_DB_IMMUTABLE:
		break;
	}
	return "PRAGMA cache_size = -1024; PRAGMA query_only = 1;";
}

/* Makes SQLite use a log. Without shared memory SQLite keeps the old journal, and says so only in a
 * row. */
static int use_log(struct pfs_db *db)
{
	sqlite3_stmt *row = NULL;
	int got = pfs_db_errno(
		db, sqlite3_prepare_v2(db->handle, "PRAGMA journal_mode = WAL", -1, &row, NULL));

	if (!got)
		got = pfs_db_step(db, row);
	if (got == 1) {
		const char *mode = (const char *)sqlite3_column_text(row, 0);

		got = !mode ? -ENOMEM : strcmp(mode, "wal") == 0 ? 0 : -ENOLCK;
	}
	(void)sqlite3_finalize(row);
	return got;
}

static int create_schema(struct pfs_db *db, enum pfs_db_mode mode)
{
	int error = pfs_db_exec(db, "BEGIN IMMEDIATE");

	if (!error)
		error = pfs_db_exec(db, pfs_schema_sql);
	if (!error)
		error = pfs_db_exec(db, "INSERT INTO meta VALUES (1, random(), 0, 3, 4294967297, "
					"0, 0, 0, 0, NULL, NULL, NULL, NULL)");
	if (!error && mode == PFS_DB_CREATE) /* a bulk store is marked when it is complete */
		error = pfs_version_mark(db);
	return error ? error : pfs_db_exec(db, "COMMIT");
}

static int prepare_all(struct pfs_db *db, enum pfs_db_mode mode, bool read_only)
{
	int error = 0;
	int i;

	for (i = 0; i < PFS_SQL_COUNT && !error; i++) {
		if ((statements[i].kind == WRITE && read_only) ||
		    (statements[i].kind == BULK && mode != PFS_DB_BULK))
			continue;
		error = pfs_db_errno(db, sqlite3_prepare_v3(db->handle, statements[i].text, -1,
							    SQLITE_PREPARE_PERSISTENT, &db->sql[i],
							    NULL));
	}
	return error;
}

int pfs_db_begin_history(struct pfs_db *db)
{
	int error = 0;

	for (int i = 0; i < PFS_HISTORY_COUNT && !error; i++)
		error = pfs_db_errno(db, sqlite3_prepare_v3(db->handle, history[i], -1,
							    SQLITE_PREPARE_PERSISTENT,
							    &db->history[i], NULL));
	return error;
}

void pfs_db_end_history(struct pfs_db *db)
{
	for (int i = 0; i < PFS_HISTORY_COUNT; i++) {
		(void)sqlite3_finalize(db->history[i]);
		db->history[i] = NULL;
	}
}

static int set_up(struct pfs_db *db, enum pfs_db_mode mode, const char *vfs)
{
	bool create = mode == PFS_DB_CREATE || mode == PFS_DB_BULK;
	bool read_only = mode == PFS_DB_READ || mode == PFS_DB_IMMUTABLE;
	int error = open_handle(db, mode, vfs);

	if (!error)
		error = pfs_db_exec(db, "PRAGMA mmap_size = 0; PRAGMA cell_size_check = 1;"
					"PRAGMA temp_store = MEMORY;");
	if (!error && create)
		error = pfs_db_exec(db, "PRAGMA page_size = " PFS_STRING_OF(PFS_DB_PAGE_SIZE));
	if (!error && !create)
		/* before anything is written into a file that may be no store */
		error = pfs_version_check(db);
	if (!error && read_only)
		error = pfs_version_dress(db);
	if (!error)
		error = pfs_db_exec(db, mode_pragmas(mode));
	if (!error && mode == PFS_DB_WRITE)
		error = pfs_version_raise(db);
	if (!error && (mode == PFS_DB_CREATE || mode == PFS_DB_WRITE))
		error = use_log(db);
	if (!error && create)
		error = create_schema(db, mode);
	if (!error)
		error = prepare_all(db, mode, read_only);
	if (!error && db->has_history && !read_only)
		error = pfs_db_begin_history(db);
	return error;
}

int pfs_db_open(struct pfs_db **out, const char *path, enum pfs_db_mode mode, const char *vfs)
{
	struct pfs_db *db = calloc(1, sizeof(*db));
	int error;

	*out = NULL;
	if (!db)
		return -ENOMEM;
	db->path = path;
	error = set_up(db, mode, vfs);
	if (error) {
		(void)pfs_db_close(db);
		return error == -EUCLEAN ? -EMEDIUMTYPE : error;
	}
	db->open = true;
	*out = db;
	return 0;
}

void pfs_db_forget_rows(struct pfs_db *db)
{
	(void)sqlite3_finalize(db->row_put);
	(void)sqlite3_finalize(db->row_remove);
	db->row_put = db->row_remove = NULL;
}

int pfs_db_close(struct pfs_db *db)
{
	int error, i;

	if (!db)
		return 0;
	for (i = 0; i < PFS_SQL_COUNT; i++)
		(void)sqlite3_finalize(db->sql[i]);
	pfs_db_forget_rows(db);
	pfs_db_end_history(db);
	error = pfs_db_errno(db, sqlite3_close(db->handle));
	free(db->rows);
	free(db);
	return error;
}

int pfs_db_finish_bulk(struct pfs_db *db)
{
	int error = pfs_version_mark(db);

	return error ? error : use_log(db);
}
