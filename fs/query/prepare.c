/* SPDX-License-Identifier: MIT */
/* The text of a statement as SQLite prepares it: what is compared with a time is one. */
#include "fs/query/internal.h"
#include "fs/query/sides.h"

#include <stdlib.h>
#include <string.h>

#include "fs/query/times/timed.h"

static int list_columns(void *arg, const char *table,
			int (*add)(void *to, const char *name, bool is_hidden), void *to)
{
	return pfs_sql_table_columns(arg, table, add, to);
}

void pfs_query_forget_titles(struct pfs_query *query)
{
	for (size_t i = 0; i < query->n_titles; i++)
		free(query->titles[i]);
	free(query->titles);
	query->titles = NULL;
	query->n_titles = 0;
}

/* The statement's as it was written; what runs may be another text. */
static int keep_titles(struct pfs_query *query)
{
	const struct pfs_sql *sql = query->connection->sql;
	size_t n = pfs_sql_columns(sql);

	pfs_query_forget_titles(query);
	query->titles = calloc(n + 1, sizeof(*query->titles));
	if (!query->titles)
		return -ENOMEM;
	for (; query->n_titles < n; query->n_titles++) {
		query->titles[query->n_titles] = strdup(pfs_sql_column_name(sql, query->n_titles));
		if (!query->titles[query->n_titles])
			return -ENOMEM;
	}
	return 0;
}

const char *pfs_query_column_name(const struct pfs_query *query, size_t column)
{
	return column < query->n_titles ? query->titles[column] : "";
}

/* Prepares the statement as written, for titles and errors, and the rewritten text that runs, if
 * they differ. Our own doubts about it are reported only where SQLite reports no error. */
static int prepare_both(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	const struct pfs_timed_tables tables = {list_columns, query->connection->sql};
	struct pfs_sql *sql = query->connection->sql;
	struct pfs_sql_problem doubt = {.offset = -1};

	pfs_edits_finish(&query->text);
	PFS_TRY(pfs_sql_prepare(sql, query->sql, query->len, problem));
	PFS_TRY(keep_titles(query));
	PFS_TRY(pfs_timed_replace(&query->text, query->sql, query->len, query->now, &tables,
				  &doubt));
	if (*doubt.text) {
		*problem = doubt;
		return -EINVAL;
	}
	if (!query->text.n)
		return 0;
	query->connection->plan_ids = 0;
	PFS_TRY(pfs_sql_prepare(sql, query->text.text, query->text.len, problem));
	return 0;
}

int pfs_query_prepare_text(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	struct pfs_connection *connection = query->connection;
	int error;

	do {
		PFS_TRY(pfs_sides_refresh(connection, query->tree));
		if (pfs_plan_cache_take(query))
			return 0;
		error = pfs_sides_declare(query, query->sql, query->len);
	} while (error == -EAGAIN);
	PFS_TRY(error);
	return prepare_both(query, problem);
}
