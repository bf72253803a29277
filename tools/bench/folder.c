/* SPDX-License-Identifier: MIT */
/* A folder with a store of a generated tree (tools/bench/bench.h). */
#include "tools/bench/bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/image/imagefile.h"
#include "meta/store.h"
#include "tools/bench/gen.h"

int pfs_bench_folder_make(struct pfs_bench_folder *folder, const char *parent)
{
	int error;

	if (!parent || !*parent)
		parent = getenv("TMPDIR");
	(void)snprintf(folder->path, sizeof(folder->path), "%s/primefs-bench-XXXXXX",
		       parent && *parent ? parent : "/tmp");
	if (!mkdtemp(folder->path))
		goto failed;
	(void)snprintf(folder->list, sizeof(folder->list), "%s/paths", folder->path);
	(void)snprintf(folder->store, sizeof(folder->store), "%s/a.pfs", folder->path);
	(void)snprintf(folder->image, sizeof(folder->image), "%s" PFS_IMAGE_FILE_SUFFIX,
		       folder->store);
	(void)snprintf(folder->mountpoint, sizeof(folder->mountpoint), "%s/mnt", folder->path);
	if (mkdir(folder->mountpoint, 0700) == 0)
		return 0;
failed:
	error = -errno;
	(void)pfs_cmd_fail(folder->verb, "%s: %s", folder->path, strerror(-error));
	return error;
}

void pfs_bench_folder_remove(const struct pfs_bench_folder *folder)
{
	(void)unlink(folder->list);
	(void)unlink(folder->store);
	(void)unlink(folder->image);
	(void)rmdir(folder->mountpoint);
	(void)rmdir(folder->path);
}

const struct pfs_cmd_option pfs_bench_folder_options[] = {
	[PFS_BENCH_NODES] = {"nodes", 'n', "N", "of the tree (1000000)"},
	[PFS_BENCH_FOLDER] = {"folder", 'd', "DIR", "for the store ($TMPDIR or /tmp)"},
	{0},
};

int pfs_bench_folder_begin(struct pfs_bench_folder *folder, const struct pfs_cmd *command,
			   uint64_t least, int argc, char **argv)
{
	const char *parent = NULL;
	struct pfs_cmd_args args;
	int option;

	folder->verb = command->verb;
	pfs_cmd_begin(&args, command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == PFS_BENCH_NODES)
			pfs_cmd_number(&args, &folder->nodes, PFS_BENCH_NODES, least,
				       UINT32_MAX - 1);
		else
			parent = args.value;
	}
	if (pfs_cmd_end(&args, 0, 0))
		return args.status;
	return pfs_bench_folder_make(folder, parent) ? PFS_EXIT_FAILURE : -1;
}

int pfs_bench_folder_end(const struct pfs_bench_folder *folder, int error)
{
	pfs_bench_folder_remove(folder);
	if (error)
		return pfs_cmd_fail(folder->verb, "ended early: %s", strerror(-error));
	return pfs_cmd_flush(folder->verb, PFS_EXIT_OK);
}

int pfs_bench_folder_list(const struct pfs_bench_folder *folder)
{
	FILE *out = fopen(folder->list, "we");
	int error;

	if (!out)
		return -errno;
	error = pfs_gen_paths(out, folder->nodes, 1);
	return fclose(out) != 0 && !error ? -EIO : error;
}

int pfs_bench_folder_import(const struct pfs_bench_folder *folder)
{
	const char *argv[] = {pfs_bench_primefs(), "import",	  "--format=paths",
			      folder->list,	   folder->store, NULL};

	PFS_TRY(pfs_bench_folder_list(folder));
	return pfs_bench_run(folder->verb, NULL, argv);
}

struct sum {
	uint64_t *nodes, *name_bytes;
};

static int add_name(void *arg, const struct pfs_node_record *node)
{
	const struct sum *sum = arg;

	++*sum->nodes;
	*sum->name_bytes += node->name_len;
	return 0;
}

int pfs_bench_sum_names(uint64_t *nodes, uint64_t *name_bytes, const char *path)
{
	const struct pfs_store_options read_only = {.flags = PFS_STORE_READ_ONLY};
	struct sum sum = {nodes, name_bytes};
	struct pfs_store *store;
	int error;

	*nodes = *name_bytes = 0;
	PFS_TRY(pfs_store_open(&store, path, &read_only));
	error = pfs_store_scan_nodes(store, 0, UINT64_MAX, add_name, &sum);
	(void)pfs_store_close(store);
	return error;
}
