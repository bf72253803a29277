/* SPDX-License-Identifier: MIT */
/* The verb behind `primefs du --svg`; its words are "treemap", "--" and a path. */
#include "tools/client/answer.h"

#include <string.h>

#include "base/cleanup.h"
#include "fs/query/output/treemap.h"
#include "tools/cmd.h"

#define WIDTH	 1200 /* pixels, as of .query/treemap.svg */
#define HEIGHT	 800
#define ATTEMPTS 10

static int pass_on(void *arg, const void *bytes, size_t size)
{
	return pfs_reply_write(arg, bytes, size);
}

static int take_rows(struct pfs_treemap *treemap, struct pfs_queries *queries,
		     const struct pfs_query_scope *scope, struct pfs_query_error *error)
{
	char sql[PFS_TREEMAP_STATEMENT];
	size_t len = pfs_treemap_statement(treemap, sql, scope->ino);
	struct pfs_query *query;
	int status = pfs_query_start(&query, queries, scope, sql, len, error), attempts = 0;

	while (!status && (status = pfs_query_next(query, error)) != 0) {
		if (status == 1) {
			status = pfs_treemap_row(treemap, query);
		} else if (status == -EAGAIN && ++attempts < ATTEMPTS) {
			pfs_treemap_clear(treemap); /* the rows begin anew */
			status = 0;
		}
	}
	pfs_query_finish(query);
	return status;
}

static int draw(const struct pfs_answered *answered, struct pfs_treemap *treemap,
		struct pfs_reply *reply, const char *path)
{
	struct pfs_query_scope scope;
	const struct pfs_sink sink = {reply, pass_on};
	struct pfs_query_error error = {.text = "no memory"};
	int status;

	pfs_answered_scope(answered, &scope, reply);
	status = pfs_tree_resolve(answered->tree, &scope.ino, path);
	if (status)
		return pfs_reply_fail(reply, PFS_EXIT_FAILURE, "%s: %s", path, strerror(-status));
	status = take_rows(treemap, answered->queries, &scope, &error);
	if (!status)
		status = pfs_treemap_write(treemap, &sink, scope.ino, path);
	return status ? pfs_reply_fail(reply, PFS_EXIT_FAILURE, "%s: %s", path, error.text)
		      : PFS_EXIT_OK;
}

int pfs_answer_treemap(void *arg, struct pfs_reply *reply, const char *const *words, size_t n)
{
	const struct pfs_answered *answered = arg;
	struct pfs_treemap *treemap;
	int status;

	if (n != 3)
		return pfs_reply_fail(reply, PFS_EXIT_FAILURE,
				      "the daemon is of another version; remount the store");
	if (pfs_treemap_create(&treemap, WIDTH, HEIGHT))
		return pfs_reply_fail(reply, PFS_EXIT_FAILURE, "no memory for the picture");
	status = draw(answered, treemap, reply, words[2]);
	pfs_treemap_close(treemap);
	return status;
}
