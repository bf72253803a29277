/* SPDX-License-Identifier: MIT */
/* How a statement runs: what the image was asked, by the number that SQLite knows a scan by. */
#include "fs/query/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"

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
		(void)fprintf(out, "%s IS %sNULL", pfs_fields[p->field].name,
			      p->negated ? "NOT " : "");
		break;
	case PFS_TEST_UNDER:
	case PFS_TEST_CHILD_OF:
	case PFS_TEST_ANCESTOR_OF:
		(void)fprintf(out, "%s(ino, %lld)", words[p->test], (long long)p->low);
		break;
	case PFS_TEST_EQUAL:
		(void)fprintf(out, "%s %s '%.*s'", pfs_fields[p->field].name,
			      p->negated ? "<>" : "=", (int)p->text_len, p->text);
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
	/* Samples are of all nodes, and the way to begin follows from them: not for who sees a
	 * part. */
	if (!record->starts && !query->is_limited) {
		record->estimated = pfs_scan_estimate(query->tree, &record->how,
						      pushed->predicates, pushed->n);
		if (ordered)
			note_order(record, ordered);
		if (!ordered || !pfs_ordered_walks(ordered))
			pfs_scan_weigh(query->tree, &record->weighed, pushed->predicates,
				       pushed->n);
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
	free(PFS_TAKE(query->scans));
	query->n_scans = query->scans_capacity = 0;
}
