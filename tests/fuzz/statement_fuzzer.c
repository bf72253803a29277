/* SPDX-License-Identifier: MIT */
/* Statements over a small tree: whatever the text, it runs within its limits or is refused with a
 * reason, and where that is shown lies in the text.  Whoever does not see all never meets the name
 * that lies in a closed directory. */
#undef NDEBUG /* what is asserted is what is looked for */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "fs/query/internal.h"
#include "tests/fuzz/tree_fuzz.h"

#define ROWS_MAX 2000u
#define SECRET	 "qzx7HiddenName"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pfs_tree *tree;
static struct pfs_queries *queries;

static void close_tree(void)
{
	pfs_queries_close(queries);
	(void)!pfs_tree_close(tree);
}

static uint64_t make(uint64_t parent, const char *name, mode_t mode)
{
	const struct pfs_caller root = {0, 0, 0};
	struct pfs_entry entry;

	if (pfs_tree_make(tree, &entry, parent, name, mode, 0, &root) != 0)
		abort();
	return entry.attr.st_ino;
}

static void open_tree(void)
{
	uint64_t hidden;

	tree = open_small_tree(false);
	if (pfs_queries_open(&queries, tree) != 0 || atexit(close_tree) != 0)
		abort();
	hidden = make(make(2, "closed", S_IFDIR | 0700), SECRET ".c", S_IFREG | 0644);
	if (pfs_tree_setxattr(tree, hidden, "user." SECRET, SECRET, strlen(SECRET), 0) != 0)
		abort();
}

static bool tells(const char *bytes, size_t size)
{
	return memmem(bytes, size, SECRET, strlen(SECRET)) != NULL;
}

static void check_error(const struct pfs_query_error *error, const char *sql, size_t size)
{
	char *text;

	assert(error->error < 0 && memchr(error->text, 0, sizeof(error->text)));
	assert(error->offset >= -1 && error->offset <= (long)size);
	text = pfs_query_error_text(error, sql, size);
	free(text);
}

static void check_row(const struct pfs_query *query, bool keeps_secrets)
{
	for (size_t i = 0; i < pfs_query_columns(query); i++) {
		struct pfs_sql_value value;

		pfs_query_value(query, i, &value);
		assert(value.type < PFS_SQL_TEXT || !value.size || value.bytes);
		assert(!keeps_secrets || value.type < PFS_SQL_TEXT || !value.size ||
		       !tells(value.bytes, value.size));
	}
}

static void run(const struct pfs_query_scope *scope, const char *sql, size_t size)
{
	bool keeps_secrets = !scope->sees_all && !tells(sql, size);
	struct pfs_query_error error = {.error = 0};
	struct pfs_query *query;
	char *plan;
	int got = 0;

	if (pfs_query_start(&query, queries, scope, sql, size, &error) != 0) {
		check_error(&error, sql, size);
		assert(!keeps_secrets || !tells(error.text, strlen(error.text)));
		return;
	}
	for (unsigned n = 0; n < ROWS_MAX && (got = pfs_query_next(query, &error)) == 1; n++)
		check_row(query, keeps_secrets);
	if (got < 0)
		check_error(&error, sql, size);
	if (pfs_query_plan(query, &plan) == 0) {
		assert(!keeps_secrets || !tells(plan, strlen(plan)));
		free(plan);
	}
	pfs_query_finish(query);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pfs_query_scope scope = {
		.explains = true,
		.ino = 2,
		.sees_all = true,
		.uid = 4711,
		.gid = 4711,
		.memory_limit = 8 << 20,
		.time_limit_ms = 500,
	};

	if (!tree)
		open_tree();
	run(&scope, (const char *)data, size);
	scope.sees_all = false;
	run(&scope, (const char *)data, size);
	return 0;
}
