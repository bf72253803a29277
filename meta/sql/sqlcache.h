/* SPDX-License-Identifier: MIT */
/* meta/sql/sqlcache.h - the statement cache: prepared statements that are kept for whoever asks
 * them again.
 *
 * One is of use while the connection has the tables that it had when the statement was prepared,
 * and its terms let as much be changed and values be as long.  What it has allocated stays on the
 * account of whoever prepared it, which counts for all accounts together. Threads: as the
 * connection's, until free. */
#ifndef PFS_META_SQLCACHE_H
#define PFS_META_SQLCACHE_H

#include "meta/sql/sqlquery.h"

struct pfs_sql_cached;

/* Takes the prepared statement, of that text, off the connection and puts it into *cached, which is
 * made if it is NULL. -EOPNOTSUPP: it is none that can be run again, or is of another text;
 * -ENOMEM. The connection then still has it. */
PFS_MUST_CHECK int pfs_sql_cache(struct pfs_sql *sql, struct pfs_sql_cached **cached,
				 const char *text, size_t len);
/* Makes it the prepared statement again, in the place of the connection's, before its first row. Returns false, and
 * changes nothing, if it is of no use any more. */
bool pfs_sql_use_cached(struct pfs_sql *sql, struct pfs_sql_cached *cached);
void pfs_sql_cached_free(struct pfs_sql_cached *cached);	 /* NULL is allowed */
size_t pfs_sql_cached_size(const struct pfs_sql_cached *cached); /* bytes, about */

/* Calls fn with the number of each side table that the prepared statement reads or changes, until it returns false.
 * Returns false if it did. */
bool pfs_sql_each_wanted(const struct pfs_sql *sql, bool (*fn)(void *arg, uint32_t id), void *arg);

#endif
