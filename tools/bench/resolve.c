/* SPDX-License-Identifier: MIT */
/* primefs-bench resolve - measures resolving many paths at once, beside one after the other.
 *
 * The paths are in memory, in the order in which they are asked for, as a program that has read or
 * received them would have them, and the numbers go to memory. For the command, paths come from a
 * file, and numbers go nowhere. From file to file both are files of memory (memfd_create), and how
 * many threads each stage keeps busy is shown. With --engine=cuda a second tree over the same store
 * has a device, which has its index, columns, parents and table of paths when the clock starts;
 * then a third one is changed. */
#include "tools/bench/bench.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/image/device_lookup.h"
#include "tools/bench/resolve_changed.h"
#include "tools/bench/resolve_files.h"
#include "tools/bench/resolve_list.h"

#define ROUNDS	5
#define ASKED	4000000u  /* paths, at most */
#define SINGLE	500000u	  /* of them are asked for one after the other */
#define TRIPS	20000u	  /* of the paths of about 60 bytes are, to a device */
#define WAIT_S	120	  /* seconds for the device to get the tree */
#define SEVERAL 4	  /* so many times what the command takes without paths, with them */

enum { ENGINE = 2 };
static const struct pfs_cmd_option options[] = {
	[PFS_BENCH_NODES] = {"nodes", 'n', "N", "of the tree (8000000)"},
	[PFS_BENCH_FOLDER] = {"folder", 'd', "DIR", "for the store ($TMPDIR or /tmp)"},
	[ENGINE] = {"engine", 'e', "NAME", "host, or cuda: also by a device (host)"},
	{0},
};

static const struct pfs_cmd command = {
	"resolve",
	"",
	"Times the inode numbers of paths, many at once.",
	options,
	"Each number is compared with the one that a listing of the tree has.\n",
};

struct bench {
	struct pfs_bench_folder folder;
	struct pfs_tree *tree;
	/* a second tree over the same store, with a device; NULL: none is wanted */
	struct pfs_tree *device;
	struct pfs_resolve_list list;
	uint64_t *got;
	char *mixed_text; /* the paths in a random order */
	size_t mixed_size;
	size_t copies; /* of them, one after the other, in the command's list */
	/* in the random order; and those of about 60 bytes */
	struct pfs_resolve_at_once at_once, short_at_once;
	struct pfs_resolve_changed changed;
};

enum {
	RANDOM,
	IN_ORDER,
	COMMAND,
	PROCESSOR,
	FILES,
	DEVICE,
	DEVICE_FILES,
	KERNEL,
	KERNEL_SHORT,
	TRIP,
	FIGURES
};

static int make_room(struct bench *bench)
{
	bench->got = calloc(bench->list.n + 1, sizeof(*bench->got));
	return bench->got ? 0 : -ENOMEM;
}

/* Copies the first n of the mixed paths to where they follow each other, each with its NUL. */
static int line_up(struct bench *bench, size_t n)
{
	size_t size = 0;
	char *to;

	for (size_t i = 0; i < n; i++)
		size += bench->list.mixed[i].len + 1;
	bench->mixed_size = size;
	to = bench->mixed_text = malloc(size + 1);
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct pfs_path_text *path = &bench->list.mixed[i];

		if (path->len)
			memcpy(to, path->bytes, path->len);
		to[path->len] = 0;
		path->bytes = to;
		to += path->len + 1;
	}
	return 0;
}

static int write_mixed(const struct bench *bench, size_t n)
{
	FILE *out = fopen(bench->folder.list, "we");

	if (!out)
		return -errno;
	for (size_t i = 0; i < n * bench->copies; i++) {
		const struct pfs_path_text *path = &bench->list.mixed[i % n];

		(void)fwrite(path->bytes, 1, path->len, out);
		(void)fputc('\n', out);
	}
	return fclose(out) ? -EIO : 0;
}

/* Measures paths a second. */
static int time_many(double *rate, const struct bench *bench, struct pfs_tree *tree,
		     const struct pfs_path_text *paths, const uint64_t *wanted, size_t n)
{
	const struct pfs_resolve_from from = {0};
	double started = pfs_bench_now();

	PFS_TRY(pfs_tree_resolve_many(tree, bench->got, paths, n, &from));
	*rate = (double)n / (pfs_bench_now() - started);
	return memcmp(bench->got, wanted, n * sizeof(*wanted)) ? pfs_resolve_differs(command.verb)
							       : 0;
}

static int time_single(double *rate, const struct bench *bench, const struct pfs_path_text *paths,
		       size_t n)
{
	double started = pfs_bench_now();
	uint64_t ino;

	for (size_t i = 0; i < n; i++) /* a NUL follows each */
		PFS_TRY(pfs_tree_resolve(bench->tree, &ino, paths[i].bytes));
	*rate = (double)n / (pfs_bench_now() - started);
	return 0;
}

/* Measures the time for a path of about 60 bytes, asked for alone, in microseconds. */
static int time_trip(double *us, const struct bench *bench, struct pfs_tree *tree)
{
	const size_t all = PFS_MIN(bench->list.n, ASKED);
	double started = pfs_bench_now();
	size_t n = 0;
	uint64_t ino;

	for (size_t i = 0; i < all && n < TRIPS; i++) {
		const struct pfs_path_text *path = &bench->list.mixed[i];

		if (path->len < PFS_RESOLVE_SHORT_LEAST || path->len > PFS_RESOLVE_SHORT_MOST)
			continue;
		PFS_TRY(pfs_tree_resolve(tree, &ino, path->bytes));
		if (ino != bench->list.mixed_wanted[i])
			return pfs_resolve_differs(command.verb);
		n++;
	}
	*us = (pfs_bench_now() - started) / (double)PFS_MAX(n, (size_t)1) * 1e6;
	return 0;
}

/* Less what the command needs without paths; few paths are repeated until that is a small part. */
static int time_command(double *rate, struct bench *bench, size_t n)
{
	static const char script[] = "\"$1\" resolve \"$2\" <\"$3\"";
	const char *argv[] = {
		"sh",	     "-c", script, "sh", pfs_bench_primefs(), bench->folder.store,
		"/dev/null", NULL};
	double nothing, all;

	PFS_TRY(pfs_bench_run(command.verb, &nothing, argv)); /* its caches are cold */
	PFS_TRY(pfs_bench_run(command.verb, &nothing, argv));
	argv[6] = bench->folder.list;
	PFS_TRY(pfs_bench_run(command.verb, &all, argv));
	while (all < SEVERAL * nothing && n * bench->copies < ASKED) {
		bench->copies *= 2;
		PFS_TRY(write_mixed(bench, n));
		PFS_TRY(pfs_bench_run(command.verb, &all, argv));
	}
	*rate = all > nothing ? (double)(n * bench->copies) / (all - nothing) : 0;
	return 0;
}

static int time_files(struct pfs_resolve_stages *stages, const struct bench *bench,
		      struct pfs_tree *tree, size_t n)
{
	const struct pfs_resolve_files files = {
		.tree = tree,
		.by_device = tree == bench->device,
		.text = bench->mixed_text,
		.size = bench->mixed_size,
		.wanted = bench->list.mixed_wanted,
		.n = n,
	};

	return pfs_resolve_files_time(stages, command.verb, &files);
}

/* ---- a device ---- */

static uint64_t count_by_device(const struct bench *bench)
{
	struct pfs_device_lookup_stats stats;

	pfs_device_lookup_stats(bench->device, &stats);
	return stats.device[PFS_QUESTION_PATH].n;
}

/* Measures lists of paths one after the other, so that no kernel is beside another, and single
 * paths, each a question. */
static int time_device(struct bench *bench, struct pfs_figures *figures, size_t n)
{
	struct pfs_device_lookup_stats before, after;
	double rate, us;

	pfs_device_lookup_stats(bench->device, &before);
	PFS_TRY(time_many(&rate, bench, bench->device, bench->list.mixed, bench->list.mixed_wanted,
			  n));
	pfs_device_lookup_stats(bench->device, &after);
	pfs_figures_add(&figures[DEVICE], rate / 1e6);
	us = (double)(after.info.kernel_ns - before.info.kernel_ns + 1) / 1e3;
	pfs_figures_add_yardstick(&figures[KERNEL], (double)n / us);
	PFS_TRY(pfs_resolve_at_once_time(&figures[KERNEL], &bench->at_once, command.verb,
					 bench->device));
	PFS_TRY(pfs_resolve_at_once_time(&figures[KERNEL_SHORT], &bench->short_at_once,
					 command.verb, bench->device));
	PFS_TRY(time_trip(&us, bench, bench->tree));
	pfs_figures_add_yardstick(&figures[TRIP], us);
	PFS_TRY(time_trip(&us, bench, bench->device));
	pfs_device_lookup_stats(bench->device, &before);
	if (before.device[PFS_QUESTION_LOOKUP].n > after.device[PFS_QUESTION_LOOKUP].n)
		pfs_figures_add(&figures[TRIP], us);
	return 0;
}

static int pack(struct bench *bench)
{
	PFS_TRY(pfs_resolve_at_once_make(&bench->at_once, bench->device, &bench->list, 0,
					 SIZE_MAX));
	return pfs_resolve_at_once_make(&bench->short_at_once, bench->device, &bench->list,
					PFS_RESOLVE_SHORT_LEAST, PFS_RESOLVE_SHORT_MOST);
}

static bool knows_paths(const struct bench *bench)
{
	struct pfs_device_lookup_stats stats;

	pfs_device_lookup_stats(bench->device, &stats);
	return stats.info.knows_paths;
}

/* Opens the tree and asks until the device has it, and its table of paths. */
static int open_device(struct bench *bench)
{
	const struct pfs_tree_options with_device = {.read_only = true, .engine = PFS_ENGINE_CUDA};
	double until;

	PFS_TRY(pfs_tree_open(&bench->device, bench->folder.store, &with_device));
	PFS_TRY(pfs_tree_start(bench->device));
	until = pfs_bench_now() + WAIT_S;
	while (!knows_paths(bench) && pfs_bench_now() < until) {
		double rate;

		PFS_TRY(time_many(&rate, bench, bench->device, bench->list.mixed,
				  bench->list.mixed_wanted,
				  PFS_MIN(bench->list.n, PFS_RESIDENT_PATHS)));
	}
	if (knows_paths(bench))
		return pack(bench);
	(void)pfs_cmd_fail(command.verb,
			   "no device resolves paths by a table of them; leave --engine out");
	return -ENODEV;
}

static int run_device(struct bench *bench, struct pfs_figures *figures,
		      struct pfs_resolve_stages *stages, size_t n)
{
	uint64_t before = count_by_device(bench);

	PFS_TRY(time_device(bench, figures, n));
	PFS_TRY(time_files(stages, bench, bench->device, n));
	pfs_figures_add(&figures[DEVICE_FILES], (double)n / stages->all / 1e6);
	if (count_by_device(bench) - before ==
	    2 * n + bench->at_once.paths.n + bench->short_at_once.paths.n)
		return 0;
	(void)pfs_cmd_fail(
		command.verb,
		"the device has not resolved all paths; its figures are the processor's");
	return -EIO;
}

/* ---- rounds ---- */

static int run_round(struct bench *bench, struct pfs_figures *figures,
		     struct pfs_resolve_stages *stages)
{
	size_t n = PFS_MIN(bench->list.n, ASKED), single = PFS_MIN(n, SINGLE);
	double rate = 0, started = pfs_bench_cpu();

	PFS_TRY(time_many(&rate, bench, bench->tree, bench->list.mixed, bench->list.mixed_wanted,
			  n));
	pfs_figures_add(&figures[RANDOM], rate / 1e6);
	pfs_figures_add_yardstick(&figures[DEVICE], rate / 1e6);
	pfs_figures_add(&figures[PROCESSOR], (pfs_bench_cpu() - started) / (double)n * 1e9);
	started = pfs_bench_cpu();
	PFS_TRY(time_single(&rate, bench, bench->list.mixed, single));
	pfs_figures_add_yardstick(&figures[RANDOM], rate / 1e6);
	pfs_figures_add_yardstick(&figures[PROCESSOR],
				  (pfs_bench_cpu() - started) / (double)single * 1e9);
	PFS_TRY(time_many(&rate, bench, bench->tree, bench->list.paths, bench->list.wanted, n));
	pfs_figures_add(&figures[IN_ORDER], rate / 1e6);
	PFS_TRY(time_single(&rate, bench, bench->list.paths, single));
	pfs_figures_add_yardstick(&figures[IN_ORDER], rate / 1e6);
	PFS_TRY(time_command(&rate, bench, n));
	if (rate > 0)
		pfs_figures_add(&figures[COMMAND], rate / 1e6);
	PFS_TRY(time_files(&stages[0], bench, bench->tree, n));
	rate = (double)n / stages[0].all;
	pfs_figures_add(&figures[FILES], rate / 1e6);
	pfs_figures_add_yardstick(&figures[FILES], (double)n / stages[0].copy / 1e6);
	pfs_figures_add_yardstick(&figures[DEVICE_FILES], rate / 1e6);
	return bench->device ? run_device(bench, figures, &stages[1], n) : 0;
}

static int close_tree(struct pfs_tree *tree, int error)
{
	return tree && pfs_tree_close(tree) && !error ? -EIO : error;
}

static int run(struct bench *bench, bool on_device, struct pfs_figures *figures,
	       struct pfs_resolve_stages *stages)
{
	int error = pfs_bench_folder_import(&bench->folder);

	if (!error)
		error = pfs_tree_open(&bench->tree, bench->folder.store,
				      &(struct pfs_tree_options){.read_only = true});
	if (!error)
		error = pfs_resolve_list_make(&bench->list, bench->tree, bench->folder.nodes + 1);
	if (!error)
		error = make_room(bench);
	if (!error)
		error = line_up(bench, PFS_MIN(bench->list.n, ASKED));
	if (!error)
		error = write_mixed(bench, PFS_MIN(bench->list.n, ASKED));
	if (!error && on_device)
		error = open_device(bench);
	for (int round = 0; round < ROUNDS && !error; round++)
		error = run_round(bench, figures, stages);
	error = close_tree(bench->device, close_tree(bench->tree, error));
	if (error || !on_device)
		return error;
	pfs_resolve_at_once_free(&bench->at_once);
	pfs_resolve_at_once_free(&bench->short_at_once);
	return pfs_resolve_changed_run(&bench->changed, command.verb, bench->folder.store,
				       &bench->list);
}

static void clean_up(struct bench *bench)
{
	free(bench->mixed_text);
	free(bench->got);
	pfs_resolve_list_free(&bench->list);
	pfs_resolve_at_once_free(&bench->at_once);
	pfs_resolve_at_once_free(&bench->short_at_once);
}

/* Returns -1, or the exit status to end with. */
static int read_options(struct pfs_bench_folder *folder, bool *on_device, int argc, char **argv)
{
	enum pfs_engine_kind engine = PFS_ENGINE_HOST;
	const char *parent = NULL;
	struct pfs_cmd_args args;
	int option;

	folder->verb = command.verb;
	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == PFS_BENCH_NODES)
			pfs_cmd_number(&args, &folder->nodes, PFS_BENCH_NODES, 2, UINT32_MAX - 1);
		else if (option == PFS_BENCH_FOLDER)
			parent = args.value;
		else if (pfs_engine_by_name(&engine, args.value) || engine == PFS_ENGINE_AUTO)
			return pfs_cmd_fail(command.verb, "--engine=%s: give host or cuda",
					    args.value);
	}
	if (pfs_cmd_end(&args, 0, 0))
		return args.status;
	*on_device = engine == PFS_ENGINE_CUDA;
	return pfs_bench_folder_make(folder, parent) ? PFS_EXIT_FAILURE : -1;
}

int pfs_bench_resolve(int argc, char **argv)
{
	struct bench bench = {.folder.nodes = 8000000, .copies = 1};
	struct pfs_figures figures[FIGURES] = {
		[RANDOM] = {.what = "random paths, memory to memory",
			    .unit = "M/s",
			    .yardstick = "one after the other",
			    .wanted = 4},
		[IN_ORDER] = {.what = "paths in pre-order, memory to memory",
			      .unit = "M/s",
			      .yardstick = "one after the other"},
		[COMMAND] = {.what = "random paths, primefs resolve from a file, opening apart",
			     .unit = "M/s"},
		/* On a machine that others use, this says more than a rate. */
		[PROCESSOR] = {.what = "random paths, processor time of all threads",
			       .unit = "ns",
			       .yardstick = "one after the other",
			       .less_is_better = true},
		[FILES] = {.what = "random paths, file to file in memory",
			   .unit = "M/s",
			   .yardstick = "the texts copied by one thread"},
		[DEVICE] = {.what = "random paths by a kernel, memory to memory",
			    .unit = "M/s",
			    .yardstick = "the processor"},
		[DEVICE_FILES] = {.what = "random paths by a kernel, file to file in memory",
				  .unit = "M/s",
				  .yardstick = "the processor",
				  .wanted = 40},
		[KERNEL] = {.what = "random paths that are on the device, the kernel's time alone",
			    .unit = "M/s",
			    .yardstick = "in lists, from memory to memory"},
		[KERNEL_SHORT] = {.what = "those of about 60 bytes, likewise",
				  .unit = "M/s",
				  .wanted = 9000},
		[TRIP] = {.what = "a path of about 60 bytes at a time, by the kernel that stays",
			  .unit = "us",
			  .yardstick = "the processor",
			  .less_is_better = true,
			  .wanted = 6},
	};
	struct pfs_resolve_stages stages[2] = {{0}};
	bool on_device = false;
	int error, status;

	status = read_options(&bench.folder, &on_device, argc, argv);
	if (status >= 0)
		return status;
	error = run(&bench, on_device, figures, stages);
	if (!error)
		(void)printf("%zu nodes\n", bench.list.n);
	for (size_t i = 0; i < (on_device ? FIGURES : DEVICE) && !error; i++)
		pfs_figures_print(&figures[i], NULL);
	if (!error && on_device)
		pfs_resolve_changed_print(&bench.changed);
	if (!error)
		pfs_resolve_stages_print("the processor", &stages[0]);
	if (!error && on_device)
		pfs_resolve_stages_print("a kernel", &stages[1]);
	clean_up(&bench);
	return pfs_bench_folder_end(&bench.folder, error);
}
