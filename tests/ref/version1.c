/* SPDX-License-Identifier: MIT */
#include "tests/ref/version1.h"

#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

extern const char pfs_schema_v1_sql[], pfs_schema_v2_sql[];

static int run(sqlite3 *handle, char *text)
{
	char *message = NULL;
	int result = text ? sqlite3_exec(handle, text, NULL, NULL, &message) : SQLITE_NOMEM;

	if (result)
		(void)fprintf(stderr, "an old version: %s: %s\n", text, message);
	sqlite3_free(message);
	sqlite3_free(text);
	return result ? -EIO : 0;
}

/* The one value that a query gives, to be freed with sqlite3_free; NULL: none. */
static char *one_text(sqlite3 *handle, const char *query, const char *argument)
{
	sqlite3_stmt *row = NULL;
	char *out = NULL;

	if (!sqlite3_prepare_v2(handle, query, -1, &row, NULL)) {
		(void)sqlite3_bind_text(row, 1, argument, -1, SQLITE_STATIC);
		if (sqlite3_step(row) == SQLITE_ROW)
			out = sqlite3_mprintf("%s", sqlite3_column_text(row, 0));
	}
	(void)sqlite3_finalize(row);
	return out;
}

static int copy_table(sqlite3 *handle, const char *table)
{
	char *columns = one_text(
		handle, "SELECT group_concat(name) FROM pragma_table_info(?1, 'main')", table);
	int error = run(handle, sqlite3_mprintf("INSERT INTO main.\"%w\" SELECT %s FROM two.\"%w\"",
						table, columns, table));

	sqlite3_free(columns);
	return error;
}

/* Side tables' own tables first: both sets of rows are copied then. */
static int copy_tables(sqlite3 *handle)
{
	char *sides = one_text(handle,
			       "SELECT coalesce(group_concat(sql, ';'), '') FROM two.sqlite_schema "
			       "WHERE name GLOB ?1",
			       "side_[0-9]*");
	int error = run(handle, sides);
	char *name = NULL, *next;

	for (;;) {
		next = one_text(handle,
				"SELECT name FROM main.sqlite_schema WHERE type = 'table' "
				"AND name > coalesce(?1, '') ORDER BY name LIMIT 1",
				name);
		sqlite3_free(name);
		name = next;
		if (!name || error)
			break;
		error = copy_table(handle, name);
	}
	sqlite3_free(name);
	return error;
}

int old_version_make(const char *path, int version, const char *vfs)
{
	char *aside = sqlite3_mprintf("%s.old", path);
	sqlite3 *handle = NULL;
	int error = -EIO;

	if (aside && !rename(path, aside) &&
	    !sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs))
		error = run(handle, sqlite3_mprintf("PRAGMA page_size = 8192;"
						    "PRAGMA journal_mode = WAL;"
						    "ATTACH %Q AS two; BEGIN",
						    aside));
	if (!error)
		error = run(handle, sqlite3_mprintf("%s", version == 1 ? pfs_schema_v1_sql
								       : pfs_schema_v2_sql));
	if (!error)
		error = copy_tables(handle);
	if (!error)
		error = run(handle, sqlite3_mprintf("PRAGMA application_id = 0x70667331;"
						    "PRAGMA user_version = %d; COMMIT; DETACH two",
					    version));
	if (sqlite3_close(handle))
		error = -EIO;
	if (aside && unlink(aside))
		error = -EIO;
	sqlite3_free(aside);
	return error;
}

int version_of(const char *path)
{
	unsigned char header[64];
	FILE *file = fopen(path, "re");
	size_t got = file ? fread(header, 1, sizeof(header), file) : 0;

	if (file)
		(void)fclose(file);
	return got == sizeof(header) ? header[62] << 8 | header[63] : -EIO;
}
