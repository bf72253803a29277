/* SPDX-License-Identifier: MIT */
#include "tools/bench/peer.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

struct pfs_peer {
	sqlite3 *handle;
	sqlite3_stmt *insert, *kept;
};

static int failed(struct pfs_peer *peer, const char *sql)
{
	pfs_error("%s: %s", sql, sqlite3_errmsg(peer->handle));
	return sqlite3_errcode(peer->handle) == SQLITE_NOMEM ? -ENOMEM : -EINVAL;
}

int pfs_peer_open(struct pfs_peer **out)
{
	struct pfs_peer *peer = calloc(1, sizeof(*peer));

	*out = NULL;
	if (!peer)
		return -ENOMEM;
	if (sqlite3_open_v2(":memory:", &peer->handle,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			    NULL) != SQLITE_OK) {
		pfs_peer_close(peer);
		return -ENOMEM;
	}
	*out = peer;
	return 0;
}

void pfs_peer_close(struct pfs_peer *peer)
{
	if (!peer)
		return;
	(void)sqlite3_finalize(peer->insert);
	(void)sqlite3_finalize(peer->kept);
	(void)sqlite3_close(peer->handle);
	free(peer);
}

/* Reads a row as a caller would. */
static void read_row(sqlite3_stmt *statement)
{
	for (int i = 0; i < sqlite3_column_count(statement); i++) {
		if (sqlite3_column_type(statement, i) == SQLITE_INTEGER)
			(void)sqlite3_column_int64(statement, i);
		else
			(void)sqlite3_column_text(statement, i);
	}
}

static int run(struct pfs_peer *peer, uint64_t *rows, sqlite3_stmt *statement)
{
	uint64_t n = 0;
	int result;

	while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
		read_row(statement);
		n++;
	}
	(void)sqlite3_reset(statement);
	if (result != SQLITE_DONE)
		return failed(peer, sqlite3_sql(statement));
	if (rows)
		*rows = n;
	return 0;
}

int pfs_peer_run(struct pfs_peer *peer, uint64_t *rows, const char *sql)
{
	sqlite3_stmt *statement;
	int error;

	if (sqlite3_prepare_v2(peer->handle, sql, -1, &statement, NULL) != SQLITE_OK)
		return failed(peer, sql);
	error = run(peer, rows, statement);
	(void)sqlite3_finalize(statement);
	return error;
}

int pfs_peer_run_kept(struct pfs_peer *peer, uint64_t *rows, const char *sql)
{
	if (!peer->kept || strcmp(sqlite3_sql(peer->kept), sql) != 0) {
		(void)sqlite3_finalize(peer->kept);
		peer->kept = NULL;
		if (sqlite3_prepare_v2(peer->handle, sql, -1, &peer->kept, NULL) != SQLITE_OK)
			return failed(peer, sql);
	}
	return run(peer, rows, peer->kept);
}

static int bind(sqlite3_stmt *statement, int at, const struct pfs_sql_value *value)
{
	switch (value->type) {
	case PFS_SQL_INTEGER:
		return sqlite3_bind_int64(statement, at, value->integer);
	case PFS_SQL_REAL:
		return sqlite3_bind_double(statement, at, value->real);
	case PFS_SQL_TEXT:
		return sqlite3_bind_text64(statement, at, value->size ? value->bytes : "",
					   value->size, SQLITE_STATIC, SQLITE_UTF8);
	case PFS_SQL_BLOB:
		return sqlite3_bind_blob64(statement, at, value->bytes, value->size, SQLITE_STATIC);
	default:
		return sqlite3_bind_null(statement, at);
	}
}

int pfs_peer_insert(struct pfs_peer *peer, const char *sql, const struct pfs_sql_value *values,
		    size_t n)
{
	int result = SQLITE_OK;

	if (!sql) {
		(void)sqlite3_finalize(peer->insert);
		peer->insert = NULL;
		return 0;
	}
	if (!peer->insert &&
	    sqlite3_prepare_v2(peer->handle, sql, -1, &peer->insert, NULL) != SQLITE_OK)
		return failed(peer, sql);
	for (size_t i = 0; i < n && result == SQLITE_OK; i++)
		result = bind(peer->insert, (int)i + 1, &values[i]);
	if (result == SQLITE_OK && sqlite3_step(peer->insert) != SQLITE_DONE)
		result = SQLITE_ERROR;
	(void)sqlite3_reset(peer->insert);
	return result == SQLITE_OK ? 0 : failed(peer, sql);
}

/* ---- libraries ---- */

/* Loads a library from a folder on the program's way from the root; up = 1 is the program's own
 * folder. */
static void *load_beside(const char *name, unsigned up)
{
	char path[PATH_MAX + 64];
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);
	char *slash = path;

	path[len > 0 ? len : 0] = '\0';
	while (up-- && (slash = strrchr(path, '/')))
		*slash = '\0';
	if (!slash)
		return NULL;
	(void)snprintf(slash, sizeof(path) - (size_t)(slash - path), "/peers/%s", name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

void *pfs_peer_library(const char *name)
{
	void *library = load_beside(name, 1);

	library = library ? library : load_beside(name, 2);
	return library ? library : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

bool pfs_peer_functions(void *library, const struct pfs_peer_function *functions, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		*functions[i].at = library ? dlsym(library, functions[i].name) : NULL;
		if (!*functions[i].at)
			return false;
	}
	return true;
}
