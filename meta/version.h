/* SPDX-License-Identifier: MIT */
/* meta/version.h - the version of a file's format, and reading and raising older versions. For
 * meta/db.c alone.
 *
 * Each version only adds to the one before: tables, and columns at the end of tables, which may be
 * NULL. So an older file is read through temporary views that have the added columns and tables,
 * empty; and it is raised to the present version by a change of its schema alone, whatever its
 * size. */
#ifndef PFS_META_VERSION_H
#define PFS_META_VERSION_H

#include "meta/db.h"

extern const char pfs_schema_sql[]; /* the text of schema.sql, from the Makefile */
extern const char pfs_schema_history_sql[]; /* of schema_history.sql: the tables of history */

/* Sets db->version and has_history, and compares the file's schema with that of its version, word
 * for word. -EMEDIUMTYPE and -EPROTONOSUPPORT as pfs_store_open; -EUCLEAN: the schemas differ. */
PFS_MUST_CHECK int pfs_version_check(struct pfs_db *db);

/* Makes temporary views, in which the connection's statements find the columns and tables that a
 * file of an older version lacks. Nothing is written to the file. */
PFS_MUST_CHECK int pfs_version_dress(struct pfs_db *db);

/* Raises a file of an older version to the present one, in one transaction, and logs a line about
 * it. -ENOSPC: there may not be enough room, and nothing was changed. */
PFS_MUST_CHECK int pfs_version_raise(struct pfs_db *db);

/* Writes into the file's header that it is a store of the present version. */
PFS_MUST_CHECK int pfs_version_mark(struct pfs_db *db);

#endif
