/* SPDX-License-Identifier: MIT */
/* meta/version.h - which version of the format a file has, and how today's program gets on with an
 * older one.  For meta/db.c alone.
 *
 * A newer version only adds to the one before: tables, and columns that may be NULL at the end of
 * tables.  So an older file is read through temporary views that have those columns and tables,
 * empty, and is brought up to date by changing its schema alone, whatever its size. */
#ifndef PFS_META_VERSION_H
#define PFS_META_VERSION_H

#include "meta/db.h"
#include "meta/format.h"

extern const char pfs_schema_sql[]; /* schema.sql, put in by the Makefile */
extern const char pfs_schema_history_sql[]; /* schema_history.sql: what keeping history adds to it */

/* Sets db->version and has_history, and compares the file's schema with that version's word for word. -EMEDIUMTYPE,
 * -EPROTONOSUPPORT as pfs_store_open; -EUCLEAN: the schema is another. */
PFS_MUST_CHECK int pfs_version_check(struct pfs_db *db);

/* Gives the connection temporary views in which today's statements find what a file of an older
 * version lacks. Nothing is written to the file. */
PFS_MUST_CHECK int pfs_version_dress(struct pfs_db *db);

/* Brings a file of an older version up to today's, in one transaction, and logs a line about it.
 * -ENOSPC, without a change, when there may be no room for it. */
PFS_MUST_CHECK int pfs_version_raise(struct pfs_db *db);

/* Writes into the file that it is a store of today's version. */
PFS_MUST_CHECK int pfs_version_mark(struct pfs_db *db);

#endif
