/* SPDX-License-Identifier: MIT */
/* primefs-bench beside - measures lookups and creations through a mount, beside statements and
 * beside busy loops.
 *
 * All loads have their turns several times, so that whatever else the machine does affects each of
 * them. Lookups beside a statement are too slow if they are above the limits and above twice what
 * they are beside the busy loops. After a statement above the limits the busy loops have a turn,
 * and it is asked again, since it may have been affected by something else. */
#include "tools/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "tools/bench/samples.h"

#define ROUNDS	  3
#define CREATE_US 2000
#define LOOKUP_US 50
#define LOAD_S	  2.0  /* the least time of a turn */
/* the least time of each statement of a file; no answer is read after LOAD_S */
#define CORPUS_S  0.25
#define LOOPS_MAX 64
#define TIME	  "query_time=30" /* after this time a statement of a file has lasted long enough */

/* Limits of lookups, ms. */
#define ALL_BUT_ONE_MS 10.0  /* 99.9 % of lookups, */
#define LONGEST_MS     50.0  /* the longest lookup, */
#define NODE_MS	       0.001 /* and so much more for each node that a statement changes */

static const struct pfs_cmd_option options[] = {
	[PFS_BENCH_NODES] = {"nodes", 'n', "N", "of the tree (3000000)"},
	[PFS_BENCH_FOLDER] = {"folder", 'd', "DIR", "for the store ($TMPDIR or /tmp)"},
	{0},
};

static const struct pfs_cmd command = {
	"beside",
	"[FILE]",
	"Times lookups and creations through a mount beside statements.",
	options,
	"A name that is not there is looked up all the time, and a file created every 2 ms; beside "
	"nothing, and beside as many busy loops at nice 10 as there are processors, for "
	"comparison. "
	"FILE holds further statements, one a line; those that this tree refuses are counted, and "
	"those "
	"above the limits asked up to twice again. The exit "
	"status is 1 if of lookups beside a statement one of a thousand takes above 10 ms, or one "
	"above "
	"50 (1 more for each thousand nodes that the statement changes), and above twice what it "
	"takes "
	"beside the busy loops.\n",
};

static struct load {
	const char *what; /* a statement, or no load */
	double seconds;	  /* that it took in all `n` times */
	struct pfs_samples lookups, creations;
	unsigned n;
	bool is_loop, is_nothing, changes_all;
} loads[] = {
	{.what = "nothing", .is_nothing = true},
#define LOOPS 1
	[LOOPS] = {.what = "busy loops at nice 10", .is_loop = true},
	{.what = "SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY uid ORDER BY size) AS "
		 "n FROM nodes)"},
	{.what = "SELECT ext, count(*), sum(size) FROM nodes GROUP BY 1 ORDER BY 2 DESC"},
	{.what = "SELECT path FROM nodes WHERE name GLOB '*x*y*'"},
	{.what = "SELECT path, size FROM nodes ORDER BY size DESC, path"},
	{.what = "SELECT sum(subtree_size) FROM nodes"},
	{.what = "UPDATE nodes SET mtime = mtime + 1 WHERE ino = 2"},
	{.what = "UPDATE nodes SET mtime = mtime + 1 WHERE ino IN (SELECT ino FROM nodes WHERE "
		 "type = 'f' LIMIT 1000)"},
	{.what = "UPDATE nodes SET mtime = mtime + 1 WHERE type = 'f'", .changes_all = true},
};

struct bench {
	struct pfs_bench_folder folder;
	const char *file;	     /* a file of statements; NULL: none */
	/* one of its statements, and the busy loops with which it is compared */
	struct load one, loops;
	double worst_ms, longest_ms; /* p99.9 and the longest lookup beside any statement */
	unsigned n_asked, n_again, n_refused, n_above;
	struct load *load; /* the load whose turn it is */
	_Atomic bool stop;
	unsigned files, names; /* how many files were created, and names looked up */
};

/* Files are created in a directory of their own: the kernel looks up no names in a directory while
 * a creation waits in it, as happens when more is to be committed than is allowed. */
static void *create_all_the_time(void *arg)
{
	struct bench *bench = arg;
	char path[PATH_MAX + 64];

	while (!atomic_load(&bench->stop)) {
		double started = pfs_bench_now();

		(void)snprintf(path, sizeof(path), "%s/created/%u", bench->folder.mountpoint,
			       bench->files++);
		if (mknod(path, S_IFREG | 0644, 0))
			return NULL;
		pfs_samples_add(&bench->load->creations, started);
		(void)usleep(CREATE_US);
	}
	return arg;
}

/* Each name is a new one, since the kernel also keeps that there is no such name. */
static void *look_up_all_the_time(void *arg)
{
	struct bench *bench = arg;
	char path[PATH_MAX + 64];
	struct stat attr;

	while (!atomic_load(&bench->stop)) {
		double started;

		(void)snprintf(path, sizeof(path), "%s/nothing %u", bench->folder.mountpoint,
			       bench->names++);
		started = pfs_bench_now();
		if (stat(path, &attr) == 0 || errno != ENOENT)
			return NULL;
		pfs_samples_add(&bench->load->lookups, started);
		(void)usleep(LOOKUP_US);
	}
	return arg;
}

static void *be_busy(void *arg)
{
	struct bench *bench = arg;

	(void)setpriority(PRIO_PROCESS, 0, 10); /* of this thread only */
	while (!atomic_load_explicit(&bench->stop, memory_order_relaxed))
		;
	return arg;
}

/* Runs the statement to the last byte of its answer, or until that time. Returns 1 if it was
 * refused. */
static int run_statement(const struct bench *bench, const char *sql, double until)
{
	static char answer[1 << 20];
	char path[PATH_MAX + 64];
	ssize_t n = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/.query/run", bench->folder.mountpoint);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, sql, strlen(sql)) == (ssize_t)strlen(sql))
		while ((n = read(fd, answer, sizeof(answer))) > 0 && pfs_bench_now() < until)
			;
	(void)close(fd);
	return n < 0;
}

static int run_load(const struct bench *bench)
{
	struct load *load = bench->load;
	bool is_one = load == &bench->one;
	double started = pfs_bench_now(), now;
	int error = 0;

	do {
		if (load->is_loop || load->is_nothing)
			(void)usleep(1000);
		else
			error = run_statement(bench, load->what,
					      is_one ? started + LOAD_S : HUGE_VAL);
		load->n++;
		now = pfs_bench_now();
	} while (!error && now - started < (is_one ? CORPUS_S : LOAD_S));
	load->seconds += now - started;
	return error;
}

/* Returns a negative errno if the turn ended early, and 1 if the statement was refused. */
static int take_turn(struct bench *bench)
{
	long processors = bench->load->is_loop ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
	pthread_t threads[LOOPS_MAX + 2];
	size_t n = 0;
	int error = 0;

	atomic_store(&bench->stop, false);
	while (n < 2 + (size_t)PFS_MIN(processors, LOOPS_MAX) && !error) {
		error = -pthread_create(&threads[n], NULL,
					n == 0	 ? create_all_the_time
					: n == 1 ? look_up_all_the_time
						 : be_busy,
					bench);
		n += !error;
	}
	if (!error)
		error = run_load(bench);
	atomic_store(&bench->stop, true);
	while (n) {
		void *done;

		(void)pthread_join(threads[--n], &done);
		if (!done && error >= 0)
			error = -EIO;
	}
	return error;
}

static void print(void)
{
	(void)printf("%33s%33s%8s\n%8s%8s%8s%8s %8s%8s%8s%8s %8s\n", "lookups, ms", "creations, ms",
		     "takes", "p50", "p99", "p99.9", "most", "p50", "p99", "p99.9", "most", "s");
	for (size_t i = 0; i < PFS_COUNT(loads); i++) {
		pfs_samples_print(&loads[i].lookups);
		pfs_samples_print(&loads[i].creations);
		(void)printf("%8.3f  %s\n", loads[i].seconds / loads[i].n, loads[i].what);
	}
}

/* ---- limits ---- */

/* Returns true if lookups beside the load are above the limits, and above twice what they are
 * beside the loops. */
static bool is_above(const struct load *load, const struct load *loops, double more_ms)
{
	double all_but_one = pfs_samples_part(&load->lookups, 0.999);
	double longest = pfs_samples_part(&load->lookups, 1) - more_ms;

	return (all_but_one > ALL_BUT_ONE_MS &&
		all_but_one > 2 * pfs_samples_part(&loops->lookups, 0.999)) ||
	       (longest > LONGEST_MS && longest > 2 * pfs_samples_part(&loops->lookups, 1));
}

static void say_above(struct bench *bench, const struct load *load, const struct load *loops)
{
	bench->n_above++;
	(void)printf(
		"above the limits: lookups p99.9 %.2f ms (%.2f beside the busy loops), longest "
		"%.1f ms (%.1f), beside %s\n",
		pfs_samples_part(&load->lookups, 0.999), pfs_samples_part(&loops->lookups, 0.999),
		pfs_samples_part(&load->lookups, 1), pfs_samples_part(&loops->lookups, 1),
		load->what);
}

static int take_turn_of(struct bench *bench, struct load *load)
{
	load->lookups.n = load->creations.n = 0;
	bench->load = load;
	return take_turn(bench);
}

/* Asks until lookups beside the statement are fast enough, ROUNDS times at most. */
static int ask_one(struct bench *bench, const char *sql, double more_ms)
{
	bool is_well = false;

	bench->one.what = sql;
	for (unsigned i = 0; i < ROUNDS && !is_well; i++) {
		int error = take_turn_of(bench, &bench->one);

		if (error) {
			bench->n_refused++;
			return PFS_MIN(error, 0);
		}
		bench->n_again += i > 0;
		bench->loops.lookups.n = 0;
		is_well = !is_above(&bench->one, &bench->loops, more_ms);
		if (!is_well) {
			PFS_TRY(take_turn_of(bench, &bench->loops));
			is_well = !is_above(&bench->one, &bench->loops, more_ms);
		}
	}
	bench->worst_ms = PFS_MAX(bench->worst_ms, pfs_samples_part(&bench->one.lookups, 0.999));
	bench->longest_ms = PFS_MAX(bench->longest_ms, pfs_samples_part(&bench->one.lookups, 1));
	if (!is_well)
		say_above(bench, &bench->one, &bench->loops);
	return 0;
}

static int judge_all(struct bench *bench)
{
	for (size_t i = LOOPS + 1; i < PFS_COUNT(loads); i++) {
		double more_ms = loads[i].changes_all ? NODE_MS * (double)bench->folder.nodes : 0;

		if (is_above(&loads[i], &loads[LOOPS], more_ms))
			PFS_TRY(ask_one(bench, loads[i].what, more_ms));
	}
	return 0;
}

/* ---- statements of a file ---- */

/* The file is like tests/query/statements.sql: "--" begins a comment, and "= " says that the rows
 * have an order. */
static int ask_file(struct bench *bench)
{
	FILE *in = fopen(bench->file, "re");
	char *line = NULL;
	size_t capacity = 0;
	ssize_t len;
	int error = 0;

	if (!in) {
		error = -errno;
		(void)pfs_cmd_fail(command.verb, "%s: %s", bench->file, strerror(-error));
		return error;
	}
	bench->worst_ms = bench->longest_ms = 0;
	bench->n_again = 0;
	while (!error && (len = getline(&line, &capacity, in)) > 0) {
		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		if (!*line || strncmp(line, "--", 2) == 0)
			continue;
		error = ask_one(bench, line + (strncmp(line, "= ", 2) == 0 ? 2 : 0), 0);
		bench->n_asked++;
	}
	free(line);
	(void)fclose(in);
	(void)printf("%u statements of %s, %u refused, %u asked again: p99.9 at most %.2f ms, "
		     "the longest %.1f ms\n",
		     bench->n_asked, bench->file, bench->n_refused, bench->n_again, bench->worst_ms,
		     bench->longest_ms);
	return error;
}

/* ---- all of it ---- */

static int make_room(struct load *load)
{
	load->lookups.seconds = malloc(PFS_SAMPLES_MAX * sizeof(float));
	load->creations.seconds = malloc(PFS_SAMPLES_MAX * sizeof(float));
	return load->lookups.seconds && load->creations.seconds ? 0 : -ENOMEM;
}

static void free_room(struct load *load)
{
	free(load->lookups.seconds);
	free(load->creations.seconds);
}

static int run_mounted(struct bench *bench)
{
	char path[PATH_MAX + 64];

	(void)snprintf(path, sizeof(path), "%s/created", bench->folder.mountpoint);
	if (mkdir(path, 0755))
		return -errno;
	PFS_TRY(make_room(&bench->one));
	PFS_TRY(make_room(&bench->loops));
	for (size_t i = 0; i < PFS_COUNT(loads); i++)
		PFS_TRY(make_room(&loads[i]));
	for (unsigned i = 0; i < ROUNDS * PFS_COUNT(loads); i++) {
		int error;

		bench->load = &loads[i % PFS_COUNT(loads)];
		error = take_turn(bench);
		if (error)
			return error < 0 ? error : -EIO;
	}
	print();
	PFS_TRY(judge_all(bench));
	return bench->file ? ask_file(bench) : 0;
}

static int run(struct bench *bench)
{
	const char *mount[] = {pfs_bench_primefs(),	 "mount", "-o", TIME, bench->folder.store,
			       bench->folder.mountpoint, NULL};
	const char *umount[] = {pfs_bench_primefs(), "umount", bench->folder.mountpoint, NULL};
	int error;

	PFS_TRY(pfs_bench_folder_import(&bench->folder));
	PFS_TRY(pfs_bench_run(command.verb, NULL, mount));
	error = run_mounted(bench);
	if (pfs_bench_run(command.verb, NULL, umount) && !error)
		error = -EIO;
	free_room(&bench->one);
	free_room(&bench->loops);
	for (size_t i = 0; i < PFS_COUNT(loads); i++)
		free_room(&loads[i]);
	return error;
}

int pfs_bench_beside(int argc, char **argv)
{
	struct bench bench = {.folder = {.verb = command.verb, .nodes = 3000000},
			      .loops = {.is_loop = true}};
	const char *parent = NULL;
	struct pfs_cmd_args args;
	int option, status;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == PFS_BENCH_NODES)
			pfs_cmd_number(&args, &bench.folder.nodes, PFS_BENCH_NODES, 10000,
				       UINT32_MAX - 1);
		else
			parent = args.value;
	}
	if (pfs_cmd_end(&args, 0, 1))
		return args.status;
	bench.file = args.operands[0];
	if (pfs_bench_folder_make(&bench.folder, parent))
		return PFS_EXIT_FAILURE;
	status = pfs_bench_folder_end(&bench.folder, run(&bench));
	return status == PFS_EXIT_OK && bench.n_above ? PFS_EXIT_NO : status;
}
