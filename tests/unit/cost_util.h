/* SPDX-License-Identifier: MIT */
/* tests/unit/cost_util.h - what a statement over the tree of query_util.h is estimated to cost. */
#ifndef PFS_TESTS_UNIT_COST_UTIL_H
#define PFS_TESTS_UNIT_COST_UTIL_H

#include "fs/query/relational/cost.h"
#include "query_util.h"

static struct pfs_cost cost_of(const char *sql, const struct pfs_rates *rates, uint64_t n_nodes,
			       unsigned threads)
{
	struct pfs_query *query = begin(sql);
	struct pfs_arena arena = {.limit = 1 << 20};
	struct pfs_parsed *parsed;
	struct pfs_block *block;
	struct pfs_cost out;
	const char *why;

	assert_int_equal(pfs_parse(&parsed, query->text.text, query->text.len, NULL), 0);
	assert_int_equal(pfs_bind(&block, &why, query, &arena, pfs_parsed_statement(parsed)->select,
				  &(struct pfs_bind_part){.text = NULL}),
			 0);
	out = pfs_cost_of(block, rates, n_nodes, threads);
	pfs_block_finish(block, queries);
	pfs_parsed_free(parsed);
	pfs_arena_finish(&arena);
	pfs_query_finish(query);
	return out;
}

#endif
