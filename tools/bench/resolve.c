/* SPDX-License-Identifier: MIT */
/* primefs-bench resolve - many paths at once, beside one after the other.
 *
 * The paths are in memory, one behind the other in the order in which they are asked for, as whoever has read or received
 * them has them; the numbers go there. Of the command, they come from a file and go nowhere. */
#include "tools/bench/bench.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "fs/tree/resolve.h"
#include "meta/store.h"
#include "tools/bench/gen.h"

#define ROUNDS 5
#define ASKED  4000000u /* paths, at most */
#define SINGLE 500000u	/* of them, one after the other */

static const struct pfs_cmd_option options[] = {
	[PFS_BENCH_NODES] = {"nodes", 'n', "N", "of the tree (8000000)"},
	[PFS_BENCH_FOLDER] = {"folder", 'd', "DIR", "for the store ($TMPDIR or /tmp)"},
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
	char *text; /* number, tab, path, NUL: of each node */
	size_t size, capacity;
	char *mixed_text; /* the paths that are asked for in a random order, in that order */
	struct pfs_path_text *paths; /* in pre-order, */
	struct pfs_path_text *mixed; /* and in a random one, */
	uint64_t *wanted, *mixed_wanted, *got;
	size_t n;
};

enum { RANDOM, IN_ORDER, COMMAND, PROCESSOR, FIGURES };

static int keep(void *arg, const char *bytes, size_t size)
{
	struct bench *bench = arg;

	PFS_TRY(pfs_grow(&bench->text, &bench->capacity, bench->size + size, 1));
	memcpy(bench->text + bench->size, bytes, size);
	bench->size += size;
	return 0;
}

/* Takes the text apart. */
static int list_paths(struct bench *bench)
{
	const uint64_t root = PFS_ROOT_PRIME;
	const struct pfs_question all = {PFS_SUBTREE, &root, 1};
	struct pfs_path_text path;
	size_t at = 0, room = bench->folder.nodes + 1;

	PFS_TRY(pfs_tree_list(bench->tree, &all, PFS_LIST_INO | PFS_LIST_ZERO, keep, bench));
	bench->paths = calloc(room, sizeof(*bench->paths));
	bench->mixed = calloc(room, sizeof(*bench->mixed));
	bench->wanted = calloc(room, sizeof(*bench->wanted));
	bench->mixed_wanted = calloc(room, sizeof(*bench->mixed_wanted));
	bench->got = calloc(room, sizeof(*bench->got));
	if (!bench->paths || !bench->mixed || !bench->wanted || !bench->mixed_wanted || !bench->got)
		return -ENOMEM;
	while (bench->n < room && pfs_path_next(&path, bench->text, bench->size, &at, 0)) {
		char *end;

		bench->wanted[bench->n] = strtoull(path.bytes, &end, 10);
		bench->paths[bench->n].bytes = end + 1;
		bench->paths[bench->n++].len = path.len - (size_t)(end + 1 - path.bytes);
	}
	return 0;
}

/* Copies the first n of the mixed paths to where they follow each other, each with its NUL. */
static int line_up(struct bench *bench, size_t n)
{
	size_t size = 0;
	char *to;

	for (size_t i = 0; i < n; i++)
		size += bench->mixed[i].len + 1;
	to = bench->mixed_text = malloc(size + 1);
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct pfs_path_text *path = &bench->mixed[i];

		if (path->len)
			memcpy(to, path->bytes, path->len);
		to[path->len] = 0;
		path->bytes = to;
		to += path->len + 1;
	}
	return 0;
}

static void mix(struct bench *bench)
{
	uint64_t state = 1;

	for (size_t i = 0; i < bench->n; i++) {
		size_t other = pfs_gen_random(&state) % (i + 1);

		bench->mixed[i] = bench->mixed[other];
		bench->mixed_wanted[i] = bench->mixed_wanted[other];
		bench->mixed[other] = bench->paths[i];
		bench->mixed_wanted[other] = bench->wanted[i];
	}
}

static int write_mixed(const struct bench *bench, size_t n)
{
	FILE *out = fopen(bench->folder.list, "we");

	if (!out)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		(void)fwrite(bench->mixed[i].bytes, 1, bench->mixed[i].len, out);
		(void)fputc('\n', out);
	}
	return fclose(out) ? -EIO : 0;
}

/* Paths a second. */
static int time_many(double *rate, const struct bench *bench, const struct pfs_path_text *paths,
		     const uint64_t *wanted, size_t n)
{
	const struct pfs_resolve_from from = {0};
	double started = pfs_bench_now();

	PFS_TRY(pfs_tree_resolve_many(bench->tree, bench->got, paths, n, &from));
	*rate = (double)n / (pfs_bench_now() - started);
	if (memcmp(bench->got, wanted, n * sizeof(*wanted)) == 0)
		return 0;
	(void)pfs_cmd_fail(command.verb, "a path has another number than in the listing");
	return -EUCLEAN;
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

/* Less what the command needs without paths. */
static int time_command(double *rate, const struct bench *bench, size_t n)
{
	static const char script[] = "\"$1\" resolve \"$2\" <\"$3\"";
	const char *argv[] = {"sh", "-c", script, "sh", pfs_bench_primefs(), bench->folder.store,
			      "/dev/null", NULL};
	double nothing, all;

	PFS_TRY(pfs_bench_run(command.verb, &nothing, argv));
	argv[6] = bench->folder.list;
	PFS_TRY(pfs_bench_run(command.verb, &all, argv));
	*rate = (double)n / PFS_MAX(all - nothing, 1e-9);
	return 0;
}

static int run_round(const struct bench *bench, struct pfs_figures *figures)
{
	size_t n = PFS_MIN(bench->n, ASKED), single = PFS_MIN(n, SINGLE);
	double rate = 0, started = pfs_bench_cpu();

	PFS_TRY(time_many(&rate, bench, bench->mixed, bench->mixed_wanted, n));
	pfs_figures_add(&figures[RANDOM], rate / 1e6);
	pfs_figures_add(&figures[PROCESSOR], (pfs_bench_cpu() - started) / (double)n * 1e9);
	started = pfs_bench_cpu();
	PFS_TRY(time_single(&rate, bench, bench->mixed, single));
	pfs_figures_add_yardstick(&figures[RANDOM], rate / 1e6);
	pfs_figures_add_yardstick(&figures[PROCESSOR], (pfs_bench_cpu() - started) / (double)single * 1e9);
	PFS_TRY(time_many(&rate, bench, bench->paths, bench->wanted, n));
	pfs_figures_add(&figures[IN_ORDER], rate / 1e6);
	PFS_TRY(time_single(&rate, bench, bench->paths, single));
	pfs_figures_add_yardstick(&figures[IN_ORDER], rate / 1e6);
	PFS_TRY(time_command(&rate, bench, n));
	pfs_figures_add(&figures[COMMAND], rate / 1e6);
	return 0;
}

static int run(struct bench *bench, struct pfs_figures *figures)
{
	int error = pfs_bench_folder_import(&bench->folder);

	if (!error)
		error = pfs_tree_open(&bench->tree, bench->folder.store,
				      &(struct pfs_tree_options){.read_only = true});
	if (!error)
		error = list_paths(bench);
	if (!error) {
		mix(bench);
		error = line_up(bench, PFS_MIN(bench->n, ASKED));
	}
	if (!error)
		error = write_mixed(bench, PFS_MIN(bench->n, ASKED));
	for (int round = 0; round < ROUNDS && !error; round++)
		error = run_round(bench, figures);
	if (bench->tree && pfs_tree_close(bench->tree) && !error)
		error = -EIO;
	return error;
}

static void clean_up(struct bench *bench)
{
	free(bench->text);
	free(bench->mixed_text);
	free(bench->paths);
	free(bench->mixed);
	free(bench->wanted);
	free(bench->mixed_wanted);
	free(bench->got);
}

int pfs_bench_resolve(int argc, char **argv)
{
	struct bench bench = {.folder.nodes = 8000000};
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
		/* Of a machine that others keep busy this says more than a rate. */
		[PROCESSOR] = {.what = "random paths, processor time of all threads",
			       .unit = "ns",
			       .yardstick = "one after the other",
			       .less_is_better = true},
	};
	int error, status;

	status = pfs_bench_folder_begin(&bench.folder, &command, 2, argc, argv);
	if (status >= 0)
		return status;
	error = run(&bench, figures);
	clean_up(&bench);
	for (size_t i = 0; i < FIGURES && !error; i++)
		pfs_figures_print(&figures[i], NULL);
	return pfs_bench_folder_end(&bench.folder, error);
}
