/* SPDX-License-Identifier: MIT */
/* How a statement runs: SQLite's steps, with what the image was asked in place of the number that
 * SQLite knows a scan by. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/query/parts/parts.h"
#include "fs/query/relational/relational.h"

/* ---- records ---- */

static struct pfs_scan_record *record_of(struct pfs_query *query, unsigned id)
{
	unsigned ids = query->connection->plan_ids;
	size_t n = query->n_scans;

	if (id >= ids ||
	    pfs_grow(&query->scans, &query->scans_capacity, ids, sizeof(*query->scans)))
		return NULL;
	for (; n < ids; n++)
		query->scans[n] = (struct pfs_scan_record){.pushed = NULL};
	query->n_scans = n;
	return &query->scans[id];
}

static void write_range(FILE *out, const struct pfs_predicate *p)
{
	const char *name = pfs_fields[p->field].name;

	if (p->field == PFS_FIELD_TYPE && p->low == p->high)
		(void)fprintf(out, "type %s '%c'", p->negated ? "<>" : "=", (int)p->low);
	else if (p->low == p->high)
		(void)fprintf(out, "%s %s %lld", name, p->negated ? "<>" : "=", (long long)p->low);
	else if (p->high == INT64_MAX)
		(void)fprintf(out, "%s >= %lld", name, (long long)p->low);
	else if (p->low <= INT64_MIN + 1)
		(void)fprintf(out, "%s <= %lld", name, (long long)p->high);
	else
		(void)fprintf(out, "%s BETWEEN %lld AND %lld", name, (long long)p->low,
			      (long long)p->high);
}

static void write_between(FILE *out, const struct pfs_predicate *p)
{
	if (p->text)
		(void)fprintf(out, "%s >= '%s'", pfs_fields[p->field].name, p->text);
	if (p->high_text)
		(void)fprintf(out, "%s%s < '%s'", p->text ? " AND " : "", pfs_fields[p->field].name,
			      p->high_text);
}

static void write_predicate(FILE *out, const struct pfs_predicate *p)
{
	static const char *const words[] = {
		[PFS_TEST_GLOB] = "GLOB",	  [PFS_TEST_LIKE] = "LIKE",
		[PFS_TEST_CONTAINS] = "contains", [PFS_TEST_PREFIX] = "begins with",
		[PFS_TEST_SUFFIX] = "ends with",  [PFS_TEST_UNDER] = "under",
		[PFS_TEST_CHILD_OF] = "child_of", [PFS_TEST_ANCESTOR_OF] = "ancestor_of",
		[PFS_TEST_EQUAL] = "=",
	};

	switch (p->test) {
	case PFS_TEST_RANGE:
		write_range(out, p);
		break;
	case PFS_TEST_BETWEEN:
		write_between(out, p);
		break;
	case PFS_TEST_NONE:
		(void)fprintf(out, "%s IS %sNULL", pfs_fields[p->field].name, p->negated ? "NOT " : "");
		break;
	case PFS_TEST_UNDER:
	case PFS_TEST_CHILD_OF:
	case PFS_TEST_ANCESTOR_OF:
		(void)fprintf(out, "%s(ino, %lld)", words[p->test], (long long)p->low);
		break;
	case PFS_TEST_EQUAL:
		(void)fprintf(out, "%s %s '%.*s'", pfs_fields[p->field].name, p->negated ? "<>" : "=",
			      (int)p->text_len, p->text);
		break;
	default:
		(void)fprintf(out, "%s %s '%.*s'", pfs_fields[p->field].name, words[p->test],
			      (int)p->text_len, p->text);
		break;
	}
}

static char *describe(const struct pfs_pushed *pushed)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = 0, n = 0; i < pushed->n; i++) {
		if (pushed->predicates[i].test == PFS_TEST_SHOWN)
			continue; /* what the viewer sees is said once */
		(void)fputs(n++ ? ", " : "", out);
		write_predicate(out, &pushed->predicates[i]);
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static void note_order(struct pfs_scan_record *record, const struct pfs_ordered *ordered)
{
	if (pfs_ordered_walks(ordered)) {
		record->how = pfs_ordered_how(ordered);
		record->sorted = ", in its order";
	} else {
		record->sorted = pfs_ordered_sorts(ordered) ? ", then sorted"
							    : ", in order as found";
	}
}

void pfs_plan_record(struct pfs_query *query, unsigned id, const struct pfs_pushed *pushed,
		     size_t selected, const struct pfs_ordered *ordered)
{
	struct pfs_scan_record *record = query->explains ? record_of(query, id) : NULL;

	if (!record)
		return;
	if (!record->pushed)
		record->pushed = describe(pushed);
	/* Samples are of all nodes, and the way to begin follows from them: not for who sees a part. */
	if (!record->starts && !query->is_limited) {
		record->estimated = pfs_scan_estimate(query->tree, &record->how,
						      pushed->predicates, pushed->n);
		if (ordered)
			note_order(record, ordered);
	}
	record->starts++;
	record->selected += selected;
}

void pfs_plan_seen(struct pfs_query *query, unsigned id, size_t rows)
{
	if (id >= query->n_scans)
		return;
	query->scans[id].seen += rows;
	query->scans[id].selected = PFS_MAX(query->scans[id].selected, query->scans[id].seen);
}

void pfs_plan_finish(struct pfs_query *query)
{
	for (size_t i = 0; i < query->n_scans; i++)
		free(query->scans[i].pushed);
	free(query->scans);
}

/* ---- text ---- */

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
	if (!pfs_relational_is_planned(query->relational))
		error = pfs_sql_explain(query->connection->sql, running->text, running->len, write_step,
					&writing);
	query->connection->plan_ids = plan_ids;
	pfs_parts_describe(query->parts, writing.out);
	if (query->was_past && !pfs_relational_is_planned(query->relational))
		(void)fputs("rows taken from the columns of the image, past SQLite\n", writing.out);
	else
		pfs_relational_describe(query->relational, writing.out);
	if (fclose(writing.out) && !error)
		error = -ENOMEM;
	if (error) {
		free(*text);
		*text = NULL;
	}
	return error;
}
