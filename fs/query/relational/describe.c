/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/describe.h"

static void write_span(FILE *out, const char *before, const char *text, struct pfs_text_range span)
{
	(void)fprintf(out, "%s%.*s", before, (int)span.len, text + span.at);
}

static void write_items(FILE *out, const char *before, const char *text,
			const struct pfs_items *items)
{
	if (items)
		write_span(out, before, text,
			   (struct pfs_text_range){items->first->span.at, items->last->span.at +
									    items->last->span.len -
									    items->first->span.at});
}

void pfs_describe_select(FILE *out, const char *where, const char *text,
			 const struct pfs_select *select)
{
	const struct pfs_core *core = select->first;

	(void)fprintf(out, "run by the relational operators%s", where);
	if (core->next) {
		write_span(out, ": ", text, select->span);
		return;
	}
	for (const struct pfs_from *from = core->from; from; from = from->next)
		write_span(out, from == core->from ? ": " : ", ", text, from->span);
	if (core->where)
		write_span(out, ", where ", text, core->where->span);
	write_items(out, ", grouped by ", text, core->group);
	if (core->having)
		write_span(out, ", having ", text, core->having->span);
	if (core->is_distinct)
		(void)fputs(", distinct", out);
	write_items(out, ", ordered by ", text, select->order);
}
