/* SPDX-License-Identifier: MIT */
/* primefs-bench resolve - measures resolving many paths at once, beside one after the other.
 *
 * The paths are in memory, in the order in which they are asked for, as a program that has read or
 * received them would have them, and the numbers go to memory. For the command, paths come from a
 * file, and numbers go nowhere. From file to file both are files of memory (memfd_create), and how
 * many threads each stage keeps busy is shown. With --engine=cuda a second tree over the same store
 * has a device, which has its index, columns and parents when the clock starts. */
#include "tools/bench/bench.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/device_lookup.h"
#include "meta/store.h"
#include "tools/bench/gen.h"
#include "tools/client/pathpipe.h"

#define ROUNDS 5
#define ASKED  4000000u /* paths, at most */
#define SINGLE 500000u	/* of them are asked for one after the other */
#define WAIT_S 120	/* seconds for the device to get the tree */
#define COPIED	      ((size_t)1 << 20) /* bytes that a plain copy moves at once */
#define PATH_MAX_SIZE ((size_t)4 << 20) /* bytes of a path, at most */

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
	char *text; /* number, tab, path, NUL: of each node */
	size_t size, capacity;
	char *mixed_text; /* the paths in a random order */
	struct pfs_path_text *paths; /* in pre-order, */
	struct pfs_path_text *mixed; /* and in a random one, */
	uint64_t *wanted, *mixed_wanted, *got;
	size_t n;
	size_t mixed_size;
};

enum { RANDOM, IN_ORDER, COMMAND, PROCESSOR, FILES, DEVICE, DEVICE_FILES, FIGURES };

/* Where the time from file to file is spent, in seconds. Many threads are busy at once. */
struct stages {
	double all, busy[PFS_PATHPIPE_STAGES], bus, kernel;
	double copy; /* the time that the same bytes take without being resolved */
};

static int keep(void *arg, const char *bytes, size_t size)
{
	struct bench *bench = arg;

	PFS_TRY(pfs_grow(&bench->text, &bench->capacity, bench->size + size, 1));
	memcpy(bench->text + bench->size, bytes, size);
	bench->size += size;
	return 0;
}

/* Splits the text into paths and numbers. */
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
	bench->mixed_size = size;
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

/* Measures paths a second. */
static int time_many(double *rate, const struct bench *bench, struct pfs_tree *tree,
		     const struct pfs_path_text *paths, const uint64_t *wanted, size_t n)
{
	const struct pfs_resolve_from from = {0};
	double started = pfs_bench_now();

	PFS_TRY(pfs_tree_resolve_many(tree, bench->got, paths, n, &from));
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

	PFS_TRY(pfs_bench_run(command.verb, &nothing, argv)); /* its caches are cold */
	PFS_TRY(pfs_bench_run(command.verb, &nothing, argv));
	argv[6] = bench->folder.list;
	PFS_TRY(pfs_bench_run(command.verb, &all, argv));
	*rate = (double)n / PFS_MAX(all - nothing, 1e-9);
	return 0;
}

/* ---- from file to file ---- */

static int open_memory_file(int *fd)
{
	*fd = memfd_create("primefs-bench", MFD_CLOEXEC);
	return *fd < 0 ? -errno : 0;
}

static int write_all(int fd, const char *bytes, size_t size)
{
	while (size) {
		ssize_t written = write(fd, bytes, size);

		if (written < 0)
			return -errno;
		bytes += written;
		size -= (size_t)written;
	}
	return 0;
}

/* Lines, in a file that is mapped: its pages are made where threads first write. */
struct answer {
	struct pfs_tree *tree; /* that answers */
	bool by_device;
	int fd;
	char *bytes;
	size_t size, room;
};

static int open_answer(struct answer *answer, size_t room)
{
	answer->room = room;
	PFS_TRY(open_memory_file(&answer->fd));
	if (ftruncate(answer->fd, (off_t)room))
		return -errno;
	answer->bytes = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, answer->fd, 0);
	return answer->bytes == MAP_FAILED ? -ENOMEM : 0;
}

static void close_answer(const struct answer *answer)
{
	if (answer->bytes && answer->bytes != MAP_FAILED)
		(void)munmap(answer->bytes, answer->room);
	if (answer->fd >= 0)
		(void)close(answer->fd);
}

/* Makes the pages for a text at once, which takes less than a fault for each. */
static void make_pages(const struct answer *answer, const struct pfs_resolve_text *text,
		       uint64_t offset)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), from = offset / page * page;
	size_t to = offset;

	for (size_t i = 0; i < text->n_parts; i++)
		to += text->parts[i].iov_len;
	if (to <= answer->room)
		(void)madvise(answer->bytes + from, to - from, MADV_POPULATE_WRITE);
}

static int put_lines(void *arg, const struct pfs_resolve_text *text, uint64_t offset)
{
	const struct answer *answer = arg;

	make_pages(answer, text, offset);
	for (size_t i = 0; i < text->n_parts; i++) {
		const struct iovec *part = &text->parts[i];

		if (offset > answer->room || part->iov_len > answer->room - offset)
			return -ENOSPC;
		memcpy(answer->bytes + offset, part->iov_base, part->iov_len);
		offset += part->iov_len;
	}
	return 0;
}

/* Each line begins with the number that is wanted. */
static int check_answer(const struct bench *bench, const struct answer *answer, size_t n)
{
	struct pfs_path_text line;
	size_t at = 0, i = 0;

	while (i < n && pfs_path_next(&line, answer->bytes, answer->size, &at, 0) &&
	       strtoull(line.bytes, NULL, 10) == bench->mixed_wanted[i])
		i++;
	if (i == n && at == answer->size)
		return 0;
	(void)pfs_cmd_fail(command.verb, "a line has another number than the listing");
	return -EUCLEAN;
}

static int resolve_batch(void *arg, uint64_t *inos, const struct pfs_path_text *paths, size_t n)
{
	const struct answer *answer = arg;
	const struct pfs_resolve_from from = {.alone = true};

	return pfs_tree_resolve_many(answer->tree, inos, paths, n, &from);
}

/* As primefs resolve does, but that all threads write the file, through its mapping. */
static int answer_file(struct stages *stages, struct answer *answer, int in)
{
	struct pfs_pathpipe pipe = {.in = in,
				    .at_once = answer->by_device ? PFS_RESIDENT_LISTS : 0,
				    .path_max = PATH_MAX_SIZE,
				    .arg = answer,
				    .resolve = resolve_batch,
				    .put = put_lines};
	struct pfs_device_lookup_stats before, after;
	double started;
	int error;

	pfs_device_lookup_stats(answer->tree, &before);
	started = pfs_bench_now();
	error = pfs_pathpipe_run(&pipe);
	stages->all = pfs_bench_now() - started;
	answer->size = pipe.put_bytes;
	pfs_device_lookup_stats(answer->tree, &after);
	for (unsigned i = 0; i < PFS_PATHPIPE_STAGES; i++)
		stages->busy[i] = (double)pipe.busy_ns[i] / 1e9;
	stages->bus = (double)(after.info.bus_ns - before.info.bus_ns) / 1e9;
	stages->kernel = (double)(after.info.kernel_ns - before.info.kernel_ns) / 1e9;
	return error;
}

/* What it takes to read the paths, and to write the answer into a file, one after the other in one
 * thread. */
static int time_copy(double *seconds, int in, const struct answer *answer)
{
	char *bytes PFS_FREE = malloc(COPIED);
	int out PFS_CLOSE = -1;
	double started;

	PFS_TRY(open_memory_file(&out));
	(void)lseek(in, 0, SEEK_SET);
	started = pfs_bench_now();
	while (bytes && read(in, bytes, COPIED) > 0)
		continue;
	PFS_TRY(write_all(out, answer->bytes, answer->size));
	*seconds = pfs_bench_now() - started;
	return bytes ? 0 : -ENOMEM;
}

static int time_files(struct stages *stages, const struct bench *bench, struct pfs_tree *tree,
		      size_t n)
{
	struct answer answer = {.tree = tree, .by_device = tree == bench->device, .fd = -1};
	int in PFS_CLOSE = -1;
	int error = open_memory_file(&in);

	if (!error)
		error = open_answer(&answer, bench->mixed_size + n * 32);
	if (!error)
		error = write_all(in, bench->mixed_text, bench->mixed_size);
	(void)lseek(in, 0, SEEK_SET);
	if (!error)
		error = answer_file(stages, &answer, in);
	if (!error)
		error = check_answer(bench, &answer, n);
	if (!error)
		error = time_copy(&stages->copy, in, &answer);
	close_answer(&answer);
	return error;
}

static void print_stages(const char *by, const struct stages *s)
{
	const double all = PFS_MAX(s->all, 1e-9);

	(void)printf(
		"from file to file by %s, the last round: %.2f threads on average read and found lines, %.2f resolved",
		by, s->busy[PFS_PATHPIPE_READ] / all, s->busy[PFS_PATHPIPE_RESOLVE] / all);
	if (s->kernel > 0)
		(void)printf(
			" (%.2f lists of paths were on the bus on average, %.2f in or before a kernel)",
			s->bus / all, s->kernel / all);
	(void)printf(", %.2f printed and wrote\n", s->busy[PFS_PATHPIPE_WRITE] / all);
}

/* ---- a device ---- */

static uint64_t count_by_device(const struct bench *bench)
{
	struct pfs_device_lookup_stats stats;

	pfs_device_lookup_stats(bench->device, &stats);
	return stats.device[PFS_QUESTION_PATH].n;
}

/* Opens the tree and asks until the device has it. */
static int open_device(struct bench *bench)
{
	const struct pfs_tree_options with_device = {.read_only = true, .engine = PFS_ENGINE_CUDA};
	double until;

	PFS_TRY(pfs_tree_open(&bench->device, bench->folder.store, &with_device));
	PFS_TRY(pfs_tree_start(bench->device));
	until = pfs_bench_now() + WAIT_S;
	while (!count_by_device(bench) && pfs_bench_now() < until) {
		double rate;

		PFS_TRY(time_many(&rate, bench, bench->device, bench->mixed, bench->mixed_wanted,
				  PFS_MIN(bench->n, PFS_RESIDENT_PATHS)));
	}
	if (count_by_device(bench))
		return 0;
	(void)pfs_cmd_fail(command.verb, "no device resolves paths; leave --engine out");
	return -ENODEV;
}

static int run_device(const struct bench *bench, struct pfs_figures *figures, struct stages *stages,
		      size_t n)
{
	uint64_t before = count_by_device(bench);
	double rate = 0;

	PFS_TRY(time_many(&rate, bench, bench->device, bench->mixed, bench->mixed_wanted, n));
	pfs_figures_add(&figures[DEVICE], rate / 1e6);
	PFS_TRY(time_files(stages, bench, bench->device, n));
	pfs_figures_add(&figures[DEVICE_FILES], (double)n / stages->all / 1e6);
	if (count_by_device(bench) - before == 2 * n)
		return 0;
	(void)pfs_cmd_fail(
		command.verb,
		"the device has not resolved all paths; its figures are the processor's");
	return -EIO;
}

/* ---- rounds ---- */

static int run_round(const struct bench *bench, struct pfs_figures *figures, struct stages *stages)
{
	size_t n = PFS_MIN(bench->n, ASKED), single = PFS_MIN(n, SINGLE);
	double rate = 0, started = pfs_bench_cpu();

	PFS_TRY(time_many(&rate, bench, bench->tree, bench->mixed, bench->mixed_wanted, n));
	pfs_figures_add(&figures[RANDOM], rate / 1e6);
	pfs_figures_add_yardstick(&figures[DEVICE], rate / 1e6);
	pfs_figures_add(&figures[PROCESSOR], (pfs_bench_cpu() - started) / (double)n * 1e9);
	started = pfs_bench_cpu();
	PFS_TRY(time_single(&rate, bench, bench->mixed, single));
	pfs_figures_add_yardstick(&figures[RANDOM], rate / 1e6);
	pfs_figures_add_yardstick(&figures[PROCESSOR],
				  (pfs_bench_cpu() - started) / (double)single * 1e9);
	PFS_TRY(time_many(&rate, bench, bench->tree, bench->paths, bench->wanted, n));
	pfs_figures_add(&figures[IN_ORDER], rate / 1e6);
	PFS_TRY(time_single(&rate, bench, bench->paths, single));
	pfs_figures_add_yardstick(&figures[IN_ORDER], rate / 1e6);
	PFS_TRY(time_command(&rate, bench, n));
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
	       struct stages *stages)
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
	if (!error && on_device)
		error = open_device(bench);
	for (int round = 0; round < ROUNDS && !error; round++)
		error = run_round(bench, figures, stages);
	return close_tree(bench->device, close_tree(bench->tree, error));
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
	};
	struct stages stages[2] = {{0}};
	bool on_device = false;
	int error, status;

	status = read_options(&bench.folder, &on_device, argc, argv);
	if (status >= 0)
		return status;
	error = run(&bench, on_device, figures, stages);
	clean_up(&bench);
	for (size_t i = 0; i < (on_device ? FIGURES : DEVICE) && !error; i++)
		pfs_figures_print(&figures[i], NULL);
	if (!error)
		print_stages("the processor", &stages[0]);
	if (!error && on_device)
		print_stages("a kernel", &stages[1]);
	return pfs_bench_folder_end(&bench.folder, error);
}
