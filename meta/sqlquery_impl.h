/* SPDX-License-Identifier: MIT */
/* meta/sqlquery_impl.h - inside of meta/sqlquery.h: sqlquery.c (connections, statements, what they
 * may do), sqltable.c (sources as virtual tables), sqlfunction.c. */
#ifndef PFS_META_SQLQUERY_IMPL_H
#define PFS_META_SQLQUERY_IMPL_H

#include <sqlite3.h>

#include "meta/sqlquery.h"

#if SQLITE_VERSION_NUMBER < 3038000
#error "SQLite 3.38 or newer is needed"
#endif

struct pfs_sql {
	sqlite3 *handle;
	sqlite3_stmt *statement;
	const struct pfs_sql_source *source;
	char *declaration;
	const struct pfs_sql_function *functions;
	struct pfs_sql_binding *bindings; /* one for each function */
	int (*tick)(void *user);
	void *user;
	uint64_t sort_memory; /* as set last */
	int error; /* what a callback said: why SQLite gave up */
	char refused[160]; /* why the authorizer said no */
};

void pfs_sql_from_value(struct pfs_sql_value *out, sqlite3_value *value);

/* Remembers what a callback said; returns SQLite's result for it. */
int pfs_sql_failed(struct pfs_sql *sql, int error);

PFS_MUST_CHECK int pfs_sql_add_table(struct pfs_sql *sql); /* SQLite's results, both */
PFS_MUST_CHECK int pfs_sql_add_functions(struct pfs_sql *sql);

/* What SQLite calls for the function of that name; false: there is none. */
bool pfs_sql_find_function(const struct pfs_sql *sql, const char *name,
			   void (**fn)(sqlite3_context *, int, sqlite3_value **), void **arg);

#endif
