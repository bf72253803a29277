/* SPDX-License-Identifier: MIT */
/* Reads the tuples that are grouped, a span at a time. */
#include "gpu/host/group.h"

#include "base/checked.h"
#include "gpu/host/lanes.h"

uint64_t pfs_grouping_tuples(const struct pfs_grouping *g)
{
	return g->reader ? g->reader->end - g->reader->begin : g->positions->n;
}

/* Makes a span of the tuples from number `at` on, before `end`. Returns the number behind it. */
static uint64_t make_span(const struct pfs_grouping *g, unsigned worker, struct pfs_span *span,
			  uint64_t at, uint64_t end)
{
	uint64_t words[PFS_SPAN_WORDS], next = PFS_MIN(at + PFS_SPAN, end);
	uint32_t first;

	if (!g->reader) {
		pfs_positions_span(g->positions, span, at, end);
		return next;
	}
	first = (uint32_t)(g->reader->begin + at);
	if (!g->where)
		return pfs_source_reader_span(g->reader, span, first, g->reader->begin + end) -
		       g->reader->begin;
	span->first = first;
	span->at = NULL;
	span->n = pfs_evaluate_words(g->where, worker, g->reader, words, first);
	if (span->n < next - at) {
		(void)pfs_lanes()->list_bits(span->buffer, words, PFS_SPAN_WORDS, first);
		span->at = span->buffer;
	}
	return next;
}

int pfs_grouping_spans(const struct pfs_grouping *g, unsigned worker, uint64_t from, uint64_t to,
		       int (*fn)(void *context, const struct pfs_span *span), void *context)
{
	for (uint64_t at = from; at < to;) {
		struct pfs_span span;

		at = make_span(g, worker, &span, at, to);
		if (span.n)
			PFS_TRY(fn(context, &span));
	}
	return g->where ? atomic_load(&g->where->error) : 0;
}
