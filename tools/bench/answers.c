/* SPDX-License-Identifier: MIT */
/* primefs-bench answers - measures large answers of `.query` as their readers see them: the first
 * byte, the rest, the close; and lookups while a thousand readers wait for what a statement has not
 * made. */
#include "tools/bench/bench.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUNDS	 5
#define READ	 ((size_t)1 << 20)
#define READERS	 1000
#define LOOKUPS	 5000
#define FAR_AWAY (64L << 20) /* behind what the endless statement makes */

static const struct pfs_cmd command = {
	"answers",
	"",
	"Times large answers as they are read, and lookups beside a thousand who wait.",
	pfs_bench_folder_options,
	NULL,
};

/* An empty sql stands for `.query/paths`. */
static const struct asked {
	const char *what, *sql;
} asked[] = {
	{"paths", ""},
	{"rows as they are", "SELECT path, size FROM nodes"},
	{"rows in order", "SELECT name, size, ino FROM nodes ORDER BY name, ino"},
};

static const char endless[] =
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 15000) "
	"SELECT i, printf('%0390d', i) FROM n UNION ALL "
	"SELECT count(*), '' FROM (WITH RECURSIVE m(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM m) "
	"SELECT i FROM m)";

enum { FIRST, RATE, CLOSED, LEFT, OF_EACH };
enum { ALONE, BESIDE = ALONE + 2, LOOKED_UP = BESIDE + 2 };

static const struct pfs_figures of_each[OF_EACH] = {
	[FIRST] = {.what = "its first byte", .unit = "ms", .less_is_better = true},
	[RATE] = {.what = "all of it", .unit = "GB/s"},
	[CLOSED] = {.what = "its close", .unit = "ms", .less_is_better = true},
	[LEFT] = {.what = "its close after the first byte", .unit = "ms", .less_is_better = true},
};

static const struct pfs_figures lookups[LOOKED_UP] = {
	[ALONE] = {.what = "a lookup beside its statement, p50",
		   .unit = "ms",
		   .less_is_better = true},
	{.what = "p99.9", .unit = "ms", .less_is_better = true},
	[BESIDE] = {.what = "and beside 1,000 who wait for it, p50",
		    .unit = "ms",
		    .less_is_better = true},
	{.what = "p99.9", .unit = "ms", .less_is_better = true},
};

struct bench {
	struct pfs_bench_folder folder;
	char *data; /* READ bytes */
	int fd;
	unsigned names;
};

/* Opens *fd and asks. */
static int ask(const struct bench *bench, const char *sql, int *fd)
{
	char path[PATH_MAX + 64];
	size_t len = strlen(sql);

	(void)snprintf(path, sizeof(path), "%s/.query/%s", bench->folder.mountpoint,
		       len ? "run" : "paths");
	*fd = open(path, (len ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (*fd < 0)
		return -errno;
	if (!len || write(*fd, sql, len) == (ssize_t)len)
		return 0;
	(void)close(*fd);
	return -EIO;
}

/* Reads the first byte, or all; *seconds until the end of the close are since then. */
static int read_one(const struct bench *bench, const char *sql, bool all, double *first,
		    double *rate, double *closing)
{
	double started = pfs_bench_now();
	uint64_t bytes = 0;
	ssize_t n;
	int fd;

	PFS_TRY(ask(bench, sql, &fd));
	n = read(fd, bench->data, 1);
	*first = pfs_bench_now() - started;
	while (n > 0 && all) {
		bytes += (uint64_t)n;
		n = read(fd, bench->data, READ);
	}
	*rate = (double)bytes / (pfs_bench_now() - started);
	started = pfs_bench_now();
	(void)close(fd);
	*closing = pfs_bench_now() - started;
	return n < 0 ? -EIO : 0;
}

static int time_answer(const struct bench *bench, const struct asked *one)
{
	struct pfs_figures figures[OF_EACH];
	double first, rate, closing;

	memcpy(figures, of_each, sizeof(figures));
	for (int round = 0; round < ROUNDS; round++) {
		PFS_TRY(read_one(bench, one->sql, true, &first, &rate, &closing));
		pfs_figures_add(&figures[FIRST], first * 1e3);
		pfs_figures_add(&figures[RATE], rate * 1e-9);
		pfs_figures_add(&figures[CLOSED], closing * 1e3);
		PFS_TRY(read_one(bench, one->sql, false, &first, &rate, &closing));
		pfs_figures_add(&figures[LEFT], closing * 1e3);
	}
	printf("%s:\n", one->what);
	for (size_t i = 0; i < OF_EACH; i++)
		pfs_figures_print(&figures[i], NULL);
	return 0;
}

/* ---- those who wait ---- */

static void *wait_for_answer(void *arg)
{
	char byte;

	(void)!pread(((const struct bench *)arg)->fd, &byte, 1, FAR_AWAY);
	return NULL;
}

static int time_lookups(struct bench *bench, struct pfs_figures *figures)
{
	static double took[LOOKUPS];
	char path[PATH_MAX + 64];
	struct stat stat_;

	for (size_t i = 0; i < LOOKUPS; i++) {
		double started;

		(void)snprintf(path, sizeof(path), "%s/nothing %u", bench->folder.mountpoint,
			       bench->names++);
		started = pfs_bench_now();
		if (stat(path, &stat_) == 0)
			return -EEXIST;
		took[i] = pfs_bench_now() - started;
	}
	pfs_figures_add(&figures[0], pfs_bench_median(took, LOOKUPS) * 1e3); /* this sorts them */
	pfs_figures_add(&figures[1], took[LOOKUPS - LOOKUPS / 1000 - 1] * 1e3);
	return 0;
}

static int start_readers(struct bench *bench, pthread_t *threads, unsigned *n)
{
	pthread_attr_t attr;
	int error = 0;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, (size_t)64 << 10);
	for (*n = 0; *n < READERS && !error; *n += !error)
		error = -pthread_create(&threads[*n], &attr, wait_for_answer, bench);
	(void)pthread_attr_destroy(&attr);
	(void)sleep(1); /* until the last reader waits */
	return error;
}

/* The daemon ends these reads together with the statement. */
static int time_waiting(struct bench *bench, pthread_t *threads, unsigned *n)
{
	struct pfs_figures figures[LOOKED_UP];
	int error = 0;

	memcpy(figures, lookups, sizeof(figures));
	PFS_TRY(ask(bench, endless, &bench->fd));
	for (int round = 0; round < ROUNDS && !error; round++)
		error = time_lookups(bench, &figures[ALONE]);
	if (!error)
		error = start_readers(bench, threads, n);
	for (int round = 0; round < ROUNDS && !error; round++)
		error = time_lookups(bench, &figures[BESIDE]);
	printf("an answer without an end:\n");
	for (size_t i = 0; i < LOOKED_UP && !error; i++)
		pfs_figures_print(&figures[i], NULL);
	/* The next statement replaces this one. */
	if (!error && write(bench->fd, "SELECT 1", 8) != 8)
		error = -EIO;
	return error;
}

static int run_mounted(struct bench *bench)
{
	pthread_t *threads = calloc(READERS, sizeof(*threads));
	unsigned n = 0;
	int error = threads ? 0 : -ENOMEM;

	for (size_t i = 0; i < PFS_COUNT(asked) && !error; i++)
		error = time_answer(bench, &asked[i]);
	if (!error)
		error = time_waiting(bench, threads, &n);
	while (!error && n)
		(void)pthread_join(threads[--n], NULL);
	free(threads);
	return error;
}

static int run(struct bench *bench)
{
	const char *mount[] = {pfs_bench_primefs(), "mount", bench->folder.store,
			       bench->folder.mountpoint, NULL};
	const char *umount[] = {pfs_bench_primefs(), "umount", "--lazy", bench->folder.mountpoint,
				NULL};
	int error;

	bench->data = malloc(READ);
	if (!bench->data)
		return -ENOMEM;
	PFS_TRY(pfs_bench_folder_import(&bench->folder));
	PFS_TRY(pfs_bench_run(command.verb, NULL, mount));
	error = run_mounted(bench);
	if (bench->fd > 0)
		(void)close(bench->fd);
	if (pfs_bench_run(command.verb, NULL, umount) && !error)
		error = -EIO;
	return error;
}

int pfs_bench_answers(int argc, char **argv)
{
	struct bench bench = {.folder.nodes = 1000000, .fd = -1};
	int error, status;

	status = pfs_bench_folder_begin(&bench.folder, &command, 10000, argc, argv);
	if (status >= 0)
		return status;
	error = run(&bench);
	free(bench.data);
	return pfs_bench_folder_end(&bench.folder, error);
}
