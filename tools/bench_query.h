/* SPDX-License-Identifier: MIT */
/* tools/bench_query.h - what the two halves of bench query share: statements over the tree beside
 * SQLite (bench_query.c), and commands and files of a mount beside other programs
 * (bench_query_mount.c). */
#ifndef PFS_TOOLS_BENCH_QUERY_H
#define PFS_TOOLS_BENCH_QUERY_H

#include "tools/bench.h"
#include "tools/bench_server.h"

#define PFS_BENCH_QUERY "bench query"

struct pfs_bench_query {
	struct pfs_bench_server server; /* its folder and mountpoint; its store, if one was made */
	const char *store, *beside;	/* beside: the tree as a directory, NULL: the mount */
	uint64_t runs;
	const char *prefix, *part; /* of names, to look for */
	struct pfs_json *json;	   /* or NULL */
};

/* Calls run with *seconds, as often as there are runs, but not on after four seconds. */
PFS_MUST_CHECK int pfs_bench_repeat(const struct pfs_bench_query *bench,
				    struct pfs_figures *figures,
				    void (*add)(struct pfs_figures *figures, double value),
				    int (*run)(void *arg, double *seconds), void *arg);

/* The second half; bare_ms: what SELECT 1 takes without a mount. */
PFS_MUST_CHECK int pfs_bench_query_mount(struct pfs_bench_query *bench, double bare_ms);

#endif
