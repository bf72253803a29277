/* SPDX-License-Identifier: MIT */
/* tests/unit/side_util.h - statements over side tables, beside SQLite's answers. */
#ifndef PFS_TESTS_UNIT_SIDE_UTIL_H
#define PFS_TESTS_UNIT_SIDE_UTIL_H

#include "tests/unit/query_util.h"

static inline void run_any(const char *sql)
{
	struct pfs_query *query;

	if (pfs_query_start(&query, queries, &scope, sql, strlen(sql), &error))
		assert_int_equal(error.error, -EINVAL); /* NOT NULL, or that number is taken */
	pfs_query_finish(query);
}

/* As the operators and SQLite have it, which has a copy of its own. */
static inline void check_both(const char *why, const char *select, const char *rest)
{
	static char ours[1 << 20], its[1 << 20];
	char sql[512];

	(void)snprintf(sql, sizeof(sql), "%s%s", select, rest);
	query_text(ours, sizeof(ours), sql);
	(void)snprintf(sql, sizeof(sql), "%s NOT INDEXED%s", select, rest);
	query_text(its, sizeof(its), sql);
	if (strcmp(ours, its) != 0)
		fail_msg("%s, %s: %.300s, not %.300s", why, sql, ours, its);
}

#endif
