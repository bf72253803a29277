/* SPDX-License-Identifier: MIT */
/* fs/query/times/times.h - times as people write them, as nanoseconds since 1970.
 *
 * ISO 8601: YYYY-MM, YYYY-MM-DD, and after "T" or a blank hh:mm, hh:mm:ss, hh:mm:ss.fraction; then
 * Z, +hh, +hh:mm, -hh:mm or nothing, which is UTC. Threads: any number of callers. */
#ifndef PFS_FS_QUERY_TIMES_TIMES_H
#define PFS_FS_QUERY_TIMES_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "meta/sql/sqlquery.h"

/* Reads such a time. Returns false if it is none, or beyond 64 bits of nanoseconds. */
bool pfs_time_parse(int64_t *nanoseconds, const char *text, size_t len);

/* As pfs_time_parse, or a time seen from `now`: "now"; "today", "yesterday" and "tomorrow", which
 * are their first moments in UTC; "1 year 2 months ago"; "-30 days", "+1 hour -5 minutes". Months
 * and years are the calendar's; a day that the month has not is as many days after it. */
bool pfs_time_read(int64_t *nanoseconds, const char *text, size_t len, int64_t now);

/* Returns the present time in nanoseconds since 1970. */
int64_t pfs_time_now(void);

/* Returns true if it is the name of a column of times, in any case of letters. */
bool pfs_time_is_column(const char *name, size_t len);

#define PFS_TIME_PROBLEM 192

/* Gets what a value stands for that is compared with a time: a text as pfs_time_read reads it;
 * numbers and NULL as they are, but with `strict` no numbers that look like seconds. -EINVAL: it is
 * nothing of this, and `problem` says why, and what to write instead. */
PFS_MUST_CHECK int pfs_time_value(struct pfs_sql_value *out, const struct pfs_sql_value *value,
				  int64_t now, bool strict, char problem[PFS_TIME_PROBLEM]);

/* Gets seconds, as a number or a text that reads as one, as nanoseconds; NULL stays NULL. -EINVAL
 * as above. */
PFS_MUST_CHECK int pfs_time_from_seconds(struct pfs_sql_value *out,
					 const struct pfs_sql_value *value,
					 char problem[PFS_TIME_PROBLEM]);

#endif
