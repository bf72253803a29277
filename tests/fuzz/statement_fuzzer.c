/* SPDX-License-Identifier: MIT */
/* Statements over a small tree: whatever the text, it runs within its limits or is refused with a
 * reason, and where that is shown lies in the text. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "fs/query/query.h"
#include "tests/fuzz/tree_fuzz.h"

#define ROWS_MAX 2000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pfs_tree *tree;
static struct pfs_queries *queries;

static void close_tree(void)
{
	pfs_queries_close(queries);
	(void)!pfs_tree_close(tree);
}

static void check_error(const struct pfs_query_error *error, const char *sql, size_t size)
{
	char *text;

	assert(error->error < 0 && memchr(error->text, 0, sizeof(error->text)));
	assert(error->offset >= -1 && error->offset <= (long)size);
	text = pfs_query_error_text(error, sql, size);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pfs_query_scope scope = {
		.explains = true,
		.ino = 2, .sees_all = true, .memory_limit = 8 << 20, .time_limit_ms = 500};
	struct pfs_query_error error = {.error = 0};
	struct pfs_query *query;
	const char *sql = (const char *)data;
	char *plan;
	int got = 0;

	if (!tree) {
		tree = open_small_tree(true);
		if (pfs_queries_open(&queries, tree) != 0 || atexit(close_tree) != 0)
			abort();
	}
	if (pfs_query_start(&query, queries, &scope, sql, size, &error) != 0) {
		check_error(&error, sql, size);
		return 0;
	}
	for (unsigned n = 0; n < ROWS_MAX && (got = pfs_query_next(query, &error)) == 1; n++) {
		for (size_t i = 0; i < pfs_query_columns(query); i++) {
			struct pfs_query_value value;

			pfs_query_value(query, i, &value);
			assert(value.type < PFS_VALUE_TEXT || !value.size || value.bytes);
		}
	}
	if (got < 0)
		check_error(&error, sql, size);
	if (pfs_query_plan(query, &plan) == 0)
		free(plan);
	pfs_query_finish(query);
	return 0;
}
