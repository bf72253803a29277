/* SPDX-License-Identifier: MIT */
/* Other programs that index a folder, beside which primefs is measured. */
#include "tools/bench/bench.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

void pfs_bench_run_other(const char *verb, const char *what, const char *const *argv)
{
	struct pfs_figures figure = {.what = what, .unit = "ms"};
	double seconds;

	if (!pfs_bench_is_installed(argv[0])) {
		(void)printf("%s\n    %s: not installed\n", what, argv[0]);
		return;
	}
	if (pfs_bench_run(verb, &seconds, argv))
		return;
	pfs_figures_add(&figure, seconds * 1e3);
	pfs_figures_print(&figure, NULL);
}

void pfs_bench_index_names(const char *verb, const char *what, const char *folder,
			   const char *names)
{
	const char *updatedb[] = {
		"updatedb", "-l",	 "no", "-U",	       folder, "-o",
		names,	    "--prunefs", "",   "--prunepaths", "",     "--prune-bind-mounts",
		"no",	    NULL};

	pfs_bench_run_other(verb, what, updatedb);
}

void pfs_bench_index_sizes(const char *verb, const char *what, const char *folder, const char *near)
{
	char sizes[PATH_MAX];
	const char *duc[] = {"duc", "index", "-q", "-d", sizes, folder, NULL};

	if (snprintf(sizes, sizeof(sizes), "%s.sizes", near) >= (int)sizeof(sizes))
		return;
	pfs_bench_run_other(verb, what, duc);
	(void)unlink(sizes);
}
