/* SPDX-License-Identifier: MIT */
/* primefs-bench import - imports, each figure beside its yardstick from the same run.
 *
 * Every import is a process of its own, this program once more, so that its time has everything in
 * it and its memory nothing else. */
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "meta/store.h"
#include "tools/bench/bench.h"

#define REPEAT 5

extern char **environ;

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

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs a program to its end without its output; 0 or an error that has been said. */
static int run(double *seconds, uint64_t *memory, const char *const *argv)
{
	posix_spawn_file_actions_t actions;
	struct rusage usage;
	double start = now();
	int error, status = 0;
	pid_t pid;

	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	/* which does not change the words, whatever its type says */
	error = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	if (error) {
		(void)pfs_cmd_fail("import", "%s: %s", argv[0], strerror(error));
		return -error;
	}
	while (wait4(pid, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return -errno;
	*seconds = now() - start;
	*memory = (uint64_t)usage.ru_maxrss * 1024;
	/* find, and import too, end with 1 when something could not be read */
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
		(void)pfs_cmd_fail("import", "%s %s failed", argv[0], argv[1]);
		return -EIO;
	}
	return 0;
}

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
	return run(seconds, memory, argv);
}

static void print_figure(const char *what, double figure, const char *unit, const char *yardstick)
{
	(void)printf("  %-42s %12.1f %-10s %s\n", what, figure, unit, yardstick);
	(void)fflush(stdout);
}

/* ---- a list of paths ---- */

struct sum {
	uint64_t nodes, name_bytes;
};

static int add_name(void *arg, const struct pfs_node_record *node)
{
	struct sum *sum = arg;

	sum->nodes++;
	sum->name_bytes += node->name_len;
	return 0;
}

static int sum_names(struct sum *sum, const struct bench *bench)
{
	struct pfs_store *store;
	int error;

	*sum = (struct sum){0};
	PFS_TRY(pfs_store_open(&store, bench->folder.store,
			       &(struct pfs_store_options){.flags = PFS_STORE_READ_ONLY}));
	error = pfs_store_scan_nodes(store, 0, UINT64_MAX, add_name, sum);
	(void)pfs_store_close(store);
	return error;
}

/* The yardstick: as many records, put into a store with no tree to be made of them. */
static int put_bare(double *seconds, const struct bench *bench)
{
	const struct pfs_store_options bulk = {.flags = PFS_STORE_CREATE | PFS_STORE_BULK};
	struct pfs_node_record node = {.prime = PFS_ROOT_PRIME, .mode = S_IFDIR | 0755, .name = ""};
	struct pfs_store *store;
	double start = now();
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
	*seconds = now() - start;
	return error;
}

static int bench_paths(const struct bench *bench)
{
	double seconds, bare;
	uint64_t memory;
	struct sum sum;
	char beside[96];

	PFS_TRY(pfs_bench_folder_list(&bench->folder));
	PFS_TRY(import(&seconds, &memory, bench, "--format=paths", NULL, bench->folder.list));
	PFS_TRY(sum_names(&sum, bench));
	PFS_TRY(put_bare(&bare, bench));
	(void)unlink(bench->folder.store);
	(void)unlink(bench->folder.list);
	(void)printf("import --format=paths, %llu nodes, names of %.1f bytes\n",
		     (unsigned long long)sum.nodes, (double)sum.name_bytes / (double)sum.nodes);
	(void)snprintf(beside, sizeof(beside), "records alone into a store: %.0f/s",
		       (double)bench->folder.nodes / bare);
	print_figure("nodes a second", (double)sum.nodes / seconds, "/s", beside);
	print_figure("memory a node, names apart",
		     ((double)memory - (double)sum.name_bytes) / (double)sum.nodes, "bytes",
		     "wanted: at most 200");
	return 0;
}

/* ---- a directory ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int bench_dir(const struct bench *bench)
{
	static const char *const content[] = {"--content=none", "--content=link"};
	const char *find[] = {"find", bench->source, "-printf", "%p %s %T@ %m\\n", NULL};
	double times[PFS_COUNT(content) + 1][REPEAT];
	uint64_t memory;
	size_t i, j;
	char beside[96];

	PFS_TRY(run(&times[0][0], &memory, find)); /* warms the caches */
	for (i = 0; i < REPEAT; i++) {
		PFS_TRY(run(&times[0][i], &memory, find));
		for (j = 0; j < PFS_COUNT(content); j++)
			PFS_TRY(import(&times[j + 1][i], &memory, bench, "--format=dir", content[j],
				       bench->source));
	}
	(void)unlink(bench->folder.store);
	for (j = 0; j <= PFS_COUNT(content); j++)
		qsort(times[j], REPEAT, sizeof(times[j][0]), by_value);
	(void)printf("import --format=dir %s\n", bench->source);
	for (j = 0; j < PFS_COUNT(content); j++) {
		(void)snprintf(beside, sizeof(beside), "%.2f x find -printf: %.0f ms",
			       times[j + 1][REPEAT / 2] / times[0][REPEAT / 2],
			       times[0][REPEAT / 2] * 1e3);
		print_figure(content[j], times[j + 1][REPEAT / 2] * 1e3, "ms", beside);
	}
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
