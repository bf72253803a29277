/* SPDX-License-Identifier: MIT */
/* Makes a store for bench query if none is given: paths from `primefs-bench gen`, then a size for
 * each file. */
#include "tools/bench/query.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/query/query.h"
#include "fs/tree/tree.h"
#include "tools/bench/gen.h"

static int print_paths(FILE *out, const void *arg)
{
	return pfs_gen_paths(out, *(const uint64_t *)arg, 1);
}

struct files {
	uint64_t *ino;
	size_t n, capacity;
};

static int take_file(void *arg, const struct pfs_query *query)
{
	struct files *files = arg;
	struct pfs_query_value value;

	PFS_TRY(pfs_grow(&files->ino, &files->capacity, files->n + 1, sizeof(*files->ino)));
	pfs_query_value(query, 0, &value);
	files->ino[files->n++] = (uint64_t)value.integer;
	return 0;
}

/* Most files are small. */
static int set_sizes(struct pfs_tree *tree, const struct files *files)
{
	static const struct pfs_caller owner = {.umask = 022};
	uint64_t random = 1;

	for (size_t i = 0; i < files->n; i++) {
		struct stat attr = {.st_size = 0};
		struct pfs_entry entry;
		uint64_t bits = 34 + pfs_gen_random(&random) % 24;

		attr.st_size = (off_t)(pfs_gen_random(&random) >> bits);
		PFS_TRY(pfs_tree_setattr(tree, &entry, files->ino[i], &attr, PFS_SET_SIZE, &owner));
	}
	return 0;
}

/* Paths alone have no sizes. */
static int give_sizes(const char *store)
{
	struct files files = {.ino = NULL};
	struct pfs_queries *queries;
	struct pfs_tree *tree;
	int error;

	PFS_TRY(pfs_tree_open(&tree, store, &(struct pfs_tree_options){0}));
	error = pfs_tree_start(tree);
	error = error ? error : pfs_queries_open(&queries, tree);
	if (!error) {
		error = pfs_bench_ask(queries, NULL, "SELECT ino FROM nodes WHERE type = 'f'",
				      take_file, &files);
		pfs_queries_close(queries);
	}
	error = error ? error : set_sizes(tree, &files);
	free(files.ino);
	return pfs_tree_close(tree) && !error ? -EIO : error;
}

int pfs_bench_query_make(struct pfs_bench_query *bench, uint64_t nodes)
{
	int error;

	bench->store = bench->server.store;
	PFS_TRY(pfs_bench_server_fill(&bench->server, NULL, print_paths, &nodes));
	error = give_sizes(bench->store);
	if (error)
		(void)pfs_cmd_fail(PFS_BENCH_QUERY, "%s: %s", bench->store, strerror(-error));
	return error;
}
