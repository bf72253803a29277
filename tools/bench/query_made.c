/* SPDX-License-Identifier: MIT */
/* Makes a store for bench query and bench mounted if none is given: the paths of `primefs-bench
 * gen`, and a size for each file. */
#include "tools/bench/query.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fs/build/build.h"
#include "tools/bench/gen.h"
#include "tools/import/import_paths.h"

struct making {
	struct pfs_build *build;
	struct pfs_path_trail trail;
	struct stat attr; /* of the next file */
	uint64_t random;
};

/* Most files are small. */
static int add_file(void *arg, const char *path, size_t len)
{
	struct making *making = arg;
	struct pfs_path_node at;
	uint64_t bits = 34 + pfs_gen_random(&making->random) % 24;

	making->attr.st_size = (off_t)(pfs_gen_random(&making->random) >> bits);
	PFS_TRY(pfs_path_add(&making->trail, &at, making->build, path, len));
	return pfs_build_set(making->build, at.node, &making->attr);
}

static int build(struct making *making, const char *store, uint64_t nodes)
{
	struct pfs_build_options options = {0};

	(void)clock_gettime(CLOCK_REALTIME, &making->attr.st_mtim);
	making->attr.st_atim = making->attr.st_ctim = making->attr.st_mtim;
	options.defaults = making->attr;
	PFS_TRY(pfs_build_open(&making->build, store, &options));
	PFS_TRY(pfs_gen_visit(nodes, 1, add_file, making));
	PFS_TRY(pfs_build_finish(making->build));
	return pfs_build_commit(making->build);
}

int pfs_bench_query_make(struct pfs_bench_query *bench, uint64_t nodes)
{
	struct making making = {
		.attr = {.st_mode = S_IFREG | 0644, .st_uid = geteuid(), .st_gid = getegid()},
		.random = 1,
	};
	int error;

	bench->store = bench->server.store;
	error = build(&making, bench->store, nodes);
	pfs_path_free(&making.trail);
	pfs_build_close(making.build);
	if (error)
		(void)pfs_cmd_fail(bench->server.verb, "%s: %s", bench->store, strerror(-error));
	return error;
}
