/* SPDX-License-Identifier: MIT */
/* A statement's plan as a text: SQLite's steps, with what the image was asked (plan.c) in place of
 * the number that SQLite knows a scan by. */
#include "fs/query/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/query/parts/parts.h"
#include "fs/query/relational/bound.h"
#include "fs/query/relational/relational.h"
#include "meta/sql/sqlside.h"

struct writing {
	FILE *out;
	const struct pfs_query *query;
	int ids[64], levels[64]; /* how far in the steps stand that others may stand under */
	size_t n;
};

static int level_of(struct writing *writing, int id, int parent)
{
	int level = 0;

	for (size_t i = 0; i < writing->n; i++) {
		if (writing->ids[i] == parent)
			level = writing->levels[i] + 1;
	}
	if (writing->n < PFS_COUNT(writing->ids)) {
		writing->ids[writing->n] = id;
		writing->levels[writing->n++] = level;
	}
	return level;
}

/* What a scan of nodes would take by the index of a column and without. */
static void write_weighed(FILE *out, const struct pfs_scan_weighed *weighed)
{
	if (!weighed->index)
		return;
	(void)fprintf(out, "; index or scan: %.3f ms by the %s, %.3f ms by a scan; chosen: the %s",
		      (double)weighed->index_ns / 1e6, weighed->index,
		      (double)weighed->scan_ns / 1e6, weighed->is_chosen ? "index" : "scan");
	if (!weighed->is_there)
		(void)fputs(", for that index is not made yet", out);
}

static void write_scan(struct writing *writing, unsigned long id)
{
	const struct pfs_scan_record *record =
		id < writing->query->n_scans ? &writing->query->scans[id] : NULL;

	if (id >= PFS_SQL_PART_PLANS) {
		(void)fprintf(writing->out, ": part %lu", id - PFS_SQL_PART_PLANS);
		return;
	}
	if (!record || !record->starts) {
		(void)fprintf(writing->out, ": not begun");
		return;
	}
	(void)fprintf(writing->out, ": %s, ",
		      record->pushed && *record->pushed ? record->pushed : "all nodes");
	if (writing->query->is_limited)
		(void)fprintf(writing->out, "of those that can be seen; ");
	else
		(void)fprintf(writing->out, "by %s%s; ", record->how ? record->how : "all columns",
			      record->sorted ? record->sorted : "");
	if (record->starts > 1)
		(void)fprintf(writing->out, "begun %llu times, ",
			      (unsigned long long)record->starts);
	(void)fprintf(writing->out, "rows ");
	if (!writing->query->is_limited)
		(void)fprintf(writing->out, "estimated %llu, ",
			      (unsigned long long)record->estimated);
	(void)fprintf(writing->out, "selected %llu, read %llu",
		      (unsigned long long)record->selected, (unsigned long long)record->seen);
	write_weighed(writing->out, &record->weighed);
}

static int write_step(void *arg, int id, int parent, const char *detail)
{
	static const char mark[] = " VIRTUAL TABLE INDEX ";
	struct writing *writing = arg;
	const char *at = strstr(detail, mark);

	(void)fprintf(writing->out, "%*s%.*s", 2 * level_of(writing, id, parent), "",
		      at ? (int)(at - detail) : (int)strlen(detail), detail);
	if (at)
		write_scan(writing, strtoul(at + sizeof(mark) - 1, NULL, 10));
	(void)fputc('\n', writing->out);
	return 0;
}

int pfs_query_plan(const struct pfs_query *query, char **text)
{
	const struct pfs_edits *running = pfs_parts_text(query->parts, query);
	struct writing writing = {.query = query};
	unsigned plan_ids = query->connection->plan_ids;
	size_t size;
	int error = 0;

	*text = NULL;
	writing.out = open_memstream(text, &size);
	if (!writing.out)
		return -ENOMEM;
	query->connection->plan_ids = 0; /* so that scans get the numbers that they have */
	if (query->is_index)
		(void)fputs("the store's names of path indexes\n", writing.out);
	else if (query->is_by_operators)
		(void)fputs("rows of a side table found and changed by the relational operators\n",
			    writing.out);
	else if (pfs_sql_effect(query->connection->sql) ==
		 PFS_SQL_CHANGES_TABLES) /* by now they are other ones */
		(void)fputs("tables or indexes made or dropped\n", writing.out);
	else if (!pfs_relational_is_planned(query->relational))
		error = pfs_sql_explain(query->connection->sql, running->text, running->len,
					write_step, &writing);
	query->connection->plan_ids = plan_ids;
	pfs_parts_describe(query->parts, writing.out);
	if (pfs_relational_is_planned(query->relational) &&
	    pfs_relational_block(query->relational)->rows) {
		(void)fputs("rows of nodes as they are", writing.out);
		write_scan(&writing, 0);
		(void)fputc('\n', writing.out);
	}
	if (query->relational && !query->is_by_operators)
		pfs_relational_describe(query->relational, writing.out);
	if (fclose(writing.out) && !error)
		error = -ENOMEM;
	if (error) {
		free(*text);
		*text = NULL;
	}
	return error;
}
