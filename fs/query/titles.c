/* SPDX-License-Identifier: MIT */
/* Names of columns.  One without AS has its expression for a name, as it is written: SQLite knows the
 * statement as it runs, in which dates and counts have been replaced (times.h, counts.h). */
#include <stdlib.h>
#include <string.h>

#include "fs/query/internal.h"

/* Whether [from, to) of the text has some of what was put there, and nothing of it in part. */
static bool holds_edits(const struct pfs_edits *text, size_t from, size_t to)
{
	bool any = false;

	for (size_t i = 0; i < text->n; i++) {
		size_t at = text->edits[i].at, end = at + text->edits[i].len;

		if (end <= from || at >= to)
			continue;
		if (at < from || end > to)
			return false;
		any = true;
	}
	return any;
}

/* What the statement had in the place of [from, to) of an edited one. */
static void go_back(const struct pfs_edits *text, size_t *from, size_t *to)
{
	*from = (size_t)pfs_edits_offset(text, (long)*from);
	*to = (size_t)pfs_edits_offset(text, (long)*to);
}

/* The span of the statement as it was written that has become `name`; false: it is what it was. */
static bool find_written(const struct pfs_query *query, const char *name, size_t *from, size_t *to)
{
	const struct pfs_edits *text = &query->text, *dated = &query->dated;
	const char *at = text->text, *end = at + text->len;
	size_t len = strlen(name);

	for (; len && (at = memmem(at, (size_t)(end - at), name, len)) != NULL; at++) {
		bool edited;

		*from = (size_t)(at - text->text);
		*to = *from + len;
		edited = holds_edits(text, *from, *to);
		go_back(text, from, to);
		edited |= holds_edits(dated, *from, *to);
		go_back(dated, from, to);
		if (edited)
			return true;
	}
	return false;
}

void pfs_titles_finish(struct pfs_query *query)
{
	for (size_t i = 0; i < query->n_titles; i++)
		free(query->titles[i]);
	free(query->titles);
	query->titles = NULL;
	query->n_titles = 0;
}

int pfs_titles_find(struct pfs_query *query, const char *sql, size_t sql_len)
{
	size_t n = pfs_sql_columns(query->connection->sql), from, to;

	pfs_titles_finish(query);
	if (!n || (!query->text.n && !query->dated.n))
		return 0;
	query->titles = calloc(n, sizeof(*query->titles));
	if (!query->titles)
		return -ENOMEM;
	query->n_titles = n;
	for (size_t i = 0; i < n; i++) {
		const char *name = pfs_sql_column_name(query->connection->sql, i);

		if (!find_written(query, name, &from, &to) || from >= to || to > sql_len)
			continue;
		query->titles[i] = strndup(sql + from, to - from);
		if (!query->titles[i])
			return -ENOMEM;
	}
	return 0;
}

const char *pfs_query_column_name(const struct pfs_query *query, size_t column)
{
	return column < query->n_titles && query->titles[column]
		       ? query->titles[column]
		       : pfs_sql_column_name(query->connection->sql, column);
}
