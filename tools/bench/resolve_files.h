/* SPDX-License-Identifier: MIT */
/* tools/bench/resolve_files.h - for primefs-bench resolve: paths from a file of memory, and numbers
 * into another one, as primefs resolve does it. */
#ifndef PFS_TOOLS_BENCH_RESOLVE_FILES_H
#define PFS_TOOLS_BENCH_RESOLVE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"
#include "tools/client/pathpipe.h"

/* Where the time is spent, in seconds. Many threads are busy at once. */
struct pfs_resolve_stages {
	double all, busy[PFS_PATHPIPE_STAGES], bus, kernel;
	double copy; /* the time that the same bytes take without being resolved */
};

struct pfs_resolve_files {
	struct pfs_tree *tree; /* that answers */
	bool by_device;
	const char *text; /* n paths, each with its NUL */
	size_t size;
	const uint64_t *wanted; /* their numbers */
	size_t n;
};

/* Measures it once. -EUCLEAN: a number is wrong, which is said in the name of the verb. */
PFS_MUST_CHECK int pfs_resolve_files_time(struct pfs_resolve_stages *stages, const char *verb,
					  const struct pfs_resolve_files *files);
void pfs_resolve_stages_print(const char *by, const struct pfs_resolve_stages *stages);

#endif
