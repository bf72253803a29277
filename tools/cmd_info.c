/* SPDX-License-Identifier: MIT */
/* primefs info: what a store holds, in figures. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "meta/store.h"
#include "tools/cmd.h"
#include "tools/ready.h"

enum { JSON };

static const struct pfs_cmd_option options[] = {
	[JSON] = {"json", 0, NULL, "as JSON"},
	{0},
};

static const struct pfs_cmd command = {
	"info", "STORE", "Prints what a store holds.", options, NULL,
};

static void print_json(const struct pfs_tree_info *info, uint64_t store_bytes)
{
	struct pfs_json json = {.out = stdout};

	pfs_json_open(&json, NULL, '{');
	pfs_json_u64(&json, "nodes", info->nodes);
	pfs_json_u64(&json, "directories", info->directories);
	pfs_json_u64(&json, "files", info->files);
	pfs_json_u64(&json, "bytes", info->bytes);
	pfs_json_u64(&json, "max_depth", info->max_depth);
	pfs_json_u64(&json, "max_code_bits", info->max_code_bits);
	pfs_json_u64(&json, "schema", PFS_STORE_SCHEMA);
	pfs_json_u64(&json, "store_bytes", store_bytes);
	pfs_json_u64(&json, "memory_bytes", info->memory_bytes);
	pfs_json_u64(&json, "name_bytes", info->name_bytes);
	pfs_json_close(&json, '}');
}

static void print_line(const char *what, uint64_t n, const char *note)
{
	(void)printf("%-22s%14llu%s%s\n", what, (unsigned long long)n, *note ? "  " : "", note);
}

static void print_text(const struct pfs_tree_info *info, uint64_t store_bytes)
{
	char note[64];

	print_line("nodes", info->nodes, "the root included");
	print_line("directories", info->directories, "");
	print_line("files", info->files, "all that is no directory");
	print_line("bytes", info->bytes, "in files");
	print_line("greatest depth", info->max_depth, "");
	print_line("longest code", info->max_code_bits, "bits");
	print_line("schema", PFS_STORE_SCHEMA, "");
	(void)snprintf(note, sizeof(note), "bytes, %.1f a node",
		       (double)store_bytes / (double)PFS_MAX(info->nodes, 1));
	print_line("the store takes", store_bytes, note);
	(void)snprintf(note, sizeof(note), "bytes, %.1f a node besides its name",
		       (double)(info->memory_bytes - info->name_bytes) /
			       (double)PFS_MAX(info->nodes, 1));
	print_line("the image in memory", info->memory_bytes, note);
}

int pfs_cmd_info(int argc, char **argv)
{
	struct pfs_tree_info info;
	struct pfs_cmd_args args;
	struct pfs_tree *tree;
	struct stat attr = {.st_size = 0};
	bool as_json = false;
	int error, status;

	pfs_cmd_begin(&args, &command, argc, argv);
	while (pfs_cmd_next(&args) == JSON)
		as_json = true;
	if (pfs_cmd_end(&args, 1, 1))
		return args.status;
	status = pfs_ready_tree(&tree, "info", args.operands[0]);
	if (status)
		return status;
	error = pfs_tree_info(tree, &info);
	(void)pfs_tree_close(tree);
	if (error)
		return pfs_cmd_fail("info", "%s: %s", args.operands[0], strerror(-error));
	(void)stat(args.operands[0], &attr);
	if (as_json)
		print_json(&info, (uint64_t)attr.st_size);
	else
		print_text(&info, (uint64_t)attr.st_size);
	return pfs_cmd_flush("info", PFS_EXIT_OK);
}
