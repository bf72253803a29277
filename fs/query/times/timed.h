/* SPDX-License-Identifier: MIT */
/* fs/query/times/timed.h - rewrites a statement so that whatever it compares with a time is read as
 * a time.
 *
 * A time is a column mtime, atime, ctime, subtree_mtime or compared of `nodes`, wherever it is led
 * to by names: through aliases, sub-selects and CTEs; its MAX, MIN and AVG; what COALESCE, CASE and
 * the like choose among times; what seconds() makes; a time with something added or taken away.
 * Columns of other tables are none, whatever their names. What is compared with a time (=, <, IS,
 * BETWEEN, IN, CASE x WHEN, MAX(x, y), NULLIF, rows of values), or what one is set to, becomes
 * time_of(it), and a literal becomes its number (times.h).
 *
 * Not looked at are comparisons of UNION and its like, of DISTINCT, ORDER BY and GROUP BY. Refused,
 * once SQLite has found nothing wrong, are times in SQLite's functions of dates, and LIKE a date,
 * which would find nothing; names whose meaning is not known here, and statements that
 * parse/parse.h does not take, if they may compare with times.
 *
 * Threads: any number of callers. */
#ifndef PFS_FS_QUERY_TIMES_TIMED_H
#define PFS_FS_QUERY_TIMES_TIMED_H

#include "fs/query/edits.h"
#include "meta/sql/sqlquery.h"

/* The columns of all tables but `nodes`. */
struct pfs_timed_tables {
	/* Calls add for each column in its order; `*` leaves hidden ones out. -ENOENT: there is no
	 * such table; -ENOMEM, which is add's error, too. */
	int (*columns)(void *arg, const char *table,
		       int (*add)(void *to, const char *name, bool is_hidden), void *to);
	void *arg;
};

/* Rewrites the statement. doubt->text says why the statement must not be run, though it may be
 * right in all else, and where in sql; "": there is nothing to say. `now` is what '1 year ago' is
 * seen from. -ENOMEM. Finish *out in any case. */
PFS_MUST_CHECK int pfs_timed_replace(struct pfs_edits *out, const char *sql, size_t len,
				     int64_t now, const struct pfs_timed_tables *tables,
				     struct pfs_sql_problem *doubt);

#endif
