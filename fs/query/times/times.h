/* SPDX-License-Identifier: MIT */
/* fs/query/times/times.h - times as people write them, as nanoseconds.
 *
 * ISO 8601: YYYY-MM, YYYY-MM-DD, and after "T" or a blank hh:mm, hh:mm:ss, hh:mm:ss.fraction; then
 * Z, +hh, +hh:mm, -hh:mm or nothing, which is UTC. */
#ifndef PFS_FS_QUERY_TIMES_TIMES_H
#define PFS_FS_QUERY_TIMES_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "meta/sql/sqlquery.h"

/* Reads an ISO 8601 time.  Returns false if the text is none, or it is beyond 64 bits of
 * nanoseconds. */
bool pfs_time_parse(int64_t *nanoseconds, const char *text, size_t len);

/* Reads such a time, or one seen from `now`: "now"; "today", "yesterday" and "tomorrow", which are
 * their first moments in UTC; "1 year 2 months ago"; "-30 days", "+1 hour -5 minutes". Months and
 * years are the calendar's; a day that the month has not is as many days after it. */
bool pfs_time_read(int64_t *nanoseconds, const char *text, size_t len, int64_t now);

/* Reads what pfs_time_read does, or a number: seconds since 1970, or nanoseconds if it is as large
 * as those are (1e14). Times of history (meta/history.h) are written so. */
bool pfs_time_point(int64_t *nanoseconds, const char *text, size_t len, int64_t now);

#define PFS_TIME_TEXT 40
/* Writes a time as "2024-01-31T12:00:00.123456789Z", which pfs_time_parse reads. */
void pfs_time_print(char text[PFS_TIME_TEXT], int64_t nanoseconds);

/* Returns the nanoseconds since 1970. */
int64_t pfs_time_now(void);

/* Returns true if this is the name of a column of times, in capitals or not. */
bool pfs_time_is_column(const char *name, size_t len);

#define PFS_TIME_PROBLEM 192

/* Gets what a value that is compared with a time stands for: of text what pfs_time_read reads;
 * numbers and NULL stay, but with `strict` a number that looks like seconds is refused.  -EINVAL:
 * the value is none of these; `problem` says why, and what to write instead. */
PFS_MUST_CHECK int pfs_time_value(struct pfs_sql_value *out, const struct pfs_sql_value *value,
				  int64_t now, bool strict, char problem[PFS_TIME_PROBLEM]);

/* Seconds as nanoseconds: numbers, text that reads as one.  NULL stays.  -EINVAL as above. */
PFS_MUST_CHECK int pfs_time_from_seconds(struct pfs_sql_value *out,
					 const struct pfs_sql_value *value,
					 char problem[PFS_TIME_PROBLEM]);

#endif
