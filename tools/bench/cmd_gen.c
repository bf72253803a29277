/* SPDX-License-Identifier: MIT */
/* primefs-bench gen - makes up hierarchies to try things and to measure with. */
#include "tools/bench/bench.h"

#include <stdio.h>
#include <string.h>

#include "tools/bench/gen.h"
#include "tools/bench/gen_kladr.h"

static const struct kind {
	const char *name;
	int (*print)(FILE *out, uint64_t nodes, uint64_t seed);
} kinds[] = {
	{"paths", pfs_gen_paths},
	{"kladr", pfs_gen_kladr},
};

enum { NODES, SEED };

static const struct pfs_cmd_option options[] = {
	[NODES] = {"nodes", 'n', "N", "nodes of the tree, its root included (1000000)"},
	[SEED] = {"seed", 's', "N", "another tree for another number (1)"},
	{0},
};

static const struct pfs_cmd command = {
	"gen",
	"KIND",
	"Prints a made-up hierarchy, the same for the same seed.",
	options,
	"KIND is paths: a list of files, shaped like a package archive, for import "
	"--format=paths;\n"
	"or kladr: a register of addresses as CSV, a parent column making the tree.\n",
};

int pfs_bench_gen(int argc, char **argv)
{
	uint64_t nodes = 1000000, seed = 1;
	struct pfs_cmd_args args;
	int option;
	size_t i;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == NODES)
			pfs_cmd_number(&args, &nodes, NODES, 1, UINT32_MAX - 1);
		else
			pfs_cmd_number(&args, &seed, SEED, 0, UINT64_MAX);
	}
	if (pfs_cmd_end(&args, 1, 1))
		return args.status;
	for (i = 0; i < PFS_COUNT(kinds); i++)
		if (strcmp(args.operands[0], kinds[i].name) == 0)
			break;
	if (i == PFS_COUNT(kinds))
		return pfs_cmd_usage("gen", "'%s': no such kind of hierarchy", args.operands[0]);
	(void)kinds[i].print(stdout, nodes, seed);
	return pfs_cmd_flush("gen", PFS_EXIT_OK);
}
