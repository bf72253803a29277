/* SPDX-License-Identifier: MIT */
#include "meta/version.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "meta/store.h"

/* How many bytes raising a version writes, twice (to the log and the file): some pages for each new
 * table, and those of the schema. */
#define RAISE_BYTES ((uint64_t)2 << 20)
#define MARK_OFFSET 68 /* in SQLite's header */
#define MARK                                                                                       \
	"PRAGMA application_id = " PFS_STRING_OF(                                                  \
		PFS_DB_APPLICATION_ID) ";"                                                         \
				       "PRAGMA user_version = " PFS_STRING_OF(                     \
					       PFS_STORE_SCHEMA) ";"

#define OLDER(version) extern const char pfs_schema_v##version##_sql[];
PFS_OLDER_SCHEMAS(OLDER)
#undef OLDER

static const char *const schemas[PFS_STORE_SCHEMA] = {
#define OLDER(version) [(version) - 1] = pfs_schema_v##version##_sql,
	PFS_OLDER_SCHEMAS(OLDER)
#undef OLDER
	[PFS_STORE_SCHEMA - 1] = pfs_schema_sql,
};

#define OLDER(version) extern const char pfs_schema_history_v##version##_sql[];
PFS_OLDER_HISTORIES(OLDER)
#undef OLDER

/* The schema of each version's history; NULL: stores of that version have none. */
static const char *const histories[PFS_STORE_SCHEMA] = {
#define OLDER(version) [(version) - 1] = pfs_schema_history_v##version##_sql,
	PFS_OLDER_HISTORIES(OLDER)
#undef OLDER
	[PFS_STORE_SCHEMA - 1] = pfs_schema_history_sql,
};

/* ---- checking ---- */

static int query_int(struct pfs_db *db, int64_t *out, const char *text)
{
	sqlite3_stmt *statement = NULL;
	int got = pfs_db_errno(db, sqlite3_prepare_v2(db->handle, text, -1, &statement, NULL));

	if (!got)
		got = pfs_db_step(db, statement);
	if (got == 1)
		*out = sqlite3_column_int64(statement, 0);
	(void)sqlite3_finalize(statement);
	if (got < 0)
		return got;
	return got ? 0 : -EUCLEAN;
}

static int count_objects(const char *schema)
{
	int count = 0;
	const char *at = schema;

	while ((at = strstr(at, "\nCREATE ")) != NULL) {
		count++;
		at++;
	}
	return count;
}

static bool is_in(const char *schema, const char *object)
{
	const char *found = strstr(schema, object);

	return found && strncmp(object, "CREATE ", 7) == 0 && found[strlen(object)] == ';';
}

/* Compares the file's schema with the text of its version: each object of the file must be in the
 * text, word for word, and none may be missing. So no statement of the store ever runs over a
 * schema that somebody else has written. Declarations of side tables may have no expressions, which
 * would need a second parenthesis. The tables of history must all be there, or none. */
static int check_schema(struct pfs_db *db, const char *schema, const char *of_history)
{
	const int n_of_history = of_history ? count_objects(of_history) : 0;
	int missing = count_objects(schema), history = 0, got;
	sqlite3_stmt *row = NULL;

	got = pfs_db_errno(db,
			   sqlite3_prepare_v2(db->handle,
					      "SELECT sql FROM sqlite_schema WHERE sql NOT NULL "
					      "AND NOT (type = 'table' AND name GLOB 'side_[0-9]*' "
					      "AND sql NOT GLOB '*(*(*')",
					      -1, &row, NULL));
	while (!got && (got = pfs_db_step(db, row)) == 1) {
		const char *text = (const char *)sqlite3_column_text(row, 0);

		got = text ? 0 : -ENOMEM;
		if (got)
			break;
		if (is_in(schema, text))
			missing--;
		else if (of_history && is_in(of_history, text))
			history++;
		else
			got = -EUCLEAN;
	}
	(void)sqlite3_finalize(row);
	if (got)
		return got;
	db->has_history = history != 0;
	return missing || (history && history != n_of_history) ? -EUCLEAN : 0;
}

int pfs_version_check(struct pfs_db *db)
{
	int64_t id = 0, version = 0;
	int error = query_int(db, &id, "PRAGMA application_id");

	if (!error)
		error = query_int(db, &version, "PRAGMA user_version");
	if (error)
		return error;
	if (id != PFS_DB_APPLICATION_ID || version < 1)
		return -EMEDIUMTYPE;
	if (version > PFS_STORE_SCHEMA)
		return -EPROTONOSUPPORT;
	db->version = (int)version;
	return check_schema(db, schemas[version - 1], histories[version - 1]);
}

bool pfs_store_is_marked(const char *path)
{
	static const unsigned char mark[] = {
		PFS_DB_APPLICATION_ID >> 24, PFS_DB_APPLICATION_ID >> 16 & 0xff,
		PFS_DB_APPLICATION_ID >> 8 & 0xff, PFS_DB_APPLICATION_ID & 0xff};
	unsigned char found[sizeof(mark)];
	struct stat attr;
	int fd PFS_CLOSE = -1;

	/* no fifo's writer takes this for its reader */
	if (stat(path, &attr) == 0 && S_ISREG(attr.st_mode))
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && pread(fd, found, sizeof(found), MARK_OFFSET) == (ssize_t)sizeof(found) &&
	       memcmp(found, mark, sizeof(mark)) == 0;
}

int pfs_version_mark(struct pfs_db *db)
{
	db->version = PFS_STORE_SCHEMA;
	return pfs_db_exec(db, MARK);
}

/* ---- what a version adds ---- */

/* Adds to an older file what one statement of schema.sql makes. */
typedef int addition_fn(struct pfs_db *db, const char *name, const char *text, bool is_there);

/* Finds out whether the file has the object, and whether its text is the same. */
static int look_up(struct pfs_db *db, bool *is_there, bool *same, const char *name,
		   const char *text)
{
	sqlite3_stmt *row = NULL;
	int got = pfs_db_errno(db, sqlite3_prepare_v2(db->handle,
						      "SELECT sql = ?2 FROM main.sqlite_schema "
						      "WHERE name = ?1",
						      -1, &row, NULL));

	if (got)
		return got;
	(void)sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(row, 2, text, -1, SQLITE_STATIC);
	got = pfs_db_step(db, row);
	*is_there = got == 1;
	*same = got == 1 && sqlite3_column_int(row, 0);
	(void)sqlite3_finalize(row);
	return got < 0 ? got : 0;
}

/* Calls fn for each object of the present schema that the file lacks or declares otherwise. The
 * schema's objects are read from an empty database in memory. */
static int each_addition(struct pfs_db *db, addition_fn *fn)
{
	struct pfs_db today = {.path = "schema"};
	sqlite3_stmt *row = NULL;
	int got = pfs_db_errno(&today, sqlite3_open(":memory:", &today.handle));

	if (!got)
		got = pfs_db_exec(&today, pfs_schema_sql);
	if (!got && db->has_history)
		got = pfs_db_exec(&today, pfs_schema_history_sql);
	if (!got)
		got = pfs_db_errno(&today, sqlite3_prepare_v2(today.handle,
							      "SELECT name, sql FROM sqlite_schema "
							      "WHERE sql NOT NULL ORDER BY rowid",
							      -1, &row, NULL));
	while (!got && (got = pfs_db_step(&today, row)) == 1) {
		const char *name = (const char *)sqlite3_column_text(row, 0);
		const char *text = (const char *)sqlite3_column_text(row, 1);
		bool is_there = false, same = false;

		got = name && text ? look_up(db, &is_there, &same, name, text) : -ENOMEM;
		if (!got && !same)
			got = fn(db, name, text, is_there);
	}
	(void)sqlite3_finalize(row);
	(void)sqlite3_close(today.handle);
	return got;
}

/* ---- reading an older file ---- */

/* Runs the text that the format makes of the arguments. */
static int run_made(struct pfs_db *db, char *text)
{
	int error = text ? pfs_db_exec(db, text) : -ENOMEM;

	sqlite3_free(text);
	return error;
}

/* Returns the columns that the text has and the file's table lacks, as NULLs for a view; the caller
 * frees it. */
static char *missing_columns(struct pfs_db *db, const char *name)
{
	sqlite3_stmt *row = NULL;
	char *list = sqlite3_mprintf("");
	int result = sqlite3_prepare_v2(
		db->handle,
		"SELECT name FROM pragma_table_info(?1, 'temp') WHERE name NOT IN "
		"(SELECT name FROM pragma_table_info(?1, 'main'))",
		-1, &row, NULL);

	(void)sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC);
	while (!result && list && (result = sqlite3_step(row)) == SQLITE_ROW) {
		char *longer =
			sqlite3_mprintf("%s, NULL AS \"%w\"", list, sqlite3_column_text(row, 0));

		sqlite3_free(list);
		list = longer;
		result = SQLITE_OK;
	}
	(void)sqlite3_finalize(row);
	if (result == SQLITE_DONE)
		return list;
	sqlite3_free(list);
	return NULL;
}

/* Makes a temporary table. If the file has no such table, it stays, empty. If the file's table
 * lacks columns, it only serves to read their names; then a view replaces it, which hides the
 * file's table. */
static int dress(struct pfs_db *db, const char *name, const char *text, bool is_there)
{
	static const char create[] = "CREATE TABLE ";
	char *columns;
	int error;

	if (strncmp(text, create, strlen(create)) != 0)
		return 0; /* an index of an empty table */
	error = run_made(db, sqlite3_mprintf("CREATE TEMP TABLE %s", text + strlen(create)));
	if (error || !is_there)
		return error;
	columns = missing_columns(db, name);
	if (!columns)
		return -ENOMEM;
	error = run_made(db,
			 sqlite3_mprintf("DROP TABLE temp.\"%w\";"
					 "CREATE TEMP VIEW \"%w\" AS SELECT *%s FROM main.\"%w\"",
					 name, name, columns, name));
	sqlite3_free(columns);
	return error;
}

int pfs_version_dress(struct pfs_db *db)
{
	return db->version < PFS_STORE_SCHEMA ? each_addition(db, dress) : 0;
}

/* ---- bringing a file up to date ---- */

/* Rows need no change: a row that ends before a new column has NULL there. */
static int add(struct pfs_db *db, const char *name, const char *text, bool is_there)
{
	sqlite3_stmt *put = NULL;
	int error;

	if (!is_there)
		return pfs_db_exec(db, text);
	error = pfs_db_errno(db, sqlite3_prepare_v2(db->handle,
						    "UPDATE sqlite_schema SET sql = ?2 "
						    "WHERE name = ?1",
						    -1, &put, NULL));
	if (error)
		return error;
	(void)sqlite3_bind_text(put, 1, name, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(put, 2, text, -1, SQLITE_STATIC);
	error = pfs_db_step(db, put);
	(void)sqlite3_finalize(put);
	return error;
}

static int raise_in_transaction(struct pfs_db *db)
{
	int64_t number = 0;
	int error = pfs_db_exec(db, "PRAGMA writable_schema = 1");

	if (!error)
		error = each_addition(db, add);
	if (!error)
		error = pfs_version_mark(db);
	if (!error)
		error = query_int(db, &number, "PRAGMA schema_version");
	if (!error) /* makes every connection read the schema again */
		error = run_made(db, sqlite3_mprintf("PRAGMA schema_version = %lld", number + 1));
	if (!error) /* writes the page by which the log is known to be this store's (meta/log.h) */
		error = pfs_db_exec(db,
				    "UPDATE meta SET seq = seq + 1; UPDATE meta SET seq = seq - 1");
	return error ? error : pfs_db_exec(db, "COMMIT");
}

int pfs_version_raise(struct pfs_db *db)
{
	const int before = db->version;
	struct statvfs fs;
	int error;

	if (before == PFS_STORE_SCHEMA)
		return 0;
	if (statvfs(db->path, &fs))
		return -errno;
	if ((uint64_t)fs.f_bavail * fs.f_frsize < RAISE_BYTES)
		return -ENOSPC;
	pfs_notice("%s: is brought up from version %d of the format to %d; an older primefs "
		   "cannot open it from now on",
		   db->path, before, PFS_STORE_SCHEMA);
	(void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
	error = pfs_db_exec(db, "BEGIN IMMEDIATE");
	if (!error)
		error = raise_in_transaction(db);
	if (error) {
		db->version = before;
		(void)pfs_db_end_reading(db);
	}
	(void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	/* This makes the connection itself read the schema again. */
	return error ? error : pfs_db_exec(db, "PRAGMA writable_schema = RESET");
}
