/* SPDX-License-Identifier: MIT */
/* meta/sql/sqlcache.h - the statement cache: prepared statements that are kept for running them
 * again.
 *
 * A kept statement can be used while the connection has the same tables as when it was prepared,
 * and the connection's terms allow the same changes and values of the same length. Its memory stays
 * on the account with which it was prepared, and so counts for all accounts together. Threads: as
 * the connection's. */
#ifndef PFS_META_SQLCACHE_H
#define PFS_META_SQLCACHE_H

#include "meta/sql/sqlquery.h"

struct pfs_sql_cached;

/* Moves the prepared statement, which must have that text, from the connection to *cached, which is
 * made if it is NULL. -EOPNOTSUPP: it cannot be run again, or has another text; -ENOMEM. On an
 * error the connection keeps the statement. */
PFS_MUST_CHECK int pfs_sql_cache(struct pfs_sql *sql, struct pfs_sql_cached **cached,
				 const char *text, size_t len);
/* Replaces the connection's prepared statement by the kept one, which is before its first row.
 * Returns false, and changes nothing, if the kept one can not be used any more. */
bool pfs_sql_use_cached(struct pfs_sql *sql, struct pfs_sql_cached *cached);
void pfs_sql_cached_free(struct pfs_sql_cached *cached);	 /* NULL is allowed */
size_t pfs_sql_cached_size(const struct pfs_sql_cached *cached); /* about, in bytes */

/* Calls fn with the number of each side table that the prepared statement reads or changes, until
 * fn returns false. Returns false if fn did. */
bool pfs_sql_each_wanted(const struct pfs_sql *sql, bool (*fn)(void *arg, uint32_t id), void *arg);

#endif
