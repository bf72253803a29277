/* SPDX-License-Identifier: MIT */
/* The columns that a statement reads. */
#include "meta/sql/sqlquery_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define READS_MAX 512

void pfs_sql_forget_reads(struct pfs_sql *sql)
{
	for (size_t i = 0; i < sql->n_reads; i++)
		free(sql->reads[i].table);
	sql->n_reads = 0;
	sql->reads_lost = false;
	sql->columns = 0;
}

void pfs_sql_note_read(struct pfs_sql *sql, const char *table, const char *column)
{
	struct pfs_sql_read *reads;
	char *text;

	table = table ? table : "";
	column = column ? column : "";
	/* backwards, since the same column is often asked for again soon */
	for (size_t i = sql->n_reads; i-- > 0;) {
		if (strcmp(sql->reads[i].column, column) == 0 &&
		    strcmp(sql->reads[i].table, table) == 0)
			return;
	}
	text = malloc(strlen(table) + strlen(column) + 2);
	if (!text || sql->n_reads == READS_MAX ||
	    pfs_grow(&sql->reads, &sql->reads_capacity, sql->n_reads + 1, sizeof(*sql->reads))) {
		free(text);
		sql->reads_lost = true;
		return;
	}
	reads = &sql->reads[sql->n_reads++];
	reads->table = text;
	reads->column = stpcpy(text, table) + 1;
	(void)stpcpy(reads->column, column);
}

uint64_t pfs_sql_source_columns(const struct pfs_sql *sql)
{
	return sql->columns;
}

bool pfs_sql_reads(const struct pfs_sql *sql, const struct pfs_sql_read **reads, size_t *n)
{
	*reads = sql->reads;
	*n = sql->n_reads;
	return !sql->reads_lost;
}
