/* SPDX-License-Identifier: MIT */
/* primefs-bench - measures primefs beside its yardsticks, and makes hierarchies to measure with. */
#include "tools/bench/bench.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

static const struct subject {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
} subjects[] = {
#define BENCH(name, summary) {#name, pfs_bench_##name, summary},
#include "tools/bench/subjects.h"
};

static int print_help(void)
{
	(void)puts("usage: primefs-bench SUBJECT [OPTION]... [OPERAND]...\n"
		   "Measures, and prints each figure beside its yardstick.\n");
	for (size_t i = 0; i < PFS_COUNT(subjects); i++)
		(void)printf("  %-10s %s\n", subjects[i].name, subjects[i].summary);
	(void)puts("\nprimefs-bench SUBJECT --help explains a subject.");
	return pfs_cmd_flush("help", PFS_EXIT_OK);
}

int main(int argc, char **argv)
{
	pfs_cmd_program = "primefs-bench";
	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)
		return print_help();
	pfs_log_open(PFS_LOG_WARNING, false);
	for (size_t i = 0; i < PFS_COUNT(subjects); i++)
		if (strcmp(subjects[i].name, argv[1]) == 0)
			return subjects[i].run(argc - 1, argv + 1);
	(void)fprintf(stderr, "primefs-bench: unknown subject '%s'; see primefs-bench help\n",
		      argv[1]);
	return PFS_EXIT_USAGE;
}
