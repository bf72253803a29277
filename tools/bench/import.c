/* SPDX-License-Identifier: MIT */
/* primefs-bench import - measures imports, each beside a yardstick of the same run.
 *
 * Every import is a process of its own that runs this program again, so that its time includes
 * everything, and its memory nothing else. */
#include "tools/bench/bench.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "meta/store.h"

#define REPEAT	    5
#define SOME_MISSED 1 /* the exit status of find, and of import, if something could not be read */

enum { NODES, SOURCE, FOLDER };

static const struct pfs_cmd_option options[] = {
	[NODES] = {"nodes", 'n', "N", "of the list of paths (8000000)"},
	[SOURCE] = {"source", 's', "DIR", "to crawl (/usr)"},
	[FOLDER] = {"folder", 'd', "DIR", "for files of a gigabyte or two ($TMPDIR or /tmp)"},
	{0},
};

static const struct pfs_cmd command = {
	"import",
	"",
	"Times imports of a list of paths and of a directory beside their yardsticks.",
	options,
	"The directory's figures are medians of 5, taken in turns, with warm caches.\n",
};

struct bench {
	struct pfs_bench_folder folder;
	const char *source;
};

static int import(double *seconds, uint64_t *memory, const struct bench *bench, const char *format,
		  const char *content, const char *source)
{
	const char *argv[8] = {pfs_bench_primefs(), "import", "--quiet"};
	size_t n = 3;

	(void)unlink(bench->folder.store);
	argv[n++] = format;
	if (content)
		argv[n++] = content;
	argv[n++] = source;
	argv[n] = bench->folder.store;
	return pfs_bench_run_as(command.verb, seconds, memory, argv, SOME_MISSED);
}

static void print_figure(const char *what, double figure, const char *unit, const char *yardstick)
{
	(void)printf("  %-42s %12.1f %-10s %s\n", what, figure, unit, yardstick);
	(void)fflush(stdout);
}

/* ---- a list of paths ---- */

/* The yardstick: puts as many records into a store, without making a tree of them. */
static int put_bare(double *seconds, const struct bench *bench)
{
	const struct pfs_store_options bulk = {.flags = PFS_STORE_CREATE | PFS_STORE_BULK};
	struct pfs_node_record node = {.prime = PFS_ROOT_PRIME, .mode = S_IFDIR | 0755, .name = ""};
	struct pfs_store *store;
	double start = pfs_bench_now();
	uint64_t i;
	int error;

	(void)unlink(bench->folder.store);
	PFS_TRY(pfs_store_open(&store, bench->folder.store, &bulk));
	error = pfs_store_begin(store);
	for (i = 0; i < bench->folder.nodes && !error; i++) {
		error = pfs_store_put_node(store, &node);
		node = (struct pfs_node_record){
			.prime = (UINT64_C(1) << 32) + 15 + 22 * i,
			.parent = PFS_ROOT_PRIME,
			.slot = (uint32_t)i + 1,
			.mode = S_IFREG | 0644,
			.mtime = {.sec = 1700000000},
			.atime = {.sec = 1700000000},
			.ctime = {.sec = 1700000000},
			.name = "fourteen-bytes",
			.name_len = 14,
		};
	}
	if (!error)
		error = pfs_store_commit(store, NULL);
	if (!error)
		error = pfs_store_close(store);
	else
		(void)pfs_store_close(store);
	*seconds = pfs_bench_now() - start;
	return error;
}

static int bench_paths(const struct bench *bench)
{
	double seconds, bare;
	uint64_t memory;
	uint64_t nodes, name_bytes;
	char beside[96];

	PFS_TRY(pfs_bench_folder_list(&bench->folder));
	PFS_TRY(import(&seconds, &memory, bench, "--format=paths", NULL, bench->folder.list));
	PFS_TRY(pfs_bench_sum_names(&nodes, &name_bytes, bench->folder.store));
	PFS_TRY(put_bare(&bare, bench));
	(void)unlink(bench->folder.store);
	(void)unlink(bench->folder.list);
	(void)printf("import --format=paths, %llu nodes, names of %.1f bytes\n",
		     (unsigned long long)nodes, (double)name_bytes / (double)nodes);
	(void)snprintf(beside, sizeof(beside), "records alone into a store: %.0f/s",
		       (double)bench->folder.nodes / bare);
	print_figure("nodes a second", (double)nodes / seconds, "/s", beside);
	print_figure("memory a node, names apart",
		     ((double)memory - (double)name_bytes) / (double)nodes, "bytes",
		     "wanted: at most 200");
	return 0;
}

/* ---- a directory ---- */

static int bench_dir(const struct bench *bench)
{
	struct pfs_figures figures[] = {
		{.what = "--content=none",
		 .unit = "ms",
		 .yardstick = "find -printf",
		 .less_is_better = true},
		{.what = "--content=link",
		 .unit = "ms",
		 .yardstick = "find -printf",
		 .less_is_better = true},
	};
	const char *find[] = {"find", bench->source, "-printf", "%p %s %T@ %m\\n", NULL};
	double found, imported;

	PFS_TRY(pfs_bench_run_as(command.verb, &found, NULL, find,
				 SOME_MISSED)); /* warms the caches */
	for (int round = 0; round < REPEAT; round++) {
		PFS_TRY(pfs_bench_run_as(command.verb, &found, NULL, find, SOME_MISSED));
		for (size_t i = 0; i < PFS_COUNT(figures); i++) {
			PFS_TRY(import(&imported, NULL, bench, "--format=dir", figures[i].what,
				       bench->source));
			pfs_figures_add(&figures[i], imported * 1e3);
			pfs_figures_add_yardstick(&figures[i], found * 1e3);
		}
	}
	(void)unlink(bench->folder.store);
	(void)printf("import --format=dir %s\n", bench->source);
	for (size_t i = 0; i < PFS_COUNT(figures); i++)
		pfs_figures_print(&figures[i], NULL);
	return 0;
}

int pfs_bench_import(int argc, char **argv)
{
	struct bench bench = {.folder = {.verb = "import", .nodes = 8000000}, .source = "/usr"};
	const char *parent = NULL;
	struct pfs_cmd_args args;
	int option, error;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == NODES)
			pfs_cmd_number(&args, &bench.folder.nodes, NODES, 2, UINT32_MAX - 1);
		else if (option == SOURCE)
			bench.source = args.value;
		else
			parent = args.value;
	}
	if (pfs_cmd_end(&args, 0, 0))
		return args.status;
	if (pfs_bench_folder_make(&bench.folder, parent))
		return PFS_EXIT_FAILURE;
	error = bench_dir(&bench);
	if (!error)
		error = bench_paths(&bench);
	return pfs_bench_folder_end(&bench.folder, error);
}
